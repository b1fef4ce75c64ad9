"""Requests of a page: valid ones are read, any others are refused with a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondertree.errors import InvalidArgumentError
from pondertree.view.messages import MAX_MESSAGE, REQUESTS, REQUIRED, encode_within, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
VALID: dict[str, dict[str, Any]] = {
    "start": {"simulations": None, "seconds": 1.5},
    "pause": {},
    "step": {},
    "play": {"action": 3, "reply": True},
    "move": {},
    "goto": {"ply": 0},
    "setup": {"fen": "", "moves": ""},
    "new": {},
    "settings": {"settings": {"preset": "uct", "parameters": {"c_param": 2}, "seed": None, "exclude": [1]}},
    "window": {"open": [1, 2], "close": [], "least": 1, "nodes": 4000, "follow": False},
    "inspect": {"id": 0},
    "solve": {},
    "save": {"name": "a tree"},
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_requests_are_read_with_their_fields(kind: str) -> None:
    number, read = parse(json.dumps({"request": 7, "type": kind, **VALID[kind]}))
    assert number == 7
    assert read() == (kind, VALID[kind])


@pytest.mark.parametrize("kind", REQUIRED)
def test_request_without_required_field_is_refused(kind: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{kind} needs the field {REQUIRED[kind]}"):
        parse(json.dumps({"request": 1, "type": kind}))[1]()


@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "[]", "1", '{"type":"pause"}', '{"request":1.5,"type":"pause"}', '{"request":true}'),
        *("[" * 20_000, '{"request":' + "9" * 10_000 + "}", '{"request":NaN}', '{"request":1e999}'),
        '{"request":9007199254740993}',
    ],
)
def test_text_that_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse(text)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("play", {"action": -1}),
        ("play", {"action": "4"}),
        ("start", {"simulations": 0}),
        ("start", {"seconds": -1}),
        ("start", {"secnods": 1}),
        ("window", {"nodes": 4001}),
        ("window", {"open": [1.5]}),
        ("settings", {"settings": {"parameters": {"c_param": [1]}}}),
        ("settings", {"settings": {"exclude": 3}}),
        ("settings", {"settings": []}),
        ("explode", {}),
    ],
)
def test_wrong_field_is_refused_by_name(kind: str, fields: dict[str, Any]) -> None:
    number, read = parse(json.dumps({"request": 1, "type": kind, **fields}))
    assert number == 1
    with pytest.raises(InvalidArgumentError):
        read()


@given(JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    for message in (value, {"request": 1, "type": "play", "action": value}, {"request": 1, "type": value}):
        try:
            parse(json.dumps(message))[1]()
        except InvalidArgumentError:
            continue


@given(st.lists(st.text(max_size=2000), max_size=200), st.lists(st.integers(), max_size=2000))
def test_message_is_cut_to_its_largest_size(texts: list[str], numbers: list[int]) -> None:
    text = encode_within({"type": "position", "texts": texts, "numbers": numbers}, ("texts", "numbers"), 5_000)
    assert len(text.encode()) <= 5_000 < MAX_MESSAGE
    message = json.loads(text)
    assert message["texts"] == texts[: len(message["texts"])]
    assert message["numbers"] == numbers[: len(message["numbers"])]


def test_message_that_cannot_be_cut_becomes_an_error() -> None:
    assert json.loads(encode_within({"board": "x" * 9_000, "legal": [1]}, ("legal",), 5_000))["type"] == "error"
