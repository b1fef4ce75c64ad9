//! PUCT whose exploration grows linearly: `Q + c_linear * N * P / (1 + n)`.

use super::edge_score::EdgeScore;
use super::puct::puct_terms;
use super::{Choice, ScoringRule};
use crate::runtime::lanes::{Lanes, Number};
use crate::search::fields::Fields;
use crate::search::terms::{ChoiceTerms, RecordedChoice};

/// PUCT whose exploration grows linearly with N.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearPuct {
    /// Exploration constant.
    pub c_linear: f64,
}

impl ScoringRule for LinearPuct {
    const NAME: &'static str = "linear_puct";

    fn read<F: Fields>(fields: &F) -> Result<Self, F::Error> {
        Ok(Self { c_linear: fields.not_negative("c_linear")? })
    }

    fn choose<const ID: u8>(&self, choice: Choice<'_, impl Lanes>) -> usize {
        let exploration = self.c_linear * f64::from(choice.visits);
        choice.highest(Formula { exploration })
    }

    fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms {
        puct_terms(choice, how, self.c_linear * f64::from(choice.visits), 0.0, None)
    }
}

/// The formula at one node.
#[derive(Clone, Copy, Debug)]
struct Formula {
    exploration: f64,
}

impl EdgeScore for Formula {
    #[inline(always)]
    fn score<N: Number>(self, visits: N, mean: N, prior: N) -> N {
        mean.or(0.0) + mean.splat(self.exploration) * prior / (mean.splat(1.0) + visits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_is_the_formula() {
        // c_linear 0.5 and N = 10; n = 4, Q = 0.25, P = 0.5.
        assert_eq!(Formula { exploration: 5.0 }.score(4.0, 0.25, 0.5), 0.25 + 5.0 * 0.5 / 5.0);
    }
}
