"""A three-player game: players take turns taking the first or last coin of a row; the result is the share of the sum.

With three players, each maximises its own share. The larger coin is not always best: taking the 3 exposes the 12 to the
next player, so the 2 is the better move. Run it: python examples/games/coin_row.py
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
        a, b, c = (total + coin * (player == self.to_play) for player, total in enumerate(self.taken))
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
