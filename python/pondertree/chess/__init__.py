"""Chess: the classes of the AlphaZero chess specification, and chess knowledge.

    from pondertree.chess import MCTS, ChessGame, ChessNN

    nn = ChessNN().build()
    mcts = MCTS(neural_network=nn, num_simulations=100)
    game = ChessGame()
    game.make_move(mcts.search(game, temperature=0))

`Pesto` is the classical evaluation, `see` static exchange evaluation, `MoveScores` a learned linear model of move
quality; `categorize` assigns move categories, `mate_search` proves mates. `mcts_search`, `PestoPolicy`,
`gen_pseudo_legal_moves` and `is_capture` have the interfaces of the hybrid chess specification: `mcts_search` selects
moves in strict category order, `pondertree.Hybrid` by default weights priors by category.

`ChessGame` needs python-chess, `ChessNN` PyTorch or Keras; both are imported on first use.
"""

from pondertree._core import perft
from pondertree.chess.alphazero import MCTS, ChessGame
from pondertree.chess.config import MoveCategory
from pondertree.chess.hybrid import mcts_search
from pondertree.chess.mate import MateAnswer, mate_search
from pondertree.chess.move_ordering import MoveScores, categorize, see
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
