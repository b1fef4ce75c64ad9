"""`check_game` compares `symmetries()` with the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.broken_games import Pile

from pondertree.errors import GameContractError
from pondertree.testing import check_game


class SymmetryOfAnotherGame(Pile):
    def symmetries(self) -> Any:
        return [(range(2), range(4))]


class TakesAsMuch(Pile):
    """Exchanges taking one and taking two, which are legal alike."""

    def symmetries(self) -> Any:
        return [(range(2), range(3)), (range(2), [0, 2, 1])]


class TwoPiles:
    """Two heaps of four stones, which can be exchanged: a valid game. Action `3 * heap + stones`."""

    num_players, num_actions = 2, 6

    def __init__(self, stones: tuple[int, ...] = (4, 4), to_play: int = 0) -> None:
        self.stones, self.to_play = stones, to_play
        self.is_terminal = not any(stones)

    def legal_actions(self) -> list[int]:
        return [3 * heap + take for heap in (0, 1) for take in (1, 2) if take <= self.stones[heap]]

    def play(self, action: int) -> TwoPiles:
        if action not in self.legal_actions():
            raise ValueError(action)
        stones = list(self.stones)
        stones[action // 3] -= action % 3
        return TwoPiles(tuple(stones), 1 - self.to_play)

    def returns(self) -> list[float]:
        return [-1.0, 1.0] if self.to_play == 0 else [1.0, -1.0]

    def observation(self) -> Any:
        return np.array(self.stones, dtype=np.float32)

    def symmetries(self) -> Any:
        return [(range(2), range(6)), ([1, 0], [3, 4, 5, 0, 1, 2])]


@pytest.mark.parametrize(
    ("game", "text"),
    [
        (SymmetryOfAnotherGame, "permutes 2 cells and 4 actions; observations have the shape (2,)"),
        (TakesAsMuch, "symmetries()[1] of the game ["),
    ],
)
def test_check_game_refuses_wrong_symmetries(game: Any, text: str) -> None:
    with pytest.raises(GameContractError, match="'symmetries'") as error:
        check_game(game)
    assert text in str(error.value)


def test_check_game_accepts_symmetries() -> None:
    assert check_game(TwoPiles).unfinished == 0
    # From unequal heaps there is no symmetric game to compare with.
    assert check_game(lambda: TwoPiles((3, 4))).unfinished == 0


def test_check_game_refuses_symmetries_of_actions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TwoPiles, "symmetries", lambda state: [([0, 1], [3, 4, 5, 0, 1, 2])])
    with pytest.raises(GameContractError, match="'symmetries'"):
        check_game(TwoPiles)
