"""Small `ChessNN`s, their inputs and skip markers for tests."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import chess
import numpy as np
import pytest

from pondertree.chess import ChessGame, ChessNN

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")


needs_files = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("safetensors") is None, reason="needs PyTorch and safetensors"
)


needs_keras = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("keras") is None, reason="needs PyTorch and Keras"
)


def small(seed: int = 1) -> ChessNN:
    """A small network with non-trivial normalisation statistics."""
    import torch

    nn = ChessNN(blocks=2, channels=12, value_channels=3, value_hidden=10, device="cpu").build(seed=seed)
    numbers = torch.Generator().manual_seed(seed)
    for name, buffer in nn.module.named_buffers():
        if "running" in name:
            buffer.copy_(0.5 + torch.rand(buffer.shape, generator=numbers))
    return nn


def observations() -> Any:
    boards = [
        chess.Board(),
        chess.Board("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1"),
        chess.Board("8/P6k/8/8/8/8/8/K7 w - -"),
    ]
    return np.stack([ChessGame(board).observation() for board in boards])


def assert_same(one: ChessNN, other: ChessNN, tolerance: float = 0.0) -> None:
    for a, b in zip(one.evaluate(observations()), other.evaluate(observations()), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
