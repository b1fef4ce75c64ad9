"""Frames: the changes from what a client has of the tree to what it shall have, within the size of a message.

They are computed from a `Snapshot`, which holds no part of the tree, while the search continues in another thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree.result import UNPROVEN
from pondertree.view.messages import DECIMALS, MAX_MESSAGE, encode

#: Bytes of a frame at most for status, moves and shares, and for removed positions; and the part of the rest that new
#: positions may take.
MAX_HEAD, MAX_REMOVED, MAX_ADDED = 20_000, 15_000, 0.6
#: Columns of `Rows.values`.
VISITS, Q, PROVEN, HIDDEN, ON_LINE = range(5)


class Rows(NamedTuple):
    """The positions of a window, parents before children; the root is the first row and has the id 0."""

    ids: NDArray[np.int64]
    values: NDArray[np.float64]
    """[rows, 5]: what changes, in the order of the message; Q is infinite where there is none."""
    parents: NDArray[np.int64]
    """The ids of the parents."""
    actions: NDArray[np.int64]
    players: NDArray[np.int64]
    priors: NDArray[np.float64]
    """NaN without priors."""
    terminal: NDArray[np.bool_]
    texts: dict[int, str]
    """The moves to the positions, by id."""

    @classmethod
    def empty(cls) -> Rows:
        """Returns no rows."""
        whole, number = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(whole, np.zeros((0, 5)), whole, whole, whole, number, np.zeros(0, dtype=bool), {})


@dataclass(frozen=True)
class Snapshot:
    """What frames show: the status of the search, its moves, and a window of its tree."""

    position: int
    number: int
    """Counts the snapshots of a session."""
    head: dict[str, Any]
    """Status, moves and shares."""
    rows: Rows

    @cached_property
    def head_text(self) -> str:
        """`head` as JSON, without the braces; its last moves are left out if they do not fit."""
        head = dict(self.head)
        text = encode(head)
        while len(text) > MAX_HEAD:
            longest = max(("moves", "shares"), key=lambda name: len(encode({"": head[name]})))
            head[longest] = head[longest][: len(head[longest]) * 3 // 4]
            text = encode(head)
        return text[1:-1]


@dataclass(frozen=True)
class Sent:
    """The window that a client has: ids in ascending order, and the values last sent for each."""

    position: int
    sequence: int
    number: int
    """The snapshot that it was brought towards."""
    is_complete: bool
    """Whether it has all of that snapshot."""
    ids: NDArray[np.int64]
    values: NDArray[np.float64]

    def is_up_to_date(self, snapshot: Snapshot) -> bool:
        """Whether the client has all of a snapshot."""
        return self.is_complete and self.number == snapshot.number


NOTHING_SENT = Sent(-1, 0, -1, False, np.zeros(0, dtype=np.int64), np.zeros((0, 5)))


def frame(sent: Sent, snapshot: Snapshot) -> tuple[str, Sent]:
    """Returns a message of at most `MAX_MESSAGE` bytes that brings a client towards a snapshot, and what it has then.

    What does not fit follows in the next frames: new positions by visits, and changed ones by their relative growth
    since they were sent, so that none waits for ever. Positions are added only after all that left the window are
    removed, children before their parents, which have smaller ids.
    """
    is_reset = sent.position != snapshot.position
    if is_reset:
        sent = replace(NOTHING_SENT, position=snapshot.position, sequence=sent.sequence)
    rows = snapshot.rows
    places, known = np.zeros(len(rows.ids), dtype=np.int64), np.zeros(len(rows.ids), dtype=bool)
    if len(sent.ids):
        places = np.minimum(np.searchsorted(sent.ids, rows.ids), len(sent.ids) - 1)
        known = sent.ids[places] == rows.ids
    values = rows.values.copy()
    values[known] = sent.values[places[known]]
    differs = values != rows.values
    # The root comes first, then positions that are proven or change the principal variation.
    is_urgent = differs[:, PROVEN] | differs[:, ON_LINE] | (rows.ids == 0)
    order = np.lexsort((-rows.values[:, VISITS] / np.maximum(values[:, VISITS], 1.0), ~is_urgent))
    changed, added = order[differs.any(axis=1)[order]], np.flatnonzero(~known)
    stale = np.flatnonzero(~np.isin(sent.ids, rows.ids))[::-1]
    removed_texts = _fitting(stale, lambda place: str(sent.ids[place]), MAX_REMOVED)
    stale = stale[len(removed_texts) :]
    start = (
        f'{{"type":"frame","position":{snapshot.position},"sequence":{sent.sequence + 1},{snapshot.head_text},'
        f'"tree":{{"reset":{"true" if is_reset else "false"},"remove":[{",".join(removed_texts)}],"add":['
    )
    left = MAX_MESSAGE - len(start) - len('],"change":[]}}')
    most_added = 0 if len(stale) else int(left * MAX_ADDED) if len(changed) else left
    added_texts = _fitting(added, lambda row: _addition(rows, row), most_added)
    left -= sum(map(len, added_texts)) + len(added_texts)
    changed_texts = _fitting(changed, lambda row: _change(rows, row), left)
    text = f'{start}{",".join(added_texts)}],"change":[{",".join(changed_texts)}]}}}}'
    updated = changed[: len(changed_texts)]
    values[updated] = rows.values[updated]
    known[added[: len(added_texts)]] = True
    ids = np.concatenate([rows.ids[known], sent.ids[stale]])
    ascending = np.argsort(ids)
    return text, Sent(
        snapshot.position,
        sent.sequence + 1,
        snapshot.number,
        not len(stale) and len(added_texts) == len(added) and len(changed_texts) == len(changed),
        ids[ascending],
        np.concatenate([values[known], sent.values[stale]])[ascending],
    )


def _fitting(rows: NDArray[np.int64], write: Callable[[int], str], most: int) -> list[str]:
    """Returns the texts of the first rows that fit into `most` bytes, with a comma each."""
    texts: list[str] = []
    for row in rows.tolist():
        text = write(row)
        most -= len(text) + 1
        if most < 0:
            break
        texts.append(text)
    return texts


def _values(values: Sequence[float]) -> tuple[str, ...]:
    visits, q, proven, hidden, on_line = values
    return (
        str(int(visits)),
        "null" if q == np.inf else repr(round(q, DECIMALS)),
        "null" if proven == UNPROVEN else str(int(proven)),
        str(int(hidden)),
        "true" if on_line else "false",
    )


def _change(rows: Rows, row: int) -> str:
    return f"[{rows.ids[row]},{','.join(_values(rows.values[row].tolist()))}]"


def _addition(rows: Rows, row: int) -> str:
    visits, q, proven, hidden, on_line = _values(rows.values[row].tolist())
    number, prior = int(rows.ids[row]), float(rows.priors[row])
    return (
        f'{{"id":{number},"parent":{"null" if row == 0 else rows.parents[row]},'
        f'"action":{"null" if row == 0 else rows.actions[row]},"text":{json.dumps(rows.texts[number])},'
        f'"player":{rows.players[row]},"visits":{visits},"q":{q},'
        f'"prior":{"null" if prior != prior else repr(round(prior, DECIMALS))},"proven":{proven},'
        f'"terminal":{"true" if rows.terminal[row] else "false"},"hidden":{hidden},"pv":{on_line}}}'
    )
