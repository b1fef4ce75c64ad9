//! UCB1 (Auer, Cesa-Bianchi, Fischer 2002, section 2; Kocsis & Szepesvari 2006): `Q + c * sqrt(2 ln N / n)`.

use super::Context;
use crate::tree::Edges;

/// Scores every edge; a proven loss gets minus infinity unless all are.
#[inline]
pub fn score(c_param: f64, edges: &Edges<'_>, context: Context, scores: &mut Vec<f64>) {
    let log = 2.0 * f64::from(context.visits).ln();
    scores.clear();
    if edges.in_flight.is_empty() && !context.tagged {
        // The plain case, kept free of branches so that it runs two edges at a time.
        scores.extend(edges.visits.iter().zip(edges.sums).map(|(&visits, &sum)| {
            let visits = f64::from(visits);
            sum / visits + c_param * (log / visits).sqrt()
        }));
        return;
    }
    let all_lost = context.tagged && edges.links.iter().all(|link| link.is_loss());
    for index in 0..edges.visits.len() {
        let flying = edges.in_flight.get(index).map_or(0.0, |&count| f64::from(count));
        let visits = f64::from(edges.visits[index]) + flying;
        let link = edges.links[index];
        let exploit = match link.proven() {
            Some(-1) if !all_lost => {
                scores.push(f64::NEG_INFINITY);
                continue;
            }
            Some(value) => f64::from(value),
            None if context.virtual_loss => (edges.sums[index] - flying) / visits,
            None => edges.sums[index] / visits,
        };
        scores.push(exploit + c_param * (log / visits).sqrt());
    }
}
