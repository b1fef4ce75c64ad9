"""Helpers of the tests of searches: fingerprints of trees, Python games, failing evaluators."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pondertree
from pondertree.random import fold


def fingerprint(result: pondertree.SearchResult) -> tuple[Any, ...]:
    """Returns everything a tree holds as plain data: nodes, edges in order (unvisited ones too), counts."""
    view = result._view
    nodes = []
    for index in range(view.num_nodes):
        raw, to_play, end, proven, distance, edges, opened, forced, _, rewards = view.node(index)
        columns = tuple(tuple(column.tolist()) for column in view.edges(index))
        nodes.append((raw, to_play, end, proven, distance, edges, opened, forced, tuple(rewards), columns))
    return (view.simulations, view.root_visits, view.positions, result._chosen[1], tuple(nodes))


def every_node(root: pondertree.Node) -> Iterator[pondertree.Node]:
    """Yields `root` and all nodes below it."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children.values())


def after(state: Any, moves: str | Sequence[int]) -> Any:
    """Returns the state after moves, given as words in the game's notation or as actions."""
    for move in moves.split() if isinstance(moves, str) else moves:
        state = state.play(state.parse_action(move) if isinstance(move, str) else move)
    return state


def random_position(start: Callable[[], Any], plies: int, seed: int) -> Any:
    """Returns a decision after at most `plies` random moves and outcomes, before the end of the game."""
    numbers = random.Random(seed)
    state = decision = start()
    for _ in range(plies):
        state = state.play(numbers.choice(state.legal_actions()))
        if state.is_terminal:
            break
        if state.to_play != pondertree.CHANCE:
            decision = state
    return decision


@dataclass(frozen=True)
class PythonGame:
    """A compiled game behind the interface of a Python game."""

    inside: Any

    @property
    def to_play(self) -> int:
        return int(self.inside.to_play)

    @property
    def is_terminal(self) -> bool:
        return bool(self.inside.is_terminal)

    @property
    def num_actions(self) -> int:
        return int(self.inside.num_actions)

    @property
    def num_players(self) -> int:
        return 2

    def legal_actions(self) -> list[int]:
        return list(self.inside.legal_actions())

    def play(self, action: int) -> PythonGame:
        return type(self)(self.inside.play(action))

    def returns(self) -> list[float]:
        return list(self.inside.returns())

    def observation(self) -> Any:
        return self.inside.observation()

    def action_to_string(self, action: int) -> str:
        return str(self.inside.action_to_string(action))


@dataclass(frozen=True)
class Corridor:
    """A long game: at every ply a player may continue or leave (and lose); at the end the last mover wins."""

    length: int
    ply: int = 0
    left: bool = False
    width: int = 1
    num_actions = 3
    num_players = 2

    @property
    def to_play(self) -> int:
        return self.ply % 2

    @property
    def is_terminal(self) -> bool:
        return self.left or self.ply >= self.length

    def legal_actions(self) -> list[int]:
        return list(range(self.width))

    def play(self, action: int) -> Corridor:
        return Corridor(self.length, self.ply + 1, action > 0, self.width)

    def returns(self) -> list[float]:
        if not self.is_terminal:
            return [0.0, 0.0]
        mover = 1 - self.to_play
        result = -1.0 if self.left else 1.0
        return [result, -result] if mover == 0 else [-result, result]


class Hashed:
    """An evaluator whose values are pseudorandom functions of the observation."""

    def __init__(self) -> None:
        self.calls = 0

    def evaluate(self, observations: np.ndarray) -> tuple[None, np.ndarray]:
        self.calls += 1
        return None, np.array([hashed_value(row) for row in observations])


def hashed_value(observation: Any) -> float:
    """Returns a number in [-1, 1] for an observation, equal in every process."""
    numbers = np.asarray(observation, dtype=np.float64).ravel()
    key = fold(0, int(np.abs(numbers * 1000.0 + np.arange(numbers.size)).dot(np.arange(1, numbers.size + 1))))
    return (key % 2001 - 1000) / 1000.0


class Failing:
    """An evaluator that raises at its `at`-th call, once."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.left = at
        self.error = error

    def evaluate(self, observations: np.ndarray) -> tuple[None, np.ndarray]:
        self.left -= 1
        if self.left == 0:
            raise self.error
        return None, np.array([hashed_value(row) for row in observations])


def wins_at_once(state: Any, player: int) -> list[int]:
    """Returns the actions with which `player`, who is to move, wins at once."""
    return [
        action
        for action in state.legal_actions()
        if state.play(action).is_terminal and state.play(action).returns()[player] == 1
    ]


def with_threats(start: Any, kind: str, mover: int, count: int) -> list[tuple[Any, int]]:
    """Returns positions of random games with one immediate win, or one move that prevents the opponent's."""
    found: list[tuple[Any, int]] = []
    for seed in range(4000):
        state = random_position(start, 6 + seed % 22, seed)
        if state.to_play != mover:
            continue
        wins = wins_at_once(state, mover)
        if kind == "win" and len(wins) == 1:
            found.append((state, wins[0]))
        elif kind == "block" and not wins:
            safe = [
                action
                for action in state.legal_actions()
                if not state.play(action).is_terminal and not wins_at_once(state.play(action), 1 - mover)
            ]
            if len(safe) == 1 and len(state.legal_actions()) > 2:
                found.append((state, safe[0]))
        if len(found) == count:
            return found
    raise AssertionError("not enough positions")
