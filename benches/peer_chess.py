"""The process that measures the move generator of chessmg (C++). Runs in the environment of that peer."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from chessmg import ChessPosition
from worker import Work, serve


def perft(fen: str, depth: int) -> Work:
    """Leaves of the tree of legal moves."""
    position = ChessPosition(fen)
    return lambda: int(position.perft(depth))


def about() -> dict[str, Any]:
    """Which version this is."""
    return {"packages": {"chessmg": version("chessmg")}}


if __name__ == "__main__":
    serve(rates={"perft": perft}, answers={"about": about})
