"""Evaluators, learned models and games in integer arithmetic: bit-identical on every CPU and with every NumPy.

Logits and values are hashes of the observation or of the hidden state, reduced to a few bits so that they are exact in
float32. Few `levels` produce ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
ODD = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mix(key: int) -> int:
    """Hashes an integer to 64 bits."""
    key = (key * ODD + 0xD1B54A32D192ED03) & MASK
    key ^= key >> 29
    return (key * 0xBF58476D1CE4E5B9 & MASK) ^ (key >> 32)


def mix_array(keys: Array) -> Array:
    """Hashes integers [...] to uint64 [...]."""
    keys = np.asarray(keys).astype(np.uint64) * np.uint64(ODD) + np.uint64(0xD1B54A32D192ED03)
    keys ^= keys >> np.uint64(29)
    return keys * np.uint64(0xBF58476D1CE4E5B9) ^ (keys >> np.uint64(32))


def row_keys(rows: Array) -> Array:
    """Hashes the bits of each row of [B, ...]: uint64 [B]."""
    rows = np.ascontiguousarray(rows).reshape(len(rows), -1)
    words = rows.view(np.uint32 if rows.dtype.itemsize == 4 else np.uint64).astype(np.uint64)
    weights = mix_array(np.arange(words.shape[1])) | np.uint64(1)
    return mix_array((words * weights).sum(axis=1, dtype=np.uint64))


def levels_of(keys: Array, salt: int, levels: int) -> Array:
    """Reduces keys to float64 from -1 to 1 in `levels` (a power of two, plus one) equidistant steps."""
    drawn = mix_array(keys ^ np.uint64(mix(salt))) % np.uint64(levels)
    return drawn.astype(np.float64) * (2.0 / (levels - 1)) - 1.0


def logits_of(keys: Array, actions: Array | int, levels: int) -> Array:
    """Logits from -2 to 2, float32: [B, actions] for a number of actions, else one for each pair of key and action."""
    if isinstance(actions, int):
        return logits_of(keys[:, None], np.arange(actions)[None, :], levels)
    moves = mix_array(np.asarray(actions, dtype=np.uint64) + np.uint64(1))
    return (2.0 * levels_of(keys ^ moves, 1, levels)).astype(np.float32)


@dataclass
class TableEvaluator:
    """Evaluates observations."""

    num_actions: int
    num_values: int = 1
    """Values of a row: one for the player to move, or one for each player."""
    levels: int = 129
    policy: str = "logits"

    def answer(self, keys: Array, actions: Array | int) -> tuple[Array, Array]:
        """(policy, values) of hashed positions."""
        policy = logits_of(keys, actions, self.levels)
        if self.policy == "probabilities":
            # Sums of quarters are exact, so that their order does not matter.
            weights = np.round(4.0 * (policy.astype(np.float64) + 2.5))
            policy = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
        values = np.stack([levels_of(keys, 2 + player, self.levels) for player in range(self.num_values)], axis=1)
        return policy, values if self.num_values > 1 else values[:, 0]

    def evaluate(self, observations: Array) -> tuple[Array, Array]:
        """(policy [B, num_actions], values [B] or [B, num_values])."""
        return self.answer(row_keys(np.asarray(observations, dtype=np.float32)), self.num_actions)


class TableStateEvaluator(TableEvaluator):
    """Evaluates states."""

    evaluate = None  # type: ignore[assignment]

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Array, Array]:
        """(policy [B, num_actions], values [B] or [B, num_values])."""
        return TableEvaluator.evaluate(self, np.stack([state.observation() for state in states]))


class TablePackedEvaluator(TableEvaluator):
    """Evaluates packed positions of compiled games."""

    def evaluate_packed(self, packed: Any) -> tuple[Array, Array]:
        """(logits of the legal actions [L], values [B])."""
        keys = row_keys(packed.planes)
        if packed.scalars.size:
            keys = keys ^ row_keys(packed.scalars)
        return self.answer(keys[packed.rows()], packed.legal_actions)[0], self.answer(keys, 1)[1]


@dataclass
class TablePolicyNetwork:
    """A policy network in the form of the hybrid chess specification."""

    levels: int = 65

    def evaluate(self, state: Any) -> tuple[dict[int, float], float]:
        """({action: prior}, value from 0 to 1)."""
        key = int(row_keys(state.observation()[None])[0])
        priors = {action: 1.0 + mix(key ^ action) % self.levels for action in state.legal_actions()}
        return priors, mix(key) % self.levels / (self.levels - 1)


@dataclass
class TableModel:
    """A learned model. Its hidden state is a number, or with `shape` an array of equal numbers."""

    num_actions: int
    levels: int = 129
    rewards: float = 0.0
    discounts: tuple[float, ...] = ()
    """Drawn from as the fifth output; without any, the model returns four arrays."""
    excluded: int = 0
    """One action in this many gets the logit -inf; 0 for none."""
    shape: tuple[int, ...] = ()

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        """(hidden states, logits, values)."""
        keys = row_keys(np.asarray(observations, dtype=np.float32)) % np.uint64(1_000_003)
        return self._hidden(keys), *self._prediction(keys)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """(hidden states, rewards, logits, values), and discounts if there are any."""
        before = np.asarray(hidden_states).reshape(len(actions), -1)[:, 0].astype(np.uint64)
        keys = mix_array(before * np.uint64(5003) + np.asarray(actions).astype(np.uint64)) % np.uint64(1_000_003)
        rewards = self.rewards * levels_of(keys, 11, self.levels)
        answer = (self._hidden(keys), rewards, *self._prediction(keys))
        if not self.discounts:
            return answer
        return *answer, np.array(self.discounts)[mix_array(keys ^ np.uint64(12)) % np.uint64(len(self.discounts))]

    def _hidden(self, keys: Array) -> Array:
        if not self.shape:
            return keys.astype(np.int64)[:, None]
        whole = keys.astype(np.float32).reshape(-1, *(1 for _ in self.shape))
        return np.broadcast_to(whole, (len(keys), *self.shape)).copy()

    def _prediction(self, keys: Array) -> tuple[Array, Array]:
        logits = logits_of(keys, self.num_actions, self.levels)
        if self.excluded:
            draws = mix_array(keys[:, None] ^ mix_array(np.arange(1, self.num_actions)))
            logits[:, 1:][draws % np.uint64(self.excluded) == 0] = -np.inf
        return logits, levels_of(keys, 13, self.levels)


@dataclass(frozen=True)
class HashGame:
    """A game whose tree is a hash: 1 to `width` legal actions a ply, and an end after `length` plies or before."""

    width: int = 4
    length: int = 12
    num_players: int = 2
    irregular: bool = False
    """The player to move is drawn; otherwise players alternate."""
    key: int = 1
    ply: int = 0

    @property
    def num_actions(self) -> int:
        """Size of the action space."""
        return self.width

    @property
    def to_play(self) -> int:
        """The player to move."""
        return mix(self.key ^ 77) % self.num_players if self.irregular else self.ply % self.num_players

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return self.ply >= self.length or (self.ply > 3 and self.key % 11 == 0)

    def legal_actions(self) -> list[int]:
        """The legal actions, not in ascending order."""
        first = self.key % self.width
        others = [action for action in range(self.width) if action != first and mix(self.key ^ action) & 3]
        return [first, *others]

    def play(self, action: int) -> Self:
        """The state after an action."""
        return replace(self, key=mix(self.key * 64 + action), ply=self.ply + 1)

    def returns(self) -> list[float]:
        """A win, a draw or a loss; beyond two players a number from -1 to 1 for each."""
        if self.num_players == 2:
            result = float(mix(self.key) % 3) - 1.0
            return [result, -result]
        return [mix(self.key ^ player) % 17 / 8 - 1.0 for player in range(self.num_players)]

    def observation(self) -> Array:
        """The hash in small parts."""
        parts = [self.key >> shift & 1023 for shift in (0, 10, 20, 30)]
        return np.array([*parts, self.ply], dtype=np.float32)


class GeneralSumGame(HashGame):
    """A general-sum game of two players."""

    zero_sum = False

    def returns(self) -> list[float]:
        """A number from -1 to 1 for each player."""
        return [mix(self.key ^ player) % 17 / 8 - 1.0 for player in range(self.num_players)]


class RewardGame(HashGame):
    """A game with a reward for every move."""

    def rewards(self) -> list[float]:
        """Rewards of the move that led here, from -0.5 to 0.5."""
        return [mix(self.key ^ (100 + player)) % 9 / 8 - 0.5 for player in range(self.num_players)]
