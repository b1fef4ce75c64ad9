//! Groups of trees that take turns with a network, as Python drives them: requests and responses lie in Python's own memory.

use numpy::{PyReadonlyArray2, PyReadwriteArray2};
use pondertree_core::{Error, PolicyKind, ResponseColumns, Responses, RowLayout};
use pyo3::prelude::*;

use crate::errors::OrPython;
use crate::forest::any::{each, each_compiled, latent};
use crate::forest::Forest;
use crate::state::Wraps;

#[pymethods]
impl Forest {
    /// SearchConfig the trees into groups of at most `most`: how many trees each has.
    fn form_groups(&self, max_trees: usize) -> PyResult<Vec<usize>> {
        self.call(|any| Ok(each!(any, forest => forest.form_groups(max_trees))))
    }

    /// What a layout of requests holds: (bit planes, scalars, places for legal actions, words of 64 bits in all).
    fn row_layout(&self) -> PyResult<(usize, usize, usize, usize)> {
        self.call(|any| {
            each_compiled!(any, _forest, Class => {
                let layout = RowLayout::of::<<Class as Wraps>::Inner>();
                Ok((layout.planes, layout.scalars, layout.legal, layout.words()))
            })
        })
    }

    /// Seconds pipeline_times in exchanges so far: looking at responses, growing trees, writing requests.
    fn pipeline_seconds(&self) -> PyResult<(f64, f64, f64)> {
        self.call(|any| {
            let pipeline_times = each!(any, forest => forest.pipeline_times);
            Ok((pipeline_times.checking.as_secs_f64(), pipeline_times.growing.as_secs_f64(), pipeline_times.writing.as_secs_f64()))
        })
    }

    /// Gives a group the responses to its batch (None before the first), and writes the requests of the next (None: there is to be
    /// no next): the number of rows, and whether the group is to be called again, if only because of ends.
    /// None if the responses have something unusual in them: then nothing has changed.
    #[pyo3(signature = (group, responses, requests, probabilities = false))]
    fn exchange(
        &self,
        py: Python<'_>,
        group: usize,
        responses: Option<PyReadonlyArray2<'_, f32>>,
        requests: Option<PyReadwriteArray2<'_, u64>>,
        probabilities: bool,
    ) -> PyResult<Option<(usize, bool)>> {
        let mut requests = requests;
        let kind = if probabilities { PolicyKind::Probabilities } else { PolicyKind::Logits };
        let responses = match &responses {
            Some(array) => Some(Responses { numbers: array.as_slice()?, kind }),
            None => None,
        };
        let lines = match &mut requests {
            Some(array) => Some(array.as_slice_mut()?),
            None => None,
        };
        self.call(|any| {
            each_compiled!(any, forest, _Class => {
                let status = py.detach(|| forest.exchange(group, responses, lines)).or_python()?;
                Ok(status.map(|status| (status.rows, status.open)))
            })
        })
    }

    /// The same for a learned model: an answer is a reward, a value, a discount if `discount`, and logits of all actions; or, of the
    /// `top_k` actions alone, the logarithm of the sum of all exponentials, their logits, and the actions.
    #[pyo3(signature = (group, responses, requests, discount = false, top_k = None))]
    fn exchange_latent(
        &self,
        py: Python<'_>,
        group: usize,
        responses: Option<PyReadonlyArray2<'_, f32>>,
        requests: Option<PyReadwriteArray2<'_, i64>>,
        discount: bool,
        top_k: Option<usize>,
    ) -> PyResult<Option<(usize, bool)>> {
        let mut requests = requests;
        let responses = match &responses {
            Some(array) => Some((array.as_slice()?, ResponseColumns { discount, top_k })),
            None => None,
        };
        let lines = match &mut requests {
            Some(array) => Some(array.as_slice_mut()?),
            None => None,
        };
        self.call(|any| {
            let forest = latent(any)?;
            let status = py.detach(|| forest.exchange_latent(group, responses, lines)).or_python()?;
            Ok(status.map(|status| (status.rows, status.open)))
        })
    }

    /// How many slots of a learned model's positions there have been at the same time: all are below.
    fn num_slots(&self) -> PyResult<usize> {
        self.call(|any| Ok(latent(any)?.num_slots()))
    }
}
