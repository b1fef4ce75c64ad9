"""A single-player game with rewards: walk down a triangle of numbers, stepping left or right, and collect their sum.

The greedy path, always to the larger number, collects 2.1; the best path collects 2.9.
Run it: python examples/games/triangle.py
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS = (
    (0.0,),
    (0.2, 0.5),
    (0.1, 0.3, 0.4),
    (0.9, 0.2, 0.1, 0.3),
    (0.6, 0.8, 0.2, 0.4, 0.5),
    (0.1, 0.3, 0.9, 0.2, 0.0, 0.4),
)
LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class Triangle:
    """A position in the triangle. The state is Markov: the path to it is irrelevant."""

    row: int = 0
    column: int = 0

    num_actions = 2
    num_players = 1
    to_play = 0

    @property
    def is_terminal(self) -> bool:
        return self.row == len(ROWS) - 1

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [LEFT, RIGHT]

    def play(self, action: int) -> Triangle:
        if action not in self.legal_actions():
            raise ValueError(f"action {action} is not legal in {self}")
        return Triangle(self.row + 1, self.column + action)

    def rewards(self) -> tuple[float]:
        """Reward of the step to this state."""
        return (ROWS[self.row][self.column],)

    def returns(self) -> tuple[float]:
        # A game with rewards is scored by rewards alone.
        return (0.0,)

    def action_to_string(self, action: int) -> str:
        return ["left", "right"][action]

    def parse_action(self, text: str) -> int:
        return ["left", "right"].index(text)


if __name__ == "__main__":
    import pondertree

    result = pondertree.UCT(num_simulations=2000, seed=0).run(Triangle())
    print(f"Go {' '.join(result.pv)}: about {result.value:.2f} on average while searching, 2.9 is the best path")
