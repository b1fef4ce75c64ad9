"""Generates the picture of README.md: `python docs/images/draw.py`. Deterministic, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pondertree
from pondertree.games import ConnectFour

HERE = Path(__file__).parent


def pictures() -> dict[str, str]:
    """Returns every picture by file name."""
    state = ConnectFour()
    for column in "443":
        state = state.play(state.parse_action(column))
    result = pondertree.UCT(num_simulations=2000, seed=1).run(state)
    return {"connect4.svg": result.root.to_svg(depth=2, width=3)}


if __name__ == "__main__":
    for name, text in pictures().items():
        (HERE / name).write_text(text, encoding="utf-8")
