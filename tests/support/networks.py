"""Helpers for tests of evaluators: an exact network, and invalid outputs that every adapter must refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import fingerprint

import pondertree
from pondertree.games import ConnectFour

Arrays = tuple[Any, Any]


def table(observations: np.ndarray, num_actions: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """(logits, values) as a hash of the observation, exact in every floating-point dtype."""
    flat = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
    keys = np.round(flat * 100).astype(np.int64) @ (np.arange(flat.shape[1], dtype=np.int64) ** 2 % 257 + 1)
    logits = (keys[:, None] * (np.arange(num_actions) + 3) // 7 % 17) / 4.0 - 2.0
    return logits.astype(np.float32), (keys % 33 - 16).astype(np.float32) / 16


@dataclass
class Switch:
    """A network that can be broken and repaired."""

    broken: Callable[[np.ndarray], Any] | None = None
    calls: int = 0
    rows: int = 0

    def __call__(self, observations: Any) -> Any:
        observations = np.asarray(observations)
        self.calls += 1
        self.rows += len(observations)
        return (self.broken or table)(observations)


class ObservationsOnly:
    """An evaluator without its packed form."""

    def __init__(self, evaluator: Any) -> None:
        self.evaluate = evaluator.evaluate
        self.policy = getattr(evaluator, "policy", "logits")


def assert_same_search(one: Any, other: Any, state: Any, simulations: int = 60, **settings: Any) -> None:
    """Both evaluators grow the same trees, bit for bit."""
    legal = state.legal_actions()
    states = [state, state.play(legal[0]), state.play(legal[-1])]
    while any(after.to_play == pondertree.CHANCE for after in states):
        states = [
            after.play(after.legal_actions()[1]) if after.to_play == pondertree.CHANCE else after for after in states
        ]
    trees = [
        [fingerprint(result) for result in pondertree.AlphaZero(evaluator, simulations, seed=3, **settings).run(states)]
        for evaluator in (one, other)
    ]
    assert trees[0] == trees[1]


def spoiled(where: str, entry: Any, number: float) -> Callable[[np.ndarray], Arrays]:
    """The table with one entry replaced."""

    def answer(observations: np.ndarray) -> Arrays:
        logits, values = table(observations)
        (logits if where == "logits" else values)[entry] = number
        return logits, values

    return answer


def fail(observations: np.ndarray) -> Arrays:
    raise RuntimeError("the network fell over")


#: Invalid outputs of networks that run Python code, and the expected error.
NONSENSE: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "nan logit": (spoiled("logits", (1, 2), np.nan), "row 1"),
    "inf logit": (spoiled("logits", (1, 2), np.inf), "row 1"),
    "nan value": (spoiled("values", 1, np.nan), "row 1"),
    "no move": (spoiled("logits", 1, -np.inf), "row 1.*every legal move"),
    "too few actions": (lambda o: (table(o)[0][:, :3], table(o)[1]), "policy_logits has shape"),
    "too few rows": (lambda o: (table(o)[0][:1], table(o)[1]), "policy_logits has shape"),
    "too few values": (lambda o: (table(o)[0], table(o)[1][:1]), "values has shape"),
    "three values": (lambda o: (table(o)[0], np.zeros((len(o), 3), dtype=np.float32)), "values has shape"),
    "one array": (lambda o: table(o)[0], "pair|must return"),
    "three arrays": (lambda o: (*table(o), table(o)[1]), "of 3|must return"),
    "nothing": (lambda o: None, "must return"),
    "failure": (fail, "the network fell over"),
}


def assert_refused(evaluator: Any, switch: Switch, broken: Callable[[np.ndarray], Any], match: str) -> None:
    """Invalid outputs raise; trees are unchanged and can be searched further."""
    states = [ConnectFour(), ConnectFour().play(3)]
    forest = pondertree.AlphaZero(evaluator, seed=1).forest(states).simulate(10)
    before = [fingerprint(result) for result in forest.results()]
    switch.broken = broken
    with pytest.raises(pondertree.EvaluationError, match=match):
        forest.simulate(10)
    assert [fingerprint(result) for result in forest.results()] == before
    switch.broken = None
    whole = pondertree.AlphaZero(evaluator, seed=1).forest(states).simulate(20)
    assert [fingerprint(result) for result in forest.simulate(10).results()] == list(map(fingerprint, whole.results()))


def assert_no_entry(evaluator: Any, switch: Switch) -> None:
    """A network that re-enters its own search is refused."""
    tree = pondertree.AlphaZero(evaluator, seed=1).tree(ConnectFour())

    def broken(observations: np.ndarray) -> Arrays:
        tree.simulate(1)
        return table(observations)

    switch.broken = broken
    with pytest.raises(pondertree.PondertreeError, match="already running"):
        tree.simulate(5)
    switch.broken = None
    assert tree.simulate(5).result().simulations == 5
