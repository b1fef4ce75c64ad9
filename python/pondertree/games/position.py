"""The properties of a position of a Python game, read and checked for the engine."""

from __future__ import annotations

from typing import Any, NamedTuple

from pondertree.errors import GameContractError
from pondertree.game import (
    CHANCE,
    GameInfo,
    action_list,
    check_actions,
    check_player,
    check_rewards,
    is_over,
    player_index,
    player_numbers,
)
from pondertree.games.chance import read_outcomes


class Position(NamedTuple):
    """The properties of one state of a Python game that the engine needs."""

    to_play: int
    """The player to move, or `CHANCE`."""
    terminal: bool
    returns: tuple[float, ...]
    rewards: tuple[float, ...]
    legal: list[int]
    """The legal actions; at a chance node its outcomes, in their order."""
    probabilities: tuple[float, ...] = ()
    """At a chance node, the probability of each outcome."""


def read_position(state: Any, info: GameInfo) -> Position:
    """Reads all properties of a state of a Python game and checks their types."""
    try:
        terminal = is_over(state)
        to_play = state.to_play
        if type(to_play) is not int:
            to_play = player_index(to_play, info)
        rewards = check_rewards(state.rewards(), info) if info.has_rewards else ()
        if terminal:
            returns = (
                (0.0,) * info.num_players if info.has_rewards else player_numbers(state.returns(), info, "returns()")
            )
            # `to_play` is arbitrary at an end; its value is stored for some valid player.
            to_play = to_play if 0 <= to_play < info.num_players else 0
            return Position(to_play, True, returns, rewards, [])
        if to_play == CHANCE:
            outcomes, probabilities = read_outcomes(state)
            return Position(CHANCE, False, (0.0,) * info.num_players, rewards, outcomes, tuple(probabilities))
        legal = action_list(state.legal_actions(), info)
    except GameContractError:
        raise
    except Exception as error:
        raise read_error(info, error) from error
    check_player(to_play, info.num_players, info.name)
    check_actions(legal, info.num_actions, info.name)
    return Position(to_play, False, (0.0,) * info.num_players, rewards, legal)


def read_error(info: GameInfo, error: Exception) -> GameContractError:
    """Returns the error for a property of a state that raised `error`."""
    return GameContractError(f"{info.name} raised {type(error).__name__} while reading its state: {error}")
