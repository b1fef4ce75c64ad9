"""A learned model that has learned all there is: its hidden states are the positions of a game."""

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
    """Policies and values that look random, and depend on what a position looks like alone."""

    seed: int = 0
    levels: int = 1001
    """With few of them many numbers are equal, so that ties matter."""

    def value(self, state: Any) -> float:
        """For the player to move."""
        return self._number(state, 10**6) * 2.0 - 1.0

    def logits(self, state: Any) -> list[float]:
        """For every action, legal or not."""
        return [4.0 * self._number(state, action) - 2.0 for action in range(state.num_actions)]

    def _number(self, state: Any, what: int) -> float:
        key = fold(self.seed, zlib.crc32(np.asarray(state.observation(), dtype=np.float32).tobytes()))
        return fold(key, what) % self.levels / (self.levels - 1)

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Any, Any]:
        """As an evaluator of positions."""
        return np.array([self.logits(state) for state in states]), np.array([self.value(state) for state in states])


@dataclass(frozen=True)
class Perfect:
    """The model of a two-player game. Illegal moves have the logit -1e9 below the root; an end pays its result to who
    moved there, and its discount is 0, so that nothing beyond it counts. Observations are not looked at: `start` is."""

    start: Any
    guess: Guess = Guess()

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """The starting position, with the logits of illegal moves too: the root is masked by the search."""
        return [self.start], [self.guess.logits(self.start)], [self.guess.value(self.start)]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """After an end nothing happens any more."""
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
