"""Handles on searches that go on: `Forest` for many trees in one batch, `Tree` for one."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as Engine
from pondertree._core import TreeView
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, UsageError
from pondertree.game import GameInfo, game_is_over, game_mistakes, is_over, move_text, refuse_finished
from pondertree.games.chess_interop import check_action, to_state
from pondertree.games.lookahead import minimax
from pondertree.result import SearchResult
from pondertree.search.latent_world import ModelWorld
from pondertree.search.leaf_evaluation import OutOfTime
from pondertree.search.observation_root import Observed, ObservedRows, observed
from pondertree.search.root_actions import RootActions, read_root_actions
from pondertree.validation import is_listed, optional_flag, optional_temperature, per_row, shown, whole_number
from pondertree.validation import seconds as read_seconds

if TYPE_CHECKING:
    import chess

    from pondertree.search.base import Search

#: What the minimax guard says where it is not asked.
NO_VERDICTS: list[tuple[int, int]] = []
Progress = Callable[[int, int], object]
#: More simulations than any search will ever do: a limit of time alone.
UNLIMITED = 1 << 62


class Forest:
    """Trees of one game, searched together. Made by `search.forest(states)`."""

    def __init__(
        self,
        search: Search,
        states: Sequence[Any],
        seeds: Sequence[int] | int | None = None,
        root_actions: Any = None,
    ) -> None:
        if len(states) == 0:
            raise InvalidArgumentError("states is empty: give at least one state")
        self._search = search
        info = _common(search, states)
        given = None if seeds is None else per_row(seeds, len(states), "seeds", whole_number)
        self._settings = search.settings(info)
        self._world = search.world(info, self._settings, states)
        self._info = self._world.info
        self._elapsed = [0.0] * len(states)
        self._states: Any = states if isinstance(states, ObservedRows) else list(states)
        self._busy = False
        #: Simulations each tree had when its root was set, and what the guard says of that root.
        self._begun = [0] * len(states)
        self._guards: list[list[tuple[int, int]] | None] = [None] * len(states)
        #: The actions that are searched at each root, None for all legal ones.
        among = read_root_actions(root_actions, states, self._world.legal_actions)
        self._root_actions: RootActions = among or [None] * len(states)
        call = search.next_call()
        self._seeds = [search.drawn_seed] * len(states) if given is None else given
        self._world.plant(
            states, (search.drawn_seed, call) if given is None else [(seed, 0, 0) for seed in given], among
        )
        if self._settings.gumbel is not None:
            for index in range(len(states)):
                self._settings.set_gumbel(self._core, index, len(states))

    def __len__(self) -> int:
        return len(self._states)

    @property
    def _core(self) -> Engine:
        """The engine's forest, with all trees in it."""
        self._world.settle()
        return self._world.core

    def state(self, index: int) -> Any:
        """The state at the root of tree `index`."""
        return self._states[self._index(index)]

    def simulate(
        self,
        n: int | Sequence[int] | None = None,
        *,
        seconds: float | timedelta | None = None,
        add_noise: bool | Sequence[bool] | None = None,
        progress: Progress | None = None,
    ) -> Forest:
        """Gives every tree `n` more simulations (one number, or one per tree), or as many as fit into `seconds`.

        Without either, the limits of the search hold. `add_noise=True` mixes fresh noise into the clean priors of the
        root, False takes it out, None leaves it as it is. `progress(done, wanted)` is called now and then.
        """
        if n is None and seconds is None:
            n, seconds = self._search.num_simulations, self._search.seconds
        if n is None and self._search.needs_count:
            n = self._search.num_simulations
        counts = [UNLIMITED] * len(self) if n is None else per_row(n, len(self), "n", whole_number)
        if seconds is not None:
            seconds = read_seconds(seconds, "seconds")
        if progress is not None and not callable(progress):
            raise InvalidArgumentError(f"progress must be a function of (done, wanted), not {shown(progress)}")
        if self._busy:
            raise UsageError("this search is already running: an evaluator or another thread must not enter it again")
        trees = len(self)
        # Nearly always the same for all, and trees may be thousands.
        noise: dict[int | None, bool | None] = {
            None: None if is_listed(add_noise) else optional_flag(add_noise, "add_noise")
        }
        if is_listed(add_noise):
            noise = dict(enumerate(per_row(add_noise, trees, "add_noise", optional_flag)))
        if True in noise.values():
            self._settings.check_noise()
        begun = time.perf_counter()
        try:
            # Not before: whoever interrupts this must find it free again.
            self._busy = True
            core = self._core
            core.resume()
            for index, wanted in noise.items():
                if wanted is not None:
                    self._settings.set_noise(core, index, wanted, trees)
            core.allow(counts)
            self._world.expect(counts, at_once=seconds is None)
            if self._world.runs_inside:
                core.run(seconds, progress)
            else:
                self._drive(None if seconds is None else begun + seconds, progress)
        finally:
            self._busy = False
            passed = time.perf_counter() - begun
            self._elapsed = [elapsed + passed for elapsed in self._elapsed]
        return self

    def _drive(self, deadline: float | None, progress: Progress | None) -> None:
        """Batch after batch, until no tree wants more. A batch that is not finished is taken back."""
        core, world = self._core, self._world
        world.deadline = deadline

        def over() -> bool:
            if progress is not None:
                progress(*core.progress())
            # A limit of time, however short, leaves no tree without a single simulation.
            return deadline is not None and time.perf_counter() >= deadline and core.all_begun()

        try:
            world.run(None if deadline is None and progress is None else over)
        except OutOfTime:
            world.roll_back()
        except BaseException:
            world.roll_back()
            raise

    def result(self, index: int = 0, *, temperature: float | None = None) -> SearchResult:
        """What tree `index` has found so far."""
        index = self._index(index)
        return self._result(index, self._core.view(index), optional_temperature(temperature))

    def _result(self, index: int, view: TreeView, temperature: float | None) -> SearchResult:
        return SearchResult(
            view,
            self._states[index],
            self._info,
            temperature or 0.0,
            self._verdicts(index) if self._settings.minimax_depth and view.proven is None else NO_VERDICTS,
            self._seeds[index],
            self._elapsed[index],
            view.simulations - self._begun[index],
        )

    def results(self, *, temperature: float | Sequence[float | None] | None = None) -> list[SearchResult]:
        """What every tree has found so far."""
        temperatures = per_row(temperature, len(self), "temperature", optional_temperature)
        return [self._result(index, view, temperatures[index]) for index, view in enumerate(self._core.views())]

    def actions(self, *, temperature: float | Sequence[float | None] | None = None) -> NDArray[np.int64]:
        """The action to play in every tree: the same as those of `results()`, in one array."""
        if self._settings.minimax_depth:
            return np.array([result.action for result in self.results(temperature=temperature)], dtype=np.int64)
        temperatures = per_row(temperature, len(self), "temperature", optional_temperature)
        return self._world.core.actions([tau or 0.0 for tau in temperatures])

    def policies(self) -> NDArray[np.float64]:
        """The policy of every tree, [trees, num_actions]: what self-play learns from."""
        return self._world.core.policies()

    def root_policies(self) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.float64]]:
        """The same, for the actions at the roots alone: (how many each tree has, those in any order, their shares)."""
        return self._world.core.root_policies()

    def visits(self) -> NDArray[np.int64]:
        """Visits of every action in every tree, [trees, num_actions]."""
        return self._world.core.visits()

    def values(self) -> NDArray[np.float64]:
        """The value of every root, for the player to move there."""
        return self._world.core.values()

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

    def advance(
        self,
        index: int,
        action: int | str | chess.Move,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: int | None = None,
    ) -> None:
        """Plays `action` in tree `index` and keeps what is known below it.

        `action` is a number, move text that the state's `parse_action` reads ("e2e4" and "Nf3" in chess, "4" in
        Connect 4), or in chess a `chess.Move`.

        A tree that was planted from a bare observation has no state that could say what comes of the action:
        `observation`, `legal_actions` and `to_play` do. Without an observation the model's own idea of the position
        stays; without the others all actions are legal, and the turn is as the model has it, or players alternate.
        What the model imagined is not kept if it was wrong about the turn.

        An action that ends the game raises a `GameOverError`, and the tree stays where it is.
        """
        index = self._index(index)
        if self._busy:
            raise UsageError("this search is running: advance it when it has come back")
        state = self._states[index]
        action = check_action(state, action)
        legal = self._world.legal_actions(state)
        if action not in legal:
            raise InvalidActionError(f"action {action} is not legal at the root; legal are {shown(legal)}")
        told = not (observation is None and legal_actions is None and to_play is None)
        is_known = self._world.knows(state, action, self._root_actions[index])
        if isinstance(self._world, ModelWorld) and isinstance(state, Observed):
            if not is_known:
                raise InvalidActionError(
                    f"action {action} is not among root_actions, so that nothing is known of it: "
                    "reset the tree with the observation after it"
                )
            after: Any = self._world.follow(index, state, action, observation, legal_actions, to_play)
        elif told:
            raise InvalidArgumentError(
                "observation, legal_actions and to_play are for trees of bare observations: this one knows its state"
            )
        else:
            try:
                if not is_known:
                    self.reset(index, self._world.after(state, action))
                    return
                after = self._world.advance(index, state, action)
            except GameOverError:
                move = move_text(state, action)
                raise GameOverError(f"{move} ends the game: nothing is left to search, the tree stays") from None
        self._set_root(index, after, int(self._core.view(index).simulations))

    def restrict(self, index: int, actions: Sequence[int]) -> None:
        """Limits the root of tree `index`, of a compiled game, to `actions` until the tree is advanced or reset.

        Keeps the statistics of these moves and drops proofs that rest on others; the root is not searched for mates.
        For a root that is new or was just advanced to.
        """
        self.skip_root_analysis(index)
        # The root must be expanded before edges are removed.
        self.simulate(1)
        self._core.restrict(index, list(actions))

    def skip_root_analysis(self, index: int) -> None:
        """Leaves out the analysis of the next root of tree `index` (in chess: its mate search)."""
        self._core.skip_root_mates(index)

    def reset(
        self,
        index: int,
        state: Any = None,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: int | None = None,
    ) -> None:
        """Puts `state` in the place of tree `index`: a new search, with its own random numbers.

        A tree that was planted from a bare observation takes another one, with `legal_actions` and `to_play` as before.
        """
        index = self._index(index)
        if self._busy:
            raise UsageError("this search is running: reset it when it has come back")
        if not (observation is None and legal_actions is None and to_play is None):
            if state is not None or not isinstance(self._states[index], Observed):
                raise InvalidArgumentError(
                    "observation, legal_actions and to_play are for trees of bare observations: give a state instead"
                )
            state = observed(observation, legal_actions, to_play, "the new root", self._info.num_players)
        state = to_state(state)
        if self._search.describe(state) != self._search.describe(self._states[index]):
            raise InvalidArgumentError(f"state is one of another game than this forest's ({self._info.name})")
        refuse_finished(state)
        key = (self._search.drawn_seed, self._search.next_call(), index)
        self._world.reset(index, state, key)
        if self._settings.gumbel is not None:
            self._settings.set_gumbel(self._core, index, len(self))
        self._seeds[index] = self._search.drawn_seed
        self._set_root(index, state, 0)

    def _set_root(self, index: int, state: Any, begun: int) -> None:
        self._states[index] = state
        self._elapsed[index] = 0.0
        self._begun[index] = begun
        self._guards[index] = None
        self._root_actions[index] = None

    def stop(self) -> None:
        """Asks a running `simulate` to come back soon; from any thread. What was searched stays."""
        self._world.core.stop()

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


def _common(search: Search, states: Sequence[Any]) -> GameInfo:
    """What all states have in common; those of several games, and finished ones, are refused."""
    info = search.describe(states[0])
    if isinstance(states, ObservedRows):
        return info
    kinds = set(map(type, states))
    if kinds == {Observed}:
        return info
    if not info.compiled or len(kinds) > 1:
        for row, state in enumerate(states[1:], start=1):
            other = search.describe(state)
            if other is not info and other != info:
                raise InvalidArgumentError(
                    f"states[{row}] is a state of {other.name}, states[0] one of {info.name}: "
                    f"all states of a forest must be of one game ({_difference(info, other)})"
                )
    over = operator.attrgetter("is_terminal") if info.compiled else is_over
    # Each is asked once: the answer of a game that breaks its contract may change.
    finished = list(map(over, states))
    if any(finished):
        raise game_is_over(f"states[{finished.index(True)}]" if len(states) > 1 else "this state")
    return info


class Tree:
    """One tree: a forest of one. Made by `search.tree(state)`."""

    def __init__(self, search: Search, state: Any, seeds: int | None = None, root_actions: Any = None) -> None:
        self._forest = Forest(search, [state], seeds, root_actions)

    @property
    def state(self) -> Any:
        """The state at the root."""
        return self._forest.state(0)

    def simulate(
        self,
        n: int | None = None,
        *,
        seconds: float | timedelta | None = None,
        add_noise: bool | None = None,
        progress: Progress | None = None,
    ) -> Tree:
        """`n` more simulations, or as many as fit into `seconds`; see `Forest.simulate`."""
        self._forest.simulate(n, seconds=seconds, add_noise=add_noise, progress=progress)
        return self

    def result(self, *, temperature: float | None = None) -> SearchResult:
        """What has been found so far."""
        return self._forest.result(0, temperature=temperature)

    def advance(
        self,
        action: int | str | chess.Move,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: int | None = None,
    ) -> None:
        """Plays `action`, a number, move text or a `chess.Move`, and keeps what is below it; see `Forest.advance`."""
        self._forest.advance(0, action, observation=observation, legal_actions=legal_actions, to_play=to_play)

    def reset(
        self, state: Any = None, *, observation: Any = None, legal_actions: Any = None, to_play: int | None = None
    ) -> None:
        """Starts again from `state`, or from another observation."""
        self._forest.reset(0, state, observation=observation, legal_actions=legal_actions, to_play=to_play)

    def restrict(self, actions: Sequence[int]) -> None:
        """Limits the root to `actions`; see `Forest.restrict`."""
        self._forest.restrict(0, actions)

    def skip_root_analysis(self) -> None:
        """Leaves out the analysis of the next root; see `Forest.skip_root_analysis`."""
        self._forest.skip_root_analysis(0)

    def depths(self) -> tuple[float, int]:
        """Returns the mean depth of the simulations and the largest depth, in plies; walks the whole tree."""
        return self.result().depths()

    def stop(self) -> None:
        """Asks a running `simulate` to come back soon; from any thread."""
        self._forest.stop()

    def trace(self) -> list[dict[str, Any]]:
        """Every simulation, in the twin's format; needs `trace=True`."""
        return self._forest.trace(0)

    def __repr__(self) -> str:
        result = self.result()
        # Without `action`: to print a tree is no reason to warn.
        return f"<Tree: {result.simulations} simulations, best {move_text(self.state, result._chosen[1])}>"


def _difference(one: Any, other: Any) -> str:
    """What tells two games apart that may have one name."""
    fields = ("name", "num_actions", "num_players", "zero_sum", "has_rewards")
    told = [name for name in fields if getattr(one, name) != getattr(other, name)]
    return ", ".join(f"{name} {getattr(one, name)} and {getattr(other, name)}" for name in told)
