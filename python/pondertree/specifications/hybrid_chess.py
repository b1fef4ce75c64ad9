"""Hybrid chess: `mcts_search(root_state, policy_network)`, with PeSTO's evaluation, mate search and move categories."""

from pondertree.chess import MoveCategory, Pesto, PestoPolicy, categorize, mate_search, mcts_search, see
from pondertree.chess.hybrid import Hybrid

__all__ = ["Hybrid", "MoveCategory", "Pesto", "PestoPolicy", "categorize", "mate_search", "mcts_search", "see"]
