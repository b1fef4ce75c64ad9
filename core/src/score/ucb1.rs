//! UCB1 (Auer, Cesa-Bianchi, Fischer 2002, section 2; Kocsis & Szepesvari 2006): `Q + c * sqrt(2 ln N / n)`.

use std::sync::LazyLock;

use super::{score_in_groups, Context};
use crate::tree::{Edges, Statistics};

/// `2 ln n` for small n: most nodes are visited seldom, and a logarithm costs as much as scoring two edges.
static TWICE_LOG: LazyLock<[f64; 2048]> = LazyLock::new(|| std::array::from_fn(|visits| 2.0 * (visits as f64).ln()));

#[inline]
fn twice_log(visits: u32) -> f64 {
    TWICE_LOG.get(visits as usize).copied().unwrap_or_else(|| 2.0 * f64::from(visits).ln())
}

/// Scores edges of which none is proven and none has leaves in flight; the highest score.
#[inline]
pub fn score_plain(c_param: f64, parent_visits: u32, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
    let log = twice_log(parent_visits);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the processor has just been seen to have AVX2.
        return unsafe { score_wide(c_param, log, edges, scores) };
    }
    score_groups(c_param, log, edges, scores)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn score_wide(c_param: f64, log: f64, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
    score_groups(c_param, log, edges, scores)
}

#[inline(always)]
fn score_groups(c_param: f64, log: f64, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
    score_in_groups(edges, scores, |visits, sum, _| sum / visits + c_param * (log / visits).sqrt())
}

/// Scores any edges; a proven loss gets minus infinity unless all are.
pub fn score(c_param: f64, edges: &Edges<'_>, context: Context, scores: &mut [f64]) {
    let log = twice_log(context.visits);
    let all_lost = edges.links.iter().all(|link| link.is_loss());
    for (index, score) in scores.iter_mut().enumerate().take(edges.visits.len()) {
        let flying = edges.in_flight.get(index).map_or(0.0, |&count| f64::from(count));
        let visits = f64::from(edges.visits[index]) + flying;
        let exploit = match edges.links[index].proven() {
            Some(-1) if !all_lost => {
                *score = f64::NEG_INFINITY;
                continue;
            }
            Some(value) => f64::from(value),
            None if context.virtual_loss => (edges.sums[index] - flying) / visits,
            None => edges.sums[index] / visits,
        };
        *score = exploit + c_param * (log / visits).sqrt();
    }
}
