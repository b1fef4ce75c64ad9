"""`as_pettingzoo`: games as AEC environments."""

from __future__ import annotations

import copy
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.chance_games import Race

from pondertree import GameContractError, InvalidActionError, InvalidArgumentError, MissingExtraError, UsageError
from pondertree.envs import as_pettingzoo, from_pettingzoo
from pondertree.game import COMPILED
from pondertree.games import ConnectFour, Pig, TicTacToe, TwentyFortyEight
from pondertree.testing.tabular import TabularGame

wrappers = pytest.importorskip("pettingzoo.utils.wrappers")
pytest.importorskip("pygame")  # imported by PettingZoo's tests
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # they import an environment by its former path
    checks = pytest.importorskip("pettingzoo.test")

RACES = TabularGame(3, players=3, chance=0.3, rewards=True, depth=(3, 8))


@pytest.mark.parametrize(
    "factory", [*COMPILED, Race, RACES.start, TabularGame(1, turn_order="double").start], ids=lambda made: made.__name__
)
def test_pettingzoo_accepts_games(factory: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        # It warns of masks of zeros, which agents at the end have everywhere, and of dicts as observations.
        warnings.simplefilter("ignore", UserWarning)
        checks.api_test(as_pettingzoo(factory), num_cycles=50)
    checks.seed_test(lambda: as_pettingzoo(factory), num_cycles=50)
    assert "Passed API test" in capsys.readouterr().out


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    players=st.integers(1, 4),
    rewards=st.booleans(),
    chance=st.sampled_from([0.0, 0.4]),
    order=st.sampled_from(["alternate", "random", "double"]),
)
def test_episodes_are_games(seed: int, players: int, rewards: bool, chance: float, order: Any) -> None:
    """Agents, masks, rewards and ends of an episode are those of the game that its actions and outcomes make."""
    game = TabularGame(seed, players=players, rewards=rewards, chance=chance, turn_order=order, depth=(2, 7))
    env = as_pettingzoo(game.start)
    env.reset(seed=seed)
    generator = np.random.default_rng(seed)
    totals, received = dict.fromkeys(env.possible_agents, 0.0), dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        received[agent] += reward
        assert not truncated
        if terminated:
            assert env.game_state.is_terminal
            assert not observation["action_mask"].any()
            env.step(None)
            continue
        state = env.game_state
        assert agent == f"player_{state.to_play}"
        assert sorted(state.legal_actions()) == np.flatnonzero(observation["action_mask"]).tolist()
        assert np.array_equal(observation["observation"], np.float32(state.observation()))
        assert not any(env.observe(other)["action_mask"].any() for other in env.agents if other != agent)
        env.step(int(generator.choice(state.legal_actions())))
        for each, amount in env.rewards.items():
            totals[each] += amount
    assert not env.agents
    assert received == pytest.approx(totals)
    assert list(totals.values()) == pytest.approx(results(game, env.game_state.path))


def results(game: TabularGame, path: tuple[int, ...]) -> list[float]:
    """Returns what each player gets along a path, from the game alone."""
    state: Any = game.start()
    totals = [0.0] * game.players
    for action in path:
        state = state.play(action)
        if game.rewards:
            totals = [total + reward for total, reward in zip(totals, state.rewards(), strict=True)]
    assert state.is_terminal
    return totals if game.rewards else list(state.returns())


def test_outcomes_are_drawn_by_their_probabilities() -> None:
    env = as_pettingzoo(Race)
    env.reset(seed=1)
    count: Counter[int] = Counter()
    for _ in range(2000):
        env.reset()
        env.step(1)
        count[env.game_state.places[0]] += 1
    # Three standard deviations of 2000 draws are about 0.03.
    assert {steps: number / 2000 for steps, number in count.items()} == pytest.approx(
        {0: 0.5, 2: 0.25, 3: 0.25}, abs=0.03
    )


def test_seed_determines_the_outcomes() -> None:
    def episode(seed: int | None, env: Any) -> list[Any]:
        env.reset(seed=seed)
        states = []
        while env.agents and not env.terminations[env.agent_selection]:
            states.append(env.game_state)
            env.step(1)
        return states

    env = as_pettingzoo(Race)
    first, second = episode(5, env), episode(None, env)
    again = as_pettingzoo(Race)
    assert episode(5, again) == first
    assert episode(None, again) == second
    assert first != second


def test_copies_continue_alike() -> None:
    env = as_pettingzoo(Pig)
    env.reset(seed=3)
    other = copy.deepcopy(env)
    for each in (env, other):
        for _ in range(10):
            each.step(0)
    assert env.game_state == other.game_state
    env.step(0)
    assert env.game_state != other.game_state


class Dealt(Race):
    """A race whose first roll is dealt before any decision, and whose states all pay their steps."""

    def rewards(self) -> list[float]:
        return [1.0 + self.places[0], -2.0]


def test_rewards_before_the_first_decision_come_with_the_first_step() -> None:
    """PettingZoo has none before it. What the start itself says is no reward of a move."""
    env = as_pettingzoo(lambda: Dealt(rolling=True))
    env.reset(seed=1)
    steps = env.game_state.places[0]
    assert env.agent_selection == "player_1"
    assert env.last()[1] == 0.0
    env.step(0)
    assert env.rewards == {"player_0": 2.0 * (1.0 + steps), "player_1": -4.0}
    env.step(0)
    assert env.rewards == {"player_0": 2.0 + steps, "player_1": -2.0}


def test_rewards_of_every_move_reach_the_agent() -> None:
    env = as_pettingzoo(TwentyFortyEight)
    env.reset(seed=2)
    total = 0.0
    while not env.terminations["player_0"]:
        env.step(env.game_state.legal_actions()[0])
        total += env.rewards["player_0"]
        assert env.last()[1] == env.rewards["player_0"]
    assert total > 0


def test_illegal_action_raises_and_changes_nothing() -> None:
    env = as_pettingzoo(TicTacToe)
    env.reset()
    env.step(4)
    state = env.game_state
    for wrong, message in (
        (4, "action 4 is not legal here; legal are [0, 1, 2, 3, 5, 6, 7, 8]"),
        (9, "9 is no action: actions are ints from 0 to 8"),
        (-1, "-1 is no action"),
        (0.5, "0.5 is no action"),
        (None, "None is no action"),
    ):
        with pytest.raises(InvalidActionError, match="tic_tac_toe: ") as caught:
            env.step(wrong)
        assert message in str(caught.value)
    assert env.game_state == state
    assert env.agent_selection == "player_1"
    env.step(np.array(0))


@pytest.mark.parametrize("wrapped", [False, True])
def test_illegal_action_may_end_the_episode(wrapped: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """The option does what PettingZoo's wrapper does."""
    env: Any = as_pettingzoo(TicTacToe, illegal_reward=None if wrapped else -2.0)
    if wrapped:
        env = wrappers.OrderEnforcingWrapper(wrappers.TerminateIllegalWrapper(env, illegal_reward=-2.0))
    env.reset()
    env.step(4)
    env.step(4)
    assert env.rewards == {"player_0": 0.0, "player_1": -2.0}
    assert all(env.terminations.values())
    rewards = {}
    for agent in env.agent_iter():
        rewards[agent] = env.last()[1]
        env.step(None)
    assert rewards == {"player_0": 0.0, "player_1": -2.0}
    assert not env.agents


def test_observe_gives_each_agent_its_view() -> None:
    env = as_pettingzoo(TicTacToe, observe=lambda state, player: [player, *state.legal_actions()[:2]])
    env.reset()
    assert env.observe("player_0")["observation"].tolist() == [0, 0, 1]
    assert env.observe("player_1")["observation"].tolist() == [1, 0, 1]


def test_render() -> None:
    env = as_pettingzoo(TicTacToe, render_mode="ansi")
    env.reset()
    assert env.render() == str(TicTacToe())
    silent = as_pettingzoo(TicTacToe)
    silent.reset()
    with pytest.warns(UserWarning, match="render_mode='ansi' of as_pettingzoo"):
        assert silent.render() is None


class Blind(Race):
    observation = None  # type: ignore[assignment]


class Broken(Race):
    def returns(self) -> list[float]:
        return [2.0, -2.0] if self.is_terminal else [0.0, 0.0]


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="factory must return a starting state, such as TicTacToe"):
        as_pettingzoo(TicTacToe())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="'int' object is not a game state"):
        as_pettingzoo(lambda: 3)
    with pytest.raises(InvalidArgumentError, match=r"Blind has no observation\(\)"):
        as_pettingzoo(Blind)
    with pytest.raises(InvalidArgumentError, match="render_mode must be None or 'ansi', not 'human'"):
        as_pettingzoo(TicTacToe, render_mode="human")
    with pytest.raises(InvalidArgumentError, match="illegal_reward must be a finite number, not nan"):
        as_pettingzoo(TicTacToe, illegal_reward=float("nan"))
    with pytest.raises(GameContractError, match="has a number that is not finite"):
        as_pettingzoo(TicTacToe, observe=lambda state, player: float("inf"))
    starts = iter([TicTacToe(), TicTacToe(), ConnectFour()])
    env = as_pettingzoo(lambda: next(starts))
    with pytest.raises(GameContractError, match="the first one was of"):
        env.reset()
    with pytest.raises(UsageError, match="call reset"):
        as_pettingzoo(TicTacToe).step(0)
    broken = as_pettingzoo(Broken)
    broken.reset()
    for _ in range(10):
        broken.step(0)
    with pytest.raises(GameContractError, match="results are finite and from -1 to 1"):
        broken.step(0)


@pytest.mark.parametrize("call", [lambda: as_pettingzoo(TicTacToe), lambda: from_pettingzoo(object())])
def test_missing_package_is_named(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtraError, match=r"_pettingzoo needs pettingzoo: .*envs"):
        call()


class Drawn:
    """A lot decides before anyone moves."""

    num_players, num_actions = 2, 2

    def __init__(self, winner: int | None = None) -> None:
        self.winner = winner
        self.is_terminal = winner is not None
        self.to_play = 0 if self.is_terminal else -1

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [0, 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.5), (1, 0.5)]

    def play(self, action: int) -> Drawn:
        return Drawn(action)

    def returns(self) -> list[float]:
        return [1.0, -1.0] if self.winner == 0 else [-1.0, 1.0]

    def observation(self) -> Any:
        return np.zeros(1, dtype=np.float32)


def test_result_before_the_first_decision_reaches_the_agents() -> None:
    env = as_pettingzoo(Drawn)
    seen = set()
    for seed in range(8):
        env.reset(seed=seed)
        results = []
        for _ in env.agent_iter():
            _, reward, terminated, _, _ = env.last()
            results.append(reward)
            assert terminated
            env.step(None)
        seen.add(tuple(results))
    assert seen == {(1.0, -1.0), (-1.0, 1.0)}
