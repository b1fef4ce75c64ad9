"""The worlds of games: compiled ones, whose states the engine holds, and those written in Python.

States of a Python game stay in a table here, under slots that the engine gives out: `table[slot] = play(table[parent],
action)` happens once per simulation, at the leaf; only numbers cross to the engine.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pondertree._core import Forest as EngineForest
from pondertree._core import TreeView
from pondertree.config import Settings
from pondertree.errors import InternalError
from pondertree.game import GameInfo, Position, game_mistakes, play, read_position
from pondertree.games.lookahead import forced_actions
from pondertree.games.purity import PlayCheck
from pondertree.gpu.offload import Beside
from pondertree.gpu.pipeline import GameTurns, asks_of_leaves
from pondertree.gpu.protocol import NotForLanes, is_pipelined
from pondertree.gpu.tree_shape import GAMES, suits
from pondertree.search.leaf_evaluation import Leaves, OutOfTime
from pondertree.search.root_actions import RootActions
from pondertree.search.world import Key, Keys, Over, World


class CompiledWorld(World):
    """A compiled game."""

    def __init__(self, info: GameInfo, settings: Settings, trees: int) -> None:
        super().__init__(EngineForest(info.name, settings.engine(info, trees)), info, settings)
        self._leaves = Leaves(self.core, info, settings, None)
        self._in_turns = asks_of_leaves(settings)
        self._simulations = 0
        self._beside = Beside(self.core)
        self._lent: Callable[[], object] | None = None
        """Gives lanes back in which trees have grown that are not home yet."""

    @property
    def runs_inside(self) -> bool:
        """Unless something in Python has a say."""
        return self.settings.leaf != "outside"

    def plant(self, states: Sequence[Any], keys: Keys, among: RootActions | None = None) -> None:
        """A tree for each state."""
        self.core.plant(list(states), keys, among)

    def knows(self, before: Any, action: int, among: list[int] | None) -> bool:
        """Whatever is legal: the engine plants a new tree where it knows nothing."""
        return True

    def reset(self, index: int, state: Any, key: Key) -> None:
        """Another state in the place of tree `index`."""
        self.settle()
        self.core.reset(index, state, *key)

    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`."""
        state = self.after(before, action)
        self.settle()
        self.core.advance(index, action)
        return state

    def expect(self, simulations: Sequence[int], at_once: bool) -> None:
        """So many more simulations in each tree; 0 where they may end earlier, or differ."""
        self._simulations = simulations[0] if at_once and len(set(simulations)) == 1 else 0

    def run(self, over: Over | None) -> None:
        """Batch after batch; an evaluator that has lanes computes for some trees while others are searched."""
        evaluator = self.settings.evaluator
        if self._in_turns and is_pipelined(evaluator):
            try:
                if over is None and self._search_beside(evaluator):
                    return
                GameTurns(self.core, evaluator, self.info, self.settings.in_flight, over).run()
                return
            except NotForLanes:
                self.roll_back()
                self._in_turns = False
        super().run(over)

    def _search_beside(self, evaluator: Any) -> bool:
        """Searches new trees where the network computes, if it can."""
        settings = self.settings
        if self.info.name not in GAMES or settings.solve or not self._simulations or not suits(settings):
            return False
        if not hasattr(evaluator, "open_trees") or evaluator.policy != "logits":
            return False
        if not self.core.all_new():
            return False
        turns = GameTurns(self.core, evaluator, self.info, 1, None)
        found = False
        try:
            trees = evaluator.open_trees(turns.buffers, turns.sizes, self._simulations, settings.score)
            if trees is not None:
                turns.ask_about_roots()
                found = self._beside.search(trees, turns.answer_roots)
                for group in range(len(turns.sizes)):
                    turns.answer_roots(group)
        finally:
            turns.wait_for_all()
            # If they were interrupted on their way home, too.
            if self._beside.are_away:
                self._lent = weakref.finalize(self, evaluator.release_buffers, turns.buffers)
            else:
                evaluator.release_buffers(turns.buffers)
        return found

    def settle(self) -> None:
        """Brings trees home that were searched beside the network."""
        self._beside.settle()
        if self._lent is not None:
            self._lent()
            self._lent = None

    def batch(self) -> None:
        """Leaves are stepped inside; the evaluator says what they are worth."""
        self.core.gather()
        self._leaves.playouts.deadline = self.deadline
        answer = self._leaves.answer()
        self.core.apply(answer.policy, answer.values, answer.probabilities)


class PythonWorld(World):
    """A game written in Python, and the table of its states."""

    def __init__(self, info: GameInfo, settings: Settings, trees: int) -> None:
        super().__init__(EngineForest("external", settings.engine(info, trees)), info, settings)
        self._forced_depth = settings.forced_depth
        self._states: dict[int, Any] = {}
        self._forced_left: dict[int, int] = {}
        self._leaves = Leaves(self.core, info, settings, self)
        self._play_check = PlayCheck(
            info, self._leaves.playouts.expired, self._leaves.longest_playout, settings.evaluator is not None
        )

    def __getitem__(self, slot: int) -> Any:
        return self._states[slot]

    def __len__(self) -> int:
        return len(self._states)

    def plant(self, states: Sequence[Any], keys: Keys, among: RootActions | None = None) -> None:
        """A tree for each state."""
        each = keys if isinstance(keys, list) else [(*keys, row) for row in range(len(states))]
        for state, key, own in zip(states, each, among or [None] * len(states), strict=True):
            position = self._read_root(state, own)
            self._put_root(self.core.plant_external(position.to_play, position.legal, *key), state)

    def reset(self, index: int, state: Any, key: Key) -> None:
        """Another state in the place of tree `index`."""
        position = self._read_root(state)
        slot, released = self.core.reset_external(index, position.to_play, position.legal, *key)
        self.release(released)
        self._put_root(slot, state)

    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`."""
        state = self.after(before, action)
        position = self._read_root(state)
        slot, released = self.core.advance_external(index, action, position.to_play, position.legal)
        self.release(released)
        self._put_root(slot, state)
        return state

    def knows(self, before: Any, action: int, among: list[int] | None) -> bool:
        """Whether a legal action is one that the search looks at: it may have forced ones alone."""
        return (not self._forced_depth and among is None) or action in self._read_root(before, among).legal

    def release(self, slots: Sequence[int]) -> None:
        """Forgets states the engine no longer has."""
        for slot in slots:
            self._states.pop(slot, None)
            self._forced_left.pop(slot, None)

    def run(self, over: Over | None) -> None:
        """Batch after batch; what is proven in the end is played again."""
        moves = self._play_check.moves
        try:
            super().run(over)
        except OutOfTime:
            self._leaves.warn_of_cuts()
            raise
        self._leaves.warn_of_cuts()
        if self.settings.solve and self.info.is_plain and self._play_check.moves > moves:
            for view in self.core.views():
                if view.proven is not None:
                    self._repeat_proof(view)

    def batch(self) -> None:
        """Leaves are stepped one by one, because only the game knows whether it is over there; then evaluated."""
        core = self.core
        self._leaves.playouts.deadline = self.deadline
        rows = core.gather()
        while rows > 0:
            self._step()
            rows = core.gather() if core.batch_can_grow() else 0
        answer = self._leaves.answer()
        core.apply(answer.policy, answer.values, answer.probabilities)

    def _read_root(self, state: Any, among: list[int] | None = None) -> Position:
        position = read_position(state, self.info)
        if among is not None:
            position = replace(position, legal=[action for action in position.legal if action in among])
        return self._narrow(state, position, self._forced_depth)

    def _put_root(self, slot: int, state: Any) -> None:
        self._states[slot] = state
        if self._forced_depth:
            self._forced_left[slot] = self._forced_depth

    def _step(self) -> None:
        """Plays the moves of all rows the engine has gathered and tells it what came of them."""
        to_play: list[int] = []
        terminal: list[bool] = []
        returns: list[float] = []
        rewards: list[float] = []
        offsets = [0]
        legal: list[int] = []
        check = self._play_check
        for slot, parent, action in self.core.stepping():
            before = self._states[parent]
            state = play(before, action, self.info.name)
            position = read_position(state, self.info)
            check.moves += 1
            if check.moves == check.next_check:
                check.repeat(before, action, state, position, partial(self._path, parent))
            self._states[slot] = state
            if self._forced_depth:
                left = max(self._forced_left[parent] - 1, 0)
                position = self._narrow(state, position, left)
                self._forced_left[slot] = left
            to_play.append(position.to_play)
            terminal.append(position.terminal)
            returns.extend(position.returns)
            rewards.extend(position.rewards)
            legal.extend(position.legal)
            offsets.append(len(legal))
        self.core.step(to_play, terminal, returns, rewards, offsets, legal)

    def _path(self, slot: int) -> list[int]:
        """The actions from its root to the position in a slot."""
        for view in self.core.views():
            paths: list[tuple[int, list[int]]] = [(0, [])]
            for node, path in paths:
                if view.node(node)[8] == slot:
                    return path
                actions, _, _, _, children, *_ = view.edges(node)
                below = zip(actions.tolist(), children.tolist(), strict=True)
                paths.extend((child, [*path, action]) for action, child in below if child >= 0)
        raise InternalError(f"no tree has the slot {slot}")

    def _repeat_proof(self, view: TreeView) -> None:
        """Plays the line again that a proven result rests on."""
        line: list[tuple[int, Any]] = []
        node = 0
        for action in view.principal_variation(view.choose(0.0, [])[0]):
            actions, _, _, _, children, *_ = view.edges(node)
            node = int(children[actions.tolist().index(action)])
            slot = None if node < 0 else view.node(node)[8]
            if slot not in self._states:
                break
            line.append((action, self._states[slot]))
        root = view.node(0)[8]
        assert root is not None, "every position of a Python game has a slot"
        self._play_check.repeat_line(self._states[root], line)

    def _narrow(self, state: Any, position: Position, forced_left: int) -> Position:
        if forced_left == 0 or position.terminal or not position.legal:
            return position
        with game_mistakes(self.info, "when forced moves were looked for"):
            legal = forced_actions(state, position.legal)
        return Position(position.to_play, False, position.returns, position.rewards, legal)
