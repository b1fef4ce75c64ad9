"""Optimisation: losses, optimiser steps with weight averaging, reanalyse, the algorithms' parts. Needs PyTorch."""
