"""A UCI engine in this process, for tests: told lines, heard line by line."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

from pondertree.uci.options import Options
from pondertree.uci.session import Session
from pondertree.uci.writer import Voice

#: The engine as a program.
COMMAND = [sys.executable, "-m", "pondertree", "uci"]

MORPHY = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"  # mate in two
BACK_RANK = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"  # mate in one
ROOK = "7k/8/5K2/8/8/8/8/R7 w - - 0 1"  # mate in two, by an exact table
STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
MATED = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"
MATED_SOON = "6k1/8/6K1/8/8/8/8/R7 b - - 0 1"  # whatever is played, it is mate in a move or two
ONE_MOVE = "8/8/8/8/8/6k1/r7/7K w - - 0 1"  # after which it is mate


class Talk:
    """An engine in this process."""

    def __init__(self, **options: Any) -> None:
        self.said: list[str] = []
        self._news = threading.Condition()
        chosen = Options()
        for name, value in options.items():
            chosen.set(name, str(value))
        self.session = Session(Voice(self._hear), chosen)

    def _hear(self, text: str) -> None:
        assert text.endswith("\n")
        with self._news:
            self.said += text.splitlines()
            self._news.notify_all()

    def tell(self, *commands: str) -> Talk:
        for command in commands:
            assert self.session.handle(command) == (command != "quit")
        return self

    def moves(self) -> list[str]:
        return [line for line in self.said if line.startswith("bestmove")]

    def wait(self, count: int = 1, seconds: float = 20.0) -> str:
        """The `count`th bestmove, as its words."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.moves()) >= count, seconds), self.said[-5:]
        return self.moves()[count - 1].split()[1]

    def infos(self) -> list[str]:
        return [line for line in self.said if line.startswith("info depth")]

    def remarks(self) -> list[str]:
        return [line for line in self.said if line.startswith("info string")]

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.session.close()


def field(line: str, name: str) -> int:
    [found] = re.findall(rf"\b{name} ?(-?\d+)", line)
    return int(found)
