"""Ponderosa on a GPU: one line of JSON for each case named on the command line. `gpu.py` starts it."""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gpu_cases import GAMES, GameCase, LatentCase, cases
from gpu_networks import LatentModel, Residual, Table

import ponderosa
from ponderosa import games
from ponderosa.evaluators import Torch
from ponderosa.models import TorchModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32
ROUNDS = 5
#: Before that, libraries choose their kernels, and graphs are recorded.
WARM_UPS = 6


class TimedLane:
    """A lane that says how long it was waited for, and for how many rows."""

    def __init__(self, lane: Any, spent: dict[str, float]) -> None:
        self.lane, self._spent = lane, spent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lane, name)

    def submit(self, rows: int) -> None:
        """Submits, and counts."""
        begun = time.perf_counter()
        self.lane.submit(rows)
        self._spent["submit"] += time.perf_counter() - begun
        self._spent["rows"] += rows
        self._spent["batches"] += 1

    def wait(self) -> None:
        """Waits, and counts."""
        begun = time.perf_counter()
        self.lane.wait()
        self._spent["wait"] += time.perf_counter() - begun


class TimedTorch(Torch):
    """The evaluator, with timed lanes."""

    spent: dict[str, float]

    def open_lanes(self, line: Any, capacities: Sequence[int]) -> list[Any]:
        """Timed ones."""
        return [TimedLane(lane, self.spent) for lane in super().open_lanes(line, capacities)]

    def close_lanes(self, lanes: Sequence[Any]) -> None:
        """The lanes inside."""
        super().close_lanes([lane.lane for lane in lanes])


def openings(game: str, count: int, seed: int = 0) -> list[Any]:
    """Distinct positions after 2 to 12 random moves."""
    draw, found = random.Random(seed), {}
    while len(found) < count:
        state = getattr(games, GAMES[game].state)()
        for _ in range(draw.randint(2, 12)):
            if not state.is_terminal:
                state = state.play(draw.choice(state.legal_actions()))
        if not state.is_terminal:
            found[state] = None
    return list(found)


def seconds_of(work: Any, calls: int = 100) -> float:
    """Seconds of one call on the device, many of them queued one behind another."""
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


def bare_seconds(module: Any, batch: int, shape: tuple[int, ...]) -> float:
    """Seconds of the network alone for a batch: recorded as one graph, on observations that are there already."""
    observations = torch.rand((batch, *shape), device=DEVICE).to(DTYPE).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, benchmark=True):
        if DEVICE != "cuda":
            return seconds_of(lambda: module(observations), 3)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                module(observations)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            module(observations)
        return seconds_of(graph.replay)


def game_case(case: GameCase) -> dict[str, Any]:
    """A search with a network: rates, the share of the bare network, and where the time goes."""
    game = GAMES[case.game]
    torch.manual_seed(0)
    network = Residual(game.planes, game.board, game.channels, game.blocks, game.actions).to(DEVICE, DTYPE).eval()
    evaluator = TimedTorch(network, DEVICE, batch_size=case.batch)
    kind = ponderosa.AlphaZero if case.search == "puct" else ponderosa.Gumbel
    search = kind(evaluator, case.simulations, seed=1, solve=False)
    states = openings(case.game, 2 * case.batch)
    walls, spents = [], []
    for _ in range(WARM_UPS + ROUNDS):
        evaluator.spent = dict.fromkeys(("submit", "wait", "rows", "batches"), 0.0)
        begun = time.perf_counter()
        forest = search.forest(states)
        planted = time.perf_counter()
        forest.simulate(add_noise=True if case.search == "puct" else None)
        searched = time.perf_counter()
        forest.actions()
        answered = time.perf_counter()
        checking, growing, writing = forest._world.core.exchange_seconds()
        # Where trees grow on the device, lanes are asked about the roots alone.
        rows = forest._world._beside.rows
        evaluator.spent["rows"] += rows
        evaluator.spent["batches"] += 2 * case.simulations if rows else 0
        del forest
        walls.append(time.perf_counter() - begun)
        steps = searched - planted - evaluator.spent["submit"] - evaluator.spent["wait"]
        spents.append(
            evaluator.spent
            | {"plant": planted - begun, "answer": answered - searched, "drop": walls[-1] - answered + begun}
            | {"check": checking, "grow": growing, "write": writing}
            | {"on the device" if rows else "python": steps - checking - growing - writing}
        )
    wall, spent = sorted(zip(walls[WARM_UPS:], spents[WARM_UPS:], strict=True), key=lambda pair: pair[0])[ROUNDS // 2]
    shape = (game.planes, *game.board)
    plain = bare_seconds(network, case.batch, shape)
    fused = plain if evaluator._fused is None else bare_seconds(evaluator._fused, case.batch, shape)
    bare = case.batch / min(plain, fused)
    batches = spent.pop("batches")
    rows = spent.pop("rows")
    return {
        "trees": len(states),
        "rate": rows / wall,
        "spread": [rows / max(walls[WARM_UPS:]), rows / min(walls[WARM_UPS:])],
        "bare": bare,
        "bare_as_written": case.batch / plain,
        "share": rows / wall / bare,
        "rows_per_call": rows / batches,
        "microseconds_per_call": {name: 1e6 * seconds / batches for name, seconds in spent.items()}
        | {"network alone": 1e6 * case.batch / bare},
    }


def latent_case(case: LatentCase) -> dict[str, Any]:
    """A search in a learned model."""
    torch.manual_seed(0)
    model = TorchModel(LatentModel(case.width, case.actions).to(DEVICE, DTYPE), DEVICE)
    settings: dict[str, Any] = {"model": model, "num_simulations": case.simulations, "discount": 0.997, "seed": 1}
    search = ponderosa.MuZero(**settings) if case.search == "puct" else ponderosa.Gumbel(**settings)
    seen = list(np.random.default_rng(0).normal(size=(case.batch, case.width)).astype(np.float32))
    walls, phases = [], []
    for _ in range(WARM_UPS + ROUNDS):
        times = [time.perf_counter()]
        forest = search.forest(observation=seen)
        times.append(time.perf_counter())
        forest.simulate()
        times.append(time.perf_counter())
        forest.actions()
        times.append(time.perf_counter())
        engine = forest._world.core.exchange_seconds()
        on_device = forest._world._beside.rows > 0
        del forest
        times.append(time.perf_counter())
        phases.append((*engine, *np.diff(times)))
        walls.append(times[-1] - times[0])
    wall = statistics.median(walls[WARM_UPS:])
    names = ("check", "grow", "write", "plant", "on the device" if on_device else "search", "answer", "drop")
    medians = (1e6 * statistics.median(spent) / case.simulations for spent in zip(*phases[WARM_UPS:], strict=True))
    return {
        "trees": case.batch,
        "milliseconds": 1e3 * wall,
        "spread": [1e3 * min(walls[WARM_UPS:]), 1e3 * max(walls[WARM_UPS:])],
        "rate": case.batch * case.simulations / wall,
        "microseconds_per_step": {"all": 1e6 * wall / case.simulations, **dict(zip(names, medians, strict=True))},
    }


def agreement() -> dict[str, Any]:
    """Whether the GPU finds what the processor finds: exactly with exact numbers, nearly always with a network."""
    found = {}
    for game, settings in GAMES.items():
        states = openings(game, 1000 if game == "connect_four" else 300, seed=1)
        cells = settings.planes * settings.board[0] * settings.board[1]
        torch.manual_seed(1)
        network = Residual(settings.planes, settings.board, 32, 2, settings.actions).eval()
        for name, module in (("table", Table(cells, settings.actions)), ("float32", network)):
            visits = []
            for device in ("cpu", DEVICE):
                torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
                search = ponderosa.AlphaZero(Torch(module, device), 60, seed=1, solve=False)
                forest = search.forest(states)
                visits.append(forest.simulate().visits())
            equal = int((visits[0] == visits[1]).all(axis=1).sum())
            found[f"{game}, {name}"] = f"{equal} of {len(states)}"
    return found


def main() -> None:
    """Runs the cases named."""
    print(json.dumps({"torch": torch.__version__, "device": _device()}), flush=True)
    for name, case in cases(sys.argv[1:]).items():
        answer = game_case(case) if isinstance(case, GameCase) else latent_case(case)
        print(json.dumps({"case": name, **answer}), flush=True)
    if not sys.argv[1:] or "agreement" in sys.argv[1:]:
        print(json.dumps({"case": "agreement", **agreement()}), flush=True)


def _device() -> str:
    return torch.cuda.get_device_name(0) if DEVICE == "cuda" else "no GPU"


if __name__ == "__main__":
    main()
