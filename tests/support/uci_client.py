"""An in-process client of the UCI engine."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

from pondertree.uci.options import Options
from pondertree.uci.session import Session
from pondertree.uci.writer import LineWriter

#: The command of the engine as a subprocess.
COMMAND = [sys.executable, "-m", "pondertree", "uci"]

MORPHY = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"  # mate in two
BACK_RANK = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"  # mate in one
ROOK = "7k/8/5K2/8/8/8/8/R7 w - - 0 1"  # mate in two, by an exact table
STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
MATED = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"
MATED_SOON = "6k1/8/6K1/8/8/8/8/R7 b - - 0 1"  # every move is mated in one or two
ONE_MOVE = "8/8/8/8/8/6k1/r7/7K w - - 0 1"  # the only legal move is mated at once


class EngineClient:
    """Sends commands to a session and records its output."""

    def __init__(self, **options: Any) -> None:
        self.output: list[str] = []
        self._received = threading.Condition()
        chosen = Options()
        for name, value in options.items():
            chosen.set(name, str(value))
        self.session = Session(LineWriter(self._receive), chosen)

    def _receive(self, text: str) -> None:
        assert text.endswith("\n")
        with self._received:
            self.output += text.splitlines()
            self._received.notify_all()

    def send(self, *commands: str) -> EngineClient:
        for command in commands:
            assert self.session.handle(command) == (command != "quit")
        return self

    def bestmoves(self) -> list[str]:
        return [line for line in self.output if line.startswith("bestmove")]

    def wait(self, count: int = 1, seconds: float = 20.0) -> str:
        """Waits for the `count`th bestmove and returns its move."""
        with self._received:
            assert self._received.wait_for(lambda: len(self.bestmoves()) >= count, seconds), self.output[-5:]
        return self.bestmoves()[count - 1].split()[1]

    def infos(self) -> list[str]:
        return [line for line in self.output if line.startswith("info depth")]

    def info_strings(self) -> list[str]:
        return [line for line in self.output if line.startswith("info string")]

    def __enter__(self) -> EngineClient:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.session.close()


def field(line: str, name: str) -> int:
    [found] = re.findall(rf"\b{name} ?(-?\d+)", line)
    return int(found)
