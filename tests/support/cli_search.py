"""Helpers for tests of `pondertree search`."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from pondertree.cli import main

MATE_IN_TWO = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"


def search(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Runs `pondertree search --json` and returns the printed object."""
    assert main(["search", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.count("\n") == 1
    found: dict[str, Any] = json.loads(printed.out)
    return found


NIM = "examples.games.nim:Nim"


class Endless:
    """An endless single-player game."""

    num_actions, num_players, to_play, is_terminal = 2, 1, 0, False

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Endless:
        return self

    def returns(self) -> list[float]:
        return [0.0]


class Slow(Endless):
    """An endless game with 1 ms per move, whose playouts are cut after 10 s."""

    def play(self, action: int) -> Slow:
        time.sleep(0.001)
        return Slow()


COINS = "examples.games.coin_row:CoinRow"


TRIANGLE = "examples.games.triangle:Triangle"
