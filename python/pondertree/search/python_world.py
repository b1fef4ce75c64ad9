"""The world of a game written in Python.

States are stored in a table by slots that the engine assigns: `table[slot] = play(table[parent], action)`, once per
simulation, at the leaf. The engine receives only numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree._core import TreeView
from pondertree.config import SearchConfig
from pondertree.errors import InternalError, InvalidArgumentError
from pondertree.game import CHANCE, ENGINE_CHANCE, GameInfo, as_contract_error, play
from pondertree.games.chance import check_chance_ends
from pondertree.games.lookahead import forced_actions
from pondertree.games.position import Position, read_position
from pondertree.games.purity import PlayCheck
from pondertree.gpu.protocol import ShouldStop
from pondertree.search.arguments import RootActions
from pondertree.search.leaf_evaluation import LeafEvaluation, OutOfTime
from pondertree.search.world import Key, Keys, World
from pondertree.validation import shown


def player_of_column(number: int) -> int:
    """Returns the player to move at a saved node, or `CHANCE`."""
    return CHANCE if number == ENGINE_CHANCE else number


class PythonWorld(World):
    """Trees of a game written in Python, and the table of its states."""

    def __init__(self, game: GameInfo, config: SearchConfig) -> None:
        super().__init__(game, config)
        self._forced_depth = config.forced_depth
        self._states: dict[int, Any] = {}
        self._forced_plies_left: dict[int, int] = {}
        # The number of chance nodes in a row up to a slot, of those that the batch has added.
        self._chance_in_a_row: dict[int, int] = {}

    def create_engine(self, states: Sequence[Any]) -> Sequence[Any]:
        """Creates the engine's forest; returns the states."""
        config = self.config
        self.core = EngineForest("external", config.engine_data(self.info, len(states)))
        self._leaves = LeafEvaluation(self.core, self.info, config, self._states)
        self._play_check = PlayCheck(
            self.info, self._leaves.playouts.expired, self._leaves.longest_playout, config.evaluator is not None
        )
        return states

    def plant(self, roots: Sequence[Any], keys: Keys, root_actions: RootActions | None = None) -> None:
        """Plants a tree for each state."""
        each = keys if isinstance(keys, list) else [(*keys, row) for row in range(len(roots))]
        for state, key, searched in zip(roots, each, root_actions or [None] * len(roots), strict=True):
            position = self._read_root(state, searched)
            self._put_root(self.core.plant_external(position.to_play, position.legal, *key), state)

    def saved(self) -> tuple[dict[str, NDArray[Any]], Any]:
        """Returns the only tree as columns."""
        columns, hidden = super().saved()
        if self._forced_depth:
            left = [self._forced_plies_left[slot] for slot in columns["node_slot"].tolist()]
            columns["forced_plies"] = np.array(left, dtype=np.uint8)
        return columns, hidden

    def restore(self, state: Any, columns: dict[str, NDArray[Any]], hidden: Any) -> None:
        """Creates the engine's forest with a saved tree, whose positions are replayed from its root and checked."""
        self.create_engine([state])
        self.core.restore(None, columns)
        slots, counts = columns["node_slot"].tolist(), columns["node_edges"]
        plies = columns["forced_plies"].tolist() if self._forced_depth else None
        if plies is not None and (columns["forced_plies"].dtype != np.uint8 or len(plies) != len(slots)):
            raise InvalidArgumentError("forced_plies must have one uint8 for each node")
        ends = np.cumsum(counts, dtype=np.int64)
        linked = np.flatnonzero(columns["edge_child"] >= 0)
        parents = np.searchsorted(ends, linked, side="right")
        actions, children = columns["edge_action"][linked], columns["edge_child"][linked]
        self._put_saved(0, state, columns, ends)
        # Parents come before their children.
        for parent, action, child in zip(parents.tolist(), actions.tolist(), children.tolist(), strict=True):
            if slots[parent] in self._states:
                self._put_saved(child, play(self._states[slots[parent]], action, self.info.name), columns, ends)
        if plies is not None:
            self._forced_plies_left = dict(zip(slots, plies, strict=True))

    def _put_saved(self, node: int, state: Any, columns: dict[str, NDArray[Any]], ends: NDArray[np.int64]) -> None:
        """Stores the replayed state of a node; raises `InvalidArgumentError` if the node is of another position."""
        position = read_position(state, self.info)
        first = int(ends[node - 1]) if node else 0
        edges = columns["edge_action"][first : int(ends[node])].tolist()
        is_complete = position.terminal or (node > 0 and not self._forced_depth)
        fits = len(edges) == len(position.legal) if is_complete else len(edges) > 0
        if (
            not fits
            or not set(edges) <= set(position.legal)
            or position.terminal != bool(columns["node_end"][node])
            or position.to_play != player_of_column(int(columns["node_to_play"][node]))
        ):
            seed = getattr(state, "seed", None)  # of a state whose outcomes of chance are samples
            hint = "" if seed is None else f"; its seed= is {seed}: give it the one of the state that was planted"
            raise InvalidArgumentError(
                f"the tree does not fit the given state: at node {node} the tree has the actions {shown(edges)}, "
                f"the game {shown(position.legal)} and to_play {position.to_play}{hint}"
            )
        self._states[int(columns["node_slot"][node])] = state

    def reset(self, index: int, state: Any, key: Key) -> None:
        """Replaces tree `index` by a new one from `state`."""
        position = self._read_root(state)
        slot, released = self.core.reset_external(
            index, position.to_play, position.legal, list(position.probabilities), key
        )
        self.release(released)
        self._put_root(slot, state)

    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`; returns the state after it."""
        state = self.state_after(before, action)
        position = self._read_root(state)
        slot, released = self.core.advance_external(
            index, action, position.to_play, position.legal, list(position.probabilities)
        )
        self.release(released)
        self._put_root(slot, state)
        return state

    def is_searched(self, before: Any, action: int, root_actions: list[int] | None) -> bool:
        """Whether a legal action of a root is searched; with `forced_depth`, only forced ones are."""
        return (not self._forced_depth and root_actions is None) or action in self._read_root(
            before, root_actions
        ).legal

    def release(self, slots: Sequence[int]) -> None:
        """Drops the states of slots that the engine no longer uses."""
        for slot in slots:
            self._states.pop(slot, None)
            self._forced_plies_left.pop(slot, None)

    def run(self, should_stop: ShouldStop | None) -> None:
        """Runs batches, then replays the principal variation of every proven result."""
        moves = self._play_check.moves
        try:
            super().run(should_stop)
        except OutOfTime:
            self._leaves.warn_of_truncation()
            raise
        self._leaves.warn_of_truncation()
        if self.config.options.solve and self.info.is_two_player_zero_sum and self._play_check.moves > moves:
            for view in self.core.views():
                if view.proven is not None:
                    self._replay_proof(view)

    def batch(self) -> None:
        """Gathers leaves, plays their moves in Python, and evaluates them."""
        core = self.core
        self._leaves.playouts.deadline = self.deadline
        self._chance_in_a_row.clear()
        rows = core.gather()
        while rows > 0:
            self._step()
            rows = core.gather() if core.batch_can_grow() else 0
        answer = self._leaves.answer()
        core.apply(answer.policy, answer.values, answer.probabilities)

    def _read_root(self, state: Any, root_actions: list[int] | None = None) -> Position:
        position = read_position(state, self.info)
        if root_actions is not None:
            position = position._replace(legal=[action for action in position.legal if action in root_actions])
        return self._forced(state, position, self._forced_depth)

    def _put_root(self, slot: int, state: Any) -> None:
        self._states[slot] = state
        if self._forced_depth:
            self._forced_plies_left[slot] = self._forced_depth

    def _step(self) -> None:
        """Plays the moves of all gathered rows and passes the new positions to the engine."""
        to_play: list[int] = []
        terminal: list[bool] = []
        returns: list[float] = []
        rewards: list[float] = []
        offsets = [0]
        legal: list[int] = []
        probabilities: list[float] = []
        check = self._play_check
        for slot, parent, action in self.core.stepping():
            before = self._states[parent]
            state = play(before, action, self.info.name)
            position = read_position(state, self.info)
            check.moves += 1
            if check.moves == check.next_check:
                check.replay_step(before, action, state, position, partial(self._path, parent))
            self._states[slot] = state
            if self._forced_depth:
                left = max(self._forced_plies_left[parent] - 1, 0)
                position = self._forced(state, position, left)
                self._forced_plies_left[slot] = left
            to_play.append(position.to_play)
            terminal.append(position.terminal)
            returns.extend(position.returns)
            rewards.extend(position.rewards)
            legal.extend(position.legal)
            if self.info.has_chance:
                if position.to_play == CHANCE and not position.terminal:
                    in_a_row = self._chance_in_a_row.get(parent, 0) + 1
                    check_chance_ends(state, in_a_row)
                    self._chance_in_a_row[slot] = in_a_row
                # One entry for each legal action; those of decisions do not count.
                probabilities.extend(position.probabilities or [0.0] * len(position.legal))
            offsets.append(len(legal))
        self.core.step(to_play, terminal, returns, rewards, offsets, legal, probabilities)

    def _path(self, slot: int) -> list[int]:
        """Returns the actions from the root to the position in a slot."""
        for view in self.core.views():
            paths: list[tuple[int, list[int]]] = [(0, [])]
            for node, path in paths:
                if view.node(node)[8] == slot:
                    return path
                actions, _, _, _, children, *_ = view.edges(node)
                below = zip(actions.tolist(), children.tolist(), strict=True)
                paths.extend((child, [*path, action]) for action, child in below if child >= 0)
        raise InternalError(f"no tree has the slot {slot}")

    def _replay_proof(self, view: TreeView) -> None:
        """Replays the principal variation of a proven result, to check that `play` is pure."""
        line: list[tuple[int, Any]] = []
        node = 0
        for action in view.principal_variation(view.choose(0.0, [])[0], through_chance=True):
            actions, _, _, _, children, *_ = view.edges(node)
            node = int(children[actions.tolist().index(action)])
            slot = None if node < 0 else view.node(node)[8]
            if slot not in self._states:
                break
            line.append((action, self._states[slot]))
        root = view.node(0)[8]
        assert root is not None, "every position of a Python game has a slot"
        self._play_check.replay_line(self._states[root], line)

    def _forced(self, state: Any, position: Position, forced_left: int) -> Position:
        """Returns the position with its forced actions alone, where `forced_left` plies of them remain."""
        if forced_left == 0 or position.terminal or not position.legal or position.to_play == CHANCE:
            return position
        with as_contract_error(self.info, "in the search for forced moves"):
            legal = forced_actions(state, position.legal)
        return position._replace(legal=legal)
