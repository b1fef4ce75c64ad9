"""The world of a compiled game, whose states the engine holds."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from pondertree._core import Forest as EngineForest
from pondertree.config import SearchConfig
from pondertree.game import GameInfo
from pondertree.gpu.offload import Beside
from pondertree.gpu.pipeline import GameTurns, asks_of_leaves
from pondertree.gpu.protocol import NotForLanes, is_pipelined
from pondertree.gpu.tree_shape import GAMES, suits
from pondertree.search.leaf_evaluation import LeafEvaluation
from pondertree.search.root_actions import RootActions
from pondertree.search.world import Key, Keys, ShouldStop, World


class CompiledWorld(World):
    """Trees of a compiled game: searched in the engine, or in batches where an evaluator is outside it."""

    def __init__(self, game: GameInfo, config: SearchConfig) -> None:
        super().__init__(game, config)
        self._in_turns = asks_of_leaves(config)
        self._simulations = 0
        self._lent: Callable[[], object] | None = None
        """Closes the buffers of a device search whose nodes are not copied back yet."""

    @property
    def runs_in_engine(self) -> bool:
        """Whether nothing in Python evaluates leaves."""
        return self.config.leaf != "outside"

    def create_engine(self, states: Sequence[Any]) -> None:
        """Creates the engine's forest."""
        self.core = EngineForest(self.info.name, self.config.engine_data(self.info, len(states)))
        self._leaves = LeafEvaluation(self.core, self.info, self.config, None)
        self._beside = Beside(self.core)

    def plant(self, states: Sequence[Any], keys: Keys, root_actions: RootActions | None = None) -> None:
        """Plants a tree for each state."""
        self.core.plant(list(states), keys, root_actions)

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
        """Remembers the simulations of each tree; 0 where a run may end earlier, or where they differ."""
        self._simulations = simulations[0] if is_exact and len(set(simulations)) == 1 else 0

    def run(self, should_stop: ShouldStop | None) -> None:
        """Runs batches; a pipelined evaluator computes for some trees while the engine searches others."""
        evaluator = self.config.evaluator
        if self._in_turns and is_pipelined(evaluator):
            try:
                if should_stop is None and self._search_on_device(evaluator):
                    return
                GameTurns(self.core, evaluator, self.info, self.config.options.in_flight, should_stop).run()
                return
            except NotForLanes:
                self.roll_back()
                self._in_turns = False
        super().run(should_stop)

    def _search_on_device(self, evaluator: Any) -> bool:
        """Searches new trees on the network's device; False if that is not supported."""
        config = self.config
        if self.info.name not in GAMES or config.options.solve or not self._simulations or not suits(config):
            return False
        if not hasattr(evaluator, "open_trees") or evaluator.policy != "logits":
            return False
        if not self.core.all_new():
            return False
        turns = GameTurns(self.core, evaluator, self.info, 1, None)
        found = False
        try:
            trees = evaluator.open_trees(turns.buffers, turns.sizes, self._simulations, config.rule)
            if trees is not None:
                turns.ask_about_roots()
                found = self._beside.search(trees, turns.answer_roots)
                for group in range(len(turns.sizes)):
                    turns.answer_roots(group)
        finally:
            turns.wait_for_all()
            # Also after an interrupt while results were copied back.
            if self._beside.are_away:
                self._lent = weakref.finalize(self, evaluator.release_buffers, turns.buffers)
            else:
                evaluator.release_buffers(turns.buffers)
        return found

    def synchronize(self) -> None:
        """Copies the nodes of trees that were searched on a device into the engine."""
        self._beside.settle()
        if self._lent is not None:
            self._lent()
            self._lent = None

    def batch(self) -> None:
        """Gathers leaves, which the engine has stepped, and has them evaluated."""
        self.core.gather()
        self._leaves.playouts.deadline = self.deadline
        answer = self._leaves.answer()
        self.core.apply(answer.policy, answer.values, answer.probabilities)
