"""An executor with an actor of Ray for each actor. Ray is imported when it is opened."""

from __future__ import annotations

import math
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError, StorageError, UsageError
from pondertree.learn.executors.base import (
    EVALUATION,
    HEARTBEAT_SECONDS,
    Actor,
    Blob,
    Pool,
    RemoteExecutor,
    Reply,
    make_actor,
    own_version,
    run_call,
)
from pondertree.optional import require

#: The oldest supported version: before it, a page in a browser could run code on a cluster (CVE-2025-62593).
OLDEST_RAY = (2, 52)
#: The environment variable that makes Ray listen on loopback alone if it is 0.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
#: Size of the object store of a local cluster in bytes: it holds weights and the shards in flight.
OBJECT_STORE_BYTES = 512 << 20
#: Seconds after which a cluster that does not answer is given up; Ray itself tries for many minutes.
JOIN_TIMEOUT = 15.0
#: Ray's group of the calls that wait for heartbeats, beside those of the actor.
HEARTBEATS = "heartbeats"
#: With more actors than this, heartbeats are rarer, in proportion.
HEARTBEAT_ACTORS = 16
#: Environment variables that were set for a local cluster of this process, and its address while it runs.
_settings: dict[str, str] = {}
_local: list[str] = []


@dataclass(frozen=True, kw_only=True)
class RayExecutor(RemoteExecutor):
    """Self-play actors on a Ray cluster. By default, with a learner on a GPU, they share all GPUs equally."""

    address: str = "local"
    """"local" starts a cluster on this machine, "auto" joins the one that runs here; or the address of one."""
    exclude_driver_node: bool = False
    """Keep actors off the node of the driver, whose CPUs and GPUs are the learner's."""
    object_store: int = OBJECT_STORE_BYTES
    """Size of the object store of a local cluster in bytes; more is spilled to the scratch folder of the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.count(self.object_store, "object_store")
        if not isinstance(self.address, str) or not self.address or self.address.startswith("ray://"):
            raise InvalidArgumentError(
                f"address must be local, auto, or HOST:PORT of a cluster whose node this machine is, "
                f"not {validation.shown(self.address)} (Ray Client addresses are not supported)"
            )
        if self.exclude_driver_node and self.address == "local":
            raise InvalidArgumentError(
                "exclude_driver_node needs a cluster of several nodes: a local one has only this machine"
            )

    @property
    def opening(self) -> str:  # type: ignore[override]
        """What `open` does."""
        return "starting a Ray cluster" if self.address == "local" else f"joining the Ray cluster {self.address!r}"

    def open(self, scratch: Path) -> Pool:
        """Joins the cluster, or starts one."""
        return RayPool(self, scratch)

    def device_of(self, index: int, device: str) -> str:
        """Returns the device of an actor. Ray shows an actor only its own GPU."""
        if index == EVALUATION:
            return "cuda:0" if self.gpus is None and device.startswith("cuda") else "cpu"
        return "cuda:0" if (device.startswith("cuda") and self.gpus is None) or self.gpus else "cpu"


class ActorHost:
    """The class of Ray's actors: makes the object and calls its methods; exceptions are replies."""

    def __init__(self, version: str, packed: bytes, *blobs: Blob) -> None:
        self._target, self._error = make_actor(version, packed, *blobs)
        self._proceeds = threading.Event()
        if hasattr(self._target, "heartbeat"):
            self._target.heartbeat = self._proceeds.set

    def begin(self) -> tuple[str, Any]:
        """Returns ("ready", its process and whether it has heartbeats) or ("failed", reason)."""
        if self._error:
            return "failed", self._error
        return "ready", (os.getpid(), hasattr(self._target, "heartbeat"))

    def heartbeat(self, seconds: float) -> tuple[str, Any]:
        """Returns ("heartbeat", None) once the running call proceeds, after `seconds` at least."""
        time.sleep(seconds)
        self._proceeds.wait()
        self._proceeds.clear()
        return "heartbeat", None

    def call(self, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
        """Returns ("value", value) or ("error", text)."""
        return run_call(self._target, method, arguments)


class RayBlob:
    """A blob in Ray's object store."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def get(self) -> Any:
        """Fetches the content."""
        import ray

        return ray.get(self._reference)


class RayActor(Actor):
    """The handle of an actor of Ray."""

    def __init__(self, pool: RayPool, handle: Any) -> None:
        self._pool = pool
        self.handle = handle

    def call(self, method: str, *arguments: Any) -> None:
        """Submits a call."""
        self._pool.submit(self, "call", method, arguments)

    def kill(self) -> None:
        """Kills the actor."""
        self._pool.forget(self)
        self._pool.discard(self)
        with suppress(Exception):
            self._pool.ray.kill(self.handle, no_restart=True)


class RayPool(Pool):
    """Actors of Ray. They are never restarted by Ray: the driver launches another one, under another lease."""

    def __init__(self, executor: RayExecutor, scratch: Path) -> None:
        self.ray = import_ray(executor.address)
        self._executor = executor
        self._owns_cluster = not self.ray.is_initialized()
        if self._owns_cluster:
            try:
                connect(self.ray, executor, scratch)
            except BaseException:
                restore_environment()
                raise
        else:
            check_joined(self.ray, executor.address)
        self._actors: set[RayActor] = set()
        self._waiting: dict[Any, RayActor] = {}
        self._replies: list[Reply] = []

    def launch(self, make: Callable[..., Any], setup: Any, *blobs: Blob) -> Actor:
        """Creates an actor, which starts once the cluster has its resources."""
        options: dict[str, Any] = {
            "num_cpus": self._executor.cpus,
            "num_gpus": self._gpu_share(setup.device),
            "max_restarts": 0,
            "max_task_retries": 0,
            "concurrency_groups": {HEARTBEATS: 1},
        }
        if self._executor.exclude_driver_node:
            options["label_selector"] = {"ray.io/node-id": f"!{self.ray.get_runtime_context().get_node_id()}"}
        packed = self.ray.cloudpickle.dumps((make, setup))
        handle = self.ray.remote(**options)(ActorHost).remote(own_version(), packed, *blobs)
        actor = RayActor(self, handle)
        self._actors.add(actor)
        self.submit(actor, "begin")
        return actor

    def _gpu_share(self, device: str) -> float:
        """Returns the share of a GPU of an actor on a device; the default distributes all actors over the GPUs."""
        if device == "cpu":
            return 0.0
        if self._executor.gpus is not None:
            return self._executor.gpus
        own = self.ray.get_runtime_context().get_node_id()
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        if self._executor.exclude_driver_node:
            nodes = [node for node in nodes if node["NodeID"] != own]
        return equal_share(self._executor.actors + 1, sum(int(node["Resources"].get("GPU", 0)) for node in nodes))

    def submit(self, actor: RayActor, method: str, *arguments: Any) -> None:
        """Submits a call of the host."""
        try:
            call = getattr(actor.handle, method)
            if method == "heartbeat":
                call = call.options(concurrency_group=HEARTBEATS)
            reference = call.remote(*arguments)
        except Exception as error:  # Ray may know already that it is dead
            self._replies.append(Reply(actor, "died", _reason(error)))
            return
        self._waiting[reference] = actor

    def discard(self, actor: RayActor) -> None:
        """Drops a killed actor."""
        self._actors.discard(actor)

    def forget(self, actor: RayActor) -> None:
        """Drops the outstanding calls of an actor."""
        self._waiting = {reference: other for reference, other in self._waiting.items() if other is not actor}

    def poll(self, timeout: float) -> list[Reply]:
        """Returns the replies so far."""
        found, self._replies = self._replies, []
        if not self._waiting:
            if not found:
                time.sleep(min(timeout, 0.05))
            return found
        references = list(self._waiting)
        ready, _ = self.ray.wait(references, num_returns=1, timeout=0.0 if found else timeout)
        if ready:
            ready, _ = self.ray.wait(references, num_returns=len(references), timeout=0.0)
        for reference in ready:
            actor = self._waiting.pop(reference, None)
            if actor is None:  # forgotten when an earlier call of its actor failed
                continue
            try:
                kind, value = self.ray.get(reference, timeout=self._executor.timeout)
            except Exception as error:  # the actor or its node died, or the reply was lost
                self.forget(actor)
                found.append(Reply(actor, "died", _reason(error)))
                continue
            has_heartbeats = kind == "heartbeat"
            if kind == "ready":
                actor.pid, has_heartbeats = value
            if has_heartbeats:
                seconds = HEARTBEAT_SECONDS * max(1.0, self._executor.actors / HEARTBEAT_ACTORS)
                self.submit(actor, "heartbeat", seconds)
            found.append(Reply(actor, kind, value))
        return found

    def put(self, value: Any) -> RayBlob:
        """Puts content into the object store."""
        try:
            return RayBlob(self.ray.put(value))
        except Exception as error:  # full, or the node is gone
            raise StorageError(f"Ray's object store takes no more: {_reason(error)}; stored games are intact") from None

    def close(self) -> None:
        """Ends all actors, and the cluster if this started it."""
        for actor in list(self._actors):
            actor.kill()
        if self._owns_cluster:
            self.ray.shutdown()
            _local.clear()
            restore_environment()


def import_ray(address: str) -> Any:
    """Returns Ray; raises `MissingExtraError` if it is missing, `UsageError` if it is too old."""
    # No statistics are sent, unless the user has allowed it.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local" and "ray" not in sys.modules:
        # Ray reads these when it is imported. A local cluster listens on loopback alone, as on macOS and Windows, and
        # has a token of its own: no file is written to the home folder. By default, workers have the lowest priority
        # but four, and starve beside other programs.
        wanted = {LOOPBACK: "0", "RAY_worker_niceness": "0"}
        if "RAY_AUTH_MODE" not in os.environ:
            wanted |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        _settings.update({name: value for name, value in wanted.items() if name not in os.environ})
    if address == "local":
        os.environ.update({name: value for name, value in _settings.items() if name not in os.environ})
    ray = require("ray", "ray", "training on Ray")
    if tuple(int(part) for part in ray.__version__.split(".")[:2]) < OLDEST_RAY:
        raise UsageError(
            f"training on Ray needs version {OLDEST_RAY[0]}.{OLDEST_RAY[1]} or newer, not {ray.__version__}: "
            "older ones let a web page run code on the cluster (CVE-2025-62593)"
        )
    if address == "local" and not ray.is_initialized() and os.environ.get(LOOPBACK) != "0":
        raise UsageError(
            "ray was imported before the training, so that a local cluster would listen on every network: import it "
            f"later, set {LOOPBACK}=0 before, or start a cluster and give its address"
        )
    return ray


def restore_environment() -> None:
    """Removes the variables of a local cluster from the environment: other clusters have their own."""
    for name, value in _settings.items():
        if os.environ.get(name) == value:
            del os.environ[name]


def connect(ray: Any, executor: RayExecutor, scratch: Path) -> None:
    """Starts a local cluster that listens on loopback alone and wants a token, or joins a running one."""
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if executor.address != "local":
        join(lambda: ray.init(address=executor.address, **common), executor.address)
        return
    spill = scratch / "spill"
    spill.mkdir(parents=True, exist_ok=True)
    with own_signals():
        try:
            ray.init(
                address="local",
                include_dashboard=False,
                num_cpus=math.ceil((executor.actors + 1) * executor.cpus),  # one is the evaluation actor's
                object_store_memory=max(executor.object_store, 80 << 20),  # Ray's least
                object_spilling_directory=str(spill.absolute()),
                **common,
            )
        except BaseException as error:
            with suppress(Exception):
                ray.shutdown()
            if "AF_UNIX" in str(error):
                name = "RAY_TMPDIR" if "RAY_TMPDIR" in os.environ else "TMPDIR"
                raise UsageError(
                    f"ray: {name} is too long for the names of Ray's sockets, which have at most 107 bytes: set it to "
                    f"a shorter folder, such as {name}=/tmp, not {os.environ.get(name, '')!r}"
                ) from None
            raise
    _local[:] = [str(ray.get_runtime_context().gcs_address)]


def join(connect: Callable[[], object], address: str, timeout: float = JOIN_TIMEOUT) -> None:
    """Joins a cluster in a thread: while Ray connects, it can be neither interrupted nor limited in time."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            connect()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="join", daemon=True)
    thread.start()
    ends = time.monotonic() + timeout
    while thread.is_alive() and time.monotonic() < ends:
        thread.join(0.1)
    if thread.is_alive():
        reason = f"it does not answer within {timeout:g} s: is the address right, and does it run?"
    elif errors:
        reason = next(iter(str(errors[0]).strip().splitlines()), type(errors[0]).__name__)
    else:
        return
    raise UsageError(f"ray: the cluster {address!r} cannot be joined: {reason}")


@contextmanager
def own_signals() -> Iterator[None]:
    """Keeps the handler of SIGTERM, which Ray replaces by one that calls `sys.exit`: that is an interrupt within."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGTERM, handler)


def check_joined(ray: Any, address: str) -> None:
    """Raises `UsageError` if this process has joined another cluster than that of `address`."""
    joined = str(ray.get_runtime_context().gcs_address)
    if address == joined or address == "auto" or (address == "local" and _local == [joined]):
        return
    raise UsageError(
        f"this process has joined the Ray cluster at {joined}, but address is {address!r}: give {joined!r} or 'auto' "
        "to use that one, or call ray.shutdown() before"
    )


def equal_share(actors: int, gpus: int) -> float:
    """Returns the share of a GPU with which `actors` fit on `gpus`, rounded down to the precision of Ray."""
    if gpus < 1:
        raise InvalidArgumentError(
            "gpus must be given: the learner has a GPU, but the cluster has none for actors (0: actors on CPUs)"
        )
    return math.floor(10_000 / math.ceil(actors / gpus)) / 10_000


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)}"[:600]
