"""Gymnasium environments as games of one player: observations, masks, and invalid environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from tests.support import environments  # noqa: E402 (after the packages it needs)
from tests.support.environments import Corridor  # noqa: E402

from pondertree import Gumbel, MuZero  # noqa: E402
from pondertree.envs.gymnasium import Environments  # noqa: E402
from pondertree.envs.spaces import view_of  # noqa: E402
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError  # noqa: E402
from pondertree.learn.config.game_spec import game_spec  # noqa: E402
from pondertree.learn.data.observations import observation_bytes  # noqa: E402
from pondertree.learn.evaluation.arena import play_episodes  # noqa: E402


def corridor(kind: Any = Corridor) -> Environments:
    return Environments(kind.__name__, kind)


def test_episode_is_a_game_of_one_player() -> None:
    state = corridor().start(3)
    assert (state.num_players, state.num_actions, state.to_play, state.is_terminal) == (1, 2, 0, False)
    assert state.legal_actions() == [0, 1]
    for step in range(4):
        assert state.observation()[:2].tolist() == [step, step]
        state = state.play(1)
    assert (state.is_terminal, state.truncated, state.rewards()) == (True, False, [1.0])
    assert state.returns() == [pytest.approx(0.7)]


def test_truncation_is_distinguished_from_termination() -> None:
    state = corridor().start(3)
    for _ in range(8):
        state = state.play(0)
    assert (state.is_terminal, state.truncated) == (True, True)


def test_seed_determines_the_episode_and_environments_are_pooled() -> None:
    home = corridor()
    one, other, same = home.start(1), home.start(2), home.start(1)
    assert one.observation()[2] == same.observation()[2] != other.observation()[2]
    for _ in range(4):
        one = one.play(1)
    before = len(home._free)
    again = home.start(1)
    assert len(home._free) == before - 1
    assert again.observation().tolist() == same.observation().tolist()
    again.close()
    assert len(home._free) == before
    home.close()


def test_playing_from_an_old_state_raises_usage_error() -> None:
    state = corridor().start(0)
    after = state.play(1)
    with pytest.raises(UsageError, match="cannot go back"):
        state.play(1)
    after.play(1)


def test_action_mask_gives_the_legal_actions() -> None:
    state = corridor(environments.OnlyRight).start(0)
    assert state.legal_actions() == [1]
    with pytest.raises(UsageError, match="not allowed here"):
        state.play(0)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (environments.Raises, r"Raises\.step\(1\) failed: RuntimeError: the robot fell over"),
        (environments.Nan, r"Nan\.step\(1\) gave an observation with a number that is not finite"),
        (environments.NanReward, r"NanReward\.step\(1\) gave the reward nan"),
        (
            environments.Grows,
            r"Grows\.step\(1\) gave an observation of shape \(6,\): its observation_space says \(3,\)",
        ),
        (
            environments.HugeReward,
            r"HugeReward\.step\(1\) gave the reward -1e\+300: rewards must be finite, and at most",
        ),
        (environments.NoWayOut, r"NoWayOut\.step\(1\): info\['action_mask'\] allows no action"),
        (environments.Fractions, r"Fractions\.step\(1\): info\['action_mask'\] has 0\.5: it must be 1 for what is all"),
        (environments.NanMask, r"NanMask\.step\(1\): info\['action_mask'\] has nan"),
        (environments.Huge, r"Huge\.step\(1\) gave an observation with a number that is not finite"),
        (
            environments.WrongMask,
            r"WrongMask\.reset\(seed=0\): info\['action_mask'\] has shape \(3,\), but there are 2 actions",
        ),
    ],
)
def test_invalid_environments_raise_contract_errors(kind: Any, message: str) -> None:
    def episode() -> None:
        state = corridor(kind).start(0)
        while not state.is_terminal:
            state = state.play(1)

    with pytest.raises(GameContractError, match=message):
        episode()


def test_messages_use_the_environments_action_numbers() -> None:
    kind = type("Fifth", (environments.Raises,), {"action_space": gymnasium.spaces.Discrete(2, start=5)})
    state = corridor(kind).start(0).play(1).play(1).play(1)
    with pytest.raises(GameContractError, match=r"Fifth\.step\(6\) failed"):
        state.play(1)


def test_environment_with_too_many_actions_is_refused() -> None:
    for count in (65_535, 65_536):
        kind = type("Many", (Corridor,), {"action_space": gymnasium.spaces.Discrete(count)})
        if count == 65_535:
            assert game_spec("many", kind, model=True).info.num_actions == count
        else:
            with pytest.raises(InvalidArgumentError, match=r"'.*Many' has 65,536 actions: at most 65,535 can be"):
                game_spec("many", kind, model=True)


def test_unsupported_spaces_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match="only Discrete actions can be searched"):
        corridor(environments.Continuous)
    with pytest.raises(InvalidArgumentError, match="networks take Box, Discrete, MultiDiscrete and MultiBinary"):
        corridor(environments.Nested)
    with pytest.raises(InvalidArgumentError, match=r"'CartPol-v1' cannot be made: .*did you mean CartPole-v1"):
        game_spec("gym:CartPol-v1", model=True)
    with pytest.raises(InvalidArgumentError, match="Pendulum-v1' has actions of Box"):
        game_spec("gym:Pendulum-v1", model=True)
    with pytest.raises(InvalidArgumentError, match="environments need algorithm muzero"):
        game_spec("gym:CartPole-v1")
    with pytest.raises(InvalidArgumentError, match="cannot be made"):
        game_spec("gym:no_such_module:Thing-v0", model=True)


def test_every_supported_space_has_a_view() -> None:
    spaces = gymnasium.spaces
    view = view_of(spaces.Discrete(4, start=2), "x")
    assert view.read(3, "x").tolist() == [0, 1, 0, 0]
    with pytest.raises(GameContractError, match="outside its observation_space"):
        view.read(6, "x")
    view = view_of(spaces.MultiDiscrete([2, 3]), "x")
    assert view.read(np.array([1, 0]), "x").tolist() == [0, 1, 1, 0, 0]
    assert view_of(spaces.MultiBinary(3), "x").read([1, 0, 1], "x").tolist() == [1, 0, 1]
    assert view_of(spaces.Box(0, 1, ()), "x").read(0.5, "x").tolist() == [0.5]
    image = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3)
    view = view_of(spaces.Box(0, 255, (5, 6, 3), np.uint8), "x")
    assert (view.shape, view.pixels) == ((3, 5, 6), True)
    np.testing.assert_allclose(view.read(image, "x"), np.moveaxis(image, 2, 0) / 255.0, rtol=1e-6)
    planes = view_of(spaces.Box(-1.0, 1.0, (5, 6, 3)), "x")
    assert (planes.shape, planes.pixels) == ((3, 5, 6), False)
    np.testing.assert_array_equal(planes.read(image / 99.0, "x"), np.moveaxis(image / 99.0, 2, 0).astype(np.float32))
    grey = view_of(spaces.Box(0, 255, (5, 6), np.uint8), "x")
    assert grey.read(image[:, :, 0], "x").shape == (1, 5, 6)


def test_pixels_are_stored_without_loss() -> None:
    spec = game_spec("gym:examples.environments.treasure:Treasure-v0", model=True)
    state = spec.start(5)
    retained = observation_bytes(state.observation(), spec)
    assert retained.nbytes == 5 * 5 * 3
    np.testing.assert_array_equal(
        (retained / np.float32(255)).reshape(spec.shape).astype(np.float32), state.observation()
    )
    every = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(observation_bytes(every.astype(np.float32) / np.float32(255), spec), every)


class Knows:
    """A model of the corridor that has learned it all; its hidden states are what is seen."""

    def initial_inference(self, observations: Any) -> Any:
        rows = len(observations)
        return np.asarray(observations), np.zeros((rows, 2)), np.zeros(rows)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> Any:
        after = np.array(hidden_states)
        after[:, 0] = np.maximum(after[:, 0] + np.where(np.asarray(actions) == 1, 1, -1), 0)
        over = hidden_states[:, 0] >= 4
        reward = np.where(over, 0.0, np.where(after[:, 0] == 4, 1.0, -0.1))
        after[over] = hidden_states[over]
        return after, reward, np.zeros((len(after), 2)), np.zeros(len(after)), np.where(over, 0.0, 0.99)


def test_searches_plan_in_models_of_environments() -> None:
    spec = game_spec("corridor", Corridor, model=True)
    for search in (MuZero(Knows(), 60, discount=0.99, seed=1), Gumbel(Knows(), 32, gumbel_scale=0.0, seed=1)):

        def player(states: Any, seeds: Any, search: Any = search) -> list[int]:
            return [result.action for result in search.run(states, seeds=seeds)]

        assert play_episodes(player, spec, 3, 1) == [pytest.approx(0.7)] * 3
