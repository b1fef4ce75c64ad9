//! Python bindings of double-buffered batches: requests and responses are in Python's buffers.

use numpy::{PyReadonlyArray2, PyReadwriteArray2};
use pondertree_core::{Error, PolicyKind, ResponseColumns, Responses};
use pyo3::prelude::*;

use crate::errors::OrPython;
use crate::forest::any::{each, each_compiled, latent};
use crate::forest::Forest;

#[pymethods]
impl Forest {
    /// Splits the trees into groups of at most `max_trees`; returns their sizes.
    fn form_groups(&self, max_trees: usize) -> PyResult<Vec<usize>> {
        self.call(|any| Ok(each!(any, forest => forest.form_groups(max_trees))))
    }

    /// Returns the layout of a request: (words of bit planes, scalars, capacity of legal actions, 64-bit words).
    fn row_layout(&self) -> PyResult<(usize, usize, usize, usize)> {
        self.call(|any| {
            each_compiled!(any, forest, _Class => {
                let layout = forest.row_layout().or_python()?;
                Ok((layout.plane_words, layout.scalars, layout.max_legal, layout.words()))
            })
        })
    }

    /// Returns the seconds spent in exchanges: validation, tree growth, closing gaps between requests.
    fn pipeline_seconds(&self) -> PyResult<(f64, f64, f64)> {
        self.call(|any| {
            let pipeline_times = each!(any, forest => forest.pipeline_times());
            Ok((pipeline_times.checking.as_secs_f64(), pipeline_times.growing.as_secs_f64(), pipeline_times.writing.as_secs_f64()))
        })
    }

    /// Applies the responses to a group's batch (None before the first) and writes the requests of the next (None: no next
    /// one). Returns the number of rows and whether a batch is open; None, with nothing
    /// changed, if the responses fail the fast check.
    #[pyo3(signature = (group, responses, requests, probabilities = false))]
    fn exchange(
        &self,
        py: Python<'_>,
        group: usize,
        responses: Option<PyReadonlyArray2<'_, f32>>,
        mut requests: Option<PyReadwriteArray2<'_, u64>>,
        probabilities: bool,
    ) -> PyResult<Option<(usize, bool)>> {
        let kind = if probabilities { PolicyKind::Probabilities } else { PolicyKind::Logits };
        let responses = responses.as_ref().map(|array| array.as_slice()).transpose()?.map(|numbers| Responses { numbers, kind });
        let requests = requests.as_mut().map(|array| array.as_slice_mut()).transpose()?;
        self.call(|any| {
            each_compiled!(any, forest, _Class => {
                let status = py.detach(|| forest.exchange(group, responses, requests)).or_python()?;
                Ok(status.map(|status| (status.rows, status.open)))
            })
        })
    }

    /// `exchange` for a learned model. A response has reward, value, discount if `discount`, and logits of all actions; or of
    /// the `top_k` actions alone log-sum-exp of all logits, logits and actions.
    #[pyo3(signature = (group, responses, requests, discount = false, top_k = None))]
    fn exchange_latent(
        &self,
        py: Python<'_>,
        group: usize,
        responses: Option<PyReadonlyArray2<'_, f32>>,
        mut requests: Option<PyReadwriteArray2<'_, i64>>,
        discount: bool,
        top_k: Option<usize>,
    ) -> PyResult<Option<(usize, bool)>> {
        let columns = ResponseColumns { discount, top_k };
        let responses = responses.as_ref().map(|array| array.as_slice()).transpose()?.map(|numbers| (numbers, columns));
        let requests = requests.as_mut().map(|array| array.as_slice_mut()).transpose()?;
        self.call(|any| {
            let forest = latent(any)?;
            let status = py.detach(|| forest.exchange_latent(group, responses, requests)).or_python()?;
            Ok(status.map(|status| (status.rows, status.open)))
        })
    }

    /// Returns the maximum number of slots in use so far; all slots are below.
    fn num_slots(&self) -> PyResult<usize> {
        self.call(|any| Ok(latent(any)?.num_slots()))
    }
}
