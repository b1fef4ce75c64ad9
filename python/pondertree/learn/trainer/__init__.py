"""Optimisation: losses, optimiser steps with weight averaging, reanalyse, the algorithms' parts. Needs PyTorch."""

from pondertree.learn.trainer.algorithms import Algorithm, algorithm_of, empty_player
from pondertree.learn.trainer.architectures import model_architecture
from pondertree.learn.trainer.base import Trainer
from pondertree.learn.trainer.devices import check_memory, choose_device, reported_out_of_memory

__all__ = [
    "Algorithm",
    "Trainer",
    "algorithm_of",
    "check_memory",
    "choose_device",
    "empty_player",
    "model_architecture",
    "reported_out_of_memory",
]
