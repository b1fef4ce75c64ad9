"""PUCT whose exploration grows linearly: `Q + c_linear * N * P / (1 + n)`."""

from __future__ import annotations

from typing import Any

from pondertree.reference import alphazero


class MCTS(alphazero.MCTS):
    """AlphaZero's search with a linear exploration term."""

    rule = "linear_puct"

    def __init__(self, neural_network: Any, num_simulations: int, c_linear: float, **options: Any) -> None:
        super().__init__(neural_network, num_simulations, **options)
        self.c_linear = c_linear

    def _exploration(self, visits: int) -> float:
        return self.c_linear * visits
