"""The classic environments of PettingZoo, each with its verdict."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pondertree
from pondertree import InvalidArgumentError
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour
from pondertree.random import Random

pettingzoo = pytest.importorskip("pettingzoo")
for package in ("pygame", "rlcard", "shimmy", "pyspiel", "chess"):
    pytest.importorskip(package, reason="PettingZoo's extra 'classic'")

from pettingzoo.utils.conversions import parallel_to_aec  # noqa: E402

from pondertree.envs import from_pettingzoo  # noqa: E402 (after the packages it needs)

#: Environments that are searched, with their number of actions.
SEARCHED = {"chess-v6": 4672, "connect_four-v3": 7, "go-v5": 362, "tictactoe-v3": 9}
#: Environments that are refused, with what their states are like if hidden information is said to be open.
HIDDEN = {
    "hanabi-v5": "RandomZooRewardState",
    "leduc_holdem-v4": "ZooRewardState",
    "rps-v2": "ZooRewardState",
    "texas_holdem-v4": "ZooRewardState",
    "texas_holdem_no_limit-v6": "ZooRewardState",
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(rlcard|shimmy|pygame|pettingzoo)"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning:(rlcard|shimmy|gymnasium|pettingzoo)"),
]


def make(name: str, moves: int = 0) -> Any:
    """Returns an environment after some random moves."""
    env = pettingzoo.make("aec", f"classic/{name}")
    env.reset(seed=3)
    random = Random(moves, 1)
    for _ in range(moves):
        legal = np.flatnonzero(mask_of(env)) if mask_of(env) is not None else [0, 1, 2]
        env.step(int(legal[random.choose(len(legal))]))
    return env


def mask_of(env: Any) -> Any:
    observation = env.observe(env.agent_selection)
    return observation["action_mask"] if isinstance(observation, dict) else None


def test_all_classic_environments_have_a_verdict() -> None:
    """A new environment of PettingZoo shows here."""
    names = {name.removeprefix("classic/") for name in pettingzoo.aec_registry if name.startswith("classic/")}
    assert names == SEARCHED.keys() | HIDDEN.keys()


@pytest.mark.parametrize("name", SEARCHED)
def test_environments_are_searched(name: str) -> None:
    env = make(name, 4)
    state = from_pettingzoo(env)
    assert state.snapshot_method == "copy"
    assert type(state).__name__ == "ZooState"
    assert (state.num_actions, state.num_players, state.zero_sum) == (SEARCHED[name], 2, True)
    assert state.legal_actions() == np.flatnonzero(mask_of(env)).tolist()
    before = repr(env.last())
    result = pondertree.AlphaZero(Uniform(), 60, seed=1).run(state)
    assert result.visits.sum() == 60 or result.proven is not None
    assert result.action in state.legal_actions()
    assert repr(env.last()) == before


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_information_is_refused(name: str) -> None:
    env = make(name)
    with pytest.raises(InvalidArgumentError, match=r"has hidden information.*perfect_information=True"):
        from_pettingzoo(env)
    state = from_pettingzoo(env, perfect_information=True, seed=1)
    assert state.snapshot_method == "copy"
    assert type(state).__name__ == HIDDEN[name]
    assert pondertree.UCT(40, seed=1, normalize="tree").run(state).visits.sum() == 40


@pytest.mark.parametrize("name", [*SEARCHED, *HIDDEN])
def test_deepcopy_gives_a_fresh_environment(name: str) -> None:
    """Why environments are not copied by `copy.deepcopy`: the copy has not even been reset."""
    env = make(name)
    env.step(int(np.flatnonzero(mask_of(env))[1]) if mask_of(env) is not None else 0)
    assert last_of(copy.deepcopy(env)) != last_of(env)


def last_of(env: Any) -> Any:
    """Returns what an environment shows, or the class of the error."""
    try:
        return env.agent_selection, repr(env.last())
    except Exception as error:
        return type(error)


def test_connect_four_is_ours() -> None:
    """Random games: legal actions, players, observations and results are those of the compiled game."""
    for seed in range(10):
        random = Random(seed, 2)
        env = make("connect_four-v3")
        state, ours = from_pettingzoo(env), ConnectFour()
        while not ours.is_terminal:
            assert state.legal_actions() == ours.legal_actions()
            assert state.to_play == ours.to_play
            assert not state.is_terminal
            # Two planes, of the player to move and of the other one.
            assert np.array_equal(state.observation(), ours.observation()[:2])
            action = ours.legal_actions()[random.choose(len(ours.legal_actions()))]
            state, ours = state.play(action), ours.play(action)
        assert state.is_terminal
        assert state.returns() == list(ours.returns())


def test_wins_are_proven() -> None:
    """Connect Four has rewards at its end alone, so that results are proven as in the compiled game."""
    env = make("connect_four-v3")
    for column in (3, 0, 3, 0, 3, 1):
        env.step(column)
    result = pondertree.UCT(500, seed=1).run(from_pettingzoo(env))
    assert (result.action, result.proven) == (3, 1)
    env.step(3)
    assert env.rewards == {"player_0": 1, "player_1": -1}


def test_parallelizable_environments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are not known by name."""
    env = make("rps-v2")
    monkeypatch.setitem(env.metadata, "name", "guess_v0")
    with pytest.raises(InvalidArgumentError, match="guess_v0 is parallelizable"):
        from_pettingzoo(env)


def test_parallel_environments_are_refused() -> None:
    """Also in turns, which do not hide what the others have chosen."""
    parallel = pettingzoo.make("parallel", "classic/rps-v2")
    parallel.reset(seed=1)
    with pytest.raises(InvalidArgumentError, match="rps_v2 is a parallel environment, whose agents move at once"):
        from_pettingzoo(parallel)
    env = parallel_to_aec(parallel)
    env.reset(seed=1)
    env.metadata["name"] = "guess_v0"
    with pytest.raises(InvalidArgumentError, match="guess_v0 is parallelizable"):
        from_pettingzoo(env)
    env.step(0)
    state = from_pettingzoo(env, perfect_information=True, discount=0.5)
    result = pondertree.UCT(200, seed=1, normalize="tree").run(state)
    assert result.action == 1  # paper, since the search knows of the rock
