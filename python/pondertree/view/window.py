"""The window of a tree: which of its positions pages show, numbered as they appear."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pondertree.game import GameInfo
from pondertree.node import predicted_successor
from pondertree.result import UNPROVEN, SearchResult
from pondertree.view.frames import Rows
from pondertree.view.messages import MAX_ROWS


class Window:
    """Numbers the positions that are shown, from a root on, and writes their moves with `write(state, action)`."""

    def __init__(self, state: Any, info: GameInfo, write: Callable[[Any, int], str]) -> None:
        self._info, self._write = info, write
        self._max_rows, self._min_visits, self._follow = MAX_ROWS, 1, True
        self._opened: set[int] = set()
        self._closed: set[int] = set()
        #: The numbers of positions by their keys, in ascending order; see `read`.
        self._keys, self._ids = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._next = 1
        #: By number: the move to a position, its parent and action, its state where it was needed, the engine's node.
        self._texts = {0: ""}
        self._moves: dict[int, tuple[int, int]] = {}
        self._states: dict[int, Any] = {0: state}
        self._nodes: dict[int, int] = {0: 0}

    def change(
        self,
        open: Sequence[int] = (),
        close: Sequence[int] = (),
        least: int | None = None,
        nodes: int | None = None,
        follow: bool | None = None,
    ) -> None:
        """Opens and closes positions by hand; sets the fewest visits, the most rows, and whether the line is shown."""
        self._opened = ((self._opened | {*open}) - {*close}) & self._nodes.keys()
        self._closed = ((self._closed | {*close}) - {*open}) & self._nodes.keys()
        self._min_visits = self._min_visits if least is None else least
        self._max_rows = self._max_rows if nodes is None else nodes
        self._follow = self._follow if follow is None else follow

    def read(self, result: SearchResult, seconds: float) -> Rows:
        """Reads the window of a tree; positions whose moves take longer than `seconds` to write are left out."""
        by_hand = self._opened, self._closed
        opened, closed = ([self._nodes[each] for each in ids & self._nodes.keys()] for ids in by_hand)
        columns = result.window(self._max_rows, self._min_visits, opened, closed, follow=self._follow)
        above, nodes, actions = columns["parent"], columns["node"], columns["action"].astype(np.int64)
        # An edge is known by its parent node and its action, whatever the order of the rows.
        keys = np.where(above < 0, -1, nodes[above] << 16 | actions)
        ids = np.zeros(len(keys), dtype=np.int64)
        if len(self._keys):
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            ids = np.where(self._keys[places] == keys, self._ids[places], 0)
        is_shown = np.ones(len(ids), dtype=bool)
        deadline = time.perf_counter() + seconds
        for count, row in enumerate(np.flatnonzero(ids == 0).tolist()):
            # The root has the number 0. One position at least is written, however slow the game.
            if row and (not is_shown[above[row]] or (count > 1 and time.perf_counter() > deadline)):
                is_shown[row] = False
            elif row:
                ids[row] = self._number(int(ids[above[row]]), int(actions[row]))
        np.add.at(columns["hidden"], above[~is_shown], 1)
        order = np.argsort(keys[is_shown])
        self._keys, self._ids = keys[is_shown][order], ids[is_shown][order]
        self._nodes = dict(zip(ids[is_shown].tolist(), nodes[is_shown].tolist(), strict=True))
        self._forget()
        with np.errstate(divide="ignore", invalid="ignore"):
            means = columns["sum"] / columns["visits"]
        unvisited = np.where(columns["visits"] == 0, np.inf, means)
        q = np.where(columns["proven"] == UNPROVEN, unvisited, columns["proven"])
        priors = columns["prior"] if columns["prior"][1:].any() else np.full(len(ids), np.nan)
        values = columns["visits"], q, columns["proven"], columns["hidden"], columns["on_line"]
        return Rows(
            ids[is_shown],
            np.column_stack(values).astype(np.float64)[is_shown],
            ids[above][is_shown],
            actions[is_shown],
            columns["chooser"][is_shown],
            priors[is_shown],
            columns["terminal"][is_shown],
            self._texts,
        )

    def _number(self, parent: int, action: int) -> int:
        number = self._next
        self._next += 1
        self._texts[number] = self._write(self.state(parent), action)
        self._moves[number] = parent, action
        return number

    def _forget(self) -> None:
        """Drops what is stored of positions that are not shown any more; earlier rows keep the texts they have."""
        if len(self._texts) > 2 * len(self._nodes) + 100:
            shown = self._nodes
            self._texts = {number: self._texts[number] for number in shown}
            self._moves = {number: self._moves[number] for number in shown if number}
            self._states = {number: state for number, state in self._states.items() if number in shown}

    def __contains__(self, number: int) -> bool:
        return number in self._nodes

    def node(self, number: int) -> int:
        """Returns the engine's number of the node of a position that is shown; -1 for a leaf without one."""
        return self._nodes[number]

    def state(self, number: int) -> Any:
        """Returns the state of a position that is shown."""
        below = []
        while number not in self._states:
            below.append(number)
            number = self._moves[number][0]
        state = self._states[number]
        for number in reversed(below):
            state = self._states[number] = predicted_successor(state, self._moves[number][1], self._info)
        return state

    def path(self, number: int) -> list[int]:
        """Returns the actions from the root to a position that is shown."""
        actions: list[int] = []
        while number:
            number, action = self._moves[number]
            actions.append(action)
        return actions[::-1]

    def follow_path(self, actions: Sequence[int]) -> list[int]:
        """Returns the positions of a line of actions, from the root on, as far as they are shown."""
        numbers = [0]
        below = {move: number for number, move in self._moves.items() if number in self._nodes}
        for action in actions:
            if (numbers[-1], action) not in below:
                break
            numbers.append(below[numbers[-1], action])
        return numbers
