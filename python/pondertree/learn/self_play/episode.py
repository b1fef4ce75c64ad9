"""A game that is being played, told completely by its moves and what was recorded with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError
from pondertree.learn.config.game_spec import GameSpec, play_in
from pondertree.learn.config.sections import SelfPlayConfig
from pondertree.learn.data.observations import kept_bytes
from pondertree.learn.data.records import GameRecord


@dataclass(slots=True)
class GameUnderWay:
    """A game that is being played, and what has been recorded of it."""

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
    seen: list[NDArray[np.uint8]] = field(default_factory=list)
    """Packed observations, where the moves alone do not tell them."""
    low: list[int] = field(default_factory=lambda: [0, 0])
    """Searches in a row that each player found the game lost by."""
    given_up: int = -1
    """The player who would have resigned, in a game that is played on to check it; -1 nobody."""

    @property
    def plies(self) -> int:
        """Moves so far, the opening included."""
        return len(self.opening) + len(self.moves)

    def record(self, returns: list[float], *, cut: bool = False, resigned: bool = False) -> GameRecord:
        """What is kept of it."""
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
        )

    @classmethod
    def of_record(cls, record: GameRecord, key: int, spec: GameSpec) -> GameUnderWay:
        """The game under way that a record was made of; an episode is played again from its seed, `key`."""
        state = spec.start(key)
        for move in record.opening.tolist():
            state = play_in(state, move)
        seen = list(record.seen.reshape(len(record.moves), -1)) if len(record.seen) else []
        for place, move in enumerate(record.moves.tolist()):
            if seen and not np.array_equal(kept_bytes(state.observation(), spec), seen[place]):
                raise GameContractError(f"episode {record.number} does not repeat itself from its seed and its actions")
            state = play_in(state, move)
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
            seen=seen,
        )


#: Checked resignations that are remembered, and how many there must be before they can pause resigning.
REMEMBERED = 200
ENOUGH = 10
#: Searches in a row, of one player, that must find the game lost.
IN_A_ROW = 2


class Resignation:
    """Whether players may resign, by how often checked games showed that it would have been wrong."""

    def __init__(self, config: SelfPlayConfig, checked: Iterable[bool] = ()) -> None:
        self._below = config.resign_below
        self._wrong = config.resign_wrong
        self._checked: deque[bool] = deque(checked, maxlen=REMEMBERED)

    @property
    def is_wanted(self) -> bool:
        """Whether games are given up at all."""
        return self._below > -1.0

    def gives_up(self, value: float) -> bool:
        """Whether a player who finds the game worth `value` would give it up."""
        return value < self._below

    @property
    def is_allowed(self) -> bool:
        """Whether games may end by it now."""
        return len(self._checked) < ENOUGH or self.wrong_share <= self._wrong

    @property
    def wrong_share(self) -> float:
        """Share of the checked resignations that were wrong: the player did not lose."""
        return sum(self._checked) / max(len(self._checked), 1)

    @property
    def checked(self) -> list[bool]:
        """The checked resignations, oldest first: whether each was wrong."""
        return list(self._checked)

    def learn(self, wrong: bool) -> None:
        """A game was played on to its end."""
        self._checked.append(wrong)
