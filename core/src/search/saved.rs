//! A search as plain columns, from which it continues bit for bit: beside the snapshot's, what a search keeps outside its tree.

use std::sync::Arc;

use crate::error::Error;
use crate::games::World;
use crate::search::config::WorldConfig;
use crate::search::move_ordering::HistoryTable;
use crate::search::noise::Noise;
use crate::search::path::{TraceRow, TraceStep};
use crate::search::sequential_halving::Schedule;
use crate::search::snapshot::{Snapshot, SnapshotColumns};
use crate::search::terms::{TermColumns, TermWriter};
use crate::search::tree_search::TreeSearch;

/// Upper bound of the simulations of a restored search, far from overflows.
const MAX_SIMULATIONS: u64 = 1 << 62;

/// Calls `$then!` with the columns of a search beside those of its snapshot: documentation, name and type.
#[macro_export]
macro_rules! search_columns {
    ($then:ident) => {
        $then! {
            /// The number of simulations at which the search stops, the one when this limit was set, whether the root was analyzed,
            /// the ply of the root in `killers`, the number of slots, the simulations that were planned, and the
            /// first one of the schedule.
            counters: u64,
            /// The blocks and words in use (`Tree::extent`), on which `max_memory` depends.
            extent: u64,
            /// Noise to mix into the root before the next descent: alpha, whether it is that of all moves together, epsilon. Or empty.
            pending_noise: f64,
            /// Given Gumbel numbers by action, or empty.
            gumbel_numbers: f64,
            /// The schedule of the current limit: actions, or empty.
            schedule_action: u16,
            /// Visits at its first simulation.
            schedule_visits: u32,
            /// Gumbel number plus logit.
            schedule_score: f64,
            /// Its visit count of each simulation, which the chosen move has, as far as it is planned.
            schedule_considered: u32,
            /// The schedule before it: actions, or empty.
            previous_action: u16,
            /// Visits at its first simulation.
            previous_visits: u32,
            /// Gumbel number plus logit.
            previous_score: f64,
            /// Two killer moves for each ply, -1 without one.
            killers: i32,
            /// History score of each action of the first player, or empty.
            history_first: f64,
            /// History score of each action of the second player, or empty.
            history_second: f64,
            /// Slots without a node, in the order of their release.
            free_slots: u32,
            /// Recorded simulations: number, steps, values.
            trace_rows: u64,
            /// Their backed up values.
            trace_values: f64,
            /// Their steps: action, and number of scores or -1.
            trace_steps: i32,
            /// The actions with scores.
            trace_action: u16,
            /// Their scores.
            trace_score: f64,
            /// The terms of each step: numbers of shared terms, of names, of edges.
            term_counts: u32,
            /// The different names as text, each with a line feed after it.
            term_text: u8,
            /// The names of terms, as their numbers in this text.
            term_names: u16,
            /// The kind of each value: 0 missing, 1 a whole number, 2 a number, 3 a flag, 4 a name.
            term_kinds: u8,
            /// Their bits.
            term_values: u64,
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// The columns of a search beside those of its snapshot.
        #[derive(Clone, Debug, Default)]
        pub struct SearchColumns {
            $($(#[$doc])* pub $name: Vec<$type>,)*
        }
    };
}

search_columns!(declare);

fn refuse<T>(text: impl std::fmt::Display) -> Result<T, Error> {
    Err(Error::InvalidArgument(format!("these are not the columns of a search: {text}")))
}

impl<W: World> TreeSearch<W> {
    /// Returns the search as columns, without slots; there is no open batch.
    #[must_use]
    pub fn to_columns(&self, config: &WorldConfig<W>) -> (SnapshotColumns, SearchColumns) {
        let state = &self.search_state;
        let schedule = |schedule: &Option<Arc<Schedule>>| schedule.as_ref().map(|schedule| schedule.to_columns()).unwrap_or_default();
        let (schedule_action, schedule_visits, schedule_score) = schedule(&state.schedule);
        let (previous_action, previous_visits, previous_score) = schedule(&state.previous_schedule);
        let (root_ply, killers, [history_first, history_second]) = state.history_table.to_columns();
        let (first, schedule_considered) = state.schedule.as_ref().map(|schedule| schedule.plan()).unwrap_or_default();
        let mut columns = SearchColumns {
            counters: vec![
                state.simulation_limit,
                state.limit_start,
                u64::from(state.root_analyzed),
                root_ply,
                0,
                state.planned_limit,
                first,
            ],
            extent: self.tree().extent().to_vec(),
            pending_noise: Noise::to_column(state.noise),
            gumbel_numbers: state.gumbel.clone().unwrap_or_default(),
            schedule_action,
            schedule_visits,
            schedule_score,
            schedule_considered,
            previous_action,
            previous_visits,
            previous_score,
            killers,
            history_first,
            history_second,
            ..SearchColumns::default()
        };
        columns.write_trace(&state.trace);
        (self.snapshot(config).to_columns(), columns)
    }

    /// Builds the search of these columns with its `root` position (compiled worlds), in a search of the same configuration.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the first invalid column.
    pub fn from_columns(
        snapshot: SnapshotColumns,
        columns: &SearchColumns,
        root: W::State,
        config: &WorldConfig<W>,
    ) -> Result<Self, Error> {
        let snapshot = Snapshot::from_columns(snapshot)?;
        if snapshot.tree.shape() != config.shape() {
            return refuse("shape is that of another search or game");
        }
        let &[simulation_limit, limit_start, root_analyzed, root_ply, _, planned_limit, first] = &columns.counters[..] else {
            return refuse("counters must have 7 entries");
        };
        if first > snapshot.simulations {
            return refuse(format!("the schedule begins at simulation {first} of {}", snapshot.simulations));
        }
        if planned_limit < simulation_limit {
            return refuse(format!("{planned_limit} simulations are planned and {simulation_limit} allowed"));
        }
        if limit_start > snapshot.simulations || snapshot.simulations > MAX_SIMULATIONS {
            return refuse(format!("search has {} simulations, {limit_start} at its last limit", snapshot.simulations));
        }
        if snapshot.bounds.0.is_nan() || snapshot.bounds.1.is_nan() {
            return refuse("bounds is not a number");
        }
        let noise = Noise::from_column(&columns.pending_noise).or_else(|error| refuse(format!("pending_noise: {error}")))?;
        let numbers = &columns.gumbel_numbers;
        if !(numbers.is_empty() || numbers.len() == config.num_actions) || numbers.iter().any(|number| !number.is_finite()) {
            return refuse("gumbel_numbers must be a finite number for each action");
        }
        let schedule = |actions: &[u16], bases: &[u32], draws: &[f64], plan: (u64, &[u32])| {
            let schedule = Schedule::from_columns(actions, bases, draws)?.with_plan(plan.0, plan.1);
            Ok::<_, Error>((!actions.is_empty()).then(|| Arc::new(schedule)))
        };
        let Snapshot { tree, key, simulations, root_state, bounds, forced_depth, .. } = snapshot;
        let mut tree = Arc::unwrap_or_clone(tree);
        match columns.extent[..].try_into() {
            Ok(extent) => tree.grow_to(extent),
            Err(_) => return refuse("extent has another length"),
        }
        let mut search = Self::new(tree, root, key, forced_depth);
        let state = &mut search.search_state;
        state.schedule =
            schedule(&columns.schedule_action, &columns.schedule_visits, &columns.schedule_score, (first, &columns.schedule_considered))?;
        state.previous_schedule = schedule(&columns.previous_action, &columns.previous_visits, &columns.previous_score, (0, &[]))?;
        let history = [&columns.history_first[..], &columns.history_second[..]];
        state.history_table = HistoryTable::from_columns(root_ply, &columns.killers, history, config.num_actions).or_else(refuse)?;
        state.trace = columns.read_trace().or_else(refuse)?;
        state.gumbel = (!numbers.is_empty()).then(|| numbers.clone());
        (state.simulations, state.simulation_limit, state.limit_start) = (simulations, simulation_limit, limit_start);
        state.planned_limit = planned_limit;
        (state.noise, state.root_analyzed, state.bounds, state.root_state) = (noise, root_analyzed != 0, bounds, root_state);
        Ok(search)
    }
}

impl SearchColumns {
    fn write_trace(&mut self, trace: &[TraceRow]) {
        let mut writer = TermWriter::default();
        for row in trace {
            self.trace_rows.extend([row.simulation, row.steps.len() as u64, row.values.len() as u64]);
            self.trace_values.extend(&row.values);
            for step in &row.steps {
                let scores = step.scores.as_deref();
                self.trace_steps.extend([i32::from(step.action), scores.map_or(-1, |scores| scores.len() as i32)]);
                self.trace_action.extend(scores.unwrap_or_default().iter().map(|&(action, _)| action));
                self.trace_score.extend(scores.unwrap_or_default().iter().map(|&(_, score)| score));
                writer.push(&step.terms);
            }
        }
        let TermColumns { counts, text, names, kinds, values } = writer.columns;
        (self.term_counts, self.term_text, self.term_names, self.term_kinds, self.term_values) = (counts, text, names, kinds, values);
    }

    fn read_trace(&self) -> Result<Vec<TraceRow>, &'static str> {
        if !self.trace_rows.len().is_multiple_of(3)
            || !self.trace_steps.len().is_multiple_of(2)
            || self.trace_action.len() != self.trace_score.len()
        {
            return Err("the columns of the trace have other lengths");
        }
        let terms = TermColumns {
            counts: self.term_counts.clone(),
            text: self.term_text.clone(),
            names: self.term_names.clone(),
            kinds: self.term_kinds.clone(),
            values: self.term_values.clone(),
        };
        let mut terms = terms.read().ok_or("the columns of terms do not fit each other")?.into_iter();
        let mut steps = self.trace_steps.chunks_exact(2);
        let mut scores = self.trace_action.iter().copied().zip(self.trace_score.iter().copied());
        let mut values = self.trace_values.iter().copied();
        let mut step = || {
            let &[action, count] = steps.next()? else { return None };
            let count = usize::try_from(count).ok();
            let own: Option<Vec<(u16, f64)>> = count.map(|count| scores.by_ref().take(count).collect());
            let is_whole = own.as_ref().map(Vec::len) == count;
            let terms = terms.next()?;
            is_whole.then_some(TraceStep { action: u16::try_from(action).ok()?, scores: own, terms })
        };
        let mut row = |numbers: &[u64]| {
            let steps = (0..numbers[1]).map(|_| step()).collect::<Option<Vec<TraceStep>>>()?;
            let own: Vec<f64> = values.by_ref().take(usize::try_from(numbers[2]).ok()?).collect();
            (own.len() as u64 == numbers[2]).then_some(TraceRow { simulation: numbers[0], steps, values: own })
        };
        let rows: Option<Vec<TraceRow>> = self.trace_rows.chunks_exact(3).map(&mut row).collect();
        match rows {
            Some(rows) if steps.len() == 0 && scores.len() == 0 && values.len() == 0 && terms.len() == 0 => Ok(rows),
            _ => Err("the columns of the trace do not fit each other"),
        }
    }
}
