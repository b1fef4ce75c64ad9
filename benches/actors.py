"""Self-play on several actors: scaling, Ray against processes, the driver's limit, and its memory.

    python benches/actors.py scaling --counts 1,2,4,8,14 --gpu-counts 1,2,4
    python benches/actors.py compare --counts 1,2
    python benches/actors.py limit --actors 256
    python benches/actors.py memory --minutes 30

The learner is idle, except in `memory`, which trains. Rates are searched positions per second of wall time, after a
warm-up; efficiency is the rate over that of the first count and the number of actors. Needs PyTorch and safetensors.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pondertree.learn import default_config
from pondertree.learn.actors import ActorSetup, Shard, Supervisor, make_self_play_actor
from pondertree.learn.config import Config, GameSpec, game_spec
from pondertree.learn.data import EncodedGames, GameStore, Origin
from pondertree.learn.executors import Actor, Blob, Executor, Pool, ProcessExecutor, RayExecutor, Reply
from pondertree.learn.trainer import algorithm_of
from pondertree.networks import player_bytes, player_of

#: Efficiency of 14 CPU actors, and Ray over processes.
LINEAR_BAR, RAY_BAR = 0.85, 0.95
SHARD_SECONDS = 1.0


class Driver:
    """The driver's part without a learner: stores shards and adds them to the replay buffer."""

    def __init__(self, config: Config, folder: Path) -> None:
        self.config = config
        self.spec: GameSpec = game_spec(config.game)
        self.store = GameStore(folder, spec=self.spec)
        self.replay = algorithm_of(config).replay(self.spec, config)
        self.shards = self.games = self.bytes = self.positions = 0

    def weights(self) -> bytes:
        """Returns the content of a player file with fresh weights."""
        trainer = algorithm_of(self.config).trainer(self.spec, self.config, torch.device("cpu"))
        return player_bytes(player_of(trainer.network), self.spec.metadata(0, 0))

    def take(self, shard: Shard) -> None:
        """Stores a shard, as a training does."""
        assert isinstance(shard.games, EncodedGames)
        games = shard.games.decode(self.spec)
        self.replay.add(self.store.append(games, shard.games, lambda: Origin(*shard.id, shard.version, 0, 0.0)))
        self.shards += 1
        self.games += shard.count
        self.bytes += len(shard.games.content)
        self.positions += shard.moves * self.config.self_play.games_at_once


@contextmanager
def supervised(executor: Executor, driver: Driver, device: str, scratch: Path) -> Iterator[Supervisor]:
    """Yields the supervisor of running actors."""
    setup = ActorSetup(driver.config, None, device, paths=tuple(sys.path))
    with executor.open(scratch) as pool:
        report = lambda text: print(text, file=sys.stderr)  # noqa: E731
        found = Supervisor(executor, pool, make_self_play_actor, setup, report, is_synchronous=False, max_lag=1)
        found.start([], frozenset())
        found.publish(0, driver.weights())
        yield found


def rate(executor: Executor, config: Config, device: str, seconds: float) -> dict[str, float]:
    """Returns the rates of actors after each has sent two shards."""
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(config, Path(folder, "games"))
        began = time.monotonic()
        with supervised(executor, driver, device, Path(folder, "scratch")) as supervisor:
            seen = dict.fromkeys(range(executor.actors), 0)
            while min(seen.values()) < 2:
                for shard in supervisor.poll(SHARD_SECONDS, wait=True):
                    seen[shard.id.actor] += 1
            started, cpu = time.monotonic(), time.process_time()
            played = games = busy = used = 0.0
            while time.monotonic() - started < seconds:
                for shard in supervisor.poll(SHARD_SECONDS, wait=True):
                    driver.take(shard)
                    played += shard.moves * config.self_play.games_at_once
                    games += shard.count
                    busy += shard.seconds
                    used += shard.cpu_seconds
            passed = time.monotonic() - started
    return {
        "positions_per_second": played / passed,
        "games_per_second": games / passed,
        "utilisation": busy / passed / executor.actors,
        "positions_per_cpu_second": played / used,
        "driver_cpu": (time.process_time() - cpu) / passed,
        "start_seconds": started - began,
    }


def make_config(game: str, device: str) -> Config:
    """Returns the default configuration of a game on a device."""
    config = default_config(game, device=device)
    return config.with_values(replay={"window": min(config.replay.window, 200_000), "learned_first": 1000})


def scaling(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures the process executor by the number of actors, on CPUs and on one GPU."""
    found = []
    for device, counts in (("cpu", arguments.counts), ("cuda:0", arguments.gpu_counts)):
        config = make_config(arguments.game, device)
        if counts and device == "cpu" and arguments.games_at_once:
            config = config.with_values(self_play={"games_at_once": arguments.games_at_once})
        first: float | None = None
        for count in counts:
            measured = rate(ProcessExecutor(actors=count), config, device, arguments.seconds)
            each = measured["positions_per_second"] / count
            first = each if first is None else first
            line = {"device": device, "actors": count, **measured, "efficiency": each / first}
            found.append(line)
            bar = f" (bar {LINEAR_BAR})" if device == "cpu" and count > 1 else ""
            print(
                f"{arguments.game}, {device}, {count:2d} actors: {measured['positions_per_second']:,.0f} positions/s, "
                f"{measured['games_per_second']:,.1f} games/s, efficiency {line['efficiency']:.3f}{bar}, "
                f"utilisation {measured['utilisation']:.3f}, driver {measured['driver_cpu']:.1%} of a core, "
                f"started in {measured['start_seconds']:.1f} s",
                flush=True,
            )
    return found


def compare(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures Ray against processes, alternately, in rounds."""
    found = []
    config = make_config(arguments.game, "cpu")
    for count in arguments.counts:
        ratios: dict[str, list[float]] = {"wall time": [], "CPU time": []}
        for number in range(arguments.rounds):
            kinds = (RayExecutor, ProcessExecutor) if number % 2 == 0 else (ProcessExecutor, RayExecutor)
            rates = {kind: rate(kind(actors=count), config, "cpu", arguments.seconds) for kind in kinds}
            ours, other = rates[RayExecutor], rates[ProcessExecutor]
            ratios["wall time"].append(ours["positions_per_second"] / other["positions_per_second"])
            # On a busy machine: CPU time in batches, and the share of the time in which actors have one.
            effective = [one["positions_per_cpu_second"] * one["utilisation"] for one in (ours, other)]
            ratios["CPU time"].append(effective[0] / effective[1])
            print(
                f"{count} actors: Ray {ours['positions_per_second']:,.0f}, processes "
                f"{other['positions_per_second']:,.0f} positions/s; {effective[0]:,.0f} and {effective[1]:,.0f} a CPU "
                f"second; utilisation {ours['utilisation']:.3f} and {other['utilisation']:.3f}",
                flush=True,
            )
        for by, values in ratios.items():
            print(
                f"{count} actors, {by}: Ray over processes {statistics.median(values):.3f} "
                f"[{min(values):.3f}, {max(values):.3f}] (bar {RAY_BAR})",
                flush=True,
            )
        found.append({"actors": count, "ratios": ratios})
    return found


class SimulatedActor(Actor):
    """Answers each call with a recorded shard, after its recorded time."""

    def __init__(self, pool: SimulatedPool, place: int) -> None:
        self._pool = pool
        self._place = place
        self._free_at = 0.0

    def call(self, method: str, *arguments: Any) -> None:
        """Schedules the reply."""
        recorded = self._pool.recorded
        shard = recorded[self._place % len(recorded)]
        self._place += 1
        self._free_at = max(self._free_at, time.monotonic()) + shard.seconds * self._pool.speed
        self._pool.replies.append((self._free_at, Reply(self, "value", replace(shard, id=arguments[0].id))))

    def kill(self) -> None:
        """Does nothing."""


class SimulatedPool(Pool):
    """Actors that replay recorded shards."""

    def __init__(self, recorded: list[Shard], speed: float) -> None:
        self.recorded = recorded
        self.speed = speed
        self.replies: deque[tuple[float, Reply]] = deque()
        self._launched = 0

    def launch(self, make: Callable[..., Any], setup: Any, *blobs: Blob) -> Actor:
        """Returns an actor that is ready at once."""
        actor = SimulatedActor(self, self._launched * 7)
        self._launched += 1
        self.replies.append((0.0, Reply(actor, "ready", None)))
        return actor

    def poll(self, timeout: float) -> list[Reply]:
        """Returns the replies that are due."""
        now = time.monotonic()
        due = [reply for at, reply in self.replies if at <= now]
        if not due:
            time.sleep(0.001)
            return []
        self.replies = deque((at, reply) for at, reply in self.replies if at > now)
        return due

    def put(self, value: Any) -> Any:
        """Keeps nothing."""
        return None

    def close(self) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class Simulated(Executor):
    """An executor of simulated actors."""

    actors: int = 1

    def open(self, scratch: Path) -> Pool:
        """Is not used."""
        raise NotImplementedError


def limit(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Records shards of one actor, and offers them to the driver as those of many."""
    config = make_config(arguments.game, "cpu")
    if arguments.games_at_once:
        config = config.with_values(self_play={"games_at_once": arguments.games_at_once})
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        recorder = Driver(config, Path(folder, "recorded"))
        recorded: list[Shard] = []
        started = time.monotonic()
        with supervised(ProcessExecutor(actors=1), recorder, "cpu", Path(folder, "scratch")) as supervisor:
            while time.monotonic() - started < arguments.record_seconds:
                recorded += [shard for shard in supervisor.poll(SHARD_SECONDS, wait=True) if shard.count]
        size = sum(len(shard.games.content) for shard in recorded) / len(recorded)  # type: ignore[union-attr]
        seconds = sum(shard.seconds for shard in recorded) / len(recorded)
        print(f"recorded {len(recorded)} shards of {size:,.0f} bytes on average, {seconds:.2f} s each", flush=True)
        found = []
        for actors, speed in [(count, 1.0) for count in arguments.actors] + [(max(arguments.actors), 0.0)]:
            driver = Driver(config, Path(folder, f"games-{actors}-{speed}"))
            setup = ActorSetup(config, None, "cpu", 1)
            pool = SimulatedPool(recorded, speed)
            supervisor = Supervisor(
                Simulated(actors=actors),
                pool,
                make_self_play_actor,
                setup,
                print,
                is_synchronous=False,
                max_lag=1,
            )
            supervisor.start([], frozenset())
            supervisor.publish(0, b"")
            began, cpu = time.monotonic(), time.process_time()
            while time.monotonic() - began < arguments.seconds:
                for shard in supervisor.poll(SHARD_SECONDS, wait=True):
                    driver.take(shard)
            passed, used = time.monotonic() - began, time.process_time() - cpu
            offered = "without pause" if speed == 0.0 else f"{actors / seconds:,.1f} shards/s offered"
            line = {
                "actors": actors,
                "offered": None if speed == 0.0 else actors / seconds,
                "shards_per_second": driver.shards / passed,
                "bytes_per_second": driver.bytes / passed,
                "games_per_second": driver.games / passed,
                "cpu": used / passed,
            }
            found.append(line)
            print(
                f"{actors} simulated actors, {offered}: {line['shards_per_second']:,.1f} shards/s, "
                f"{line['bytes_per_second'] / 1e6:,.2f} MB/s, {line['games_per_second']:,.0f} games/s; "
                f"the driver used {line['cpu']:.0%} of a core",
                flush=True,
            )
    return found


def memory(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Trains with a slow disk, and records the driver's resident memory."""
    from pondertree.learn import Watcher, train
    from pondertree.learn.data import shards

    real = shards.replace_file

    def slow(path: Path, *parts: bytes | memoryview) -> None:
        real(path, *parts)
        time.sleep(sum(len(part) for part in parts) / arguments.disk)

    shards.replace_file = slow  # type: ignore[attr-defined]
    samples: list[tuple[float, float]] = []
    stop = threading.Event()
    began = time.monotonic()

    def watch() -> None:
        while not stop.wait(5.0):
            samples.append((time.monotonic() - began, resident()))

    class Progress(Watcher):
        last = 0.0

        def show(self, status: Any) -> None:
            if time.monotonic() - self.last > 30.0:
                self.last = time.monotonic()
                print(status, f"driver {samples[-1][1] if samples else 0:,.1f} MB", file=sys.stderr, flush=True)

        def note(self, text: str) -> None:
            print(text, file=sys.stderr, flush=True)

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        config = default_config("tic-tac-toe", out=folder, minutes=arguments.minutes, device="cpu")
        # The window is full after a minute: what grows later is a leak.
        config = config.with_values(
            self_play={"games_at_once": 32}, replay={"window": 2000, "learned_first": 500}, evaluation={"games": 0}
        )
        threading.Thread(target=watch, daemon=True).start()
        executor = ProcessExecutor(actors=arguments.actors[0])
        result = train(config, executor=executor, watcher=Progress())
        stop.set()
    settled = [size for at, size in samples if at > 60.0 * arguments.minutes * arguments.settled]
    third = max(len(settled) // 3, 1)
    before, after = statistics.median(settled[:third]), statistics.median(settled[-third:])
    found = {
        "minutes": arguments.minutes,
        "games": result.games,
        "before": before,
        "after": after,
        "growth": after / before - 1.0,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(
        f"{arguments.minutes} minutes, disk {arguments.disk:,.0f} bytes/s, {result.games:,} games: resident memory of "
        f"the driver {before:,.1f} MB after {arguments.settled:.0%} of the time, {after:,.1f} MB at the end "
        f"({found['growth']:+.2%})"
    )
    return [found]


def resident() -> float:
    """Returns the resident memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("scaling", "compare", "limit", "memory"))
    parser.add_argument("--game", default="connect4")
    parser.add_argument("--counts", type=counts, default=[1, 2])
    parser.add_argument("--gpu-counts", type=counts, default=[])
    parser.add_argument("--actors", type=counts, default=[])
    parser.add_argument("--games-at-once", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--record-seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--settled", type=float, default=0.2, help="the share of the time before memory is compared")
    parser.add_argument("--disk", type=float, default=20_000.0, help="bytes per second of the throttled disk")
    parser.add_argument("--folder", default=None, help="where to store games")
    parser.add_argument("--json", default=None, metavar="FILE")
    arguments = parser.parse_args()
    if not arguments.actors:
        arguments.actors = [256] if arguments.what == "limit" else [2]
    print(f"{os.cpu_count()} CPUs, PyTorch {torch.__version__}, load {os.getloadavg()[0]:.1f}", flush=True)
    found = {"scaling": scaling, "compare": compare, "limit": limit, "memory": memory}[arguments.what](arguments)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
