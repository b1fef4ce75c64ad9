"""`Node`: signs, sums and counts, and invariants of every tree."""

from __future__ import annotations

from typing import Any

import pytest
from examples.games.coin_row import CoinRow
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.search_helpers import PythonGame, after, every_node, random_position

import pondertree
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame

STATES = st.one_of(
    st.builds(
        random_position, st.sampled_from([TicTacToe, ConnectFour, Othello]), st.integers(0, 45), st.integers(0, 999)
    ),
    st.builds(
        lambda seed, players, order, rewards: TabularGame(seed, players, turn_order=order, rewards=rewards).start(),
        st.integers(0, 9999),
        st.integers(1, 4),
        st.sampled_from(["alternate", "random", "double"]),
        st.booleans(),
    ),
)


@settings(max_examples=80)
@given(
    state=STATES,
    simulations=st.integers(1, 120),
    solved=st.booleans(),
    in_flight=st.sampled_from([1, 4]),
    forced=st.sampled_from([0, 0, 2]),
)
def test_visits_of_children_sum_to_the_node(
    state: Any, simulations: int, solved: bool, in_flight: int, forced: int
) -> None:
    """Values, visits and signs from the record of all simulations, by nothing but whose turn it is."""
    has_rewards = hasattr(state, "rewards")
    plain = state.num_players == 2 and getattr(state, "zero_sum", True) and not has_rewards
    search = pondertree.UCT(solve=solved, in_flight=in_flight, seed=1, trace=True, forced_depth=forced if plain else 0)
    tree = search.tree(state).simulate(simulations)
    root = tree.result().root
    visits: dict[tuple[int, ...], int] = {}
    sums: dict[tuple[int, ...], float] = {}
    for row in tree.trace():
        path, values = row["path"], list(row["values"])
        states = [state]
        for action in path:
            states.append(states[-1].play(action))
        for length in range(len(path), -1, -1):
            here = tuple(path[:length])
            visits[here] = visits.get(here, 0) + 1
            sums[here] = sums.get(here, 0.0) + values[states[length].to_play]
            if has_rewards and length:
                values = [value + reward for value, reward in zip(values, states[length].rewards(), strict=True)]
    paths: dict[int, tuple[int, ...]] = {id(root): ()}
    nodes = list(every_node(root))
    for node in nodes:
        if node.parent is not None:
            assert node.action is not None
            paths[id(node)] = (*paths[id(node.parent)], node.action)
    assert set(paths.values()) == set(visits) | {()}
    for node in nodes:
        path = paths[id(node)]
        assert node.state == after(state, path)
        assert node.is_terminal == node.state.is_terminal or node._header is None
        if not node.is_terminal:
            assert node.to_play == node.state.to_play
        assert node.visit_count == visits[path]
        assert node.in_flight == 0
        sign = 1.0 if node.to_play == node.state.to_play else -1.0
        assert node.total_value == pytest.approx(sign * sums[path], abs=1e-9)
        assert node.q_value == pytest.approx(node.total_value / node.visit_count)
        if not has_rewards:
            assert abs(node.q_value) <= 1.0 + 1e-12
        below = sum(child.visit_count for child in node.children.values())
        if node.parent is None:
            assert below == node.visit_count
            assert node.prior == 1.0
            assert node.reward == 0.0
        elif node.is_terminal or node.proven is not None:
            assert below <= node.visit_count
        else:
            assert below == node.visit_count - 1
        if has_rewards and node.parent is not None:
            assert node.reward == pytest.approx(node.state.rewards()[node.parent.to_play])
        elif node.parent is not None:
            assert node.reward == 0.0
        for action, child in node.children.items():
            assert child.parent is node
            assert child.action == action
            assert action in node.state.legal_actions()
            assert child.prior == child.clean_prior > 0.0
        if node.children and len(node.children) == len(node.state.legal_actions()):
            assert sum(child.prior for child in node.children.values()) == pytest.approx(1.0)
        if node.proven is not None:
            assert solved
            assert plain
            assert node.distance is not None
        if not solved:
            assert node.proven is None


@settings(max_examples=40)
@given(plies=st.integers(12, 40), seed=st.integers(0, 999), simulations=st.integers(1, 600))
def test_proofs_follow_from_their_children(plies: int, seed: int, simulations: int) -> None:
    """A win if any reply loses, a loss if all win; never otherwise; the shortest win, the longest of the rest."""
    root = pondertree.UCT(simulations, seed=seed).run(random_position(ConnectFour, plies, seed)).root
    for node in every_node(root):
        if node.is_terminal:
            assert node.proven == node.state.returns()[node.to_play]
            assert node.distance == 0
            continue
        known = [(-child.proven, child.distance) for child in node.children.values() if child.proven is not None]
        complete = len(known) == len(node.state.legal_actions())
        best = max((value for value, _ in known), default=None)
        if best == 1 or (complete and best is not None):
            assert node.proven == best
            plies_of_best = [distance for value, distance in known if value == best and distance is not None]
            assert node.distance == 1 + (min(plies_of_best) if best == 1 else max(plies_of_best))
        else:
            assert node.proven is None


def test_child_value_is_for_its_own_player() -> None:
    """The winning column of the player to move is a lost position for the other."""
    for wrap in (False, True):
        for moves in ("1 2 1 2 1 2", "1 2 1 2 1 2 7"):
            state = after(ConnectFour(), moves)
            result = pondertree.UCT(500, solve=False, seed=1).run(PythonGame(state) if wrap else state)
            winning = int(moves[0] if moves.count(" ") % 2 else moves[2]) - 1
            child = result.root.children[winning]
            assert child.q_value == -1.0
            assert result.q[winning] == 1.0
            assert child.to_play != result.root.to_play
            assert child.is_terminal


def test_pass_in_othello_keeps_signs() -> None:
    """Find a position in which somebody must pass; signs must hold through it."""
    passing = 64
    for seed in range(200):
        state = random_position(Othello, 58, seed)
        while not state.is_terminal and state.legal_actions() != [passing]:
            state = state.play(state.legal_actions()[0])
        if not state.is_terminal:
            break
    assert state.legal_actions() == [passing]
    result = pondertree.UCT(200, solve=False, seed=1).run(state)
    child = result.root.children[passing]
    assert child.total_value == pytest.approx(-result.root.total_value)
    assert child.to_play == 1 - state.to_play


def test_node_moves_are_texts_of_the_game() -> None:
    root = pondertree.UCT(100, seed=1).run(ConnectFour()).root
    assert repr(root).startswith("<Node root: visits 100")
    child = root.children[3]
    assert child.move == "4"
    assert "<Node 4" in repr(child)
    assert root.move == ""
    assert root.action is None
    assert root.parent is None
    assert root.slot is None


def test_node_is_read_only() -> None:
    root = pondertree.UCT(100, seed=1).run(ConnectFour()).root
    before = root.total_value
    for node in (root, root.children[3], root.children[3].children[3]):
        for name in ("total_value", "children", "to_play", "state", "visit_count", "_header", "_edge", "anything"):
            with pytest.raises(AttributeError, match="read-only"):
                setattr(node, name, 1)
        with pytest.raises(AttributeError, match="read-only"):
            del node.children
        with pytest.raises(TypeError, match="item assignment"):
            node.children[3] = None  # type: ignore[index]
        with pytest.raises(TypeError, match="item deletion"):
            del node.children[3]  # type: ignore[attr-defined]
    assert root.total_value == before
    assert len(root.children) == 7
    with pytest.raises(TypeError, match="item assignment"):
        next(node for node in every_node(root) if not node.children).children[0] = root  # type: ignore[index]


def test_unvisited_moves_have_nodes() -> None:
    """Where players earn rewards or are three, too: their value is 0, and the game says whose turn it would be."""
    result = pondertree.AlphaZero(Uniform(), 3, seed=1).run(CoinRow())
    tried = [child for child in result.root.children.values() if child.visit_count]
    below = [child for node in tried for child in node.children.values() if not child.visit_count]
    assert below
    for node in below:
        assert (node.total_value, node.q_value, node.raw_value) == (0.0, 0.0, 0.0)
        assert node.to_play == node.state.to_play == 2
    assert result.root.to_json().count('"action"') > len(tried)
