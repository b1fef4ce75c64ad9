"""The words of UCI, read into commands. Nothing here searches, prints or keeps anything.

Words before the first one that UCI knows are skipped, as it asks for. What cannot be read is noted in the command
(`complaints`) instead of raised: a `go` with a typing mistake must still be answered by a move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pondertree.validation import brief

#: Commands without arguments that matter here.
PLAIN = frozenset({"uci", "isready", "ucinewgame", "stop", "ponderhit", "quit", "register", "d"})
COMMANDS = PLAIN | {"position", "go", "setoption", "debug"}

#: Numbers of `go`, in milliseconds, moves, plies or simulations.
NUMBERS = frozenset(
    {"wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime", "perft"}
)  # perft: Stockfish's, not ours; known so that its number is no move
FLAGS = frozenset({"infinite", "ponder"})
#: No clock shows more; also what keeps absurd numbers from growing on.
MOST = 1 << 53
#: Milliseconds for a `go` whose only limits could not be read.
INSTEAD = 1000


@dataclass(frozen=True, slots=True)
class Plain:
    """A command of one word."""

    name: str


@dataclass(frozen=True, slots=True)
class Position:
    """`position`: where the game began (None: the usual start) and the moves since."""

    fen: str | None
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetOption:
    """`setoption`: a name, and a value, which a button does not have."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Debug:
    """`debug on` and `debug off`."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """`go`: what was said of the clock and of other limits. None was not said."""

    wtime: int | None = None
    btime: int | None = None
    winc: int | None = None
    binc: int | None = None
    movestogo: int | None = None
    depth: int | None = None
    nodes: int | None = None
    mate: int | None = None
    movetime: int | None = None
    infinite: bool = False
    ponder: bool = False
    searchmoves: tuple[str, ...] = ()
    complaints: tuple[str, ...] = field(default=(), compare=False)

    @property
    def has_clock(self) -> bool:
        """Whether a clock runs."""
        return self.wtime is not None or self.btime is not None

    @property
    def is_limited(self) -> bool:
        """Whether anything but `stop` ends the search."""
        limits = (self.depth, self.nodes, self.mate, self.movetime)
        return not self.infinite and (self.has_clock or any(limit is not None for limit in limits))


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line that is no command, and why."""

    why: str


Command = Plain | Position | SetOption | Debug | Go | Unknown


def parse(line: str) -> Command | None:
    """The command of a line; None if there is nothing on it."""
    words = line.split()
    if not words:
        return None
    first = next((place for place, word in enumerate(words) if word in COMMANDS), None)
    if first is None:
        return Unknown(f"unknown command: {shown(line.strip())}")
    name, rest = words[first], words[first + 1 :]
    if name == "position":
        return _position(rest)
    if name == "go":
        return _go(rest)
    if name == "setoption":
        return _set_option(rest)
    if name == "debug":
        return Debug(rest[:1] != ["off"])
    return Plain(name)


def shown(text: str, most: int = 80) -> str:
    """Somebody else's text, fit to be printed on one line."""
    return ascii(brief(text, most))


def _position(words: Sequence[str]) -> Command:
    place = words.index("moves") if "moves" in words else len(words)
    start, moves = words[:place], tuple(words[place + 1 :])
    if start == ["startpos"]:
        return Position(None, moves)
    if start[:1] == ["startpos"]:
        return Unknown(f"position: {shown(start[1])} after startpos is not moves; the position stays as it was")
    if start[:1] == ["fen"] and len(start) > 1:
        return Position(" ".join(start[1:]), moves)
    return Unknown("position: expected startpos or fen, and then moves; the position stays as it was")


def _set_option(words: Sequence[str]) -> Command:
    """Names and values may have several words."""
    if words[:1] != ["name"]:
        return Unknown("setoption: expected setoption name NAME value VALUE")
    place = words.index("value") if "value" in words else len(words)
    name = " ".join(words[1:place])
    if not name:
        return Unknown("setoption: there is no name")
    return SetOption(name, " ".join(words[place + 1 :]) if place < len(words) else None)


def _go(words: Sequence[str]) -> Go:
    numbers: dict[str, int] = {}
    flags: dict[str, bool] = {}
    moves: list[str] = []
    complaints: list[str] = []
    wrong = False
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word in FLAGS:
            flags[word] = True
        elif word in NUMBERS:
            number = _number(words[place]) if place < len(words) else None
            if number is None:
                complaints.append(f"go: {word} wants a whole number")
                wrong = True
                place += place < len(words) and words[place] not in NUMBERS | FLAGS | {"searchmoves"}
            else:
                numbers[word] = number
                place += 1
        elif word == "searchmoves":
            while place < len(words) and words[place] not in NUMBERS | FLAGS:
                moves.append(words[place])
                place += 1
        else:
            complaints.append(f"go: {shown(word)} is not known")
    if numbers.pop("perft", None) is not None:
        complaints.append("go: perft is not offered here")
    said: dict[str, Any] = {**numbers, **flags}
    if wrong and not flags and not Go(**said).is_limited:
        # It was meant to end by itself, and nobody will say `stop`.
        said["movetime"] = INSTEAD
        complaints.append(f"go: no limit is left, so it takes {INSTEAD} ms")
    return Go(**said, searchmoves=tuple(moves), complaints=tuple(complaints[:3]))


def _number(text: str) -> int | None:
    """A whole number, cut to what any clock can show."""
    try:
        return max(-MOST, min(int(text[:400]), MOST))
    except ValueError:
        return None
