"""Matches between two players on any two-player game: paired games, Elo with confidence interval, SPRT.

from pondertree.match import play_match

print(play_match("uct:num_simulations=400", "uct:num_simulations=100", "connect4", num_games=100, seed=1))
"""

from pondertree.match.game import Adjudication, GameRecord
from pondertree.match.openings import Opening
from pondertree.match.players import Entrant, FunctionEntrant, PlayedMove, Player, PlayerFailure, SearchEntrant
from pondertree.match.record import PairRecord, read_record
from pondertree.match.result import MatchResult, write_games
from pondertree.match.runner import play_match
from pondertree.match.spec import read_player
from pondertree.match.statistics import Elo, Sprt, SprtState, elo_of, estimate, llr, score_of
from pondertree.match.uci_player import UciEntrant

__all__ = [
    "Adjudication",
    "PlayedMove",
    "Elo",
    "Entrant",
    "FunctionEntrant",
    "GameRecord",
    "MatchResult",
    "Opening",
    "PairRecord",
    "Player",
    "PlayerFailure",
    "SearchEntrant",
    "Sprt",
    "SprtState",
    "UciEntrant",
    "elo_of",
    "estimate",
    "llr",
    "play_match",
    "read_player",
    "read_record",
    "score_of",
    "write_games",
]
