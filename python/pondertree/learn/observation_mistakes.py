"""What is wrong with the observations of a game written in Python, in words.

They are looked at when a network has answered nonsense, or could not be asked: a look at every one would cost more than
the network does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pondertree.errors import GameContractError
from pondertree.learn.game_spec import GameSpec

#: Positions that are looked at, those in question and the nearest below them: a search asks about both.
MOST = 5000


def refuse_observation(state: Any, name: str, shape: tuple[int, ...] | None = None) -> None:
    """Refuses an observation that no network can take; `shape` is that of the starting state."""
    try:
        seen = np.asarray(state.observation(), dtype=np.float32)
    except Exception as error:
        raise GameContractError(f"{name}.observation() failed: {type(error).__name__}: {error}") from error
    if shape is not None and seen.shape != shape:
        raise GameContractError(
            f"{name}.observation() has shape {seen.shape}, and in the starting state it has {shape}: "
            "a network needs the same in every state"
        )
    wrong = seen[~np.isfinite(seen)]
    if wrong.size:
        raise GameContractError(f"{name}.observation() has a number that is not finite: {wrong[0]}")


def refuse_observations(states: Iterable[Any], spec: GameSpec) -> None:
    """Refuses the first wrong observation in these states, or below them; comes back where none is found."""
    if spec.info.compiled or spec.is_environment:
        return
    for state in _with_those_below(list(states)):
        refuse_observation(state, spec.info.name, spec.shape)


def _with_those_below(states: list[Any]) -> Iterator[Any]:
    """The states themselves, then those after a move, after two, and so on."""
    waiting = deque(states)
    for _ in range(MOST):
        if not waiting:
            return
        state = waiting.popleft()
        try:
            if state.is_terminal:
                continue
            after = [state.play(action) for action in state.legal_actions()]
        except Exception:  # another mistake, which has its own words
            after = []
        yield state
        waiting += after[: max(MOST - len(waiting), 0)]
