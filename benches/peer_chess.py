"""The worker process of chessmg, a move generator in C++; runs in its own environment."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from chessmg import ChessPosition
from worker import Work, serve


def perft(fen: str, depth: int) -> Work:
    """Perft."""
    position = ChessPosition(fen)
    return lambda: int(position.perft(depth))


def environment() -> dict[str, Any]:
    """Returns the version."""
    return {"packages": {"chessmg": version("chessmg")}}


if __name__ == "__main__":
    serve(rates={"perft": perft}, handlers={"environment": environment})
