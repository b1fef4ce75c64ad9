"""The search of a command: `--algorithm` and `--player`, defaults by game, and the levels of `play`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pondertree.chess.hybrid import Hybrid
from pondertree.cli.position import Position
from pondertree.cli.search_report import Move
from pondertree.cli.searcher import EngineSearcher, ReferenceSearcher, Searcher
from pondertree.errors import InvalidArgumentError
from pondertree.presets import UCT, AlphaZero, Gumbel, MuZero
from pondertree.search.base import Search


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """A search that `--algorithm` names."""

    title: str
    help: str
    search: type[Search] | None
    """The preset; None is the reference implementation."""
    simulations: int
    """Default simulations with a network or a game in Python."""
    compiled_simulations: int | None = None
    """Default simulations of compiled searches: at most about a second."""
    players: tuple[str, ...] = ()
    """What `--player` may be, one of which is required: an "evaluator" or a learned "model"."""
    game: str | None = None
    """The only game of the search."""
    has_playouts: bool = False


#: The searches by name; the page of `pondertree view` offers those of presets.
ALGORITHMS = {
    "uct": SearchChoice("UCT", "random playouts and proofs", UCT, 10_000, 100_000, has_playouts=True),
    "alphazero": SearchChoice(
        "AlphaZero",
        "a trained player (chess without --player: the PeSTO evaluation)",
        AlphaZero,
        400,
        50_000,
        players=("evaluator",),
    ),
    "gumbel": SearchChoice(
        "Gumbel",
        "sequential halving, with a trained player or model",
        Gumbel,
        400,
        50_000,
        players=("evaluator", "model"),
    ),
    "muzero": SearchChoice("MuZero", "a trained model", MuZero, 400, players=("model",)),
    "hybrid": SearchChoice("Hybrid", "chess with mate search", Hybrid, 50_000, 50_000, game="chess"),
    "reference": SearchChoice(
        "UCT", "UCT in plain Python, with the same results as uct, much slower", None, 1_000, has_playouts=True
    ),
}
#: The help of `--algorithm`.
ALGORITHM_HELP = (
    "auto (default): hybrid for chess, alphazero with the bundled player for connect4, uct for other games; with "
    "--player muzero for a learned model, gumbel in games with rewards, else alphazero; "
) + "; ".join(f"{name}: {algorithm.help}" for name, algorithm in ALGORITHMS.items())
#: The game with a bundled player, which has the same name.
BUNDLED = "connect4"
#: The options of Gumbel search that a bundled player was measured with.
GUMBEL_OPTIONS: dict[str, dict[str, Any]] = {"2048": {"gumbel_scale": 0.0, "discount": 0.997, "chance": "sample"}}

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
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the preset that depend on the game and the player."""

    def build(self, seed: int | None, threads: int) -> Search:
        """Builds the search."""
        chosen = ALGORITHMS[self.algorithm]
        if chosen.search is None:
            raise InvalidArgumentError(f"--algorithm {self.algorithm} is no preset")
        options: dict[str, Any] = {
            "num_simulations": self.simulations,
            "time_limit": self.seconds,
            "seed": seed,
            "threads": threads,
            **self.options,
        }
        if chosen.players:
            options[chosen.players[0]] = self.network
        if chosen.has_playouts:
            options["max_depth"] = self.max_depth
        return chosen.search(**options)

    def start(self, position: Position, seed: int | None, threads: int) -> Searcher:
        """Creates the searcher at a position."""
        if self.algorithm != "reference":
            return EngineSearcher(
                position, seed, lambda drawn: self.build(drawn, threads), self.algorithm, self.description
            )
        if threads > 1:
            raise InvalidArgumentError("--threads is for the compiled search: the reference runs in one thread")
        return ReferenceSearcher(position, seed, self.max_depth, self.description, self.options)


def configure(position: Position, arguments: argparse.Namespace) -> Configuration:
    """Resolves the options of a command to a search; `auto` selects by game and player."""
    algorithm, player, max_depth = arguments.algorithm, arguments.player, arguments.max_depth
    simulations, seconds = arguments.simulations, arguments.seconds
    network, by = None if player is None else _load(player, position), "trained player"
    is_model = hasattr(network, "initial_inference")
    if algorithm == "auto" and network is not None:
        algorithm = "muzero" if is_model else "gumbel" if position.info.has_rewards else "alphazero"
    elif algorithm == "auto":
        algorithm = {"chess": "hybrid", BUNDLED: "alphazero"}.get(position.game, "uct")
    chosen = ALGORITHMS[algorithm]
    if "evaluator" in chosen.players and network is None:
        network, by = default_evaluator(algorithm, position)
    _check_player(algorithm, position, network, is_model)
    is_compiled = position.is_compiled and (network is None or (player is None and position.game == "chess"))
    needs_simulations = chosen.search is not None and chosen.search.requires_simulation_budget
    if simulations is None and (seconds is None or needs_simulations):
        # A random playout in chess is a hundred times as expensive as in Connect 4.
        is_slow = not is_compiled or (chosen.has_playouts and position.game == "chess")
        simulations = chosen.simulations if is_slow else chosen.compiled_simulations or chosen.simulations
    description = chosen.title
    if chosen.search is None:
        description += ", reference in Python"
    elif network is not None:
        description += ", trained model" if is_model else f", {by}"
    elif position.is_compiled:
        description += ", compiled"
    if max_depth is not None:
        if not chosen.has_playouts:
            raise InvalidArgumentError(f"--max-depth cuts playouts, and {algorithm} has none: add --algorithm uct")
        description += f", playouts of {max_depth:,} moves"
    options = options_of_game(algorithm, position, player)
    return Configuration(algorithm, description, simulations, seconds, network, max_depth, options)


def options_of_game(algorithm: str, position: Position, player: str | None) -> dict[str, Any]:
    """Returns the options of a preset that depend on the game and the player: sums of rewards have any size."""
    if position.info.has_rewards and algorithm in ("uct", "alphazero", "reference"):
        return {"normalize": "tree"}
    return GUMBEL_OPTIONS.get(player or "", {}) if algorithm == "gumbel" else {}


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
    chosen = ALGORITHMS[algorithm]
    kind = "model" if is_model else "evaluator"
    if not chosen.players and network is not None:
        names = _joined([name for name, one in ALGORITHMS.items() if one.players], "and")
        raise InvalidArgumentError(f"--player is for {names}, not for --algorithm {algorithm}")
    if chosen.game not in (None, position.game):
        raise InvalidArgumentError(f"--algorithm {algorithm} is for {chosen.game} alone, not for {position.title}")
    if not chosen.players or (network is not None and kind in chosen.players):
        return
    fitting = _joined([name for name, one in ALGORITHMS.items() if kind in one.players], "or")
    if is_model:
        raise InvalidArgumentError(f"this --player is a learned model: use --algorithm {fitting} with it")
    given = "use"
    if network is not None:
        given = f"this --player is a policy-value network: use --algorithm {fitting}, or"
    raise InvalidArgumentError(
        f"--algorithm {algorithm} plans in a learned model: {given} --player DIR, where DIR is made by "
        f"`pondertree train {position.game} --algorithm muzero --out DIR`"
    )


def _joined(names: list[str], word: str) -> str:
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


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
