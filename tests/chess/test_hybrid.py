"""`Hybrid`: options, evaluators, limits."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.support.hybrid import ENDGAME, MIDDLEGAME, PRIORITIES, TACTICS, forced_mates, mirror
from tests.support.policy_networks import PythonPesto
from tests.support.search_helpers import PythonGame, fingerprint

import pondertree
from pondertree.chess import Pesto, PestoPolicy, mate_search, mcts_search
from pondertree.chess.config import CATEGORY_WEIGHTS
from pondertree.errors import EvaluationError, GameOverError, InvalidArgumentError
from pondertree.games import Chess, ConnectFour, TicTacToe

STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"


CHECKMATE = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"


def test_hybrid_parameters_match_specification() -> None:
    names = list(inspect.signature(pondertree.Hybrid).parameters)
    assert names[:8] == [
        "evaluator",
        "policy_network",
        "num_simulations",
        "mate_search_depth",
        "exploration_constant",
        "priority",
        "see_threshold",
        "quiescence",
    ]
    search = pondertree.Hybrid()
    assert (search.num_simulations, search.see_threshold, search.quiescence) == (1000, 0, True)
    assert search.priority in PRIORITIES
    assert search.category_weights == CATEGORY_WEIGHTS
    assert pondertree.Hybrid(time_limit=0.1).num_simulations is None
    assert "Hybrid(" in repr(search)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"mate_search_depth": -1}, "mate_search_depth must be at least 0"),
    ({"mate_search_depth": 65}, "mate_search_depth must be at most 64"),
    ({"mate_search_depth": 10**30}, "mate_search_depth must be at most 64"),
    ({"mate_search_depth": 2.5}, "mate_search_depth must be a whole number"),
    ({"mate_search_depth": True}, "mate_search_depth must be a whole number"),
    ({"mate_search_depth": None}, "mate_search_depth must be a whole number"),
    ({"exploration_constant": math.nan}, "exploration_constant must be a finite number"),
    ({"exploration_constant": math.inf}, "exploration_constant must be a finite number"),
    ({"exploration_constant": -1.0}, "exploration_constant must be at least 0"),
    ({"exploration_constant": "1"}, "exploration_constant must be a number"),
    ({"priority": "loose"}, "priority must be"),
    ({"priority": True}, "priority must be"),
    ({"priority": ["strict"]}, "priority must be"),
    ({"see_threshold": -1}, "see_threshold must be at least 0"),
    ({"see_threshold": 0.5}, "see_threshold must be a whole number"),
    ({"see_threshold": math.nan}, "see_threshold must be a whole number"),
    ({"see_threshold": 20_001}, "see_threshold must be at most 20000"),
    ({"category_weights": [1.0] * 9}, "category_weights must be 10 numbers"),
    ({"category_weights": [1.0] * 11}, "category_weights must be 10 numbers"),
    ({"category_weights": 2.0}, "category_weights must be 10 numbers"),
    ({"category_weights": "0123456789"}, "category_weights must be 10 numbers"),
    ({"category_weights": [*[1.0] * 9, 0.0]}, r"category_weights\[9\] must be above 0"),
    ({"category_weights": [-1.0, *[1.0] * 9]}, r"category_weights\[0\] must be above 0"),
    ({"category_weights": [1.0, math.nan, *[1.0] * 8]}, r"category_weights\[1\] must be a finite number"),
    ({"category_weights": [1.0, math.inf, *[1.0] * 8]}, r"category_weights\[1\] must be a finite number"),
    ({"category_weights": [*[1.0] * 9, "1"]}, r"category_weights\[9\] must be a number"),
    ({"quiescence": 1}, "quiescence must be True or False"),
    ({"fpu": math.nan}, "fpu must be a finite number"),
    ({"fpu": ("sibling", 0.1)}, "fpu must be a number or"),
    ({"evaluator": Pesto(), "policy_network": PestoPolicy()}, "evaluator and policy_network exclude"),
    ({"evaluator": 3}, "evaluator is 3"),
    ({"policy_network": object()}, "policy_network is object"),
    ({"evaluator": PestoPolicy()}, "PestoPolicy is a policy network: give it as policy_network"),
    ({"policy_network": PestoPolicy}, "policy_network is the class PestoPolicy"),
    ({"policy_network": lambda state: ({}, 0.5)}, "policy_network is function"),
    ({"num_simulations": 0}, "num_simulations must be at least 1"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_invalid_settings_raise_naming_option(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        pondertree.Hybrid(**arguments)


@pytest.mark.parametrize("state", [ConnectFour(), TicTacToe(), PythonGame(Chess()), PythonGame(ConnectFour())])
def test_hybrid_rejects_other_games(state: Any) -> None:
    for policy in (None, PestoPolicy()):
        search = pondertree.Hybrid(policy_network=policy, num_simulations=5)
        for method in (search.run, search.tree, search.search, lambda state, search=search: search.forest([state])):
            with pytest.raises(InvalidArgumentError, match="Hybrid searches only chess, not "):
                method(state)
    with pytest.raises(InvalidArgumentError, match="root_state is of the class"):
        mcts_search(state, iterations=5)
    with pytest.raises(InvalidArgumentError, match=r"states\[1\]"):
        pondertree.Hybrid(num_simulations=5).run([Chess(), state])


def test_hybrid_rejects_finished_game() -> None:
    for fen in (STALEMATE, CHECKMATE):
        with pytest.raises(GameOverError):
            pondertree.Hybrid().run(Chess(fen))


def test_hybrid_accepts_any_evaluator() -> None:
    def function(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.zeros((len(observations), 4672), dtype=np.float32)
        logits[:, 877] = 3.0
        return logits, np.full(len(observations), 0.25)

    state = Chess()
    root = pondertree.Hybrid(function, num_simulations=30, priority=None, seed=1).run(state).root
    assert root.nn_value == 0.25
    assert max(root.children.values(), key=lambda child: child.prior).action == 877
    with pytest.raises(EvaluationError, match="values of row 0 are nan"):
        pondertree.Hybrid(lambda batch: (None, [math.nan] * len(batch)), num_simulations=3).run(state)
    with pytest.raises(EvaluationError, match="raised ZeroDivisionError"):
        pondertree.Hybrid(lambda batch: 1 // 0, num_simulations=3).run(state)


SEARCHES: dict[str, Callable[..., pondertree.search.base.Search]] = {
    "AlphaZero": lambda evaluator, **options: pondertree.AlphaZero(evaluator, 120, **options),
    "UCT": lambda evaluator, **options: pondertree.UCT(120, evaluator=evaluator, **options),
    "Gumbel": lambda evaluator, **options: pondertree.Gumbel(evaluator, 64, **options),
    "Hybrid": lambda evaluator, **options: pondertree.Hybrid(
        evaluator, num_simulations=120, move_scores="learned", **options
    ),
}


@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize("name", SEARCHES)
def test_compiled_pesto_matches_python_evaluator(name: str, in_flight: int) -> None:
    states = [Chess(fen) for fen in (None, TACTICS, mirror(TACTICS), MIDDLEGAME, ENDGAME)]
    for pesto in (Pesto(), Pesto(quiescence=False), Pesto(queen_value=(100, 100), scale=90.0)):
        inside, outside = (
            SEARCHES[name](one, in_flight=in_flight, seed=6).run(states) for one in (pesto, PythonPesto(pesto))
        )
        for one, other in zip(inside, outside, strict=True):
            assert one.visits.tolist() == other.visits.tolist()
            assert fingerprint(one) == fingerprint(other)
    usual = SEARCHES[name](Pesto(), in_flight=in_flight, seed=6).run(states)
    assert [one.visits.tolist() for one in inside] != [one.visits.tolist() for one in usual]


def test_pesto_policy_matches_pesto() -> None:
    for quiescence, weights in itertools.product((True, False), (None, Pesto(tempo_bonus=(50, 50)))):
        policy = PestoPolicy(weights, quiescence=quiescence)
        pesto = Pesto(quiescence=quiescence) if weights is None else Pesto(tempo_bonus=(50, 50), quiescence=quiescence)
        options: dict[str, Any] = {"num_simulations": 150, "seed": 8, "move_scores": "learned"}
        inside = pondertree.Hybrid(policy_network=policy, **options).run(Chess(MIDDLEGAME))
        outside = pondertree.Hybrid(PythonPesto(pesto), **options).run(Chess(MIDDLEGAME))
        assert fingerprint(inside) == fingerprint(outside)
        assert inside.root.nn_value == pesto.value(Chess(MIDDLEGAME))
        assert policy.evaluate(Chess(MIDDLEGAME))[1] == pytest.approx((pesto.value(Chess(MIDDLEGAME)) + 1.0) / 2.0)


def test_quiescence_requires_both_settings() -> None:
    state = Chess(TACTICS)
    static, quiet = Pesto(quiescence=False).value(state), Pesto().value(state)
    assert static != quiet
    for search, expected in (
        (pondertree.Hybrid(), quiet),
        (pondertree.Hybrid(quiescence=False), static),
        (pondertree.Hybrid(Pesto(quiescence=False)), static),
        (pondertree.Hybrid(Pesto(), quiescence=False), static),
        (pondertree.Hybrid(policy_network=PestoPolicy()), static),
        (pondertree.Hybrid(policy_network=PestoPolicy(quiescence=True)), quiet),
    ):
        assert search.tree(state).simulate(1).result().root.nn_value == expected


def test_pesto_subclass_is_evaluated_in_python() -> None:
    class Contrary(Pesto):
        def values(self, states: Sequence[Any]) -> Any:
            return -super().values(states)

    state = Chess(MIDDLEGAME)
    root = pondertree.Hybrid(Contrary(), num_simulations=2).run(state).root
    assert root.nn_value == -Pesto().value(state) != 0.0


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@pytest.mark.parametrize("priority", PRIORITIES)
def test_full_tree_still_returns_result(priority: str | None) -> None:
    mating = Chess(forced_mates(3)[0])
    lost = mating.play(mate_search(mating, 3).action or 0)
    for most in (1, 2, 5, 40):
        for state in (Chess(TACTICS), mating, lost):
            result = pondertree.Hybrid(max_nodes=most, priority=priority, num_simulations=200, seed=1).run(state)
            assert result.action in state.legal_actions()
            assert result._view.positions <= most
            assert sum(child.visit_count for child in result.root.children.values()) == result.simulations


def test_time_limit_is_kept() -> None:
    result = pondertree.Hybrid(time_limit=0.1, in_flight=8, threads=2).run(Chess(MIDDLEGAME))
    assert result.simulations > 0
    assert result.elapsed < 2.0


def test_evaluator_as_policy_network_is_used_as_evaluator() -> None:
    pesto = Pesto()
    given = pondertree.Hybrid(policy_network=pesto, num_simulations=50, seed=1)
    assert given.evaluator is pesto
    assert (given.run(Chess()).visits == pondertree.Hybrid(pesto, num_simulations=50, seed=1).run(Chess()).visits).all()
