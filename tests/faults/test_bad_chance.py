"""Games whose chance nodes violate the contract raise typed errors, and trees stay usable."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from typing import Any

import pytest
from tests.support.chance_games import Certain, Race, Reroll, Wide, with_outcomes
from tests.support.search_helpers import fingerprint

import pondertree
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError
from pondertree.evaluators import Uniform
from pondertree.reference import alphazero, uct
from pondertree.testing import check_game

OUTCOMES: list[tuple[str, Any, str]] = [
    ("none", [], "is empty"),
    ("sum", [(1, 0.5), (2, 0.4)], "sum to 0.9"),
    ("almost the sum", [(1, 0.5), (2, 0.5 + 1e-8)], "sum to 1.00000001"),
    ("negative", [(1, 1.5), (2, -0.5)], "the probability -0.5"),
    ("zero", [(1, 1.0), (2, 0.0)], "the probability 0.0"),
    ("NaN", [(1, math.nan), (2, 0.5)], "the probability nan"),
    ("infinite", [(1, math.inf)], "the probability inf"),
    ("no number", [(1, None)], "the probability None: it must be a number"),
    ("text of a number", [(1, "1.0")], "the probability '1.0', a text: it must be a number"),
    ("float outcome", [(1.0, 1.0)], "the outcome 1.0"),
    ("negative outcome", [(-1, 1.0)], "the outcome -1"),
    ("large outcome", [(65536, 1.0)], "the outcome 65536"),
    ("twice", [(1, 0.5), (1, 0.5)], "1 more than once"),
    ("too many", [(outcome, 1.0 / 70_000) for outcome in range(70_000)], "70000 outcomes"),
    ("no pairs", [1, 2], "pairs"),
    ("a dict", {1: 0.5, 2: 0.5}, "pairs"),
    ("None", None, "pairs"),
    ("a text", "ab", "pairs"),
]

SEARCHES: dict[str, Any] = {
    "uct": lambda: pondertree.UCT(200, seed=1),
    "uct in flight": lambda: pondertree.UCT(200, seed=1, in_flight=4),
    "alphazero": lambda: pondertree.AlphaZero(Uniform(), 200, seed=1),
    "gumbel": lambda: pondertree.Gumbel(Uniform(), 200, seed=1),
    "sample": lambda: pondertree.UCT(200, seed=1, chance="sample"),
    "reference uct": lambda: uct.MCTS(200, seed=1),
    "reference alphazero": lambda: alphazero.MCTS(alphazero.Uniform(), 200, seed=1),
}


@pytest.mark.parametrize(("name", "given", "message"), OUTCOMES, ids=[name for name, _, _ in OUTCOMES])
@pytest.mark.parametrize("search", SEARCHES)
def test_wrong_outcomes_raise(search: str, name: str, given: Any, message: str) -> None:
    with pytest.raises(GameContractError, match=r"Broken\.chance_outcomes\(\)") as caught:
        SEARCHES[search]().run(with_outcomes(lambda: given))
    assert message in str(caught.value)
    assert "Race(places=" in str(caught.value) or "Broken(places=" in str(caught.value)


@pytest.mark.parametrize(("name", "given", "message"), OUTCOMES, ids=[name for name, _, _ in OUTCOMES])
def test_check_game_refuses_wrong_outcomes(name: str, given: Any, message: str) -> None:
    with pytest.raises(GameContractError, match="broken rule 'chance'") as caught:
        check_game(lambda: with_outcomes(lambda: given))
    assert message in str(caught.value)


@pytest.mark.parametrize("given", [[(70_000, 1.0)], [(1.5, 1.0)], [], [(-1, 1.0)], [(1, 0.5), (1, 0.5)]])
def test_check_game_reports_outcomes_before_the_list_that_repeats_them(given: Any) -> None:
    class Repeats(Race):
        def chance_outcomes(self) -> Any:
            return given

        def legal_actions(self) -> Any:
            return [outcome for outcome, _ in given] if self.rolling else super().legal_actions()

    with pytest.raises(GameContractError, match="broken rule 'chance'"):
        check_game(Repeats)


def raise_error() -> Any:
    raise ZeroDivisionError("no dice")


@pytest.mark.parametrize("search", SEARCHES)
def test_exceptions_of_chance_outcomes_are_named(search: str) -> None:
    with pytest.raises(GameContractError, match=r"chance_outcomes\(\) raised ZeroDivisionError: no dice"):
        SEARCHES[search]().run(with_outcomes(raise_error))


def test_tree_is_usable_after_an_error() -> None:
    """The batch in which the error occurred is rolled back whole."""
    tickets = itertools.count()
    for options in ({}, {"in_flight": 5}, {"chance": "sample", "in_flight": 3}):
        fails = {"now": False}

        class Moody(Race):
            def chance_outcomes(self) -> list[tuple[int, float]]:
                if fails["now"] and next(tickets) % 7 == 6:  # noqa: B023
                    return []
                return super().chance_outcomes()

        tree, same = (pondertree.UCT(seed=3, **options).tree(Moody()) for _ in range(2))
        for _ in range(20):
            done = tree.simulate(10).result().simulations
            fails["now"] = True
            with contextlib.suppress(GameContractError):
                tree.simulate(40)
            fails["now"] = False
            # The batches before the error stay.
            same.simulate(10).simulate(tree.result().simulations - done)
            slots = tree._forest._world._states  # type: ignore[attr-defined]
            nodes = [tree.result().root]
            for node in nodes:
                assert node.in_flight == 0
                nodes.extend(node.children.values())
            assert {node.slot for node in nodes if node.slot is not None} == set(slots)
        assert fingerprint(tree.result()) == fingerprint(same.result())


def test_chance_at_a_root_is_refused() -> None:
    rolling = Race().play(1)
    searches = [pondertree.UCT(10), pondertree.AlphaZero(Uniform(), 10), pondertree.Gumbel(Uniform(), 10)]
    for search in searches:
        calls = [search.run, search.tree, search.search, lambda state, s=search: s.forest([state])]
        for call in calls:
            with pytest.raises(InvalidArgumentError, match=r"chance node.*chance_outcomes"):
                call(rolling)
        with pytest.raises(InvalidArgumentError, match=r"states\[1\] is a chance node"):
            search.run([Race(), rolling])
        tree = search.tree(Race())
        with pytest.raises(InvalidArgumentError, match="chance node"):
            tree.reset(rolling)
        assert tree.simulate(5).result().simulations == 5
    for reference in (uct.MCTS(10), alphazero.MCTS(alphazero.Uniform(), 10)):
        with pytest.raises(ValueError, match="chance node"):
            reference.run(rolling)


def test_unlisted_outcome_is_refused() -> None:
    tree = pondertree.UCT(100, seed=1).tree(Race()).simulate()
    tree.advance("roll")
    for wrong in (0, 3, "rolled 9"):
        with pytest.raises(InvalidActionError):
            tree.advance(wrong)
    tree.advance(7)
    assert tree.state == Race().play(1).play(7)
    tree.simulate(10)


def test_negative_player_without_outcomes_is_refused() -> None:
    class Nobody(Race):
        chance_outcomes = None  # type: ignore[assignment]

    with pytest.raises(GameContractError, match="chance_outcomes"):
        pondertree.UCT(100).run(Nobody())


def test_impure_chance_is_refused() -> None:
    class Fickle(Race):
        def chance_outcomes(self) -> list[tuple[int, float]]:
            share = random.random() / 2
            return [(1, share), (2, 0.5 - share), (7, 0.5)]

    class Rolls(Race):
        def play(self, action: int) -> Any:
            right = super().play(action)
            return super().play(random.choice([1, 2, 7])) if self.rolling else right

    for game in (Fickle, Rolls):
        for search in (pondertree.UCT(300, seed=1), pondertree.AlphaZero(Uniform(), 300, seed=1)):
            with pytest.raises(GameContractError, match=r"chance_outcomes|pure function"):
                search.run(game())
        with pytest.raises(GameContractError, match="determinism"):
            check_game(game)


def test_legal_actions_of_a_chance_node_must_be_its_outcomes() -> None:
    class Other(Race):
        def legal_actions(self) -> list[int]:
            return [1, 2] if self.rolling else super().legal_actions()

    with pytest.raises(GameContractError, match=r"broken rule 'chance'.*legal_actions\(\) at a chance node"):
        check_game(Other)
    with pytest.raises(GameContractError, match=r"legal_actions\(\) at a chance node"):
        pondertree.UCT(300, seed=1).run(Other())


def test_right_games_are_accepted() -> None:
    for game in (Race, Certain, Wide):
        report = check_game(game)
        assert report.most_legal == 2
        assert report.unfinished == 0


@pytest.mark.parametrize("in_flight", [1, 4])
def test_nodes_with_very_many_outcomes(in_flight: int) -> None:
    """Runs of edges longer than a block: searched, rolled back, copied and saved."""
    game = Wide(60_000)
    for search in (
        pondertree.UCT(seed=1, in_flight=in_flight),
        pondertree.AlphaZero(Uniform(), seed=1, in_flight=in_flight),
    ):
        tree = search.tree(game).simulate(300)
        other = search.with_seed(1).tree(game).simulate(150).simulate(150)
        assert fingerprint(tree.result()) == fingerprint(other.result())
        assert tree.result().q[0] == 0.25
        assert tree.result().q[1] == pytest.approx(0.5, abs=0.15)
        node = tree.result().root.children[1]
        assert node.is_chance
        assert len(node.children) == 60_000
        assert sum(child.visit_count for child in node.children.values()) == node.visit_count
        tree.advance(1)
        assert tree.waits_for_outcome()


@pytest.mark.parametrize("search", SEARCHES)
def test_chance_that_goes_on_for_ever_is_refused(search: str) -> None:
    with pytest.raises(GameContractError, match=r"1000 chance nodes follow each other .*Reroll"):
        SEARCHES[search]().run(Reroll(ends=False))


@pytest.mark.parametrize("make", [pondertree.UCT, uct.MCTS])
def test_chance_in_playouts_that_goes_on_for_ever_is_refused(make: Any) -> None:
    """The first simulation plays out the position before the throws."""

    class Later(Reroll):
        def legal_actions(self) -> list[int]:
            return [1]

        def play(self, action: int) -> Reroll:
            return Reroll(throwing=True, ends=False) if self.throws else Later(throws=1)

    with pytest.raises(GameContractError, match=r"1000 chance nodes follow each other .*Reroll"):
        make(1, seed=1).run(Later())


def test_playouts_name_outcomes_that_play_refuses() -> None:
    """`play` checks `legal_actions()`, which lack an outcome, at chance nodes that playouts alone reach."""

    class Lacks(Race):
        def legal_actions(self) -> list[int]:
            legal = super().legal_actions()
            return [1, 2] if self.rolling and sum(self.places) >= 4 else legal

    with pytest.raises(GameContractError, match=r"legal_actions\(\) at a chance node is \[1, 2\]"):
        pondertree.UCT(2, seed=1).run(Lacks())
