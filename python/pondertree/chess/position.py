"""States, boards and moves of chess, as the tools of chess take them."""

from __future__ import annotations

from typing import Any

from pondertree import door
from pondertree._core import Chess
from pondertree.errors import InvalidActionError, InvalidArgumentError

#: The size of the action space.
NUM_ACTIONS = 4672


def open_position(state: Any, name: str = "state") -> tuple[Chess, door.Answer]:
    """The state, and how its actions are said to the caller: as `chess.Move` for a board, else as ints."""
    if type(state) is Chess:
        return state, int
    converted, answer = door.open_door(state)
    if not isinstance(converted, Chess):
        raise InvalidArgumentError(
            f"{name} is of the class {type(state).__name__}: it must be a position of chess "
            "(pondertree.games.Chess, or a chess.Board of python-chess)"
        )
    return converted, answer


def position(state: Any, name: str = "state") -> Chess:
    """The state alone."""
    return open_position(state, name)[0]


def legal_action(state: Chess, action: Any, name: str) -> int:
    """The number of a legal action, given as one or as a `chess.Move`; an error names the argument."""
    number = any_action(state, action, name)
    if number is None or number not in state.legal_actions():
        raise InvalidActionError(f"{name} is {action!r}, which is not legal in {state.fen()!r}")
    return number


def any_action(state: Chess, action: Any, name: str) -> int | None:
    """The number of an action that may be illegal here; None for a `chess.Move` that is."""
    if isinstance(action, str):
        raise InvalidArgumentError(f"{name} must be a whole number or a chess.Move, not {action!r}")
    try:
        number = door.check_action(state, action)
    except InvalidActionError:
        return None
    except InvalidArgumentError as error:
        raise InvalidArgumentError(str(error).replace("action", name, 1)) from None
    if number >= NUM_ACTIONS:
        raise InvalidArgumentError(f"{name} must be at most {NUM_ACTIONS - 1}, not {number}")
    return number
