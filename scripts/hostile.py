"""Hostile values for the fuzzers, and a valid game, evaluator and model."""

from __future__ import annotations

import decimal
import fractions
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pondertree import models
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

Random = random.Random
Call = Callable[[], object]


# --- Hostile values ---


class Liar:
    """A number whose conversions disagree."""

    def __init__(self, number: Any) -> None:
        self.number = number

    def __index__(self) -> Any:
        return self.number

    def __float__(self) -> Any:
        return self.number

    def __len__(self) -> Any:
        return self.number

    def __iter__(self) -> Iterator[Any]:
        return iter([self.number])


class Deliberate:
    """The base of the exceptions that hostile objects raise."""


def deliberate(kind: type[Exception]) -> Exception:
    """An exception that `named` distinguishes from those of the package."""
    made: Exception = type(kind.__name__, (kind, Deliberate), {})("raised by a hostile object")
    return made


class Raising:
    """An object all of whose methods raise, except `repr`."""

    def __index__(self) -> int:
        raise deliberate(ZeroDivisionError)

    def __float__(self) -> float:
        raise deliberate(KeyError)

    def __len__(self) -> int:
        raise deliberate(IndexError)

    def __bool__(self) -> bool:
        raise deliberate(OverflowError)

    def __iter__(self) -> Iterator[Any]:
        raise deliberate(AttributeError)

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise deliberate(RecursionError)


NUMBERS: list[Any] = [
    *(
        0,
        1,
        -1,
        2,
        3,
        7,
        64,
        255,
        256,
        65535,
        65536,
        2**31 - 1,
        2**31,
        2**32,
        2**53,
        2**63,
        2**64,
        10**30,
        10**400,
        10**5000,
    ),
    *(-(2**31), -(2**63), -(10**400), 0.0, -0.0, 0.5, 1.0, -1.5, 1e-320, 1e12, 1e18, 1e300, -1e300),
    *(float("nan"), float("inf"), -float("inf"), True, False, 1j, decimal.Decimal("NaN"), decimal.Decimal(3)),
    *(fractions.Fraction(1, 3), np.float32(1.5), np.float64("nan"), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True)),
]
TEXTS: list[Any] = [
    *("", " ", "a", "node", "random", "\0", "a\0b", "x" * 5000, "\ud800", "\N{SNOWMAN}", "-1", "nan", "1e999", "../.."),
    *("e2e4", "startpos", "connect4", "logits", b"", b"abc", bytearray(b"x"), "{}", "%s%n", "None", "0" * 5000),
]


def others() -> list[Any]:
    """Returns new hostile values: some are iterators."""
    nested: list[Any] = []
    nested.append(nested)
    return [
        *(None, [], [[]], (), {}, set(), {1}, frozenset({2}), {"a": 1}, [1, 2], (1.0, "x"), [None], ["a"] * 3, nested),
        *(
            object(),
            object,
            int,
            len,
            lambda: 1,
            lambda *_: None,
            (n for n in range(3)),
            iter([1]),
            range(10),
            slice(1),
        ),
        *(np.array([]), np.array(3), np.array([1.0, 2.0]), np.zeros((2, 2)), np.array([None, "x"], dtype=object)),
        *(np.array(["a", "b"]), np.array([1j]), np.datetime64("2020-01-01"), np.full(3, np.nan), np.zeros((0, 7))),
        *(TicTacToe(), ConnectFour(), Othello(), Chess(), Row(), RuntimeError("x"), Ellipsis, NotImplemented, sys),
        *(Liar(-1), Liar(10**30), Liar("x"), Liar(2), Liar(None), Raising(), memoryview(b"abc"), Path("x" * 300)),
    ]


def hostile(rng: Random) -> Any:
    """Returns a hostile value."""
    kind = rng.randrange(8)
    if kind < 3:
        return rng.choice(NUMBERS)
    if kind == 3:
        return rng.choice(TEXTS)
    if kind < 7:
        return rng.choice(others())
    some = [hostile(rng) for _ in range(rng.randrange(4))]
    return rng.choice([list, tuple, lambda values: {str(place): value for place, value in enumerate(values)}])(some)


def named(function: Callable[[], object], names: list[str]) -> object:
    """Calls `function`. Two exceptions count as typed: that of a hostile object, and a TypeError about one of the
    arguments `names`, as documented in docs/results.md, if raised in the called function or by PyO3's conversion."""
    try:
        return function()
    except Exception as error:
        if isinstance(error, Deliberate) or (isinstance(error, TypeError) and _is_about(error, names)):
            raise InvalidArgumentError(str(error)) from error
        raise


def _is_about(error: TypeError, names: list[str]) -> bool:
    notes = getattr(error, "__notes__", [])
    if any(f"while processing '{name}'" in notes for name in names):  # PyO3's message
        return True
    # The frames of `named`, of its `function` and of its callee.
    is_shallow = len(traceback.extract_tb(error.__traceback__)) <= 3
    return is_shallow and any(re.search(rf"\b{re.escape(name)}\b", str(error)) for name in names)


# --- A game, an evaluator and a model that are right ---


class Row:
    """Six moves of 0, 1 or 2; the sum of the moves decides the winner."""

    num_actions: Any = 3
    num_players: Any = 2

    def __init__(self, moves: tuple[int, ...] = ()) -> None:
        self.moves = moves

    @property
    def to_play(self) -> Any:
        return len(self.moves) % 2

    @property
    def is_terminal(self) -> Any:
        return len(self.moves) >= 6

    def legal_actions(self) -> Any:
        return [] if self.is_terminal else [0, 1, 2]

    def play(self, action: Any) -> Any:
        if len(self.moves) > 200:
            raise RuntimeError("this game would never end")
        return type(self)((*self.moves, action))

    def returns(self) -> Any:
        won = float(sum(self.moves) % 3 - 1)
        return [won, -won]

    def observation(self) -> Any:
        return np.array([*self.moves, *[-1] * (6 - len(self.moves))], dtype=np.float32)


class Paid(Row):
    """A single-player variant with rewards."""

    num_players = 1
    to_play = 0

    def returns(self) -> Any:
        return [0.0]

    def rewards(self) -> Any:
        return [float(self.moves[-1]) if self.moves else 0.0]


class Three(Row):
    """A three-player variant."""

    num_players = 3

    @property
    def to_play(self) -> Any:
        return len(self.moves) % 3

    def returns(self) -> Any:
        return [1.0, 0.0, -0.5]


def even(actions: int) -> Callable[[Any], Any]:
    """Evaluates to uniform logits and zeros."""
    return lambda observations: (np.zeros((len(observations), actions), np.float32), np.zeros(len(observations)))


def a_model(actions: int = 3) -> Any:
    """A learned model with hidden states of two numbers."""
    return models.FunctionModel(
        lambda seen: (
            np.zeros((len(seen), 2), np.float32),
            np.zeros((len(seen), actions), np.float32),
            np.zeros(len(seen)),
        ),
        lambda hidden, taken: (hidden + 1, np.zeros(len(taken)), np.zeros((len(taken), actions)), np.zeros(len(taken))),
    )


def show(result: Any) -> object:
    """Reads all attributes of a result."""
    root = result.root
    seen = [result.action, result.value, result.proven, result.visits, result.policy, result.q, result.pv, result.moves]
    drawn = [root.to_text(), root.to_json(), root.to_dot(), repr(result), result.move, result.memory]
    if np.isnan(result.policy).any() or not np.isfinite(result.value):
        raise AssertionError(f"policy {result.policy}, value {result.value}")
    return seen, drawn
