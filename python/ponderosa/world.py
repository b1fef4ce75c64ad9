"""Positions of games written in Python: they stay in a table here, under slots that the engine gives out.

`table[slot] = play(table[parent], action)` happens once per simulation, at the leaf; only numbers cross to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ponderosa import _core
from ponderosa.game import GameInfo, Position, game_mistakes, play, read_position
from ponderosa.reference.lookahead import forced_actions


class PythonWorld:
    """The slot table of one forest."""

    def __init__(self, core: _core.Forest, info: GameInfo, forced_depth: int) -> None:
        self._core = core
        self._info = info
        self._forced_depth = forced_depth
        self._states: dict[int, Any] = {}
        self._forced_left: dict[int, int] = {}

    def __getitem__(self, slot: int) -> Any:
        return self._states[slot]

    def __len__(self) -> int:
        return len(self._states)

    def read_root(self, state: Any) -> Position:
        """What the engine needs to know to plant a tree at `state`."""
        return self._narrow(state, read_position(state, self._info), self._forced_depth)

    def put_root(self, slot: int, state: Any) -> None:
        """Keeps the state of a root."""
        self._states[slot] = state
        if self._forced_depth:
            self._forced_left[slot] = self._forced_depth

    def release(self, slots: Iterable[int]) -> None:
        """Forgets states the engine no longer has."""
        for slot in slots:
            self._states.pop(slot, None)
            self._forced_left.pop(slot, None)

    def step(self) -> None:
        """Plays the moves of all rows the engine has gathered and tells it what came of them."""
        to_play: list[int] = []
        terminal: list[bool] = []
        returns: list[float] = []
        rewards: list[float] = []
        offsets = [0]
        legal: list[int] = []
        for slot, parent, action in self._core.stepping():
            state = play(self._states[parent], action, self._info)
            position = read_position(state, self._info)
            self._states[slot] = state
            if self._forced_depth:
                left = max(self._forced_left[parent] - 1, 0)
                position = self._narrow(state, position, left)
                self._forced_left[slot] = left
            to_play.append(position.to_play)
            terminal.append(position.terminal)
            returns.extend(position.returns)
            rewards.extend(position.rewards)
            legal.extend(position.legal)
            offsets.append(len(legal))
        self._core.step(to_play, terminal, returns, rewards, offsets, legal)

    def _narrow(self, state: Any, position: Position, forced_left: int) -> Position:
        if forced_left == 0 or position.terminal or not position.legal:
            return position
        with game_mistakes(self._info, "when forced moves were looked for"):
            legal = forced_actions(state, position.legal)
        return Position(position.to_play, False, position.returns, position.rewards, legal)
