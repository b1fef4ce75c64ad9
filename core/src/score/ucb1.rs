//! UCB1 (Auer, Cesa-Bianchi, Fischer 2002, section 2; Kocsis & Szepesvari 2006): `Q + c * sqrt(2 ln N / n)`.

use std::sync::LazyLock;

use super::{one_of_the_highest, pick, score_in_groups, Context, FEW};
use crate::random::Random;
use crate::tree::{Edges, Statistics};

/// `2 ln n` for small n: most nodes are visited seldom, and a logarithm costs as much as scoring two edges.
static TWICE_LOG: LazyLock<[f64; 2048]> = LazyLock::new(|| std::array::from_fn(|visits| 2.0 * (visits as f64).ln()));

#[inline]
fn twice_log(visits: u32) -> f64 {
    TWICE_LOG.get(visits as usize).copied().unwrap_or_else(|| 2.0 * f64::from(visits).ln())
}

/// Chooses among edges of which none is proven and none has leaves in flight.
#[inline]
pub fn choose_plain(c_param: f64, parent_visits: u32, edges: Statistics<'_>, scratch: &mut [f64], random: &mut Random) -> usize {
    let log = twice_log(parent_visits);
    #[cfg(target_arch = "x86_64")]
    if super::has_wide_registers() {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the processor has just been seen to have them.
        return unsafe { choose_wide(c_param, log, edges, scratch, random) };
    }
    choose(c_param, log, edges, scratch, random)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn choose_wide(c_param: f64, log: f64, edges: Statistics<'_>, scratch: &mut [f64], random: &mut Random) -> usize {
    choose(c_param, log, edges, scratch, random)
}

#[inline(always)]
fn choose(c_param: f64, log: f64, edges: Statistics<'_>, scratch: &mut [f64], random: &mut Random) -> usize {
    let formula = |visits: f64, sum: f64, _: f64| sum / visits + c_param * (log / visits).sqrt();
    let count = edges.visits.len();
    if count <= FEW {
        return pick(edges, scratch, random, formula);
    }
    let best = score_in_groups(edges, &mut scratch[..count], formula);
    one_of_the_highest(&scratch[..count], best, random)
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
