"""Match results: statistics, JSON, PGN."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pondertree._core import Chess
from pondertree.game import MOVE_SEPARATOR, join_moves
from pondertree.match.game import GameRecord
from pondertree.match.record import PairRecord
from pondertree.match.statistics import Elo, Sprt, SprtState, estimate


@dataclass(frozen=True)
class MatchResult:
    """An immutable snapshot of the results of a match, for player 1."""

    game: str
    players: tuple[str, str]
    seed: int
    pairs: Sequence[PairRecord]
    wanted: int
    """Number of games requested."""
    test: Sprt | None = None

    @cached_property
    def games(self) -> tuple[GameRecord, ...]:
        """Every game, in order."""
        return tuple(game for pair in self.pairs for game in pair.games)

    @cached_property
    def pentanomial(self) -> tuple[int, int, int, int, int]:
        """Numbers of pairs with 0, 1/2, 1, 3/2 and 2 points."""
        counts = [0] * 5
        for pair in self.pairs:
            counts[round(2 * pair.points)] += 1
        return counts[0], counts[1], counts[2], counts[3], counts[4]

    def _count(self, points: float) -> int:
        return sum(game.points == points for game in self.games)

    @property
    def wins(self) -> int:
        """Wins of player 1."""
        return self._count(1.0)

    @property
    def draws(self) -> int:
        """Drawn games."""
        return self._count(0.5)

    @property
    def losses(self) -> int:
        """Losses of player 1."""
        return self._count(0.0)

    @cached_property
    def elo(self) -> Elo:
        """Elo difference of player 1 with a 95 % confidence interval."""
        return estimate(self.pentanomial)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the Elo difference."""
        return self.elo.low, self.elo.high

    @cached_property
    def sprt(self) -> SprtState | None:
        """The state of the SPRT, if there is one."""
        return None if self.test is None else self.test.state(self.pentanomial)

    @property
    def failures(self) -> list[GameRecord]:
        """Games that ended by a player failure."""
        return [game for game in self.games if game.culprit is not None]

    @property
    def finished(self) -> bool:
        """Whether all games are played or the SPRT has a verdict."""
        return len(self.games) >= self.wanted or (self.sprt is not None and self.sprt.verdict is not None)

    def as_json(self) -> dict[str, Any]:
        """Plain data; infinite and unknown numbers are None."""
        elo = self.elo
        data: dict[str, Any] = {
            "game": self.game,
            "players": list(self.players),
            "seed": self.seed,
            "games": len(self.games),
            "wanted": self.wanted,
            "finished": self.finished,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "pentanomial": list(self.pentanomial),
            "score": _finite(elo.score),
            "elo": _finite(elo.elo),
            "interval": [_finite(elo.low), _finite(elo.high)],
            "normalised_elo": _finite(elo.normalised),
            "los": elo.los,
            "failures": [
                {"game": game.number, "player": game.culprit, "reason": game.reason, "detail": game.detail}
                for game in self.failures
            ],
        }
        if self.sprt is not None and self.test is not None:
            state = self.sprt
            data["sprt"] = {
                "elo0": self.test.elo0,
                "elo1": self.test.elo1,
                "llr": state.llr,
                "bounds": [state.lower, state.upper],
                "verdict": state.verdict,
            }
        return data

    def __str__(self) -> str:
        lines = [
            f"{self.players[0]} against {self.players[1]}, {self.game}, seed {self.seed}",
            f"games {len(self.games)}: +{self.wins} ={self.draws} -{self.losses}, score {_percent(self.elo.score)}",
            f"pairs {len(self.pairs)}: {' '.join(map(str, self.pentanomial))} (0, 1/2, 1, 3/2, 2 points)",
            f"{self.elo}",
        ]
        if self.sprt is not None and self.test is not None:
            lines.append(f"SPRT of {self.test.elo0:g} against {self.test.elo1:g} Elo: {self.sprt}")
        for game in self.failures[:3]:
            name = self.players[(game.culprit or 1) - 1]
            lines.append(f"{name} failed in game {game.number} ({game.reason}): {game.detail}")
        if len(self.failures) > 3:
            lines.append(f"and {len(self.failures) - 3} more failures")
        return "\n".join(lines)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.1%}"


_RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
#: Values of the PGN tag Termination; "normal" otherwise.
_TERMINATIONS = {
    "max_plies": "adjudication",
    "resigned": "adjudication",
    "draw_agreed": "adjudication",
    "illegal_move": "rules infraction",
    "died": "abandoned",
    "timeout": "time forfeit",
}


def write_games(result: MatchResult) -> str:
    """Returns all games of a match: PGN for chess, else a comment and a line of moves per game."""
    write = write_pgn if result.game == "chess" else write_moves
    return "\n".join(write(game, result.players) for game in result.games)


def result_of(game: GameRecord) -> int:
    """Returns +1, 0 or -1 for the side that moves first."""
    points = game.points if game.first == 1 else 1.0 - game.points
    return round(2 * points) - 1


def sides_of(game: GameRecord, players: tuple[str, str]) -> tuple[str, str]:
    """Returns the names of the first and the second side."""
    return players if game.first == 1 else (players[1], players[0])


def write_pgn(game: GameRecord, players: tuple[str, str]) -> str:
    """Returns a chess game as PGN, with the players' evaluations, for their side, and times as comments."""
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
        index = ply - game.opening
        if index >= 0:
            value = game.values[index]
            words.append(f"{{{'' if value is None else f'{value:+.2f} '}{game.seconds[index]:.3f}s}}")
        state = state.play(action)
    return words


def write_moves(game: GameRecord, players: tuple[str, str]) -> str:
    """Returns a game of any kind as a comment with players and result, and a line of moves."""
    first, second = sides_of(game, players)
    about = f"# game {game.number}: {first} - {second} {_RESULTS[result_of(game)]} ({_comment(game)})"
    return f"{' '.join(about.split())}\n{_line(game.moves)}\n"


def _line(moves: Sequence[str]) -> str:
    # A line of one move with several words needs the separator to be read as one.
    return join_moves(moves) + (MOVE_SEPARATOR if len(moves) == 1 and len(moves[0].split()) > 1 else "")


def _comment(game: GameRecord) -> str:
    text = game.reason.replace("_", " ") + (f": {game.detail}" if game.detail else "")
    return " ".join(text.replace("{", "(").replace("}", ")").split())


def _quoted(text: str) -> str:
    return " ".join(text.replace("\\", "\\\\").replace('"', '\\"').split())
