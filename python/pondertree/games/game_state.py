"""The interface of a state as playouts, lookahead and the reference implementation read it.

A state is any value with `legal_actions()`, `play(action)`, `to_play`, `is_terminal`, `returns()`, `num_players`;
optionally `rewards()`, `zero_sum`, `chance_outcomes()` and `simulateRandomPlayout(perspective_player, max_depth)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, Protocol

#: Sums of rewards of this size, over any number of moves and visits, do not overflow.
LARGEST_REWARD = 1e12


class State(Protocol):
    """The required attributes of a state; optional ones are looked up by name."""

    @property
    def to_play(self) -> int: ...
    @property
    def is_terminal(self) -> bool: ...
    @property
    def num_players(self) -> int: ...
    def legal_actions(self) -> Sequence[int]: ...
    def play(self, action: int, /) -> State: ...
    def returns(self) -> Sequence[float]: ...


def rewards_of(state: State) -> list[float] | None:
    """Returns each player's reward for the move that led to `state`; None if the game has no rewards."""
    if not hasattr(state, "rewards"):
        return None
    rewards = _listed_numbers(state.rewards(), "rewards()")
    if not all(abs(reward) <= LARGEST_REWARD for reward in rewards):
        raise ValueError(f"rewards() is {rewards}: rewards are finite and at most {LARGEST_REWARD:.0e} in size")
    return rewards


def _listed_numbers(given: Iterable[float], name: str) -> list[float]:
    if isinstance(given, (str, bytes, Mapping, Set)):
        raise ValueError(f"{name} must be a list of numbers, not a {type(given).__name__}")
    return [float(number) for number in given]


def is_zero_sum(state: State) -> bool:
    """Whether results can be proven and moves be forced: two players without rewards, zero-sum."""
    return state.num_players == 2 and not hasattr(state, "rewards") and bool(getattr(state, "zero_sum", True))


def end_values(state: State) -> list[float]:
    """Returns the value of a finished game for each player; 0 in games with rewards."""
    if hasattr(state, "rewards"):
        return [0.0] * state.num_players
    values = _listed_numbers(state.returns(), "returns()")
    if is_zero_sum(state) and abs(sum(values)) > 1e-9:
        raise ValueError(f"the game is zero-sum but ends with {values}; if it is not, set zero_sum = False")
    return values


def end_in_search(state: State) -> list[float] | None:
    """Returns the value for each player of an end of the game below the root; None if the game continues.

    In chess, claimable draws (threefold repetition, 50 moves) count as ends there.
    """
    if state.is_terminal:
        return end_values(state)
    chess: Any = state
    # The halfmove clock is the fifth field of a FEN.
    claimable = hasattr(chess, "repetitions") and (chess.repetitions >= 2 or int(chess.fen().split()[4]) >= 100)
    return [0.0, 0.0] if claimable else None


def refuse_end(state: State) -> None:
    """Raises ValueError if the game is over."""
    if state.is_terminal:
        raise ValueError("the game is over: there is nothing to search")


def listed_actions(state: State) -> list[int]:
    """Returns the legal actions of a state that is not terminal; raises ValueError if there are none."""
    actions = [int(action) for action in state.legal_actions()]
    if not actions:
        raise ValueError("the state has no legal actions and is not terminal")
    return actions


def actions_among(legal: Sequence[int], root_actions: Collection[int] | None) -> list[int]:
    """Returns the actions to search at the root, in the order of the game: all legal ones, or `root_actions`."""
    if root_actions is None:
        return list(legal)
    given = list(root_actions)
    if not given or len(set(given)) < len(given) or not set(given) <= set(legal):
        raise ValueError(f"root_actions must be legal actions, each once and at least one, not {given}")
    return [action for action in legal if action in given]
