"""Validation of `root_actions`, the moves to search at the root."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from pondertree.errors import InvalidActionError, InvalidArgumentError
from pondertree.games.chess_interop import check_action
from pondertree.validation import is_listed, shown

#: The actions to search at each root, in the order of the game; None for all legal ones.
RootActions = list[list[int] | None]


def read_root_actions(
    given: Any, states: Sequence[Any], legal_actions: Callable[[Any], Sequence[int]]
) -> RootActions | None:
    """Returns the actions to search at each root, from one list for all states or one (or None) per state.

    An action is a number, move text that the state reads, or in chess a `chess.Move`. A list of all legal actions
    becomes None.
    """
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidArgumentError(f"root_actions must be a list of actions, not {shown(given)}")
    rows = list(given)
    if any(entry is None or _is_list(entry) for entry in rows):
        if len(rows) != len(states):
            raise InvalidArgumentError(
                f"root_actions has {len(rows)} entries for {len(states)} states: "
                "give one list for all, or one per state"
            )
        names = [f"root_actions[{row}]" for row in range(len(rows))]
    else:
        rows, names = [rows] * len(states), ["root_actions"] * len(states)
    read = [
        None if row is None else _of_root(row, state, legal_actions(state), name)
        for row, state, name in zip(rows, states, names, strict=True)
    ]
    return read if any(row is not None for row in read) else None


def _of_root(given: Any, state: Any, legal: Sequence[int], name: str) -> list[int] | None:
    """Returns the actions to search at one root; None for all legal ones."""
    if not _is_list(given):
        raise InvalidArgumentError(f"{name} must be a list of actions, or None for all of them, not {shown(given)}")
    actions = [check_action(state, action, f"{name}[{place}]") for place, action in enumerate(given)]
    if not actions:
        raise InvalidArgumentError(f"{name} is empty: give at least one action, or None for all of them")
    illegal = next((action for action in actions if action not in legal), None)
    if illegal is not None:
        raise InvalidActionError(f"{name} has {illegal}, which is not legal at the root; legal are {shown(legal)}")
    if len(set(actions)) < len(actions):
        repeated = next(action for place, action in enumerate(actions) if action in actions[:place])
        raise InvalidArgumentError(f"{name} has {repeated} twice: give every action once")
    return None if len(actions) == len(legal) else [action for action in legal if action in actions]


def _is_list(given: Any) -> bool:
    return is_listed(given) or isinstance(given, Set)
