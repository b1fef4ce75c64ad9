"""Optimisation: losses, optimiser steps with weight averaging, reanalyse, the algorithms' parts. Needs PyTorch."""

from pondertree.learn.trainer.algorithms import Algorithm, algorithm_of
from pondertree.learn.trainer.architectures import model_architecture, policy_value_architecture
from pondertree.learn.trainer.base import Trainer
from pondertree.learn.trainer.latent_model import LatentModelTrainer
from pondertree.learn.trainer.policy_value import PolicyValueTrainer

__all__ = [
    "Algorithm",
    "LatentModelTrainer",
    "PolicyValueTrainer",
    "Trainer",
    "algorithm_of",
    "model_architecture",
    "policy_value_architecture",
]
