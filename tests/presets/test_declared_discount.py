"""The discount that the states of a game declare is that of the search."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from tests.support.engine_alphazero import Table
from tests.support.search_helpers import fingerprint

import pondertree
from pondertree import UCT, AlphaZero, Gumbel, InvalidArgumentError
from pondertree.evaluators import Rollout
from pondertree.reference import alphazero, gumbel, priors, uct
from pondertree.testing.tabular import TabularGame


def declaring(discount: Any) -> type[Any]:
    """Returns a game whose states declare a discount."""

    kinds: dict[type[Any], type[Any]] = {}

    class Declared(TabularGame):
        def _state(self, path: tuple[int, ...], key: int) -> Any:
            state = super()._state(path, key)
            kind = kinds.setdefault(type(state), type("Declared", (type(state),), {"discount": discount}))
            return kind(*(getattr(state, each.name) for each in fields(state) if each.init))

    return Declared


def run(tree: Any) -> Any:
    """Runs a tree and returns its result."""
    tree.simulate()
    return tree.result()


@pytest.mark.parametrize("chance", [0.0, 0.4])
@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("seed", range(5))
def test_declared_discount_is_that_of_the_search(seed: int, in_flight: int, chance: float) -> None:
    shape: Any = {"seed": seed, "players": 1, "branching": (2, 4), "depth": (4, 9), "rewards": True, "chance": chance}
    plain, declared = TabularGame(**shape).start(), declaring(0.5)(**shape).start()
    options: Any = {"in_flight": in_flight, "seed": seed}
    pairs: list[tuple[Any, Any]] = [
        (UCT, uct.MCTS),
        (lambda **given: UCT(max_depth=2, **given), lambda **given: uct.MCTS(max_depth=2, **given)),
        (lambda **given: UCT(backup="max", **given), lambda **given: uct.MCTS(backup="max", **given)),
        (lambda **given: AlphaZero(Table(), **given), lambda **given: alphazero.MCTS(Table(), **given)),
        (
            lambda **given: AlphaZero(Rollout(), backup="max", **given),
            lambda **given: alphazero.MCTS(priors.Rollout(), backup="max", **given),
        ),
        (lambda **given: Gumbel(Rollout(), **given), lambda **given: gumbel.MCTS(priors.Rollout(), **given)),
    ]
    for search, theirs in pairs:
        of_search = search(num_simulations=80, discount=0.5, **options).tree(plain)
        of_game = search(num_simulations=80, **options).tree(declared)
        of_both = search(num_simulations=80, discount=0.5, **options).tree(declared)
        expected = run(of_search)
        for tree in (of_game, of_both):
            assert fingerprint(run(tree)) == fingerprint(expected)
        reference = theirs(num_simulations=80, **options).run(declared)
        assert {action: int(expected.visits[action]) for action in reference.visits} == reference.visits
        assert expected.value == reference.value
        if chance == 0.0:  # kept trees go on with the same discount
            for tree in (of_search, of_game):
                tree.advance(expected.action)
            assert fingerprint(run(of_game)) == fingerprint(run(of_search))


def test_two_discounts_conflict() -> None:
    state = declaring(0.5)(1, players=1, rewards=True).start()
    for search in (UCT(4, discount=0.9), AlphaZero(Rollout(), 4, discount=0.9), Gumbel(Rollout(), 4, discount=0.9)):
        with pytest.raises(InvalidArgumentError, match=r"discount is 0\.9 in the search, but 0\.5 in "):
            search.run(state)
    for theirs in (uct.MCTS(4, discount=0.9), alphazero.MCTS(Rollout(), 4, discount=0.9)):
        with pytest.raises(ValueError, match=r"discount is 0\.9 in the search, but 0\.5 in the game"):
            theirs.run(state)
    with pytest.raises(InvalidArgumentError, match=r"discount 0\.5 and 0\.25"):
        UCT(4).run([state, declaring(0.25)(1, players=1, rewards=True).start()])


@pytest.mark.parametrize("wrong", [0.0, 1.5, float("nan"), "0.9", None])
def test_declared_discount_is_checked(wrong: Any) -> None:
    with pytest.raises(
        pondertree.GameContractError, match=r"discount is .*: it must be a number above 0 and at most 1"
    ):
        UCT(4).run(declaring(wrong)(1, players=1, rewards=True).start())
