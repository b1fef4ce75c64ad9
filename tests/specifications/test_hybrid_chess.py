"""Hybrid chess: goals, move categories, `PestoEval`, `PolicyNetwork` and trainable weights."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.specifications.positions import (
    BLACK_TO_MOVE,
    MATE_IN_ONE,
    MATE_IN_TWO,
    MIDDLEGAME,
    QUIET,
)
from tests.specifications.support import RecordedPolicy, hybrid_tree, walk
from tests.support.tuning import drawn_by, random_fens

import pondertree
from pondertree.chess import (
    MoveCategory,
    Pesto,
    PestoEval,
    PestoPolicy,
    PolicyNetwork,
    categorize,
    see,
)
from pondertree.chess.weights import DEFAULTS
from pondertree.cli import main
from pondertree.games import Chess
from pondertree.reference import hybrid
from pondertree.reference.hybrid import MctsNode

# --- 1. Goals, 2. Background, 3. Proposed Changes -----------------------------------------------------------------


def test_goal_tree_search_plays_chess() -> None:
    state: Any = Chess()
    for _ in range(6):
        result = pondertree.Hybrid(num_simulations=50, seed=1).run(state)
        assert result.visits.sum() == 50
        state = state.play(result.action)


@pytest.mark.parametrize("name", DEFAULTS)
def test_weight_is_a_field_that_the_evaluation_uses(name: str) -> None:
    """Every weight can be given, and another number gives another score on some position."""

    def more(value: Any) -> Any:
        if isinstance(value[0], tuple):
            return tuple(map(more, value))
        return tuple(weight + 7 * place for place, weight in enumerate(value, start=1))

    usual = Pesto()
    changed = dataclasses.replace(usual, **{name: more(getattr(usual, name))})
    states = [Chess(fen) for fen in random_fens(60)]
    assert list(map(changed.eval, states)) != list(map(usual.eval, states))
    assert Pesto() == usual, "nothing global has changed"


def test_goal_mate_search_comes_first() -> None:
    """A mate at the root is answered without one call of the policy network."""
    policy = RecordedPolicy()
    state = Chess(MATE_IN_TWO)
    for search in (pondertree.Hybrid(policy_network=policy), hybrid.MCTS(policy_network=policy)):
        result = search.run(state)
        assert (result.proven, result.value) == (1, 1.0)
    assert policy.evaluated == []


def test_goal_selection_goes_by_category_before_puct() -> None:
    state = Chess(MIDDLEGAME)
    kinds = categorize(state)
    search = pondertree.Hybrid(priority="strict", mate_search_depth=0, trace=True, seed=1)
    tree = search.tree(state)
    tree.simulate(len(kinds))
    assert [row["scores"] for row in tree.trace()] == [[None]] * len(kinds)
    opened = [kinds[row["path"][0]] for row in tree.trace()]
    assert opened == sorted(opened)
    assert len(set(opened)) > 3


def test_goal_policy_network_gives_priors_and_pesto_policy_is_uniform() -> None:
    assert isinstance(PestoPolicy(), PolicyNetwork)
    root = pondertree.Hybrid(policy_network=PestoPolicy(), num_simulations=60, priority=None).run(Chess()).root
    assert [child.prior for child in root.children.values()] == pytest.approx([1 / 20] * 20)


def test_implementation_is_modular() -> None:
    """Node, mate search, killers and policy are modules of their own; the search imports them."""
    for module, name in [
        ("hybrid_node", "MctsNode"),
        ("hybrid_knowledge", "search_mate"),
        ("hybrid_knowledge", "HistoryTable"),
        ("priors", "MovePriors"),
    ]:
        part = importlib.import_module(f"pondertree.reference.{module}")
        assert getattr(part, name).__module__ == part.__name__
        assert getattr(hybrid, name) is getattr(part, name)


def test_leaf_value_is_pestos_after_quiescence() -> None:
    """V(s) is the linear evaluation: another weight gives another value, without any network."""
    state = Chess(MIDDLEGAME)
    given: list[dict[str, Any]] = [{}, {"queen_value": (500, 500)}]
    for weights in given:
        quiet, static = (Pesto(quiescence=quiescence, **weights) for quiescence in (True, False))
        values = [
            pondertree.Hybrid(pesto, num_simulations=1, mate_search_depth=0, quiescence=quiescence).run(state).root
            for pesto, quiescence in ((quiet, True), (static, False))
        ]
        assert [root.nn_value for root in values] == pytest.approx([quiet.value(state), static.value(state)])
        assert quiet.value(state) != static.value(state)
        assert static.value(state) == pytest.approx(math.tanh(static.eval(state) / static.scale / 2))


def test_mate_results_and_categories_guide_the_search() -> None:
    state = Chess(MATE_IN_ONE)
    result = pondertree.Hybrid(num_simulations=40, mate_search_depth=1, solve=False, seed=1).run(state)
    mate = state.parse_action("h5f7")
    assert result.action == mate
    assert result.root.children[mate].category == MoveCategory.ForcedMate


def test_pesto_weights_are_fields_of_the_object() -> None:
    one, other = PestoEval(two_bishops_bonus=(30, 50)), PestoEval()
    assert one.two_bishops_bonus == (30, 50) != other.two_bishops_bonus
    assert set(DEFAULTS) <= {field.name for field in dataclasses.fields(PestoEval)}


def test_mate_search_runs_before_the_policy_network() -> None:
    """Positions with a mate found by mate search are never evaluated by the network."""
    policy = RecordedPolicy()
    search = hybrid.MCTS(policy_network=policy, mate_search_depth=2, solve=False, endings=False, root_depth=0)
    tree = search.tree(Chess("6k1/5ppp/8/8/8/8/5PPP/R5K1 b - - 0 1"))
    search.simulate(tree, 120)
    found = [child for child in walk(tree.root) if child.mate is not None]
    assert found
    assert not {node.state.fen() for node in found} & set(policy.evaluated)
    assert len(policy.evaluated) > 10


def test_backpropagation_handles_exact_and_estimated_values() -> None:
    root = MctsNode.new_root(Chess(MATE_IN_ONE))
    root.store_priors_and_categorize_moves(PestoPolicy().evaluate(root.state)[0])
    mated, other = (root.add_child(root.state.parse_action(move)) for move in ("h5f7", "a2a3"))
    mated.backpropagate(-1.0)
    other.backpropagate(0.25)
    assert (mated.total_value, other.total_value) == (-1.0, 0.25)
    assert (root.visits, root.total_value) == (2, 1.0 - 0.25)


# --- 4.1. MoveCategory --------------------------------------------------------------------------------------------


CATEGORIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ForcedMate": (MATE_IN_ONE, "h5f7", {}),
    "PromotionToQueen": ("8/P7/8/8/8/6k1/8/7K w - - 0 1", "a7a8q", {}),
    "WinningCapture": ("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1", "e4d5", {}),
    "KillerMove1": (QUIET, "g1f3", {"killers": ("g1f3", "b1c3")}),
    "KillerMove2": (QUIET, "b1c3", {"killers": ("g1f3", "b1c3")}),
    "EqualCapture": ("4k3/8/4p3/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", {}),
    "Check": ("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", "a1a8", {}),
    "HistoryHeuristic": (QUIET, "g1f3", {"history": {"g1f3": 3.0}}),
    "OtherQuiet": (QUIET, "a2a3", {}),
    "LosingCapture": ("4k3/8/4p3/3p4/8/8/8/3QK3 w - - 0 1", "d1d5", {}),
}


def test_lower_category_is_explored_earlier() -> None:
    assert list(MoveCategory) == sorted(MoveCategory)
    assert MoveCategory.ForcedMate < MoveCategory.WinningCapture < MoveCategory.LosingCapture
    root = hybrid_tree(MIDDLEGAME, len(Chess(MIDDLEGAME).legal_actions())).root
    opened = [root.categories[action] for action in root.children]
    assert opened == sorted(opened)


def test_categories_compare_and_hash() -> None:
    check: Any = MoveCategory.Check
    assert {check: 1}[MoveCategory(6)] == 1
    assert check == MoveCategory.Check
    assert check != MoveCategory.OtherQuiet
    assert "Check" in repr(check)
    assert max(MoveCategory) is MoveCategory.LosingCapture


@pytest.mark.parametrize(("name", "priority"), [(name, number) for number, name in enumerate(CATEGORIES)])
def test_category_has_its_priority_and_its_moves(name: str, priority: int) -> None:
    fen, move, known = CATEGORIES[name]
    state = Chess(fen)
    given: dict[str, Any] = {
        "killers": [state.parse_action(each) for each in known.get("killers", ())],
        "history": {state.parse_action(each): score for each, score in known.get("history", {}).items()},
    }
    assert MoveCategory[name] == priority
    assert categorize(state, **given)[state.parse_action(move)] is MoveCategory[name]
    if name.endswith("Capture"):
        exchange = see(state, state.parse_action(move))
        assert np.sign(exchange) == {"WinningCapture": 1, "EqualCapture": 0, "LosingCapture": -1}[name]
        wide_model = categorize(state, see_threshold=abs(exchange))[state.parse_action(move)]
        assert wide_model is MoveCategory.EqualCapture, "abs(SEE) <= threshold"


# --- 5.1. PestoEval, 5.2. PolicyNetwork ---------------------------------------------------------------------------


def test_pesto_eval_holds_its_weights_and_reads_them_from_a_file(tmp_path: Path) -> None:
    weights = PestoEval(two_bishops_bonus=(31, 47))
    weights.to_file(tmp_path / "weights.json")
    read = PestoEval.from_file(tmp_path / "weights.json")
    assert read == weights
    assert read.two_bishops_bonus == (31, 47)


def test_eval_plus_game_phase_uses_the_weights_of_the_object() -> None:
    """Two bishops against two knights in the middlegame: the bonus is added once for the side that has it."""
    state = Chess("1n2k1n1/pppppppp/8/8/8/8/PPPPPPPP/2B1KB2 w - - 0 1")
    (low, phase), (high, _) = (PestoEval(two_bishops_bonus=(b, b)).eval_plus_game_phase(state) for b in (0, 40))
    assert high - low == 40
    assert phase == 4
    assert PestoEval().eval(state) == PestoEval().eval_plus_game_phase(state)[0]


def test_pesto_policy_normalises_by_a_sigmoid_for_the_current_player() -> None:
    for fen in (MIDDLEGAME, BLACK_TO_MOVE, "4k3/8/8/8/8/8/8/QQQ1K3 w - - 0 1", "4k3/8/8/8/8/8/8/QQQ1K3 b - - 0 1"):
        score = Pesto().eval(Chess(fen))
        value = PestoPolicy().evaluate(Chess(fen))[1]
        assert value == pytest.approx(1 / (1 + math.exp(-score / Pesto().scale)))
        assert (value > 0.5) == (score > 0)


def test_policy_network_evaluate_gives_priors_and_value() -> None:
    """Any object with this method will do, in both searches."""

    class OneMove:
        def evaluate(self, board: Any) -> tuple[dict[Any, float], float]:
            return {board.legal_actions()[-1]: 1.0}, 0.5

    assert isinstance(OneMove(), PolicyNetwork)
    last = Chess().legal_actions()[-1]
    for make in (pondertree.Hybrid, hybrid.MCTS):
        assert make(policy_network=OneMove(), num_simulations=30, priority=None).run(Chess()).action == last


def test_pesto_policy_names_all_legal_moves() -> None:
    assert list(PestoPolicy().evaluate(Chess(MIDDLEGAME))[0]) == Chess(MIDDLEGAME).legal_actions()


def test_pesto_policy_value_is_the_sigmoid_of_the_score() -> None:
    pesto = Pesto(scale=200.0)
    value = PestoPolicy(pesto).evaluate(Chess(MIDDLEGAME))[1]
    assert value == pytest.approx(1 / (1 + math.exp(-pesto.eval(Chess(MIDDLEGAME)) / 200.0)))


def test_pesto_policy_priors_are_one_over_n() -> None:
    priors, _ = PestoPolicy().evaluate(Chess(MIDDLEGAME))
    assert set(priors.values()) == {1 / 48}


def test_pesto_policy_returns_priors_and_value() -> None:
    answer = PestoPolicy().evaluate(Chess())
    assert isinstance(answer, tuple)
    assert [type(part) for part in answer] == [dict, float]


# --- 8. Future Work: trainable weights ----------------------------------------------------------------------------


def test_training_command_reduces_the_error_on_labelled_positions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Training from material alone on results drawn by the usual weights; some positions are held back."""
    positions = drawn_by(Pesto(), 400, seed=1)
    lines = [
        f'{fen.decode()} c9 "{ {0.0: "0-1", 0.5: "1/2-1/2", 1.0: "1-0"}[result] }";'
        for fen, result in zip(positions.fens, positions.results, strict=True)
    ]
    (tmp_path / "labelled.epd").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "tuned"
    arguments = ["tune", str(tmp_path / "labelled.epd"), "--out", str(out), "--start", "material", "--plots", "none"]
    assert main([*arguments, "--iterations", "6", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    errors = report["errors"]
    for part in ("train", "held_back"):
        for kind in ("log", "squared"):
            assert errors["after"][part][kind] < 0.9 * errors["before"][part][kind]
    state = Chess(MIDDLEGAME)
    assert Pesto.from_file(out / "weights.json").eval(state) != Pesto().eval(state)
