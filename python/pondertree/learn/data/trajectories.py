"""The replay buffer of MuZero: a ring buffer of positions in game order, from which batches are unrolled.

Beyond the end of a game, rewards and values are 0 for arbitrary actions (MuZero, appendix G). Beyond the end of a
record that is not the end of the game (truncation, resignation) targets are unknown and masked out of the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.learn.config import Config, GameSpec
from pondertree.learn.data.observations import PackedObservations
from pondertree.learn.data.records import Floats, GameRecord
from pondertree.learn.data.replay import PositionBuffer
from pondertree.learn.data.returns import Returns, returns_of

#: Added to every priority, so that no position becomes unreachable.
MIN_ERROR = 1e-3


@dataclass(slots=True)
class UnrolledBatch:
    """A batch of B positions unrolled over K steps."""

    places: NDArray[np.int64]
    """Buffer index of each row's first position, 0 being the oldest [B]."""
    seen: PackedObservations
    """Packed observations of the first positions."""
    moves: NDArray[np.int64]
    """Played actions, arbitrary beyond the end [B, K]."""
    rewards: Floats
    """[B, K]"""
    values: Floats
    """Value targets, for the player to move [B, K + 1]."""
    actions: NDArray[np.int64]
    """Legal actions, padded with `num_actions` [B, K + 1, A]."""
    policy: Floats
    """Policy targets over them [B, K + 1, A]."""
    known: Floats
    """Mask of known values, and of the rewards before them: 0 beyond the end of a record [B, K + 1]."""
    searched: Floats
    """Mask of known policies [B, K + 1]."""
    weights: Floats
    """Importance-sampling weights [B]."""
    later: PackedObservations | None = None
    """Packed observations after each step, on request: B * K positions, row-major."""
    inside: Floats | None = None
    """Mask of observed positions after each step [B, K]."""


class TrajectoryBuffer(PositionBuffer):
    """The newest positions of the games, oldest first, with what follows them."""

    def __init__(self, spec: GameSpec, config: Config) -> None:
        super().__init__(
            spec,
            config.replay,
            {
                "move": np.int64,
                "reward": np.float32,
                "value": np.float32,
                "known": np.float32,
                "bootstrap_offset": np.int64,
                "left": np.int64,
                "ends": np.bool_,
                "full": np.bool_,
                "error": np.float32,
            },
        )
        self._muzero = config.muzero
        self._root_share = config.learner.root_value_share
        self.largest = 0.0
        """Largest absolute reward or value target."""

    def _rows(self, game: GameRecord) -> NDArray[np.bool_]:
        return np.ones(len(game.moves), dtype=np.bool_)

    def _numbers(self, games: Sequence[GameRecord], players: Sequence[NDArray[np.uint8]]) -> dict[str, NDArray[Any]]:
        discount = self._muzero.discount
        returns = []
        for game, to_play in zip(games, players, strict=True):
            self._check_alternation(to_play)
            returns.append(returns_of(game, to_play, discount, self._muzero.td_steps))
        lengths = [len(game.moves) for game in games]
        values = np.concatenate([game.values for game in games])
        known = Returns(
            np.concatenate([one.rewards for one in returns]),
            np.concatenate([one.known for one in returns]),
            np.concatenate([one.bootstrap_offset for one in returns]),
            False,
        )
        targets = known.values(values, discount)
        self.largest = max(self.largest, float(np.abs(targets).max()), float(np.abs(known.rewards).max()))
        return {
            "move": np.concatenate([game.moves for game in games]).astype(np.int64),
            "reward": known.rewards,
            "value": values,
            "known": known.known,
            "bootstrap_offset": known.bootstrap_offset,
            "left": np.concatenate([np.arange(length, 0, -1) for length in lengths]),
            "ends": np.repeat([one.ends for one in returns], lengths),
            "full": np.concatenate([game.full for game in games]),
            "error": np.abs(targets - values) + MIN_ERROR,
        }

    def _check_alternation(self, players: NDArray[np.uint8]) -> None:
        if self._spec.info.num_players == 2 and (players[1:] == players[:-1]).any():
            raise GameContractError(
                f"{self._spec.name}: a player moves twice in a row; MuZero's model needs alternating players "
                "(insert a pass of the other)"
            )

    def sample_indices(self, size: int, numbers: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Samples (indices, importance-sampling weights): prioritised by value error, or by recency alone."""
        length, priority = len(self), self._muzero.priority
        share = numbers.random(size)
        if priority > 0.0:
            chances = self._ring.gather("error", np.arange(length)).astype(np.float64) ** priority
            ends = np.cumsum(chances)
            chosen = np.minimum(np.searchsorted(ends, share * ends[-1], side="right"), length - 1)
            # Prioritised replay (Schaul et al. 2016).
            weights = (ends[-1] / (length * chances[chosen])) ** self._muzero.priority_correction
            return chosen, (weights / weights.max()).astype(np.float32)
        return self._newer(share), np.ones(size, dtype=np.float32)

    def sample(self, size: int, numbers: np.random.Generator, *, later: bool = False) -> UnrolledBatch:
        """Samples a batch; `later` adds the observations after each step."""
        chosen, weights = self.sample_indices(size, numbers)
        batch = self.gather(chosen, numbers, later=later)
        batch.weights = weights
        return batch

    def gather(self, chosen: NDArray[np.int64], numbers: np.random.Generator, *, later: bool = False) -> UnrolledBatch:
        """Unrolls the positions at these indices; `numbers` draws the actions beyond the end."""
        ring, steps, none = self._ring, self._muzero.unroll, self._spec.info.num_actions
        left, ends = ring.gather("left", chosen)[:, None], ring.gather("ends", chosen)[:, None]
        depth = np.arange(steps + 1)
        inside = depth < left
        # Rows beyond the end read their first position and are overwritten.
        rows = np.where(inside, chosen[:, None] + depth, chosen[:, None])
        played = inside[:, :-1]
        moves = np.where(played, ring.gather("move", rows[:, :-1]), numbers.integers(none, size=(len(chosen), steps)))
        actions = ring.gather("actions", rows).astype(np.int64)
        batch = UnrolledBatch(
            chosen,
            self.observations_at(chosen),
            moves,
            np.where(played, ring.gather("reward", rows[:, :-1]), np.float32(0.0)),
            np.where(inside, self._targets(rows), np.float32(0.0)),
            np.where(inside[:, :, None], actions, none),
            np.where(inside[:, :, None], ring.gather("policy", rows), np.float32(0.0)),
            (inside | ends).astype(np.float32),
            (inside & ring.gather("full", rows)).astype(np.float32),
            np.ones(len(chosen), dtype=np.float32),
        )
        if later:
            batch.inside = inside[:, 1:].astype(np.float32)
            batch.later = self.observations_at(rows[:, 1:].reshape(-1))
        return batch

    def _targets(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns value targets: returns mixed with root values."""
        returns = self.returns(rows)
        value: NDArray[np.float32] = self._ring.gather("value", rows)
        later = self._ring.gather("value", rows + np.maximum(returns.bootstrap_offset, 0))
        return self.mixed(returns.values_with(later, self._muzero.discount), value)

    def mixed(self, returns: NDArray[np.float32], root_values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mixes returns with the configured fraction of root values."""
        return (returns + np.float32(self._root_share) * (root_values - returns)).astype(np.float32)

    def root_values(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the root values that self-play found."""
        values: NDArray[np.float32] = self._ring.gather("value", rows)
        return values

    def returns(self, rows: NDArray[np.int64]) -> Returns:
        """Returns the discounted returns of positions."""
        rewards, known, offset = (self._ring.gather(name, rows) for name in ("reward", "known", "bootstrap_offset"))
        return Returns(rewards, known, offset, False)

    def update_priorities(self, places: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """Sets the priorities of positions by their value errors."""
        self._ring.columns["error"][self._ring.places(places)] = np.abs(errors) + MIN_ERROR

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns the state that cannot be rebuilt from the games: the priorities."""
        if self._muzero.priority == 0.0:
            return {}
        return {"error": self._ring.gather("error", np.arange(len(self)))}

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned, after the games have been added."""
        errors = arrays.get("error")
        if errors is None or len(errors) != len(self):
            return
        if errors.ndim != 1 or errors.dtype.kind != "f" or not (np.isfinite(errors) & (errors >= 0.0)).all():
            raise InvalidArgumentError("replay.error must be a list of finite numbers from 0 up")
        self._ring.columns["error"][self._ring.places(np.arange(len(self)))] = errors
