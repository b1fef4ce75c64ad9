"""Kills the processes of a training with several actors at random instants, and counts violations of durability.

    python scripts/kill_actors.py --kills 100
    python scripts/kill_actors.py --kills 20 --executor processes

Each instant hits a self-play actor, the evaluation actor, a worker node of Ray, the driver, or the head. The driver is
resumed whenever it ends. Every acknowledged game (one whose shard has its name) must keep its place, and none may be
stored twice; the weights of the last checkpoint must follow from the recorded order of shards. The time from the death
of an actor or node to its next shard is measured. Exit status 1 after a violation. Needs PyTorch, and Ray for `ray`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pondertree.errors import PondertreeError
from pondertree.learn.data.checkpoint import newest_intact
from pondertree.learn.data.shards import list_shards, read_shard

#: The driver, as a process of its own. It writes the measurements of its actors to a file.
DRIVER = """
import faulthandler, json, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells make programs in the background ignore it
faulthandler.register(signal.SIGUSR1, all_threads=True)
import torch
from pondertree.learn import ProcessExecutor, RayExecutor, Watcher, default_config, train
from pondertree.learn.loop import actor_learner

actor_learner.SHARD_SECONDS = actor_learner.ROUND_SECONDS = actor_learner.PUBLISH_SECONDS = 0.3
torch.set_num_threads(1)
out, address, steps, count, state = sys.argv[1:]

class Watch(Watcher):
    def show(self, status):
        line = {"actors": status.actors, "evaluation": status.evaluation_pid}
        with open(state + ".part", "w") as file:
            json.dump(line, file)
        os.replace(state + ".part", state)

    def note(self, text):
        print(text, file=sys.stderr, flush=True)

def main():
    config = default_config("tic-tac-toe", out=out, steps=int(steps), device="cpu").with_values(
        network={"blocks": 1, "channels": 8},
        self_play={"games_at_once": 16, "simulations": 8},
        replay={"window": 1000, "learned_first": 100},
        learner={"batch_size": 32, "passes": 0.5},
        evaluation={"games": 4, "simulations": 8, "uct_simulations": (20,), "every_minutes": 0.02},
        checkpoint_minutes=0.02,
    )
    executor = ProcessExecutor(actors=int(count))
    if address != "processes":
        executor = RayExecutor(address=address, actors=int(count))
    train(config, resume=True, executor=executor, watcher=Watch())

if __name__ == "__main__":
    main()
"""
#: The process that starts the nodes of a cluster: it prints the address and the processes of the head; for each line of
#: its input it adds a node and prints its raylet's process.
HOST = """
import json, sys
from ray.cluster_utils import Cluster

common = {"object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **common})
head = cluster.head_node.all_processes
print(">", json.dumps([cluster.address, [one.process.pid for kind in ("gcs_server", "raylet") for one in head[kind]]]),
      flush=True)
for _ in sys.stdin:
    node = cluster.add_node(wait=False, num_cpus=1, **common)
    print(">", node.all_processes["raylet"][0].process.pid, flush=True)
cluster.shutdown()
"""
SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0" * 64,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_worker_niceness": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",  # a driver without a head ends after this
    "RAY_health_check_failure_threshold": "3",
    "RAY_health_check_period_ms": "500",
}


class Cluster:
    """A Ray cluster of a head without CPUs for actors, and worker nodes with one each, started by another process."""

    def __init__(self, nodes: int) -> None:
        # Ray ends every process that was connected to a killed head.
        self._host = subprocess.Popen([sys.executable, "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address, self._head = self._answer()
        self._wanted = nodes
        self._workers: list[int] = []
        self.restore()

    def _answer(self) -> Any:
        assert self._host.stdout is not None
        while line := self._host.stdout.readline():
            if line.startswith(b"> "):
                return json.loads(line[2:])
        raise RuntimeError("the cluster did not start")

    def restore(self) -> None:
        """Adds nodes up to their number."""
        assert self._host.stdin is not None
        while len(self._workers) < self._wanted:
            self._host.stdin.write(b"add\n")
            self._host.stdin.flush()
            self._workers.append(self._answer())

    def kill_worker(self, numbers: random.Random) -> None:
        """Kills the raylet of a node; its workers end with it."""
        os.kill(self._workers.pop(numbers.randrange(len(self._workers))), signal.SIGKILL)

    def kill_head(self) -> None:
        """Kills the GCS and the raylet of the head, and the other nodes, which would wait for it."""
        for pid in (*self._head, *self._workers):
            os.kill(pid, signal.SIGKILL)
        self._host.kill()
        self._host.wait()

    def close(self) -> None:
        """Ends all nodes."""
        self._host.communicate()


class Session:
    """A run, killed and resumed."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self.out = folder / "run"
        self.state_file = folder / "state.json"
        self.arguments = arguments
        self.cluster: Cluster | None = None
        self.driver: subprocess.Popen[bytes] | None = None
        self.log = open(folder / "driver.log", "ab")  # noqa: SIM115 (for the life of the script)
        self.known: list[int] = []
        self.violations: list[str] = []
        self.resumed = 0

    def start(self) -> None:
        """Starts what is not running, and waits until an actor plays."""
        if self.arguments.executor == "ray":
            if self.cluster is None:
                self.cluster = Cluster(self.arguments.actors)
            self.cluster.restore()
        if self.driver is None or self.driver.poll() is not None:
            if self.driver is not None and self.driver.returncode == 0:
                self.violations.append("the run reached its limit: raise --steps")
            self.state_file.unlink(missing_ok=True)
            address = "processes" if self.cluster is None else self.cluster.address
            what = [str(self.out), address, str(self.arguments.steps), str(self.arguments.actors), str(self.state_file)]
            self.driver = subprocess.Popen([sys.executable, "-c", DRIVER, *what], stderr=self.log, stdout=self.log)
            self.resumed += 1
        deadline = time.monotonic() + 180.0
        while not self.ready_actors() and time.monotonic() < deadline:
            if self.driver.poll() is not None:
                self.violations.append(f"the driver ended with {self.driver.returncode}: see {self.log.name}")
                return
            time.sleep(0.05)
        if not self.ready_actors():
            self.violations.append("no actor plays after 180 s")

    def state(self) -> dict[str, Any]:
        """Returns what the driver wrote last."""
        try:
            found: dict[str, Any] = json.loads(self.state_file.read_text())
        except (OSError, ValueError):
            return {"actors": {}, "evaluation": None}
        return found

    def ready_actors(self) -> dict[str, tuple[int, int]]:
        """Returns (process, lease) of the ready actors."""
        actors = self.state()["actors"].items()
        return {name: (one["pid"], one["lease"]) for name, one in actors if one["ready"] and one["pid"]}

    def check(self, what: str) -> None:
        """Verifies the store after a kill."""
        try:
            found = [game.number for shard in list_shards(self.out / "games") for game in read_shard(shard)]
        except PondertreeError as error:
            self.violations.append(f"{what}: {error}")
            return
        if found[: len(self.known)] != self.known:
            self.violations.append(f"{what}: acknowledged games are missing")
        if len(set(found)) != len(found):
            self.violations.append(f"{what}: games were stored twice")
        quarantined = [name for name, one in self.state()["actors"].items() if one["quarantined"]]
        self.violations += [f"{what}: actor {name} is quarantined" for name in quarantined]
        self.known = found

    def interrupt(self) -> None:
        """Ends the driver by Ctrl-C."""
        assert self.driver is not None
        began = time.monotonic()
        self.driver.send_signal(signal.SIGINT)
        try:
            self.driver.wait(120.0)
        except subprocess.TimeoutExpired:
            self.violations.append("the driver has not ended 120 s after Ctrl-C: its log has the stack of each thread")
            self.driver.send_signal(signal.SIGUSR1)
            time.sleep(1.0)
            return
        print(f"\nthe driver ended {time.monotonic() - began:.1f} s after Ctrl-C", end="")

    def kill(self, role: str, numbers: random.Random) -> tuple[bool, dict[str, tuple[int, int]]]:
        """Kills a process of this role: (whether there was one, the ready actors before)."""
        before = self.ready_actors()
        try:
            if role == "driver" and self.driver is not None:
                self.driver.kill()
                self.driver.wait()
            elif role == "head" and self.cluster is not None:
                self.cluster.kill_head()
                self.cluster = None
                # It ends by itself, when it has noticed.
                assert self.driver is not None
                try:
                    self.driver.wait(60.0)
                except subprocess.TimeoutExpired:
                    self.driver.kill()
                    self.driver.wait()
            elif role == "node" and self.cluster is not None:
                self.cluster.kill_worker(numbers)
                self.cluster.restore()
            elif role == "evaluation":
                pid = self.state()["evaluation"]
                if pid is None:
                    return False, before
                os.kill(pid, signal.SIGKILL)
            elif role == "actor":
                actors = self.ready_actors()
                if not actors:
                    return False, before
                os.kill(actors[numbers.choice(sorted(actors))][0], signal.SIGKILL)
            else:
                return False, before
        except ProcessLookupError:
            return False, before
        return True, before


def recovery(session: Session, before: dict[str, tuple[int, int]], began: float) -> float | None:
    """Returns the seconds until a killed actor's successor has stored a shard, at most 60.

    None if no actor died, such as on a node with the evaluation actor alone, or if the driver ended.
    """
    journal = session.out / "shards.jsonl"
    size = journal.stat().st_size
    while not (dead := {int(name): lease for name, (pid, lease) in before.items() if not is_alive(pid)}):
        if time.monotonic() - began > 5.0:
            return None
        time.sleep(0.02)
    while time.monotonic() - began < 60.0:
        with open(journal, "rb") as file:
            file.seek(size)
            for line in file.read().splitlines():
                try:
                    found = json.loads(line)
                except ValueError:
                    continue
                if found.get("actor") in dead and found["lease"] > dead[found["actor"]]:
                    return time.monotonic() - began
        if session.driver is None or session.driver.poll() is not None:
            return None
        time.sleep(0.05)
    return 60.0


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--executor", choices=("ray", "processes"), default="ray")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1_000_000, help="optimiser steps, more than the script needs")
    parser.add_argument("--longest", type=float, default=1.0, help="seconds until a kill, at most")
    parser.add_argument("--minutes", type=float, default=1000.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--roles", default="actor,evaluation,driver,node,head", help="what is killed")
    arguments = parser.parse_args()
    os.environ.update(SETTINGS)
    numbers = random.Random(arguments.seed)
    roles = ["actor"] * 5 + ["evaluation"] * 2 + ["driver"] * 2
    roles += ["node"] * 2 + ["head"] if arguments.executor == "ray" else []
    roles = [role for role in roles if role in arguments.roles.split(",")]
    kills: Counter[str] = Counter()
    times: dict[str, list[float]] = {}
    ends = time.monotonic() + 60.0 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder), arguments)
        try:
            while kills.total() < arguments.kills and time.monotonic() < ends and not session.violations:
                session.start()
                if session.violations:
                    break
                time.sleep(numbers.uniform(0.0, arguments.longest))
                role = numbers.choice(roles)
                began = time.monotonic()
                was_killed, before = session.kill(role, numbers)
                if not was_killed:
                    continue
                kills[role] += 1
                if role in ("actor", "node"):
                    passed = recovery(session, before, began)
                    if passed is not None:
                        times.setdefault(role, []).append(passed)
                session.check(f"kill {kills.total()} ({role})")
                print(f"\rkill {kills.total()}: {role}, {len(session.known)} games    ", end="", flush=True)
            if not session.violations:
                session.start()
            if session.driver is not None and session.driver.poll() is None:
                session.interrupt()
            session.check("at the end")
            session.violations += check_order(session.out)
        finally:
            if session.driver is not None and session.driver.poll() is None:
                session.driver.kill()
                session.driver.wait()
            if session.cluster is not None:
                session.cluster.close()
            log = (Path(folder) / "driver.log").read_text(errors="replace").splitlines()
    counted = ", ".join(f"{count} {role}" for role, count in kills.most_common())
    print(
        f"\n{kills.total()} kills ({counted}), {session.resumed - 1} resumptions of the driver, "
        f"{len(session.known)} games, {len(session.violations)} violations"
    )
    for role, found in times.items():
        print(
            f"kill ({role}) to the next shard of the dead actor's successor: median {statistics.median(found):.1f} s, "
            f"most {max(found):.1f} s, {sum(one > 10.0 for one in found)} of {len(found)} above 10 s"
        )
    for text in session.violations:
        print(text)
    if session.violations:
        print("\n".join(log[-60:]))
    return 1 if session.violations else 0


def check_order(out: Path) -> list[str]:
    """Returns a violation if the weights do not follow from the recorded order."""
    import torch

    from pondertree.learn import relearn

    torch.set_num_threads(1)
    found = newest_intact(out / "checkpoints")
    if found is None:
        return []
    try:
        tensors = relearn(out).state_dict()
    except PondertreeError as error:
        return [f"the order of shards cannot be replayed: {error}"]
    same = all(bool((found[1].tensors[name] == tensor).all()) for name, tensor in tensors.items())
    return [] if same else ["the weights do not follow from the recorded order of shards"]


if __name__ == "__main__":
    sys.exit(main())
