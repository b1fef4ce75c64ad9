"""Games written down: chess as PGN, other games as lines of moves."""

from __future__ import annotations

import textwrap
from typing import Any

from pondertree._core import Chess
from pondertree.match.game import GameRecord
from pondertree.match.result import MatchResult

_RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
#: What the tag Termination may say; the rest is "normal".
_TERMINATIONS = {
    "max_plies": "adjudication",
    "resigned": "adjudication",
    "draw_agreed": "adjudication",
    "illegal_move": "rules infraction",
    "died": "abandoned",
    "timeout": "time forfeit",
}


def write_games(result: MatchResult) -> str:
    """All games of a match: PGN for chess, else for each game a comment and a line of moves."""
    write = write_pgn if result.game == "chess" else write_moves
    return "\n".join(write(game, result.players) for game in result.games)


def result_of(game: GameRecord) -> int:
    """+1, 0 or -1 for the side that moves first."""
    points = game.points if game.first == 1 else 1.0 - game.points
    return round(2 * points) - 1


def sides_of(game: GameRecord, players: tuple[str, str]) -> tuple[str, str]:
    """Who moves first, and who does not."""
    return players if game.first == 1 else (players[1], players[0])


def write_pgn(game: GameRecord, players: tuple[str, str]) -> str:
    """One game of chess as PGN, with what the players thought, for their side, and their times as comments."""
    white, black = sides_of(game, players)
    score = _RESULTS[result_of(game)]
    tags = {
        "Event": "pondertree match",
        "Site": "?",
        "Date": "????.??.??",
        "Round": f"{game.number // 2 + 1}.{game.number % 2 + 1}",
        "White": white,
        "Black": black,
        "Result": score,
        "PlyCount": str(len(game.moves)),
        "Termination": _TERMINATIONS.get(game.reason, "normal"),
    }
    if game.fen is not None:
        tags |= {"SetUp": "1", "FEN": game.fen}
    lines = [f'[{name} "{_quoted(text)}"]' for name, text in tags.items()]
    words = [*_moves(game), f"{{{_comment(game)}}}", score]
    text = textwrap.fill(" ".join(words), width=79, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, "", text, ""])


def _moves(game: GameRecord) -> list[str]:
    words = []
    state: Any = Chess(game.fen)
    move = int(state.fen().split()[5])
    for ply, text in enumerate(game.moves):
        action = state.parse_action(text)
        if state.to_play == 0:
            words.append(f"{move}.")
        elif ply == 0:
            words.append(f"{move}...")
        move += state.to_play
        words.append(state.san(action))
        thought = ply - game.opening
        if thought >= 0:
            value = game.values[thought]
            words.append(f"{{{'' if value is None else f'{value:+.2f} '}{game.seconds[thought]:.3f}s}}")
        state = state.play(action)
    return words


def write_moves(game: GameRecord, players: tuple[str, str]) -> str:
    """One game of any kind: a comment that says who played and how it ended, and the moves in a line."""
    first, second = sides_of(game, players)
    about = f"# game {game.number}: {first} - {second} {_RESULTS[result_of(game)]} ({_comment(game)})"
    return f"{' '.join(about.split())}\n{' '.join(game.moves)}\n"


def _comment(game: GameRecord) -> str:
    text = game.reason.replace("_", " ") + (f": {game.detail}" if game.detail else "")
    return " ".join(text.replace("{", "(").replace("}", ")").split())


def _quoted(text: str) -> str:
    return " ".join(text.replace("\\", "\\\\").replace('"', '\\"').split())
