"""Matches: any two players on any game of two, in pairs of games, with Elo, error bars and a sequential test.

from ponderosa.match import play_match

print(play_match("uct:num_simulations=400", "uct:num_simulations=100", "connect4", num_games=100, seed=1))
"""

from ponderosa.match.adjudication import Adjudication
from ponderosa.match.elo import Elo, elo_of, estimate, score_of
from ponderosa.match.game import GameRecord
from ponderosa.match.openings import Opening
from ponderosa.match.pgn import write_games
from ponderosa.match.players import Choice, Entrant, FunctionEntrant, Player, PlayerFailure, SearchEntrant
from ponderosa.match.record import PairRecord, read_record
from ponderosa.match.result import MatchResult
from ponderosa.match.runner import play_match
from ponderosa.match.spec import read_player
from ponderosa.match.sprt import Sprt, SprtState, llr
from ponderosa.match.uci import UciEntrant

__all__ = [
    "Adjudication",
    "Choice",
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
