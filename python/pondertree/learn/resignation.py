"""Giving up games that are lost, and the check that they were."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from pondertree.learn.config_sections import SelfPlayConfig

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
