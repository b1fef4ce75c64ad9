"""The interface of executors: they run actors, objects whose methods are called one after another.

An executor is a description, such as `ProcessExecutor(actors=4)`; `open` starts what it needs and returns a pool. Calls
return nothing: `poll` returns replies in the order of their arrival, and neither blocks on a single actor.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from pondertree import __version__, validation
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.match.worker_process import Terminated

#: Version of the messages between the driver and its actors.
PROTOCOL = 1
#: The index of the evaluation actor, where devices are chosen.
EVALUATION = -1
#: Default for the least seconds of silence after which an actor is replaced, and for the seconds of an evaluation.
TIMEOUT, EVALUATION_TIMEOUT = 120.0, 3600.0
#: Least seconds between two heartbeats of an actor.
HEARTBEAT_SECONDS = 1.0


class Blob(Protocol):
    """Content that is stored once and read by many actors."""

    def get(self) -> Any:
        """Returns the content."""


@dataclass(frozen=True)
class Content:
    """A blob within a process."""

    value: Any

    def get(self) -> Any:
        """Returns the content."""
        return self.value


class Actor(ABC):
    """The driver's handle of an actor."""

    pid: int | None = None
    """Its process; None in this one, and where it is not known yet."""

    @abstractmethod
    def call(self, method: str, *arguments: Any) -> None:
        """Queues a call. Arguments are small or blobs, so that this never waits for the actor."""

    @abstractmethod
    def kill(self) -> None:
        """Ends the actor at once; it sends no more replies that matter."""

    def interrupted(self) -> AbstractContextManager[bool]:
        """Returns a context in which calls of an actor in this process end early; its value is whether they do."""
        return nullcontext(False)

    def state(self) -> Any:
        """Returns the state, between two calls, of an actor in this process; None of another process."""
        return None


class Reply(NamedTuple):
    """A reply of an actor."""

    actor: Actor
    kind: str
    """"ready" (it was made), "heartbeat" (its `heartbeat` was called), "value" (of a call), "error" (raised by
    a call), or, as its last, "failed" (it could not be made) or "died"."""
    value: Any
    """The value; the exception in this process; of an actor in another process, the text of the error or reason."""


class Pool(ABC):
    """The actors of an executor."""

    @abstractmethod
    def launch(self, make: Callable[..., Any], setup: Any, *blobs: Blob) -> Actor:
        """Starts the actor `make(setup, *blobs)`; the reply is "ready" once it is made."""

    @abstractmethod
    def poll(self, timeout: float) -> list[Reply]:
        """Returns the replies so far; waits up to `timeout` seconds for the first."""

    @abstractmethod
    def put(self, value: Any) -> Blob:
        """Stores content for actors; it is freed with the returned object."""

    @abstractmethod
    def close(self) -> None:
        """Ends all actors."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Executor(ABC):
    """Where self-play runs: in this process, in other processes, or on a Ray cluster."""

    is_remote = True
    """Whether actors run in other processes."""
    actors: int = 1
    timeout: float = TIMEOUT
    evaluation_timeout: float = EVALUATION_TIMEOUT
    opening = ""
    """What `open` does, for the user, where it takes long."""

    @abstractmethod
    def open(self, scratch: Path) -> Pool:
        """Returns a new pool; temporary files are created in `scratch`."""

    def device_of(self, index: int, device: str) -> str:
        """Returns the device of actor `index`; `device` is the learner's."""
        return device

    @property
    def threads(self) -> int | None:
        """Threads of an actor; None: as the configuration says."""
        return None

    @property
    def name(self) -> str:
        """The name in messages and files."""
        return type(self).__name__


@dataclass(frozen=True, kw_only=True)
class RemoteExecutor(Executor):
    """An executor whose actors run in other processes: their number, resources and timeouts."""

    actors: int = 2
    """Number of self-play actors."""
    cpus: float = 1.0
    """CPUs of an actor: its threads for the network and the search."""
    gpus: float | None = None
    """Share of a GPU for each actor, 0 for none; None: with a learner on a GPU, actors share the GPUs, too."""
    timeout: float = TIMEOUT
    """Least seconds of silence after which an actor is replaced."""
    evaluation_timeout: float = EVALUATION_TIMEOUT
    """Seconds after which an evaluation is given up."""

    def __post_init__(self) -> None:
        validation.count(self.actors, "actors")
        for name in ("cpus", "timeout", "evaluation_timeout"):
            validation.positive_number(getattr(self, name), name)
        if self.gpus is not None:
            validation.number(self.gpus, "gpus", least=0.0)
            if self.gpus > 1.0:
                raise InvalidArgumentError(
                    f"gpus must be at most 1, the share of a GPU for each actor, not {self.gpus}"
                )

    @property
    def threads(self) -> int:
        """Threads of an actor."""
        return max(1, int(self.cpus))


def own_version() -> str:
    """Returns what the driver and its actors must have in common."""
    return f"pondertree {__version__}, protocol {PROTOCOL}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def version_error(driver: str) -> str:
    """Returns the message for a driver of another version; empty if it has this one."""
    own = own_version()
    if driver == own:
        return ""
    return f"the driver runs {driver}, but this actor {own}: install the same version on all machines"


def make_actor(version: str, packed: bytes, *blobs: Blob) -> tuple[Any, str]:
    """Makes an actor in its process: (the actor, "") or (None, the reason why it cannot be made)."""
    if refusal := version_error(version):
        return None, refusal
    try:
        make, setup = pickle.loads(packed)
        return make(setup, *blobs), ""
    except Terminated:
        raise
    except BaseException as error:
        return None, error_text(error)


def run_call(target: Any, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """Calls a method: ("value", its value) or ("error", the text of its exception, `SystemExit` included)."""
    try:
        return "value", getattr(target, method)(*arguments)
    except Terminated:
        raise
    except BaseException as error:
        return "error", error_text(error)


def error_text(error: BaseException) -> str:
    """Returns the message of an exception, with its traceback unless it is one of ours."""
    if isinstance(error, PondertreeError):
        return f"{type(error).__name__}: {error}"
    if isinstance(error, SystemExit):
        return f"the game or its module called sys.exit({error.code!r})"
    return "".join(traceback.format_exception(error)).strip()
