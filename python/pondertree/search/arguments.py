"""Arguments of a search: limits, root actions, temperature schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from pondertree import validation
from pondertree.config import option
from pondertree.errors import InvalidActionError, InvalidArgumentError
from pondertree.games.chess_interop import check_action
from pondertree.validation import is_listed, shown

#: Called after each batch or time slice with the numbers of simulations done and requested.
Progress = Callable[[int, int], object]
#: A number of simulations that no search reaches: only other limits end it.
UNLIMITED = 1 << 62


class Limits(NamedTuple):
    """The default limits of `Forest.simulate`."""

    num_simulations: int | Sequence[int] | None
    seconds: float | None
    requires_simulation_budget: bool
    """Whether the rule needs the number of simulations in advance, so that a time limit alone does not lift it."""

    def resolve(
        self, n: int | Sequence[int] | None, seconds: float | None
    ) -> tuple[int | Sequence[int] | None, float | None]:
        """Returns (simulations, seconds) as given, completed by the defaults."""
        if n is None and seconds is None:
            return self.num_simulations, self.seconds
        return (self.num_simulations if n is None and self.requires_simulation_budget else n), seconds


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


@dataclass(frozen=True, slots=True)
class Temperature:
    """A schedule: temperature `value` for moves 0 to `until - 1` of a game, and `then` from there on.

    `Temperature(1.0, until=30)` is that of AlphaZero chess, `Temperature(1.0, until=10)` that of Connect 4;
    without `until` it is constant. Searches take its value for a move: `temperature=schedule(move_number)`.
    """

    value: float = option(1.0, validation.temperature)
    until: int | None = option(None, validation.whole_number, optional=True)
    then: float = option(0.0, validation.temperature)

    def __post_init__(self) -> None:
        validation.check_fields(self)

    def __call__(self, move_number: int) -> float:
        """Returns the temperature of move `move_number`, counted from 0."""
        number = validation.whole_number(move_number, "move_number")
        return self.value if self.until is None or number < self.until else self.then
