"""`from_pettingzoo`: AEC environments as games of one player per agent."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.chance_games import Race

import pondertree
from pondertree import CHANCE, GameContractError, InvalidActionError, InvalidArgumentError, UsageError
from pondertree.envs import as_pettingzoo, from_pettingzoo, record, wrap
from pondertree.errors import SnapshotError
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour, Othello, TicTacToe
from pondertree.random import Random
from pondertree.testing import check_game
from pondertree.testing.tabular import TabularGame

pettingzoo = pytest.importorskip("pettingzoo")

from tests.support.zoo_environments import Continuous, Dice, Faulty, Locked, Survivors  # noqa: E402 (after the package it needs)

from pondertree.envs import pettingzoo as adapter  # noqa: E402


class Ordered(TabularGame):
    """A random game whose legal actions are in order, as masks give them."""

    def _legal(self, key: int) -> tuple[int, ...]:
        return tuple(sorted(super()._legal(key)))


def at_start(env: Any, seed: int = 0) -> Any:
    env.reset(seed=seed)
    return env


def random_line(state: Any, seed: int) -> list[int]:
    """Returns the actions of a random game, and the outcomes of chance."""
    random, actions = Random(seed, 1), []
    while not state.is_terminal:
        legal = state.legal_actions()
        actions.append(legal[random.choose(len(legal))])
        state = state.play(actions[-1])
    return actions


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    players=st.integers(1, 4),
    rewards=st.booleans(),
    order=st.sampled_from(["alternate", "random", "double"]),
)
def test_round_trip_gives_the_trees_of_the_game(seed: int, players: int, rewards: bool, order: Any) -> None:
    """Visit for visit, with proofs and rewards."""
    game = Ordered(seed, players=players, rewards=rewards, turn_order=order, depth=(2, 7))
    state = from_pettingzoo(at_start(as_pettingzoo(game.start)))
    assert hasattr(state, "rewards") == rewards
    for search in (pondertree.UCT(150, seed=seed), pondertree.AlphaZero(Uniform(), 60, seed=seed)):
        expected = search.run(game.start(), seeds=seed)
        found = search.run(state, seeds=seed)
        assert found.visits.tolist() == expected.visits.tolist()
        assert found.value == expected.value
        assert found.proven == expected.proven
        assert found.action == expected.action


@pytest.mark.parametrize("game", [TicTacToe, ConnectFour, Othello], ids=lambda made: made.__name__)
def test_round_trip_of_compiled_games(game: Any) -> None:
    search = pondertree.AlphaZero(Uniform(), 100, seed=3)
    env = at_start(as_pettingzoo(game))
    for _ in range(4):
        found, expected = (search.run(each, seeds=5) for each in (from_pettingzoo(env), env.game_state))
        assert found.visits.tolist() == expected.visits.tolist()
        assert found.value == expected.value
        assert np.array_equal(from_pettingzoo(env).observation(), env.game_state.observation())
        env.step(found.action)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32), players=st.integers(1, 4), energy=st.integers(2, 6), limit=st.integers(1, 20))
def test_rewards_are_those_of_the_environment(seed: int, players: int, energy: int, limit: int) -> None:
    """Agents end at different times; `last()` of the environment itself adds up the same rewards."""
    env = at_start(Survivors(players, energy, limit))
    state = from_pettingzoo(env)
    line = random_line(state, seed)
    totals = dict.fromkeys(env.possible_agents, 0.0)
    searched = np.zeros(players)
    played = iter(line)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        totals[agent] += reward
        if terminated or truncated:
            env.step(None)
            continue
        assert state.agent == agent
        assert state.to_play == env.possible_agents.index(agent)
        assert state.legal_actions() == np.flatnonzero(info["action_mask"]).tolist()
        action = next(played)
        env.step(action)
        state = state.play(action)
        searched += state.rewards()
    assert state.is_terminal
    assert next(played, None) is None
    assert searched.tolist() == pytest.approx(list(totals.values()))
    assert state.returns() == pytest.approx(list(totals.values()))


def test_state_is_a_game() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for env in (Survivors(), Dice(), as_pettingzoo(TicTacToe), as_pettingzoo(Race)):
            state = from_pettingzoo(at_start(env), seed=4)
            check_game(lambda state=state: state, games=5)


def test_state_is_that_of_now() -> None:
    env = at_start(Survivors(3, 3))
    for action in (0, 2, 0):  # the second agent has one left
        env.step(action)
    state = from_pettingzoo(env)
    assert (state.agent, state.steps, state.totals) == (env.agent_selection, 0, (0.0, 0.0, 0.0))
    assert state.legal_actions() == np.flatnonzero(env.infos[env.agent_selection]["action_mask"]).tolist()


def test_agents_that_are_done_owe_no_decision() -> None:
    """The environment waits for None: the state is that after it, and the environment still waits."""
    env = at_start(Survivors(3, 1))
    env.step(0)
    assert env.terminations["agent_0"]
    assert env.agent_selection == "agent_0"
    state = from_pettingzoo(env)
    assert state.agent == "agent_1"
    assert env.agent_selection == "agent_0"
    assert env.agents == ["agent_0", "agent_1", "agent_2"]
    state.play(0)
    assert pondertree.UCT(50, seed=1).run(state).visits.sum() == 50


def test_finished_episode_is_over() -> None:
    env = at_start(Survivors(1, 1))
    env.step(0)
    state = from_pettingzoo(env)  # the agent still owes None
    assert state.is_terminal
    assert state.legal_actions() == []
    with pytest.raises(pondertree.GameOverError):
        pondertree.UCT(10).run(state)
    env.step(None)
    with pytest.raises(pondertree.GameOverError, match="the episode of survivors_v0 is over"):
        from_pettingzoo(env)


def test_truncation_is_shown() -> None:
    state = from_pettingzoo(at_start(Survivors(2, 9, 2)))
    state = state.play(0)
    assert not state.truncated
    state = state.play(0)
    assert state.truncated
    assert state.is_terminal


def shown(env: Any) -> Any:
    """What can be seen of an environment, and the state of its random numbers."""
    held = {name: copy.deepcopy(getattr(env, name)) for name in ("agents", "rewards", "terminations", "truncations")}
    views = [np.array(env.observe(agent)).tolist() for agent in env.agents]
    return held, views, env.agent_selection, repr(env.np_random.bit_generator.state)


@pytest.mark.parametrize("kind", [Survivors, Dice])
def test_environment_is_never_stepped(kind: Any) -> None:
    env = at_start(kind())
    env.step(1)
    before = shown(env)
    numbers = repr(np.random.get_state())
    state = from_pettingzoo(env, seed=1)
    pondertree.UCT(200, seed=1).run(state)
    assert shown(env) == before
    assert repr(np.random.get_state()) == numbers


def test_search_does_not_foresee_random_numbers() -> None:
    """The die of `Dice` pays less on average than the sure reward, but a copied generator shows when it pays more."""
    state = from_pettingzoo(at_start(Dice()), seed=5, samples=36)
    assert state.is_random
    chance = state.play(1)
    assert chance.to_play == CHANCE
    pays = sum(chance.play(outcome).rewards()[0] > 0 for outcome, _ in chance.chance_outcomes())
    assert 4 <= pays <= 20  # 12 on average: samples, whatever the environment itself will draw
    wins = 0
    for seed in range(20):
        env = at_start(Dice(), seed)
        state = from_pettingzoo(env, seed=seed)
        env.step(1)
        wins += (state.play(1).play(0).rewards()[0] > 0) == (env.rewards["agent_0"] > 0)
    assert wins < 18  # a copied generator agrees in all


def test_samples_have_the_probabilities_of_the_dice() -> None:
    """A game with chance nodes, whose dice are inside `step` of its environment, and come back as samples."""
    state = from_pettingzoo(at_start(as_pettingzoo(Race)), seed=6, samples=600).play(1)
    assert state.to_play == CHANCE
    outcomes = state.chance_outcomes()
    assert sum(probability for _, probability in outcomes) == pytest.approx(1.0, abs=1e-9)
    steps = [6 - round(state.play(outcome).observation()[0]) for outcome, _ in outcomes]
    shares = {step: steps.count(step) / 600 for step in set(steps)}
    # Standard deviations are about 0.02.
    assert shares == pytest.approx({6: 0.5, 4: 0.25, 3: 0.25}, abs=0.07)
    played = from_pettingzoo(at_start(as_pettingzoo(Race)), seed=6)
    for _ in range(3):
        result = pondertree.UCT(300, seed=2).run(played)
        played = played.play(result.action)
        played = played.play(3) if played.to_play == CHANCE else played
    assert result.visits.sum() == 300


def test_seed_determines_the_search() -> None:
    env = at_start(Dice())
    results = [pondertree.UCT(200, seed=2).run(from_pettingzoo(env, seed=seed)) for seed in (7, 7, 8)]
    assert results[0].visits.tolist() == results[1].visits.tolist()
    assert results[0].value == results[1].value
    assert results[0].value != results[2].value


def test_random_false_fixes_the_numbers_of_a_step() -> None:
    """They are a function of the seed and the actions, and not those that the environment itself will draw."""
    states = [from_pettingzoo(at_start(Dice()), random=False, seed=seed) for seed in range(60)]
    assert not any(state.is_random or hasattr(state, "chance_outcomes") for state in states)
    rewards = [state.play(1).rewards()[0] for state in states]
    assert rewards == [state.play(1).rewards()[0] for state in states]
    assert 8 <= sum(reward > 0 for reward in rewards) <= 32


def test_discount_is_that_of_the_search() -> None:
    """Rewards are the environment's, and a search discounts each action."""
    env = at_start(Survivors(2, 9))
    plain, discounted = from_pettingzoo(env), from_pettingzoo(env, discount=0.5)
    options: Any = {"num_simulations": 60, "max_depth": 3, "seed": 1}
    assert pondertree.UCT(**options).run(discounted).value == pondertree.UCT(discount=0.5, **options).run(plain).value
    assert pondertree.UCT(**options).run(discounted).value != pondertree.UCT(**options).run(plain).value
    for action in (2, 1, 2):
        plain, discounted = plain.play(action), discounted.play(action)
        assert discounted.rewards() == plain.rewards()


class Observed(Survivors):
    """Counts observations."""

    count = 0

    def observe(self, agent: str) -> Any:
        Observed.count += 1
        return super().observe(agent)


def test_step_observes_once() -> None:
    """A probe looks again before each action, a search does not."""
    state = from_pettingzoo(at_start(Observed()))
    Observed.count = 0
    state.play(0).play(1)
    assert Observed.count == 2


def test_environment_is_probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every move of an episode the state is that of now, and the probe is that of the first."""
    calls = []
    find = adapter.find_snapshots
    monkeypatch.setattr(adapter, "find_snapshots", lambda *args, **options: calls.append(1) or find(*args, **options))
    env = at_start(Survivors())
    for _ in range(2):
        env.reset()
        for action in (0, 1, 1):
            assert from_pettingzoo(env).observation().tolist() == env.observe(env.agent_selection).tolist()
            env.step(action)
    assert len(calls) == 1
    assert from_pettingzoo(env, discount=0.9).play(0).totals != (0.0, 0.0, 0.0)
    assert len(calls) == 2
    held = weakref.ref(env)
    del env
    gc.collect()
    assert held() is None


def test_snapshots_of_the_user_are_used() -> None:
    calls = []

    def save(env: Any) -> Any:
        calls.append("save")
        return copy.deepcopy(env.unwrapped.__dict__)

    def restore(env: Any, token: Any) -> None:
        calls.append("restore")
        env.unwrapped.__dict__.update(copy.deepcopy(token))

    env = at_start(Survivors())
    state = from_pettingzoo(env, snapshot=(save, restore))
    assert state.snapshot_method == "given"
    assert pondertree.UCT(50, seed=1).run(state).visits.tolist() == (
        pondertree.UCT(50, seed=1).run(from_pettingzoo(env)).visits.tolist()
    )
    assert {"save", "restore"} <= set(calls)


def test_recorded_environments_are_replayed() -> None:
    """Where nothing else is possible, from the seed and the actions of the episode."""
    with pytest.raises(SnapshotError, match=r"survivors_v0 cannot be copied.*envs\.record\(env\) before"):
        from_pettingzoo(at_start(Locked()))
    env, plain = at_start(record(Locked())), at_start(Locked())
    for action in (1, 0, 2):
        env.step(action)
        plain.step(action)
    state = wrap(env)
    assert state.snapshot_method == "replay"
    assert pondertree.UCT(100, seed=1).run(state).visits.sum() == 100
    for action in (0, 1):
        state = state.play(action)
        plain.step(action)
        env.step(action)
        assert state.rewards() == list(plain.rewards.values())
        # Another episode, or another state of this one: a replay is found anew.
        assert from_pettingzoo(env).play(0).rewards() == state.play(0).rewards()


def test_playouts_in_place_equal_plays() -> None:
    state = from_pettingzoo(at_start(Survivors(3, 6)))
    line = random_line(state, 2)
    here = state.in_place()
    for action in line:
        before = here
        here, state = here.play(action), state.play(action)
        assert here.legal_actions() == state.legal_actions()
        assert here.rewards() == state.rewards()
        with pytest.raises(UsageError, match="plays once"):
            before.play(action)
    assert here.totals == state.totals


@pytest.fixture
def _healthy() -> Iterator[None]:
    yield
    Faulty.fault, Faulty.healthy = None, 2


@pytest.mark.usefixtures("_healthy")
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raises", "failed: RuntimeError: the emulator crashed"),
        ("nan", "gave the reward nan: rewards must be finite"),
        ("infinite", "gave the reward inf: rewards must be finite"),
        ("mask shape", r"the action_mask of agent_\d has shape \(7,\), but there are 3 actions"),
        ("mask values", r"the action_mask of agent_\d has 2: it must be 1 for what is allowed"),
        ("mask empty", r"the action_mask of agent_\d allows no action"),
        ("stranger", "selected the agent 'nobody', which is not in possible_agents"),
        ("immortal", r"step\(None\) does not remove an agent whose episode is over"),
    ],
)
def test_failure_midway_is_named_and_leaves_the_tree(fault: str, message: str) -> None:
    tree = pondertree.UCT(seed=1, solve=False).tree(from_pettingzoo(at_start(Faulty(3, 4))))
    tree.simulate(20)
    Faulty.fault = fault
    with pytest.raises(GameContractError, match=message) as caught:
        tree.simulate(500)
    assert str(caught.value).startswith("faulty_v0.step(")
    visits = tree.result().visits
    Faulty.fault = None
    tree.simulate(30)
    assert tree.result().visits.sum() == visits.sum() + 30


@pytest.mark.usefixtures("_healthy")
def test_failure_at_the_root_is_named() -> None:
    env = at_start(Faulty(3, 4))
    Faulty.fault, Faulty.healthy = "raises", 0
    with pytest.raises(pondertree.PondertreeError, match=r"faulty_v0.*the emulator crashed"):
        from_pettingzoo(env)


def test_illegal_actions_are_refused() -> None:
    state = from_pettingzoo(at_start(Survivors(2, 2)))
    with pytest.raises(InvalidActionError, match=r"survivors_v0: action 2 is not allowed here: allowed are \[0, 1\]"):
        state.play(2)


def test_mistakes_are_named() -> None:
    class Parallel(pettingzoo.ParallelEnv):
        metadata = {"name": "both_v0"}  # noqa: RUF012
        possible_agents = ("a_0", "a_1")

        def step(self, actions: Any) -> Any: ...

    with pytest.raises(InvalidArgumentError, match="both_v0 is a parallel environment, whose agents move at once"):
        from_pettingzoo(Parallel())
    for wrong in (3, Survivors, ConnectFour(), None):
        with pytest.raises(InvalidArgumentError, match="env must be an AEC environment of PettingZoo, not"):
            from_pettingzoo(wrong)
    with pytest.raises(InvalidArgumentError, match=r"continuous_v0.*agent_0.*only Discrete, MultiDiscrete"):
        from_pettingzoo(at_start(Continuous()))
    with pytest.raises(UsageError, match=r"survivors_v0 has no state yet: call env.reset\(\) first"):
        from_pettingzoo(Survivors())
    env = at_start(Survivors())
    for option, message in (
        ({"discount": 0.0}, "discount must be above 0 and at most 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"random": 1}, "random must be True or False"),
        ({"perfect_information": "yes"}, "perfect_information must be True or False"),
        ({"results_only": 2}, "results_only must be True or False"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            from_pettingzoo(env, **option)
    wrong = from_pettingzoo(env, results_only=True)
    with pytest.raises(GameContractError, match=r"before the end, which are no results.*results_only=False"):
        wrong.play(1)


def test_observations_that_networks_do_not_take_are_named_when_asked_for() -> None:
    from gymnasium import spaces

    env = Survivors()
    env._observations = {agent: spaces.Dict({"board": spaces.Discrete(3)}) for agent in env.possible_agents}
    state = from_pettingzoo(at_start(env))
    assert pondertree.UCT(20).run(state).visits.sum() == 20
    with pytest.raises(InvalidArgumentError, match="without the entry 'observation' that networks take"):
        state.observation()
