"""The searches, each a page that names its parts."""

from pondertree.presets.alphazero import AlphaZero
from pondertree.presets.gumbel import Gumbel
from pondertree.presets.muzero import MuZero
from pondertree.presets.uct import UCT

__all__ = ["UCT", "AlphaZero", "Gumbel", "MuZero"]
