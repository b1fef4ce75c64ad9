"""PUCT mathematics: `AlphaZero.connect_four(evaluator)`; `SearchResult.policy_at` gives its training policy."""

from pondertree.games import ConnectFour
from pondertree.node import Node
from pondertree.presets import AlphaZero
from pondertree.result import SearchResult
from pondertree.search.arguments import Temperature

__all__ = ["AlphaZero", "ConnectFour", "Node", "SearchResult", "Temperature"]
