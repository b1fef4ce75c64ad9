"""Outcomes of chance nodes in games that are played: drawn from a random stream, or replayed from a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree.envs.gymnasium import check_reward
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo, as_contract_error
from pondertree.games.chance import check_chance_ends, draw_outcome, is_chance
from pondertree.learn.config import GameSpec, next_state
from pondertree.random import OUTCOME, Random, draw

#: Purposes of the outcomes in a game that is played: after its moves, and in the random opening of self-play.
MOVE_OUTCOMES, OPENING_OUTCOMES = 105, 107


def draw_outcomes(state: Any, info: GameInfo, key: int) -> tuple[Any, list[int], float]:
    """Plays outcomes by their probabilities up to a decision or the end: (state, outcomes, sum of player 0's rewards).

    The numbers depend on `key` alone. `state` may be a decision, to which nothing is done.
    """
    drawn: list[int] = []
    reward = 0.0
    if not info.has_chance:
        return state, drawn, reward
    random = Random(key, OUTCOME)
    with as_contract_error(info, "while drawing an outcome"):
        while is_chance(state):
            check_chance_ends(state, len(drawn) + 1)
            drawn.append(_draw(state, random) if info.compiled else draw_outcome(state, random))
            state = next_state(state, drawn[-1])
            reward += reward_of(state, info, drawn[-1])
    return state, drawn, reward


def _draw(state: Any, random: Random) -> int:
    """Returns the outcome that `draw_outcome` draws, without the checks that a game in Python needs."""
    outcomes = state.chance_outcomes()
    found: int = outcomes[draw([probability for _, probability in outcomes], random)][0]
    return found


def reward_of(state: Any, info: GameInfo, action: int) -> float:
    """Returns player 0's reward for the action, or outcome, that led to a state, checked; 0 without rewards."""
    if not info.has_rewards:
        return 0.0
    with as_contract_error(info, "while reading its rewards"):
        reward = float(state.rewards()[0])
    check_reward(reward, f"{info.name}.rewards() gave, after {action},")
    return reward


def replay_line(spec: GameSpec, key: int, line: Sequence[int]) -> tuple[Any, float]:
    """Returns (state, sum of player 0's rewards) after actions and outcomes; an episode starts from the seed `key`."""
    state = spec.start(key)
    total = 0.0
    for action in line:
        if is_chance(state) and action not in state.legal_actions():
            raise InvalidArgumentError(f"{action} is not an outcome of the chance node that the record reaches")
        state = next_state(state, action)
        total += reward_of(state, spec.info, action)
    return state, total
