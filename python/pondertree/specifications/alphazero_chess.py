"""AlphaZero chess: `MCTS(neural_network).search(game)` on a `ChessGame`, with a `ChessNN`."""

from pondertree.chess import MCTS, ChessGame, ChessNN
from pondertree.search.arguments import Temperature

__all__ = ["MCTS", "ChessGame", "ChessNN", "Temperature"]
