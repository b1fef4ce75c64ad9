"""A table: two players and what they play, one pair of games after another. It is what is sent to other processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pondertree.match.adjudication import Adjudication
from pondertree.match.game import play_game
from pondertree.match.openings import Opening
from pondertree.match.players import Entrant, Player, start
from pondertree.match.record import PairRecord
from pondertree.reference.random import ANSWER, fold


@dataclass
class Table:
    """Two entrants and their game. The players come to it with the first pair and stay until it is closed."""

    entrants: tuple[Entrant, Entrant]
    factory: Callable[[], Any]
    seed: int
    adjudication: Adjudication
    on_failure: str
    _players: list[Player] = field(default_factory=list, repr=False)

    def play_pair(self, number: int, opening: Opening) -> PairRecord:
        """Pair `number`: player 1 moves first in its first game, player 2 in its second."""
        while len(self._players) < 2:
            self._players.append(start(self.entrants[len(self._players)]))
        names = [entrant.name for entrant in self.entrants]
        games = []
        for place, first in enumerate((1, 2)):
            game = 2 * number + place
            key = fold(fold(self.seed, ANSWER), game)
            games.append(
                play_game(
                    opening.root(self.factory),
                    opening,
                    self._players,
                    names,
                    [fold(key, player) for player in (1, 2)],
                    number=game,
                    first=first,
                    adjudication=self.adjudication,
                    on_failure=self.on_failure,
                )
            )
        return PairRecord(number, opening, (games[0], games[1]))

    def close(self) -> None:
        """Sends the players home."""
        while self._players:
            self._players.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_players": []}
