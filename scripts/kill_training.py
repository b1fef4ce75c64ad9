"""Kills a small training with `kill -9` at random instants, again and again, and counts what must never happen.

    python scripts/kill_training.py --kills 100
    python scripts/kill_training.py --kills 20 --algorithm muzero --game gym:CartPole-v1

Each time it is taken up again. Every shard must be whole, every game that was stored must stay where it is, and none
may be stored twice; at the end the weights must be those of a training that nobody disturbed. Exit status 1 if anything
is otherwise. Needs PyTorch (`pondertree[train]`).
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
from pondertree.learn.data.checkpoint import newest_whole
from pondertree.learn.data.shards import list_shards, read_shard

#: The training, as a process of its own.
TRAINING = """
import sys
import torch
from pondertree.learn import default_config, train
from pondertree.learn.evaluation.progress import Watcher
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
class Teller(Watcher):
    def __enter__(self):
        print("playing", flush=True)
        return self
print("begun", flush=True)
train(config, resume=True, watcher=Teller())
"""


def begin(out: Path, what: list[str], word: bytes = b"begun") -> subprocess.Popen[bytes]:
    """Takes the training up; comes back when it is "begun", the packages being loaded, or "playing"."""
    command = [sys.executable, "-c", TRAINING, str(out), *what]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    while (line := process.stdout.readline().strip()) and line != word:
        pass
    return process


def stored_games(out: Path) -> list[int]:
    """The numbers of all games in the order in which they were stored."""
    return [game.number for shard in list_shards(out / "games") for game in read_shard(shard)]


def weights(out: Path) -> str:
    """A checksum of the last weights."""
    newest = sorted((out / "checkpoints").glob("round-*"))[-1]
    return hashlib.sha256((newest / "training.safetensors").read_bytes()).hexdigest()


def steps_of(out: Path) -> int:
    """The steps of the last checkpoint."""
    found = newest_whole(out / "checkpoints")
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
        undisturbed, killed = Path(folder, "undisturbed"), Path(folder, "killed")
        process = begin(undisturbed, what)
        _, errors = process.communicate()
        if process.returncode:
            print(errors.decode(), file=sys.stderr)
            return 1
        kills = rounds = 0
        known: list[int] = []
        while kills < arguments.kills:
            # Some while it is taken up, most while it plays, learns and saves.
            process = begin(killed, what, numbers.choice([b"begun", b"playing", b"playing"]))
            time.sleep(numbers.uniform(0.0, arguments.longest))
            process.send_signal(signal.SIGKILL)
            _, errors = process.communicate()
            kills += process.returncode == -signal.SIGKILL
            if process.returncode not in (0, -signal.SIGKILL):
                wrong.append(f"kill {kills}: it did not go on: {errors.decode().strip().splitlines()[-1:]}")
                break
            try:
                found = stored_games(killed)
            except PondertreeError as error:
                wrong.append(f"kill {kills}: {error}")
                break
            if found[: len(known)] != known:
                wrong.append(f"kill {kills}: games that were stored have gone")
            if len(set(found)) != len(found):
                wrong.append(f"kill {kills}: games were stored twice")
            known = found
            print(f"\rkill {kills}: {len(found)} games", end="", flush=True)
            if steps_of(killed) == arguments.steps:
                # It came to its end: look at it, and begin another.
                wrong += compare(killed, undisturbed)
                rounds += 1
                killed, known = Path(folder, f"killed-{rounds}"), []
        begin(killed, what).communicate()
        wrong += compare(killed, undisturbed)
    print(f"\n{kills} kills, {rounds + 1} trainings, {len(wrong)} wrong")
    for text in wrong:
        print(text)
    return 1 if wrong else 0


def compare(killed: Path, undisturbed: Path) -> list[str]:
    """What differs between the two at their end."""
    wrong = []
    if stored_games(killed) != stored_games(undisturbed):
        wrong.append(f"{killed.name}: its games are others than without kills")
    if weights(killed) != weights(undisturbed):
        wrong.append(f"{killed.name}: its weights are others than without kills")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
