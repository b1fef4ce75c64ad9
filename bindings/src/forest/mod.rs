//! The Python class `Forest`. Its lock is only tried: `stop` works from another thread, and reentering a running search is
//! refused. Every method goes through `Forest::call`.

pub mod any;
mod external;
mod latent;
mod offload;
mod pipeline;
mod root_results;
mod saved;
mod trace;

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyArray4, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pondertree_core::games::Compiled;
use pondertree_core::solvers::minimax::{minimax, Verdict};
use pondertree_core::{tree_key, Error, Noise, Policy, PolicyKind, Row};
use pyo3::prelude::*;

use crate::arrays::{observations, packed_observations, Packed};
use crate::call::{caught, guarded, interruptible};
use crate::config::ConfigArguments;
use crate::errors::{internal, OrPython};
use crate::forest::any::{copy_of, each, each_compiled, Any};
use crate::random::{Keys, PlayoutRandom};
use crate::tree_view::TreeView;

/// Upper bound of the time between two signal checks.
const SLICE: Duration = Duration::from_millis(40);

type LegalRows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u16>>);

/// Many trees of one game, searched together.
#[pyclass(frozen, module = "pondertree._core")]
pub struct Forest {
    /// Dropped in `Drop`, unless locked.
    inner: ManuallyDrop<Mutex<Any>>,
    pub(crate) stop: AtomicBool,
    /// The message of the panic that made it unusable.
    failure: OnceLock<String>,
    /// Whether batches of external states follow each other without a return to the caller.
    continuous: AtomicBool,
    /// The random numbers of the playout of an external state.
    playout_random: Py<PlayoutRandom>,
}

impl Forest {
    /// Runs `work` on the trees. Refuses a forest that is in use, or whose trees a panic left inconsistent. Long work detaches
    /// from the interpreter itself.
    pub(crate) fn call<T>(&self, work: impl FnOnce(&mut Any) -> PyResult<T>) -> PyResult<T> {
        let refused = |panic: &str| {
            let text = "the engine panicked in this search, whose trees cannot be used any more: make a new one";
            Err(internal(&format!("{text} (the panic: {panic}). Please report this defect of Pondertree")))
        };
        match self.inner.try_lock() {
            Ok(mut any) => caught(move || work(&mut any)).unwrap_or_else(|panic| refused(self.failure.get_or_init(|| panic))),
            Err(TryLockError::Poisoned(_)) => refused(self.failure.get().map_or("no message", String::as_str)),
            Err(TryLockError::WouldBlock) => {
                Err(Error::Usage("this search is already running: wait for it, or stop it, before using it again".into())).or_python()
            }
        }
    }
}

impl Drop for Forest {
    /// Leaks trees that are locked: after a fork they belong to a thread of the parent that was changing them. Catches panics
    /// of inconsistent trees.
    fn drop(&mut self) {
        if !matches!(self.inner.try_lock(), Err(TryLockError::WouldBlock)) {
            // SAFETY: the only place that drops it; nothing uses it afterwards.
            #[expect(unsafe_code, reason = "see above")]
            let _ = caught(|| unsafe { ManuallyDrop::drop(&mut self.inner) });
        }
    }
}

#[pymethods]
impl Forest {
    /// Creates a forest of `game`: the name of a compiled game, "external" or "latent". `config` has the fields `CONFIG_FIELDS`.
    #[new]
    fn new(py: Python<'_>, game: &str, config: ConfigArguments) -> PyResult<Self> {
        let inner = guarded(|| Any::new(game, config).or_python())?;
        Ok(Self {
            inner: ManuallyDrop::new(Mutex::new(inner)),
            stop: AtomicBool::new(false),
            failure: OnceLock::new(),
            continuous: AtomicBool::new(false),
            playout_random: Py::new(py, PlayoutRandom::default())?,
        })
    }

    /// Plants a tree for each state of the compiled game. `among` has the root actions to search, None for all.
    #[pyo3(signature = (states, keys, among = None))]
    fn plant(&self, py: Python<'_>, states: Vec<Bound<'_, PyAny>>, keys: Keys, among: Option<Vec<Option<Vec<u16>>>>) -> PyResult<()> {
        let keys = keys.of(states.len()).or_python()?;
        let among = among.unwrap_or_default();
        self.call(|any| {
            each_compiled!(any, forest, Class => {
                let planted = states.iter().zip(keys).map(|(state, key)| Ok((copy_of(&state.cast::<Class>()?.get().0), key)));
                let planted = planted.collect::<PyResult<Vec<_>>>()?;
                py.detach(|| forest.plant_all(planted, &among)).or_python()
            })
        })
    }

    /// Replaces tree `index` by one of another state.
    fn reset(&self, py: Python<'_>, index: usize, state: &Bound<'_, PyAny>, seed: u64, call: u64, row: u64) -> PyResult<()> {
        let key = tree_key(seed, call, row);
        self.call(|any| {
            each_compiled!(any, forest, Class => {
                let root = copy_of(&state.cast::<Class>()?.get().0);
                py.detach(|| forest.reset(index, root, key)).or_python()
            })
        })
    }

    /// Plays `action` at the root of tree `index` and keeps its subtree.
    fn advance(&self, py: Python<'_>, index: usize, action: u16) -> PyResult<()> {
        // Copying and freeing a large tree takes a while; other threads run meanwhile.
        self.call(|any| each_compiled!(any, forest, _Class => py.detach(|| forest.advance(index, action)).or_python()))
    }

    /// Restricts the root of tree `index` to `actions` until it is advanced or reset.
    fn restrict(&self, py: Python<'_>, index: usize, actions: Vec<u16>) -> PyResult<()> {
        self.call(|any| each_compiled!(any, forest, _Class => py.detach(|| forest.restrict(index, &actions)).or_python()))
    }

    /// Skips the analysis of tree `index`'s root.
    fn skip_root_analysis(&self, index: usize) -> PyResult<()> {
        self.call(|any| each_compiled!(any, forest, _Class => forest.skip_root_analysis(index).or_python()))
    }

    /// Runs inside the engine until no tree wants more, `seconds` have passed, or `stop` was called. Calls `progress(done,
    /// wanted)` regularly.
    #[pyo3(signature = (seconds = None, progress = None))]
    fn run(&self, py: Python<'_>, seconds: Option<f64>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let begun = Instant::now();
        let deadline = seconds.and_then(|seconds| begun.checked_add(Duration::try_from_secs_f64(seconds).ok()?));
        self.call(|any| {
            loop {
                let slice = Instant::now() + SLICE;
                // A short time limit leaves no tree without a simulation.
                let until = deadline.map_or(slice, |deadline| deadline.min(slice));
                let over = || self.stop.load(Ordering::Relaxed) || Instant::now() >= until;
                py.detach(|| {
                    each!(any, forest => {
                        if !forest.all_started() {
                            forest.begin(&|| self.stop.load(Ordering::Relaxed) || Instant::now() >= slice);
                        }
                        forest.run(deadline.is_some(), &over);
                    })
                });
                py.check_signals()?;
                let (done, wanted) = each!(any, forest => forest.progress());
                if let Some(progress) = progress {
                    progress.call1((done, wanted))?;
                }
                let passed = deadline.is_some_and(|deadline| Instant::now() >= deadline) && each!(any, forest => forest.all_started());
                if passed || self.stop.load(Ordering::Relaxed) || !each!(any, forest => forest.wants_more()) {
                    return Ok(());
                }
            }
        })
    }

    /// Gathers leaves; returns the number of rows to step outside (0 for compiled games).
    fn gather(&self, py: Python<'_>) -> PyResult<usize> {
        self.call(|any| py.detach(|| each!(any, forest => forest.gather().map(<[Row]>::len))).or_python())
    }

    /// Returns whether every tree that wants simulations has had one since its limit was set.
    fn all_begun(&self) -> PyResult<bool> {
        self.call(|any| Ok(each!(any, forest => forest.all_started())))
    }

    /// The size of the action space.
    #[getter]
    fn num_actions(&self) -> PyResult<usize> {
        self.call(|any| Ok(each!(any, forest => forest.config().num_actions)))
    }

    /// Sets the Gumbel numbers of tree `index`, one per action; None draws them.
    fn set_gumbel(&self, index: usize, numbers: Option<Vec<f64>>) -> PyResult<()> {
        self.call(|any| each!(any, forest => forest.set_gumbel(index, numbers).or_python()))
    }

    /// Returns the number of leaves that wait for values.
    fn num_waiting(&self) -> PyResult<usize> {
        self.call(|any| Ok(each!(any, forest => forest.num_waiting(forest.all()))))
    }

    /// Returns the waiting leaves as states of the compiled game.
    fn waiting_states(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.call(|any| {
            each_compiled!(any, forest, Class => {
                forest.waiting_states().into_iter().map(|state| Ok(Py::new(py, Class::wrap(copy_of(state)))?.into_any())).collect()
            })
        })
    }

    /// Returns the observations of the waiting leaves, float32 [rows, planes, height, width].
    fn waiting_observations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray4<f32>>> {
        self.call(|any| each_compiled!(any, forest, _Class => observations(py, &forest.waiting_states())))
    }

    /// Returns row offsets and legal actions of the waiting leaves, of one group if given.
    #[pyo3(signature = (group = None))]
    fn waiting_legal<'py>(&self, py: Python<'py>, group: Option<usize>) -> PyResult<LegalRows<'py>> {
        self.call(|any| {
            let (offsets, actions) = each!(any, forest => forest.waiting_legal(forest.group_or_all(group).or_python()?));
            Ok((offsets.into_pyarray(py), actions.into_pyarray(py)))
        })
    }

    /// Returns the packed observations of the waiting leaves: bit planes uint64 [rows, planes], and the constants of scalar
    /// planes.
    fn waiting_packed<'py>(&self, py: Python<'py>) -> PyResult<Packed<'py>> {
        self.call(|any| each_compiled!(any, forest, _Class => packed_observations(py, &forest.waiting_states())))
    }

    /// Mixes Dirichlet noise into the root priors of tree `index`, or of all trees if None, before the next descent; epsilon 0
    /// removes it.
    fn set_noise(&self, index: Option<usize>, alpha: f64, is_total: bool, epsilon: f64) -> PyResult<()> {
        let wanted = (epsilon > 0.0).then_some(Noise { alpha, is_total, epsilon });
        self.call(|any| {
            each!(any, forest => {
                let mut indices = index.map_or(0..forest.len(), |index| index..index + 1);
                indices.try_for_each(|index| forest.set_noise(index, wanted)).or_python()
            })
        })
    }

    /// Backs up the values of the waiting rows, sets priors, and closes the batch. `policy` has a number per row and action, or
    /// one per legal action (one dimension); None is uniform. With `group`, the rows are those of the group.
    #[pyo3(signature = (policy, values, probabilities = false, group = None))]
    fn apply(
        &self,
        py: Python<'_>,
        policy: Option<PyReadonlyArrayDyn<'_, f32>>,
        values: PyReadonlyArrayDyn<'_, f64>,
        probabilities: bool,
        group: Option<usize>,
    ) -> PyResult<()> {
        self.call(|any| {
            let values = values.as_slice()?;
            let kind = if probabilities { PolicyKind::Probabilities } else { PolicyKind::Logits };
            let policy = match &policy {
                None => Policy::Uniform,
                Some(array) if array.shape().len() == 1 => Policy::Legal(array.as_slice()?, kind),
                Some(array) => Policy::Dense(array.as_slice()?, kind),
            };
            py.detach(|| each!(any, forest => forest.apply(forest.group_or_all(group)?, policy, values))).or_python()
        })
    }

    /// Rolls back the open batch; returns the released slots.
    fn roll_back(&self) -> PyResult<Vec<u32>> {
        self.call(|any| Ok(each!(any, forest => forest.roll_back())))
    }

    /// Returns whether some tree wants more simulations.
    fn wants_more(&self) -> PyResult<bool> {
        self.call(|any| Ok(each!(any, forest => forest.wants_more())))
    }

    /// Returns the simulations done and the limit, summed over all trees.
    fn progress(&self) -> PyResult<(u64, u64)> {
        self.call(|any| Ok(each!(any, forest => forest.progress())))
    }

    /// Returns a snapshot of tree `index`.
    fn view(&self, index: usize) -> PyResult<TreeView> {
        self.call(|any| each!(any, forest => Ok(TreeView(forest.tree(index).or_python()?.snapshot(forest.config())))))
    }

    /// Returns snapshots of all trees.
    fn views(&self) -> PyResult<Vec<TreeView>> {
        self.call(|any| each!(any, forest => Ok(forest.trees().map(|tree| TreeView(tree.snapshot(forest.config()))).collect())))
    }

    /// Sets the limit of each tree to `counts` more simulations.
    fn allow(&self, counts: Vec<u64>) -> PyResult<()> {
        self.call(|any| {
            each!(any, forest => counts.into_iter().enumerate().try_for_each(|(index, count)| forest.allow(index, count))).or_python()
        })
    }

    /// Returns the proven root actions of tree `index` within `depth` plies: (action, plies of a win or -1 for a loss).
    fn minimax(&self, py: Python<'_>, index: usize, depth: u32) -> PyResult<Vec<(u16, i64)>> {
        self.call(|any| {
            each_compiled!(any, forest, Class => {
                let root = forest.tree(index).or_python()?.root();
                let search = |stop: &dyn Fn() -> bool| minimax::<Compiled<<Class as crate::state::StateClass>::Inner>>(root, depth, stop);
                let verdicts = interruptible(py, |_| Ok(false), search)?;
                Ok(verdicts.into_iter().filter_map(|(action, verdict)| match verdict {
                    Verdict::Win(plies) => Some((action, i64::from(plies))),
                    Verdict::Loss => Some((action, -1)),
                    Verdict::Unknown => None,
                }).collect())
            })
        })
    }

    /// Requests a running search to stop; thread-safe.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Clears an earlier `stop`.
    fn resume(&self) {
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Whether `stop` was called.
    #[getter]
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.call(|any| Ok(each!(any, forest => forest.len())))
    }
}
