"""Player specifications as text: `uct:num_simulations=200,c_param=1.4`, `alphazero:evaluator=onnx:net.onnx`,
`muzero:model=player:DIR`, `uci:crab,nodes=1000`.

A name, a colon, and settings separated by commas; commas inside quotes or brackets belong to values.
"""

from __future__ import annotations

import ast
import inspect
import shlex
from dataclasses import dataclass
from typing import Any

from pondertree import validation
from pondertree.chess.hybrid import Hybrid
from pondertree.chess.move_ordering import MoveScores
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.evaluators import Rollout, Uniform
from pondertree.match.players import Entrant, FunctionEntrant, SearchEntrant, SimpleEntrant
from pondertree.match.uci_player import UciEntrant
from pondertree.presets import UCT, AlphaZero, Gumbel, MuZero
from pondertree.search.base import Search

#: The searches by name.
SEARCHES: dict[str, Any] = {search.__name__.lower(): search for search in (UCT, AlphaZero, Gumbel, Hybrid, MuZero)}
SIMPLE = ("random", "first")
#: Options that have no textual form.
EXCLUDED_OPTIONS = ("gumbel", "policy_network", "seed", "trace")
#: The forms of an evaluator, for error messages.
EVALUATORS = (
    "rollout, uniform, pesto (chess), player:PLAYER (the folder of a training, a .safetensors or .onnx file, or "
    "connect4), onnx:FILE or keras:FILE"
)
_CONSTANTS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class NamedSearch(SearchEntrant):
    """A search specified as text, and pickled as text: every process loads its networks."""

    @property
    def text(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _read, (self.label,)


def read_player(given: Any, which: str = "player") -> Entrant:
    """Converts a text, a search or a function to an entrant; `which` names it in errors."""
    validation.text(which, "which")
    if isinstance(given, Entrant):
        return given
    if isinstance(given, Search):
        return SearchEntrant(given)
    if isinstance(given, str):
        try:
            return _read(given)
        except PondertreeError as error:
            raise type(error)(f"{which} {validation.shown(given)}: {error}") from None
    if callable(given) and not isinstance(given, type):
        return FunctionEntrant(given)
    raise InvalidArgumentError(
        f"{which} must be a text such as 'uct:num_simulations=200', a search, or a function of a state, "
        f"not {validation.shown(given)}"
    )


def _read(text: str) -> Entrant:
    kind, _, rest = text.partition(":")
    kind = kind.strip().lower()
    if kind in SIMPLE:
        if rest.strip():
            raise InvalidArgumentError(f"{kind} has no settings")
        return SimpleEntrant(kind)
    if kind == "uci":
        return _read_program(rest)
    if kind in SEARCHES:
        return _read_search(SEARCHES[kind], rest, text)
    known = ", ".join([*SEARCHES, *SIMPLE, "uci"])
    raise InvalidArgumentError(f"unknown player {kind!r}: known are {known}")


def _read_search(preset: Any, rest: str, label: str) -> Entrant:
    settings = _settings(split(rest))
    reuse, temperature = settings.pop("reuse", False), settings.pop("temperature", None)
    if "seed" in settings:
        raise InvalidArgumentError("seed cannot be set per player: game seeds are derived from the match's")
    allowed = [name for name in inspect.signature(preset).parameters if name not in EXCLUDED_OPTIONS]
    _check_names(settings, allowed, f"{preset.__name__} has {', '.join([*allowed, 'reuse', 'temperature'])}")
    _read_networks(preset, settings)
    if isinstance(settings.get("move_scores"), str) and settings["move_scores"] not in ("learned", "auto"):
        settings["move_scores"] = MoveScores.from_file(settings["move_scores"])
    return NamedSearch(preset(**settings), reuse, temperature, label)


def _read_networks(preset: Any, settings: dict[str, Any]) -> None:
    """Replaces the evaluator or model in `settings` by the loaded object; raises if a required one is missing."""
    parameters = inspect.signature(preset).parameters
    if "model" in settings:
        settings["model"] = read_model(settings["model"])
    elif "evaluator" in settings:
        settings["evaluator"] = read_evaluator(settings["evaluator"])
        if hasattr(settings["evaluator"], "initial_inference") and "model" not in parameters:
            raise InvalidArgumentError("this player is a model, which muzero:model=player:DIR plans in")
    elif "evaluator" not in parameters:
        raise InvalidArgumentError("model is missing: model=player:DIR (a training by MuZero)")
    elif parameters["evaluator"].default is inspect.Parameter.empty or preset.requires_simulation_budget:
        raise InvalidArgumentError(f"evaluator is missing: evaluator={EVALUATORS}")


def read_model(text: Any) -> Any:
    """Loads a learned model: `player:DIR` of a MuZero training run."""
    kind, _, path = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind != "player" or not path:
        raise InvalidArgumentError(f"model must be player:DIR (a training by MuZero), not {text!r}")
    from pondertree.networks import load

    model = load(path)
    if not hasattr(model, "initial_inference"):
        raise InvalidArgumentError(f"{text} is an evaluator, not a model: evaluator={text}")
    return model


def read_evaluator(text: Any) -> Any:
    """Builds an evaluator: `uniform`, `rollout`, `pesto` (optionally `:published` or a file), or a network."""
    if not isinstance(text, str):
        raise InvalidArgumentError(f"evaluator must be {EVALUATORS}, not {text!r}")
    kind, _, path = text.partition(":")
    if kind == "uniform" and not path:
        return Uniform()
    if kind == "rollout" and not path:
        return Rollout()
    if kind == "pesto":
        if path == "published":
            return Pesto.published()
        return Pesto.from_file(path) if path else Pesto()
    if kind == "keras" and path:
        from pondertree.evaluators import Keras

        return Keras(path)
    if kind == "onnx" and path:
        from pondertree.networks import load_onnx

        return load_onnx(path)
    if kind == "player" and path:
        from pondertree.networks import load

        return load(path)
    raise InvalidArgumentError(f"evaluator must be {EVALUATORS}, not {text!r}")


def _read_program(rest: str) -> Entrant:
    command, *texts = split(rest) or [""]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidArgumentError(f"the command {command!r} cannot be read: {error}") from None
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for name, value in _settings(texts).items():
        prefix, _, option = name.partition(".")
        if prefix == "option" and option:
            options[option] = value
        else:
            settings[name] = value
    allowed = [name for name in inspect.signature(UciEntrant).parameters if name not in ("command", "options")]
    _check_names(settings, allowed, f"a UCI program has {', '.join(allowed)}, and option.NAME for its own options")
    return UciEntrant(words, options=options, **settings)


def _check_names(settings: dict[str, Any], allowed: list[str], known: str) -> None:
    for name in settings:
        if name not in allowed:
            raise InvalidArgumentError(f"unknown setting {name!r}: {known}")


def _settings(texts: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidArgumentError(f"{text.strip()!r} is not a setting: write NAME=VALUE")
        if name in settings:
            raise InvalidArgumentError(f"{name} is given twice")
        settings[name] = read_value(value.strip())
    return settings


def read_value(text: str) -> Any:
    """Parses a Python literal, true, false or none; other texts are returned unchanged."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def split(text: str) -> list[str]:
    """Splits a text at commas outside quotes and brackets; a blank text has no parts."""
    parts, depth, quote, part = [], 0, "", ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(part)
            part = ""
            continue
        part += sign
    if quote or depth:
        raise InvalidArgumentError(f"{text!r} has a quote or bracket that is not closed")
    return [*parts, part] if text.strip() else []
