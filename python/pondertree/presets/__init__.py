"""The generic searches: a preset names the options, and the parts of its configuration."""

from pondertree.presets.alphazero import AlphaZero
from pondertree.presets.gumbel import Gumbel
from pondertree.presets.muzero import MuZero
from pondertree.presets.uct import UCT

__all__ = ["UCT", "AlphaZero", "Gumbel", "MuZero"]
