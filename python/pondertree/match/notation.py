"""Parsers for moves, EPD, FEN and the main lines of PGN."""

from __future__ import annotations

import re
from typing import Any

from pondertree.errors import InvalidArgumentError, PondertreeError

_RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
_TAG = re.compile(r'^\s*\[\s*(\w+)\s+"((?:[^"\\]|\\.)*)"\s*\]\s*$')
#: A brace comment (an unclosed one ends with the game), a line comment, a NAG, a parenthesis, or a word.
_TOKEN = re.compile(r"\{[^}]*\}?|;[^\n]*|\$\d+|[()]|[^\s(){};]+")
_NUMBER = re.compile(r"^\d+\.*")


def parse_move(state: Any, text: str) -> int:
    """Returns the legal action of a move text."""
    reader = getattr(state, "parse_action", None)
    try:
        action = int(text) if reader is None else int(reader(text))
    except PondertreeError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"{text!r} is not a move: {error}") from None
    if action not in state.legal_actions():
        raise InvalidArgumentError(f"{text!r} is not a legal move")
    return action


def read_epd(text: str) -> list[str]:
    """Returns the FENs of EPD or FEN lines; the clocks of EPD are read from `hmvc` and `fmvn` if present."""
    positions = []
    for line in text.splitlines():
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) >= 6 and fields[4].isdigit() and fields[5].rstrip(";").isdigit():
            clocks = [fields[4], fields[5].rstrip(";")]
        else:
            operations = " ".join(fields[4:])
            clocks = [
                found.group(1) if (found := re.search(rf"\b{code}\s+(\d+)", operations)) else default
                for code, default in (("hmvc", "0"), ("fmvn", "1"))
            ]
        positions.append(" ".join(fields[:4] + clocks))
    return positions


def read_pgn(text: str) -> list[tuple[str | None, tuple[str, ...]]]:
    """Returns (FEN or None, main line) of each game, without comments, variations, move numbers and NAGs."""
    return [(fen, moves) for fen, moves, _ in read_games(text)]


def read_games(text: str) -> list[tuple[str | None, tuple[str, ...], str]]:
    """Returns (FEN or None, main line, result) of each PGN game: "1-0", "0-1", "1/2-1/2", or "*" if unknown."""
    games: list[tuple[str | None, tuple[str, ...], str]] = []
    fen: str | None = None
    tagged_result = "*"
    lines: list[str] = []

    def finish(last: bool) -> None:
        nonlocal fen, tagged_result, lines
        moves, result = _main_line("\n".join(lines))
        if moves or result is not None or (last and fen is not None):
            games.append((fen, moves, tagged_result if result in (None, "*") else str(result)))
            fen, tagged_result = None, "*"
        lines = []

    for line in text.splitlines():
        tag = _TAG.match(line)
        if tag is not None:
            # A tag after moves begins the next game.
            finish(last=False)
            if tag.group(1).upper() == "FEN":
                fen = tag.group(2)
            elif tag.group(1) == "Result" and tag.group(2) in _RESULTS:
                tagged_result = tag.group(2)
        elif not line.startswith("%"):
            lines.append(line)
    finish(last=True)
    return games


def _main_line(text: str) -> tuple[tuple[str, ...], str | None]:
    """Returns (moves, termination marker or None)."""
    moves: list[str] = []
    depth, result = 0, None
    for token in _TOKEN.findall(text):
        if token[0] in "{;$":
            continue
        if token in "()":
            depth = depth + 1 if token == "(" else max(depth - 1, 0)
            continue
        if depth > 0:
            continue
        if token in _RESULTS:
            result = token
            continue
        word = _NUMBER.sub("", token) if not token.startswith("0-0") else token
        word = word.rstrip("!?")
        if word:
            moves.append(word.replace("0-0-0", "O-O-O").replace("0-0", "O-O"))
    return tuple(moves), result
