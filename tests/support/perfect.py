"""An exact learned model for the reference implementation: its hidden states are positions of a game."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree.random import fold

NEVER = -1e9


@dataclass(frozen=True)
class Guess:
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
class Perfect:
    """The exact model of a two-player game. Illegal moves have the logit -1e9 below the root; an end pays its result to
    the player who moved there, with discount 0. Observations are ignored: the root is `start`.
    """

    start: Any
    guess: Guess = Guess()

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
