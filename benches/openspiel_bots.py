"""Matches against OpenSpiel's search bots at equal time. `python benches/openspiel_bots.py`.

Both sides are UCT with random playouts and the same exploration, `Q + sqrt(2 ln N / n)`, and prove results. OpenSpiel's
C++ bot plays the games that are compiled here, its Python bot other games, which Pondertree searches through
OpenSpiel. Bots think in turn in one thread. Time is that of the CPU, so that other processes do not count. OpenSpiel's
bots are limited by simulations: 5 % more than fitted into the time at the same move of the last game. Openings are
random; each is played from both sides.

Prints the rows of the tables in RESULTS.md.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import mcts

import pondertree
from pondertree.envs import as_openspiel_bot, from_openspiel
from pondertree.match.statistics import estimate, score_of

UCT_C = math.sqrt(2)
Step = Callable[[Any], tuple[int, int]]
"""Maps a state to (action, simulations)."""
#: The time of OpenSpiel's bots in that of ours.
ADVANTAGE = 1.05
#: Games with the random moves of their openings.
CPP = {
    "tic_tac_toe": 1,
    "connect_four": 2,
    "othello": 4,
    "hex": 2,
    "breakthrough": 4,
    "chess": 4,
    "backgammon": 2,
    "pig": 2,
}
PYTHON = {
    "clobber": 2,
    "oware": 4,
    "pentago": 2,
    "ultimate_tic_tac_toe": 4,
    "dots_and_boxes(num_rows=4,num_cols=4)": 4,
    "gomoku(size=9)": 2,
    "y(board_size=9)": 2,
    "go(board_size=9)": 2,
    "einstein_wurfelt_nicht": 4,
}
#: Games whose steps are measured.
STEPS = ["tic_tac_toe", "connect_four", "go(board_size=9)", "chess", "amazons", "pentago", "backgammon", "pig", "2048"]


@dataclass
class Player:
    """A bot, and what its moves took."""

    step: Step
    seconds: list[float] = field(default_factory=list)
    simulations: list[int] = field(default_factory=list)

    def move(self, state: Any) -> int:
        """Returns the action to play, and measures it unless it is forced."""
        begun = time.thread_time()
        action, simulations = self.step(state)
        if len(state.legal_actions()) > 1:
            self.seconds.append(time.thread_time() - begun)
            self.simulations.append(simulations)
        return action

    def __str__(self) -> str:
        return f"{1000 * statistics.mean(self.seconds):.1f} ms | {statistics.median(self.simulations):,.0f}"


def ours(kind: str, seconds: float, seed: int) -> Callable[[int], Step]:
    """Returns the function from a player's number to its steps, which search in slices until the time is over."""
    slice_ = 20 if kind == "python" else 200

    def made(player: int) -> Step:
        bot = as_openspiel_bot(pondertree.UCT(slice_, seed=seed), player)

        def step(state: Any) -> tuple[int, int]:
            deadline = time.thread_time() + seconds
            while True:
                action = bot.step(state)
                if len(state.legal_actions()) == 1:
                    return action, 0
                result = bot.tree.result()
                if time.thread_time() >= deadline or result.proven is not None:
                    return action, result.simulations

        return step

    return made


def fitted(search: Callable[[Any, int], Any], seconds: float) -> Step:
    """Returns the steps of a search (state, simulations) -> root that fits simulations into the time."""
    rates: dict[int, float] = {}

    def step(state: Any) -> tuple[int, int]:
        # A move of the same number in the last game takes as long as this one; in the first game, the move before.
        number = state.move_number()
        known = max((each for each in rates if each <= number), default=None)
        simulations = 20 if known is None else max(2, round(rates[known] * ADVANTAGE * seconds))
        begun = time.thread_time()
        root = search(state, simulations)
        rates[number] = root.explore_count / (time.thread_time() - begun)
        return root.best_child().action, root.explore_count

    return step


def cpp(game: Any, seconds: float, seed: int) -> Step:
    """Returns the steps of the C++ bot."""
    evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
    rule = pyspiel.ChildSelectionPolicy.UCT

    def search(state: Any, simulations: int) -> Any:
        return pyspiel.MCTSBot(game, evaluator, UCT_C, simulations, 0, True, seed, False, rule).mcts_search(state)

    return fitted(search, seconds)


def python(game: Any, seconds: float, seed: int) -> Step:
    """Returns the steps of the bot in Python."""
    numbers = np.random.RandomState(seed)
    bot = mcts.MCTSBot(game, UCT_C, 20, mcts.RandomRolloutEvaluator(1, numbers), True, numbers)

    def search(state: Any, simulations: int) -> Any:
        bot.max_simulations = simulations
        return bot.mcts_search(state)

    return fitted(search, seconds)


def play(start: Any, players: list[Player], dice: random.Random) -> list[float]:
    """Plays a game and returns its results."""
    state = start.clone()
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, chances = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(dice.choices(outcomes, chances)[0])
        else:
            state.apply_action(players[state.current_player()].move(state))
    results: list[float] = state.returns()
    return results


def opening(game: Any, moves: int, dice: random.Random) -> Any:
    """Returns the state after random moves."""
    state = game.new_initial_state()
    while moves or state.is_chance_node():
        if state.is_chance_node():
            outcomes, chances = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(dice.choices(outcomes, chances)[0])
        else:
            state.apply_action(dice.choice(state.legal_actions()))
            moves -= 1
    return state


def match(name: str, moves: int, kind: str, seconds: float, pairs: int, seed: int) -> str:
    """Returns the row of a match."""
    game = pyspiel.load_game(name)
    make = {"cpp": cpp, "python": python}[kind]
    mine, other = Player(lambda state: (0, 0)), Player(make(game, seconds, seed))
    counts, totals = [0] * 5, [0, 0, 0]
    if kind == "python":  # its first search measures its rate
        other.step(opening(game, 0, random.Random(seed)))
    for pair in range(pairs):
        start = opening(game, moves, random.Random(1000 * seed + pair))
        points = 0
        for player in (0, 1):
            mine.step = ours(kind, seconds, 1000 * seed + pair)(player)
            both = [mine, other] if player == 0 else [other, mine]
            result = play(start, both, random.Random(1000 * seed + pair))[player]
            points += round(result) + 1
            totals[round(1 - result)] += 1
        counts[points] += 1
    elo = estimate(counts)
    return (
        f"| {name} | {2 * pairs} | +{totals[0]} ={totals[1]} -{totals[2]} | {elo.score:.1%} "
        f"({score_of(elo.low):.1%} to {score_of(elo.high):.1%}) | {elo.elo:+.0f} ({elo.low:+.0f} to {elo.high:+.0f}) "
        f"| {mine} | {other} |"
    )


def steps(name: str, positions: int = 300, rounds: int = 7) -> str:
    """Returns the row of the time of a step, as a search makes it, in OpenSpiel and as a state of this package.

    A step is a move and the reading of what a search needs: the end, the player to move, legal actions or outcomes.
    """
    dice, found = random.Random(1), []
    state = opening(pyspiel.load_game(name), 0, dice)
    while len(found) < positions:
        if state.is_terminal():
            state = opening(pyspiel.load_game(name), 0, dice)
        action = dice.choice(state.legal_actions())
        found.append((state.clone(), from_openspiel(state, compiled=False), action))
        state.apply_action(action)

    def bare(theirs: Any, _: Any, action: int) -> None:
        after = theirs.clone()
        after.apply_action(action)
        if not after.is_terminal():
            (after.chance_outcomes if after.current_player() == pondertree.CHANCE else after.legal_actions)()

    def adapted(_: Any, ours: Any, action: int) -> None:
        after = ours.play(action)
        if not after.is_terminal:
            (after.chance_outcomes if after.to_play == pondertree.CHANCE else after.legal_actions)()

    def seconds(step: Callable[[Any, Any, int], None]) -> float:
        """Returns the mean over positions of the least time of a step."""
        least = [math.inf] * positions
        for _ in range(rounds):
            for index, each in enumerate(found):
                each[1].legal_actions()  # a search has read them
                begun = time.perf_counter()
                step(*each)
                least[index] = min(least[index], time.perf_counter() - begun)
        return statistics.mean(least)

    theirs, ours = 1e6 * seconds(bare), 1e6 * seconds(adapted)
    return f"| {name} | {theirs:.2f} us | {ours:.2f} us | {ours - theirs:+.2f} us |"


def main() -> int:
    """Plays the matches, or measures steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("cpp", "python", "steps"), nargs="+", default=["cpp", "python"])
    parser.add_argument("--only", nargs="+", help="the games to play")
    parser.add_argument("--seconds", type=float, default=0.02, help="of CPU time a move (default: 0.02)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of games (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for kind in given.kind:
        if kind == "steps":
            print("| game | OpenSpiel | adapter | difference |\n| --- | --- | --- | --- |")
            for name in given.only or STEPS:
                print(steps(name), flush=True)
            continue
        print(f"OpenSpiel's {'C++' if kind == 'cpp' else 'Python'} bot, {1000 * given.seconds:.0f} ms a move")
        columns = ("game", "games", "won, drawn, lost", "score (95 %)", "Elo (95 %)")
        columns += ("ours a move", "simulations", "theirs", "simulations")
        print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
        for name, moves in (CPP if kind == "cpp" else PYTHON).items():
            if not given.only or name in given.only:
                print(match(name, moves, kind, given.seconds, given.pairs, given.seed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
