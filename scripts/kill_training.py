"""Kills a small run with `kill -9` at random instants, repeatedly, and counts violations of durability.

    python scripts/kill_training.py --kills 100
    python scripts/kill_training.py --kills 20 --algorithm muzero --game gym:CartPole-v1

Each time the run is resumed. Every shard must be intact, every stored game must keep its place, and none may be stored
twice; the final weights must equal those of an uninterrupted run. Exit status 1 otherwise. Needs PyTorch
(`pondertree[train]`).
"""

from __future__ import annotations

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pondertree.errors import PondertreeError
from pondertree.learn.data.checkpoint import newest_intact
from pondertree.learn.data.shards import list_shards, read_shard

#: The run, as a process of its own.
TRAINING = """
import sys
import torch
from pondertree.learn import default_config, train
from pondertree.learn.report.progress import Watcher
torch.set_num_threads(1)
out, steps, game, algorithm = sys.argv[1:]
config = default_config(game, algorithm=algorithm, out=out, steps=int(steps), device="cpu").with_values(
    network={"blocks": 1, "channels": 8},
    self_play={"games_at_once": 16, "simulations": 8, "workers": 1},
    replay={"window": 1000, "learned_first": 100},
    learner={"batch_size": 32, "passes": 2.0},
    muzero={"priority": 0.6, "reanalyse": 0.1},
    evaluation={"games": 0, "positions": 0},
    cycle_moves=2,
    checkpoint_minutes=0.002,
)
class Announcer(Watcher):
    def __enter__(self):
        print("playing", flush=True)
        return self
print("begun", flush=True)
train(config, resume=True, watcher=Announcer())
"""


def begin(out: Path, what: list[str], word: bytes = b"begun") -> subprocess.Popen[bytes]:
    """Resumes the run; returns once it prints `word`: "begun" (packages loaded) or "playing"."""
    command = [sys.executable, "-c", TRAINING, str(out), *what]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    while (line := process.stdout.readline().strip()) and line != word:
        pass
    return process


def stored_games(out: Path) -> list[int]:
    """Returns the numbers of all games in storing order."""
    return [game.number for shard in list_shards(out / "games") for game in read_shard(shard)]


def weights(out: Path) -> str:
    """Returns a checksum of the last weights."""
    newest = sorted((out / "checkpoints").glob("round-*"))[-1]
    return hashlib.sha256((newest / "training.safetensors").read_bytes()).hexdigest()


def steps_of(out: Path) -> int:
    """Returns the optimiser steps of the last checkpoint."""
    found = newest_intact(out / "checkpoints")
    return 0 if found is None else int(found[1].state["counters"]["step"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--longest", type=float, default=2.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--game", default="tic-tac-toe")
    parser.add_argument("--algorithm", default="gumbel", help="gumbel, alphazero or muzero")
    arguments = parser.parse_args()
    numbers = random.Random(arguments.seed)
    what = [str(arguments.steps), arguments.game, arguments.algorithm]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted, killed = Path(folder, "uninterrupted"), Path(folder, "killed")
        process = begin(uninterrupted, what)
        _, errors = process.communicate()
        if process.returncode:
            print(errors.decode(), file=sys.stderr)
            return 1
        kills = rounds = 0
        known: list[int] = []
        while kills < arguments.kills:
            # Some kills hit the start, most hit playing, training and saving.
            process = begin(killed, what, numbers.choice([b"begun", b"playing", b"playing"]))
            time.sleep(numbers.uniform(0.0, arguments.longest))
            process.send_signal(signal.SIGKILL)
            _, errors = process.communicate()
            kills += process.returncode == -signal.SIGKILL
            if process.returncode not in (0, -signal.SIGKILL):
                wrong.append(f"kill {kills}: it did not resume: {errors.decode().strip().splitlines()[-1:]}")
                break
            try:
                found = stored_games(killed)
            except PondertreeError as error:
                wrong.append(f"kill {kills}: {error}")
                break
            if found[: len(known)] != known:
                wrong.append(f"kill {kills}: stored games are missing")
            if len(set(found)) != len(found):
                wrong.append(f"kill {kills}: games were stored twice")
            known = found
            print(f"\rkill {kills}: {len(found)} games", end="", flush=True)
            if steps_of(killed) == arguments.steps:
                # The run finished: compare it, and start another.
                wrong += compare(killed, uninterrupted)
                rounds += 1
                killed, known = Path(folder, f"killed-{rounds}"), []
        begin(killed, what).communicate()
        wrong += compare(killed, uninterrupted)
    print(f"\n{kills} kills, {rounds + 1} runs, {len(wrong)} violations")
    for text in wrong:
        print(text)
    return 1 if wrong else 0


def compare(killed: Path, uninterrupted: Path) -> list[str]:
    """Returns the differences between the two finished runs."""
    wrong = []
    if stored_games(killed) != stored_games(uninterrupted):
        wrong.append(f"{killed.name}: its games differ from an uninterrupted run")
    if weights(killed) != weights(uninterrupted):
        wrong.append(f"{killed.name}: its weights are others than without kills")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
