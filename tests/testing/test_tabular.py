"""The random test games: contract, determinism, and their exact solvers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.solvers import best_play, minimax_value, solve

from pondertree.testing.tabular import TabularGame, TabularState

games = st.builds(
    TabularGame,
    seed=st.integers(0, 10_000),
    players=st.integers(1, 4),
    branching=st.sampled_from([(1, 1), (1, 3), (2, 4)]),
    depth=st.sampled_from([(1, 1), (1, 3), (2, 4), (4, 4)]),
    turn_order=st.sampled_from(["alternate", "random", "double"]),
    rewards=st.booleans(),
    zero_sum=st.booleans(),
)


def all_states(state: TabularState) -> list[TabularState]:
    found = [state]
    for known in found:
        found.extend(known.play(action) for action in known.legal_actions())
    return found


@settings(max_examples=60, deadline=None)
@given(games)
def test_tabular_game_fulfils_the_contract(game: TabularGame) -> None:
    states = all_states(game.start())
    assert len(set(states)) == len(states)
    assert len({state.observation() for state in states}) == len(states)
    for state in states:
        legal = state.legal_actions()
        assert state.is_terminal == (not legal)
        assert len(set(legal)) == len(legal) <= game.branching[1]
        assert all(0 <= action < state.num_actions for action in legal)
        assert 0 <= state.to_play < state.num_players == game.players
        assert len(state.path) <= game.depth[1]
        assert not state.is_terminal or len(state.path) >= game.depth[0]
        assert len(state.returns()) == game.players
        assert hasattr(state, "rewards") == game.rewards
        assert state.zero_sum == (game.zero_sum and game.players == 2 and not game.rewards)
        if state.is_terminal and state.zero_sum:
            assert sum(state.returns()) == 0.0
            assert set(state.returns()) <= {-1.0, 0.0, 1.0}
        elif not game.rewards:
            assert all(-1.0 <= value <= 1.0 for value in state.returns())


@settings(max_examples=30, deadline=None)
@given(games)
def test_equal_seeds_give_equal_games(game: TabularGame) -> None:
    again = TabularGame(**{name: getattr(game, name) for name in TabularGame.__dataclass_fields__})
    ours, theirs = all_states(game.start()), all_states(again.start())
    assert ours == theirs
    assert [s.to_play for s in ours] == [s.to_play for s in theirs]
    assert [s.returns() for s in ours] == [s.returns() for s in theirs]


def test_tabular_states_are_values() -> None:
    start = TabularGame(3).start()
    action = start.legal_actions()[0]
    assert start.play(action) == start.play(action)
    assert hash(start.play(action)) == hash(start.play(action))
    assert start.play(action) != start
    assert start != TabularGame(4).start()
    with pytest.raises(AttributeError):
        start.path = ()  # type: ignore[misc]
    start.legal_actions().clear()
    assert start.legal_actions()


def test_turn_order_is_alternate_double_or_random() -> None:
    def order_of_play(order: Any, players: int) -> list[int]:
        state = TabularGame(5, players, depth=(6, 6), turn_order=order).start()
        found = []
        while not state.is_terminal:
            found.append(state.to_play)
            state = state.play(state.legal_actions()[0])
        return found

    assert order_of_play("alternate", 2) == [0, 1, 0, 1, 0, 1]
    assert order_of_play("alternate", 3) == [0, 1, 2, 0, 1, 2]
    assert order_of_play("double", 2) == [0, 0, 1, 1, 0, 0]
    assert set(order_of_play("random", 2)) <= {0, 1}
    seen = {s.to_play for s in all_states(TabularGame(5, 3, depth=(4, 4), turn_order="random").start())}
    assert seen == {0, 1, 2}


def test_tabular_actions_may_be_sparse_and_unordered() -> None:
    lists = [TabularGame(seed, branching=(3, 4)).start().legal_actions() for seed in range(50)]
    assert any(actions != sorted(actions) for actions in lists)
    assert any(max(actions) >= len(actions) for actions in lists)


def test_rewards_sum_to_the_returns() -> None:
    state = TabularGame(8, players=3, rewards=True, depth=(5, 5)).start()
    totals = [0.0] * 3
    while not state.is_terminal:
        state = state.play(state.legal_actions()[-1])
        totals = [total + reward for total, reward in zip(totals, state.rewards(), strict=True)]  # type: ignore[attr-defined]
    assert state.returns() == totals
    assert any(totals)


def test_illegal_actions_and_invalid_games_are_refused() -> None:
    start = TabularGame(0).start()
    illegal = next(action for action in range(start.num_actions) if action not in start.legal_actions())
    with pytest.raises(ValueError, match="not legal"):
        start.play(illegal)
    senseless: list[dict[str, Any]] = [
        {"players": 0},
        {"branching": (0, 2)},
        {"depth": (3, 2)},
        {"turn_order": "?"},
        {"action_space": 3},
    ]
    for wrong in senseless:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            TabularGame(0, **wrong)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["alternate", "random", "double"]))
def test_exact_solvers_agree(seed: int, order: Any) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 5), branching=(1, 3)).start()
    value, plies = solve(state)
    assert minimax_value(state) == value == best_play(state)[state.to_play]
    assert 1 <= plies <= 5
    # The shortest win: no move wins in fewer plies.
    for action in state.legal_actions():
        child = state.play(action)
        other, further = solve(child)
        other = other if child.to_play == state.to_play else -other
        assert other <= value
        if other == value == 1.0:
            assert further + 1 >= plies
        elif other == value:
            assert further + 1 <= plies
