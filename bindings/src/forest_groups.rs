//! Groups of trees that take turns with a network, as Python drives them: questions and answers lie in Python's own memory.

use numpy::{PyReadonlyArray2, PyReadwriteArray2};
use pondertree_core::error::Error;
use pondertree_core::forest::pipeline::{Answers, Line};
use pondertree_core::forest::pipeline_latent::Columns;
use pondertree_core::search::priors::PolicyKind;
use pyo3::prelude::*;

use crate::any::{each, each_compiled, latent};
use crate::errors::OrPython;
use crate::forest::Forest;
use crate::states::Wraps;

#[pymethods]
impl Forest {
    /// SearchConfig the trees into groups of at most `most`: how many trees each has.
    fn form_groups(&self, most: usize) -> PyResult<Vec<usize>> {
        self.call(|any| Ok(each!(any, forest => forest.form_groups(most))))
    }

    /// What a line of questions holds: (bit planes, scalars, places for legal actions, words of 64 bits in all).
    fn question_line(&self) -> PyResult<(usize, usize, usize, usize)> {
        self.call(|any| {
            each_compiled!(any, _forest, Class => {
                let line = Line::of::<<Class as Wraps>::Inner>();
                Ok((line.planes, line.scalars, line.legal, line.words()))
            })
        })
    }

    /// Seconds spent in exchanges so far: looking at answers, growing trees, writing questions.
    fn exchange_seconds(&self) -> PyResult<(f64, f64, f64)> {
        self.call(|any| {
            let spent = each!(any, forest => forest.spent);
            Ok((spent.checking.as_secs_f64(), spent.growing.as_secs_f64(), spent.writing.as_secs_f64()))
        })
    }

    /// Gives a group the answers to its batch (None before the first), and writes the questions of the next (None: there is to be
    /// no next): the number of rows, and whether the group is to be called again, if only because of ends.
    /// None if the answers have something unusual in them: then nothing has changed.
    #[pyo3(signature = (group, answers, questions, probabilities = false))]
    fn exchange(
        &self,
        py: Python<'_>,
        group: usize,
        answers: Option<PyReadonlyArray2<'_, f32>>,
        questions: Option<PyReadwriteArray2<'_, u64>>,
        probabilities: bool,
    ) -> PyResult<Option<(usize, bool)>> {
        let mut questions = questions;
        let kind = if probabilities { PolicyKind::Probabilities } else { PolicyKind::Logits };
        let answers = match &answers {
            Some(array) => Some(Answers { numbers: array.as_slice()?, kind }),
            None => None,
        };
        let lines = match &mut questions {
            Some(array) => Some(array.as_slice_mut()?),
            None => None,
        };
        self.call(|any| {
            each_compiled!(any, forest, _Class => {
                let asked = py.detach(|| forest.exchange(group, answers, lines)).or_python()?;
                Ok(asked.map(|asked| (asked.rows, asked.open)))
            })
        })
    }

    /// The same for a history_table model: an answer is a reward, a value, a discount if `discount`, and logits of all actions; or, of the
    /// `top_k` actions alone, the logarithm of the sum of all exponentials, their logits, and the actions.
    #[pyo3(signature = (group, answers, questions, discount = false, top_k = None))]
    fn exchange_latent(
        &self,
        py: Python<'_>,
        group: usize,
        answers: Option<PyReadonlyArray2<'_, f32>>,
        questions: Option<PyReadwriteArray2<'_, i64>>,
        discount: bool,
        top_k: Option<usize>,
    ) -> PyResult<Option<(usize, bool)>> {
        let mut questions = questions;
        let answers = match &answers {
            Some(array) => Some((array.as_slice()?, Columns { discount, top_k })),
            None => None,
        };
        let lines = match &mut questions {
            Some(array) => Some(array.as_slice_mut()?),
            None => None,
        };
        self.call(|any| {
            let forest = latent(any)?;
            let asked = py.detach(|| forest.exchange_latent(group, answers, lines)).or_python()?;
            Ok(asked.map(|asked| (asked.rows, asked.open)))
        })
    }

    /// How many slots of a history_table model's positions there have been at the same time: all are below.
    fn most_slots(&self) -> PyResult<usize> {
        self.call(|any| Ok(latent(any)?.most_slots()))
    }
}
