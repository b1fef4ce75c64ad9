"""The part of the tree that pages show: numbered positions, and the changes between what a page has and what it shall have.

A `Window` reads the tree between two slices of the search. Its `Snapshot` holds no part of the tree: other threads encode
it for the clients while the search continues.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree.game import GameInfo
from pondertree.node import predicted_successor
from pondertree.result import UNPROVEN, SearchResult
from pondertree.view.messages import MAX_MESSAGE, MAX_ROWS, encode

#: Bytes of a frame that are kept for its status and moves.
MAX_HEAD = 20_000
#: Decimals of values.
DECIMALS = 6

Column = NDArray[Any]


class Rows(NamedTuple):
    """The positions of a window as columns, parents before children; the root is the first row and has the id 0."""

    ids: NDArray[np.int64]
    parents: NDArray[np.int64]
    """Their ids; arbitrary for the root."""
    columns: dict[str, Column]
    """The columns of `SearchResult.window`, and `q`: the mean value, exact where proven, NaN if unvisited."""
    texts: dict[int, str]
    """The moves to the positions by id."""


NO_ROWS = Rows(
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    dict.fromkeys(("visits", "q", "proven", "hidden", "on_line"), np.zeros(0)),
    {},
)


@dataclass(frozen=True)
class Snapshot:
    """What a frame shows: the status of the search, its moves, and a window of its tree."""

    position: int
    number: int
    """Counts the snapshots of a session."""
    head: dict[str, Any]
    """Status, moves and shares."""
    rows: Rows

    @cached_property
    def head_text(self) -> str:
        """`head` as the start of a JSON object."""
        head = dict(self.head)
        text = encode(head)
        while len(text) > MAX_HEAD:
            longest = max(("moves", "shares"), key=lambda name: len(head[name]))
            head[longest] = head[longest][: len(head[longest]) * 3 // 4]
            text = encode(head)
        return text[:-1]


@dataclass(frozen=True)
class Sent:
    """The window that a client has: ids in ascending order, and the values last sent for each of them."""

    position: int = -1
    sequence: int = 0
    number: int = -1
    """The snapshot that it was brought up to."""
    is_complete: bool = False
    """Whether that snapshot was sent as a whole."""
    ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    values: tuple[Column, ...] = field(default_factory=lambda: tuple(np.zeros(0) for _ in CHANGING))

    def is_up_to_date(self, snapshot: Snapshot) -> bool:
        """Whether the client has all of a snapshot."""
        return self.is_complete and self.number == snapshot.number


#: The columns that change, in the order of the message; `change` has them after the id.
CHANGING = ("visits", "q", "proven", "hidden", "on_line")
NOTHING_SENT = Sent()


def frame(sent: Sent, snapshot: Snapshot) -> tuple[str, Sent]:
    """Returns a message of at most `MAX_MESSAGE` bytes that brings a client towards a snapshot, and what it has then.

    Positions that do not fit follow in the next frame: new ones in the order of visits, changed ones in that of their
    relative change, so that none waits for ever.
    """
    is_reset = sent.position != snapshot.position
    if is_reset:
        sent = Sent(snapshot.position, sent.sequence)
    ids, columns = snapshot.rows.ids, snapshot.rows.columns
    now = [columns[name] for name in CHANGING]
    places = np.searchsorted(sent.ids, ids)
    places[places == len(sent.ids)] = 0
    known = sent.ids[places] == ids if len(sent.ids) else np.zeros(len(ids), dtype=bool)
    removed = sent.ids[~np.isin(sent.ids, ids)]
    added = np.flatnonzero(~known)
    rows = np.flatnonzero(known)
    before = [column[places[rows]] for column in sent.values]
    differs = np.zeros(len(rows), dtype=bool)
    for old, column in zip(before, now, strict=True):
        new = column[rows]
        differs |= (old != new) & ~((old != old) & (new != new))
    grown = now[0][rows] / np.maximum(before[0], 1.0) if len(rows) else np.zeros(0)
    # The root comes first, then what is proven or enters the principal variation.
    urgent = np.zeros(len(rows), dtype=bool)
    if len(rows):
        urgent = (rows == 0) | (before[2] != now[2][rows]) | (before[4] != now[4][rows])
    order = np.lexsort((-grown, ~urgent))
    changed = rows[order[differs[order]]]
    start = f'{{"type":"frame","position":{snapshot.position},"sequence":{sent.sequence + 1},{snapshot.head_text[1:]}'
    start += f',"tree":{{"reset":{"true" if is_reset else "false"},"remove":{json.dumps(removed.tolist())}'
    left = MAX_MESSAGE - len(start) - len(',"add":[],"change":[]}}')
    additions, left_after = _take(added, snapshot.rows, _addition, left if not len(changed) else left * 6 // 10)
    left -= left if not len(changed) else left * 6 // 10
    changes, _ = _take(changed, snapshot.rows, _change, left + left_after)
    text = f'{start},"add":[{",".join(additions)}],"change":[{",".join(changes)}]}}}}'
    is_complete = len(additions) == len(added) and len(changes) == len(changed)
    # What the client has now: the rows it knew, with the values sent before unless they were sent again.
    kept = np.concatenate([rows, added[: len(additions)]])
    values = []
    for old, column in zip(before, now, strict=True):
        current = column.copy()
        current[rows] = old
        current[changed[: len(changes)]] = column[changed[: len(changes)]]
        values.append(current[kept])
    ascending = np.argsort(ids[kept])
    return text, Sent(
        snapshot.position,
        sent.sequence + 1,
        snapshot.number,
        is_complete,
        ids[kept][ascending],
        tuple(column[ascending] for column in values),
    )


def _take(rows: NDArray[np.int64], shown: Rows, write: Callable[[Rows, int], str], most: int) -> tuple[list[str], int]:
    """Returns the texts of the first rows that fit into `most` bytes with commas, and the bytes left."""
    texts: list[str] = []
    for row in rows.tolist():
        text = write(shown, row)
        most -= len(text) + 1
        if most < 0:
            return texts, most + len(text) + 1
        texts.append(text)
    return texts, most


def _number(value: float) -> str:
    return "null" if value != value else repr(round(float(value), DECIMALS))


def _changing(shown: Rows, row: int) -> list[str]:
    visits, q, proven, hidden, on_line = (shown.columns[name][row] for name in CHANGING)
    result = "null" if proven == UNPROVEN else str(proven)
    return [str(visits), _number(q), result, str(hidden), "true" if on_line else "false"]


def _change(shown: Rows, row: int) -> str:
    return f"[{shown.ids[row]},{','.join(_changing(shown, row))}]"


def _addition(shown: Rows, row: int) -> str:
    visits, q, proven, hidden, on_line = _changing(shown, row)
    columns, number = shown.columns, int(shown.ids[row])
    parent, action = ("null", "null") if row == 0 else (shown.parents[row], columns["action"][row])
    return (
        f'{{"id":{number},"parent":{parent},"action":{action},"text":{json.dumps(shown.texts[number])},'
        f'"player":{columns["chooser"][row]},"visits":{visits},"q":{q},"prior":{_number(columns["prior"][row])},'
        f'"proven":{proven},"terminal":{"true" if columns["terminal"][row] else "false"},"hidden":{hidden},'
        f'"pv":{on_line}}}'
    )


class Window:
    """Numbers the positions that are shown, from a root on, and writes their moves with `write(state, action)`."""

    def __init__(self, state: Any, info: GameInfo, write: Callable[[Any, int], str]) -> None:
        self.max_rows, self.min_visits, self.follow = MAX_ROWS, 1, True
        self.opened: set[int] = set()
        self.closed: set[int] = set()
        self._info, self._write = info, write
        self._keys, self._ids = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._next = 1
        #: By id: the move to a position, its parent and action, its state where it was needed, and the engine's node.
        self._texts = {0: ""}
        self._moves: dict[int, tuple[int, int]] = {}
        self._states: dict[int, Any] = {0: state}
        self._nodes: dict[int, int] = {0: 0}

    def read(self, result: SearchResult, seconds: float) -> Rows:
        """Reads the window of a tree; positions whose moves are not written within so many seconds are left out."""
        opened, closed = ([self._nodes[each] for each in ids if each in self._nodes] for ids in (self.opened, self.closed))
        columns = result.window(self.max_rows, self.min_visits, opened, closed, follow=self.follow)
        above, nodes, actions = columns["parent"], columns["node"], columns["action"].astype(np.int64)
        # An edge is known by its parent node and its action, whatever the order of the rows.
        keys = np.where(above < 0, -1, nodes[above] << 16 | actions)
        ids = np.zeros(len(keys), dtype=np.int64)
        if len(self._keys):
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            ids = np.where(self._keys[places] == keys, self._ids[places], 0)
        shown = np.ones(len(ids), dtype=bool)
        deadline = time.perf_counter() + seconds
        for count, row in enumerate(np.flatnonzero(ids == 0).tolist()):
            # The root is number 0. At least one position is written, however slow the game.
            if row and (not shown[above[row]] or (count > 1 and time.perf_counter() > deadline)):
                shown[row] = False
            elif row:
                ids[row] = self._number(int(ids[above[row]]), int(actions[row]))
        np.add.at(columns["hidden"], above[~shown], 1)
        parents = ids[above][shown]
        ids, keys = ids[shown], keys[shown]
        columns = {name: column[shown] for name, column in columns.items()}
        order = np.argsort(keys)
        self._keys, self._ids = keys[order], ids[order]
        self._nodes = dict(zip(ids.tolist(), columns["node"].tolist(), strict=True))
        self._forget()
        with np.errstate(divide="ignore", invalid="ignore"):
            means = columns["sum"] / columns["visits"]
        columns["q"] = np.where(columns["proven"] == UNPROVEN, means, columns["proven"])
        return Rows(ids, parents, columns, self._texts)

    def _number(self, parent: int, action: int) -> int:
        number = self._next
        self._next += 1
        self._texts[number] = self._write(self.state(parent), action)
        self._moves[number] = parent, action
        return number

    def _forget(self) -> None:
        """Drops what is stored of positions that are not shown any more; snapshots keep the texts they have."""
        if len(self._texts) > 2 * len(self._nodes) + 100:
            self._texts, self._moves, self._states = (
                {number: stored[number] for number in self._nodes if number in stored}
                for stored in (self._texts, self._moves, self._states)
            )

    def change(self, opened: Sequence[int], closed: Sequence[int]) -> None:
        """Opens and closes positions by hand; those not shown any more are ignored."""
        self.opened = (self.opened | {*opened}) - {*closed} & self._nodes.keys()
        self.closed = (self.closed | {*closed}) - {*opened} & self._nodes.keys()

    def __contains__(self, number: int) -> bool:
        return number in self._nodes

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
        """Returns the positions of a line of actions, from the root on, as far as it is shown."""
        numbers = [0]
        below = {move: number for number, move in self._moves.items() if number in self._nodes}
        for action in actions:
            if (numbers[-1], action) not in below:
                break
            numbers.append(below[numbers[-1], action])
        return numbers
