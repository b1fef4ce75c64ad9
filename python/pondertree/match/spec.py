"""Players in words: `uct:num_simulations=200,c_param=1.4`, `alphazero:evaluator=onnx:net.onnx`,
`muzero:model=player:DIR`, `uci:crab,nodes=1000`.

A name, a colon, and settings separated by commas. A comma inside quotes or brackets is part of a value.
"""

from __future__ import annotations

import ast
import inspect
import shlex
from dataclasses import dataclass
from typing import Any

from pondertree import presets, validation
from pondertree.chess.move_ordering import MoveScores
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.evaluators import Rollout, Uniform
from pondertree.match.players import Entrant, FunctionEntrant, SearchEntrant, SimpleEntrant
from pondertree.match.uci import UciEntrant
from pondertree.search.base import Search

#: The searches that can be named.
SEARCHES: dict[str, Any] = {name.lower(): getattr(presets, name) for name in presets.__all__}
SIMPLE = ("random", "first")
#: Settings that words cannot give.
UNSAYABLE = ("gumbel", "policy_network", "seed", "trace")
#: How an evaluator is named.
EVALUATORS = (
    "rollout, uniform, pesto (chess), player:PLAYER (the folder of a training, a .safetensors or .onnx file, or "
    "connect4), onnx:FILE or keras:FILE"
)
_WORDS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class NamedSearch(SearchEntrant):
    """A search that was given in words, and goes to another process in them: a network is opened there again."""

    @property
    def text(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _read, (self.label,)


def read_player(given: Any, which: str = "player") -> Entrant:
    """The entrant that a text, a search or a function stands for; `which` is what complaints call it."""
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
        raise InvalidArgumentError("seed is the match's: every game gets one of its own from it")
    allowed = [name for name in inspect.signature(preset).parameters if name not in UNSAYABLE]
    for name in settings:
        if name not in allowed:
            raise InvalidArgumentError(
                f"unknown setting {name!r}: {preset.__name__} has {', '.join([*allowed, 'reuse', 'temperature'])}"
            )
    _read_networks(preset, settings)
    if isinstance(settings.get("move_scores"), str) and settings["move_scores"] not in ("learned", "auto"):
        settings["move_scores"] = MoveScores.from_file(settings["move_scores"])
    return NamedSearch(preset(**settings), reuse, temperature, label)


def _read_networks(preset: Any, settings: dict[str, Any]) -> None:
    """Opens the evaluator or the model of a search, in its settings; one that is needed must be there."""
    parameters = inspect.signature(preset).parameters
    if "model" in settings:
        settings["model"] = read_model(settings["model"])
    elif "evaluator" in settings:
        settings["evaluator"] = read_evaluator(settings["evaluator"])
        if hasattr(settings["evaluator"], "initial_inference") and "model" not in parameters:
            raise InvalidArgumentError("this player is a model, which muzero:model=player:DIR plans in")
    elif "evaluator" not in parameters:
        raise InvalidArgumentError("model is missing: model=player:DIR (a training by MuZero)")
    elif parameters["evaluator"].default is inspect.Parameter.empty or preset.needs_count:
        raise InvalidArgumentError(f"evaluator is missing: evaluator={EVALUATORS}")


def read_model(text: Any) -> Any:
    """A learned model by name: `player:DIR`, of a training by MuZero."""
    kind, _, path = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind != "player" or not path:
        raise InvalidArgumentError(f"model must be player:DIR (a training by MuZero), not {text!r}")
    from pondertree.networks.loading import load

    model = load(path)
    if not hasattr(model, "initial_inference"):
        raise InvalidArgumentError(f"{text} is no model, but an evaluator: evaluator={text}")
    return model


def read_evaluator(text: Any) -> Any:
    """An evaluator by name: `uniform`, `rollout`, `pesto` (or its `published` weights, or a file), or a network."""
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
        from pondertree.networks.loading import load_onnx

        return load_onnx(path)
    if kind == "player" and path:
        from pondertree.networks.loading import load

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
    for name in settings:
        if name not in allowed:
            raise InvalidArgumentError(
                f"unknown setting {name!r}: a UCI program has {', '.join(allowed)}, and option.NAME for its own options"
            )
    return UciEntrant(words, options=options, **settings)


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
    """A number, true, false, none, something in quotes or brackets, or else the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def split(text: str) -> list[str]:
    """The text cut at its commas, but for those inside quotes and brackets; nothing gives no parts."""
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
