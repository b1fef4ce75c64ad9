"""A row of coins, three players: in turn, each takes the first or the last coin. Your result is your share of the sum.

What one wins the others lose only together, so each player looks after his own share. Taking the larger coin is not
always best: the 3 uncovers the 12 for the next player, so the 2 is right. Run it: python examples/games/coin_row.py
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST, LAST = 0, 1


@dataclass(frozen=True)
class CoinRow:
    """Action 0 takes the first coin, action 1 the last."""

    coins: tuple[int, ...] = (3, 12, 7, 6, 5, 8, 1, 10, 2)
    taken: tuple[int, int, int] = (0, 0, 0)
    to_play: int = 0

    num_actions = 2
    num_players = 3

    @property
    def is_terminal(self) -> bool:
        return not self.coins

    def legal_actions(self) -> list[int]:
        return [FIRST, LAST][: len(self.coins)]

    def play(self, action: int) -> CoinRow:
        if action not in self.legal_actions():
            raise ValueError(f"action {action} is not legal in {self}")
        coin, rest = (self.coins[0], self.coins[1:]) if action == FIRST else (self.coins[-1], self.coins[:-1])
        a, b, c = (sum_ + coin * (player == self.to_play) for player, sum_ in enumerate(self.taken))
        return CoinRow(rest, (a, b, c), (self.to_play + 1) % 3)

    def returns(self) -> list[float]:
        return [coins / max(sum(self.taken), 1) for coins in self.taken]

    def action_to_string(self, action: int) -> str:
        return ["first", "last"][action]

    def parse_action(self, text: str) -> int:
        return ["first", "last"].index(text)


if __name__ == "__main__":
    import pondertree

    state, search = CoinRow(), pondertree.UCT(num_simulations=2000, c_param=0.2, seed=0)
    while not state.is_terminal:
        result = search.run(state)
        print(f"{state.coins}: player {state.to_play} takes the {result.move}, expects {result.value:.2f} of all coins")
        state = state.play(result.action)
    print("Coins taken:", *state.taken)
