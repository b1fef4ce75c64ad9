//! UCB1 (Auer, Cesa-Bianchi, Fischer 2002, section 2; Kocsis & Szepesvari 2006): `Q + c * sqrt(2 ln N / n)`.

use std::sync::LazyLock;

use super::Context;
use crate::tree::{Edges, Lanes, LANES};

/// `2 ln n` for small n: most nodes are visited seldom, and a logarithm costs as much as scoring two edges.
static TWICE_LOG: LazyLock<[f64; 2048]> = LazyLock::new(|| std::array::from_fn(|visits| 2.0 * (visits as f64).ln()));

#[inline]
fn twice_log(visits: u32) -> f64 {
    TWICE_LOG.get(visits as usize).copied().unwrap_or_else(|| 2.0 * f64::from(visits).ln())
}

/// Scores edges of which none is proven and none has leaves in flight, in whole groups of `LANES`; the highest score.
/// Only the first `count` are edges: the others score minus infinity.
#[inline]
pub fn score_plain(c_param: f64, parent_visits: u32, lanes: Lanes<'_>, scores: &mut [f64], count: usize) -> f64 {
    let log = twice_log(parent_visits);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the processor has just been seen to have AVX2.
        return unsafe { score_groups_avx2(c_param, log, lanes.visits, lanes.sums, scores, count) };
    }
    score_groups(c_param, log, lanes.visits, lanes.sums, scores, count)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn score_groups_avx2(c_param: f64, log: f64, visits: &[u32], sums: &[f64], scores: &mut [f64], count: usize) -> f64 {
    score_groups(c_param, log, visits, sums, scores, count)
}

#[inline(always)]
fn score_groups(c_param: f64, log: f64, visits: &[u32], sums: &[f64], scores: &mut [f64], count: usize) -> f64 {
    let mut best = [f64::NEG_INFINITY; LANES];
    let groups = visits.chunks_exact(LANES).zip(sums.chunks_exact(LANES)).zip(scores.chunks_exact_mut(LANES));
    for (group, ((visits, sums), scores)) in groups.enumerate() {
        for lane in 0..LANES {
            // Signed, because that conversion is one instruction everywhere; no edge is visited 2^31 times.
            let visits = f64::from(visits[lane] as i32);
            let score = sums[lane] / visits + c_param * (log / visits).sqrt();
            let score = if group * LANES + lane < count { score } else { f64::NEG_INFINITY };
            scores[lane] = score;
            best[lane] = if score > best[lane] { score } else { best[lane] };
        }
    }
    best.into_iter().fold(f64::NEG_INFINITY, |best, score| if score > best { score } else { best })
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
