"""`MCTS` and `ChessGame`: the search and the game of the AlphaZero chess specification."""

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
from pondertree.evaluators.dispatch import as_evaluator
from pondertree.game import GameInfo
from pondertree.games import chess_interop
from pondertree.games.chess_interop import legal_action
from pondertree.optional import python_chess
from pondertree.presets.alphazero import AlphaZero, PuctSearch
from pondertree.search.preset import preset, simulations

if TYPE_CHECKING:
    import chess


@AlphaZero.register  # the same search and options; only the name of the first differs
@preset
class MCTS(PuctSearch):
    """`AlphaZero` under the specification's names and defaults, for a `ChessGame`, a `chess.Board` or a state.

    `neural_network` is a `ChessNN`, or any evaluator. `search(game)` returns the move, `get_policy(game)` the move
    and the visit distribution over the 4672 moves; neither changes the game, both raise ValueError if it is over.

    Unlike in `AlphaZero`, `solve` defaults to False: with proven results the policy of a won position puts all weight
    on a shortest win and none on proven losses, so that it is no longer the visit distribution.
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

    def search(  # type: ignore[override]  # the specification's parameter name
        self, game: Any = None, temperature: float | None = 1.0, add_noise: bool | None = False, *, state: Any = None
    ) -> Any:
        """Runs the search and returns the selected move: a `chess.Move` for a `ChessGame` or a `chess.Board`, else an
        int. `state` is an alias of `game`.
        """
        return super().search(_position(game, state), temperature, add_noise)

    def get_policy(  # type: ignore[override]  # the specification's parameter name
        self, game: Any = None, temperature: float | None = 1.0, add_noise: bool | None = False, *, state: Any = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """Runs the search and returns the selected move and the visit distribution [4672].

        The distribution does not depend on the temperature. `state` is an alias of `game`.
        """
        return super().get_policy(_position(game, state), temperature, add_noise)

    def config(self, info: GameInfo) -> SearchConfig:
        """Returns AlphaZero's configuration; raises a UsageError before the search if the network is not built."""
        if isinstance(self.evaluator, ChessNN):
            self.evaluator.require_built()
        return super().config(info)


def _position(game: Any, state: Any) -> Any:
    """The position, passed under either name."""
    if (game is None) == (state is None):
        raise InvalidArgumentError("give one position: game= (or state=, its name in other searches)")
    return state if game is None else game


class ChessGame:
    """A mutable game around a python-chess board.

    `ChessGame()` starts a game, `ChessGame(fen)` starts from a position, `ChessGame(board)` continues from a copy of a
    `chess.Board`, history included. `board` may also be used directly. Only automatic ends count: checkmate, stalemate,
    insufficient material, the 75-move rule, fivefold repetition; claimable draws (threefold repetition, the 50-move
    rule) do not end the game. Every search accepts a `ChessGame` in place of a state.
    """

    #: Lets `chess_interop` use `board` without importing this module.
    wraps_chess_board = True

    def __init__(self, fen_or_board: str | chess.Board | ChessGame | None = None) -> None:
        library = python_chess()
        board = None if isinstance(fen_or_board, str) else chess_interop.board_of(fen_or_board)
        if board is not None:
            chess_interop.refuse_variants(board)
            self.board: chess.Board = board.copy()
        elif fen_or_board is None:
            self.board = library.Board()
        elif isinstance(fen_or_board, str):
            # The engine's FEN parser is stricter and reports what is wrong.
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
        """The side to move as in python-chess: True is White."""
        return bool(self.board.turn)

    @property
    def to_play(self) -> int:
        """The side to move as in states: 0 is White, 1 is Black."""
        return 0 if self.board.turn else 1

    @property
    def state(self) -> Chess:
        """The compiled state of this position, with its history."""
        return chess_interop.chess_state(self.board)

    @property
    def legal_moves(self) -> list[chess.Move]:
        """The legal moves; empty if the game is over."""
        return [] if self.is_over() else list(self.board.legal_moves)

    def make_move(self, move: chess.Move | str) -> None:
        """Plays a move, given as a `chess.Move` or as text in UCI or algebraic notation."""
        if self.is_over():
            raise GameOverError("the game is over: no move can be made")
        state = chess_interop.bare_state(self.board)
        self.board.push(chess_interop.chess_move(state, _action(state, move)))

    def undo_move(self) -> chess.Move:
        """Undoes the last move and returns it."""
        if not self.board.move_stack:
            raise UsageError("there is no move to undo")
        return self.board.pop()

    def get_move_index(self, move: chess.Move | str | int) -> int:
        """Returns the index of a legal move in a policy [4672], from the mover's side.

        An index of a legal move is returned unchanged, so that the keys of `Node.children` are accepted as well.
        """
        state = chess_interop.bare_state(self.board)
        if isinstance(move, (int, np.integer)) and not isinstance(move, bool):
            return legal_action(state, move, "move")
        return _action(state, move)

    def get_move(self, index: int) -> chess.Move:
        """Returns the legal move with this index."""
        number = validation.whole_number(index, "index", most=4671)
        return chess_interop.chess_move(chess_interop.bare_state(self.board), number)

    def clone(self) -> ChessGame:
        """Returns an independent copy, history included."""
        copy = object.__new__(type(self))
        copy.board = self.board.copy()
        return copy

    __copy__ = clone

    def is_over(self) -> bool:
        """Whether the game has ended automatically."""
        return self.board.is_game_over()

    def result(self) -> int | None:
        """The result for White: +1, -1 or 0; None before the end."""
        outcome = self.board.outcome()
        if outcome is None:
            return None
        return 0 if outcome.winner is None else 1 if outcome.winner else -1

    def observation(self) -> NDArray[np.float32]:
        """The network input: float32 [119, 8, 8] from the mover's side, with the last eight positions."""
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

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"ChessGame({self.fen()!r})"


def _action(state: Chess, move: Any) -> int:
    text = move if isinstance(move, str) else move.uci() if hasattr(move, "uci") else None
    if text is None:
        raise InvalidActionError(f"{move!r} is not a move: give a chess.Move, or text such as 'e2e4' or 'Nf3'")
    return state.parse_action(text)
