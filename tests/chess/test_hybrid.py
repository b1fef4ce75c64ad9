"""`Hybrid` as its users see it: what it refuses, what a network may say, mates, nodes, doors, threads."""

from __future__ import annotations

import inspect
import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.test_hybrid import ENDGAME, MATE_IN_ONE, MIDDLEGAME, PRIORITIES, TACTICS, forced_mates, mirror
from tests.support.trees import PythonGame, after, every_node, fingerprint, random_position

import pondertree
from pondertree.chess import MoveCategory, Pesto, PestoPolicy, categorize, mate_search, mcts_search
from pondertree.chess.config import CATEGORY_WEIGHTS
from pondertree.errors import EvaluationError, GameOverError, InvalidArgumentError
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.random import fold

STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
CHECKMATE = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"
QUIET = (MoveCategory.KillerMove1, MoveCategory.KillerMove2, MoveCategory.HistoryHeuristic)


def even(state: Any) -> dict[Any, float]:
    return dict.fromkeys(state.legal_actions(), 1.0)


class Network:
    """A policy network: says what a function says, and notes where it was asked."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.asked: list[str] = []

    def evaluate(self, state: Any) -> Any:
        self.asked.append(state.fen())
        return self.function(state)


def drawn(state: Any) -> tuple[dict[int, float], float]:
    """Priors and a value that look random and depend on the moves alone."""
    legal = state.legal_actions()
    key = fold(7, sum(action * action for action in legal))
    return {action: 1.0 + fold(key, action) % 997 for action in legal}, key % 1009 / 1008


class Outside:
    """A `Pesto` that the engine does not know: asked in Python."""

    def __init__(self, pesto: Pesto) -> None:
        self.pesto = pesto

    def evaluate_states(self, states: Sequence[Any]) -> tuple[None, np.ndarray]:
        return None, self.pesto.values(states)


# --- What is refused ----------------------------------------------------------------------------------------------


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
        for door in (search.run, search.tree, search.search, lambda state, search=search: search.forest([state])):
            with pytest.raises(InvalidArgumentError, match="Hybrid searches only chess, not "):
                door(state)
    with pytest.raises(InvalidArgumentError, match="root_state is of the class"):
        mcts_search(state, iterations=5)
    with pytest.raises(InvalidArgumentError, match=r"states\[1\]"):
        pondertree.Hybrid(num_simulations=5).run([Chess(), state])


def test_hybrid_rejects_finished_game() -> None:
    for fen in (STALEMATE, CHECKMATE):
        with pytest.raises(GameOverError):
            pondertree.Hybrid().run(Chess(fen))


BROKEN: list[tuple[str, Callable[[Any], Any], str]] = [
    ("raises", lambda state: 1 // 0, "ZeroDivisionError at '"),
    ("value is NaN", lambda state: (even(state), math.nan), "the value nan at '"),
    ("value above 1", lambda state: (even(state), 1.001), "the value 1.001 at '"),
    ("value below 0", lambda state: (even(state), -0.5), "the value -0.5 at '"),
    ("negative prior", lambda state: (even(state) | {state.legal_actions()[0]: -1.0}, 0.5), "the prior -1.0 for"),
    ("prior is NaN", lambda state: (even(state) | {state.legal_actions()[0]: math.nan}, 0.5), "the prior nan for"),
    ("prior is infinite", lambda state: ({state.legal_actions()[0]: math.inf}, 0.5), "the prior inf for"),
    ("prior too large for a float32", lambda state: ({state.legal_actions()[0]: 1e300}, 0.5), r"the prior 1e\+300 for"),
    ("illegal action", lambda state: (even(state) | {4671: 0.1}, 0.5), "a prior for 4671 at '.*not legal"),
    ("two priors", lambda state: ({877: 0.1, state.action_to_string(877): 0.2}, 0.5), "two priors|not legal"),
    ("a value that is a bool", lambda state: (even(state), True), "must give.*True is not a number"),
    ("a value that is a text", lambda state: (even(state), "0.5"), "must give.*'0.5' is not a number"),
    ("no action", lambda state: ({4672: 1.0}, 0.5), "not legal"),
    ("illegal text", lambda state: ({"a1a8": 1.0}, 0.5), "not legal.*a1a8"),
    ("move of no kind", lambda state: ({(0, 1): 1.0}, 0.5), "not legal"),
    ("nothing", lambda state: None, r"must give \({move: prior}, value\), not None"),
    ("a value alone", lambda state: 0.5, "must give"),
    ("three things", lambda state: (even(state), 0.5, 0.5), "must give"),
    ("priors in a list", lambda state: ([1.0], 0.5), "the priors must be a dict"),
    ("a value in words", lambda state: (even(state), "even"), "must give"),
    ("a prior in words", lambda state: (dict.fromkeys(state.legal_actions(), "much"), 0.5), "must give"),
]


@pytest.mark.parametrize("in_flight", [1, 6])
@pytest.mark.parametrize(("function", "text"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_faulty_policy_network_raises_and_tree_survives(
    function: Callable[[Any], Any], text: str, in_flight: int
) -> None:
    """At a root or later, in the first row or the second: both trees are as before, and go on as if nothing was."""
    for simulations, row in itertools.product((0, 24), (0, 1)):
        network = Network(drawn)
        broken, whole = (
            pondertree.Hybrid(policy_network=one, in_flight=in_flight, seed=4).forest([Chess(MIDDLEGAME), Chess()])
            for one in (network, Network(drawn))
        )
        for forest in (broken, whole):
            forest.simulate(simulations)
        before = [fingerprint(result) for result in broken.results()]
        at = len(network.asked) + 1 + row

        def fails_once(state: Any, network: Network = network, at: int = at) -> Any:
            return function(state) if len(network.asked) == at else drawn(state)

        network.function = fails_once
        with pytest.raises(EvaluationError, match=f"(?s)Network.evaluate.*{text}"):
            broken.simulate(24)
        assert [fingerprint(result) for result in broken.results()] == before
        assert all(node.in_flight == 0 for result in broken.results() for node in every_node(result.root))
        for forest in (broken, whole):
            forest.simulate(24)
        assert [fingerprint(one) for one in broken.results()] == [fingerprint(one) for one in whole.results()]


def test_policy_network_exception_is_chained() -> None:
    with pytest.raises(EvaluationError) as caught:
        pondertree.Hybrid(policy_network=Network(lambda state: {}["missing"])).run(Chess())
    assert isinstance(caught.value.__cause__, KeyError)
    assert Chess().fen() in str(caught.value)


def test_interrupt_in_policy_network_rolls_back_batch() -> None:
    def interrupt(state: Any) -> Any:
        raise KeyboardInterrupt

    network = Network(drawn)
    tree = pondertree.Hybrid(policy_network=network, seed=2).tree(Chess(TACTICS)).simulate(20)
    before = fingerprint(tree.result())
    network.function = interrupt
    with pytest.raises(KeyboardInterrupt):
        tree.simulate(20)
    assert fingerprint(tree.result()) == before


# --- What a network says is done ----------------------------------------------------------------------------------


def test_missing_prior_is_zero() -> None:
    chess = pytest.importorskip("chess")
    for fen, moves in ((None, ("e2e4", "g1f3", "a2a3")), (after(Chess(), "e2e4").fen(), ("e7e5", "g8f6", "a7a6"))):
        state = Chess(fen)
        actions = [state.parse_action(move) for move in moves]
        forms = (actions, moves, [chess.Move.from_uci(move) for move in moves])
        for form in forms:

            def evaluate(at: Any, form: Any = form, fen: str = state.fen()) -> Any:
                return (dict(zip(form, (30.0, 20.0, 10.0), strict=True)), 0.75) if at.fen() == fen else ({}, 0.5)

            search = pondertree.Hybrid(policy_network=Network(evaluate), priority=None, num_simulations=40, seed=1)
            result = search.run(state)
            children = result.root.children
            assert sorted(children) == sorted(state.legal_actions())
            assert [children[action].prior for action in actions] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
            assert all(child.prior == 0.0 for action, child in children.items() if action not in actions)
            # Positions are all worth the same below, and a prior of 0 asks for nothing.
            assert {action for action in children if result.visits[action]} == set(actions)
            assert result.root.nn_value == 0.5, "0.75 of [0, 1] for the player to move, White or Black"
            # Without priors, all moves are alike.
            below = children[actions[0]]
            shares = [child.prior for child in below.children.values()]
            assert shares == pytest.approx([1.0 / len(shares)] * len(below.state.legal_actions()))
            assert below.nn_value == 0.0


def test_category_weights_multiply_network_priors() -> None:
    weights = (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5)
    state = Chess(TACTICS)
    options: dict[str, Any] = {"mate_search_depth": 0, "num_simulations": 1, "see_threshold": 50}
    root = (
        pondertree.Hybrid(policy_network=Network(drawn), priority="prior", category_weights=weights, **options)
        .run(state)
        .root
    )
    kinds, (plain, value) = categorize(state, see_threshold=50), drawn(state)
    total = sum(plain[action] * weights[kind] for action, kind in kinds.items())
    for action, child in root.children.items():
        assert child.category is kinds[action]
        assert child.prior == pytest.approx(plain[action] * weights[kinds[action]] / total, rel=1e-6)
    assert root.nn_value == 2.0 * value - 1.0


def test_policy_network_value_is_for_player_to_move() -> None:
    """A network that knows which side is better makes both sides choose what it likes."""
    for fen, good in ((None, "e2e4"), (after(Chess(), "e2e4").fen(), "e7e5")):
        state = Chess(fen)
        liked = state.play(state.parse_action(good)).fen()

        def evaluate(at: Any, liked: str = liked) -> Any:
            return {}, 0.1 if at.fen() == liked else 0.5

        for priority in PRIORITIES:
            search = pondertree.Hybrid(
                policy_network=Network(evaluate), priority=priority, mate_search_depth=0, num_simulations=120, seed=3
            )
            result = search.run(state)
            assert result.move == good
            assert result.q[result.action] > 0.0


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


# --- PeSTO inside and outside -------------------------------------------------------------------------------------

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
            SEARCHES[name](one, in_flight=in_flight, seed=6).run(states) for one in (pesto, Outside(pesto))
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
        outside = pondertree.Hybrid(Outside(pesto), **options).run(Chess(MIDDLEGAME))
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


# --- Mates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_root_mate_is_played_without_simulations(priority: str | None, solve: bool) -> None:
    network = Network(drawn)
    for moves, fens in ((1, [MATE_IN_ONE]), (2, forced_mates(2)[:8]), (3, forced_mates(3)[:8])):
        for fen in fens:
            for state in (Chess(fen), Chess(mirror(fen))):
                search = pondertree.Hybrid(policy_network=network, priority=priority, solve=solve)
                result = search.run(state)
                assert (result.proven, result.value, result.simulations) == (1, 1.0, 0)
                assert result.root.distance == 2 * moves - 1
                assert result.policy[result.action] == 1.0
                following = state.play(result.action)
                if moves == 1:
                    assert following.termination == "checkmate"
                else:
                    answer = mate_search(following, moves)
                    assert (answer.kind, answer.n) == ("mated_in", moves - 1), "the shortest there is"
                child = result.root.children[result.action]
                assert child.category is (None if priority is None else MoveCategory.ForcedMate)
                assert (child.proven, child.distance) == (-1, 2 * moves - 2)
                assert child.terminal_or_mate_value == -1.0
                assert result.root.terminal_or_mate_value == 1.0
                assert (child.nn_value, result.root.nn_value) == (None, None)
    assert network.asked == []


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_lost_root_plays_longest_defence(priority: str | None, solve: bool) -> None:
    shorter = 0
    for fen in forced_mates(3)[:10]:
        for start in (Chess(fen), Chess(mirror(fen))):
            state = start.play(mate_search(start, 3).action or 0)
            result = pondertree.Hybrid(priority=priority, solve=solve).run(state)
            lasts = {action: mate_search(state.play(action), 3).n or 0 for action in state.legal_actions()}
            assert (result.proven, result.value, result.simulations) == (-1, -1.0, 0)
            assert lasts[result.action] == max(lasts.values()) == 2
            assert result.root.distance == 4
            assert {child.category for child in result.root.children.values()} == {None}, "it was never asked"
            assert {action: child.distance for action, child in result.root.children.items()} == {
                action: 2 * moves - 1 for action, moves in lasts.items()
            }
            shorter += min(lasts.values()) < 2
    assert shorter > 3, "there was something to choose"


@pytest.mark.parametrize("priority", PRIORITIES)
def test_mate_is_played_to_checkmate(priority: str | None) -> None:
    """Both sides of it, in a tree that is kept."""
    for fen in forced_mates(3)[:4]:
        for state in (Chess(fen), Chess(mirror(fen))):
            tree = pondertree.Hybrid(priority=priority).tree(state)
            for distance in (5, 4, 3, 2, 1):
                result = tree.simulate(20).result()
                assert (result.root.distance, result.simulations) == (distance, 0)
                state = state.play(result.action)
                if distance > 1:
                    tree.advance(result.action)
            assert state.termination == "checkmate"


@pytest.mark.parametrize("priority", PRIORITIES)
def test_mate_in_one_found_without_mate_search(priority: str | None) -> None:
    for state in (Chess(MATE_IN_ONE), Chess(mirror(MATE_IN_ONE))):
        mate = next(a for a in state.legal_actions() if state.play(a).termination == "checkmate")
        options: dict[str, Any] = {"mate_search_depth": 0, "priority": priority, "seed": 5}
        counted = pondertree.Hybrid(solve=False, num_simulations=300, **options).run(state)
        assert counted.visits.argmax() == counted.action == mate
        assert (counted.proven, counted.simulations) == (None, 300)
        solved = pondertree.Hybrid(num_simulations=300, **options).run(state)
        assert (solved.action, solved.proven) == (mate, 1)
        assert 0 < solved.simulations < 300
        # Whoever is mated, never a static score.
        child = counted.root.children[mate]
        assert child.is_terminal
        assert (child.nn_value, child.terminal_or_mate_value, child.q_value) == (None, -1.0, -1.0)


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_mate_threat_is_parried(priority: str | None, solve: bool) -> None:
    """Moves after which the other side mates in one are proven to lose, or tried little; the answer is none of them."""
    threat = "r1bqkbnr/1ppp1ppp/p1n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 1 3"
    for state in (Chess(threat), Chess(mirror(threat))):
        losing = {a for a in state.legal_actions() if mate_search(state.play(a), 1).kind == "mate_in"}
        assert 0 < len(losing) < len(state.legal_actions())
        for depth in (0, 1, 3):
            search = pondertree.Hybrid(
                mate_search_depth=depth, priority=priority, solve=solve, num_simulations=1500, seed=2
            )
            result = search.run(state)
            assert result.action not in losing
            if depth and solve:
                tried = [result.root.children[action] for action in losing if result.visits[action]]
                assert tried or priority != "strict"
                assert all(child.proven == 1 for child in tried)


# --- What a search must always satisfy ------------------------------------------------------------------------------

OPTIONS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PRIORITIES),
        "mate_search_depth": st.integers(0, 3),
        "exploration_constant": st.sampled_from([0.0, 0.5, 1.5, 5.0]),
        "see_threshold": st.sampled_from([0, 100, 5000]),
        "fpu": st.sampled_from([0.0, -1.0, ("parent", 0.2)]),
        "quiescence": st.booleans(),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 2, 7]),
        "seed": st.integers(0, 2**64 - 1),
    }
)


@settings(max_examples=50)
@given(
    options=OPTIONS,
    plies=st.integers(0, 90),
    game=st.integers(0, 10**6),
    simulations=st.integers(1, 250),
    network=st.sampled_from([None, None, drawn]),
)
def test_tree_invariants_hold_for_random_settings(
    options: dict[str, Any], plies: int, game: int, simulations: int, network: Any
) -> None:
    state = random_position(Chess, plies, game)
    fen, legal = state.fen(), state.legal_actions()
    by = {} if network is None else {"policy_network": Network(network)}
    result = pondertree.Hybrid(num_simulations=simulations, **by, **options).run(state)
    assert (state.fen(), state.legal_actions()) == (fen, legal)
    assert result.action in legal
    assert result.policy.sum() == pytest.approx(1.0)
    assert not np.isnan(result.policy).any()
    assert result.visits.sum() == result.simulations
    assert result.simulations == simulations or result.proven is not None
    assert abs(result.value) <= 1.0
    assert result.root.visit_count == (result.simulations + 1 if result.root.nn_value is not None else 0)
    for node in every_node(result.root):
        check_node(node, options)
    again = pondertree.Hybrid(num_simulations=simulations, threads=2, **by, **options).run(state)
    assert fingerprint(again) == fingerprint(result)


def check_node(node: pondertree.Node, options: dict[str, Any]) -> None:
    assert node.in_flight == 0
    assert abs(node.total_value) <= node.visit_count
    assert abs(node.q_value) <= 1.0
    below = sum(child.visit_count for child in node.children.values())
    exact = node.terminal_or_mate_value
    if node.visit_count == 0:
        # Never tried, or decided by mate search at the root.
        assert node.nn_value is None
        assert not node.children or (node.parent is None and exact is not None)
    elif node.nn_value is None:
        assert exact is not None, "only what is exact is never evaluated"
        assert (len(node.children), node.total_value) == (0, exact * node.visit_count)
    else:
        assert not node.state.is_terminal
        assert -1.0 <= node.nn_value <= 1.0
        assert sorted(node.children) == sorted(node.state.legal_actions())
        assert sum(child.prior for child in node.children.values()) == pytest.approx(1.0, abs=1e-5)
        assert node.visit_count == 1 + below or (exact is not None and node.visit_count > below)
    if node.proven is not None and not node.is_terminal:
        assert node.distance is not None
        if node.distance <= 3:
            answer = mate_search(node.state, 2)
            kind = {1: "mate_in", -1: "mated_in"}.get(node.proven, answer.kind)
            assert answer.kind == kind, "a mate that is claimed is one"
    check_categories(node, options)


def check_categories(node: pondertree.Node, options: dict[str, Any]) -> None:
    """They are those of `categorize`; what was learned may make a quiet move a killer, or one of a good history."""
    if options["priority"] is None or node.nn_value is None:
        assert options["priority"] is not None or node.category is None
        return
    plain = categorize(node.state, see_threshold=options["see_threshold"])
    for action, child in node.children.items():
        kinds = {plain[action]}
        if plain[action] in (MoveCategory.Check, MoveCategory.OtherQuiet) and node.parent is not None:
            kinds |= set(QUIET[: 2 if plain[action] is MoveCategory.Check else 3])
        if node.parent is None and child.proven == -1:
            kinds.add(MoveCategory.ForcedMate)
        assert child.category in kinds
    tried = [child for child in node.children.values() if child.visit_count]
    if options["priority"] == "strict" and len(tried) < len(node.children):
        # Not all of them are tried yet, so that their order is that of their kinds.
        assert [child.category for child in node.children.values()] == sorted(
            child.category for child in node.children.values() if child.category is not None
        )
        assert all(child.visit_count <= 1 for child in tried)


@pytest.mark.parametrize("priority", PRIORITIES[:3])
def test_root_categories_match_categorize(priority: str) -> None:
    for fen in (None, TACTICS, mirror(TACTICS), MIDDLEGAME, ENDGAME):
        for threshold in (0, 120):
            search = pondertree.Hybrid(
                priority=priority, see_threshold=threshold, mate_search_depth=0, num_simulations=300, seed=1
            )
            tree = search.tree(Chess(fen)).simulate(300)
            root = tree.result().root
            kinds = categorize(Chess(fen), see_threshold=threshold)
            assert {action: child.category for action, child in root.children.items()} == kinds
            assert root.category is None
            assert root.nn_value == Pesto().value(Chess(fen))
            for child in root.children.values():
                expected = Pesto().value(child.state) if child.visit_count and not child.is_terminal else None
                assert child.nn_value == expected
            # A root that was kept has the kinds it got as a leaf.
            tree.advance(tree.result().action)
            for action, child in tree.result().root.children.items():
                assert isinstance(child.category, MoveCategory)
                assert action in child.parent.state.legal_actions()  # type: ignore[union-attr]


def test_nodes_of_other_searches_have_no_category() -> None:
    for search in (
        pondertree.Hybrid(priority=None, num_simulations=20),
        pondertree.AlphaZero(Pesto(), 20),
        pondertree.UCT(20),
    ):
        assert all(node.category is None for node in every_node(search.run(Chess(TACTICS)).root))


def test_strict_and_tactical_select_in_category_order_before_scores() -> None:
    state = Chess(TACTICS)
    kinds = categorize(state)
    promising = sum(kind <= MoveCategory.Check for kind in kinds.values())
    for priority, first in (("strict", len(kinds)), ("tactical", promising)):
        search = pondertree.Hybrid(priority=priority, mate_search_depth=0, num_simulations=first + 1, trace=True)
        tree = search.tree(state).simulate(first + 1)
        rows = tree.trace()
        opened = [kinds[row["path"][0]] for row in rows[:first]]
        assert opened == sorted(opened)
        assert all(row["scores"] == [None] for row in rows[:first])
        assert rows[first]["scores"][0] is not None
        assert len(rows[first]["scores"][0]) == len(kinds)
    for other in ("prior", None):
        tree = pondertree.Hybrid(priority=other, mate_search_depth=0, trace=True).tree(state).simulate(50)
        assert all(scores is not None for row in tree.trace() for scores in row["scores"])


# --- The same twice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_flight", [1, 8])
@pytest.mark.parametrize("network", [None, drawn])
def test_tree_is_independent_of_threads(network: Any, in_flight: int) -> None:
    states = [Chess(fen) for fen in (None, TACTICS, MIDDLEGAME)]
    for priority in PRIORITIES:
        by = {} if network is None else {"policy_network": Network(network)}
        options: dict[str, Any] = {"priority": priority, "in_flight": in_flight, "num_simulations": 150, "seed": 1}
        alone, many = (
            [fingerprint(result) for result in pondertree.Hybrid(threads=threads, **by, **options).run(states)]
            for threads in (1, 3)
        )
        assert alone == many
        one, two = (pondertree.Hybrid(threads=n, **by, **options).run(states[1], seeds=5) for n in (1, 2))
        assert fingerprint(one) == fingerprint(two)


def test_results_equal_across_processes() -> None:
    program = (
        "import pondertree; from pondertree.games import Chess\n"
        f"r = pondertree.Hybrid(num_simulations=400, in_flight=4, threads=2, seed=3).run(Chess({MIDDLEGAME!r}))\n"
        "print(r.action, r.value.hex(), r.visits.nonzero()[0].tolist(), r.visits[r.visits > 0].tolist())"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8").stdout
    here = pondertree.Hybrid(num_simulations=400, in_flight=4, seed=3).run(Chess(MIDDLEGAME))
    expected = [here.action, here.value.hex(), here.visits.nonzero()[0].tolist(), here.visits[here.visits > 0].tolist()]
    assert printed.strip() == " ".join(map(str, expected))


def test_random_numbers_differ_between_rows_and_calls() -> None:
    """All moves of the start are alike without kinds: which comes first is drawn."""
    search = pondertree.Hybrid(
        policy_network=Network(lambda state: ({}, 0.5)), priority=None, num_simulations=3, seed=1
    )
    rows = [tuple(result.visits.nonzero()[0]) for _ in range(2) for result in search.run([Chess()] * 8)]
    assert len(set(rows)) > 8


# --- Doors ----------------------------------------------------------------------------------------------------------


def test_mcts_search_returns_move_under_each_limit() -> None:
    state = Chess(MATE_IN_ONE)
    assert mcts_search(state, iterations=1) == state.parse_action("h5f7")
    assert mcts_search(state, PestoPolicy(), 0, 200, seed=1) == state.parse_action("h5f7")
    assert mcts_search(Chess(), iterations=10) in Chess().legal_actions()
    for limit in (0.02, timedelta(milliseconds=20)):
        assert mcts_search(Chess(), time_limit=limit) in Chess().legal_actions()
    for fen in (STALEMATE, CHECKMATE):
        assert mcts_search(Chess(fen), iterations=10) is None
    settings = {"policy_network": Network(drawn), "num_simulations": 60, "mate_search_depth": 2, "seed": 9}
    expected = pondertree.Hybrid(**settings, priority="strict")
    found = mcts_search(Chess(TACTICS), Network(drawn), 2, iterations=60, seed=9)
    assert found == expected.run(Chess(TACTICS)).action


def test_mcts_search_needs_a_limit() -> None:
    for state in (Chess(), Chess(STALEMATE)):
        with pytest.raises(ValueError, match="needs a limit"):
            mcts_search(state)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"iterations": -5}, "iterations must be at least 1"),
        ({"iterations": 2.5}, "iterations must be a whole number"),
        ({"time_limit": 0.0}, "time_limit must be above 0"),
        ({"time_limit": timedelta(seconds=-1)}, "time_limit must be above 0"),
        ({"time_limit": math.nan}, "time_limit must be a finite number"),
        ({"iterations": 5, "mate_search_depth": -1}, "mate_search_depth must be at least 0"),
        ({"iterations": 5, "policy_network": object()}, "policy_network is object"),
        ({"iterations": 5, "priority": "loose"}, "priority must be"),
    ],
)
def test_mcts_search_rejects_invalid_arguments(arguments: dict[str, Any], text: str) -> None:
    for state in (Chess(), Chess(STALEMATE)):
        with pytest.raises(InvalidArgumentError, match=text):
            mcts_search(state, **arguments)


def test_python_chess_boards_return_chess_moves() -> None:
    chess = pytest.importorskip("chess")
    from pondertree.chess import ChessGame

    for fen, moves in ((MATE_IN_ONE, {"h5f7"}), (mirror(MATE_IN_ONE), {"h4f2"})):
        board = chess.Board(fen)
        for position in (board, ChessGame(board)):
            assert mcts_search(position, iterations=5) in map(chess.Move.from_uci, moves)
            assert pondertree.Hybrid().search(position) in map(chess.Move.from_uci, moves)
        assert board.fen() == chess.Board(fen).fen()
        assert board.move_stack == []
    assert mcts_search(chess.Board(STALEMATE), iterations=5) is None
    board = chess.Board(MIDDLEGAME)
    search = pondertree.Hybrid(num_simulations=100, seed=1)
    assert fingerprint(search.run(board, seeds=1)) == fingerprint(search.run(Chess(MIDDLEGAME), seeds=1))
    tree = search.tree(board).simulate(50)
    move = chess.Move.from_uci(tree.result().move)
    tree.advance(move)
    board.push(move)
    assert tree.state.fen() == Chess(board.fen()).fen()
    assert tree.simulate(50).result().action in tree.state.legal_actions()


def test_board_history_counts_for_repetition() -> None:
    """White is a queen down. With the history, moving back is a draw by repetition; without it, just a move."""
    chess = pytest.importorskip("chess")
    board = chess.Board("6k1/5pp1/7p/8/8/8/1q3PPP/4R1K1 w - - 0 1")
    for move in ["e1e8", "g8h7", "e8e1", "h7g8", "e1e8", "g8h7", "e8e1", "h7g8"]:
        board.push_uci(move)
    again = Chess(board.fen()).parse_action("e1e8")
    with_history = pondertree.Hybrid(num_simulations=300, seed=1).run(board)
    without = pondertree.Hybrid(num_simulations=300, seed=1).run(chess.Board(board.fen()))
    assert with_history.root.children[again].terminal_or_mate_value == 0.0
    assert without.root.children[again].terminal_or_mate_value is None


# --- Limits ---------------------------------------------------------------------------------------------------------


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
