"""Training on a local Ray cluster of several nodes: equality, killed actors and nodes, safe defaults."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.actors import Observer, kill, leftovers, make_counter, quick, run_observed
from tests.support.learning import digest, numbers_of, small

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.errors import InvalidArgumentError, MissingExtraError, UsageError
from pondertree.learn import RayExecutor, train

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of a head without CPUs for actors and a worker node, which this process has joined."""
    settings = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0" * 64,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # loopback alone
        "RAY_worker_niceness": "0",  # otherwise actors starve beside other tests
    }
    with pytest.MonkeyPatch.context() as patch:
        # Ray reads these when it is imported, and its processes inherit them.
        for name, value in settings.items():
            patch.setenv(name, value)
        ray = pytest.importorskip("ray")
        from ray.cluster_utils import Cluster

        found = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20},
        )
        found.add_node(num_cpus=2, object_store_memory=80 << 20)
        ray.init(address=found.address, log_to_driver=False, logging_level="ERROR")
        yield found
        ray.shutdown()
        found.shutdown()


def test_one_synchronous_ray_actor_equals_training_in_process_bit_for_bit(cluster: Any, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    train(small(here, steps=16))
    train(small(there, steps=16, side_by_side=False), executor=RayExecutor(address=cluster.address, actors=1))
    assert numbers_of(here) == numbers_of(there)
    for name in ("training.safetensors", "player.safetensors", "games.npz"):
        assert digest(here, name) == digest(there, name)


def test_killed_ray_actor_and_node_are_replaced(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch, 0.2)
    node = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)

    class Ends(Observer):
        """Kills an actor, then a node with its actors, and ends when all play again."""

        stage = 0

        def show(self, status: Any) -> None:
            super().show(status)
            playing = all(one["ready"] for one in status.actors.values())
            if not playing or status.counters.round < 2:
                return
            if self.stage == 0:
                kill(self.supervisor.slots[0].actor.pid)
            elif self.stage == 1:
                cluster.remove_node(node, allow_graceful=False)
                self.lost_at = len(self.statuses)
            elif len(self.statuses) > self.lost_at + 3:
                raise KeyboardInterrupt
            self.stage = min(self.stage + 1, 2)

    observer = Ends()
    run_observed(small(tmp_path, steps=100_000), observer, executor=RayExecutor(address=cluster.address, actors=2))
    assert any("actor 0 died and is replaced" in note for note in observer.notes)
    numbers = numbers_of(tmp_path)
    assert len(set(numbers)) == len(numbers) > 0
    assert leftovers(tmp_path) == []


def test_ray_actor_sends_heartbeats_during_a_call(cluster: Any, tmp_path: Path) -> None:
    with RayExecutor(address=cluster.address, actors=1).open(tmp_path) as pool:
        actor = pool.launch(make_counter, SimpleNamespace(device="cpu", number=3))
        actor.call("add_slowly", 4)
        kinds: list[str] = []
        deadline = time.monotonic() + 120.0
        while "value" not in kinds and time.monotonic() < deadline:
            for reply in pool.poll(0.1):
                assert reply.actor is actor
                kinds.append(reply.kind)
                value = reply.value
        assert kinds[0] == "ready"
        assert kinds[-1] == "value"
        assert value == 7
        assert 2 <= kinds.count("heartbeat") <= 5  # at most one a second
        os.kill(actor.pid or 0, signal.SIGKILL)
        actor.call("add", 1)
        while kinds[-1] in ("value", "heartbeat") and time.monotonic() < deadline:
            kinds += [reply.kind for reply in pool.poll(0.1)]
        assert kinds[-1] == "died"


def test_actors_keep_off_the_learner_s_node(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray
    from ray.util import state  # noqa: F401 (the dashboard is off: nodes are read from the actor itself)

    quick(monkeypatch)
    own = ray.get_runtime_context().get_node_id()
    pids: list[int] = []

    def place(supervisor: Any) -> None:
        from ray._private.state import actors

        alive = [one for one in actors().values() if one["State"] == "ALIVE" and one["ActorClassName"] == "ActorHost"]
        pids.extend(one["Pid"] for one in alive if one["Address"]["NodeID"] == own)
        assert alive

    executor = RayExecutor(address=cluster.address, actors=1, exclude_driver_node=True)
    run_observed(small(tmp_path, steps=30), Observer(place, after=1), executor=executor)
    assert pids == []


LOCAL = """
import sys
from pathlib import Path
from tests.support.learning import small
from pondertree.learn import RayExecutor, Watcher, train

class Waits(Watcher):
    def show(self, status):
        print("playing", status.counters.games, flush=True)

if __name__ == "__main__":
    train(small(Path(sys.argv[1]), steps=100_000), executor=RayExecutor(actors=1), watcher=Waits())
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc")
def test_local_cluster_listens_on_loopback_with_a_token_and_ends_with_its_driver(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", LOCAL, str(out)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"playing")
        family = descendants(process.pid)
        assert len(family) > 3
        assert listening_beyond_loopback(family) == []
        modes = [environment_of(pid) for pid in family]
        assert any(b"RAY_AUTH_MODE=token" in mode for mode in modes)
        assert not (tmp_path / "home" / ".ray").exists()
        acknowledged = numbers_of(out)
        names = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in family if is_alive(pid)}
        family = list(names)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    # Agents of Ray, which run no code of ours, may outlive their node for some minutes.
    ours = [pid for pid in family if b"Agent" not in names[pid]]
    assert any(b"ActorHost" in names[pid] for pid in ours)
    deadline = time.monotonic() + 60.0
    while any(is_alive(pid) for pid in ours) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [pid for pid in ours if is_alive(pid)]
    for pid in family:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes() == names[pid]:
                os.kill(pid, signal.SIGKILL)
    # The driver was killed: what it had stored is still there, once.
    assert numbers_of(out)[: len(acknowledged)] == acknowledged
    result = train(small(out, steps=1), resume=True)
    assert len(set(numbers_of(out))) == len(numbers_of(out)) == result.games


def descendants(pid: int) -> list[int]:
    """Returns the processes below one."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(parts[1]), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def listening_beyond_loopback(pids: list[int]) -> list[str]:
    """Returns the addresses other than loopback on which processes listen."""
    inodes = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(os.readlink(descriptor))
            except OSError:
                continue
    loopback = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes and not fields[1].startswith(loopback):
                found.append(fields[1])
    return found


def test_invalid_ray_options_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Ray Client addresses are not supported"):
        RayExecutor(address="ray://127.0.0.1:10001")
    with pytest.raises(InvalidArgumentError, match="exclude_driver_node needs a cluster of several nodes"):
        RayExecutor(exclude_driver_node=True)


def test_missing_or_old_ray_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Old:
        __version__ = "2.51.1"

    monkeypatch.setitem(sys.modules, "ray", Old)
    with pytest.raises(UsageError, match=r"needs version 2\.52 or newer, not 2\.51\.1.*CVE-2025-62593"):
        train(small(tmp_path, steps=1), executor="ray")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="ray"):
        train(small(tmp_path, steps=1), executor="ray")
    assert not list(tmp_path.iterdir())


def test_package_and_its_command_import_no_ray() -> None:
    code = "import sys, pondertree, pondertree.cli.train, pondertree.learn.executors; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
