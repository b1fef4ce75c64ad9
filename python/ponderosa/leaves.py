"""Values, and priors, for the leaves of a batch that wait for something outside the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ponderosa import _core
from ponderosa.errors import GameContractError
from ponderosa.evaluators.batch import Batch, Packed
from ponderosa.evaluators.protocol import Answer, ask
from ponderosa.game import GameInfo, game_mistakes
from ponderosa.playout import checked_policy
from ponderosa.reference.playout import simulate_leaves
from ponderosa.settings import Settings
from ponderosa.world import PythonWorld


class Leaves:
    """Evaluates what a forest has gathered."""

    def __init__(self, core: _core.Forest, info: GameInfo, settings: Settings, world: PythonWorld | None) -> None:
        self._core = core
        self._info = info
        self._settings = settings
        self._world = world

    @property
    def _has_plain_playouts(self) -> bool:
        """Random moves to the end and nothing else: the usual case, which has a loop of its own."""
        settings = self._settings
        plain = settings.evaluator is None and settings.python_policy is None and settings.max_depth is None
        return plain and not self._info.has_rewards

    def answer(self) -> Answer:
        """The answer to the batch under way."""
        count = self._core.num_waiting()
        settings = self._settings
        if count == 0:
            return Answer(None, np.zeros((0, self._info.num_players)), False)
        if settings.evaluator is not None and settings.max_depth in (None, 0) and settings.python_policy is None:
            return ask(settings.evaluator, self._batch(count))
        if self._world is None and settings.python_policy is None:
            # The engine has played these leaves out as far as `max_depth`; the evaluator says the rest.
            return ask(settings.evaluator, self._batch(count))
        return Answer(None, self._playouts(), False)

    def _batch(self, count: int) -> Batch:
        core, world, info = self._core, self._world, self._info
        if world is not None:
            states = [world[slot] for slot, _, _ in core.waiting()]
            return Batch(count, info.num_players, info.num_actions, lambda: states)
        packed = self._packed if self._settings.score == "puct" else None
        return Batch(count, info.num_players, info.num_actions, core.waiting_states, core.waiting_observations, packed)

    def _packed(self) -> Packed:
        planes, scalars = self._core.waiting_packed()
        offsets, actions = self._core.waiting_legal()
        height, width = self._info.plane_shape
        return Packed(planes, scalars, height, width, offsets.astype(np.int64), actions, self._info.num_actions)

    def _playouts(self) -> NDArray[np.float64]:
        """Playouts in Python: of Python games, or by a policy in Python."""
        core, settings, world = self._core, self._settings, self._world
        if settings.leaf == "zero":
            return np.zeros((core.num_waiting(), self._info.num_players))
        rows = core.waiting()
        states = core.waiting_states() if world is None else [world[slot] for slot, _, _ in rows]
        leaves = [(state, chooser, key) for state, (_, chooser, key) in zip(states, rows, strict=True)]
        if self._has_plain_playouts and not hasattr(states[0], "simulateRandomPlayout"):
            with game_mistakes(self._info, "in a playout"):
                return np.array([plain_playout(state, key, self._info) for state, _, key in leaves])
        batched = None if settings.evaluator is None else _Batched(settings.evaluator)
        policy = None if settings.python_policy is None else checked_policy(settings.python_policy)
        with game_mistakes(self._info, "in a playout"):
            return np.array(simulate_leaves(leaves, settings.max_depth, batched, policy), dtype=np.float64)


def plain_playout(state: Any, key: int, info: GameInfo) -> list[float]:
    """The result of random moves to the end, one number per player.

    The same moves as the twin's `random_playout`, with the engine's numbers and nothing asked twice: in a search of a
    Python game most of the time is spent here.
    """
    choose = _core.PlayoutRandom(key).choose
    while not state.is_terminal:
        legal = state.legal_actions()
        if len(legal) == 0:
            raise GameContractError(f"{info.name}.legal_actions() is empty although the game is not over")
        state = state.play(legal[choose(len(legal))])
    values = [float(value) for value in state.returns()]
    if len(values) != info.num_players:
        raise GameContractError(f"{info.name}.returns() has {len(values)} numbers for {info.num_players} players")
    if not math.isfinite(sum(values)):
        raise GameContractError(f"{info.name}.returns() is {values}: every number must be finite")
    if info.zero_sum and abs(sum(values)) > 1e-9:
        raise GameContractError(
            f"{info.name}.returns() is {values}, which sums to {sum(values)}: a zero-sum game's sum to 0 "
            "(set zero_sum = False if this one is not)"
        )
    return values


class _Batched:
    """Any evaluator, in the form in which a playout that was cut asks for a value."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator

    def evaluate_states(self, states: Sequence[Any]) -> tuple[None, NDArray[np.float64]]:
        """(nothing, values)."""
        return None, ask(self._evaluator, Batch.of(states)).values
