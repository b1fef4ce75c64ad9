"""Forest: many trees of one game, searched in shared batches and advanced move by move."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import Forest as EngineForest
from pondertree._core import TreeView
from pondertree.config import SearchConfig
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, UsageError
from pondertree.evaluators.awaiting import in_worker, refuse_coroutine, this_thread
from pondertree.game import move_text, refuse_finished
from pondertree.games import name_of_info
from pondertree.games.chance import is_chance, refuse_chance
from pondertree.games.chess_interop import check_action, to_state
from pondertree.result import SearchResult
from pondertree.search.arguments import UNLIMITED, Limits, Progress, RootActions
from pondertree.search.leaf_evaluation import OutOfTime
from pondertree.search.observation_root import ObservationBatch, ObservationRoot, observation_root
from pondertree.search.world import World
from pondertree.trace import TraceRow
from pondertree.validation import is_listed, optional_flag, optional_temperature, per_row, shown, whole_number
from pondertree.validation import seconds as read_seconds

if TYPE_CHECKING:
    import chess

#: Returns the seed and call number of a tree that is reset.
NextCall = Callable[[], tuple[int, int]]
#: The verdicts without a minimax guard.
NO_VERDICTS: list[tuple[int, int]] = []


class Forest:
    """Trees of one game, searched in shared batches. Returned by `Search.forest`.

    `world` has one tree per state. `seeds` has the seed of each tree, `limits` are the defaults of `simulate`, and
    `next_call` returns the seed and call number of a tree that is reset.
    """

    def __init__(
        self,
        config: SearchConfig,
        world: World,
        states: Sequence[Any],
        seeds: list[int],
        root_actions: RootActions | None,
        limits: Limits,
        next_call: NextCall,
    ) -> None:
        self._config = config
        self._world = world
        self._core = world.core
        self._info = world.info
        self.limits = limits
        self._next_call = next_call
        self._states: Any = states if isinstance(states, ObservationBatch) else list(states)
        self._seeds = seeds
        self._elapsed = [0.0] * len(states)
        self._busy = False
        #: Simulations of each tree when its root was set, and the minimax verdicts on that root.
        self._begun = [0] * len(states)
        self._verdicts: list[list[tuple[int, int]] | None] = [None] * len(states)
        #: The trees whose root is a chance node, which `advance` may lead to.
        self._waiting: set[int] = set()
        #: The actions to search at each root; None for all legal ones.
        self._root_actions: RootActions = root_actions or [None] * len(states)
        #: The actions played in each tree since it was planted or reset, if there are any.
        self._moves: dict[int, list[int]] = {}

    def __repr__(self) -> str:
        return f"<Forest: {len(self)} trees of {self._info.name}>"

    def __len__(self) -> int:
        return len(self._states)

    @property
    def is_busy(self) -> bool:
        """Whether a call of `simulate` or `step` is under way, which no other call may enter."""
        return self._busy

    def state(self, index: int) -> Any:
        """Returns the state at the root of tree `index`."""
        return self._states[self._index(index)]

    def simulate(
        self,
        n: int | Sequence[int] | None = None,
        *,
        seconds: float | timedelta | None = None,
        add_noise: bool | Sequence[bool] | None = None,
        progress: Progress | None = None,
    ) -> Forest:
        """Runs `n` more simulations in every tree (one number, or one per tree), or as many as fit into `seconds`.

        Without either, the limits of the search hold. `add_noise=True` mixes fresh noise into the clean priors of the
        root, False restores the clean priors, None keeps the current priors. `progress(done, total)` is called after
        each batch or time slice.
        """
        n, limit = self.limits.resolve(n, None if seconds is None else read_seconds(seconds, "seconds"))
        counts = [UNLIMITED] * len(self) if n is None else per_row(n, len(self), "n", whole_number)
        if progress is not None:
            validation.function(progress, "progress", "function of (done, total)")
            refuse_coroutine(progress, "progress")
        noise: dict[int | None, bool | None] = (
            dict(enumerate(per_row(add_noise, len(self), "add_noise", optional_flag)))
            if is_listed(add_noise)
            else {None: optional_flag(add_noise, "add_noise")}
        )
        self._run(counts, noise, limit, progress)
        return self

    def step(self, index: int = 0, *, of: int | None = None, add_noise: bool | None = None) -> TraceRow | None:
        """Runs one simulation of tree `index` and returns its row of `trace`; None where `simulate(1)` would run none.

        The search needs no `trace=True`. The tree is as after `simulate(1)`, or with `of=n` as after a part of
        `simulate(n)`: Gumbel plans the simulations of a whole search, which the first step begins and the later ones
        continue until all n have run. `add_noise` is as in `simulate`.
        """
        index = self._index(index)
        planned = 1 if of is None else whole_number(of, "of", least=1)
        counts = [planned if other == index else 0 for other in range(len(self))]
        noise: dict[int | None, bool | None] = {index: optional_flag(add_noise, "add_noise")}
        return self._run(counts, noise, None, None, step=index)

    def _run(
        self,
        counts: list[int],
        noise: dict[int | None, bool | None],
        limit: float | None,
        progress: Progress | None,
        step: int | None = None,
    ) -> TraceRow | None:
        """Runs `counts` simulations per tree; or one of those of tree `step`, whose record it returns."""
        if self._busy:
            raise UsageError("this search is already running: an evaluator or another thread must not enter it again")
        if self._waiting:
            self._refuse_waiting(*(each for each, count in enumerate(counts) if count > 0))
        if True in noise.values():
            self._world.check_noise()
        begun, begun_step, call = time.perf_counter(), None, None
        try:
            # Inside `try`, so that an interrupt never leaves the forest marked as running.
            self._busy = True
            self._world.synchronize()
            self._core.resume()
            for index, enabled in noise.items():
                if enabled is not None:
                    self._world.set_noise(index, enabled)
            if step is None:
                self._core.allow(counts)
            else:
                self._core.begin_step(step, counts[step])
                begun_step = step
            self._world.prepare_run(counts, is_exact=limit is None and step is None)
            call = this_thread.call
            if call is not None:
                call.begin(self.stop)
            if self._world.runs_in_engine:
                self._core.run(limit, progress)
            else:
                self._run_batches(None if limit is None else begun + limit, progress)
            if call is not None:
                call.raise_if_cancelled()
        finally:
            if call is not None:
                call.end(self.stop)
            self._busy = False
            row = None if begun_step is None else self._core.end_step(begun_step, self._config.options.trace)
            passed = time.perf_counter() - begun
            self._elapsed = [elapsed + passed for elapsed in self._elapsed]
        return row

    async def asimulate(self, n: int | Sequence[int] | None = None, **arguments: Any) -> Forest:
        """Does as `simulate` with the same arguments, in a worker thread; see `Search.arun`."""
        return await in_worker(lambda: self.simulate(n, **arguments))

    def _run_batches(self, deadline: float | None, progress: Progress | None) -> None:
        """Runs batches until every tree has its simulations; an unfinished batch is rolled back."""
        core, world = self._core, self._world
        world.deadline = deadline

        def should_stop() -> bool:
            if progress is not None:
                progress(*core.progress())
            # Every tree gets at least one simulation, whatever the time limit.
            return deadline is not None and time.perf_counter() >= deadline and core.all_begun()

        try:
            world.run(None if deadline is None and progress is None else should_stop)
        except OutOfTime:
            world.roll_back()
        except BaseException:
            world.roll_back()
            raise

    def result(self, index: int = 0, *, temperature: float | None = None) -> SearchResult:
        """Returns the result of tree `index` so far."""
        index = self._index(index)
        self._refuse_waiting(index)
        self._world.synchronize()
        return self._result(index, self._core.view(index), optional_temperature(temperature))

    def _result(self, index: int, view: TreeView, temperature: float | None) -> SearchResult:
        return SearchResult(
            view,
            self._states[index],
            self._info,
            temperature or 0.0,
            self._minimax_verdicts(index) if self._config.minimax_depth and view.proven is None else NO_VERDICTS,
            self._seeds[index],
            self._elapsed[index],
            view.simulations - self._begun[index],
        )

    def results(self, *, temperature: float | Sequence[float | None] | None = None) -> list[SearchResult]:
        """Returns the results of all trees so far."""
        self._refuse_waiting(*self._waiting)
        temperatures = per_row(temperature, len(self), "temperature", optional_temperature)
        self._world.synchronize()
        return [self._result(index, view, temperatures[index]) for index, view in enumerate(self._core.views())]

    def actions(self, *, temperature: float | Sequence[float | None] | None = None) -> NDArray[np.int64]:
        """Returns the action to play in every tree, equal to `action` of `results()`, [trees]."""
        if self._config.minimax_depth:
            return np.array([result.action for result in self.results(temperature=temperature)], dtype=np.int64)
        temperatures = per_row(temperature, len(self), "temperature", optional_temperature)
        return self._all_searched.actions([tau or 0.0 for tau in temperatures])

    def policies(self) -> NDArray[np.float64]:
        """Returns the policy of every tree, [trees, num_actions], the training target of self-play."""
        return self._all_searched.policies()

    def root_policies(self) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.float64]]:
        """Returns the policies over the actions at the roots alone: (actions per tree, the actions, their shares)."""
        return self._all_searched.root_policies()

    def visits(self) -> NDArray[np.int64]:
        """Returns the visits of every action in every tree, [trees, num_actions]."""
        return self._all_searched.visits()

    def values(self) -> NDArray[np.float64]:
        """Returns the value of every root, for the player to move there."""
        return self._all_searched.values()

    def waits_for_outcome(self, index: int = 0) -> bool:
        """Whether the root of tree `index` is a chance node: nothing is searched before `advance` passes an outcome."""
        return self._index(index) in self._waiting

    def _refuse_waiting(self, *indices: int) -> None:
        """Raises `InvalidArgumentError` if one of these trees waits for an outcome of chance."""
        for index in self._waiting.intersection(indices):
            what = f"tree {index}" if len(self) > 1 else "the tree"
            raise InvalidArgumentError(f"the root of {what} is a chance node: call advance(outcome) first")

    @property
    def _all_searched(self) -> EngineForest:
        """The engine's forest; raises `InvalidArgumentError` if one of its trees waits for an outcome."""
        self._refuse_waiting(*self._waiting)
        return self._core

    def _minimax_verdicts(self, index: int) -> list[tuple[int, int]]:
        """Returns the plies of each proven win among the root's actions, -1 for a proven loss; cached for a root."""
        verdicts = self._verdicts[index]
        if verdicts is None:
            verdicts = self._world.minimax_verdicts(index, self._states[index], self._config.minimax_depth)
            self._verdicts[index] = verdicts
        return verdicts

    def advance(
        self,
        index: int,
        action: int | str | chess.Move,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: int | None = None,
    ) -> None:
        """Plays `action` in tree `index` and keeps its subtree.

        `action` is a number, move text that the state's `parse_action` reads ("e2e4" and "Nf3" in chess, "4" in
        Connect 4), or in chess a `chess.Move`.

        In a tree of bare observations, `observation`, `legal_actions` and `to_play` describe the next root. By default,
        the model's predicted hidden state is kept, all actions are legal, and the player to move is the model's
        prediction, or players alternate. The subtree is dropped if the model predicted another player to move.

        At a chance node the tree waits until `advance` passes the outcome that came up. An action that ends the game
        raises a `GameOverError`; the tree is unchanged.
        """
        index = self._index(index)
        if self._busy:
            raise UsageError("cannot advance while `simulate` runs")
        state = self._states[index]
        action = check_action(state, action)
        legal = self._world.legal_actions(state)
        if action not in legal:
            raise InvalidActionError(f"action {action} is not legal at the root; legal are {shown(legal)}")
        is_searched = self._world.is_searched(state, action, self._root_actions[index])
        moves = [*self._moves.get(index, ()), action]
        is_observed = isinstance(state, ObservationRoot)
        if is_observed and not is_searched:
            raise InvalidActionError(
                f"action {action} is not among root_actions and was not searched: "
                "reset the tree with the observation after it"
            )
        if is_observed:
            after: Any = self._world.advance_observed(index, state, action, observation, legal_actions, to_play)
        elif not (observation is None and legal_actions is None and to_play is None):
            raise InvalidArgumentError(
                "observation, legal_actions and to_play are for trees of bare observations: this tree has a game state"
            )
        else:
            try:
                if not is_searched:
                    self._reset(index, self._world.state_after(state, action))
                    self._moves[index] = moves
                    return
                after = self._world.advance(index, state, action)
            except GameOverError:
                move = move_text(state, action)
                raise GameOverError(
                    f"{move} ends the game: there is nothing to search, and the tree is unchanged"
                ) from None
        self._world.synchronize()
        self._set_root(index, after, int(self._core.view(index).simulations))
        self._moves[index] = moves

    def restrict(self, index: int, actions: Sequence[int]) -> None:
        """Searches only `actions` at the root of tree `index` until it is advanced or reset.

        For compiled games, and roots that are new or were just advanced to. Statistics of these actions are kept,
        proofs that depend on excluded actions are discarded, and the root is not analyzed.
        """
        self.skip_root_analysis(index)
        # Evaluates the root, since priors are computed over all legal actions.
        self.simulate(1)
        self._core.restrict(index, list(actions))

    def skip_root_analysis(self, index: int) -> None:
        """Skips the analysis of the next root of tree `index` (in chess: its mate search)."""
        self._world.synchronize()
        self._core.skip_root_analysis(self._index(index))

    def reset(
        self,
        index: int,
        state: Any = None,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: int | None = None,
    ) -> None:
        """Replaces tree `index` by a new one from `state`, with new random keys.

        A tree of bare observations is reset to another `observation`, with its `legal_actions` and `to_play`.
        """
        index = self._index(index)
        if self._busy:
            raise UsageError("cannot reset while `simulate` runs")
        if not (observation is None and legal_actions is None and to_play is None):
            if state is not None or not isinstance(self._states[index], ObservationRoot):
                raise InvalidArgumentError(
                    "observation, legal_actions and to_play are for trees of bare observations: give a state instead"
                )
            state = observation_root(observation, legal_actions, to_play, "the new root", self._info.num_players)
        state = to_state(state)
        if self._world.describe(state) != self._world.game:
            raise InvalidArgumentError(f"state belongs to another game than this forest ({name_of_info(self._info)})")
        refuse_finished(state)
        if self._info.has_chance:
            refuse_chance(state, "the new state")
        self._reset(index, state)

    def _reset(self, index: int, state: Any) -> None:
        """Replaces tree `index` by one from a checked state, which may be a chance node."""
        seed, call = self._next_call()
        self._world.reset(index, state, (seed, call, index))
        if self._config.gumbel is not None:
            self._world.synchronize()
            self._world.set_gumbel(index)
        self._seeds[index] = seed
        self._set_root(index, state, 0)

    def _set_root(self, index: int, state: Any, begun: int) -> None:
        self._states[index] = state
        self._elapsed[index] = 0.0
        self._begun[index] = begun
        self._verdicts[index] = None
        (self._waiting.add if self._info.has_chance and is_chance(state) else self._waiting.discard)(index)
        self._root_actions[index] = None
        self._moves.pop(index, None)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Returns the only tree of this forest as (plain data, columns), from which `_restore` makes it."""
        if self._busy:
            raise UsageError("cannot save while `simulate` runs")
        self._refuse_waiting(0)
        columns, hidden = self._world.saved()
        result = self.result()
        data = {
            **result._saved_data(),
            "begun": self._begun[0],
            "root_actions": self._root_actions[0],
            "moves": self._moves.get(0, []),
            "hidden": hidden,
        }
        return data, columns

    @classmethod
    def _restore(
        cls,
        config: SearchConfig,
        world: World,
        state: Any,
        data: Mapping[str, Any],
        limits: Limits,
        next_call: NextCall,
    ) -> Self:
        """Returns the forest of `_saved` data, whose tree `world` has restored; `state` is its root."""
        forest = cls(config, world, [state], [data["seed"]], [data["root_actions"]], limits, next_call)
        forest._elapsed, forest._begun = [data["elapsed"]], [data["begun"]]
        forest._verdicts = [data["verdicts"] if world.core.view(0).proven is None else None]
        forest._moves = {0: list(data["moves"])}
        return forest

    def stop(self) -> None:
        """Ends a running `simulate` early, from any thread; the tree keeps its simulations."""
        self._core.stop()

    def trace(self, index: int = 0) -> list[TraceRow]:
        """Returns every simulation of tree `index`, as the reference implementation records it; needs `trace=True`."""
        if not self._config.options.trace:
            raise UsageError("nothing was recorded: create the search with trace=True")
        self._world.synchronize()
        return sorted(self._core.trace(self._index(index)), key=operator.itemgetter("simulation"))

    def _index(self, index: int) -> int:
        number = whole_number(index, "index", least=-len(self))
        if number >= len(self):
            raise InvalidArgumentError(f"index {number} is out of range: this forest has {len(self)} trees")
        return number % len(self)
