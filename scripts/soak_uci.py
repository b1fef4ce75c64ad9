"""Games of the UCI engine against itself on a clock, under CPU load.

    python scripts/soak_uci.py --games 200 --base 1 --increment 0.01 --busy 2

Counts time losses, illegal moves, crashes and missing replies, none of which may occur. Time is measured by the referee
from writing `go` to reading `bestmove`, without a margin. Exits with status 1 after any fault.
"""

from __future__ import annotations

import argparse
import queue
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from pondertree.games import Chess

#: Seconds without a reply after which a program has hung.
REPLY_TIMEOUT = 30.0
MAX_PLIES = 400


class Program:
    """An engine process."""

    def __init__(self, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "pondertree", "uci", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lines: queue.Queue[tuple[str, float]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.ask("uci", "uciok")
        self.ask("isready", "readyok")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put((line.decode().strip(), time.perf_counter()))

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, text: str, answer: str) -> tuple[str, float]:
        """Sends a command and returns the first line that starts with `answer`, and the seconds until it arrived."""
        started = time.perf_counter()
        self.tell(text)
        while True:
            line, arrived = self._lines.get(timeout=REPLY_TIMEOUT)
            if line.startswith(answer):
                return line, arrived - started

    def close(self) -> int:
        self.tell("quit")
        return self.process.wait(REPLY_TIMEOUT)


@dataclass
class Tally:
    """Statistics of all games."""

    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    moves: int = 0
    lowest: float = float("inf")
    """The lowest clock after a move, in seconds."""
    slowest: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The move with the largest share of its clock: (share, seconds, clock)."""
    used: list[float] = field(default_factory=list)
    """Time used as a share of the time given, per game and side."""


def play(programs: list[Program], base: float, increment: float, random_numbers: random.Random, tally: Tally) -> None:
    """Plays one game; the first program has White."""
    state, moves = Chess(), []
    for program in programs:
        program.tell("ucinewgame")
        program.ask("isready", "readyok")
    while len(moves) < 6:
        action = random_numbers.choice(state.legal_actions())
        moves.append(state.action_to_string(action))
        state = state.play(action)
    clocks, given, spent = [base, base], [base, base], [0.0, 0.0]
    end = "plies"
    while len(moves) < MAX_PLIES:
        if state.is_terminal or state.repetitions >= 2 or int(state.fen().split()[4]) >= 100:
            end = state.termination or "claimed draw"
            break
        side = state.to_play
        program = programs[side]
        program.tell(f"position startpos moves {' '.join(moves)}")
        left = [max(int(1000 * clock), 1) for clock in clocks]
        step = int(1000 * increment)
        try:
            line, elapsed = program.ask(f"go wtime {left[0]} btime {left[1]} winc {step} binc {step}", "bestmove")
        except (queue.Empty, OSError):
            tally.faults["dead or silent"] += 1
            raise
        tally.slowest = max(tally.slowest, (elapsed / clocks[side], elapsed, clocks[side]))
        clocks[side] -= elapsed
        spent[side] += elapsed
        tally.moves += 1
        tally.lowest = min(tally.lowest, clocks[side])
        if clocks[side] < 0.0:
            tally.faults["time loss"] += 1
            end = f"time loss by {-1000 * clocks[side]:.1f} ms"
            break
        text = line.split()[1]
        if text not in [state.action_to_string(action) for action in state.legal_actions()]:
            tally.faults["illegal move"] += 1
            end = f"illegal move {text}"
            break
        clocks[side] += increment
        given[side] += increment
        moves.append(text)
        state = state.play(state.parse_action(text))
    tally.ends[end] += 1
    tally.used += [spent[side] / given[side] for side in (0, 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--base", type=float, default=1.0, help="seconds on each clock")
    parser.add_argument("--increment", type=float, default=0.01, help="seconds added after each move")
    parser.add_argument("--busy", type=int, default=2, help="number of busy-looping load processes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--option", action="append", default=[], help="an option of both engines, NAME=VALUE")
    arguments = parser.parse_args()
    options = [word for given in arguments.option for word in ("--option", given)]
    random_numbers, tally = random.Random(arguments.seed), Tally()
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.busy)]
    programs = [Program(options) for _ in range(2)]
    try:
        for number in range(arguments.games):
            play(programs[:: 1 if number % 2 == 0 else -1], arguments.base, arguments.increment, random_numbers, tally)
            if (number + 1) % 10 == 0:
                print(f"{number + 1} games: {dict(tally.faults) or 'no faults'}", flush=True)
        statuses = [program.close() for program in programs]
        if any(statuses):
            tally.faults["exit status"] += 1
    finally:
        for process in [*load, *(program.process for program in programs)]:
            process.kill()
    used = sorted(tally.used)
    print(f"games {arguments.games}, moves {tally.moves}, ends {dict(tally.ends)}")
    print(f"faults {dict(tally.faults) or 'none'}; lowest clock {1000 * tally.lowest:.1f} ms")
    print("slowest move: {:.0%} of its clock, {:.3f} of {:.3f} s".format(*tally.slowest))
    print(f"time used: median {used[len(used) // 2]:.0%} of what was given")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
