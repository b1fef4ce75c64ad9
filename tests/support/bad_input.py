"""Games and evaluators that violate their contracts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

NOT_WHOLE: list[Any] = [1.5, math.nan, math.inf, "3", True, None, [], object(), 1j]


NOT_A_NUMBER: list[Any] = [math.nan, math.inf, -math.inf, "1.0", b"1", True, [], object(), 1j, 10**400]


def wrong(name: str, values: list[Any]) -> list[tuple[str, Any]]:
    return [(name, value) for value in values]


@dataclass(frozen=True)
class Row:
    """Six moves of 0, 1 or 2, then a win of the first player. Subclasses fail at the third ply or at the end."""

    ply: int = 0
    num_actions = 3
    num_players = 2

    @property
    def to_play(self) -> Any:
        return self.ply % 2

    @property
    def is_terminal(self) -> Any:
        return self.ply >= 6

    def legal_actions(self) -> Any:
        return [0, 1, 2]

    def play(self, action: int) -> Any:
        return type(self)(self.ply + 1)

    def returns(self) -> Any:
        return [1.0, -1.0]


def crash(state: Row) -> Any:
    raise ZeroDivisionError("the game crashed")


BROKEN_ROOTS: list[tuple[str, dict[str, Any], str]] = [
    ("legal_actions raises", {"legal_actions": crash}, "ZeroDivisionError"),
    ("is_terminal raises", {"is_terminal": property(crash)}, "ZeroDivisionError"),
    ("to_play raises", {"to_play": property(crash)}, "ZeroDivisionError"),
    ("num_actions raises", {"num_actions": property(crash)}, "num_actions"),
    ("num_players raises", {"num_players": property(crash)}, "num_players"),
    ("zero_sum raises", {"zero_sum": property(crash)}, "zero_sum"),
    ("is_terminal a method", {"is_terminal": lambda self: False}, "is_terminal is a method"),
    ("num_actions 0", {"num_actions": 0}, "num_actions is 0"),
    ("num_actions too large", {"num_actions": 65536}, "num_actions is 65536"),
    ("num_actions a method", {"num_actions": lambda self: 3}, "num_actions must be an int"),
    ("num_players 0", {"num_players": 0}, "num_players is 0"),
    ("num_players text", {"num_players": "two"}, "num_players must be an int"),
    ("zero_sum text", {"zero_sum": "yes"}, "zero_sum"),
    ("no actions", {"legal_actions": lambda self: []}, "empty"),
    ("duplicate actions", {"legal_actions": lambda self: [1, 1]}, "1 twice"),
    ("action too large", {"legal_actions": lambda self: [3]}, "has 3"),
    ("to_play too large", {"to_play": 2}, "to_play is 2"),
    ("action_to_string raises", {"action_to_string": lambda self, action: crash(self)}, "action_to_string"),
]
