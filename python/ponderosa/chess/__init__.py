"""Chess: seed 0's classes, and what only chess has.

    from ponderosa.chess import MCTS, ChessGame, ChessNN

    nn = ChessNN().build()
    mcts = MCTS(neural_network=nn, num_simulations=100)
    game = ChessGame()
    game.make_move(mcts.search(game, temperature=0))

`mate_search` proves mates. `ChessGame` needs python-chess, `ChessNN` PyTorch or Keras; they are imported where they are
used, not here.
"""

from ponderosa._core import perft
from ponderosa.chess.game import ChessGame
from ponderosa.chess.mate import MateAnswer, mate_search
from ponderosa.chess.mcts import MCTS
from ponderosa.chess.network import ChessNN

__all__ = ["MCTS", "ChessGame", "ChessNN", "MateAnswer", "mate_search", "perft"]
