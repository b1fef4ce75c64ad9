"""Chess: the AlphaZero specification's classes, and what only chess has.

    from pondertree.chess import MCTS, ChessGame, ChessNN

    nn = ChessNN().build()
    mcts = MCTS(neural_network=nn, num_simulations=100)
    game = ChessGame()
    game.make_move(mcts.search(game, temperature=0))

`Pesto` is the classical evaluation, `see` and `categorize` tell moves apart, `MoveScores` says how promising they look,
`PestoPolicy` is a policy network of the hybrid specification's form, `mate_search` proves mates, `mcts_search` is the
search of that document: moves in the strict order of their categories, where
`pondertree.Hybrid` makes them weights of priors by default.
`gen_pseudo_legal_moves` and `is_capture` are what its move generator offers beside legal moves.

`ChessGame` needs python-chess, `ChessNN` PyTorch or Keras; they are imported where they are used, not here.
"""

from pondertree._core import perft
from pondertree.chess.alphazero import MCTS, ChessGame
from pondertree.chess.hybrid import mcts_search
from pondertree.chess.mate import MateAnswer, mate_search
from pondertree.chess.move_ordering import MoveCategory, MoveScores, categorize, see
from pondertree.chess.network import ChessNN
from pondertree.chess.pesto import Pesto, PestoEval
from pondertree.chess.policy import PestoPolicy, PolicyNetwork
from pondertree.chess.pseudo_legal import gen_pseudo_legal_moves, is_capture

__all__ = [
    "MCTS",
    "ChessGame",
    "ChessNN",
    "MateAnswer",
    "MoveCategory",
    "MoveScores",
    "Pesto",
    "PestoEval",
    "PestoPolicy",
    "PolicyNetwork",
    "categorize",
    "gen_pseudo_legal_moves",
    "is_capture",
    "mate_search",
    "mcts_search",
    "perft",
    "see",
]
