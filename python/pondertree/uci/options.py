"""The UCI options: their declarations, their values, and the search they configure.

UCI has no floating-point type: such options are declared as strings, as in other engines, and validated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pondertree.chess.config import CATEGORY_WEIGHTS, MAX_MATE_DEPTH
from pondertree.chess.hybrid import Hybrid
from pondertree.chess.pesto import Pesto
from pondertree.chess.weights import DEFAULT_SCALE
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.game import describe
from pondertree.games import Chess
from pondertree.presets import AlphaZero
from pondertree.search.base import Search
from pondertree.uci.protocol import shown

#: The UCI notation of an empty string.
EMPTY = "<empty>"

#: PeSTO's original weights; a single object, so that equal options have equal search keys.
PUBLISHED = Pesto.published()

Check = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """A UCI option; `default` as declared to the GUI, `read` parses and validates a value."""

    name: str
    kind: str
    """spin, check, combo, string or button."""
    default: str
    help: str
    read: Check
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    resets_search: bool = True
    """Whether a change requires a new search, without tree reuse."""

    def declaration(self) -> str:
        """Returns its declaration line."""
        parts = [f"option name {self.name} type {self.kind}"]
        if self.kind != "button":
            parts.append(f"default {self.default}")
        if self.kind == "spin":
            parts.append(f"min {self.least} max {self.most}")
        parts.extend(f"var {choice}" for choice in self.choices)
        return " ".join(parts)


def _spin(name: str, default: int, least: int, most: int, help: str, resets_search: bool = True) -> Option:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise InvalidArgumentError(f"must be a whole number, not {shown(text)}") from None
        if not least <= number <= most:
            raise InvalidArgumentError(f"must be from {least} to {most}, not {shown(text)}")
        return number

    return Option(name, "spin", str(default), help, read, least=least, most=most, resets_search=resets_search)


def _check(name: str, default: bool, help: str, resets_search: bool = True) -> Option:
    def read(text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise InvalidArgumentError(f"must be true or false, not {shown(text)}")
        return text.lower() == "true"

    return Option(name, "check", str(default).lower(), help, read, resets_search=resets_search)


def _combo(name: str, default: str, choices: tuple[str, ...], help: str) -> Option:
    def read(text: str) -> str:
        found = next((choice for choice in choices if choice.lower() == text.lower()), None)
        if found is None:
            raise InvalidArgumentError(f"must be one of {', '.join(choices)}, not {shown(text)}")
        return found

    return Option(name, "combo", default, help, read, choices=choices)


def _string(name: str, default: str, read: Check, help: str) -> Option:
    return Option(name, "string", default, help, read)


def number(text: str, least: float, most: float) -> float:
    """Parses a number within bounds."""
    try:
        found = float(text)
    except ValueError:
        raise InvalidArgumentError(f"must be a number, not {shown(text)}") from None
    if not least <= found <= most:  # NaN fails as well
        raise InvalidArgumentError(f"must be from {least:g} to {most:g}, not {shown(text)}")
    return found


def _exploration(text: str) -> float:
    return number(text, 0.0, 1000.0)


def _fpu(text: str) -> float | tuple[str, float]:
    """Parses a number, `parent`, or `parent 0.2`: the value of the parent minus a reduction."""
    words = text.split()
    if words[:1] == ["parent"] and len(words) <= 2:
        return "parent", number(words[1], -2.0, 2.0) if len(words) == 2 else 0.0
    return number(text, -2.0, 2.0)


def _weights(text: str) -> tuple[float, ...]:
    words = text.replace(",", " ").split()
    if len(words) != len(CATEGORY_WEIGHTS):
        raise InvalidArgumentError(f"must be {len(CATEGORY_WEIGHTS)} numbers, not {len(words)}")
    return tuple(number(word, 1e-6, 1e6) for word in words)


def _network_file(text: str) -> str | None:
    if text in ("", EMPTY):
        return None
    if _path_is(Path.is_dir, text):
        return text
    if Path(text).suffix.lower() not in (".onnx", ".safetensors"):
        raise InvalidArgumentError(
            f"must be a file in the ONNX format, .onnx, or a training (its folder, or a player's .safetensors); "
            f"{shown(text)} is none. Export it first"
        )
    return _file(text)


def _eval_file(text: str) -> Pesto | None:
    """Reads the file immediately, so that an invalid one leaves the option unchanged."""
    if text in ("", EMPTY):
        return None
    if text.lower() == "published":
        return PUBLISHED
    try:
        return Pesto.from_file(_file(text))
    except OSError as error:
        raise InvalidArgumentError(f"{shown(text)} cannot be read: {error.strerror}") from error


def _file(text: str) -> str:
    if not _path_is(Path.is_file, text):
        raise InvalidArgumentError(f"there is no file {shown(text)}")
    return text


def _path_is(predicate: Callable[[Path], bool], text: str) -> bool:
    """Whether `Path.is_file` or `Path.is_dir` holds; False for impossible names (too long, a NUL)."""
    try:
        return predicate(Path(text))
    except (OSError, ValueError):
        return False


TABLE: tuple[Option, ...] = (
    _spin("Hash", 512, 1, 1 << 20, "memory of the tree in MiB; a full tree stops growing"),
    _spin("Threads", 1, 1, 256, "search threads, at most one per CPU"),
    _spin("MultiPV", 1, 1, 218, "number of principal variations reported", resets_search=False),
    _check("Ponder", False, "search while the opponent is to move, if the GUI supports it", resets_search=False),
    _spin("Move Overhead", 50, 0, 10_000, "communication overhead per move, in milliseconds", resets_search=False),
    _check("UCI_ShowWDL", False, "report win, draw and loss probabilities in permille", resets_search=False),
    _check("VerboseMoveStats", False, "report statistics of every root move before bestmove", resets_search=False),
    Option("Clear Hash", "button", "", "discard the tree", str, resets_search=False),
    _combo("Algorithm", "hybrid", ("hybrid", "alphazero"), "the search algorithm; alphazero needs a NetworkFile"),
    _string("NetworkFile", EMPTY, _network_file, "the network of alphazero: an .onnx file, or a training run"),
    _string("EvalFile", EMPTY, _eval_file, "weights of hybrid's evaluation: a file of Pesto.to_file, or published"),
    _spin(
        "MateSearchDepth",
        3,
        0,
        MAX_MATE_DEPTH,
        "depth of hybrid's mate search in moves; 0: off",
    ),
    _check("Endings", True, "use endgame tables for king and one piece against king"),
    _string("ExplorationConstant", "1.5", _exploration, "exploration constant of hybrid, c_puct of alphazero"),
    _combo("Priority", "prior", ("strict", "tactical", "prior", "none"), "the use of move categories in hybrid"),
    _spin("SeeThreshold", 0, 0, 20_000, "|SEE| in centipawns up to which captures are even"),
    _check("Quiescence", True, "value leaves by a quiescence search"),
    _check("MoveScores", True, "weight priors by learned move scores, if Priority is prior"),
    _string("Fpu", "parent 0.0", _fpu, "first-play urgency: a number, or parent minus a reduction"),
    _string(
        "CategoryWeights",
        " ".join(f"{weight:g}" for weight in CATEGORY_WEIGHTS),
        _weights,
        "prior multipliers of the ten move categories",
    ),
    _spin("Seed", 1, 0, (1 << 31) - 1, "random seed"),
)

BY_NAME = {option.name.lower(): option for option in TABLE}


class Options:
    """The current values. Names are case-insensitive."""

    def __init__(self) -> None:
        self._values = {option.name: option.read(option.default) for option in TABLE}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def set(self, name: str, value: str | None) -> Option:
        """Sets an option; an InvalidArgumentError names it and leaves it unchanged."""
        option = BY_NAME.get(name.lower())
        if option is None:
            raise InvalidArgumentError(f"there is no option {shown(name)}")
        if option.kind != "button":
            if value is None:
                raise InvalidArgumentError(f"option {option.name} requires a value")
            try:
                self._values[option.name] = option.read(value)
            except (PondertreeError, OSError, ValueError) as error:
                raise InvalidArgumentError(f"option {option.name}: {error}") from None
        return option

    def copy(self) -> Options:
        """Returns an independent copy."""
        same = Options.__new__(Options)
        same._values = dict(self._values)
        return same

    @property
    def search_key(self) -> tuple[Any, ...]:
        """The values that determine the search; equal keys share one search and its tree."""
        return tuple(self._values[option.name] for option in TABLE if option.resets_search)


def declarations() -> Iterator[str]:
    """Returns the declaration lines of all options."""
    return (option.declaration() for option in TABLE)


#: Leaves in flight per requested thread: fewer leave threads idle. Independent of the number of CPUs, so that equal
#: options search equal trees.
IN_FLIGHT_PER_THREAD = 8
#: Maximum leaves in flight: a batch must finish soon after `stop` (about 15 ms on two cores).
MAX_IN_FLIGHT = 256
#: Nominal number of simulations, which determines the root's mate search budget: some hundredths of a second, so that
#: neither `stop` nor a short clock waits longer.
NOMINAL_SIMULATIONS = 2000
#: The default evaluation.
DEFAULT_EVALUATION = Pesto()


def open_network(path: str, threads: int) -> Any:
    """Loads the network of an ONNX file or of a training run."""
    from pondertree.evaluators.protocol import check_player_game
    from pondertree.networks import is_onnx, load, load_onnx

    player = load_onnx(path, threads) if is_onnx(path) else load(path)
    check_player_game(player, describe(Chess()))
    return player


def build(options: Options) -> Search:
    """Builds the search of the options. Raises a ValueError or OSError if that is impossible."""
    threads: int = options["Threads"]
    in_flight = 1 if threads == 1 else min(IN_FLIGHT_PER_THREAD * threads, MAX_IN_FLIGHT)
    shared: dict[str, Any] = {
        "num_simulations": NOMINAL_SIMULATIONS,
        "seed": options["Seed"],
        "max_memory": float(options["Hash"]),
        "threads": threads,
    }
    if options["Algorithm"] == "alphazero":
        if options["NetworkFile"] is None:
            raise InvalidArgumentError("Algorithm alphazero needs a network: set the option NetworkFile")
        network = open_network(options["NetworkFile"], threads)
        return AlphaZero(
            network,
            c_puct=options["ExplorationConstant"],
            fpu=options["Fpu"],
            in_flight=max(in_flight, IN_FLIGHT_PER_THREAD),
            **shared,
        )
    return Hybrid(
        evaluation(options),
        mate_search_depth=options["MateSearchDepth"],
        endings=options["Endings"],
        exploration_constant=options["ExplorationConstant"],
        priority=None if options["Priority"] == "none" else options["Priority"],
        see_threshold=options["SeeThreshold"],
        quiescence=options["Quiescence"],
        fpu=options["Fpu"],
        category_weights=options["CategoryWeights"],
        move_scores="learned" if options["MoveScores"] else None,
        in_flight=in_flight,
        **shared,
    )


def evaluation(options: Options) -> Pesto:
    """Returns the classical evaluation with the configured weights."""
    weights: Pesto | None = options["EvalFile"]
    return DEFAULT_EVALUATION if weights is None else weights


def scale(options: Options) -> float:
    """Returns the sigmoid scale of values in centipawns; the default scale for networks."""
    return evaluation(options).scale if options["Algorithm"] == "hybrid" else DEFAULT_SCALE
