"""Replies fit into a message, however many moves a game has and however long its lines are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.view import call, live_of, session_of, setup_of

from pondertree.errors import UsageError
from pondertree.view.details import MAX_COMPARED, encode_reply
from pondertree.view.messages import MAX_MESSAGE

WIDE = "tests.view.test_window:Crowd"


def test_step_and_node_of_a_wide_game_fit() -> None:
    with session_of(setup_of(WIDE, "alphazero", evaluator="uniform")) as session:
        assert len(session.setup.history[0][1].state.legal_actions()) > 361
        for _ in range(4):
            step = call(session, session.step)
            text = encode_reply(step)
            assert len(text) <= MAX_MESSAGE
            for choice in json.loads(text)["choices"]:
                assert len(choice["compared"]) <= MAX_COMPARED + 1
        assert len(encode_reply(call(session, lambda: session.inspect(0)))) <= MAX_MESSAGE


def test_best_moves_are_compared() -> None:
    live = live_of(setup_of("othello", "alphazero", evaluator="uniform"))
    for _ in range(20):
        for choice in live.step(None)["choices"]:
            scores = [edge["score"] for edge in choice["compared"] if edge["score"] is not None]
            assert scores == sorted(scores, reverse=True)


@given(st.integers(0, 60), st.integers(1, 400), st.integers(0, 399), st.integers(0, 20))
def test_step_is_cut_to_its_best_moves(depth: int, moves: int, chosen: int, words: int) -> None:
    compared = [
        {"action": action, "text": "x" * words, "terms": [["visits", action]], "score": (action * 7919) % 400 / 400}
        for action in range(moves)
    ]
    choice = {"chosen": chosen % moves, "text": "x", "compared": compared}
    reply: dict[str, Any] = {"type": "step", "choices": [choice] * depth, "nodes": list(range(depth + 1))}
    text = encode_reply(reply, 20_000)
    assert len(text) <= 20_000
    found = json.loads(text)["choices"]
    assert len(found) == depth
    best = sorted(compared, key=lambda edge: -float(str(edge["score"])))
    for each in found:
        others_compared = [edge for edge in each["compared"] if edge["action"] != each["chosen"]]
        assert each["chosen"] in [edge["action"] for edge in each["compared"]]
        others = [edge for edge in best if edge["action"] != each["chosen"]]
        assert {edge["action"] for edge in others_compared} == {
            edge["action"] for edge in others[: len(others_compared)]
        }


def test_reply_that_cannot_be_cut_is_an_error() -> None:
    with pytest.raises(UsageError, match="too large"):
        encode_reply({"type": "node", "board": "x" * 60_000, "moves": [1], "path": ["a"]})
    long = {"type": "step", "choices": [{"chosen": 0, "compared": [], "text": "x" * 50}] * 2_000, "nodes": [0] * 2_000}
    assert 0 < len(json.loads(encode_reply(long))["choices"]) < 2_000
