"""Loaded models: raw observations of environments, number of players."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.learning import SMALL

import pondertree
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.games import TicTacToe

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
gymnasium = pytest.importorskip("gymnasium")

from tests.support.environments import Corridor  # noqa: E402 (after the packages it needs)

from pondertree.learn import Config  # noqa: E402
from pondertree.learn.config.game_spec import GameSpec, game_spec  # noqa: E402
from pondertree.learn.trainer.architectures import model_architecture  # noqa: E402
from pondertree.networks.model_network import ModelNetwork  # noqa: E402
from pondertree.networks.weights_file import player_bytes  # noqa: E402

spaces = gymnasium.spaces
PIXELS = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3) * 2


def written(path: Path, spec: GameSpec, about: dict[str, Any] | None = None) -> Path:
    """Writes an untrained player."""
    config = Config(algorithm="muzero").with_values(**SMALL)
    if spec.is_environment:
        config = config.with_values(muzero={"support": 10})
    torch.manual_seed(0)
    network = ModelNetwork(model_architecture(spec, config), folded=True)
    path.write_bytes(player_bytes(network, spec.metadata(3, 5) if about is None else about))
    return path


def environment(space: Any, start: int = 0) -> GameSpec:
    """Returns the corridor with another observation space."""
    seen = {"observation_space": space, "action_space": spaces.Discrete(2, start=start)}
    kind = type("Other", (Corridor,), {**seen, "observe": lambda self: space.sample()})
    return game_spec("other", kind, model=True)


@pytest.mark.parametrize(
    ("space", "given"),
    [
        (spaces.Box(0, 255, (5, 6, 3), np.uint8), PIXELS),
        (spaces.Box(0, 255, (3, 5, 6), np.uint8), np.moveaxis(PIXELS, 2, 0)),
        (spaces.Box(0, 255, (5, 6), np.uint8), PIXELS[:, :, 0]),
        (spaces.Box(0, 255, (7,), np.uint8), np.arange(7, dtype=np.uint8)),
        (spaces.Box(-1.0, 1.0, (5, 6, 3), np.float64), PIXELS / 200.0),
        (spaces.Box(-1.0, 1.0, (3,)), np.array([0.5, 0.0, -1.0])),
        (spaces.Box(-1.0, 1.0, ()), np.float32(0.25)),
        (spaces.Discrete(4, start=2), 3),
        (spaces.Discrete(4), np.int64(3)),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2])),
        (spaces.MultiBinary(3), np.array([1, 0, 1], np.int8)),
    ],
)
def test_model_accepts_raw_observations(space: Any, given: Any, tmp_path: Path) -> None:
    spec = environment(space, start=5)
    model = pondertree.load(written(tmp_path / "player", spec))
    assert model.about["environment"]["first_action"] == 5
    episode = spec.start(0)._episode
    expected = episode.pool.view.read(given, "Other")
    seen = model.see(given)
    np.testing.assert_array_equal(np.asarray(seen, np.float32), expected)
    results = [
        pondertree.MuZero(model, 8, seed=1).run(observation=each)
        for each in (given, seen, torch.as_tensor(np.asarray(given)))
    ]
    assert results[0].value == results[1].value == results[2].value
    np.testing.assert_array_equal(model.initial_inference([given])[1], model.initial_inference(seen[None])[1])
    both = pondertree.MuZero(model, 8, seed=1).run(observation=[seen, seen])
    assert both[1].root.raw_value == pytest.approx(results[0].root.raw_value, abs=1e-4)
    config = pondertree.MCTSConfig(num_simulations=4)
    assert pondertree.select_action(model, config, given, [1], seed=1) == 1


def test_mismatched_observations_are_refused(tmp_path: Path) -> None:
    model = pondertree.load(written(tmp_path / "image", environment(spaces.Box(0, 255, (5, 6, 3), np.uint8))))
    takes = r"shape \(5, 6\): a player of .*Other takes \(5, 6, 3\), or \(3, 5, 6\) as `see` gives them"
    with pytest.raises(InvalidArgumentError, match=takes):
        pondertree.MuZero(model, 4).run(observation=PIXELS[:, :, 0])
    model = pondertree.load(written(tmp_path / "number", environment(spaces.Discrete(4))))
    for wrong in (4, -1):
        with pytest.raises(InvalidArgumentError, match="no such observation"):
            model.see(wrong)


def test_older_files_without_view_load(tmp_path: Path) -> None:
    """Their models take network inputs."""
    spec = environment(spaces.Discrete(4))
    model = pondertree.load(written(tmp_path / "old", spec, {"game": "other", "step": 1, "games": 2}))
    assert pondertree.MuZero(model, 4, seed=1).run(observation=np.eye(4, dtype=np.float32)[2]).simulations == 4
    data = dict(spec.metadata(1, 2)["environment"]["view"])
    for wrong in ({"view": {}}, {"view": {**data, "shape": [9]}}, {"view": {**data, "firsts": []}}):
        path = written(tmp_path / "wrong", spec, {"game": "other", "environment": wrong})
        with pytest.raises(StorageError, match="this player is damaged"):
            pondertree.load(path)


def test_unavailable_device_is_not_reported_as_file_damage(tmp_path: Path) -> None:
    path = written(tmp_path / "player.safetensors", game_spec("tic-tac-toe", model=True))
    with pytest.raises(InvalidArgumentError, match="device") as caught:
        pondertree.load(path, device="nowhere")
    assert "player.safetensors" not in str(caught.value)


def test_model_reports_number_of_players(tmp_path: Path) -> None:
    state = TicTacToe()
    model = pondertree.load(written(tmp_path / "two", game_spec("tic-tac-toe", model=True)))
    assert model.num_players == 2
    for preset in (pondertree.MuZero, pondertree.Gumbel):
        from_state = preset(model, 20, seed=1).run(state)
        bare = preset(model, 20, seed=1).run(observation=state.observation(), legal_actions=state.legal_actions())
        assert (from_state.action, from_state.value) == (bare.action, bare.value)
        with pytest.raises(InvalidArgumentError, match=r"num_players is 1, but .* game of 2: give num_players=2"):
            preset(model, 20, num_players=1).run(observation=state.observation())
    with pytest.raises(InvalidArgumentError, match="give num_players=2, or leave it out"):
        pondertree.select_action(
            model, pondertree.MCTSConfig(num_players=1), state.observation(), state.legal_actions()
        )
    chosen = pondertree.select_action(model, pondertree.MCTSConfig(), state.observation(), state.legal_actions())
    assert chosen in state.legal_actions()
    assert pondertree.load(written(tmp_path / "one", environment(spaces.Discrete(4)))).num_players == 1
