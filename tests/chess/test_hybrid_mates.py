"""Mates in `Hybrid`: proven roots, longest defence, mates found by the tree."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.hybrid import MATE_IN_ONE, PRIORITIES, forced_mates, mirror
from tests.support.policy_networks import FakeNetwork, pseudo_random

import pondertree
from pondertree.chess import MoveCategory, mate_search
from pondertree.games import Chess


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_root_mate_is_played_without_simulations(priority: str | None, solve: bool) -> None:
    network = FakeNetwork(pseudo_random)
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
                    assert (answer.kind, answer.n) == ("mated_in", moves - 1), "the mate is the shortest"
                child = result.root.children[result.action]
                assert child.category is (None if priority is None else MoveCategory.ForcedMate)
                assert (child.proven, child.distance) == (-1, 2 * moves - 2)
                assert child.terminal_or_mate_value == -1.0
                assert result.root.terminal_or_mate_value == 1.0
                assert (child.nn_value, result.root.nn_value) == (None, None)
    assert network.requests == []


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
            assert {child.category for child in result.root.children.values()} == {None}, "no node was evaluated"
            assert {action: child.distance for action, child in result.root.children.items()} == {
                action: 2 * moves - 1 for action, moves in lasts.items()
            }
            shorter += min(lasts.values()) < 2
    assert shorter > 3, "some defences are shorter"


@pytest.mark.parametrize("priority", PRIORITIES)
def test_mate_is_played_to_checkmate(priority: str | None) -> None:
    """Plays both sides with tree reuse."""
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
        # Terminal values are exact, never static scores.
        child = counted.root.children[mate]
        assert child.is_terminal
        assert (child.nn_value, child.terminal_or_mate_value, child.q_value) == (None, -1.0, -1.0)


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_mate_threat_is_parried(priority: str | None, solve: bool) -> None:
    """Moves that allow a mate in one are proven losses or seldom visited, and never selected."""
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
