"""The positions that cases search, and the evaluators for their games."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tic_tac_toe
from exact import GeneralSumGame, HashGame, RewardGame, TableEvaluator, TablePackedEvaluator, TableStateEvaluator, mix

from pondertree import chess, evaluators, games

STARTS: dict[str, Callable[[], Any]] = {
    "tic_tac_toe": games.TicTacToe,
    "connect_four": games.ConnectFour,
    "othello": games.Othello,
    "chess": games.Chess,
    "python_tic_tac_toe": tic_tac_toe.State,
    "one_player": partial(HashGame, num_players=1, width=5),
    "two_players": partial(HashGame, width=6, length=20),
    "two_players_irregular": partial(HashGame, irregular=True),
    "three_players": partial(HashGame, num_players=3),
    "general_sum": GeneralSumGame,
    "rewards_1": partial(RewardGame, num_players=1),
    "rewards_2": RewardGame,
    "rewards_3": partial(RewardGame, num_players=3, irregular=True),
}
COMPILED = ("tic_tac_toe", "connect_four", "othello", "chess")
PYTHON = tuple(name for name in STARTS if name not in COMPILED)
#: Plies after which wins and losses are close to the root.
LATE = {"tic_tac_toe": 3, "connect_four": 22, "othello": 52, "chess": 1}
ACTIONS = {"tic_tac_toe": 9, "connect_four": 7, "othello": 65, "chess": 4672}

FENS = {
    "middlegame": "r1bq1rk1/pp2bppp/2n1pn2/3p4/2PP4/2N2N2/PP2BPPP/R1BQ1RK1 w - - 0 9",
    "tactics": "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "promotion": "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "pawns": "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "queen_ending": "8/8/8/4k3/8/8/2Q5/4K3 w - - 0 1",
    "pawn_ending": "8/8/8/8/4k3/8/4P3/4K3 w - - 0 1",
    "fifty_moves": "8/8/4k3/8/8/3RK3/8/8 w - - 97 120",
    "mate_in_1": "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1",
    "mate_in_2": "1N6/p6R/5k2/3p4/1p1PP3/1P4P1/1BP1Q3/RN3K2 w - - 0 1",
    "mate_in_2_black": "3K4/k7/8/8/8/2q5/2r5/8 b - - 0 1",
    "mate_in_2_rooks": "2K5/8/k7/5R1R/8/8/2p5/8 w - - 0 1",
}


def position(game: str, plies: int) -> Any:
    """Returns an unfinished position after `plies` random moves."""
    state = STARTS[game]()
    for ply in range(plies):
        legal = state.legal_actions()
        after = state.play(legal[mix(plies * 100 + ply) % len(legal)])
        if after.is_terminal:
            break
        state = after
    return state


def board(name: str) -> Any:
    """A chess position by its name."""
    return games.Chess(FENS[name])


def sims(game: str, full: int) -> int:
    """Chess has larger nodes and slower playouts: fewer simulations."""
    return full // 4 if game == "chess" else full


def table(game: str, kind: Callable[..., Any] = TableEvaluator, **options: Any) -> Any:
    """An evaluator for a game."""
    state = STARTS[game]()
    one_value = state.num_players < 3 and game not in ("general_sum", "rewards_2")
    return kind(state.num_actions, num_values=1 if one_value else state.num_players, **options)


def evaluator_for(kind: str, game: str) -> Any:
    """An evaluator for a game by a short name."""
    makers: dict[str, Callable[[], Any]] = {
        "uniform": evaluators.Uniform,
        "rollout": partial(evaluators.Rollout, 3),
        "table": partial(table, game),
        "ties": partial(table, game, levels=3),
        "probabilities": partial(table, game, policy="probabilities"),
        "states": partial(table, game, TableStateEvaluator),
        "packed": partial(table, game, TablePackedEvaluator),
        "function": lambda: table(game).evaluate,
        "cached": lambda: evaluators.Cached(table(game)),
        "symmetric": lambda: evaluators.Symmetric(table(game), evaluators.symmetries_of(game)),
        "symmetric sample": lambda: evaluators.Symmetric(table(game), evaluators.symmetries_of(game), "sample"),
        "pesto": chess.Pesto,
    }
    return makers[kind]()


def with_evaluator(preset: Callable[..., Any], kind: str, game: str, **options: Any) -> Any:
    """Returns a search with its own evaluator, since evaluators may be stateful."""
    return preset(evaluator=evaluator_for(kind, game), **options)


def first_actions(game: str, plies: int, count: int) -> list[int]:
    """Some legal actions of a position."""
    legal: list[int] = list(position(game, plies).legal_actions())
    return legal[:count]


def rows_of(game: str, count: int) -> list[Any]:
    """Positions for the rows of a batch."""
    return [position(game, row) for row in range(count)]
