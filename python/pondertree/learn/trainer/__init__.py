"""Optimisation: losses, optimiser steps with weight averaging, reanalyse, the algorithms' parts. Needs PyTorch."""

from pondertree.learn.trainer.algorithms import Algorithm, algorithm_of
from pondertree.learn.trainer.architectures import model_architecture
from pondertree.learn.trainer.base import Trainer

__all__ = [
    "Algorithm",
    "Trainer",
    "algorithm_of",
    "model_architecture",
]
