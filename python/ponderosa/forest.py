"""Handles on searches that go on: `Forest` for many trees in one batch, `Tree` for one."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ponderosa import _core
from ponderosa.check import flag, per_row, positive_number, whole_number
from ponderosa.door import enter
from ponderosa.errors import InvalidActionError, InvalidArgumentError, UsageError
from ponderosa.game import describe, game_mistakes, move_text, play, refuse_finished
from ponderosa.leaves import Leaves, OutOfTime
from ponderosa.reference.lookahead import minimax
from ponderosa.result import SearchResult
from ponderosa.world import PythonWorld

if TYPE_CHECKING:
    from ponderosa.search import Search

Progress = Callable[[int, int], object]
#: More simulations than any search will ever do: a limit of time alone.
UNLIMITED = 1 << 62


class Forest:
    """Trees of one game, searched together. Made by `search.forest(states)`."""

    def __init__(self, search: Search, states: Sequence[Any], seeds: Sequence[int] | int | None = None) -> None:
        if len(states) == 0:
            raise InvalidArgumentError("states is empty: give at least one state")
        self._search = search
        self._info = describe(states[0])
        for row, state in enumerate(states[1:], start=1):
            if describe(state) != self._info:
                raise InvalidArgumentError(
                    f"states[{row}] is a state of {describe(state).name}, states[0] one of {self._info.name}: "
                    "all states of a forest must be of one game"
                )
        self._settings = search.settings(self._info)
        self._core = _core.Forest(
            self._info.name if self._info.compiled else "external",
            self._settings.engine(self._info, len(states)),
        )
        self._world = None if self._info.compiled else PythonWorld(self._core, self._info, self._settings.forced_depth)
        self._leaves = Leaves(self._core, self._info, self._settings, self._world)
        self._keys: list[tuple[int, int, int]] = []
        self._elapsed = [0.0] * len(states)
        self._states: list[Any] = []
        self._busy = False
        #: Simulations each tree had when its root was set, and what the guard says of that root.
        self._begun = [0] * len(states)
        self._guards: list[list[tuple[int, int]] | None] = [None] * len(states)
        call = search.next_call()
        given = None if seeds is None else per_row(seeds, len(states), "seeds", whole_number)
        for row, state in enumerate(states):
            refuse_finished(state, f"states[{row}]" if len(states) > 1 else "this state")
            key = (search.seed, call, row) if given is None else (given[row], 0, 0)
            if self._world is None:
                self._core.plant(state, *key)
            else:
                position = self._world.read_root(state)
                self._world.put_root(self._core.plant_external(position.to_play, position.legal, *key), state)
            self._keys.append(key)
            self._states.append(state)

    def __len__(self) -> int:
        return len(self._states)

    def state(self, index: int) -> Any:
        """The state at the root of tree `index`."""
        return self._states[self._index(index)]

    def simulate(
        self,
        n: int | Sequence[int] | None = None,
        *,
        seconds: float | None = None,
        add_noise: bool | Sequence[bool] | None = None,
        progress: Progress | None = None,
    ) -> Forest:
        """Gives every tree `n` more simulations (one number, or one per tree), or as many as fit into `seconds`.

        Without either, the limits of the search hold. `add_noise=True` mixes fresh noise into the clean priors of the
        root, False takes it out, None leaves it as it is. `progress(done, wanted)` is called now and then.
        """
        if n is None and seconds is None:
            n, seconds = self._search.num_simulations, self._search.time_limit
        counts = [UNLIMITED] * len(self) if n is None else per_row(n, len(self), "n", whole_number)
        if seconds is not None:
            positive_number(seconds, "seconds")
        if progress is not None and not callable(progress):
            raise InvalidArgumentError(f"progress must be a function of (done, wanted), not {progress!r}")
        if self._busy:
            raise UsageError("this search is already running: an evaluator or another thread must not enter it again")
        noise = per_row(add_noise, len(self), "add_noise")
        self._busy = True
        begun = time.perf_counter()
        try:
            self._core.resume()
            for index, wanted in enumerate(noise):
                if wanted is not None:
                    self._settings.set_noise(self._core, index, flag(wanted, "add_noise"))
            for index, count in enumerate(counts):
                self._core.allow(index, count)
            if self._info.compiled and self._settings.leaf != "outside":
                self._core.run(seconds, progress)
            else:
                self._drive(None if seconds is None else begun + seconds, progress)
        finally:
            self._busy = False
            passed = time.perf_counter() - begun
            self._elapsed = [elapsed + passed for elapsed in self._elapsed]
        return self

    def _drive(self, deadline: float | None, progress: Progress | None) -> None:
        """Gather, step, evaluate, apply, until no tree wants more. A batch that is not finished is taken back."""
        core = self._core
        self._leaves.deadline = deadline
        try:
            while core.wants_more() and not core.stopped:
                rows = core.gather()
                while rows > 0 and self._world is not None:
                    self._world.step()
                    rows = core.gather() if core.batch_can_grow() else 0
                answer = self._leaves.answer()
                core.apply(answer.policy, answer.values, answer.probabilities)
                if progress is not None:
                    progress(*core.progress())
                if deadline is not None and time.perf_counter() >= deadline:
                    break
        except OutOfTime:
            self._roll_back()
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        released = self._core.roll_back()
        if self._world is not None:
            self._world.release(released)

    def result(self, index: int = 0, *, temperature: float | None = None) -> SearchResult:
        """What tree `index` has found so far."""
        index = self._index(index)
        view = self._core.view(index)
        verdicts = self._verdicts(index) if self._settings.minimax_depth and view.proven is None else []
        return SearchResult(
            view,
            self._states[index],
            self._info,
            temperature,
            verdicts,
            self._keys[index][0],
            self._elapsed[index],
            view.simulations - self._begun[index],
        )

    def results(self, *, temperature: float | Sequence[float] | None = None) -> list[SearchResult]:
        """What every tree has found so far."""
        temperatures = per_row(temperature, len(self), "temperature")
        return [self.result(index, temperature=temperatures[index]) for index in range(len(self))]

    def _verdicts(self, index: int) -> list[tuple[int, int]]:
        """The minimax guard's word on root actions: plies of a proven win, -1 for a proven loss. Asked once a root."""
        known = self._guards[index]
        if known is None:
            depth = self._settings.minimax_depth
            if self._info.compiled:
                known = self._core.minimax(index, depth)
            else:
                with game_mistakes(self._info, "in the minimax guard"):
                    verdicts = minimax(self._states[index], depth)
                known = [(action, plies if word > 0 else -1) for action, (word, plies) in verdicts.items() if word]
            self._guards[index] = known
        return known

    def advance(self, index: int, action: int) -> None:
        """Plays `action` in tree `index` and keeps what is known below it."""
        index = self._index(index)
        if self._busy:
            raise UsageError("this search is running: advance it when it has come back")
        state = self._states[index]
        action = whole_number(action, "action", least=0)
        if action not in state.legal_actions():
            raise InvalidActionError(
                f"action {action} is not legal at the root; legal are {[int(a) for a in state.legal_actions()]}"
            )
        if self._world is None:
            after = state.play(action)
            refuse_finished(after)
            self._core.advance(index, action)
        else:
            after = play(state, action, self._info)
            refuse_finished(after)
            position = self._world.read_root(after)
            if self._settings.forced_depth and action not in self._world.read_root(state).legal:
                self.reset(index, after)
                return
            slot, released = self._core.advance_external(index, action, position.to_play, position.legal)
            self._world.release(released)
            self._world.put_root(slot, after)
        self._set_root(index, after, int(self._core.view(index).simulations))

    def reset(self, index: int, state: Any) -> None:
        """Puts `state` in the place of tree `index`: a new search, with its own random numbers."""
        index = self._index(index)
        if self._busy:
            raise UsageError("this search is running: reset it when it has come back")
        state = enter(state)
        if describe(state) != self._info:
            raise InvalidArgumentError(f"state is one of another game than this forest's ({self._info.name})")
        refuse_finished(state)
        key = (self._search.seed, self._search.next_call(), index)
        if self._world is None:
            self._core.reset(index, state, *key)
        else:
            position = self._world.read_root(state)
            slot, released = self._core.reset_external(index, position.to_play, position.legal, *key)
            self._world.release(released)
            self._world.put_root(slot, state)
        self._keys[index] = key
        self._set_root(index, state, 0)

    def _set_root(self, index: int, state: Any, begun: int) -> None:
        self._states[index] = state
        self._elapsed[index] = 0.0
        self._begun[index] = begun
        self._guards[index] = None

    def stop(self) -> None:
        """Asks a running `simulate` to come back soon; from any thread. What was searched stays."""
        self._core.stop()

    def trace(self, index: int = 0) -> list[dict[str, Any]]:
        """Every simulation of tree `index`, in the twin's format; needs `trace=True`."""
        if not self._settings.trace:
            raise UsageError("nothing was recorded: make the search with trace=True")
        return [
            {
                "simulation": simulation,
                "path": [action for action, _ in steps],
                "scores": [scores for _, scores in steps],
                "values": values,
            }
            for simulation, steps, values in sorted(self._core.trace(self._index(index)), key=operator.itemgetter(0))
        ]

    def _index(self, index: int) -> int:
        number = whole_number(index, "index", least=-len(self))
        if number >= len(self):
            raise InvalidArgumentError(f"index {number} is out of range: this forest has {len(self)} trees")
        return number % len(self)


class Tree:
    """One tree: a forest of one. Made by `search.tree(state)`."""

    def __init__(self, search: Search, state: Any, seeds: int | None = None) -> None:
        self._forest = Forest(search, [state], seeds)

    @property
    def state(self) -> Any:
        """The state at the root."""
        return self._forest.state(0)

    def simulate(
        self,
        n: int | None = None,
        *,
        seconds: float | None = None,
        add_noise: bool | None = None,
        progress: Progress | None = None,
    ) -> Tree:
        """`n` more simulations, or as many as fit into `seconds`; see `Forest.simulate`."""
        self._forest.simulate(n, seconds=seconds, add_noise=add_noise, progress=progress)
        return self

    def result(self, *, temperature: float | None = None) -> SearchResult:
        """What has been found so far."""
        return self._forest.result(0, temperature=temperature)

    def advance(self, action: int) -> None:
        """Plays `action` and keeps what is known below it."""
        self._forest.advance(0, action)

    def reset(self, state: Any) -> None:
        """Starts again from `state`."""
        self._forest.reset(0, state)

    def stop(self) -> None:
        """Asks a running `simulate` to come back soon; from any thread."""
        self._forest.stop()

    def trace(self) -> list[dict[str, Any]]:
        """Every simulation, in the twin's format; needs `trace=True`."""
        return self._forest.trace(0)

    def __repr__(self) -> str:
        result = self.result()
        return f"<Tree: {result.simulations} simulations, best {move_text(self.state, result.action)}>"
