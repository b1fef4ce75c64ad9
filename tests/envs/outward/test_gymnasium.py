"""`as_gymnasium`: one side of a game as an environment, against an opponent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.chance_games import Race

import pondertree
from pondertree import InvalidActionError, InvalidArgumentError, PlayerError, UsageError
from pondertree.envs import as_gymnasium
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour, Pig, TicTacToe, TwentyFortyEight
from pondertree.testing.tabular import TabularGame

gymnasium = pytest.importorskip("gymnasium")
check_env = pytest.importorskip("gymnasium.utils.env_checker").check_env


def first_legal(state: Any) -> int:
    return int(min(state.legal_actions()))


OPPONENTS = {
    "random": "random",
    "function": first_legal,
    "UCT": pondertree.UCT(20),
    "AlphaZero": pondertree.AlphaZero(Uniform(), 8),
    "Gumbel": pondertree.Gumbel(Uniform(), 8),
}


@pytest.mark.parametrize("opponent", OPPONENTS.values(), ids=OPPONENTS)
@pytest.mark.parametrize("side", ["first", "second", "random"])
@pytest.mark.parametrize("factory", [TicTacToe, ConnectFour, Pig, Race], ids=lambda made: made.__name__)
def test_gymnasium_accepts_games(factory: Any, side: str, opponent: Any) -> None:
    # Only environments of the registry are created again in every render mode.
    check_env(as_gymnasium(factory, opponent, side=side, render_mode="ansi"), skip_render_check=True)


def test_gymnasium_accepts_games_of_one_player() -> None:
    check_env(as_gymnasium(TwentyFortyEight, render_mode="ansi"), skip_render_check=True)


def test_gymnasium_accepts_registered_games() -> None:
    def make(**options: Any) -> Any:
        return as_gymnasium(ConnectFour, pondertree.UCT(20), **options)

    gymnasium.register("ConnectFourAgainstUCT-v0", entry_point=make)
    try:
        check_env(gymnasium.make("ConnectFourAgainstUCT-v0", side="random", render_mode="ansi").unwrapped)
    finally:
        del gymnasium.registry["ConnectFourAgainstUCT-v0"]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    players=st.integers(1, 4),
    rewards=st.booleans(),
    chance=st.sampled_from([0.0, 0.4]),
    order=st.sampled_from(["alternate", "random", "double"]),
)
def test_episodes_are_games(seed: int, players: int, rewards: bool, chance: float, order: Any) -> None:
    game = TabularGame(seed, players=players, rewards=rewards, chance=chance, turn_order=order, depth=(3, 9))
    player = seed % players
    if decision_probability(game.start(), player) < 0.05:  # of 1,000 episodes one must have a decision
        return
    env = as_gymnasium(game.start, first_legal, side=player)
    _, info = env.reset(seed=seed)
    generator = np.random.default_rng(seed)
    total, over = 0.0, False
    while not over:
        state = env.game_state
        assert state.to_play == player == info["player"]
        assert np.flatnonzero(info["action_mask"]).tolist() == sorted(state.legal_actions())
        assert env.action_masks().tolist() == info["action_mask"].astype(bool).tolist()
        observation, reward, over, truncated, info = env.step(np.int64(generator.choice(state.legal_actions())))
        assert np.array_equal(observation, np.float32(env.game_state.observation()))
        assert not truncated
        total += reward
    assert not info["action_mask"].any()
    assert env.game_state.is_terminal
    assert total == pytest.approx(result(game, env.game_state.path, player))


def decision_probability(state: Any, player: int) -> float:
    """The probability that the player decides somewhere, if the others move as `first_legal`."""
    if state.is_terminal:
        return 0.0
    if state.to_play == player:
        return 1.0
    if state.to_play == pondertree.CHANCE:
        return sum(
            share * decision_probability(state.play(outcome), player) for outcome, share in state.chance_outcomes()
        )
    return decision_probability(state.play(first_legal(state)), player)


def result(game: TabularGame, path: tuple[int, ...], player: int) -> float:
    state: Any = game.start()
    total = 0.0
    for action in path:
        state = state.play(action)
        total += state.rewards()[player] if game.rewards else 0.0
    return total if game.rewards else float(state.returns()[player])


def test_opponent_moves_first_for_the_second_side() -> None:
    env = as_gymnasium(TicTacToe, first_legal, side="second")
    _, info = env.reset()
    assert info["action_mask"].tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert info["player"] == 1
    env.step(4)
    _, reward, terminated, _, _ = env.step(8)  # the opponent completes the first row
    assert (reward, terminated) == (-1.0, True)


def test_random_side_is_drawn_for_each_episode() -> None:
    env = as_gymnasium(TicTacToe, side="random")
    env.reset(seed=1)
    sides = [env.reset()[1]["player"] for _ in range(100)]
    assert 30 <= sum(sides) <= 70


@pytest.mark.parametrize("opponent", OPPONENTS.values(), ids=OPPONENTS)
def test_seed_determines_the_episode(opponent: Any) -> None:
    """Also with a search, whose calls are numbered: its random numbers come from the environment."""

    def episode() -> list[Any]:
        env = as_gymnasium(Race, opponent, side="random")
        env.reset(seed=7)
        states, over = [env.game_state], False
        while not over:
            over = env.step(1)[2]
            states.append(env.game_state)
        return states

    assert episode() == episode()


def test_search_wins_against_first_legal() -> None:
    """The opponent is the search: it takes its wins."""
    env = as_gymnasium(ConnectFour, pondertree.UCT(300, seed=1))
    lost = 0
    for seed in range(5):
        env.reset(seed=seed)
        over = False
        while not over:
            _, reward, over, _, _ = env.step(first_legal(env.game_state))
        lost += reward == -1.0
    assert lost == 5


def test_illegal_action_ends_the_episode() -> None:
    env = as_gymnasium(TicTacToe, first_legal, illegal_reward=-3.0)
    env.reset()
    env.step(4)
    observation, reward, terminated, truncated, info = env.step(4)
    assert (reward, terminated, truncated) == (-3.0, True, False)
    assert info["illegal_action"] == 4
    assert not info["action_mask"].any()
    assert observation in env.observation_space
    with pytest.raises(UsageError, match="the episode is over"):
        env.step(5)
    env.reset()
    env.step(4)


def test_illegal_action_may_raise() -> None:
    env = as_gymnasium(TicTacToe, first_legal, illegal_reward=None)
    env.reset()
    env.step(4)
    with pytest.raises(InvalidActionError, match="action 4 is not legal here; legal are"):
        env.step(4)
    assert env.game_state.legal_actions() == [1, 2, 3, 5, 6, 7, 8]
    env.step(1)


@pytest.mark.parametrize(
    ("opponent", "message"),
    [
        (lambda state: 99, "the opponent returned 99, which is illegal: legal are"),
        (lambda state: "4", "the opponent returned '4': it must be an action"),
        (lambda state: 1 / 0, "the opponent raised ZeroDivisionError"),
    ],
)
def test_failures_of_the_opponent_are_named(opponent: Any, message: str) -> None:
    env = as_gymnasium(TicTacToe, opponent)
    env.reset()
    with pytest.raises(PlayerError, match=message):
        env.step(0)
    # The decision is as it was.
    assert env.game_state == TicTacToe()
    assert env.action_masks().all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"opponent": "UCT"}, "opponent must be 'random', a search such as"),
        ({"opponent": pondertree.UCT}, "opponent must be 'random', a search such as"),
        ({"side": "third"}, "side must be 'first', 'second', 'random' or a player from 0 to 1, not 'third'"),
        ({"side": 2}, "side must be at most 1, not 2"),
        ({"render_mode": "human"}, "render_mode must be None or 'ansi'"),
        ({"illegal_reward": "no"}, "illegal_reward must be a number"),
        ({"observe": 3}, "observe must be a function"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        as_gymnasium(TicTacToe, **arguments)


def test_second_side_needs_two_players() -> None:
    with pytest.raises(InvalidArgumentError, match="side must be"):
        as_gymnasium(TwentyFortyEight, side="second")


def test_order_of_calls_is_checked() -> None:
    env = as_gymnasium(TicTacToe)
    with pytest.raises(UsageError, match="call reset"):
        env.step(0)


def test_render() -> None:
    env = as_gymnasium(TicTacToe, render_mode="ansi")
    env.reset()
    assert env.render() == str(TicTacToe())
