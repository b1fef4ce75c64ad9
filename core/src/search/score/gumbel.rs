//! Gumbel search below the root (Danihelka et al. 2022): completed Q, the improved policy, and the deterministic selection by which
//! visits follow that policy. `sequential_halving` has the root's rule.

use super::{select_edge, Choice, ScoringRule};
use crate::runtime::lanes::Lanes;
use crate::search::fields::Fields;
use crate::search::terms::{terms, ChoiceTerms, RecordedChoice, RecordedEdge, Terms};
use crate::tree::{Edges, Node};

/// Lower bound of a span of values, against division by 0 (as in mctx).
const MIN_SPAN: f64 = 1e-8;
/// Lower bound of priors in the mixed value (as in mctx).
const MIN_PRIOR: f64 = f32::MIN_POSITIVE as f64;

/// How Q is completed and scaled; names as in mctx.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletedQ {
    /// Weight of values against logits.
    pub value_scale: f64,
    /// Added to the maximum visit count, in the weight of values.
    pub maxvisit_init: f64,
    /// Whether values are rescaled to [0, 1].
    pub rescale_values: bool,
    /// Whether Q is completed by the mixed value of node and moves instead of the node's own value (appendix D).
    pub use_mixed_value: bool,
    /// Size of the action space: if any action is unvisited, legal or not, the completing value counts in the span (as in mctx).
    pub num_actions: usize,
}

/// Visits follow an improved policy; sequential halving over a Gumbel-top-k sample at the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gumbel {
    /// How Q is completed.
    pub completed_q: CompletedQ,
    /// Upper bound of the moves considered at the root.
    pub max_num_considered_actions: u32,
    /// Weight of the Gumbel numbers.
    pub gumbel_scale: f64,
}

impl ScoringRule for Gumbel {
    const NAME: &'static str = "gumbel";

    fn read<F: Fields>(fields: &F) -> Result<Self, F::Error> {
        Ok(Self {
            completed_q: CompletedQ {
                value_scale: fields.not_negative("value_scale")?,
                maxvisit_init: fields.not_negative("maxvisit_init")?,
                rescale_values: fields.flag("rescale_values")?,
                use_mixed_value: fields.flag("use_mixed_value")?,
                num_actions: fields.count("num_actions")? as usize,
            },
            max_num_considered_actions: fields.count("max_num_considered_actions")?,
            gumbel_scale: fields.not_negative("gumbel_scale")?,
        })
    }

    #[inline(always)]
    fn choose<const ID: u8>(&self, Choice { tree, index, node, scores, all_scores, .. }: Choice<'_, impl Lanes>) -> usize {
        select_edge::reserve_scores(scores, node.num_edges as usize);
        let highest = tree.max_untried_prior(node);
        choose(&self.completed_q, &tree.edges(node), node, tree.pruned_prior_mass(index), highest, all_scores, scores)
    }

    fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms {
        let (edges, opened) = (choice.edges(), choice.node.opened as usize);
        let bonus = RecordedBonus::of(&self.completed_q, choice);
        let mut weights = bonus.values.clone();
        let pruned = choice.tree.pruned_prior_mass(choice.index);
        let improved = improve(&edges, opened, pruned, &bonus.bonus, &mut weights[..opened]);
        let visits = 1.0 + f64::from((0..opened).map(|place| counted(&edges, place)).sum::<u32>());
        choice.scored(how, bonus.shared(), |edge| {
            let weight = if edge.place < opened { weights[edge.place] } else { edge.prior * improved.untried };
            let improved_policy = weight / improved.total;
            let visit_share = f64::from(edge.visits) / visits;
            let own = terms! { improved_policy: improved_policy, visit_share: visit_share };
            ([bonus.terms(edge), own].concat(), improved_policy - visit_share)
        })
    }

    fn sequential_halving(&self) -> Option<&Gumbel> {
        Some(self)
    }
}

/// sigma(completed Q): what is added to the logits of a node's moves.
#[derive(Clone, Copy, Debug)]
pub struct Bonus {
    weight: f64,
    low: f64,
    span: f64,
    /// The bonus of an untried move.
    pub untried: f64,
}

impl Bonus {
    /// Returns the bonus of a move with value `q`, NaN if untried.
    #[inline]
    pub fn of(&self, q: f64) -> f64 {
        if q.is_nan() {
            self.untried
        } else {
            self.weight * ((q - self.low) / self.span)
        }
    }
}

/// The bonus at a node, for a record.
#[derive(Debug)]
pub(crate) struct RecordedBonus {
    bonus: Bonus,
    /// Q of each edge, NaN without visits.
    values: Vec<f64>,
    /// Q of untried moves.
    completing: f64,
}

impl RecordedBonus {
    pub(crate) fn of(completed_q: &CompletedQ, choice: &RecordedChoice<'_>) -> Self {
        let (edges, opened) = (choice.edges(), choice.node.opened as usize);
        let mut values = vec![f64::NAN; edges.actions.len()];
        let bonus = completed_q.at(&edges, choice.node, &mut values);
        let (visits, priors) = (edges.visits[..opened].iter().sum(), &edges.priors[..opened]);
        let known = values.iter().zip(priors).filter(|(q, _)| !q.is_nan());
        let mass = known.fold(0.0, |sum, (_, &prior)| sum + clamped_prior(prior));
        let completing = completed_q.completing(choice.node.raw_value, visits, mass, &values, priors);
        Self { bonus, values, completing }
    }

    pub(crate) fn shared(&self) -> Terms {
        let Bonus { weight, low, span, .. } = self.bonus;
        terms! { mixed_value: self.completing, sigma_weight: weight, low: low, span: span }
    }

    /// Returns Q, completed Q and sigma of an edge.
    pub(crate) fn terms(&self, edge: &RecordedEdge) -> Terms {
        let q = self.values[edge.place];
        let known = (!q.is_nan()).then_some(q);
        terms! { q: known, completed_q: known.unwrap_or(self.completing), sigma: self.sigma(edge) }
    }

    /// Returns the bonus of an edge.
    pub(crate) fn sigma(&self, edge: &RecordedEdge) -> f64 {
        self.bonus.of(self.values[edge.place])
    }
}

/// Returns the visits of an edge plus leaves in flight.
#[inline]
pub(crate) fn counted(edges: &Edges<'_>, place: usize) -> u32 {
    edges.visits[place] + edges.in_flight.get(place).map_or(0, |&in_flight| u32::from(in_flight))
}

/// Returns a prior as the mixed value counts it.
#[inline]
fn clamped_prior(prior: f32) -> f64 {
    let prior = f64::from(prior);
    if prior > MIN_PRIOR {
        prior
    } else {
        MIN_PRIOR
    }
}

impl CompletedQ {
    /// Returns Q of untried moves, from the values and priors of the opened edges, their visits in `total` and the sum `mass` of the
    /// priors of those with values.
    #[inline(always)]
    fn completing(&self, raw: f64, total: u32, mass: f64, values: &[f64], priors: &[f32]) -> f64 {
        if !self.use_mixed_value || total == 0 {
            return raw;
        }
        let mut weighted = 0.0;
        for (&q, &prior) in values.iter().zip(priors) {
            if !q.is_nan() {
                weighted += clamped_prior(prior) * q / mass;
            }
        }
        let total = f64::from(total);
        (raw + total * weighted) / (total + 1.0)
    }

    /// Returns the bonus at a node; `values` receives Q of its opened edges, NaN without visits.
    pub fn at(&self, edges: &Edges<'_>, node: &Node, values: &mut [f64]) -> Bonus {
        let opened = node.opened as usize;
        let (mut total, mut most, mut visited, mut priors) = (0u32, 0u32, 0usize, 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let (values, known) = (&mut values[..opened], &edges.priors[..opened]);
        for (slot, (&sum, &visits)) in values.iter_mut().zip(edges.sums.iter().zip(edges.visits)) {
            most = most.max(visits);
            total += visits;
            // 0 / 0 is NaN without visits.
            *slot = sum / f64::from(visits as i32);
        }
        if node.has_proven_edge {
            for (slot, link) in values.iter_mut().zip(edges.links) {
                *slot = link.proven().map_or(*slot, f64::from);
            }
        }
        if !edges.in_flight.is_empty() {
            most = (0..opened).map(|place| counted(edges, place)).max().unwrap_or(0);
        }
        for (&q, &prior) in values.iter().zip(known) {
            if !q.is_nan() {
                visited += 1;
                priors += clamped_prior(prior);
                low = if q < low { q } else { low };
                high = if q > high { q } else { high };
            }
        }
        let completing = self.completing(node.raw_value, total, priors, values, known);
        if visited < self.num_actions {
            low = if completing < low { completing } else { low };
            high = if completing > high { completing } else { high };
        }
        let weight = (self.maxvisit_init + f64::from(most)) * self.value_scale;
        let (low, span) = if self.rescale_values { (low, (high - low).max(MIN_SPAN)) } else { (0.0, 1.0) };
        let mut bonus = Bonus { weight, low, span, untried: 0.0 };
        bonus.untried = bonus.of(completing);
        bonus
    }
}

/// Returns prior * exp(exponent); 0 for prior 0, where the exponential may overflow.
#[inline]
fn weigh(prior: f64, exponent: f64) -> f64 {
    if prior > 0.0 {
        prior * exponent.exp()
    } else {
        0.0
    }
}

/// Weight of one unit of untried prior, and the sum of all weights of the improved policy.
struct ImprovedPolicy {
    untried: f64,
    total: f64,
}

/// The improved policy pi' = softmax(logits + bonus) as weights P * exp(bonus - max): replaces the values of the opened edges in
/// `weights`. `pruned` is the pruned prior mass of the node.
fn improve(edges: &Edges<'_>, opened: usize, pruned: f64, bonus: &Bonus, weights: &mut [f64]) -> ImprovedPolicy {
    let (tried, untried) = edges.priors.split_at(opened);
    let rest = untried.iter().fold(0.0, |sum, &prior| sum + f64::from(prior)) + pruned;
    let mut most = if rest > 0.0 { bonus.untried } else { f64::NEG_INFINITY };
    for (slot, &prior) in weights.iter_mut().zip(tried) {
        *slot = bonus.of(*slot);
        most = if prior > 0.0 && *slot > most { *slot } else { most };
    }
    let mut total = 0.0;
    for (slot, &prior) in weights.iter_mut().zip(tried) {
        *slot = weigh(f64::from(prior), *slot - most);
        total += *slot;
    }
    // Without untried prior the exponential may overflow, and 0 times infinity would be NaN.
    let untried = if rest > 0.0 { (bonus.untried - most).exp() } else { 0.0 };
    ImprovedPolicy { untried, total: total + rest * untried }
}

/// Returns the place to follow below the root: where visits lag most behind the improved policy (section 5), the lowest action
/// among equals; no proven loss unless all are. `pruned` is the pruned prior mass of the node, `highest` the maximum prior of its
/// untried edges. `scores` has at least one entry per edge and receives their scores if `all_scores`.
fn choose(
    completed_q: &CompletedQ,
    edges: &Edges<'_>,
    node: &Node,
    pruned: f64,
    highest: f32,
    all_scores: bool,
    scores: &mut [f64],
) -> usize {
    let opened = node.opened as usize;
    let bonus = completed_q.at(edges, node, scores);
    let improved = improve(edges, opened, pruned, &bonus, &mut scores[..opened]);
    let visits = 1.0 + f64::from((0..opened).map(|place| counted(edges, place)).sum::<u32>());
    let all_lost = node.has_proven_edge && edges.links.iter().all(|link| link.is_loss());
    let mut best: Option<(f64, u16, usize)> = None;
    for (place, slot) in scores[..opened].iter_mut().enumerate() {
        let score = *slot / improved.total - f64::from(counted(edges, place)) / visits;
        let lost = node.has_proven_edge && edges.links[place].is_loss() && !all_lost;
        *slot = if lost { f64::NEG_INFINITY } else { score };
        let action = edges.actions[place];
        if !lost && best.is_none_or(|(most, lowest, _)| score > most || (score == most && action < lowest)) {
            best = Some((score, action, place));
        }
    }
    let untried = |prior: f32| f64::from(prior) * improved.untried / improved.total;
    if opened < edges.actions.len() {
        // Only the untried move with the highest prior can win.
        let score = untried(highest);
        if best.is_none_or(|(most, ..)| score >= most) {
            let place = untried_with_prior(edges, opened, highest);
            if best.is_none_or(|(most, lowest, _)| score > most || edges.actions[place] < lowest) {
                best = Some((score, edges.actions[place], place));
            }
        }
    }
    if all_scores {
        (opened..edges.actions.len()).for_each(|place| scores[place] = untried(edges.priors[place]));
    }
    best.map_or(0, |(_, _, place)| place)
}

/// Returns the place from `opened` on with prior `highest`, of the lowest action among equals.
#[inline]
fn untried_with_prior(edges: &Edges<'_>, opened: usize, highest: f32) -> usize {
    let alike = (opened..edges.priors.len()).filter(|&place| edges.priors[place] == highest);
    alike.min_by_key(|&place| edges.actions[place]).unwrap_or(opened)
}

/// Returns the improved policy over the root's edges, which is the policy training target. Moves outside `allowed` get 0.
pub(crate) fn policy(completed_q: &CompletedQ, edges: &Edges<'_>, node: &Node, allowed: &[usize]) -> Vec<f64> {
    let mut bonuses = vec![f64::NAN; edges.actions.len()];
    let bonus = completed_q.at(edges, node, &mut bonuses);
    bonuses.iter_mut().for_each(|slot| *slot = bonus.of(*slot));
    let likely = |place: &&usize| edges.priors[**place] > 0.0;
    let greatest = |places: &mut dyn Iterator<Item = &usize>| places.map(|&place| bonuses[place]).fold(f64::NEG_INFINITY, f64::max);
    let mut most = greatest(&mut allowed.iter().filter(likely));
    let none_likely = most == f64::NEG_INFINITY;
    if none_likely {
        most = greatest(&mut allowed.iter());
    }
    let mut policy = vec![0.0; edges.actions.len()];
    let mut total = 0.0;
    for &place in allowed {
        let prior = if none_likely { 1.0 } else { f64::from(edges.priors[place]) };
        policy[place] = weigh(prior, bonuses[place] - most);
        total += policy[place];
    }
    policy.iter_mut().for_each(|share| *share /= total);
    policy
}
