"""Frames: a page that applies them has the window of the server, whatever it missed before."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.view import apply_tree

from pondertree.result import UNPROVEN
from pondertree.view.frames import MAX_HEAD, NOTHING_SENT, Rows, Sent, Snapshot, frame
from pondertree.view.messages import MAX_MESSAGE


def snapshot_of(random: np.random.Generator, number: int, count: int, position: int = 1, text: str = "") -> Snapshot:
    """A window of some of 6,000 positions, each the child of an earlier one."""
    chosen = np.sort(random.choice(6_000, size=count, replace=False))
    ids = np.unique(np.concatenate([[0], *(_line(each) for each in chosen.tolist())]))[:4_000]
    rows = len(ids)
    values = np.column_stack(
        [
            random.integers(0, 50, rows),
            np.where(random.random(rows) < 0.1, np.inf, random.uniform(-1, 1, rows).round(3)),
            random.choice([-1, 0, 1, UNPROVEN], rows),
            random.integers(0, 5, rows),
            random.random(rows) < 0.2,
        ]
    ).astype(np.float64)
    texts = {int(each): text or f"m{each}" for each in ids.tolist()}
    head: dict[str, Any] = {"status": {}, "moves": [], "shares": []}
    actions = ids % 7
    shown = Rows(ids, values, ids // 3, actions, ids % 2, np.full(rows, 0.5), ids % 5 == 4, texts)
    return Snapshot(position, number, head, shown)


def _line(number: int) -> list[int]:
    line = [number]
    while line[-1]:
        line.append(line[-1] // 3)
    return line


def expected(snapshot: Snapshot) -> dict[int, tuple[Any, ...]]:
    numbers = {}
    for number, (visits, q, proven, hidden, on_line) in zip(
        snapshot.rows.ids.tolist(), snapshot.rows.values.tolist(), strict=True
    ):
        known = None if proven == UNPROVEN else proven
        numbers[number] = (visits, None if q == np.inf else q, known, hidden, bool(on_line))
    return numbers


def shown(nodes: dict[int, dict[str, Any]]) -> dict[int, tuple[Any, ...]]:
    return {
        number: tuple(node[name] for name in ("visits", "q", "proven", "hidden", "pv"))
        for number, node in nodes.items()
    }


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.lists(st.tuples(st.integers(1, 5_500), st.integers(1, 3), st.booleans()), min_size=1))
def test_frames_bring_a_page_to_the_last_snapshot(seed: int, steps: list[tuple[int, int, bool]]) -> None:
    random = np.random.default_rng(seed)
    nodes: dict[int, dict[str, Any]] = {}
    sent, position = NOTHING_SENT, 1
    for number, (count, frames, moves_on) in enumerate(steps):
        position += moves_on
        snapshot = snapshot_of(random, number, count, position)
        # A slow page gets only some frames of each snapshot.
        for _ in range(frames):
            sent = apply(nodes, sent, snapshot)
    for _ in range(30):
        if sent.is_up_to_date(snapshot):
            break
        sent = apply(nodes, sent, snapshot)
    assert sent.is_up_to_date(snapshot)
    assert shown(nodes) == expected(snapshot)
    assert json.loads(frame(sent, snapshot)[0])["tree"] == {"reset": False, "remove": [], "add": [], "change": []}


def apply(nodes: dict[int, dict[str, Any]], sent: Sent, snapshot: Snapshot) -> Sent:
    text, after = frame(sent, snapshot)
    assert len(text.encode()) <= MAX_MESSAGE
    message = json.loads(text)
    assert message["sequence"] == sent.sequence + 1
    assert message["tree"]["reset"] == (sent.position != snapshot.position)
    apply_tree(nodes, message["tree"])
    assert len(nodes) <= 4_000
    return after


def test_removal_of_a_whole_window_is_bounded() -> None:
    random = np.random.default_rng(2)
    first, second = snapshot_of(random, 0, 5_500), snapshot_of(random, 1, 5_500)
    texts = {number + 10**9: text for number, text in second.rows.texts.items()} | {0: ""}
    moved = [np.where(numbers > 0, numbers + 10**9, 0) for numbers in (second.rows.ids, second.rows.parents)]
    rows = second.rows._replace(ids=moved[0], parents=moved[1], texts=texts)
    # A change of nearly all positions, there and back: the second time, the removed ids are long.
    nodes: dict[int, dict[str, Any]] = {}
    sent = NOTHING_SENT
    head = {**first.head, "shares": [[each, 0.5] for each in range(3_000)]}
    for number, shown_rows in enumerate((first.rows, rows, first.rows)):
        snapshot = Snapshot(1, number, head, shown_rows)
        for _ in range(40):
            sent = apply(nodes, sent, snapshot)
            assert all(node["parent"] is None or node["parent"] in nodes for node in nodes.values())
        assert sent.is_up_to_date(snapshot)
        assert shown(nodes) == expected(snapshot)


def test_no_changed_position_waits_for_ever() -> None:
    """All positions change all the time, in more bytes than a frame has."""
    random = np.random.default_rng(0)
    first = snapshot_of(random, 0, 3_000)
    sent, nodes = NOTHING_SENT, {}
    while not sent.is_up_to_date(first):
        sent = apply(nodes, sent, first)
    rows, updates = first.rows, {}
    for number in range(1, 40):
        values = rows.values.copy()
        values[:, 0] += 10.0 * number * (1 + np.arange(len(values))[::-1])
        text, sent = frame(sent, Snapshot(1, number, first.head, rows._replace(values=values)))
        for change in json.loads(text)["tree"]["change"]:
            updates.setdefault(change[0], []).append(number)
    assert updates.keys() == set(rows.ids.tolist())
    assert updates[0] == list(range(1, 40))
    longest = max(max(np.diff([0, *numbers, 40])) for numbers in updates.values())
    assert longest <= 12


@pytest.mark.parametrize("text", ["x" * 60, "\u265a" * 60, '"\\\n' * 20])
def test_largest_head_and_texts_fit(text: str) -> None:
    snapshot = snapshot_of(np.random.default_rng(1), 1, 3_000, text=text)
    moves = [{"text": text, "line": [text] * 12, "visits": 1} for _ in range(500)]
    snapshot = Snapshot(
        1, 1, {"status": {}, "moves": moves, "shares": [[each, 0.5] for each in range(9_000)]}, snapshot.rows
    )
    assert len(snapshot.head_text) <= MAX_HEAD
    text_of_frame, sent = frame(NOTHING_SENT, snapshot)
    assert len(text_of_frame.encode()) <= MAX_MESSAGE
    message = json.loads(text_of_frame)
    assert len(sent.ids) == len(message["tree"]["add"]) > 20
    assert message["moves"] == moves[: len(message["moves"])]
