"""Exact learned models: positions of a game, one or in batches, and small decision problems."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from pondertree.random import fold

NEVER = -1e9


@dataclass(frozen=True)
class RandomOutputs:
    """Pseudorandom logits and values, functions of the observation. Exact as float32."""

    seed: int = 0

    def __call__(self, state: Any) -> tuple[Any, float]:
        """Returns (logits of all actions, value for the player to move)."""
        numbers = np.random.default_rng([self.seed, *np.asarray(state.observation()).ravel().astype(np.uint32)])
        return numbers.integers(-128, 129, state.num_actions) / 64, float(numbers.integers(-64, 65)) / 64

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Any, Any]:
        """Returns logits and values, as an evaluator of states."""
        logits, values = zip(*map(self, states), strict=True)
        return np.array(logits), np.array(values)


def uniform_outputs(state: Any) -> tuple[Any, float]:
    """Returns uniform logits and the value 0."""
    return np.zeros(state.num_actions), 0.0


@dataclass
class ExactBatchModel:
    """The exact model of a two-player game, in batches: hidden states are positions, looked up by their observations.

    Below the root an illegal move has the logit -1e9, so that its prior is 0. The end of the game pays its result to
    the player who moved there, with discount 0, which hides predictions beyond it. Otherwise the discount is 1,
    negative where the other player is to move.
    """

    starts: Sequence[Any]
    evaluate: Callable[[Any], tuple[Any, float]] = uniform_outputs
    seen: list[Any] = field(default_factory=list)
    """The observations of every call of `initial_inference`."""

    def __post_init__(self) -> None:
        self.known = {self.key(start.observation()): start for start in self.starts}
        self.evaluate = cache(self.evaluate)

    def key(self, observation: Any) -> bytes:
        return np.asarray(observation, dtype=np.float32).tobytes()

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        self.seen.append(observations)
        states = [self.known[self.key(observation)] for observation in observations]
        logits, values = zip(*map(self.evaluate, states), strict=True)
        return objects(states), np.array(logits), np.array(values)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        steps = [self.step(state, int(action)) for state, action in zip(hidden_states, actions, strict=True)]
        states, *columns = zip(*steps, strict=True)
        return objects(states), *map(np.array, columns)

    def step(self, state: Any, action: int) -> tuple[Any, float, Any, float, float]:
        """Returns (position, reward, logits, value, discount); ends and illegal moves are absorbing."""
        nothing = np.zeros(state.num_actions)
        if state.is_terminal or action not in state.legal_actions():
            return state, 0.0, nothing, 0.0, 0.0
        after = state.play(action)
        if after.is_terminal:
            return after, after.returns()[state.to_play], nothing, 0.0, 0.0
        self.known[self.key(after.observation())] = after
        logits, value = self.evaluate(after)
        masked = np.full(state.num_actions, NEVER)
        masked[after.legal_actions()] = logits[after.legal_actions()]
        return after, 0.0, masked, value, 1.0 if after.to_play == state.to_play else -1.0


def objects(states: Sequence[Any]) -> Any:
    """Returns an array of Python objects."""
    array = np.empty(len(states), dtype=object)
    array[:] = states
    return array


class TabularDecisionModel:
    """A decision problem of one player: in each of a few states, every action pays a reward and leads to a state.

    The model's steps are exact, its values are 0. Observations are numbers of states.
    """

    def __init__(self, seed: int, states: int = 5, actions: int = 3, gamma: float = 0.5) -> None:
        numbers = np.random.default_rng(seed)
        self.after = numbers.integers(states, size=(states, actions))
        self.reward = numbers.uniform(-1.0, 1.0, (states, actions))
        self.gamma = gamma

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        hidden = np.asarray(observations)[:, 0].astype(np.int64)
        return hidden, np.zeros((len(hidden), self.after.shape[1])), np.zeros(len(hidden))

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        hidden = self.after[hidden_states, actions]
        reward = self.reward[hidden_states, actions]
        return hidden, reward, np.zeros((len(hidden), self.after.shape[1])), np.zeros(len(hidden))

    def exact(self) -> Any:
        """Returns Q of every action in every state, by value iteration."""
        q = np.zeros_like(self.reward)
        for _ in range(200):
            q = self.reward + self.gamma * q.max(axis=1)[self.after]
        return q


class LargeActionModel:
    """A model with very many actions, whose outputs come from a small table."""

    def __init__(self, num_actions: int, outputs: int = 61) -> None:
        numbers = np.random.default_rng(1)
        self.logits = numbers.normal(0.0, 2.0, (outputs, num_actions)).astype(np.float32)
        self.values = numbers.uniform(-1.0, 1.0, outputs)

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        hidden = np.asarray(observations).reshape(len(observations), -1)[:, :1].astype(np.int64)
        return hidden, *self.evaluate(hidden)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        hidden = (hidden_states * 31 + actions[:, None] + 7) % 1_000_003
        return hidden, np.zeros(len(hidden)), *self.evaluate(hidden)

    def evaluate(self, hidden: Any) -> tuple[Any, Any]:
        keys = hidden[:, 0] % len(self.values)
        return self.logits[keys], self.values[keys]


@dataclass(frozen=True)
class HashedOutputs:
    """Pseudorandom policies and values, functions of the observation."""

    seed: int = 0
    levels: int = 1001
    """Few levels give equal numbers, so that ties occur."""

    def value(self, state: Any) -> float:
        """Returns the value for the player to move."""
        return self._number(state, 10**6) * 2.0 - 1.0

    def logits(self, state: Any) -> list[float]:
        """Returns the logits of all actions, legal or not."""
        return [4.0 * self._number(state, action) - 2.0 for action in range(state.num_actions)]

    def _number(self, state: Any, what: int) -> float:
        key = fold(self.seed, zlib.crc32(np.asarray(state.observation(), dtype=np.float32).tobytes()))
        return fold(key, what) % self.levels / (self.levels - 1)

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Any, Any]:
        """Returns logits and values, as an evaluator of states."""
        return np.array([self.logits(state) for state in states]), np.array([self.value(state) for state in states])


@dataclass(frozen=True)
class ExactModel:
    """The exact model of a two-player game. Illegal moves have the logit -1e9 below the root; an end pays its result to
    the player who moved there, with discount 0. Observations are ignored: the root is `start`.
    """

    start: Any
    guess: HashedOutputs = HashedOutputs()

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """Returns the starting position, with the logits of illegal moves too, which the search masks."""
        return [self.start], [self.guess.logits(self.start)], [self.guess.value(self.start)]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """Returns the step; ends and illegal moves are absorbing."""
        (state,), action = hidden_states, int(actions[0])
        if state.is_terminal or action not in state.legal_actions():
            return [state], [0.0], [[0.0] * state.num_actions], [0.0], [0.0]
        mover = state.to_play
        state = state.play(action)
        if state.is_terminal:
            return [state], [state.returns()[mover]], [[0.0] * state.num_actions], [0.0], [0.0]
        legal = set(state.legal_actions())
        logits = [logit if action in legal else NEVER for action, logit in enumerate(self.guess.logits(state))]
        return [state], [0.0], [logits], [self.guess.value(state)], [1.0 if state.to_play == mover else -1.0]
