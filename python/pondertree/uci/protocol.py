"""The parser of UCI commands, without side effects.

Unknown tokens before a command are skipped, as the protocol requires. Invalid arguments of `go` are collected in
`problems` instead of raised, since every `go` must be answered by a `bestmove`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pondertree.validation import brief

#: Commands whose arguments are ignored.
PLAIN = frozenset({"uci", "isready", "ucinewgame", "stop", "ponderhit", "quit", "register", "d"})
COMMANDS = PLAIN | {"position", "go", "setoption", "debug"}

#: Numeric arguments of `go`, in milliseconds, moves, plies or simulations.
NUMBERS = frozenset(
    {"wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime", "perft"}
)  # perft, an extension of Stockfish, is recognised but not supported
FLAGS = frozenset({"infinite", "ponder"})
#: Numbers are clamped to this magnitude.
MAX_NUMBER = 1 << 53
#: Milliseconds for a `go` whose only limits are invalid.
FALLBACK_MOVETIME = 1000


@dataclass(frozen=True, slots=True)
class Plain:
    """A command without arguments."""

    name: str


@dataclass(frozen=True, slots=True)
class Position:
    """`position`: the starting FEN (None: the standard position) and the moves."""

    fen: str | None
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetOption:
    """`setoption`: a name and a value, None for buttons."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Debug:
    """`debug on` and `debug off`."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """`go`: clocks and limits; None where not given."""

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
    problems: tuple[str, ...] = field(default=(), compare=False)

    @property
    def has_clock(self) -> bool:
        """Whether a clock is given."""
        return self.wtime is not None or self.btime is not None

    @property
    def is_limited(self) -> bool:
        """Whether the search has a limit other than `stop`."""
        limits = (self.depth, self.nodes, self.mate, self.movetime)
        return not self.infinite and (self.has_clock or any(limit is not None for limit in limits))


@dataclass(frozen=True, slots=True)
class Unknown:
    """An invalid line and the reason."""

    reason: str


Command = Plain | Position | SetOption | Debug | Go | Unknown


def parse(line: str) -> Command | None:
    """Returns the command of a line; None if it is blank."""
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
    """Returns untrusted text, shortened and escaped for one line."""
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
    """Parses names and values that may contain spaces."""
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
    problems: list[str] = []
    has_invalid_number = False
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word in FLAGS:
            flags[word] = True
        elif word in NUMBERS:
            number = _number(words[place]) if place < len(words) else None
            if number is None:
                problems.append(f"go: {word} requires an integer")
                has_invalid_number = True
                place += place < len(words) and words[place] not in NUMBERS | FLAGS | {"searchmoves"}
            else:
                numbers[word] = number
                place += 1
        elif word == "searchmoves":
            while place < len(words) and words[place] not in NUMBERS | FLAGS:
                moves.append(words[place])
                place += 1
        else:
            problems.append(f"go: {shown(word)} is not known")
    if numbers.pop("perft", None) is not None:
        problems.append("go: perft is not offered here")
    arguments: dict[str, Any] = {**numbers, **flags}
    if has_invalid_number and not flags and not Go(**arguments).is_limited:
        # A limit was intended, so no `stop` will follow.
        arguments["movetime"] = FALLBACK_MOVETIME
        problems.append(f"go: no limit is left, so it takes {FALLBACK_MOVETIME} ms")
    return Go(**arguments, searchmoves=tuple(moves), problems=tuple(problems[:3]))


def _number(text: str) -> int | None:
    """Parses and clamps an integer; None if invalid."""
    try:
        return max(-MAX_NUMBER, min(int(text[:400]), MAX_NUMBER))
    except ValueError:
        return None
