"""Conversion between python-chess positions and moves and our states and actions.

A `chess.Board` of python-chess, or a `pondertree.chess.ChessGame` around one, becomes the compiled `Chess` with its
history. python-chess is recognised by its class name, without importing it; a wrapper by `wraps_chess_board`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pondertree import validation
from pondertree._core import Chess
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, InvalidPositionError
from pondertree.game import COMPILED, move_text
from pondertree.optional import require

if TYPE_CHECKING:
    import chess

ActionConverter = Callable[[int], Any]


def adapt_state(state: Any) -> tuple[Any, ActionConverter]:
    """Returns the state to search, and the conversion of actions for the caller: `chess.Move` for a board, else int."""
    board = board_of(state)
    if board is None:
        return state, int
    converted = chess_state(board)
    return converted, lambda action: chess_move(converted, action)


def to_state(state: Any) -> Any:
    """Returns the state to search; the fast path of `adapt_state`, since batches have thousands of states."""
    return state if type(state) in COMPILED else adapt_state(state)[0]


def to_states(states: Sequence[Any]) -> list[Any]:
    """Returns the states to search."""
    return list(states) if set(map(type, states)) <= COMPILED.keys() else [to_state(state) for state in states]


def check_action(state: Any, action: Any, name: str = "action") -> int:
    """Returns the number of an action given as a number, as move text, or as a `chess.Move`.

    Move text is read by `state.parse_action`, or compared with the texts of the legal actions where there is none.
    """
    if isinstance(action, str):
        return _parse(state, action, name)
    if any(base.__name__ == "Move" and base.__module__ == "chess" for base in type(action).__mro__):
        if not isinstance(state, Chess):
            raise InvalidArgumentError(
                f"{name} is a chess.Move, and {type(state).__name__} is not chess: give the number of an action"
            )
        return _parse(state, action.uci(), name)
    return validation.whole_number(action, name, least=0)


def _parse(state: Any, text: str, name: str) -> int:
    """Returns the action that `text` denotes."""
    reader = getattr(state, "parse_action", None)
    if reader is None and not hasattr(state, "legal_actions"):  # a bare observation
        raise InvalidArgumentError(f"{name} must be a whole number, not {validation.shown(text)}")
    if reader is None:
        actions = actions_written(state, text)
        if len(actions) == 1:
            return actions[0]
        problem = f"the text of {len(actions)} legal actions" if actions else "the text of no legal action"
        legal = [move_text(state, action) for action in state.legal_actions()]
        raise InvalidActionError(
            f"{name} is {validation.shown(text)}, {problem} of {type(state).__name__}, which has no parse_action: "
            f"give the number of an action, or a text of {validation.shown(legal)}"
        )
    try:
        return operator.index(reader(text))
    except InvalidActionError as error:  # its message names the legal moves
        raise InvalidActionError(f"{name}: {error}") from None
    except Exception as error:
        legal = [move_text(state, action) for action in state.legal_actions()]
        raise InvalidActionError(
            f"{name} is {validation.shown(text)}, which {type(state).__name__}.parse_action does not read "
            f"({type(error).__name__}: {error}); legal are {validation.shown(legal)}"
        ) from error


def actions_written(state: Any, text: str) -> list[int]:
    """Returns the legal actions whose text is `text`, up to spaces; at most one if their texts differ."""
    words = text.split()
    actions = [operator.index(action) for action in state.legal_actions()]
    return [action for action in actions if move_text(state, action).split() == words]


def board_of(state: Any) -> chess.Board | None:
    """Returns the python-chess board that `state` is or holds; None if neither."""
    kind: Any = type(state)
    held = _holds_board(kind)
    if held is None:
        return None
    board: chess.Board = state.board if held else state
    return board


@lru_cache(maxsize=256)
def _holds_board(kind: Any) -> bool | None:
    """Returns True if objects of this class hold a board, False if they are boards, else None."""
    for base in kind.__mro__:
        if base.__name__ == "Board" and base.__module__ == "chess":
            return False
    return True if getattr(kind, "wraps_chess_board", False) else None


def chess_state(board: chess.Board) -> Chess:
    """Returns the state of a board, with the history of its move stack. The board does not change."""
    refuse_variants(board)
    now = Chess(board.fen())
    if not board.move_stack:
        return now
    try:
        state = _replay(board)
    except (InvalidActionError, InvalidPositionError):
        state = None
    # The move stack does not lead here if moves were made after an automatic draw, or if the board was edited
    # on top of it.
    if state is not None and state.fen() == now.fen():
        return state
    if board.is_fivefold_repetition():
        raise GameOverError("the game on this board is over by fivefold repetition: there is nothing to search")
    return now


def bare_state(board: chess.Board) -> Chess:
    """Returns the state of a board without its history, which suffices to number and name moves."""
    refuse_variants(board)
    return Chess(board.fen())


def chess_move(state: Chess, action: int) -> chess.Move:
    """Returns the `chess.Move` of an action."""
    library = require("chess", "python-chess", "a chess.Move")
    move: chess.Move = library.Move.from_uci(state.action_to_string(action))
    return move


def refuse_variants(board: chess.Board) -> None:
    """Raises `InvalidPositionError` unless the board has the rules of standard chess."""
    if board.uci_variant != "chess":
        raise InvalidPositionError(
            f"this is a board of the variant {validation.shown(board.uci_variant)}: only standard chess can be searched"
        )
    if board.chess960:
        raise InvalidPositionError(
            "this board has chess960=True: only standard chess can be searched (chess.Board(fen) is a standard board)"
        )


def _replay(board: chess.Board) -> Chess:
    moves = list(board.move_stack)
    start = board.root()
    null = next((place for place in reversed(range(len(moves))) if not moves[place]), None)
    if null is not None:
        # A null move is not legal: the history starts after it.
        moves = moves[null + 1 :]
        start = board.copy()
        for _ in moves:
            start.pop()
    state = Chess(start.fen())
    for move in moves:
        state = state.play(state.parse_action(move.uci()))
    return state


#: The size of chess's action space.
NUM_ACTIONS = 4672


def adapt_chess_state(state: Any, name: str = "state") -> tuple[Chess, ActionConverter]:
    """Returns the chess state, and the conversion of actions for the caller: `chess.Move` for a board, else int."""
    if type(state) is Chess:
        return state, int
    converted, answer = adapt_state(state)
    if not isinstance(converted, Chess):
        raise InvalidArgumentError(
            f"{name} is of the class {type(state).__name__}: it must be a position of chess "
            "(pondertree.games.Chess, or a chess.Board of python-chess)"
        )
    return converted, answer


def to_chess(state: Any, name: str = "state") -> Chess:
    """Returns the chess state."""
    return adapt_chess_state(state, name)[0]


def legal_action(state: Chess, action: Any, name: str) -> int:
    """Returns the number of a legal action, given as such or as a `chess.Move`; errors name the argument."""
    number = any_action(state, action, name)
    if number is None or number not in state.legal_actions():
        raise InvalidActionError(f"{name} is {action!r}, which is not legal in {state.fen()!r}")
    return number


def any_action(state: Chess, action: Any, name: str) -> int | None:
    """Returns the number of an action that may be illegal; None for an illegal `chess.Move`."""
    if isinstance(action, str):
        raise InvalidArgumentError(f"{name} must be a whole number or a chess.Move, not {action!r}")
    try:
        number = check_action(state, action)
    except InvalidActionError:
        return None
    except InvalidArgumentError as error:
        raise InvalidArgumentError(str(error).replace("action", name, 1)) from None
    if number >= NUM_ACTIONS:
        raise InvalidArgumentError(f"{name} must be at most {NUM_ACTIONS - 1}, not {number}")
    return number
