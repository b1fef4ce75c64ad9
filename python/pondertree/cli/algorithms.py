"""The search of a command: `--algorithm` and `--player`, defaults by game, and the levels of `play`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pondertree.chess.hybrid import Hybrid
from pondertree.cli.position import Position
from pondertree.cli.search_report import Move
from pondertree.cli.searcher import EngineSearcher, ReferenceSearcher, Searcher
from pondertree.errors import InvalidArgumentError
from pondertree.presets import UCT, AlphaZero, Gumbel, MuZero
from pondertree.search.base import Search

ALGORITHMS = ("auto", "uct", "alphazero", "gumbel", "muzero", "hybrid", "reference")
#: The help of `--algorithm`.
ALGORITHM_HELP = (
    "auto (default): hybrid for chess, alphazero with the bundled player for connect4, uct for other games, and with "
    "--player the algorithm it was trained for; uct: random playouts and proofs; alphazero, gumbel: a trained player "
    "(chess without --player: the PeSTO evaluation); muzero: a trained model; hybrid: chess with mate search; "
    "reference: UCT in plain Python, with the same results as uct, much slower"
)
#: The game with a bundled player, which has the same name.
BUNDLED = "connect4"
#: Default simulations of compiled searches: at most about a second.
COMPILED_SIMULATIONS = {"uct": 100_000, "hybrid": 50_000, "alphazero": 50_000, "gumbel": 50_000}
#: Default simulations with a network or a game in Python.
PYTHON_SIMULATIONS = {"uct": 10_000, "reference": 1_000, "alphazero": 400, "gumbel": 400, "muzero": 400}

MAX_LEVEL = 10
NAMED_LEVELS = {"beginner": 1, "easy": 3, "medium": 5, "hard": 8, "full": MAX_LEVEL}
#: Simulations at level 1.
MIN_SIMULATIONS = 4
#: Temperature at level 1.
HIGHEST_TEMPERATURE = 2.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """A search and its limits per move. `seconds` without `simulations` is a pure time limit."""

    algorithm: str
    description: str
    simulations: int | None
    seconds: float | None
    network: Any = None
    """A trained player, a learned model, an evaluator, or None."""
    max_depth: int | None = None
    """Maximum playout length of UCT in moves."""

    def build(self, seed: int | None, threads: int) -> Search:
        """Builds the search."""
        options: dict[str, Any] = {
            "num_simulations": self.simulations,
            "time_limit": self.seconds,
            "seed": seed,
            "threads": threads,
        }
        match self.algorithm:
            case "alphazero":
                return AlphaZero(evaluator=self.network, **options)
            case "gumbel":
                return Gumbel(evaluator=self.network, **options)
            case "muzero":
                return MuZero(model=self.network, **options)
            case "hybrid":
                return Hybrid(**options)
        return UCT(max_depth=self.max_depth, **options)

    def start(self, position: Position, seed: int | None, threads: int) -> Searcher:
        """Creates the searcher at a position."""
        if self.algorithm != "reference":
            return EngineSearcher(
                position, seed, lambda drawn: self.build(drawn, threads), self.algorithm, self.description
            )
        if threads > 1:
            raise InvalidArgumentError("--threads is for the compiled search: the reference runs in one thread")
        return ReferenceSearcher(position, seed, self.max_depth, self.description)


def configure(position: Position, arguments: argparse.Namespace) -> Configuration:
    """Resolves the options of a command to a search; `auto` selects by game and player."""
    algorithm, player, max_depth = arguments.algorithm, arguments.player, arguments.max_depth
    simulations, seconds = arguments.simulations, arguments.seconds
    network, by = None if player is None else _load(player, position), "trained player"
    is_model = hasattr(network, "initial_inference")
    if algorithm == "auto" and network is not None:
        algorithm = "muzero" if is_model else "alphazero"
    elif algorithm == "auto":
        algorithm = {"chess": "hybrid", BUNDLED: "alphazero"}.get(position.game, "uct")
    if algorithm in ("alphazero", "gumbel") and network is None:
        network, by = default_evaluator(algorithm, position)
    _check_player(algorithm, position, network, is_model)
    is_compiled = position.is_compiled and (network is None or (player is None and position.game == "chess"))
    if simulations is None and (seconds is None or algorithm == "gumbel"):
        defaults = PYTHON_SIMULATIONS | (COMPILED_SIMULATIONS if is_compiled else {})
        # A random playout in chess is a hundred times as expensive as in Connect 4.
        slow = algorithm == "uct" and position.game == "chess"
        simulations = PYTHON_SIMULATIONS["uct"] if slow else defaults[algorithm]
    description = {
        "uct": "UCT, compiled" if position.is_compiled else "UCT",
        "reference": "UCT, reference in Python",
        "alphazero": f"AlphaZero, {by}",
        "gumbel": f"Gumbel, {'trained model' if is_model else by}",
        "muzero": "MuZero, trained model",
        "hybrid": "Hybrid, compiled",
    }[algorithm]
    if max_depth is not None:
        if algorithm not in ("uct", "reference"):
            raise InvalidArgumentError(f"--max-depth cuts playouts, and {algorithm} has none: add --algorithm uct")
        description += f", playouts of {max_depth:,} moves"
    return Configuration(algorithm, description, simulations, seconds, network, max_depth)


def _load(player: str, position: Position) -> Any:
    from pondertree.evaluators.protocol import check_player_game
    from pondertree.networks import load_for_one_tree

    network = load_for_one_tree(player)
    check_player_game(network, position.info)
    return network


def default_evaluator(algorithm: str, position: Position) -> tuple[Any, str]:
    """Returns the default evaluator of a game and its description."""
    if position.game == "chess":
        from pondertree.chess.pesto import Pesto

        return Pesto(), "PeSTO evaluation"
    if position.game == BUNDLED:
        return _load(BUNDLED, position), "bundled player"
    raise InvalidArgumentError(
        f"--algorithm {algorithm} needs a trained player of {position.title}: --player DIR, where DIR is made by "
        f"`pondertree train {position.game} --out DIR`"
    )


def _check_player(algorithm: str, position: Position, network: Any, is_model: bool) -> None:
    """Raises an InvalidArgumentError for a player that does not fit the algorithm, or a missing one."""
    training = f"`pondertree train {position.game} --algorithm muzero --out DIR`"
    if algorithm in ("uct", "hybrid", "reference") and network is not None:
        raise InvalidArgumentError(f"--player is for alphazero, gumbel and muzero, not for --algorithm {algorithm}")
    if algorithm == "hybrid" and position.game != "chess":
        raise InvalidArgumentError(f"--algorithm hybrid is for chess alone, not for {position.title}")
    if algorithm == "muzero" and not is_model:
        given = (
            "this --player is a policy-value network: use --algorithm alphazero or gumbel, or"
            if network is not None
            else "use"
        )
        raise InvalidArgumentError(
            f"--algorithm muzero plans in a learned model: {given} --player DIR, where DIR is made by {training}"
        )
    if algorithm == "alphazero" and is_model:
        raise InvalidArgumentError("this --player is a learned model: use --algorithm muzero or gumbel with it")


@dataclass(frozen=True, slots=True)
class Level:
    """A playing strength from 1 to 10. Lower levels search less and sample moves by visits.

    Simulations grow geometrically from `MIN_SIMULATIONS` at level 1 to full strength at level 10; the temperature falls
    from `HIGHEST_TEMPERATURE` to 0 as ((10 - level) / 9) ** 1.5.
    """

    number: int

    @property
    def is_full(self) -> bool:
        """Whether this is full strength."""
        return self.number == MAX_LEVEL

    @property
    def temperature(self) -> float:
        """The sampling temperature; 0 plays the best move."""
        return HIGHEST_TEMPERATURE * math.pow((MAX_LEVEL - self.number) / (MAX_LEVEL - 1), 1.5)

    def simulations(self, full: int) -> int:
        """Returns the simulations of this level if full strength has `full`."""
        growth = (self.number - 1) / (MAX_LEVEL - 1)
        return max(1, round(MIN_SIMULATIONS * math.pow(full / MIN_SIMULATIONS, growth)))

    def choose(self, moves: Sequence[Move], simulations: int, random: Random) -> Move:
        """Samples a move with probability proportional to (visits + 1) ** (1 / temperature); the first one is the best.

        A proven win counts as visited by all simulations as well, a proven loss as unvisited.
        """
        best = moves[0]
        if self.temperature == 0.0:
            return best
        visits = [0 if move.proven == -1 and best.proven != -1 else move.visits for move in moves]
        if best.proven == 1:
            visits[0] += simulations
        largest = max(visits) + 1
        weights = [((count + 1) / largest) ** (1.0 / self.temperature) for count in visits]
        return random.choices(moves, weights)[0]


def level(text: str) -> Level:
    """Parses a level: a number from 1 to 10, or a name."""
    numbers = {str(number): number for number in range(1, MAX_LEVEL + 1)}
    number = (numbers | NAMED_LEVELS).get(text.lower())
    if number is None:
        names = ", ".join(f"{name} ({named})" for name, named in NAMED_LEVELS.items())
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MAX_LEVEL}, or {names}, not {text!r}")
    return Level(number)
