"""The generic searches: each preset declares its options and builds its `SearchConfig`."""

from pondertree.presets.alphazero import AlphaZero
from pondertree.presets.gumbel import Gumbel
from pondertree.presets.muzero import MuZero
from pondertree.presets.uct import UCT

__all__ = ["UCT", "AlphaZero", "Gumbel", "MuZero"]
