"""Learning 2048: trains by self-play, then compares the player with greedy and random play.

python benches/learn_2048.py --minutes 7.5 --out results        (one GPU; --device cpu --config '{...}' for a trial)

Prints the learning curve (mean scores of self-play and of evaluations by minute), then the mean scores of `--games`
games with 95 % intervals: the player's with each number of `--simulations`, of greedy play by immediate reward, and of
random play, all from the same starts. `--out` gets `player.safetensors`, `metrics.jsonl` and `result.json`; the run
itself is in `--run`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pondertree
from pondertree.learn import Config, default_config, train
from pondertree.learn.config import game_spec
from pondertree.learn.evaluation import REFERENCE_PLAYERS, mean_interval, play_episodes, search_player
from pondertree.learn.report.progress import LineWatcher
from pondertree.learn.self_play import searches_of

GAME = "2048"
#: Seed of the final games, distinct from those of training and of its evaluations.
SEED = 9_000_000


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=7.5, help="minutes of training")
    parser.add_argument("--games", type=int, default=200, help="games of the final comparison")
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64], help="per move in the final comparison")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--run", type=Path, default=Path("/tmp/learn_2048"), help="run folder, which is replaced")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the results")
    parser.add_argument("--config", type=json.loads, default={}, help="settings that differ, as JSON")
    arguments = parser.parse_args()
    started = time.monotonic()
    shutil.rmtree(arguments.run, ignore_errors=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    on_gpu = arguments.device != "cpu"
    config = default_config(GAME, on_gpu=on_gpu, out=str(arguments.run), device=arguments.device)
    config = config.with_values(minutes=arguments.minutes).with_values(**arguments.config)
    result = train(config, watcher=LineWatcher(sys.stdout, seconds=15.0))
    print(f"trained: {result.steps:,} steps, {result.games:,} games, {result.positions:,} positions", flush=True)
    curve = learning_curve(arguments.run / "metrics.jsonl")
    player = newest_player(arguments.run)
    shutil.copy(player, arguments.out / "player.safetensors")
    shutil.copy(arguments.run / "metrics.jsonl", arguments.out / "metrics.jsonl")
    found: dict[str, Any] = {
        "steps": result.steps,
        "games": result.games,
        "positions": result.positions,
        "train_seconds": round(result.elapsed, 1),
        "curve": curve,
        "scores": {},
    }
    for name, chooser in REFERENCE_PLAYERS.items():
        found["scores"][name] = compared(name, chooser, config, arguments.games)
    evaluator = pondertree.load(player, device=arguments.device)
    for simulations in arguments.simulations:
        search = searches_of(config).evaluation_search(config, game_spec(GAME).info, evaluator, simulations, False)
        name = f"player, {simulations} simulations"
        found["scores"][name] = compared(name, search_player(search), config, arguments.games)
        # After each comparison: a run that is cut short keeps what it measured.
        (arguments.out / "result.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"player.safetensors: {player.stat().st_size:,} bytes; {time.monotonic() - started:.0f} seconds in all")


def learning_curve(path: Path) -> list[dict[str, Any]]:
    """Prints and returns the evaluations of a run, and the self-play before each."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    curve = []
    self_play: list[float] = []
    print(f"{'minutes':>7} {'steps':>7} {'games':>7} {'positions':>11} {'self-play':>9} {'evaluated':>9}  95 %")
    games = positions = 0
    for line in lines:
        if line["kind"] == "round":
            games, positions = line["games"], line["positions"]
            self_play += [line["mean_return"]] if "mean_return" in line else []
        if line["kind"] != "evaluation":
            continue
        point = {
            "minutes": round(line["elapsed"] / 60.0, 2),
            "steps": line["step"],
            "games": games,
            "positions": positions,
            "self_play": round(self_play[-1], 1) if self_play else None,
            "mean": line["mean_return"],
            "low": line["return_low"],
            "high": line["return_high"],
        }
        curve.append(point)
        print(
            f"{point['minutes']:7.2f} {point['steps']:7,} {games:7,} {positions:11,} {point['self_play'] or 0.0:9,.0f} "
            f"{point['mean']:9,.0f}  {point['low']:,.0f} to {point['high']:,.0f}",
            flush=True,
        )
    return curve


def newest_player(run: Path) -> Path:
    """Returns the file of the newest checkpoint's player."""
    return sorted((run / "checkpoints").glob("round-*"))[-1] / "player.safetensors"


def compared(name: str, player: Any, config: Config, games: int) -> dict[str, float]:
    """Plays games; prints and returns their mean score with its 95 % interval."""
    began = time.monotonic()
    scores = play_episodes(player, game_spec(config.game), games, SEED)
    low, high = mean_interval(scores)
    mean = sum(scores) / games
    seconds = time.monotonic() - began
    print(
        f"{name:24} mean {mean:9,.1f}  95 % {low:,.1f} to {high:,.1f}  least {min(scores):,.0f}  "
        f"most {max(scores):,.0f}  ({games} games, {seconds:.1f} s)",
        flush=True,
    )
    statistics = {"mean": mean, "low": low, "high": high, "least": min(scores), "most": max(scores)}
    return {name: round(number, 1) for name, number in statistics.items()} | {"games": games}


if __name__ == "__main__":
    main()
