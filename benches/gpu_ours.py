"""Pondertree on a GPU: one line of JSON for each case selected on the command line. `gpu.py` starts it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gpu_agreement import DEVICE, agreement, openings
from gpu_cases import AGREEMENT, GAMES, GameCase, LatentCase, cases, with_agreement
from gpu_networks import LatentModel, Residual

import pondertree
from pondertree.evaluators import Torch
from pondertree.models import TorchModel

DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32
ROUNDS = 5
#: Runs before measurements, in which libraries select kernels and graphs are captured.
WARM_UPS = 6


class TimedBuffer:
    """A buffer that adds up the time of its calls, and its rows."""

    def __init__(self, buffer: Any, spent: dict[str, float]) -> None:
        self.buffer, self._spent = buffer, spent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.buffer, name)

    def submit(self, rows: int) -> Any:
        """Submits and counts."""
        begun = time.perf_counter()
        support = self.buffer.submit(rows)
        self._spent["submit"] += time.perf_counter() - begun
        self._spent["rows"] += rows
        self._spent["batches"] += 1
        return support

    def wait(self) -> None:
        """Waits and counts."""
        begun = time.perf_counter()
        self.buffer.wait()
        self._spent["wait"] += time.perf_counter() - begun


class TimedTorch(Torch):
    """The evaluator, with timed buffers."""

    spent: dict[str, float]

    def acquire(self, job: Any) -> Any:
        """A context whose buffers are timed."""
        context, spent = super().acquire(job), self.spent
        lease = context.buffers
        context.buffers = lambda capacities: [TimedBuffer(buffer, spent) for buffer in lease(capacities)]
        return context


def seconds_of(work: Any, calls: int = 100) -> float:
    """Seconds of one call on the device, averaged over many in the queue."""
    for _ in range(5):
        work()
    _finish()
    begun = time.perf_counter()
    for _ in range(calls):
        work()
    _finish()
    return (time.perf_counter() - begun) / calls


def _finish() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def recorded_seconds(work: Callable[[], Any]) -> float:
    """Seconds of work on device-resident inputs, captured as a graph on a GPU."""
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, benchmark=True):
        if DEVICE != "cuda":
            return seconds_of(work, 3)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return seconds_of(graph.replay)


def bare_seconds(module: Any, batch: int, shape: tuple[int, ...]) -> float:
    """Seconds of the bare network for a batch."""
    observations = torch.rand((batch, *shape), device=DEVICE).to(DTYPE).contiguous(memory_format=torch.channels_last)
    return recorded_seconds(lambda: module(observations))


def step_seconds(module: Any, case: LatentCase) -> float:
    """Seconds of one step of the bare model for a batch."""
    hidden = torch.rand((case.batch, case.width), device=DEVICE).to(DTYPE)
    actions = torch.arange(case.batch, device=DEVICE) % case.actions
    return recorded_seconds(lambda: module.recurrent_inference(hidden, actions))


def play_on(forest: Any, states: Sequence[Any]) -> None:
    """Searches and plays a move in every tree; finished games restart, as in self-play."""
    forest.simulate(add_noise=True)
    for index, action in enumerate(forest.actions().tolist()):
        if forest.state(index).play(action).is_terminal:
            forest.reset(index, states[index])
        else:
            forest.advance(index, action)
    # Imports the trees; the rows counted so far are those of the search before.
    forest._world._offload.rows = 0


def game_case(case: GameCase, warm_ups: int, rounds: int) -> dict[str, Any]:
    """Measures a search with a network: rate, share of the bare network, and time by phase."""
    game = GAMES[case.game]
    torch.manual_seed(0)
    network = Residual(game.planes, game.board, game.channels, game.blocks, game.actions).to(DEVICE, DTYPE).eval()
    evaluator = TimedTorch(network, DEVICE, batch_size=case.batch)
    kind = pondertree.AlphaZero if case.search == "puct" else pondertree.Gumbel
    search = kind(evaluator, case.simulations, seed=1, solve=case.solve)
    states = openings(case.game, 2 * case.batch)
    walls, spents = [], []
    for _ in range(warm_ups + rounds):
        evaluator.spent = spent = dict.fromkeys(("submit", "wait", "rows", "batches"), 0.0)
        begun = time.perf_counter()
        forest = search.forest(states)
        planted = time.perf_counter()
        if case.plays_on:
            play_on(forest, states)
            spent.update(dict.fromkeys(spent, 0.0))
            begun = planted = time.perf_counter()
        engine = forest._world.core.pipeline_seconds()
        forest.simulate(add_noise=True if case.search == "puct" else None)
        searched = time.perf_counter()
        forest.actions()
        answered = time.perf_counter()
        checking, growing, writing = np.subtract(forest._world.core.pipeline_seconds(), engine).tolist()
        # With device-resident trees, buffers carry the roots alone.
        rows = forest._world._offload.rows
        spent["rows"] += rows
        spent["batches"] += 2 * case.simulations if rows else 0
        del forest
        dropped = time.perf_counter()
        walls.append((searched if case.plays_on else dropped) - begun)
        steps = searched - planted - spent["submit"] - spent["wait"]
        spents.append(
            spent
            | {"plant": planted - begun, "answer": answered - searched, "drop": dropped - answered}
            | {"check": checking, "grow": growing, "write": writing}
            | {"on the device" if rows else "python": steps - checking - growing - writing}
        )
    # The number of rows varies a little: terminal leaves need none, and noise changes the trees.
    rates = [spent["rows"] / wall for wall, spent in zip(walls[warm_ups:], spents[warm_ups:], strict=True)]
    wall, spent = sorted(zip(walls[warm_ups:], spents[warm_ups:], strict=True), key=lambda pair: pair[0])[rounds // 2]
    shape = (game.planes, *game.board)
    plain = bare_seconds(network, case.batch, shape)
    fused = plain if evaluator._fused is None else bare_seconds(evaluator._fused, case.batch, shape)
    bare = case.batch / min(plain, fused)
    batches = spent.pop("batches")
    rows = spent.pop("rows")
    return {
        "trees": len(states),
        "rate": rows / wall,
        "spread": [min(rates), max(rates)],
        "bare": bare,
        "bare_as_written": case.batch / plain,
        "share": rows / wall / bare,
        "rows_per_call": rows / batches,
        "microseconds_per_call": {name: 1e6 * seconds / batches for name, seconds in spent.items()}
        | {"network alone": 1e6 * case.batch / bare},
    }


def latent_case(case: LatentCase, warm_ups: int, rounds: int) -> dict[str, Any]:
    """Measures a search in a learned model, and as many steps of the bare model."""
    torch.manual_seed(0)
    module = LatentModel(case.width, case.actions).to(DEVICE, DTYPE)
    model = TorchModel(module, DEVICE)
    settings: dict[str, Any] = {"model": model, "num_simulations": case.simulations, "discount": 0.997, "seed": 1}
    search = pondertree.MuZero(**settings) if case.search == "puct" else pondertree.Gumbel(**settings)
    seen = np.random.default_rng(0).normal(size=(case.batch, case.width)).astype(np.float32)
    walls, phases = [], []
    for _ in range(warm_ups + rounds):
        times = [time.perf_counter()]
        forest = search.forest(observation=seen)
        times.append(time.perf_counter())
        # mctx adds noise, too; Gumbel search draws its own numbers.
        forest.simulate(add_noise=True if case.search == "puct" else None)
        times.append(time.perf_counter())
        forest.actions()
        times.append(time.perf_counter())
        engine = forest._world.core.pipeline_seconds()
        on_device = forest._world._offload.rows > 0
        del forest
        times.append(time.perf_counter())
        phases.append((*engine, *np.diff(times)))
        walls.append(times[-1] - times[0])
    wall = statistics.median(walls[warm_ups:])
    names = ("check", "grow", "write", "plant", "on the device" if on_device else "search", "answer", "drop")
    medians = (1e6 * statistics.median(spent) / case.simulations for spent in zip(*phases[warm_ups:], strict=True))
    return {
        "trees": case.batch,
        "milliseconds": 1e3 * wall,
        "spread": [1e3 * min(walls[warm_ups:]), 1e3 * max(walls[warm_ups:])],
        "rate": case.batch * case.simulations / wall,
        "bare_milliseconds": 1e3 * case.simulations * step_seconds(module, case),
        "microseconds_per_step": {"all": 1e6 * wall / case.simulations, **dict(zip(names, medians, strict=True))},
    }


def main() -> None:
    """Runs the selected cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    about = {"torch": torch.__version__, "device": _device(), "cores": os.cpu_count()}
    about["date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    print(json.dumps(about | ({"small": True} if given.small else {})), flush=True)
    for name, case in cases(given.words, small=given.small).items():
        often = (1, 1) if given.small else (WARM_UPS, ROUNDS)
        answer = game_case(case, *often) if isinstance(case, GameCase) else latent_case(case, *often)
        print(json.dumps({"case": name, **answer}), flush=True)
    if with_agreement(given.words):
        print(json.dumps({"case": AGREEMENT, **agreement(small=given.small)}), flush=True)


def _device() -> str:
    return torch.cuda.get_device_name(0) if DEVICE == "cuda" else "no GPU"


if __name__ == "__main__":
    main()
