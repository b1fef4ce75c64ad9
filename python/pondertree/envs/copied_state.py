"""What the states of environments have in common that a search copies, of whatever library they are."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NoReturn, Protocol, Self, TypeVar

from pondertree.envs.generators import RandomDrawError
from pondertree.envs.gymnasium import described
from pondertree.envs.methods import Given
from pondertree.envs.snapshots import Snapshots
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError, SnapshotError, UsageError
from pondertree.game import CHANCE
from pondertree.games.chance import EqualOutcomes
from pondertree.random import fold
from pondertree.validation import shown

#: Samples of the random numbers of a step, each an outcome of its chance node.
SAMPLES: Final = 128


class SharedData(Protocol):
    """What the states of an environment share."""

    name: str
    snapshots: Snapshots
    discount: float
    outcomes: EqualOutcomes
    numbers: list[int]
    """The outcomes of a chance node."""


class CopiedState:
    """A state of an environment that a search copies, with the interface of a state of a game (`pondertree.Game`)."""

    __slots__ = ("_env", "_key", "_pending", "_token", "is_terminal", "seed", "steps", "to_play")

    adapter = ""
    """The function that gives the state, in messages."""

    _game: Any
    """`SharedData`, and what the library needs."""
    _legal: list[int]
    """The legal actions; states share them, so that they must not be changed."""
    _token: Any
    """The snapshot; None at the end, and in `in_place()`."""
    _env: Any
    """The environment that `play` steps, in `in_place()`."""
    _key: int
    """The key of the random numbers below."""
    _pending: int | None
    """The action whose chance node this is."""
    is_terminal: bool
    to_play: int
    steps: int
    """Steps since the state that the adapter gave."""
    seed: int
    """The seed of the samples of random steps, given or drawn."""

    @property
    def discount(self) -> float:
        """Discount of each action, which searches take."""
        return float(self._game.discount)

    @property
    def snapshot_method(self) -> str:
        """How the environment is copied: "given", "ale", "mujoco", "copy" or "replay"."""
        return str(self._game.snapshots.method)

    @property
    def snapshot_cost(self) -> float:
        """Seconds per copy, as measured by the probe."""
        return float(self._game.snapshots.cost)

    @property
    def is_random(self) -> bool:
        """Whether a chance node follows every action, since steps of the environment are random."""
        return False

    def legal_actions(self) -> list[int]:
        """Returns the actions that the mask allows; all without a mask."""
        return self._legal.copy()

    def play(self, action: int) -> Self:
        """Returns the state after an action."""
        self._check(action)
        # With random=False the numbers of a step are fixed, but not those that the environment itself will draw.
        return self._step(action, fold(self._key, action) if self._game.snapshots.is_random else None)

    def in_place(self) -> Self:
        """Returns this state for one line of play: `play` steps one environment, and only the newest state plays on.

        It saves the copies of a playout.
        """
        if self.is_terminal:
            return self
        snapshots = self._game.snapshots
        new = self._equal_state()
        with snapshots.lock:
            new._env, new._token = snapshots.live(self._take()), None
        return new

    def action_to_string(self, action: int) -> str:
        """Returns the environment's own action as text; for an outcome of chance its number."""
        return str(action if self._pending is not None else self.environment_action(action))

    def environment_action(self, action: int) -> Any:
        """Returns what the environment's `step` takes for an action of a search."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a value, as the states of all games

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            f"a state of {self._game.name} cannot be pickled, nor a tree or result with it, since it holds a copy of "
            "the environment: save a tree by tree.save(path), and pickle numbers such as result.visits"
        )

    def _equal_state(self) -> Self:
        """Returns an equal state."""
        raise NotImplementedError

    def _step(self, action: int, key: int | None) -> Self:
        """Returns the state after a step, whose random numbers have the key."""
        with self._game.snapshots.lock:
            return self._stepped(action, key)

    def _stepped(self, action: int, key: int | None) -> Self:
        """Does as `_step`, which holds the lock."""
        raise NotImplementedError

    def _check(self, action: int) -> None:
        if action not in self._legal:
            raise InvalidActionError(
                f"{self._game.name}: action {action} is not allowed here: allowed are {shown(self._legal)}"
            )

    def _take(self) -> Any:
        """Returns an environment in this state: a copy, or that of `in_place()`, which is taken from the state."""
        snapshots = self._game.snapshots
        if self._token is None:
            env, self._env = self._env, None
            if env is None:
                raise UsageError("a state of in_place() plays once")
            return snapshots.resumed(env)
        try:
            return snapshots.restore(self._token)
        except Exception as error:
            raise GameContractError(f"{self._game.name} could not be copied: {described(error)}") from error

    def _perform(self, env: Any, action: Any, key: int | None, call: str) -> Any:
        """Returns the result of a step, which is `call` in messages."""
        snapshots = self._game.snapshots
        try:
            return snapshots.perform(env, action, key)
        except RandomDrawError as error:
            refute(snapshots)
            raise GameContractError(
                f"{call} drew a random number, although no step of the probe did: "
                f"{self.adapter}(..., random=True) makes every step random"
            ) from error
        except GameContractError as error:
            raise GameContractError(f"{call}: {error}") from error
        except Exception as error:
            raise GameContractError(f"{call} failed: {described(error)}") from error


class RandomSteps(CopiedState):
    """A state of an environment whose steps are random: after an action comes a chance node.

    Its outcomes are equally likely samples of the random numbers of the step. They are functions of the seed and the
    outcomes so far, and independent of the numbers that the environment itself will draw. All actions of a state have
    the same samples (common random numbers), so that they are compared under equal random numbers.
    """

    __slots__ = ()

    @property
    def is_random(self) -> bool:
        """Whether a chance node follows every action, since steps of the environment are random."""
        return True

    def chance_outcomes(self) -> EqualOutcomes:
        """Returns the samples of a chance node with their probabilities."""
        outcomes: EqualOutcomes = self._game.outcomes
        return outcomes

    def legal_actions(self) -> list[int]:
        """Returns the actions that the mask allows; at a chance node its samples."""
        legal: list[int] = self._legal if self._pending is None else self._game.numbers
        return legal.copy()

    def play(self, action: int) -> Self:
        """Returns the chance node after an action, or the state after a sample."""
        if self._pending is not None:
            if not 0 <= action < len(self._game.numbers):
                raise InvalidActionError(
                    f"{self._game.name}: outcome {action} is not from 0 to {len(self._game.numbers) - 1}"
                )
            return self._step(self._pending, fold(self._key, action))
        self._check(action)
        if self._token is None and self._env is None:
            raise UsageError("a state of in_place() plays once")
        new = self._equal_state()
        self._env = None
        new._pending, new.to_play = action, CHANCE
        return new


Found = TypeVar("Found")

#: Snapshots whose finding that no step is random was wrong.
_refuted: weakref.WeakSet[Snapshots] = weakref.WeakSet()


def refute(snapshots: Snapshots) -> None:
    """Marks snapshots whose findings were wrong, so that the environment is probed again."""
    _refuted.add(snapshots)


class ProbeCache(Generic[Found]):
    """What was found by probing environments, which takes longer than short searches.

    It does not keep environments alive: what was found by a user's functions is forgotten where these may hold one.
    """

    def __init__(self, snapshots_of: Callable[[Found], Snapshots]) -> None:
        self._snapshots_of = snapshots_of
        self._found: weakref.WeakKeyDictionary[Any, tuple[Any, Found]] = weakref.WeakKeyDictionary()

    def get(self, env: Any, options: Any) -> Found | None:
        """Returns what was found with the same options, if it is valid."""
        with contextlib.suppress(KeyError, TypeError):  # environments without a hash are probed each time
            known, found = self._found[env]
            if known == options and self._snapshots_of(found) not in _refuted:
                return found
        return None

    def put(self, env: Any, options: Any, found: Found, given: Given | None) -> None:
        """Keeps what was found; a replay belongs to one episode."""
        if self._snapshots_of(found).method == "replay" or any(map(_may_hold, given or ())):
            return
        with contextlib.suppress(TypeError):
            self._found[env] = options, found


def _may_hold(function: Any) -> bool:
    """Whether a function may hold an environment: it is a method, has a closure, or is no plain function."""
    return not inspect.isfunction(function) or function.__closure__ is not None


def check_given(snapshot: Any) -> None:
    """Raises `InvalidArgumentError` unless the argument `snapshot` is None or two functions."""
    if snapshot is not None and not (
        isinstance(snapshot, tuple) and len(snapshot) == 2 and callable(snapshot[0]) and callable(snapshot[1])
    ):
        raise InvalidArgumentError(
            "snapshot must be two functions, (save(env) -> token, restore(env, token)), not " + shown(snapshot)
        )


class Faults:
    """Notes the first violation of an environment's contract in a probe, which no way of copying would help."""

    def __init__(self) -> None:
        self._first: GameContractError | None = None

    def noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function whose `GameContractError` is noted."""

        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except GameContractError as error:
                self._first = self._first or error
                raise

        return call

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Raises the violation in the place of a `SnapshotError`."""
        try:
            yield
        except SnapshotError as error:
            if self._first is not None:
                raise self._first from error
            raise
