"""Mate search of the hybrid chess reference, at the root and in the tree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.support.hybrid import MATE_IN_ONE, PRIORITIES, TACTICS, Table, forced_mates, mirror, nodes_of

from pondertree.chess import MoveCategory, mate_search
from pondertree.games import Chess
from pondertree.reference import hybrid_knowledge
from pondertree.reference.hybrid import MCTS

# --- Mates at the root ------------------------------------------------------------------------------------------------


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


# --- Mates in the tree ------------------------------------------------------------------------------------------------


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the mate searches of each position, by its history."""
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
    # Exact nodes are never evaluated.
    assert Counter(network.evaluated) == Counter(node.state.fen() for node in nodes if node.priors is not None)
    assert sum(looks.values()) == len(network.evaluated) + sum(node.mate is not None for node in nodes)


def test_checkmated_child_is_not_evaluated() -> None:
    """The value is exact from the first visit on, with and without mate search, for both colours."""
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
                assert node.state.fen() not in network.evaluated
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
    """The tree proves deeper mates from mates in one at its leaves."""
    proven = [
        MCTS(mate_search_depth=1, root_depth=1, num_simulations=600, endings=False).run(Chess(fen))
        for fen in forced_mates(2)[:12]
    ]
    assert sum(result.proven == 1 for result in proven) > 8
    for result in proven:
        if result.proven == 1:
            assert result.root.distance >= 3
            assert result.simulations > 0
