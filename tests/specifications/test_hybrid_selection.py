"""Hybrid chess: prioritized selection, interfaces, considerations and future work."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.specifications.positions import (
    BACK_RANK,
    MATE_IN_ONE,
    MATE_IN_TWO,
    MATED_IN_ONE,
    MIDDLEGAME,
)
from tests.specifications.support import RecordedPolicy, hybrid_tree

import pondertree
from pondertree.chess import (
    MoveCategory,
    Pesto,
    PestoPolicy,
    gen_pseudo_legal_moves,
    is_capture,
    mate_search,
    mcts_search,
    see,
)
from pondertree.cli import main
from pondertree.games import Chess
from pondertree.reference import hybrid
from pondertree.reference.hybrid import MctsNode, select_leaf_for_expansion
from pondertree.tune.search_settings import PARAMETERS, tune_search

SEARCHES = {"engine": mcts_search, "reference": hybrid.mcts_search}
each_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


# --- 5.4. Prioritized Selection -----------------------------------------------------------------------------------


@each_search
def test_unexplored_moves_come_before_descending(search: Any) -> None:
    """With as many iterations as legal moves the network sees the root and each position after one move."""
    policy, state = RecordedPolicy(), Chess(MIDDLEGAME)
    search(state, policy, 0, iterations=len(state.legal_actions()))
    assert sorted(policy.evaluated) == sorted(
        [state.fen(), *(state.play(action).fen() for action in state.legal_actions())]
    )


def test_select_leaf_for_expansion_takes_a_node_and_a_constant() -> None:
    root = MctsNode.new_root(Chess())
    assert select_leaf_for_expansion(root, 1.5) is root
    assert select_leaf_for_expansion(node=root, exploration_constant=0.5) is root


def test_selection_returns_a_terminal_node_or_one_decided_by_mate_search() -> None:
    root: Any = evaluated(MATE_IN_ONE)
    mated = root.try_move(root.state.parse_action("h5f7"))
    assert select_leaf_for_expansion(mated, 1.5) is mated
    decided = root.try_move(root.state.parse_action("a2a3"))
    decided.set_proven(1, 1)
    assert select_leaf_for_expansion(decided, 1.5) is decided


def evaluated(fen: str) -> Any:
    root = MctsNode.new_root(Chess(fen))
    root.store_priors_and_categorize_moves(PestoPolicy().evaluate(root.state)[0])
    root.backpropagate(0.0)
    return root


def test_selection_returns_a_node_with_unexplored_moves() -> None:
    root: Any = evaluated(MIDDLEGAME)
    while not root.is_fully_explored():
        assert select_leaf_for_expansion(root, 1.5) is root
        root.add_child(root.get_best_unexplored_move()).backpropagate(0.0)
    assert select_leaf_for_expansion(root, 1.5) is not root


def test_selection_returns_a_node_without_children() -> None:
    root: Any = evaluated(MIDDLEGAME)
    child = root.add_child(root.get_best_unexplored_move())
    assert child.children == {}
    assert select_leaf_for_expansion(child, 1.5) is child


def test_selection_descends_to_the_best_child_by_puct() -> None:
    root: Any = evaluated(MIDDLEGAME)
    for number, action in enumerate(list(root.state.legal_actions())):
        root.try_move(action).backpropagate(-0.5 if number == 7 else 0.0)
    best = root.select_best_child(1.5)
    assert best is max(root.children.values(), key=lambda child: child.puct_value(1.5))
    assert best.action == root.state.legal_actions()[7]
    assert select_leaf_for_expansion(root, 1.5) is best
    prior = 1 / len(root.children)
    assert best.puct_value(1.5) == pytest.approx(0.5 + 1.5 * prior * math.sqrt(root.visits) / 2)


# --- 6. Interfaces ------------------------------------------------------------------------------------------------


def test_interface_policy_network_value_is_for_the_current_player() -> None:
    """The side to move has three queens more: near 1 for it, near 0 if the other side is to move."""
    for turn, low, high in (("w", 0.99, 1.0), ("b", 0.0, 0.01)):
        priors, value = PestoPolicy().evaluate(Chess(f"4k3/8/8/8/8/8/3P4/QQQ1K3 {turn} - - 0 1"))
        assert low <= value <= high
        assert sum(priors.values()) == pytest.approx(1.0)


def test_applying_a_move_returns_a_new_state_and_keeps_the_old_one() -> None:
    """`Chess.play`: captures, castling, en passant and promotion, compared with python-chess move by move."""
    chess = pytest.importorskip("chess")
    for fen in (
        MIDDLEGAME,
        "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
        "1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1",
    ):
        board, state = chess.Board(fen), Chess(fen)
        for action in state.legal_actions():
            after = state.play(action)
            board.push_uci(state.action_to_string(action))
            assert after.fen().split()[:4] == board.fen(en_passant="legal").split()[:4]
            assert after is not state
            board.pop()
        assert state == Chess(fen)
        assert state.fen() == Chess(fen).fen()


@pytest.mark.parametrize(("fen", "score"), [(MATE_IN_TWO, 1_000_000), (MATED_IN_ONE, -1_000_000), (MIDDLEGAME, 0)])
def test_mate_search_unpacks_as_score_move_nodes(fen: str, score: int) -> None:
    found, move, nodes = mate_search(Chess(fen), 2)
    assert found == score
    assert (move is None) == (score == 0)
    assert nodes > 0


def test_move_generator_functions_are_in_pondertree_chess() -> None:
    chess = pytest.importorskip("chess")
    for fen in (MIDDLEGAME, "4r1k1/8/8/8/8/8/4R3/4K3 w - - 0 1"):
        board, state = chess.Board(fen), Chess(fen)
        assert set(gen_pseudo_legal_moves(board)) == set(board.pseudo_legal_moves)
        assert set(gen_pseudo_legal_moves(state)) >= set(state.legal_actions())
        for action in state.legal_actions():
            move = chess.Move.from_uci(state.action_to_string(action))
            assert is_capture(state, action) == is_capture(board, move) == board.is_capture(move)
            assert isinstance(see(state, action), int)


@pytest.mark.parametrize(
    "method",
    [
        "store_priors_and_categorize_moves",
        "get_best_unexplored_move",
        "is_fully_explored",
        "advance_priority_category",
    ],
)
def test_node_has_the_method(method: str) -> None:
    assert callable(getattr(evaluated(MIDDLEGAME), method))


# --- 7. Trade-offs & Considerations, 8. Future Work ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "place"),
    [("mate_search_depth", 0), ("exploration_constant", 1), ("category_weights[9]", len(PARAMETERS) - 1)],
)
def test_tuning_moves_the_parameter_that_wins(parameter: str, place: int) -> None:
    """With comparisons won by the greater value, the tuning raises it, and `Hybrid` takes the settings."""

    def greater(one: Any, other: Any, seed: int) -> float:
        return 0.5 if one[place] == other[place] else float(one[place] > other[place])

    assert PARAMETERS[place].name == parameter
    name = parameter.removesuffix("[9]")
    short, long = (tune_search(iterations=iterations, compare=greater, seed=1) for iterations in (1, 25))
    values = [settings[name][9] if parameter.endswith("]") else settings[name] for settings in (short, long)]
    assert PARAMETERS[place].start <= values[0] < values[1]
    setting = getattr(pondertree.Hybrid(**long), name)
    assert (setting[9] if parameter.endswith("]") else setting) == values[1]


def test_deeper_mate_search_finds_longer_mates() -> None:
    state = Chess(MATE_IN_TWO)
    assert [mate_search(state, depth).kind for depth in (1, 2, 3)] == ["unknown", "mate_in", "mate_in"]
    shallow, deep = (pondertree.Hybrid(mate_search_depth=depth, num_simulations=1).run(state) for depth in (0, 2))
    assert (shallow.proven, deep.proven) == (None, 1)


def test_priors_break_ties_within_a_category_and_enter_puct() -> None:
    class Rising:
        def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
            return {action: float(place + 1) for place, action in enumerate(state.legal_actions())}, 0.5

    root = hybrid_tree(Chess().fen(), 20, policy_network=Rising()).root
    assert set(root.categories.values()) == {MoveCategory.OtherQuiet}
    assert list(root.children) == list(reversed(Chess().legal_actions()))
    low, high = (root.children[action] for action in (Chess().legal_actions()[0], Chess().legal_actions()[-1]))
    assert high.puct_value(1.5) > low.puct_value(1.5)


def test_policy_may_be_learned_or_heuristic() -> None:
    """An evaluator with logits, or the learned scores of moves, instead of uniform priors."""

    def network(observations: Any) -> tuple[Any, Any]:
        return np.tile(np.linspace(-2.0, 2.0, 4672, dtype=np.float32), (len(observations), 1)), np.zeros(
            len(observations), dtype=np.float32
        )

    for search in (
        pondertree.Hybrid(network, num_simulations=60, priority=None),
        pondertree.Hybrid(Pesto(), num_simulations=60, move_scores="learned"),
    ):
        priors = [child.prior for child in search.run(Chess()).root.children.values()]
        assert max(priors) > 1.5 * min(priors)


def test_tune_command_plays_matches_and_writes_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "settings"
    small = ["--iterations", "1", "--games", "2", "--simulations", "2", "--concurrency", "1"]
    assert main(["tune", "--search", *small, "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"mate_search_depth", "exploration_constant", "see_threshold", "category_weights"}
    assert json.loads((out / "settings.json").read_text(encoding="utf-8")) == found
    assert pondertree.Hybrid(**found).exploration_constant == found["exploration_constant"]


def test_engine_equals_the_reference_visit_for_visit() -> None:
    for fen in (MIDDLEGAME, MATE_IN_ONE, BACK_RANK):
        engine = pondertree.Hybrid(num_simulations=120, priority="strict", seed=3).run(Chess(fen))
        reference = hybrid.MCTS(num_simulations=120, priority="strict", seed=3).run(Chess(fen))
        assert engine.action == reference.action
        assert {a: engine.visits[a] for a in reference.visits} == reference.visits
