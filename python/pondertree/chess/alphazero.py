"""The AlphaZero specification's search by its own name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import Chess
from pondertree.chess.network import ChessNN
from pondertree.config import DirichletNoise, Puct, SearchConfig, option, option_of
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, InvalidPositionError, UsageError
from pondertree.evaluators.protocol import as_evaluator
from pondertree.game import GameInfo
from pondertree.games import chess_interop
from pondertree.games.chess_interop import legal_action
from pondertree.optional import python_chess
from pondertree.presets.alphazero import AlphaZero, PuctSearch
from pondertree.search.options import preset, simulations

if TYPE_CHECKING:
    import chess


@AlphaZero.register  # the same search with the same options, the first of them under another name
@preset
class MCTS(PuctSearch):
    """`AlphaZero` under the specification's names and defaults, for a `ChessGame`, a `chess.Board` or a state.

    `neural_network` is a `ChessNN`, or any evaluator. `search(game)` gives the move, `get_policy(game)` the move
    and the visit shares over the 4672 moves; both leave the game as it is, and raise ValueError if it is over.

    Unlike in `AlphaZero`, `solve` is False unless it is given: with proven results the policy of a won position has all
    its weight on a shortest win, and a move proven to lose has none, which is no share of visits any more.
    """

    neural_network: Any = field(metadata={"check": as_evaluator})
    num_simulations: int | Sequence[int] | None = simulations(100)
    c_puct: float = option_of(Puct, "c_puct")
    dirichlet_alpha: float | tuple[str, float] = option_of(DirichletNoise, "alpha")
    dirichlet_epsilon: float = option_of(DirichletNoise, "epsilon")
    _: KW_ONLY
    fpu: float | tuple[str, float] = option_of(Puct, "fpu")
    parent_visits: str = option_of(Puct, "parent_visits")
    forced_playouts: float = option_of(Puct, "forced_playouts")
    solve: bool = option(False, validation.flag)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.evaluator = self.neural_network

    def search(  # type: ignore[override]  # the document's name for the position
        self, game: Any = None, temperature: float | None = 1.0, add_noise: bool | None = False, *, state: Any = None
    ) -> Any:
        """Runs the search and returns the selected move: a `chess.Move` for a `ChessGame` or a `chess.Board`, else an
        int. `state` is another name of `game`.
        """
        return super().search(_position(game, state), temperature, add_noise)

    def get_policy(  # type: ignore[override]  # the document's name for the position
        self, game: Any = None, temperature: float | None = 1.0, add_noise: bool | None = False, *, state: Any = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """Runs the search and returns the selected move and the share of visits of each of the 4672 moves.

        The shares do not depend on the temperature. `state` is another name of `game`.
        """
        return super().get_policy(_position(game, state), temperature, add_noise)

    def config(self, info: GameInfo) -> SearchConfig:
        """As AlphaZero's; a network that is not built is refused before anything is searched."""
        if isinstance(self.evaluator, ChessNN):
            self.evaluator.require_built()
        return super().config(info)


def _position(game: Any, state: Any) -> Any:
    """The position given, under one name or the other."""
    if (game is None) == (state is None):
        raise InvalidArgumentError("give one position: game= (or state=, its name in other searches)")
    return state if game is None else game


class ChessGame(chess_interop.BoardHolder):
    """A game under way: a python-chess board that moves are made on.

    `ChessGame()` starts a game, `ChessGame(fen)` starts from a position, `ChessGame(board)` goes on from a copy of a
    `chess.Board`, its history included. `board` may be used directly, too. A game is over where the rules end it by
    themselves: mate, stalemate, insufficient material, 75 moves, fivefold repetition; a draw that would have to be
    claimed (threefold, 50 moves) does not end it. Every search takes a `ChessGame` where it takes a state.
    """

    def __init__(self, fen_or_board: str | chess.Board | ChessGame | None = None) -> None:
        library = python_chess()
        board = None if isinstance(fen_or_board, str) else chess_interop.board_of(fen_or_board)
        if board is not None:
            chess_interop.refuse_variants(board)
            self.board: chess.Board = board.copy()
        elif fen_or_board is None:
            self.board = library.Board()
        elif isinstance(fen_or_board, str):
            # The engine's reader is the stricter one, and says what is wrong.
            Chess(fen_or_board)
            try:
                self.board = library.Board(fen_or_board)
            except ValueError as error:
                raise InvalidPositionError(f"{fen_or_board!r} is not a position: {error}") from error
        else:
            raise InvalidArgumentError(
                f"a game starts from a FEN or a chess.Board, not from {validation.shown(fen_or_board)}"
            )

    @property
    def turn(self) -> bool:
        """Whose move it is, as python-chess says it: True is White."""
        return bool(self.board.turn)

    @property
    def to_play(self) -> int:
        """Whose move it is, as states say it: 0 is White, 1 is Black."""
        return 0 if self.board.turn else 1

    @property
    def state(self) -> Chess:
        """The compiled state of this position, with its history."""
        return chess_interop.chess_state(self.board)

    @property
    def legal_moves(self) -> list[chess.Move]:
        """The moves that may be played; none in a game that is over."""
        return [] if self.is_over() else list(self.board.legal_moves)

    def make_move(self, move: chess.Move | str) -> None:
        """Plays a move, given as a `chess.Move` or as text in UCI or algebraic notation."""
        if self.is_over():
            raise GameOverError("the game is over: no move can be made")
        state = chess_interop.bare_state(self.board)
        self.board.push(chess_interop.chess_move(state, _action(state, move)))

    def undo_move(self) -> chess.Move:
        """Takes the last move back, and gives it."""
        if not self.board.move_stack:
            raise UsageError("there is no move to undo")
        return self.board.pop()

    def get_move_index(self, move: chess.Move | str | int) -> int:
        """The number of a legal move among the 4672, from the side that moves: its place in a policy.

        A number that is a legal move here is given back, so that the children of a node, which are kept by number, go
        through here like any move.
        """
        state = chess_interop.bare_state(self.board)
        if isinstance(move, (int, np.integer)) and not isinstance(move, bool):
            return legal_action(state, move, "move")
        return _action(state, move)

    def get_move(self, index: int) -> chess.Move:
        """The legal move with this number."""
        number = validation.whole_number(index, "index", most=4671)
        return chess_interop.chess_move(chess_interop.bare_state(self.board), number)

    def clone(self) -> ChessGame:
        """A game of its own at the same point, history included."""
        copy = object.__new__(type(self))
        copy.board = self.board.copy()
        return copy

    __copy__ = clone

    def is_over(self) -> bool:
        """Whether the rules have ended the game by themselves."""
        return self.board.is_game_over()

    def result(self) -> int | None:
        """The result for White: +1, -1 or 0; None while the game goes on."""
        outcome = self.board.outcome()
        if outcome is None:
            return None
        return 0 if outcome.winner is None else 1 if outcome.winner else -1

    def observation(self) -> NDArray[np.float32]:
        """What a network sees: float32 [119, 8, 8] from the side that moves, the last eight positions included."""
        return self.state.observation()

    def get_input(self) -> NDArray[np.float32]:
        """The same as `observation()`."""
        return self.observation()

    def fen(self) -> str:
        """The position in Forsyth-Edwards notation."""
        return self.board.fen()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChessGame):
            return NotImplemented
        return self.board.root() == other.board.root() and self.board.move_stack == other.board.move_stack

    __hash__ = None  # type: ignore[assignment]  # it changes with every move

    def __repr__(self) -> str:
        return f"ChessGame({self.fen()!r})"


def _action(state: Chess, move: Any) -> int:
    text = move if isinstance(move, str) else move.uci() if hasattr(move, "uci") else None
    if text is None:
        raise InvalidActionError(f"{move!r} is not a move: give a chess.Move, or text such as 'e2e4' or 'Nf3'")
    return state.parse_action(text)
