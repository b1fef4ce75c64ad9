"""The window of a tree: which of its positions pages show, numbered as they appear."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pondertree.game import CHANCE, GameInfo
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
        #: The numbers of the positions shown last, by parent node and action; see `read`.
        self._numbers = {-1: 0}
        self._ids, self._nodes = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        self._next = 1
        self.is_complete = True
        """Whether no position was left out of the last reading because writing its move took too long."""
        #: By number: the move to a position, its parent and action, and its state where it was needed.
        self._texts = {0: ""}
        self._moves: dict[int, tuple[int, int]] = {}
        self._states: dict[int, Any] = {0: state}
        #: The numbers of positions that are outcomes of chance.
        self._outcomes: set[int] = set()

    def change(
        self,
        open: Sequence[int] = (),
        close: Sequence[int] = (),
        least: int | None = None,
        nodes: int | None = None,
        follow: bool | None = None,
    ) -> None:
        """Opens and closes positions by hand; sets the fewest visits, the most rows, and whether the line is shown."""
        shown = set(self._ids.tolist())
        self._opened = ((self._opened | {*open}) - {*close}) & shown
        self._closed = ((self._closed | {*close}) - {*open}) & shown
        self._min_visits = self._min_visits if least is None else least
        self._max_rows = self._max_rows if nodes is None else nodes
        self._follow = self._follow if follow is None else follow

    def read(self, result: SearchResult, seconds: float) -> Rows:
        """Reads the window of a tree; positions whose moves take longer than `seconds` to write are left out."""
        opened, closed = (self._nodes[np.isin(self._ids, list(chosen))] for chosen in (self._opened, self._closed))
        columns = result.window(
            self._max_rows, self._min_visits, opened[opened >= 0], closed[closed >= 0], follow=self._follow
        )
        above, nodes, actions = columns["parent"], columns["node"], columns["action"].astype(np.int64)
        # An edge is known by its parent node and its action, whatever the order of the rows.
        keys = np.where(above < 0, -1, nodes[above] << 16 | actions).tolist()
        numbers = [self._numbers.get(key, -1) for key in keys]
        ids = np.array(numbers, dtype=np.int64)
        is_shown = np.ones(len(ids), dtype=bool)
        deadline = time.perf_counter() + seconds
        for count, row in enumerate(np.flatnonzero(ids < 0).tolist()):
            parent = int(above[row])
            # One position at least is written, however slow the game.
            if not is_shown[parent] or (count and time.perf_counter() > deadline):
                is_shown[row] = False
            else:
                ids[row] = self._numbers[keys[row]] = self._number(int(ids[parent]), int(actions[row]))
        self.is_complete = bool(is_shown.all())
        np.add.at(columns["hidden"], above[~is_shown], 1)
        self._ids, self._nodes = ids[is_shown], nodes[is_shown]
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
            np.where(np.isin(ids, list(self._outcomes)), CHANCE, columns["chooser"].astype(np.int64))[is_shown],
            priors[is_shown],
            columns["terminal"][is_shown],
            self._texts,
        )

    def _number(self, parent: int, action: int) -> int:
        number = self._next
        self._next += 1
        above = self.state(parent)
        self._texts[number] = self._write(above, action)
        if self._info.has_chance and above.to_play == CHANCE:
            self._outcomes.add(number)
        self._moves[number] = parent, action
        return number

    def _forget(self) -> None:
        """Drops what is stored of positions that are not shown any more; earlier rows keep the texts they have."""
        if len(self._texts) > 2 * len(self._ids) + 100:
            shown = set(self._ids.tolist())
            self._numbers = {key: number for key, number in self._numbers.items() if number in shown}
            self._texts = {number: self._texts[number] for number in shown}
            self._moves = {number: self._moves[number] for number in shown if number}
            self._states = {number: state for number, state in self._states.items() if number in shown}
            self._outcomes &= shown

    def __contains__(self, number: int) -> bool:
        return bool((self._ids == number).any())

    def node(self, number: int) -> int:
        """Returns the engine's number of the node of a position that is shown; -1 for a leaf without one."""
        return int(self._nodes[self._ids == number][0])

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
        below = {self._moves[number]: number for number in self._ids.tolist() if number}
        for action in actions:
            if (numbers[-1], action) not in below:
                break
            numbers.append(below[numbers[-1], action])
        return numbers
