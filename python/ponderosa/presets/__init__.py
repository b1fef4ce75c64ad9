"""The searches, each a page that names its parts."""

from ponderosa.presets.alphazero import AlphaZero
from ponderosa.presets.gumbel import Gumbel
from ponderosa.presets.hybrid import Hybrid
from ponderosa.presets.muzero import MuZero
from ponderosa.presets.uct import UCT

__all__ = ["UCT", "AlphaZero", "Gumbel", "Hybrid", "MuZero"]
