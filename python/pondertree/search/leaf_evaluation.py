"""Evaluation of the leaves of a batch outside the engine: by an evaluator, or by playouts in Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree._core import PlayoutRandom
from pondertree.config import SearchConfig
from pondertree.errors import GameContractError, PondertreeError, UnfinishedPlayoutWarning, warn_caller
from pondertree.evaluators.batch import Batch, Packed
from pondertree.evaluators.protocol import EvaluatorOutput, evaluate_batch
from pondertree.game import CHANCE, GameInfo, as_contract_error, check_returns, check_rewards
from pondertree.games.chance import check_chance_ends, read_outcomes
from pondertree.games.playout import MAX_PLAYOUT_LENGTH, MOVES_PER_CHECK, Playouts, has_random_playout, simulate_leaves


class LeafEvaluation:
    """Evaluates the leaves that a forest has gathered; the states of a Python game are in `table`, by slot."""

    def __init__(self, core: EngineForest, info: GameInfo, config: SearchConfig, table: dict[int, Any] | None) -> None:
        self._core = core
        self._info = info
        self._config = config
        self._table = table
        self.playouts = SearchPlayouts(core, info.name)
        self._has_warned = False

    @property
    def longest_playout(self) -> int:
        """Maximum moves of a playout; 0 without playouts."""
        config = self._config
        if config.leaf == "zero" or (config.evaluator is not None and config.max_depth is None):
            return 0
        return MAX_PLAYOUT_LENGTH if config.max_depth is None else config.max_depth

    def answer(self) -> EvaluatorOutput:
        """Returns policies and values of the open batch."""
        count = self._core.num_waiting()
        config = self._config
        if count == 0:
            return EvaluatorOutput(None, np.zeros((0, self._info.num_players)), False)
        if config.evaluator is not None and config.max_depth in (None, 0) and config.python_policy is None:
            return evaluate_batch(config.evaluator, self._batch(count))
        if self._table is None and config.python_policy is None:
            # The engine has played `max_depth` moves from these leaves; the evaluator values the last positions.
            return evaluate_batch(config.evaluator, self._batch(count))
        return EvaluatorOutput(None, self._play_out(), False)

    def _batch(self, count: int) -> Batch:
        core, table, info = self._core, self._table, self._info
        if table is not None:
            states = [table[slot] for slot, _, _ in core.waiting()]
            return Batch(count, info.num_players, info.num_actions, lambda: states, info=info)
        packed = self._packed if self._config.rule.has_priors else None
        observations = core.waiting_observations
        return Batch(count, info.num_players, info.num_actions, core.waiting_states, observations, packed, info)

    def _packed(self) -> Packed:
        planes, scalars = self._core.waiting_packed()
        offsets, actions = self._core.waiting_legal()
        _, height, width = self._info.observation_shape
        return Packed(planes, scalars, height, width, offsets, actions, self._info.num_actions)

    def _play_out(self) -> NDArray[np.float64]:
        """Returns the values of playouts of Python games, or with a policy in Python."""
        values = self._simulate()
        if self.playouts.cut and self.playouts.ended:
            self.warn_of_truncation()
        return values

    def warn_of_truncation(self) -> None:
        """Issues one `UnfinishedPlayoutWarning` if playouts were truncated because the game did not end."""
        if self.playouts.cut and not self._has_warned:
            self._has_warned = True
            warn_caller(
                f"a playout of {self._info.name} was not over after {MAX_PLAYOUT_LENGTH} moves: it was truncated "
                "and counts as a draw, or with the rewards so far (truncate playouts earlier by max_depth=..., or "
                "value positions by an evaluator)",
                UnfinishedPlayoutWarning,
            )

    def _simulate(self) -> NDArray[np.float64]:
        core, config, table = self._core, self._config, self._table
        if config.leaf == "zero":
            return np.zeros((core.num_waiting(), self._info.num_players))
        rows = core.waiting()
        states = core.waiting_states() if table is None else [table[slot] for slot, _, _ in rows]
        leaves = [(state, chooser, key) for state, (_, chooser, key) in zip(states, rows, strict=True)]
        is_random = config.evaluator is None and config.python_policy is None and config.max_depth is None
        info, discount = self._info, config.discount
        is_own = hasattr(states[0], "simulateRandomPlayout") or has_random_playout(states[0], discount)
        if is_random and not is_own:
            played = [fast_random_playout(state, key, info, self.playouts, discount) for state, _, key in leaves]
            return np.array(played)
        evaluator = None if config.evaluator is None else _StateEvaluator(config.evaluator)
        with as_contract_error(self._info, "in a playout"):
            values = simulate_leaves(leaves, config.max_depth, evaluator, config.python_policy, self.playouts, discount)
        return np.array(values, dtype=np.float64)


class OutOfTime(PondertreeError):  # noqa: N818 (internal: never leaves the search)
    """Aborts a playout at the deadline, or when the search is stopped."""


class SearchPlayouts(Playouts):
    """The playouts of one forest, which are aborted at the deadline or when the search is stopped."""

    __slots__ = ("_core", "_name", "deadline")

    def __init__(self, core: EngineForest, name: str) -> None:
        super().__init__()
        self._core = core
        self._name = name
        self.deadline: float | None = None
        """In the time of `time.perf_counter`."""

    def expired(self) -> bool:
        """Whether the deadline has passed or the search is stopped."""
        return self._core.stopped or (self.deadline is not None and time.perf_counter() >= self.deadline)

    def refuse(self, moves: int) -> NoReturn:
        raise GameContractError(
            f"{self._name} is not over after {moves} random moves in any of the first {self.cut} playouts: "
            "truncate playouts by max_depth=..., or value positions by an evaluator "
            "(pondertree.testing.check_game checks termination)"
        )

    def check_time(self) -> None:
        if self.expired():
            raise OutOfTime


def fast_random_playout(state: Any, key: int, info: GameInfo, playouts: Playouts, discount: float = 1.0) -> list[float]:
    """Returns the result of a random playout, one number per player; with rewards, their discounted sums.

    Plays the same moves as `random_playout`. Optimised, since it takes most of the time of a search of a Python game:
    it draws from the engine's generator and reads every property once. Truncated after `MAX_PLAYOUT_LENGTH` moves.
    """
    random = PlayoutRandom(key)
    choose = random.choose
    earned, weight = [0.0] * info.num_players, 1.0
    plies, most_plies, in_a_row, action = 0, MAX_PLAYOUT_LENGTH, 0, None
    has_chance, is_discounted = info.has_chance, discount != 1.0
    try:
        if hasattr(state, "in_place"):
            state = state.in_place()
        while not state.is_terminal:
            is_move = not has_chance or state.to_play != CHANCE
            if not is_move:
                outcomes, probabilities = read_outcomes(state)
                action = outcomes[random.draw(probabilities)]
                most_plies += 1
                in_a_row += 1
                check_chance_ends(state, in_a_row)
            elif plies >= most_plies:
                break
            else:
                in_a_row = 0
                legal = state.legal_actions()
                if len(legal) == 0:
                    raise GameContractError(f"{info.name}.legal_actions() is empty although the game is not over")
                action = legal[choose(len(legal))]
            state = state.play(action)
            if info.has_rewards:
                rewards = check_rewards(state.rewards(), info)
                earned = [sum_ + weight * reward for sum_, reward in zip(earned, rewards, strict=True)]
            if is_discounted and is_move:
                weight *= discount
            plies += 1
            if plies % MOVES_PER_CHECK == 0:
                playouts.check_time()
        else:
            playouts.ended += 1
            if info.has_rewards:
                return earned
            values = check_returns(state.returns(), info)
            return [weight * value for value in values] if is_discounted else values
    except PondertreeError:
        raise
    except Exception as error:
        doing = "at its start" if action is None else f"at or after play({action})"
        raise GameContractError(f"{info.name} raised {type(error).__name__} in a playout, {doing}: {error}") from error
    playouts.count_cut(MAX_PLAYOUT_LENGTH)
    return earned


class _StateEvaluator:
    """Adapts an evaluator to `simulate_leaves`."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator

    def evaluate_states(self, states: Sequence[Any]) -> tuple[None, NDArray[np.float64]]:
        """Returns (no policy, values)."""
        return None, evaluate_batch(self._evaluator, Batch.of(states)).values
