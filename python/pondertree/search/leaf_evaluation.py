"""Values, and priors, for the leaves of a batch that wait for something outside the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree._core import PlayoutRandom
from pondertree.config import Settings
from pondertree.errors import GameContractError, PondertreeError, UnfinishedPlayoutWarning, warn_caller
from pondertree.evaluators.batch import Batch, Packed
from pondertree.evaluators.protocol import Answer, ask
from pondertree.game import GameInfo, check_returns, check_rewards, game_mistakes
from pondertree.games.playout import MOVES_PER_CHECK, Playouts, simulate_leaves
from pondertree.specifications.uct import LONGEST_PLAYOUT, checked_policy


class Table(Protocol):
    """States by slot."""

    def __getitem__(self, slot: int) -> Any: ...


class Leaves:
    """Evaluates what a forest has gathered."""

    def __init__(self, core: EngineForest, info: GameInfo, settings: Settings, world: Table | None) -> None:
        self._core = core
        self._info = info
        self._settings = settings
        self._world = world
        self.playouts = SearchPlayouts(core, info.name)
        self._has_warned = False

    @property
    def _has_plain_playouts(self) -> bool:
        """Random moves to the end and nothing else: the usual case, which has a loop of its own."""
        settings = self._settings
        return settings.evaluator is None and settings.python_policy is None and settings.max_depth is None

    @property
    def longest_playout(self) -> int:
        """The most moves of a playout; 0 where leaves are valued as they are."""
        settings = self._settings
        if settings.leaf == "zero" or (settings.evaluator is not None and settings.max_depth is None):
            return 0
        return LONGEST_PLAYOUT if settings.max_depth is None else settings.max_depth

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
        return Answer(None, self._play_out(), False)

    def _timely(self, policy: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The policy of a playout, which is left when the time is up."""
        playouts = self.playouts

        def timely(state: Any) -> Any:
            playouts.check_time()
            return policy(state)

        return timely

    def _batch(self, count: int) -> Batch:
        core, world, info = self._core, self._world, self._info
        if world is not None:
            states = [world[slot] for slot, _, _ in core.waiting()]
            return Batch(count, info.num_players, info.num_actions, lambda: states, info=info)
        packed = self._packed if self._settings.score.has_priors else None
        observations = core.waiting_observations
        return Batch(count, info.num_players, info.num_actions, core.waiting_states, observations, packed, info)

    def _packed(self) -> Packed:
        planes, scalars = self._core.waiting_packed()
        offsets, actions = self._core.waiting_legal()
        height, width = self._info.plane_shape
        return Packed(planes, scalars, height, width, offsets, actions, self._info.num_actions)

    def _play_out(self) -> NDArray[np.float64]:
        """Playouts in Python: of Python games, or by a policy in Python."""
        values = self._simulate()
        if self.playouts.cut and self.playouts.ended:
            self.warn_of_cuts()
        return values

    def warn_of_cuts(self) -> None:
        """Warns, once, if playouts were cut because the game was not over."""
        if self.playouts.cut and not self._has_warned:
            self._has_warned = True
            warn_caller(
                f"a playout of {self._info.name} was not over after {LONGEST_PLAYOUT} moves: it was cut there and "
                "counts as a draw, or with the rewards so far (cut playouts earlier by max_depth=..., or value "
                "positions by an evaluator)",
                UnfinishedPlayoutWarning,
            )

    def _simulate(self) -> NDArray[np.float64]:
        core, settings, world = self._core, self._settings, self._world
        if settings.leaf == "zero":
            return np.zeros((core.num_waiting(), self._info.num_players))
        rows = core.waiting()
        states = core.waiting_states() if world is None else [world[slot] for slot, _, _ in rows]
        leaves = [(state, chooser, key) for state, (_, chooser, key) in zip(states, rows, strict=True)]
        if self._has_plain_playouts and not hasattr(states[0], "simulateRandomPlayout"):
            return np.array([plain_playout(state, key, self._info, self.playouts) for state, _, key in leaves])
        batched = None if settings.evaluator is None else _Batched(settings.evaluator)
        policy = None if settings.python_policy is None else self._timely(checked_policy(settings.python_policy))
        with game_mistakes(self._info, "in a playout"):
            values = simulate_leaves(leaves, settings.max_depth, batched, policy, self.playouts)
        return np.array(values, dtype=np.float64)


class OutOfTime(PondertreeError):  # noqa: N818 (a signal inside the search, which nobody outside sees)
    """A playout was going on when the time was up, or the search was told to stop."""


class SearchPlayouts(Playouts):
    """The playouts of one forest; they are left when the time is up, or the search was told to stop."""

    __slots__ = ("_core", "_name", "deadline")

    def __init__(self, core: EngineForest, name: str) -> None:
        super().__init__()
        self._core = core
        self._name = name
        #: When the time is up, by the clock of `time.perf_counter`.
        self.deadline: float | None = None

    def expired(self) -> bool:
        """Whether a playout is to be left."""
        return self._core.stopped or (self.deadline is not None and time.perf_counter() >= self.deadline)

    def refuse(self, moves: int) -> NoReturn:
        raise GameContractError(
            f"{self._name} is not over after {moves} random moves in any of the first {self.cut} playouts: "
            "cut playouts by max_depth=..., or value positions by an evaluator "
            "(pondertree.testing.check_game tells whether games end)"
        )

    def check_time(self) -> None:
        if self.expired():
            raise OutOfTime


def plain_playout(state: Any, key: int, info: GameInfo, playouts: Playouts) -> list[float]:
    """The result of random moves to the end, one number per player; with rewards, their sums.

    The same moves as the twin's `random_playout`, with the engine's numbers and nothing asked twice: in a search of a
    Python game most of the time is spent here. A playout of `LONGEST_PLAYOUT` moves is cut.
    """
    choose = PlayoutRandom(key).choose
    earned = [0.0] * info.num_players
    moves, action = 0, None
    try:
        while not state.is_terminal:
            if moves >= LONGEST_PLAYOUT:
                break
            legal = state.legal_actions()
            if len(legal) == 0:
                raise GameContractError(f"{info.name}.legal_actions() is empty although the game is not over")
            action = legal[choose(len(legal))]
            state = state.play(action)
            if info.has_rewards:
                rewards = check_rewards(state.rewards(), info)
                earned = [sum_ + reward for sum_, reward in zip(earned, rewards, strict=True)]
            moves += 1
            if moves % MOVES_PER_CHECK == 0:
                playouts.check_time()
        else:
            playouts.ended += 1
            return earned if info.has_rewards else check_returns(state.returns(), info)
    except PondertreeError:
        raise
    except Exception as error:
        doing = "at its start" if action is None else f"at or after play({action})"
        raise GameContractError(f"{info.name} raised {type(error).__name__} in a playout, {doing}: {error}") from error
    playouts.count_cut(moves)
    return earned


class _Batched:
    """Any evaluator, in the form in which a playout that was cut asks for a value."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator

    def evaluate_states(self, states: Sequence[Any]) -> tuple[None, NDArray[np.float64]]:
        """(nothing, values)."""
        return None, ask(self._evaluator, Batch.of(states)).values
