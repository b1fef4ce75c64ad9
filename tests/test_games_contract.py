"""The contract of games on everything that is one: the compiled games, the examples, and the random games of tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from examples.games.double_move import DoubleMove
from examples.games.nim import Nim
from examples.games.triangle import Triangle

from ponderosa.game import COMPILED, Game
from ponderosa.games import BY_NAME, Chess, ConnectFour, Othello, TicTacToe
from ponderosa.reference.tabular import TabularGame, TabularState
from ponderosa.testing import check_game

# Games and the most moves a random one may take.
EVERYTHING: list[tuple[Any, int, int]] = [
    (TicTacToe, 100, 9),
    (ConnectFour, 40, 42),
    (Othello, 20, 130),
    (Chess, 5, 2000),
    (Nim, 20, 10),
    (CoinRow, 20, 9),
    (Triangle, 20, 5),
    (DoubleMove, 20, 9),
]


@pytest.mark.parametrize(("game", "games", "moves"), EVERYTHING)
def test_every_game_keeps_the_contract(game: Any, games: int, moves: int) -> None:
    assert isinstance(game(), Game)
    report = check_game(game, games=games, max_moves=moves)
    assert report.games == games
    assert report.unfinished == 0
    assert report.longest <= moves


def test_no_compiled_game_is_left_out() -> None:
    assert set(COMPILED) == set(BY_NAME.values()) <= {game for game, _, _ in EVERYTHING}


@pytest.mark.parametrize(
    "fen",
    [
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "4k3/PPP3PP/8/8/8/8/ppp3pp/4K3 b - - 0 1",
        "8/8/4k3/8/8/3NKN2/8/8 b - - 96 120",
    ],
)
def test_chess_keeps_it_from_anywhere(fen: str) -> None:
    assert check_game(lambda: Chess(fen), games=2).games == 2


@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("order", ["alternate", "random", "double"])
@pytest.mark.parametrize("rewards", [False, True])
def test_random_games_keep_it(players: int, order: Any, rewards: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Their observations are plain numbers, as the reference is written without NumPy.
    numbers = TabularState.observation
    monkeypatch.setattr(TabularState, "observation", lambda state: np.array(numbers(state), dtype=np.float32))
    for seed in range(5):
        game = TabularGame(seed, players=players, turn_order=order, rewards=rewards, zero_sum=players == 2)
        assert check_game(game.start, games=5).unfinished == 0
