"""Unfinished self-play games, and resignation with a measured false-positive rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError
from pondertree.game import GameInfo
from pondertree.learn.config import MAX_STARTS, GameSpec, SelfPlayConfig, next_state, over_by_chance
from pondertree.learn.data import (
    MOVE_OUTCOMES,
    OPENING_OUTCOMES,
    GameRecord,
    draw_outcomes,
    observation_bytes,
    replay_line,
    reward_of,
)
from pondertree.random import fold


@dataclass(slots=True)
class Episode:
    """An unfinished game and its record so far."""

    number: int
    key: int
    state: Any
    opening: list[int] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    full: list[bool] = field(default_factory=list)
    actions: list[NDArray[np.uint16]] = field(default_factory=list)
    policy: list[NDArray[np.float32]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    score: float = 0.0
    """Sum of all rewards, those of the opening included."""
    outcomes: list[int] = field(default_factory=list)
    """Outcomes of all chance nodes."""
    drawn: list[int] = field(default_factory=list)
    """Number of outcomes before each move, those of the opening included, and after the last one; games with chance
    only."""
    seen: list[NDArray[np.uint8]] = field(default_factory=list)
    """Packed observations; environments only."""
    low: list[int] = field(default_factory=lambda: [0, 0])
    """Consecutive root values of each player below the resignation threshold."""
    would_resign: int = -1
    """The player who would have resigned, in a game continued as a check of resignation; -1 for none."""
    opening_draws: int = 0
    """How often outcomes have been drawn in the opening, those of undone moves included."""

    @classmethod
    def at_first_decision(cls, number: int, key: int, spec: GameSpec) -> Episode:
        """Returns a new game at its first decision; starts that chance ends before it are drawn again."""
        for attempt in range(MAX_STARTS):
            game = cls(number, key, spec.start(key), opening_draws=attempt)
            game.draw_until_decision(spec.info, in_opening=True)
            if not (spec.info.has_chance and game.state.is_terminal):
                return game
        raise over_by_chance(spec.info)

    @property
    def plies(self) -> int:
        """Moves so far, the opening included."""
        return len(self.opening) + len(self.moves)

    def draw_until_decision(self, info: GameInfo, *, in_opening: bool = False) -> float:
        """Draws outcomes up to a decision or the end; returns the sum of their rewards.

        The numbers depend on the game and the ply. Those of openings are a stream of their own, since starts may be
        drawn again and moves undone.
        """
        if not info.has_chance:
            return 0.0
        if in_opening:
            key = fold(fold(self.key, OPENING_OUTCOMES), self.opening_draws)
            self.opening_draws += 1
        else:
            key = fold(fold(self.key, MOVE_OUTCOMES), self.plies)
        self.state, outcomes, reward = draw_outcomes(self.state, info, key)
        self.outcomes += outcomes
        self.drawn.append(len(outcomes))
        self.score += reward
        return reward

    def play_opening(self, action: int, info: GameInfo) -> bool:
        """Plays a random move of the opening; changes nothing and returns False if the game would end."""
        before = (self.state, self.score, len(self.outcomes), len(self.drawn))
        self.opening.append(action)
        self.state = next_state(self.state, action)
        self.score += reward_of(self.state, info, action)
        self.draw_until_decision(info, in_opening=True)
        if not self.state.is_terminal:
            return True
        self.opening.pop()
        self.state, self.score = before[:2]
        del self.outcomes[before[2] :], self.drawn[before[3] :]
        return False

    def record(self, returns: list[float], *, cut: bool = False, resigned: bool = False) -> GameRecord:
        """Returns its record."""
        return GameRecord(
            number=self.number,
            opening=np.array(self.opening, dtype=np.uint16),
            moves=np.array(self.moves, dtype=np.uint16),
            values=np.array(self.values, dtype=np.float32),
            versions=np.array(self.versions, dtype=np.int64),
            full=np.array(self.full, dtype=np.bool_),
            counts=np.array([len(actions) for actions in self.actions], dtype=np.uint16),
            actions=np.concatenate([np.zeros(0, dtype=np.uint16), *self.actions]),
            policy=np.concatenate([np.zeros(0, dtype=np.float32), *self.policy]),
            returns=np.array(returns, dtype=np.float32),
            cut=cut,
            resigned=resigned,
            rewards=np.array(self.rewards, dtype=np.float32),
            seen=np.concatenate([np.zeros(0, dtype=np.uint8), *self.seen]),
            outcomes=np.array(self.outcomes, dtype=np.uint16),
            drawn=np.array(self.drawn, dtype=np.uint16),
        )

    @classmethod
    def of_record(cls, record: GameRecord, key: int, spec: GameSpec) -> Episode:
        """Rebuilds the game of a record; an environment replays its episode from the seed `key`."""
        seen = list(record.seen.reshape(len(record.moves), -1)) if len(record.seen) else []
        if seen:
            state, score = _replayed_environment(record, key, spec), float(record.rewards.sum(dtype=np.float64))
        else:
            state, score = replay_line(spec, key, record.line()[0].tolist())
        ends = np.cumsum(record.counts, dtype=np.int64)[:-1]
        return cls(
            number=record.number,
            key=key,
            state=state,
            opening=record.opening.tolist(),
            moves=record.moves.tolist(),
            values=record.values.astype(np.float64).tolist(),
            versions=record.versions.tolist(),
            full=record.full.tolist(),
            actions=list(np.split(record.actions, ends)) if len(record.counts) else [],
            policy=list(np.split(record.policy, ends)) if len(record.counts) else [],
            rewards=record.rewards.astype(np.float64).tolist(),
            score=score,
            outcomes=record.outcomes.tolist(),
            drawn=record.drawn.tolist(),
            seen=seen,
        )


def _replayed_environment(record: GameRecord, key: int, spec: GameSpec) -> Any:
    """Returns the state after an episode's actions; raises `GameContractError` if its observations differ."""
    state = spec.start(key)
    for move, seen in zip(record.moves.tolist(), record.seen.reshape(len(record.moves), -1), strict=True):
        if not np.array_equal(observation_bytes(state.observation(), spec), seen):
            raise GameContractError(f"episode {record.number} is not reproducible from its seed and actions")
        state = next_state(state, move)
    return state


#: Window of checked resignations, and how many are needed before they can disable resignation.
CHECKED_WINDOW = 200
MIN_CHECKED = 10
#: Consecutive root values of a player below the threshold that make it resign.
CONSECUTIVE_SEARCHES = 2


class Resignation:
    """The resignation rule: a threshold, disabled while too many checked resignations were false positives."""

    def __init__(self, config: SelfPlayConfig, checked: Iterable[bool] = ()) -> None:
        self._threshold = config.resign_below
        self._max_false_positive_rate = config.resign_wrong
        self._checked: deque[bool] = deque(checked, maxlen=CHECKED_WINDOW)

    @property
    def is_enabled(self) -> bool:
        """Whether a threshold is set."""
        return self._threshold > -1.0

    def is_below_threshold(self, value: float) -> bool:
        """Whether a root value is below the threshold."""
        return value < self._threshold

    @property
    def is_allowed(self) -> bool:
        """Whether games may end by resignation now."""
        return len(self._checked) < MIN_CHECKED or self.false_positive_rate <= self._max_false_positive_rate

    @property
    def false_positive_rate(self) -> float:
        """Fraction of the checked resignations whose player did not lose."""
        return sum(self._checked) / max(len(self._checked), 1)

    @property
    def checked(self) -> list[bool]:
        """The checked resignations, oldest first: whether each was a false positive."""
        return list(self._checked)

    def add_check(self, false_positive: bool) -> None:
        """Adds the outcome of a checked resignation."""
        self._checked.append(false_positive)
