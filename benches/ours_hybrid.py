"""The jobs of `hybrid.py` for Pondertree."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

from worker import Work

from pondertree import Hybrid, _core, games
from pondertree.chess import Pesto, mate_search
from pondertree.chess.config import ChessConfig

PESTO = Pesto()
BUDGET = ChessConfig(pesto=PESTO.compiled).mate_budget


@cache
def positions() -> tuple[games.Chess, ...]:
    """Returns positions of self-play games, from the opening to the endgame."""
    found = []
    for game in range(6):
        tree = Hybrid(num_simulations=60, seed=game).tree(games.Chess())
        for ply in range(80):
            tree.simulate(60)
            action = tree.result(temperature=1.0 if ply < 12 else 0.0).action
            if tree.state.play(action).is_terminal:
                break
            tree.advance(action)
            if ply % 8 == 7:
                found.append(tree.state)
    return tuple(found)


def hybrid(seconds: float, sims: int, **settings: Any) -> dict[str, Any]:
    """Searches positions one by one, excluding the mate search at the root."""
    search = Hybrid(num_simulations=sims, seed=1, **settings)
    units, spent = 0, 0.0
    for state in cycle(positions()):
        tree = search.tree(state).simulate(1)
        cpu = time.process_time()
        tree.simulate(sims)
        spent += time.process_time() - cpu
        units += tree.result().simulations
        if spent >= seconds:
            break
    return {"units": units, "cpu": spent}


def call(what: str) -> Work:
    """Runs one component of leaf analysis on all positions."""
    calls: dict[str, Callable[[games.Chess], object]] = {
        "nothing": lambda state: state.to_play,
        "mate search": lambda state: _core.checks_first(state, 3, BUDGET),
        "quiescence": lambda state: PESTO.compiled.value(state, True),
        "static evaluation": lambda state: PESTO.compiled.value(state, False),
        "categorisation": lambda state: _core.categorize(state, None, (None, None), {}, 0),
    }
    one = calls[what]

    def work() -> int:
        for state in positions():
            one(state)
        return len(positions())

    return work


def hybrid_threads(sims: int, in_flight: int, threads: int) -> dict[str, Any]:
    """Searches one position with leaf batches on several threads, excluding the mate search at the root."""
    search = Hybrid(num_simulations=sims, in_flight=in_flight, threads=threads, seed=1)
    tree = search.tree(positions()[3], seeds=1).simulate(1)
    wall, cpu = time.perf_counter(), time.process_time()
    tree.simulate(sims)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "visits": tree.result().visits.tolist(),
    }


def mates(moves: int, sims: int, most: int) -> dict[str, Any]:
    """Returns the number of mates in `moves` that are answered by a move of the shortest mate."""
    lines = (Path(__file__).parents[1] / "tests" / "mates" / "mates.epd").read_text(encoding="utf-8").splitlines()
    fields = [line.partition(" dm ") for line in lines if line and not line.startswith("#")]
    fens = [f"{board} 0 1" for board, _, length in fields if int(length.strip("; ")) == moves][:most]
    found = 0
    for fen in fens:
        state = games.Chess(fen)
        after = state.play(Hybrid(num_simulations=sims, seed=1).run(state).action)
        mated = after.is_terminal and after.termination == "checkmate"
        found += mated or (not after.is_terminal and mate_search(after, moves - 1).kind == "mated_in")
    return {"found": found, "positions": len(fens)}
