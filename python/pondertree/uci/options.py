"""The options of the engine: a table of what each takes, and the values that were set.

UCI has no type for numbers with a point; those are strings here, as other engines have them, and checked like the rest.
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

#: How UCI writes a string that is empty.
EMPTY = "<empty>"

#: PeSTO's public weights: one object, so that the same option is the same search.
PUBLISHED = Pesto.published()

Check = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `default` is what UCI is told; `read` turns what was typed into what the engine uses."""

    name: str
    kind: str
    """spin, check, combo, string or button."""
    default: str
    help: str
    read: Check
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    renews: bool = False
    """A change means another search: the tree is not kept."""

    def declaration(self) -> str:
        """The line that tells UCI of it."""
        parts = [f"option name {self.name} type {self.kind}"]
        if self.kind != "button":
            parts.append(f"default {self.default}")
        if self.kind == "spin":
            parts.append(f"min {self.least} max {self.most}")
        parts.extend(f"var {choice}" for choice in self.choices)
        return " ".join(parts)


def _spin(name: str, default: int, least: int, most: int, help: str, renews: bool = False) -> Option:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise InvalidArgumentError(f"must be a whole number, not {shown(text)}") from None
        if not least <= number <= most:
            raise InvalidArgumentError(f"must be from {least} to {most}, not {shown(text)}")
        return number

    return Option(name, "spin", str(default), help, read, least=least, most=most, renews=renews)


def _check(name: str, default: bool, help: str, renews: bool = False) -> Option:
    def read(text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise InvalidArgumentError(f"must be true or false, not {shown(text)}")
        return text.lower() == "true"

    return Option(name, "check", str(default).lower(), help, read, renews=renews)


def _combo(name: str, default: str, choices: tuple[str, ...], help: str) -> Option:
    def read(text: str) -> str:
        found = next((choice for choice in choices if choice.lower() == text.lower()), None)
        if found is None:
            raise InvalidArgumentError(f"must be one of {', '.join(choices)}, not {shown(text)}")
        return found

    return Option(name, "combo", default, help, read, choices=choices, renews=True)


def _string(name: str, default: str, read: Check, help: str) -> Option:
    return Option(name, "string", default, help, read, renews=True)


def number(text: str, least: float, most: float) -> float:
    """A number within bounds."""
    try:
        found = float(text)
    except ValueError:
        raise InvalidArgumentError(f"must be a number, not {shown(text)}") from None
    if not least <= found <= most:  # NaN is not
        raise InvalidArgumentError(f"must be from {least:g} to {most:g}, not {shown(text)}")
    return found


def _exploration(text: str) -> float:
    return number(text, 0.0, 1000.0)


def _fpu(text: str) -> float | tuple[str, float]:
    """A number, or `parent`, or `parent 0.2`: the value of the position less so much."""
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
    """Read at once, so that a bad file is refused and the old weights stay."""
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
    """Whether `Path.is_file` or `Path.is_dir` holds; not for a name that no file can have (too long, a NUL)."""
    try:
        return predicate(Path(text))
    except (OSError, ValueError):
        return False


TABLE: tuple[Option, ...] = (
    _spin("Hash", 512, 1, 1 << 20, "memory of the tree, in MiB; a full tree stops growing", renews=True),
    _spin("Threads", 1, 1, 256, "threads that look at leaves, at most one for each CPU", renews=True),
    _spin("MultiPV", 1, 1, 218, "lines that are reported"),
    _check("Ponder", False, "the program lets the engine think while the opponent does"),
    _spin("Move Overhead", 50, 0, 10_000, "milliseconds that are lost between engine and program, for each move"),
    _check("UCI_ShowWDL", False, "report chances of win, draw and loss, in permille"),
    _check("VerboseMoveStats", False, "statistics of every move before the answer"),
    Option("Clear Hash", "button", "", "forget the tree", str),
    _combo("Algorithm", "hybrid", ("hybrid", "alphazero"), "which search plays; alphazero needs a NetworkFile"),
    _string("NetworkFile", EMPTY, _network_file, "the network of alphazero: an .onnx file, or a training"),
    _string("EvalFile", EMPTY, _eval_file, "weights of hybrid's evaluation: a file of Pesto.to_file, or published"),
    _spin("MateSearchDepth", 3, 0, MAX_MATE_DEPTH, "moves in which hybrid looks for mates; 0 does not", renews=True),
    _check("Endings", True, "play king and one piece against king by exact tables", renews=True),
    _string("ExplorationConstant", "1.5", _exploration, "how much hybrid (c_puct of alphazero) explores"),
    _combo("Priority", "prior", ("strict", "tactical", "prior", "none"), "what hybrid's kinds of moves are for"),
    _spin("SeeThreshold", 0, 0, 20_000, "centipawns within which exchanges are even", renews=True),
    _check("Quiescence", True, "value positions after the captures", renews=True),
    _check("MoveScores", True, "prefer moves that look promising, where Priority is prior", renews=True),
    _string("Fpu", "parent 0.0", _fpu, "value of a move never tried: a number, or parent less a number"),
    _string(
        "CategoryWeights",
        " ".join(f"{weight:g}" for weight in CATEGORY_WEIGHTS),
        _weights,
        "what priors are multiplied by, for each of the ten kinds of moves",
    ),
    _spin("Seed", 1, 0, (1 << 31) - 1, "the same seed, the same search", renews=True),
)

BY_NAME = {option.name.lower(): option for option in TABLE}


class Options:
    """The values that are set. Names are compared without regard to case."""

    def __init__(self) -> None:
        self._values = {option.name: option.read(option.default) for option in TABLE}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def set(self, name: str, value: str | None) -> Option:
        """Sets one; an InvalidArgumentError names the option, and the old value stays."""
        option = BY_NAME.get(name.lower())
        if option is None:
            raise InvalidArgumentError(f"there is no option {shown(name)}")
        if option.kind != "button":
            if value is None:
                raise InvalidArgumentError(f"option {option.name} wants a value")
            try:
                self._values[option.name] = option.read(value)
            except (PondertreeError, OSError, ValueError) as error:
                raise InvalidArgumentError(f"option {option.name}: {error}") from None
        return option

    def copy(self) -> Options:
        """The values as they are now."""
        same = Options.__new__(Options)
        same._values = dict(self._values)
        return same

    @property
    def search_key(self) -> tuple[Any, ...]:
        """Two with the same key search alike."""
        return tuple(self._values[option.name] for option in TABLE if option.renews)


def declarations() -> Iterator[str]:
    """The lines that tell UCI of all options."""
    return (option.declaration() for option in TABLE)


#: Leaves in flight for each thread that was asked for, inside the engine and in a network's batch alike: fewer leave
#: threads without work. They do not depend on the CPUs of the machine, so that the same options search the same tree.
LEAVES_PER_THREAD = 8
#: Leaves in flight at most: a batch must be over soon after `stop`, also on two cores (some 15 ms there).
MOST_LEAVES = 256
#: The root is searched for mates within ten positions for each of these, some hundredths of a second: `stop` must
#: not wait longer for its answer, and a clock may have no more than that.
SIMULATIONS = 2000
#: PeSTO's own weights.
USUAL = Pesto()


def open_network(path: str, threads: int) -> Any:
    """The network of an ONNX file, or the player of a training."""
    from pondertree.networks.loading import check_player_game, is_onnx, load, load_onnx

    player = load_onnx(path, threads) if is_onnx(path) else load(path)
    check_player_game(player, describe(Chess()))
    return player


def build(options: Options) -> Search:
    """The search that the options ask for. Raises a ValueError or OSError where they cannot be followed."""
    threads: int = options["Threads"]
    in_flight = 1 if threads == 1 else min(LEAVES_PER_THREAD * threads, MOST_LEAVES)
    shared: dict[str, Any] = {
        "num_simulations": SIMULATIONS,
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
            in_flight=max(in_flight, LEAVES_PER_THREAD),
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
    """The classical evaluation with the weights that were asked for."""
    weights: Pesto | None = options["EvalFile"]
    return USUAL if weights is None else weights


def scale(options: Options) -> float:
    """Centipawns of the sigmoid by which values came about: a network's are read on the usual scale."""
    return evaluation(options).scale if options["Algorithm"] == "hybrid" else DEFAULT_SCALE
