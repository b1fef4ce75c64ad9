"""Exact values of small games, by full search."""

from __future__ import annotations

from pondertree.game import CHANCE
from pondertree.games.game_state import State


def solve(state: State) -> tuple[float, int]:
    """Returns (exact value for the player to move, plies to the end) of a two-player zero-sum state.

    Among moves of equal value, the shortest win and the longest of everything else. Recursive over the whole game
    tree: for small games only.
    """
    if state.is_terminal:
        return state.returns()[state.to_play], 0
    best: tuple[float, int] | None = None
    for action in state.legal_actions():
        child = state.play(action)
        value, plies = solve(child)
        if child.to_play != state.to_play:
            value = -value
        plies += 1
        shorter_is_better = value > 0
        if best is None or value > best[0] or (value == best[0] and (plies < best[1]) == shorter_is_better):
            best = (value, plies)
    assert best is not None, "a state that is not an end has legal actions"
    return best


def minimax_value(state: State) -> float:
    """Returns the exact value of a two-player zero-sum state for the player to move (small games only)."""
    return solve(state)[0]


def best_play(state: State) -> list[float]:
    """Returns each player's future payoff if everyone maximises their own, for any number of players.

    Games with `rewards()` are scored by future rewards, others by `returns()`; values of chance nodes are expected
    ones. Small games only.
    """
    has_rewards = hasattr(state, "rewards")
    if state.is_terminal:
        return [0.0] * state.num_players if has_rewards else list(state.returns())
    if state.to_play == CHANCE:
        expected = [0.0] * state.num_players
        for outcome, probability in getattr(state, "chance_outcomes")():  # noqa: B009
            child = state.play(outcome)
            rewards = getattr(child, "rewards")() if has_rewards else [0.0] * state.num_players  # noqa: B009
            values = [r + v for r, v in zip(rewards, best_play(child), strict=True)]
            expected = [e + probability * v for e, v in zip(expected, values, strict=True)]
        return expected
    best: list[float] | None = None
    for action in state.legal_actions():
        child = state.play(action)
        values = best_play(child)
        if has_rewards:
            values = [r + v for r, v in zip(getattr(child, "rewards")(), values, strict=True)]  # noqa: B009
        if best is None or values[state.to_play] > best[state.to_play]:
            best = values
    assert best is not None, "a state that is not an end has legal actions"
    return best
