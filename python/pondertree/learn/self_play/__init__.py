"""Self-play: concurrent games searched in shared batches, resignation, and the searches of each algorithm."""

from pondertree.learn.self_play.actor import SelfPlay
from pondertree.learn.self_play.searches import Searches, searches_of

__all__ = [
    "Searches",
    "SelfPlay",
    "searches_of",
]
