"""MuZero runs on single-player games with rewards, and on games with broken rewards or observations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.learning import Stairs, Stopper, small_muzero

from pondertree.errors import GameContractError

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn import list_shards, read_shard, train


@pytest.mark.parametrize("algorithm", ["muzero", "gumbel", "alphazero"])
def test_single_player_game_with_rewards_trains(algorithm: str, tmp_path: Path) -> None:
    config = small_muzero(tmp_path, steps=20, muzero={"support": 5}).with_values(
        algorithm=algorithm,
        self_play={"opening_plies": 0, "temperature_moves": 0},
        evaluation={"games": 2, "simulations": 8},
        learner={"learning_rate": 0.01},
    )
    result = train(config, factory=Stairs)
    [line] = result.evaluations
    assert 0.0 <= line["mean_return"] <= 6.0
    games = [game for shard in list_shards(tmp_path / "games") for game in read_shard(shard)]
    assert all(game.returns[0] == game.rewards.sum() == game.moves.sum() and not game.cut for game in games)


class Rotten(Stairs):
    """`play` raises."""

    def play(self, action: int) -> Stairs:
        if self.moves == 3:
            raise RuntimeError("the stairs are rotten")
        return Rotten(self.height + action, self.moves + 1, float(action))


class Unpaid(Stairs):
    """One reward is not a number."""

    def play(self, action: int) -> Stairs:
        return Unpaid(self.height + action, self.moves + 1, float(action))

    def rewards(self) -> list[Any]:
        return [None] if self.moves == 3 else [0.0]


class Overpaid(Stairs):
    """One reward is NaN."""

    def play(self, action: int) -> Stairs:
        return Overpaid(self.height + action, self.moves + 1, float(action))

    def rewards(self) -> list[float]:
        return [float("nan") if self.moves == 3 else 1.0]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Overpaid, r"^Overpaid\.rewards\(\) gave, after \d, the reward nan: rewards must be finite"),
        (
            Rotten,
            r"^Rotten\.play\(\d\) raised RuntimeError although the action is in legal_actions\(\): the stairs are",
        ),
        (Unpaid, "^Unpaid raised TypeError while reading its rewards"),
    ],
)
def test_broken_game_is_reported_by_name(kind: Any, message: str, tmp_path: Path) -> None:
    config = small_muzero(tmp_path, steps=1, muzero={"support": 5}).with_values(self_play={"opening_plies": 0})
    with pytest.raises(GameContractError, match=message):
        train(config, factory=kind)


class Blind:
    """Stairs without rewards, with an invalid observation."""

    num_actions, num_players = 2, 2

    def __init__(self, moves: int = 0, seen: Any = None) -> None:
        self.moves, self.seen, self.to_play, self.is_terminal = moves, seen, moves % 2, moves >= 6

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Blind:
        return type(self)(self.moves + 1)

    def returns(self) -> list[float]:
        return [1.0, -1.0]

    def observation(self) -> Any:
        return np.array([self.moves, np.nan if self.moves == 3 else 0.0], np.float32)


class Shrinking(Blind):
    def observation(self) -> Any:
        return np.zeros(3 if self.moves == 3 else 4, np.float32)


class BlindAtOnce(Blind):
    def observation(self) -> Any:
        return np.array([np.inf])


@pytest.mark.parametrize("algorithm", ["muzero", "gumbel"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Blind, r"Blind\.observation\(\) has a number that is not finite: nan"),
        (Shrinking, r"Shrinking\.observation\(\) has shape \(3,\), and in the starting state it has \(4,\)"),
        (BlindAtOnce, r"BlindAtOnce\.observation\(\) has a number that is not finite: inf"),
    ],
)
def test_invalid_observations_are_reported_by_name(kind: Any, message: str, algorithm: str, tmp_path: Path) -> None:
    config = small_muzero(tmp_path, steps=1).with_values(algorithm=algorithm, self_play={"opening_plies": 0})
    with pytest.raises(GameContractError, match=message):
        train(config, factory=kind)


def test_rewards_beyond_support_are_reported_once(tmp_path: Path) -> None:
    values = {"self_play": {"opening_plies": 0, "temperature_moves": 0}}
    stopper = Stopper(10**9)
    config = small_muzero(tmp_path / "one", steps=3, muzero={"support": 1, "unroll": 1}).with_values(**values)
    train(config, factory=Stairs, watcher=stopper)
    [note] = [note for note in stopper.notes if "support" in note]
    assert re.fullmatch(r"muzero\.support = 1 represents up to 2\.9\d*, .* muzero\.support = 2 or more, .*", note)
    # Without a watcher it is a warning.
    with pytest.warns(UserWarning, match=r"muzero\.support = 2 or more"):
        train(config.with_values(out=str(tmp_path / "two")), factory=Stairs)
    stopper = Stopper(10**9)
    config = small_muzero(tmp_path / "enough", steps=3, muzero={"support": 2, "unroll": 1}).with_values(**values)
    train(config, factory=Stairs, watcher=stopper)
    assert not any("support" in note for note in stopper.notes)
