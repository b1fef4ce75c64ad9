"""The worker process of Pondertree."""

from __future__ import annotations

import hashlib
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import connect_four_numpy
import four_in_a_row
import ours_alphazero
import ours_hybrid
import ours_muzero
import tic_tac_toe
from worker import Work, resident_bytes, serve

from pondertree import CHANCE, UCT, _core, games

sys.path.append(str(Path(__file__).parents[1]))
from examples.games.connect_four_arrays import ConnectFourArrays

GAMES: dict[str, Any] = {
    "connect_four": games.ConnectFour,
    "tic_tac_toe": games.TicTacToe,
    "othello": games.Othello,
    "chess": games.Chess,
    "pig": games.Pig,
    "backgammon": games.Backgammon,
}


def first_decision(game: str) -> Any:
    """Returns the start, or the position after the first outcome of chance there."""
    state = GAMES[game]()
    while state.to_play == CHANCE:
        state = state.play(state.legal_actions()[0])
    return state


def uct(game: str, sims: int) -> Work:
    """UCT from the start, with complete random playouts and without proofs."""
    search = UCT(sims, c_param=1.0, solve=False, seed=1)
    start = first_decision(game)
    return lambda: int(search.run(start).simulations)


def python_uct(game: str, sims: int) -> Work:
    """UCT on a game written in Python."""
    search = UCT(sims, c_param=1.0, solve=False, seed=1)
    start: Any = {"tic_tac_toe": tic_tac_toe.State, "four_in_a_row": four_in_a_row.State}[game]()
    return lambda: int(search.run(start).simulations)


def arrays_uct(trees: int, sims: int) -> Work:
    """UCT on many trees of Connect 4, a game of arrays; with 0 trees on one tree of Connect 4 with a NumPy board."""
    search = UCT(sims, c_param=1.0, solve=False, seed=1)
    game = ConnectFourArrays()
    starts: list[Any] = games.batch_states(game, game.start(trees)) if trees else [connect_four_numpy.State()]
    return lambda: sum(int(result.simulations) for result in search.run(starts))


def perft(fen: str, depth: int) -> Work:
    """Perft."""
    position = games.Chess(fen)
    return lambda: _core.perft(position, depth)


def playout_length(game: str, games: int) -> dict[str, Any]:
    """Returns the mean number of moves of a random game, without passes of Othello."""
    start = GAMES[game]()
    ends = (start._playout(key, "random", None)[2] for key in range(games))
    return {"mean": sum(map(_moves_made, ends)) / games}


def _moves_made(state: Any) -> int:
    if isinstance(state, games.Chess):
        turn, full_moves = state.fen().split()[1::4]
        return 2 * (int(full_moves) - 1) + (turn == "b")
    stones = int(state.observation()[:2].sum())
    return stones - 4 if isinstance(state, games.Othello) else stones


def memory(game: str, sims: int) -> dict[str, Any]:
    """Returns the memory that one search adds to this process, and the memory its result reports."""
    start = GAMES[game]()
    UCT(100, solve=False, seed=1).run(start)
    before = resident_bytes()
    result = UCT(sims, c_param=1.0, solve=False, seed=1).run(start)
    return {
        "simulations": result.simulations,
        "resident": resident_bytes() - before,
        "reported": result.memory,
        "edges": result._view.num_edges,
    }


def roots(count: int, sims: int, threads: int) -> dict[str, Any]:
    """Returns the wall time of one call for `count` positions; `visits` do not depend on the threads."""
    states = _openings(count)
    search = UCT(sims, c_param=1.0, solve=False, seed=1, threads=threads)
    search.run(states[:threads])
    cpu, wall = time.process_time(), time.perf_counter()
    results = search.run(states, seeds=1)
    wall = time.perf_counter() - wall
    return {"wall": wall, "cpu": time.process_time() - cpu, "visits": [result.visits.tolist() for result in results]}


def roots_parts(count: int, sims: int, threads: int) -> dict[str, Any]:
    """Returns the CPU time of the same call in the engine, which is parallel, and outside, which is serial."""
    states = _openings(count)
    search = UCT(sims, c_param=1.0, solve=False, seed=1, threads=threads)
    begun = time.process_time()
    forest = search.forest(states, seeds=1)
    planted = time.process_time()
    forest.simulate(sims)
    grown = time.process_time()
    results = [forest.result(row) for row in range(count)]
    ended = time.process_time()
    return {"inside": grown - planted, "outside": ended - grown + planted - begun, "results": len(results)}


def _openings(count: int) -> list[Any]:
    """Returns distinct, unfinished Connect 4 positions after two to ten random moves."""
    draw = random.Random(1)
    found: dict[Any, None] = {}
    while len(found) < count:
        state = games.ConnectFour()
        for _ in range(draw.randint(2, 10)):
            if not state.is_terminal:
                state = state.play(draw.choice(state.legal_actions()))
        if not state.is_terminal:
            found[state] = None
    return list(found)


def environment() -> dict[str, Any]:
    """Returns the version and the build."""
    engine = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    return {"packages": {name: version(name) for name in ("pondertree", "numpy")}, "engine": engine[:12]}


if __name__ == "__main__":
    serve(
        rates={
            "uct": uct,
            "python_uct": python_uct,
            "arrays_uct": arrays_uct,
            "perft": perft,
            "puct_compiled": ours_alphazero.puct_compiled,
            "puct_python": ours_alphazero.puct_python,
            "call": ours_hybrid.call,
            "latent_tree": ours_muzero.latent_tree,
            "latent_loop": ours_muzero.latent_loop,
            "latent_search": ours_muzero.latent_search,
        },
        handlers={
            "playout_length": playout_length,
            "memory": memory,
            "roots": roots,
            "roots_parts": roots_parts,
            "puct_memory": ours_alphazero.puct_memory,
            "tree_share": ours_alphazero.tree_share,
            "one_move": ours_alphazero.one_move,
            "hybrid": ours_hybrid.hybrid,
            "hybrid_threads": ours_hybrid.hybrid_threads,
            "mates": ours_hybrid.mates,
            "latent_memory": ours_muzero.latent_memory,
            "environment": environment,
        },
    )
