"""Evaluation of the leaves of a batch outside the engine: by an evaluator, or by playouts in Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree._core import PlayoutPause
from pondertree.config import SearchConfig
from pondertree.errors import GameContractError, PondertreeError, UnfinishedPlayoutWarning, warn_caller
from pondertree.evaluators.batch import Batch, Packed
from pondertree.evaluators.protocol import EvaluatorOutput, evaluate_batch
from pondertree.game import CHANCE, GameInfo, as_contract_error, check_returns, check_rewards
from pondertree.games.chance import check_chance_ends, read_outcomes
from pondertree.games.playout import MAX_PLAYOUT_LENGTH, MOVES_PER_CHECK, Playouts, simulate_leaves


class LeafEvaluation:
    """Evaluates the leaves that a forest has gathered; the states of a Python game are in `table`, by slot."""

    def __init__(
        self, core: EngineForest, info: GameInfo, config: SearchConfig, table: Mapping[int, Any] | None
    ) -> None:
        self._core = core
        self._info = info
        self._config = config
        self._table = table
        self.playouts = SearchPlayouts(core, info, config.discount)

    @property
    def are_random_playouts(self) -> bool:
        """Whether leaves are valued by random playouts to the end of the game."""
        config = self._config
        is_random = config.evaluator is None and config.python_policy is None and config.max_depth is None
        return is_random and config.leaf != "zero"

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
            slots = [slot for slot, _, _ in core.waiting()]
            states = partial(_states_of, table, slots)
            read: Callable[[Sequence[int]], NDArray[np.float32]] | None = getattr(table, "observations", None)
            observations = None if read is None else lambda: read(slots)
            return Batch(count, info.num_players, info.num_actions, states, observations, info=info)
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
        if self.playouts.ended:
            self.playouts.warn_of_truncation()
        return values

    def _simulate(self) -> NDArray[np.float64]:
        core, config, table = self._core, self._config, self._table
        if config.leaf == "zero":
            return np.zeros((core.num_waiting(), self._info.num_players))
        rows = core.waiting()
        states = core.waiting_states() if table is None else [table[slot] for slot, _, _ in rows]
        leaves = [(state, chooser, key) for state, (_, chooser, key) in zip(states, rows, strict=True)]
        evaluator = None if config.evaluator is None else _StateEvaluator(config.evaluator)
        with as_contract_error(self._info, "in a playout"):
            policy, discount = config.python_policy, config.discount
            values = simulate_leaves(leaves, config.max_depth, evaluator, policy, self.playouts, discount)
        return np.array(values, dtype=np.float64)


def _states_of(table: Mapping[int, Any], slots: Sequence[int]) -> list[Any]:
    return [table[slot] for slot in slots]


class OutOfTime(PondertreeError):  # noqa: N818 (internal: never leaves the search)
    """Aborts a playout at the deadline, or when the search is stopped."""


class SearchPlayouts(Playouts):
    """The playouts of one forest, which are aborted at the deadline or when the search is stopped."""

    __slots__ = ("_core", "_discount", "_has_warned", "_info", "_random", "deadline")

    def __init__(self, core: EngineForest, info: GameInfo, discount: float) -> None:
        super().__init__()
        self._core = core
        self._info = info
        self._discount = discount
        self._random = core.playout_random
        self._random.first_pause = min(MOVES_PER_CHECK, MAX_PLAYOUT_LENGTH)
        self._has_warned = False
        self.deadline: float | None = None
        """In the time of `time.perf_counter`."""

    def expired(self) -> bool:
        """Whether the deadline has passed or the search is stopped."""
        return self._core.stopped or (self.deadline is not None and time.perf_counter() >= self.deadline)

    def refuse(self, moves: int) -> NoReturn:
        raise GameContractError(
            f"{self._info.name} is not over after {moves} random moves in any of the first {self.cut} playouts: "
            "truncate playouts by max_depth=..., or value positions by an evaluator "
            "(pondertree.testing.check_game checks termination)"
        )

    def check_time(self) -> None:
        if self.expired():
            raise OutOfTime

    def warn_of_truncation(self) -> None:
        """Issues one `UnfinishedPlayoutWarning` if playouts were truncated because the game did not end."""
        if self.cut and not self._has_warned:
            self._has_warned = True
            warn_caller(
                f"a playout of {self._info.name} was not over after {MAX_PLAYOUT_LENGTH} moves: it was truncated "
                "and counts as a draw, or with the rewards so far (truncate playouts earlier by max_depth=..., or "
                "value positions by an evaluator)",
                UnfinishedPlayoutWarning,
            )

    @property
    def are_plain(self) -> bool:
        """Whether `play_plain` plays them: the value of a playout is that of its end."""
        return not self._info.has_rewards and not self._info.has_chance and self._discount == 1.0

    def play_plain(self, state: Any, legal: Sequence[int]) -> Sequence[float]:
        """Returns the returns at the end of a random playout from `state`, as the game gives them.

        Optimised, since it takes most of the time of a search of a Python game: it reads every property once. `legal`
        are the legal actions of `state`. Truncated after `MAX_PLAYOUT_LENGTH` moves.
        """
        pick, action = self._random.pick, None
        actions = legal
        while True:
            try:
                action = pick(actions)
                state = state.play(action)
                while not state.is_terminal:
                    actions = state.legal_actions()
                    action = pick(actions)
                    state = state.play(action)
                self.ended += 1
                returns: Sequence[float] = state.returns()
                return returns
            except PlayoutPause:
                if self._is_truncated():
                    return (0.0,) * self._info.num_players
            except PondertreeError:
                raise
            except Exception as error:
                raise self._error(error, action, actions) from error

    def play(self, state: Any, legal: Sequence[int]) -> Sequence[float]:
        """Returns the result of a random playout from `state`, one number per player, in any game.

        With rewards, it is their discounted sums. `legal` are the legal actions of `state`.
        """
        random, info, discount = self._random, self._info, self._discount
        playout_rewards, weight, in_a_row, action = [0.0] * info.num_players, 1.0, 0, None
        actions: Sequence[int] | None = legal
        if hasattr(state, "in_place"):
            state = state.in_place()
        while True:
            try:
                while not state.is_terminal:
                    is_move = not info.has_chance or state.to_play != CHANCE
                    if is_move:
                        in_a_row = 0
                        actions = state.legal_actions() if actions is None else actions
                        action = random.pick(actions)
                    else:
                        outcomes, probabilities = read_outcomes(state)
                        action = outcomes[random.draw(probabilities)]
                        in_a_row += 1
                        check_chance_ends(state, in_a_row)
                    state, actions = state.play(action), None
                    if info.has_rewards:
                        rewards = check_rewards(state.rewards(), info)
                        playout_rewards = [
                            sum_ + weight * reward for sum_, reward in zip(playout_rewards, rewards, strict=True)
                        ]
                    if is_move:
                        weight *= discount
                self.ended += 1
                if info.has_rewards:
                    return playout_rewards
                return [weight * value for value in check_returns(state.returns(), info)]
            except PlayoutPause:
                if self._is_truncated():
                    return playout_rewards
            except PondertreeError:
                raise
            except Exception as error:
                raise self._error(error, action, actions) from error

    def _is_truncated(self) -> bool:
        """Whether the playout that paused is truncated; else it goes on until the next check of the deadline."""
        self.check_time()
        moves = self._random.picks
        if moves >= MAX_PLAYOUT_LENGTH:
            self.count_cut(MAX_PLAYOUT_LENGTH)
            if self.ended:
                self.warn_of_truncation()
            return True
        self._random.resume(min(MOVES_PER_CHECK, MAX_PLAYOUT_LENGTH - moves))
        return False

    def _error(self, error: Exception, action: int | None, actions: Sequence[int] | None) -> GameContractError:
        """Returns the error of a playout whose last action was `action`; `actions` are the legal ones read last."""
        name = self._info.name
        if isinstance(error, IndexError) and actions is not None and len(actions) == 0:
            return GameContractError(f"{name}.legal_actions() is empty although the game is not over")
        doing = "at its start" if action is None else f"at or after play({action})"
        return GameContractError(f"{name} raised {type(error).__name__} in a playout, {doing}: {error}")


class _StateEvaluator:
    """Adapts an evaluator to `simulate_leaves`."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator

    def evaluate_states(self, states: Sequence[Any]) -> tuple[None, NDArray[np.float64]]:
        """Returns (no policy, values)."""
        return None, evaluate_batch(self._evaluator, Batch.of(states)).values
