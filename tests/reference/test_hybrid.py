"""The twin of the hybrid chess search: mates first, categories in their order, what it learns, its traps one by one."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.trees import after, random_position

from pondertree.chess import MoveCategory, PestoPolicy, categorize, mate_search
from pondertree.games import Chess
from pondertree.random import fold
from pondertree.reference import hybrid_knowledge
from pondertree.reference.hybrid import MCTS, HistoryTable, MctsNode, mcts_search, select_leaf_for_expansion
from pondertree.reference.priors import float32
from pondertree.reference.trace import first_difference

MATE_IN_ONE = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
TACTICS = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
MIDDLEGAME = "r2q1rk1/pp2bppp/2n1bn2/2pp4/8/1PN1PN2/PBPPBPPP/R2Q1RK1 w - - 4 10"
ENDGAME = "6k1/5pp1/7p/8/8/1q6/5PPP/3R2K1 w - - 0 1"
PRIORITIES = ("strict", "tactical", "prior", None)


def forced_mates(moves: int) -> list[str]:
    """Positions in which the side to move mates in so many moves, and not sooner."""
    rows = (Path(__file__).parents[1] / "mates" / "mates.epd").read_text().splitlines()
    return [row.partition(" dm ")[0] + " 0 1" for row in rows if row.endswith(f" dm {moves};")]


def mirror(fen: str) -> str:
    """The same position with colours changed and the board turned."""
    board, turn, castling, en_passant, *clocks = fen.split()
    rights = "".join(sorted(castling.swapcase()))
    passant = en_passant.translate(str.maketrans("36", "63"))
    return " ".join(
        ["/".join(board.split("/")[::-1]).swapcase(), "b" if turn == "w" else "w", rights, passant, *clocks]
    )


class Table:
    """A policy network: priors and values are drawn by the moves, so that hardly two are equal."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def evaluate(self, state: Chess) -> tuple[dict[int, float], float]:
        self.asked.append(state.fen())
        legal = state.legal_actions()
        value = fold(0, sum(action * action for action in legal)) % 2**30 / 2**30
        return {action: 1.0 + fold(1, action) % 2**20 for action in legal}, value


def nodes_of(root: MctsNode) -> list[MctsNode]:
    found = [root]
    for node in found:
        found.extend(node.children.values())
    return found


def shape(node: MctsNode) -> Any:
    """A tree without the colours: what mirrored positions must have in common."""
    children = [(action, shape(child)) for action, child in node.children.items()]
    return node.visits, node.total_value, node.proven, node.nn_value, children, node.unexplored


# --- What a search must always satisfy --------------------------------------------------------------------------

OPTIONS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PRIORITIES),
        "mate_search_depth": st.integers(0, 3),
        "exploration_constant": st.sampled_from([0.0, 0.5, 1.5]),
        "fpu": st.sampled_from([0.0, -1.0, ("parent", 0.2)]),
        "quiescence": st.booleans(),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 2, 8]),
        "seed": st.integers(0, 2**64 - 1),
    }
)


@settings(max_examples=40)
@given(OPTIONS, st.integers(0, 60), st.integers(0, 1000), st.integers(0, 120))
def test_hybrid_invariants_hold_in_random_positions(
    options: dict[str, Any], plies: int, game: int, simulations: int
) -> None:
    state = random_position(Chess, plies, game)
    fen = state.fen()
    result = MCTS(num_simulations=simulations, **options).run(state, trace=True)
    assert state.fen() == fen
    assert result.action in state.legal_actions()
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert sum(result.visits.values()) == result.simulations
    assert result.simulations == simulations or result.proven is not None
    again = MCTS(num_simulations=simulations, **options).run(state, trace=True)
    assert first_difference(result.trace or [], again.trace or []) is None
    assert again.action == result.action
    for node in nodes_of(result.root):
        check_node(node, solve=options["solve"])


def check_node(node: MctsNode, *, solve: bool) -> None:
    assert node.in_flight == 0
    assert abs(node.total_value) <= node.visits
    moves = [*node.children, *(node.unexplored or [])]
    below = sum(child.visits for child in node.children.values())
    if node.priors is None:
        assert node.nn_value is None, "an exact node is never evaluated"
        assert node.parent is None or node.terminal_or_mate_value is not None
        return
    assert sorted(moves) == sorted(node.state.legal_actions())
    assert sum(node.priors.values()) == pytest.approx(1.0, abs=1e-5)
    assert node.visits == 1 + below or (node.proven is not None and node.visits > below)
    assert node.mean_value * (1 + below) == pytest.approx(
        node.raw_value - sum(child.total_value for child in node.children.values())
    )
    if node.proven is not None:
        assert solve
        kept = mate_search(node.state, (node.distance + 1) // 2) if node.distance <= 5 else None
        if kept is not None and kept.kind != "unknown":
            assert node.proven == {"mate_in": 1, "mated_in": -1}[kept.kind]


# --- Mates at the root ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_shortest_mate_at_root_is_played_without_simulations(priority: str | None, solve: bool) -> None:
    for moves in (2, 3):
        for fen in forced_mates(moves)[:6]:
            for state in (Chess(fen), Chess(mirror(fen))):
                result = MCTS(priority=priority, solve=solve).run(state)
                assert (result.proven, result.value, result.simulations) == (1, 1.0, 0)
                assert result.root.distance == 2 * moves - 1
                assert list(result.root.children) == [result.action]
                child = result.root.children[result.action]
                assert (child.proven, child.distance, child.visits) == (-1, 2 * moves - 2, 0)
                assert child.category == MoveCategory.ForcedMate
                assert (result.root.visits, result.root.nn_value) == (0, None)
                answer = mate_search(state.play(result.action), moves)
                assert (answer.kind, answer.n) == ("mated_in", moves - 1)


@pytest.mark.parametrize("solve", [True, False])
def test_mate_in_one_leads_to_terminal_node(solve: bool) -> None:
    for fen in (MATE_IN_ONE, mirror(MATE_IN_ONE)):
        state = Chess(fen)
        result = MCTS(solve=solve).run(state)
        child = result.root.children[result.action]
        assert state.play(result.action).termination == "checkmate"
        assert child.end == ([1.0, -1.0] if state.to_play == 0 else [-1.0, 1.0])
        assert (child.proven, child.distance, result.root.distance) == (-1, 0, 1)
        assert result.policy[result.action] == 1.0


def test_lost_root_plays_longest_defence() -> None:
    for fen in forced_mates(3)[:8]:
        for start in (Chess(fen), Chess(mirror(fen))):
            state = start.play(mate_search(start, 3).action or 0)
            result = MCTS().run(state)
            assert (result.proven, result.simulations) == (-1, 0)
            lasts = {action: mate_search(state.play(action), 3).n for action in state.legal_actions()}
            assert lasts[result.action] == max(n for n in lasts.values() if n is not None) == 2
            assert result.root.distance == 4
            assert list(result.root.children) == state.legal_actions(), "every move is tried, in its order"
            for action, child in result.root.children.items():
                assert (child.proven, child.distance) == (1, 2 * (lasts[action] or 0) - 1)
                assert child.visits == 0


def test_zero_mate_depth_disables_mate_search() -> None:
    result = MCTS(mate_search_depth=0, num_simulations=60, solve=False).run(Chess(MATE_IN_ONE))
    assert (result.proven, result.simulations) == (None, 60)
    assert result.action == max(result.visits, key=lambda action: result.visits[action])
    assert Chess(MATE_IN_ONE).play(result.action).termination == "checkmate"


# --- Mates in the tree ------------------------------------------------------------------------------------------


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often mates were looked for in each position, by its history."""
    counted: Counter[str] = Counter()

    def count(state: Chess, depth: int, budget: int) -> Any:
        counted[state.fen()] += 1
        return original(state, depth, budget)

    original = hybrid_knowledge.checks_first
    monkeypatch.setattr(hybrid_knowledge, "checks_first", count)
    return counted


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_mate_search_runs_once_per_node(looks: Counter[str], priority: str | None, in_flight: int) -> None:
    network = Table()
    search = MCTS(policy_network=network, priority=priority, in_flight=in_flight)
    tree = search.tree(Chess(TACTICS))
    search.simulate(tree, 300)
    nodes = nodes_of(tree.root)
    waited = Counter(node.state.fen() for node in nodes if node.end is None)
    assert looks == waited
    # Whatever was decided, by an end or by a mate, was never asked about.
    assert Counter(network.asked) == Counter(node.state.fen() for node in nodes if node.priors is not None)
    assert sum(looks.values()) == len(network.asked) + sum(node.mate is not None for node in nodes)


def test_checkmated_child_is_not_evaluated() -> None:
    """With and without mate search: its value is exact from its first visit on, whoever is mated."""
    for fen in (MATE_IN_ONE, mirror(MATE_IN_ONE)):
        for priority in PRIORITIES:
            network = Table()
            search = MCTS(policy_network=network, mate_search_depth=0, solve=False, priority=priority)
            tree = search.tree(Chess(fen))
            search.simulate(tree, 150)
            mated = [node for node in nodes_of(tree.root) if node.state.termination == "checkmate"]
            assert mated
            for node in mated:
                assert node.nn_value is None
                assert node.state.fen() not in network.asked
                assert node.total_value == -node.visits
                assert node.terminal_or_mate_value == -1.0


@pytest.mark.parametrize("solve", [True, False])
def test_leaf_with_mate_is_exact_and_unexpanded(solve: bool) -> None:
    seen = 0
    for fen in [*forced_mates(2)[:12], *forced_mates(3)[:12]]:
        state = Chess(fen)
        search = MCTS(mate_search_depth=1, root_depth=1, num_simulations=200, solve=solve)
        result = search.run(state)
        for node in nodes_of(result.root):
            if node.mate is None or node is result.root:
                continue
            seen += 1
            assert (node.proven, node.distance) == node.mate
            assert (node.children, node.unexplored, node.nn_value, node.priors) == ({}, [], None, None)
            assert node.total_value == node.visits
            assert node.proven_for_chooser == (-1 if solve else None)
            moves = (node.mate[1] + 1) // 2
            assert mate_search(node.state, moves).n == moves
        if not solve:
            assert result.proven is None or result.simulations == 0
    assert seen > 50


def test_mate_proofs_propagate_to_root() -> None:
    """Deeper mates are proven by the tree, from mates in one at its leaves."""
    proven = [
        MCTS(mate_search_depth=1, root_depth=1, num_simulations=600, endings=False).run(Chess(fen))
        for fen in forced_mates(2)[:12]
    ]
    assert sum(result.proven == 1 for result in proven) > 8
    for result in proven:
        if result.proven == 1:
            assert result.root.distance >= 3
            assert result.simulations > 0


# --- Categories -------------------------------------------------------------------------------------------------


def test_moves_are_expanded_by_category_then_prior() -> None:
    search = MCTS(policy_network=Table(), mate_search_depth=0)
    tree = search.tree(Chess(TACTICS), trace=True)
    moves = len(tree.root.state.legal_actions())
    search.simulate(tree, moves)
    root = tree.root
    kinds = categorize(root.state)
    assert [kinds[action] for action in root.children] == sorted(kinds.values())
    assert len(set(kinds.values())) > 3
    assert root.priors is not None
    assert sorted(root.children, key=lambda action: (kinds[action], -root.priors[action])) == list(root.children)  # type: ignore[index]
    assert [row["scores"] for row in tree.trace or []] == [[None]] * moves


def test_strict_explores_every_move_before_any_second_visit() -> None:
    search = MCTS(mate_search_depth=0)
    tree = search.tree(Chess(TACTICS))
    moves = len(tree.root.state.legal_actions())
    search.simulate(tree, moves)
    assert [child.visits for child in tree.root.children.values()] == [1] * moves
    search.simulate(tree, 400)
    for node in nodes_of(tree.root):
        if any(child.visits > 1 for child in node.children.values()) and node.proven is None:
            assert node.is_fully_explored()
            assert not node.unexplored


def test_tactical_expands_tactical_moves_before_scoring_all() -> None:
    search = MCTS(mate_search_depth=0, priority="tactical")
    tree = search.tree(Chess(TACTICS), trace=True)
    kinds = categorize(tree.root.state)
    promising = [action for action, kind in kinds.items() if kind <= MoveCategory.Check]
    assert 0 < len(promising) < len(kinds)
    search.simulate(tree, len(promising) + 1)
    rows = tree.trace or []
    assert sorted(row["path"][0] for row in rows[:-1]) == sorted(promising)
    assert all(row["scores"] == [None] for row in rows[:-1])
    # From here on all moves have a score, tried or not.
    assert {action for action, _ in rows[-1]["scores"][0] or []} == set(kinds)
    assert tree.root.is_fully_explored()
    assert tree.root.unexplored


@pytest.mark.parametrize("priority", ["prior", None])
def test_no_category_is_eager_with_prior_or_no_priority(priority: str | None) -> None:
    search = MCTS(mate_search_depth=0, priority=priority)
    tree = search.tree(Chess(TACTICS), trace=True)
    search.simulate(tree, 100)
    assert all(scores is not None for row in tree.trace or [] for scores in row["scores"])
    assert all(node.is_fully_explored() for node in nodes_of(tree.root))


def test_category_weights_apply_after_ordering() -> None:
    weights = (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5)
    state = Chess(TACTICS)
    search = MCTS(policy_network=Table(), mate_search_depth=0, priority="prior", weights=weights)
    tree = search.tree(state)
    search.simulate(tree, 1)
    root = tree.root
    kinds = categorize(state)
    plain, _ = Table().evaluate(state)
    total = math.fsum(plain[action] * weights[kinds[action]] for action in kinds)
    assert root.priors is not None
    for action, prior in root.priors.items():
        assert prior == pytest.approx(plain[action] * weights[kinds[action]] / total, rel=1e-6)
        assert prior == float32(prior)
    order = sorted(state.legal_actions(), key=lambda action: (kinds[action], -plain[action]))
    assert list(root.priors) == order


def test_moves_keep_game_order_without_priority() -> None:
    tree = (search := MCTS(mate_search_depth=0, priority=None)).tree(Chess())
    search.simulate(tree, 1)
    assert tree.root.priors is not None
    assert list(tree.root.priors) == Chess().legal_actions()
    assert tree.root.categories == {}
    assert tree.history.scores == ({}, {})


# --- The specification's node -----------------------------------------------------------------------------------


def test_node_methods_match_hand_computed_example() -> None:
    state = Chess(TACTICS)
    root = MctsNode.new_root(state)
    assert root.unexplored_moves_by_cat == {}
    assert root.is_fully_explored()
    assert root.get_best_unexplored_move() is None
    assert select_leaf_for_expansion(root, 1.5) is root, "not evaluated yet"
    priors, value = PestoPolicy().evaluate(state)
    root.nn_value = 2.0 * value - 1.0
    root.store_priors_and_categorize_moves(priors)
    root.backpropagate(root.nn_value)
    assert sum(map(len, root.unexplored_moves_by_cat.values())) == len(priors)
    opened = []
    while not root.is_fully_explored():
        assert select_leaf_for_expansion(root, 1.5) is root
        action = root.get_best_unexplored_move()
        assert action is not None
        assert root.categories[action] == root.current_priority_category
        opened.append(root.categories[action])
        root.add_child(action).backpropagate(0.25)
    assert opened == sorted(opened)
    assert not root.advance_priority_category()
    assert root.get_best_unexplored_move() is None
    assert (root.visits, root.unexplored_moves_by_cat) == (1 + len(priors), {})
    # What is good for the player to move in a child is bad for the one who chose it.
    assert root.total_value == pytest.approx(root.nn_value - 0.25 * len(priors))
    child = root.select_best_child(1.5)
    assert child.puct_value(1.5) == pytest.approx(-0.25 + 1.5 * math.sqrt(root.visits) * child.policy_prior / 2.0)
    assert child.puct_value(1.5) == max(other.puct_value(1.5) for other in root.children.values())
    assert child.parent is root
    assert child.id != root.id


def test_node_is_terminal_only_at_ends_and_claimable_draws() -> None:
    mating = Chess(MATE_IN_ONE)
    root = MctsNode.new_root(mating)
    assert not root.is_terminal()
    mated = root.add_child(mating.parse_action("h5f7"))
    assert mated.is_terminal()
    assert mated.terminal_or_mate_value == -1.0
    quiet = root.add_child(mating.parse_action("a2a3"))
    assert not quiet.is_terminal()
    quiet.set_proven(-1, 3)
    assert quiet.terminal_or_mate_value == -1.0
    assert not quiet.is_terminal(), "mate search decided it; the game goes on"
    fifty = MctsNode.new_root(Chess("7k/8/8/8/8/8/R7/K7 w - - 99 90"))
    assert fifty.add_child(fifty.state.parse_action("a2b2")).is_terminal()


def test_mcts_search_matches_specification() -> None:
    with pytest.raises(ValueError, match="limit"):
        mcts_search(Chess())
    assert mcts_search(Chess("7k/5Q2/8/8/8/8/8/K7 b - - 0 1"), iterations=10) is None
    assert mcts_search(Chess("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"), time_limit=1.0) is None
    state = Chess(MATE_IN_ONE)
    assert mcts_search(state, iterations=1) == state.parse_action("h5f7")
    assert mcts_search(Chess(), Table(), 2, iterations=30) in Chess().legal_actions()
    assert mcts_search(Chess(), time_limit=0.0) in Chess().legal_actions()
    assert mcts_search(Chess(), iterations=40) == MCTS(num_simulations=40).run(Chess()).action


def test_invalid_policy_network_output_raises() -> None:
    class Says:
        def __init__(self, priors: dict[int, float], value: float) -> None:
            self.answer = priors, value

        def evaluate(self, state: Chess) -> tuple[dict[int, float], float]:
            return self.answer

    first, *others = Chess().legal_actions()
    tree = (search := MCTS(policy_network=Says({first: 3.0}, 0.75))).tree(Chess())
    search._prepare_root(tree)
    assert tree.root.priors == dict.fromkeys(others, 0.0) | {first: 1.0}
    assert tree.root.nn_value == 0.5
    for priors, value, words in [
        ({first: 1.0}, 1.5, "from 0 to 1"),
        ({first: 1.0}, math.nan, "from 0 to 1"),
        ({first: -1.0}, 0.5, "negative"),
        ({first: math.nan}, 0.5, "finite"),
        ({4671: 1.0}, 0.5, "not legal"),
    ]:
        with pytest.raises(ValueError, match=words):
            MCTS(policy_network=Says(priors, value)).run(Chess())


@pytest.mark.parametrize(
    "options",
    [
        {"mate_search_depth": -1},
        {"exploration_constant": math.nan},
        {"priority": "loose"},
        {"in_flight": 0},
        {"fpu": ("sibling", 0.1)},
        {"evaluator": Table(), "policy_network": Table()},
    ],
)
def test_invalid_options_raise(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        MCTS(**options)


# --- What is learned --------------------------------------------------------------------------------------------


def line(values: dict[str, tuple[float, int]], root_value: float) -> tuple[MctsNode, HistoryTable]:
    """A root whose moves were tried: by move, the value for the chooser each time, and how often."""
    root = MctsNode.new_root(Chess(MIDDLEGAME))
    root.nn_value = root_value
    legal = root.state.legal_actions()
    root.store_priors_and_categorize_moves(dict.fromkeys(legal, 1.0 / len(legal)))
    root.backpropagate(root_value)
    for move, (value, visits) in values.items():
        child = root.try_move(root.state.parse_action(move))
        for _ in range(visits):
            child.backpropagate(-value)
    return root, HistoryTable()


def test_killer_is_quiet_move_above_mean_of_position() -> None:
    root, learned = line({"h2h3": (0.5, 4), "a2a3": (0.4, 3), "a1b1": (-0.5, 9), "d2d3": (0.6, 4)}, 0.0)
    number = {move: root.state.parse_action(move) for move in ("h2h3", "a2a3", "a1b1", "d2d3")}
    child = {move: root.children[action] for move, action in number.items()}
    learned.update(child["a2a3"], -0.4, 4)
    assert learned.killers == {}, "three visits are too few"
    learned.update(child["a1b1"], 0.5, 4)
    assert learned.killers == {}, "worse than the position"
    learned.update(child["h2h3"], -0.5, 4)
    assert learned.killers == {0: (number["h2h3"], None)}
    learned.update(child["h2h3"], -0.5, 4)
    assert learned.killers == {0: (number["h2h3"], None)}, "it is the first already"
    learned.update(child["d2d3"], -0.6, 4)
    assert learned.killers == {0: (number["d2d3"], number["h2h3"])}
    # Each simulation that brought more than the mean is one more, whatever the move is worth otherwise.
    assert learned.scores[0] == {number["a2a3"]: 1.0, number["h2h3"]: 2.0, number["d2d3"]: 1.0}
    assert learned.scores[1] == {}


def test_history_compares_with_mean_of_root_and_inner_node() -> None:
    root, learned = line({"h2h3": (0.5, 3)}, -0.1)
    child = root.children[root.state.parse_action("h2h3")]
    assert root.mean_value == pytest.approx((-0.1 + 3 * 0.5) / 4)
    child.nn_value = -0.5
    legal = child.state.legal_actions()
    child.store_priors_and_categorize_moves(dict.fromkeys(legal, 1.0 / len(legal)))
    reply = child.state.parse_action("h7h6")
    leaf = child.try_move(reply)
    leaf.backpropagate(0.2)
    # For Black, who replied, the simulation brought -0.2: more than the -0.425 that the position is worth to him now.
    assert child.total_value / child.visits == pytest.approx(-0.425)
    learned.update(leaf, 0.2, 1)
    assert learned.scores[1] == {reply: 1.0}
    assert learned.killers[1] == (reply, None)
    # For White it brought 0.2, less than the root is worth, but h2h3 itself is still worth more than that.
    assert learned.scores[0] == {}
    assert learned.killers[0] == (child.action, None)


def test_captures_do_not_update_history_table() -> None:
    root = MctsNode.new_root(Chess(TACTICS))
    legal = root.state.legal_actions()
    root.nn_value = -0.9
    root.store_priors_and_categorize_moves(dict.fromkeys(legal, 1.0 / len(legal)))
    root.backpropagate(-0.9)
    learned = HistoryTable()
    for action, kind in root.categories.items():
        child = root.try_move(action)
        child.backpropagate(-0.5)
        learned.update(child, -0.5, 1)
        assert (action in learned.scores[0]) == (kind in (3, 4, 6, 7, 8))
    assert learned.killers[0][0] in learned.scores[0]


def test_leaves_use_history_table_and_advance_halves_it() -> None:
    search = MCTS(mate_search_depth=0, priority="tactical")
    tree = search.tree(Chess(MIDDLEGAME))
    search.simulate(tree, 400)
    kinds = Counter(kind for node in nodes_of(tree.root) for kind in node.categories.values())
    assert kinds[MoveCategory.KillerMove1] > 10
    assert kinds[MoveCategory.HistoryHeuristic] > 100
    killers, history = dict(tree.history.killers), [dict(scores) for scores in tree.history.scores]
    search.advance(tree, search.result(tree).action)
    assert tree.history.root_ply == 1
    assert tree.history.killers == killers
    assert [{action: 2.0 * score for action, score in scores.items()} for scores in tree.history.scores] == history
    # The root's own moves are those of ply 1 now.
    assert tree.history.killers_at(tree.root) == killers.get(1, (None, None))


def test_terminal_leaves_do_not_update_history_table() -> None:
    search = MCTS(mate_search_depth=0, solve=False)
    tree = search.tree(Chess(MATE_IN_ONE))
    mate = tree.root.state.parse_action("h5f7")
    search.simulate(tree, 1)
    before = [dict(scores) for scores in tree.history.scores]
    while tree.root.children.get(mate) is None or tree.root.children[mate].visits < 3:
        before = [dict(scores) for scores in tree.history.scores]
        visits = tree.root.children[mate].visits if mate in tree.root.children else 0
        search.simulate(tree, 1)
        if mate in tree.root.children and tree.root.children[mate].visits > visits:
            assert [dict(scores) for scores in tree.history.scores] == before


# --- From move to move ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", PRIORITIES)
def test_advance_keeps_subtree(priority: str | None) -> None:
    search = MCTS(mate_search_depth=2, priority=priority)
    tree = search.tree(Chess(MIDDLEGAME))
    for _ in range(4):
        search.simulate(tree, 60)
        result = search.result(tree)
        kept = tree.root.children[result.action]
        visits = kept.visits
        search.advance(tree, result.action)
        if kept.priors is not None:
            assert tree.root is kept
            assert (tree.root.parent, tree.root.action, tree.root.visits) == (None, None, visits)
        assert search.result(tree).simulations == 0
        if tree.root.proven is not None:
            break
    with pytest.raises(ValueError, match="not legal"):
        search.advance(tree, 4671)


def test_advance_discards_subtree_of_proven_mate() -> None:
    """Neither of one found in the tree nor of one found at the root, whose move may have been searched before."""
    for fen in forced_mates(3)[:6]:
        search = MCTS(mate_search_depth=0, solve=False)
        tree = search.tree(Chess(fen))
        search.simulate(tree, 200)
        searcher = MCTS(mate_search_depth=3)
        hybrid_knowledge.prove_root(tree.root, searcher.chess_config)
        action = searcher.result(tree).action
        assert tree.root.proven == 1
        searcher.advance(tree, action)
        assert (tree.root.visits, tree.root.children, tree.root.proven) == (0, {}, None)
        searcher.simulate(tree, 1)
        assert (tree.root.proven, tree.root.distance) == (-1, 4)
        searcher.advance(tree, searcher.result(tree).action)
        searcher.simulate(tree, 1)
        assert (tree.root.proven, tree.root.distance) == (1, 3)


def test_mate_search_at_root_runs_again_after_advance() -> None:
    fen = next(fen for fen in forced_mates(2) if len(Chess(fen).legal_actions()) > 20)
    search = MCTS(mate_search_depth=2)
    tree = search.tree(Chess(fen))
    for distance in (3, 2, 1):
        search.simulate(tree, 1)
        assert tree.root.distance == distance
        last = search.result(tree).action
        if distance > 1:
            search.advance(tree, last)
    with pytest.raises(ValueError, match="over"):
        search.advance(tree, last)


# --- Draws, colours ---------------------------------------------------------------------------------------------


def test_repetition_is_draw_below_root_and_searched_at_root() -> None:
    state = after(Chess(), "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1")
    back = state.parse_action("f6g8")
    search = MCTS(mate_search_depth=0)
    tree = search.tree(state)
    search.simulate(tree, 60)
    child = tree.root.children[back]
    assert (child.end, child.proven, child.nn_value, child.children) == ([0.0, 0.0], 0, None, {})
    assert child.total_value == 0.0
    search.advance(tree, back)
    assert (tree.root.end, tree.root.visits) == (None, 0)
    search.simulate(tree, 10)
    assert search.result(tree).simulations == 10


def test_fifty_move_rule_is_draw_below_root() -> None:
    state = Chess("k7/8/8/8/8/8/8/6RK w - - 99 80")
    result = MCTS(mate_search_depth=0, num_simulations=40).run(state)
    assert (result.proven, result.value) == (0, 0.0)
    assert all(child.end == [0.0, 0.0] for child in result.root.children.values())


@pytest.mark.parametrize("priority", ["strict", "tactical", "prior"])
@pytest.mark.parametrize("fen", [TACTICS, MIDDLEGAME, ENDGAME, *forced_mates(3)[:2]])
def test_search_is_symmetric_in_colour(fen: str, priority: str) -> None:
    """Moves are numbered from the mover's side, and no two of the network's numbers are equal."""
    for depth in (0, 1, 3):
        trees = []
        for colours in (fen, mirror(fen)):
            search = MCTS(policy_network=Table(), mate_search_depth=depth, priority=priority)
            tree = search.tree(Chess(colours))
            search.simulate(tree, 150)
            trees.append((shape(tree.root), tree.history.killers, tree.history.scores[tree.root.to_play]))
        if trees[0][0][0]:  # a root that mate search has decided lists its moves as the game does
            assert trees[0] == trees[1]
        else:
            assert trees[0][0][2] == trees[1][0][2] is not None


def test_split_simulations_equal_one_run() -> None:
    search = MCTS(seed=3)
    whole, pieces = search.tree(Chess(MIDDLEGAME)), search.tree(Chess(MIDDLEGAME))
    search.simulate(whole, 120)
    for count in (1, 50, 69):
        search.simulate(pieces, count)
    assert shape(pieces.root) == shape(whole.root)
