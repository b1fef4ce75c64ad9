"""The world of a compiled game, whose states are in the engine."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree.config import SearchConfig
from pondertree.evaluators.outputs import check_values
from pondertree.game import GameInfo
from pondertree.gpu.offload import DeviceOffload
from pondertree.gpu.pipeline import InferencePipeline
from pondertree.gpu.protocol import (
    SUPPORTED,
    GameContext,
    InferenceBackend,
    InferenceBuffer,
    Job,
    Mode,
    RowLayout,
    ShouldStop,
    Support,
    query,
)
from pondertree.gpu.tree_shape import DEVICE_GAMES, TreeShape
from pondertree.search.arguments import RootActions
from pondertree.search.leaf_evaluation import LeafEvaluation
from pondertree.search.world import Key, Keys, World


class CompiledWorld(World):
    """Trees of a compiled game, searched in the engine, or in batches by an external evaluator."""

    def __init__(self, game: GameInfo, config: SearchConfig) -> None:
        super().__init__(game, config)
        evaluates_leaves = config.max_depth in (None, 0) and config.python_policy is None
        self._pipeline_disabled = not (config.rule.has_priors and evaluates_leaves)
        """Set for playouts and after an output of the network that did not fit into the buffers."""
        self._simulations = 0
        self._release: Callable[[], object] | None = None
        """Releases the context of a device search whose nodes are still on the device."""

    @property
    def runs_in_engine(self) -> bool:
        """Whether the engine evaluates all leaves."""
        return self.config.leaf != "external"

    def create_engine(self, states: Sequence[Any]) -> Sequence[Any]:
        """Creates the engine's forest; returns the states."""
        self.core = EngineForest(self.info.name, self.config.engine_data(self.info, len(states)))
        self._leaves = LeafEvaluation(self.core, self.info, self.config, None)
        self._offload = DeviceOffload(self.core)
        return states

    def plant(self, roots: Sequence[Any], keys: Keys, root_actions: RootActions | None = None) -> None:
        """Plants a tree for each state."""
        self.core.plant(list(roots), keys, root_actions)

    def restore(self, state: Any, columns: dict[str, NDArray[Any]], hidden: Any) -> None:
        """Creates the engine's forest with a saved tree; the engine checks every position by the rules."""
        self.create_engine([state])
        self.core.restore(state, columns)

    def is_searched(self, before: Any, action: int, root_actions: list[int] | None) -> bool:
        """Returns True: the engine plants a new tree where it has no subtree."""
        return True

    def reset(self, index: int, state: Any, key: Key) -> None:
        """Replaces tree `index` by a new one from `state`."""
        self.synchronize()
        self.core.reset(index, state, *key)

    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`; returns the state after it."""
        state = self.state_after(before, action)
        self.synchronize()
        self.core.advance(index, action)
        return state

    def prepare_run(self, simulations: Sequence[int], is_exact: bool) -> None:
        """Stores the simulations per tree; 0 if the run may end earlier, or if trees differ."""
        self._simulations = simulations[0] if is_exact and len(set(simulations)) == 1 else 0

    def run(self, should_stop: ShouldStop | None) -> None:
        """Runs batches; a pipelined evaluator computes for one group of trees while the engine searches others.

        After an output of the network that does not fit into the buffers, batches are no longer pipelined.
        """
        backend: Any = self.config.evaluator
        if not self._pipeline_disabled and query(backend, Job(len(self.core)), Mode.PIPELINED).ok:
            if self._run_pipelined(backend, should_stop).ok:
                return
            self.roll_back()
            self._pipeline_disabled = True
        super().run(should_stop)

    def _run_pipelined(self, backend: InferenceBackend, should_stop: ShouldStop | None) -> Support:
        exchange = GameExchange(self.core, backend, self.info, self.config.options.in_flight)
        context: GameContext = backend.acquire(Job(len(self.core), exchange.layout))
        try:
            buffers = context.buffers(exchange.capacities)
            if should_stop is None and self._search_on_device(backend, context, exchange, buffers):
                return SUPPORTED
            return InferencePipeline(exchange, buffers, should_stop).run()
        finally:
            # Also pending after an interrupted import of results.
            if self._offload.is_pending:
                self._release = weakref.finalize(self, backend.release, context)
            else:
                backend.release(context)

    def _search_on_device(
        self,
        backend: InferenceBackend,
        context: GameContext,
        exchange: GameExchange,
        buffers: Sequence[InferenceBuffer],
    ) -> bool:
        """Searches new trees on the network's device; returns False if it does not support the search."""
        config, core = self.config, self.core
        if self.info.name not in DEVICE_GAMES or config.options.solve or not self._simulations:
            return False
        shapes = [
            TreeShape(
                size, self._simulations, self.info.num_actions, config.rule, discount=config.discount, is_game=True
            )
            for size in exchange.sizes
        ]
        job = Job(len(core), exchange.layout, shapes=shapes)
        groups = self._offload.acquire_trees(config, backend, context, job)
        if groups is None:
            return False
        pipeline = InferencePipeline(exchange, buffers)
        try:
            is_submitted = pipeline.submit(exchange.unevaluated_roots()).ok
            is_done = is_submitted and self._offload.run(groups, shapes, roots_ready=pipeline.complete)
            for group in range(len(shapes)):
                pipeline.complete(group)
        finally:
            pipeline.drain()
        if not is_submitted:
            self.roll_back()
        return is_done

    def synchronize(self) -> None:
        """Copies the nodes of device-resident trees into the engine."""
        self._offload.synchronize()
        if self._release is not None:
            self._release()
            self._release = None

    def batch(self) -> None:
        """Gathers leaves, which the engine has stepped, and evaluates them."""
        self.core.gather()
        self._leaves.playouts.deadline = self.deadline
        answer = self._leaves.answer()
        self.core.apply(answer.policy, answer.values, answer.probabilities)


class GameExchange:
    """The pipeline's exchange for a compiled game: packed positions for policies of legal actions, and values."""

    def __init__(self, core: EngineForest, backend: Any, info: GameInfo, in_flight: int) -> None:
        self._core = core
        self._info = info
        self._probabilities = backend.policy == "probabilities"
        rows = backend.rows_per_batch(len(core) * in_flight)
        self.sizes = core.form_groups(max(rows // in_flight, 1))
        """The number of trees of each group."""
        self.capacities = [size * in_flight for size in self.sizes]
        self.layout = RowLayout(*core.row_layout(), *info.observation_shape[1:], info.num_actions)

    @property
    def stopped(self) -> bool:
        """Whether `Forest.stop` was called."""
        return self._core.stopped

    def unevaluated_roots(self) -> list[int]:
        """Returns the groups with unevaluated roots."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return [
            group for group, (first, last) in enumerate(pairwise(ends)) if not self._core.roots_evaluated(first, last)
        ]

    def exchange(
        self, group: int, responses: InferenceBuffer | None, requests: InferenceBuffer | None
    ) -> tuple[int, bool] | None:
        """Applies responses and gathers requests; None if the responses need validation."""
        answered = None if responses is None else responses.responses
        return self._core.exchange(
            group, answered, None if requests is None else requests.requests, self._probabilities
        )

    def revalidate(self, group: int, buffer: InferenceBuffer) -> Support:
        """Applies responses with full validation and detailed errors."""
        offsets, _ = self._core.waiting_legal(group)
        counts = np.diff(offsets)
        rows, legal = len(counts), self.layout.legal
        responses = buffer.responses[:rows]
        policy = responses[:, :legal][np.arange(legal) < counts[:, None]]
        values = check_values(responses[:, legal], rows, self._info.num_players, self._info)
        self._core.apply(policy, values, self._probabilities, group)
        return SUPPORTED
