"""Packed observations: bit planes and numbers, so that a window of chess positions fits into memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError
from pondertree.games import packed_line
from pondertree.learn.config import GameSpec, next_state, read_observation
from pondertree.learn.data.records import GameRecord


class PackedObservations(NamedTuple):
    """Packed observations of N positions.

    Compiled games have bit planes and scalar planes. Observations of Python games are kept as float32, pixels as bytes
    (scaled to [0, 1] when unpacked).
    """

    planes: NDArray[np.uint64]
    """[N, words]: bit i % 64 of word i / 64 of a plane is cell i = row * width + column."""
    numbers: NDArray[np.float32] | NDArray[np.uint8]
    """[N, S]"""


def packed_widths(spec: GameSpec) -> tuple[int, int]:
    """Returns the numbers of words of bit planes, and of scalars, per position."""
    if not spec.info.compiled:
        return 0, int(np.prod(spec.shape))
    planes, numbers = (part.shape[1] for part in packed_line(spec.factory(), np.zeros(0, dtype=np.uint16))[:2])
    return planes, numbers


def observation_bytes(observation: NDArray[np.float32], spec: GameSpec) -> NDArray[np.uint8]:
    """Returns the stored bytes of an environment's observation: float32 data, or pixels."""
    retained: NDArray[np.uint8]
    if spec.pixels:
        retained = np.rint(observation * 255.0).astype(np.uint8).ravel()
        return retained
    return np.ascontiguousarray(observation, dtype="<f4").ravel().view(np.uint8)


def packed_observations(game: GameRecord, spec: GameSpec) -> tuple[PackedObservations, NDArray[np.uint8]]:
    """Returns the observations before each searched move of a game, and the players to move."""
    if spec.is_environment:
        rows = len(game.moves)
        numbers = game.seen.reshape(rows, -1).view(np.uint8 if spec.pixels else "<f4")
        return PackedObservations(np.zeros((rows, 0), np.uint64), numbers), np.zeros(rows, dtype=np.uint8)
    state = spec.factory()
    line, chance = game.line()
    opening = len(game.opening)
    if spec.info.compiled:
        planes, numbers, players = packed_line(state, line)
        if not chance.any():
            return PackedObservations(planes[opening:], numbers[opening:]), players[opening:]
        searched = np.flatnonzero(~chance)[opening:]
        return PackedObservations(planes.take(searched, axis=0), numbers.take(searched, axis=0)), players[searched]
    observations, to_play = [], []
    for move, is_outcome in zip(line.tolist(), chance.tolist(), strict=True):
        if not is_outcome and opening == 0:
            observations.append(np.array(state.observation(), dtype=np.float32).ravel())
            to_play.append(state.to_play)
        elif not is_outcome:
            opening -= 1
        state = next_state(state, move)
    rows = len(observations)
    flat = np.array(observations, dtype=np.float32).reshape(rows, int(np.prod(spec.shape)))
    return PackedObservations(np.zeros((rows, 0), np.uint64), flat), np.array(to_play, dtype=np.uint8)


#: Largest number of states examined, breadth first: a search evaluates descendants of the given states.
MOST = 5000


def refuse_observations(states: Iterable[Any], spec: GameSpec) -> None:
    """Raises `GameContractError` for the first invalid observation in these states or their descendants."""
    if spec.info.compiled or spec.is_environment:
        return
    for state in _breadth_first(list(states)):
        found = read_observation(state, spec.info.name).shape
        if found != spec.shape:
            raise GameContractError(
                f"{spec.info.name}.observation() has shape {found}, and in the starting state it has {spec.shape}: "
                "a network needs the same shape in every state"
            )


def _breadth_first(states: list[Any]) -> Iterator[Any]:
    """Yields the states and their successors, breadth first."""
    waiting = deque(states)
    for _ in range(MOST):
        if not waiting:
            return
        state = waiting.popleft()
        try:
            if state.is_terminal:
                continue
            after = [state.play(action) for action in state.legal_actions()]
        except Exception:  # another error of the game, reported where it is met
            after = []
        yield state
        waiting += after[: max(MOST - len(waiting), 0)]
