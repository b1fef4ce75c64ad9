"""Speed of the Connect 4 solver on random positions by ply, single-threaded.

python benches/connect_four_solver.py [--count 50] [--plies 6,8,12,16] [--empty]
"""

from __future__ import annotations

import argparse
import time

from pondertree._core import PlayoutRandom
from pondertree.games import ConnectFour
from pondertree.games.connect_four import solve


def random_position(seed: int, plies: int) -> ConnectFour:
    """Returns an unfinished position after `plies` random moves."""
    random = PlayoutRandom(seed)
    while True:
        state = ConnectFour()
        for _ in range(plies):
            if not state.is_terminal:
                legal = state.legal_actions()
                state = state.play(legal[random.choose(len(legal))])
        if not state.is_terminal:
            return state


def measure(states: list[ConnectFour], weak: bool, max_memory: int) -> str:
    """Returns a row of mean and maximum time, visited nodes and nodes per second."""
    times, nodes = [], 0
    for state in states:
        begun = time.perf_counter()
        nodes += solve(state, weak=weak, max_memory=max_memory).nodes
        times.append(time.perf_counter() - begun)
    total, count = sum(times), len(states)
    return f"{1000 * total / count:12.2f} {1000 * max(times):12.2f} {nodes / count:14.0f} {nodes / total / 1e6:10.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=50, help="positions of each ply")
    parser.add_argument("--plies", default="6,8,12,16", help="stones on the board, with commas between")
    parser.add_argument("--empty", action="store_true", help="the empty board too, weakly: this takes long")
    parser.add_argument("--max-memory", type=int, default=64, help="MiB")
    arguments = parser.parse_args()
    print(f"{'ply':>5} {'mode':>7} {'mean ms':>12} {'longest ms':>12} {'mean nodes':>14} {'M nodes/s':>10}")
    for plies in map(int, arguments.plies.split(",")):
        states = [random_position(seed, plies) for seed in range(arguments.count)]
        for weak in (True, False):
            mode = "weak" if weak else "strong"
            print(f"{plies:5} {mode:>7} {measure(states, weak, arguments.max_memory)}", flush=True)
    if arguments.empty:
        print(f"{0:5} {'weak':>7} {measure([ConnectFour()], True, arguments.max_memory)}", flush=True)


if __name__ == "__main__":
    main()
