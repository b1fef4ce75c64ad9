"""The replay buffer of policy-value training: a ring buffer of positions with recency-weighted sampling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.sections import ReplayConfig
from pondertree.learn.data.observations import PackedObservations, packed_observations, packed_widths
from pondertree.learn.data.records import GameRecord
from pondertree.learn.data.ring import RingBuffer

#: Games added in one pass.
CHUNK = 256


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """A batch of B positions with at most K legal actions."""

    seen: PackedObservations
    """Packed observations."""
    actions: NDArray[np.int64]
    """Legal actions [B, K], padded with `num_actions`."""
    policy: NDArray[np.float32]
    """Policy targets over them [B, K]."""
    results: NDArray[np.float32]
    """Game results for the player to move [B]."""
    values: NDArray[np.float32]
    """Root values for the player to move [B]."""


class ReplayBuffer:
    """The newest positions of the games, oldest first."""

    def __init__(self, spec: GameSpec, config: ReplayConfig) -> None:
        self._spec = spec
        self._config = config
        self.seen = 0
        """Positions added so far."""
        planes, numbers = packed_widths(spec)
        self._ring = RingBuffer(
            config.window,
            {
                "planes": np.zeros(planes, dtype=np.uint64),
                "numbers": np.zeros(numbers, dtype=np.float32),
                "actions": np.full(8, spec.info.num_actions, dtype=np.uint16),
                "policy": np.zeros(8, dtype=np.float32),
                "results": np.zeros((), dtype=np.float32),
                "values": np.zeros((), dtype=np.float32),
            },
        )

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, games: Iterable[GameRecord]) -> int:
        """Adds the positions that had a full search; returns their number."""
        games = [game for game in games if game.full.any()]
        added = sum(self._add_batch(games[first : first + CHUNK]) for first in range(0, len(games), CHUNK))
        self.seen += added
        return added

    def _add_batch(self, games: Sequence[GameRecord]) -> int:
        found = [packed_observations(game, self._spec) for game in games]
        full = np.concatenate([game.full for game in games])
        counts = np.concatenate([game.counts for game in games])
        for name in ("actions", "policy"):
            self._ring.widen(name, -(-int(counts[full].max()) // 8) * 8)
        # Actions and policies are concatenated; those of a position fill the first entries of its row.
        filled = np.arange(self._ring.columns["actions"].shape[1]) < counts[full][:, None]
        learned = np.repeat(full, counts)
        actions = np.full(filled.shape, self._spec.info.num_actions, dtype=np.uint16)
        actions[filled] = np.concatenate([game.actions for game in games])[learned]
        policy = np.zeros(filled.shape, dtype=np.float32)
        policy[filled] = np.concatenate([game.policy for game in games])[learned]
        results = [game.returns[players] for game, (_, players) in zip(games, found, strict=True)]
        self._ring.append(
            {
                "planes": np.concatenate([seen.planes for seen, _ in found])[full],
                "numbers": np.concatenate([seen.numbers for seen, _ in found])[full],
                "actions": actions,
                "policy": policy,
                "results": np.concatenate(results)[full],
                "values": np.concatenate([game.values for game in games])[full],
            }
        )
        return len(actions)

    def sample(self, size: int, numbers: np.random.Generator) -> TrainingBatch:
        """Samples positions with a density that rises linearly towards the newest."""
        fresh = self._config.fresh
        share = numbers.random(size)
        if fresh > 0.0:
            # Inverse of the distribution function (1 - fresh) x + fresh x², x from the oldest, 0, to the newest, 1.
            share = (np.sqrt((1.0 - fresh) ** 2 + 4.0 * fresh * share) - (1.0 - fresh)) / (2.0 * fresh)
        chosen = np.minimum((share * len(self)).astype(np.int64), len(self) - 1)
        return self.gather(chosen)

    def gather(self, chosen: NDArray[np.int64]) -> TrainingBatch:
        """Returns the positions at these indices, 0 being the oldest."""
        planes, numbers, actions, policy, results, values = (
            self._ring.gather(name, chosen) for name in ("planes", "numbers", "actions", "policy", "results", "values")
        )
        return TrainingBatch(PackedObservations(planes, numbers), actions.astype(np.int64), policy, results, values)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns the state that cannot be rebuilt from the games: none."""
        return {}

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned, after the games have been added."""
