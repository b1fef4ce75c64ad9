"""The world of a game written in Python.

States are stored in a table by slots that the engine assigns: `table[slot] = play(table[parent], action)`, once per
simulation, at the leaf. The engine receives only numbers.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree._core import TreeView
from pondertree.config import SearchConfig
from pondertree.errors import GameContractError, InternalError, InvalidArgumentError
from pondertree.game import (
    CHANCE,
    ENGINE_CHANCE,
    GameInfo,
    action_list,
    as_contract_error,
    check_played,
    check_returns,
    is_over,
    play,
    play_error,
)
from pondertree.games.chance import check_chance_ends
from pondertree.games.lookahead import forced_actions
from pondertree.games.playout import has_random_playout
from pondertree.games.position import Position, read_error, read_position
from pondertree.games.purity import PlayCheck
from pondertree.gpu.protocol import ShouldStop
from pondertree.search.arguments import RootActions
from pondertree.search.leaf_evaluation import LeafEvaluation, OutOfTime
from pondertree.search.world import Key, Keys, World
from pondertree.validation import shown

#: Slot, parent slot and action of a new leaf.
Row = tuple[int, int, int]


def player_of_column(number: int) -> int:
    """Returns the player to move at a saved node, or `CHANCE`."""
    return CHANCE if number == ENGINE_CHANCE else number


class PythonWorld(World):
    """Trees of a game written in Python, and the table of its states."""

    def __init__(self, game: GameInfo, config: SearchConfig) -> None:
        super().__init__(game, config)
        self._forced_depth = config.forced_depth
        self._states: MutableMapping[int, Any] = {}
        #: Whether `_play_plain_rows` plays the rows.
        self._is_plain = not config.forced_depth and not game.has_chance
        #: Whether the engine goes on with the next batch by itself if leaves are valued by playouts.
        self._is_continuous = False
        self._forced_plies_left: dict[int, int] = {}
        # The number of chance nodes in a row up to a slot, of those that the batch has added.
        self._chance_in_a_row: dict[int, int] = {}

    def create_engine(self, states: Sequence[Any]) -> Sequence[Any]:
        """Creates the engine's forest; returns the states."""
        config = self.config
        self.core = EngineForest("external", config.engine_data(self.info, len(states)))
        self._leaves = LeafEvaluation(self.core, self.info, config, self._states)
        playouts = self._leaves.playouts
        #: The random playout of a leaf; None if leaves are evaluated together, at the end of a batch.
        self._play_out: Callable[[Any, list[int]], Sequence[float]] | None = None
        is_own = hasattr(states[0], "simulateRandomPlayout") or has_random_playout(states[0], config.discount)
        if self._leaves.are_random_playouts and not is_own:
            is_plain = playouts.are_plain and not hasattr(states[0], "in_place")
            self._play_out = playouts.play_plain if is_plain else playouts.play
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
        self._is_continuous = should_stop is None and not self.info.has_chance
        try:
            super().run(should_stop)
        except OutOfTime:
            self._leaves.playouts.warn_of_truncation()
            raise
        self._leaves.playouts.warn_of_truncation()
        if self.config.options.solve and self.info.is_two_player_zero_sum and self._play_check.moves > moves:
            for view in self.core.views():
                if view.proven is not None:
                    self._replay_proof(view)

    def batch(self) -> None:
        """Gathers leaves, plays their moves in Python, and evaluates them."""
        core, playouts = self.core, self._leaves.playouts
        playouts.deadline = self.deadline
        self._chance_in_a_row.clear()
        row = core.next_row(self._is_continuous)
        if self._is_plain:
            self._play_plain_rows(row)
        else:
            while row is not None:
                row = self._play_row(*row)
        if core.num_waiting() > 0:
            answer = self._leaves.answer()
            core.apply(answer.policy, answer.values, answer.probabilities)

    def _play_plain_rows(self, row: Row | None) -> None:
        """Does as `_play_row` for all rows, with fewer calls; the engine checks what the game returns.

        Moves to replay, and whatever the engine refuses, take the way through `_play_row` and its exact errors.
        """
        states, check, play_out, step = self._states, self._play_check, self._play_out, self.core.step
        has_rewards = self.info.has_rewards
        while row is not None:
            slot, parent, action = row
            if check.moves + 1 == check.next_check:
                row = self._play_row(slot, parent, action)
                continue
            before = states[parent]
            try:
                state = before.play(action)
            except GameContractError:
                raise
            except Exception as error:
                raise play_error(action, self.info.name, error) from error
            check.moves += 1
            try:
                to_play, legal, values, rewards = state.to_play, None, None, None
                if has_rewards:
                    rewards = state.rewards()
                is_terminal = state.is_terminal
                if is_terminal is not True and is_terminal is not False:
                    is_terminal = is_over(state)
                if is_terminal:
                    values = (0.0,) * self.info.num_players if has_rewards else state.returns()
                else:
                    legal = state.legal_actions()
                    if type(legal) is not list:
                        legal = action_list(legal, self.info)
            except Exception as error:
                self._refuse(state, action, error)
            states[slot] = state
            if legal is not None and play_out is not None:
                try:
                    values = play_out(state, legal)
                except GameContractError:
                    read_position(state, self.info)  # an error of the leaf itself comes first
                    raise
            try:
                row = step(to_play, legal, values, rewards)
            except (GameContractError, TypeError, ValueError, OverflowError):
                position = read_position(state, self.info)
                row = self._step(position, self._values(state, position, values))

    def _read_root(self, state: Any, root_actions: list[int] | None = None) -> Position:
        position = read_position(state, self.info)
        if root_actions is not None:
            position = position._replace(legal=[action for action in position.legal if action in root_actions])
        return self._forced(state, position, self._forced_depth)

    def _put_root(self, slot: int, state: Any) -> None:
        self._states[slot] = state
        if self._forced_depth:
            self._forced_plies_left[slot] = self._forced_depth

    def _play_row(self, slot: int, parent: int, action: int) -> Row | None:
        """Plays the move of a row, passes the new position to the engine, and returns the next row."""
        before, info, check = self._states[parent], self.info, self._play_check
        state = play(before, action, info.name)
        position = read_position(state, info)
        check.moves += 1
        if check.moves == check.next_check:
            check.replay_step(before, action, state, position, partial(self._path, parent))
        self._states[slot] = state
        values = self._values(state, position)
        if self._forced_depth:
            left = max(self._forced_plies_left[parent] - 1, 0)
            position = self._forced(state, position, left)
            self._forced_plies_left[slot] = left
        if position.to_play == CHANCE and not position.terminal:
            in_a_row = self._chance_in_a_row.get(parent, 0) + 1
            check_chance_ends(state, in_a_row)
            self._chance_in_a_row[slot] = in_a_row
        return self._step(position, values)

    def _refuse(self, state: Any, action: int, error: Exception) -> NoReturn:
        """Raises the error for the result of `play(action)`, whose properties raised `error`."""
        check_played(state, action, self.info.name)
        read_position(state, self.info)  # its error is exact
        raise error if isinstance(error, GameContractError) else read_error(self.info, error) from error

    def _values(self, state: Any, position: Position, played: Sequence[float] | None = None) -> Sequence[float] | None:
        """Returns the values of a new position, if known; `played` is the result of its playout, if it had one."""
        if position.terminal:
            return position.returns
        if self._play_out is None or position.to_play == CHANCE:
            return None
        values = self._play_out(state, position.legal) if played is None else played
        return check_returns(values, self.info) if self._leaves.playouts.are_plain else values

    def _step(self, position: Position, values: Sequence[float] | None) -> Row | None:
        """Passes a new position to the engine, and returns the next row."""
        legal = None if position.terminal else position.legal
        return self.core.step(position.to_play, legal, values, position.rewards, position.probabilities)

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
            if slot is None or slot not in self._states:
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
