"""What a match has shown so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pondertree.match.elo import Elo, estimate
from pondertree.match.game import GameRecord
from pondertree.match.record import PairRecord
from pondertree.match.sprt import Sprt, SprtState


@dataclass(frozen=True)
class MatchResult:
    """Results of a match, all for player 1. It does not change when the match goes on."""

    game: str
    players: tuple[str, str]
    seed: int
    pairs: Sequence[PairRecord]
    wanted: int
    """How many games were asked for."""
    test: Sprt | None = None

    @cached_property
    def games(self) -> tuple[GameRecord, ...]:
        """Every game, in order."""
        return tuple(game for pair in self.pairs for game in pair.games)

    @cached_property
    def pentanomial(self) -> tuple[int, int, int, int, int]:
        """How many pairs brought 0, 1/2, 1, 3/2 and 2 points."""
        counts = [0] * 5
        for pair in self.pairs:
            counts[round(2 * pair.points)] += 1
        return counts[0], counts[1], counts[2], counts[3], counts[4]

    def _count(self, points: float) -> int:
        return sum(game.points == points for game in self.games)

    @property
    def wins(self) -> int:
        """Games that player 1 won."""
        return self._count(1.0)

    @property
    def draws(self) -> int:
        """Games without a winner."""
        return self._count(0.5)

    @property
    def losses(self) -> int:
        """Games that player 2 won."""
        return self._count(0.0)

    @cached_property
    def elo(self) -> Elo:
        """How much stronger player 1 is, with a 95 % interval."""
        return estimate(self.pentanomial)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference in Elo."""
        return self.elo.low, self.elo.high

    @cached_property
    def sprt(self) -> SprtState | None:
        """How the sequential test stands, if there is one."""
        return None if self.test is None else self.test.state(self.pentanomial)

    @property
    def failures(self) -> list[GameRecord]:
        """Games that ended because a player failed."""
        return [game for game in self.games if game.culprit is not None]

    @property
    def finished(self) -> bool:
        """Whether all games are played, or the test has come to a verdict."""
        return len(self.games) >= self.wanted or (self.sprt is not None and self.sprt.verdict is not None)

    def as_json(self) -> dict[str, Any]:
        """Plain data; what is infinite or unknown is None."""
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
