"""The parameters of the searches, as their dataclass fields declare them, for forms and from their entries."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

import numpy as np

from pondertree import validation
from pondertree.config import SearchOptions
from pondertree.errors import PondertreeError, UnknownOptionError
from pondertree.search.base import Search
from pondertree.search.preset import unknown_option
from pondertree.view.setup import Algorithm, ViewSettings

#: Options that the settings of a session have themselves, and objects, which no form can enter.
HANDLED = {"num_simulations", "time_limit", "seed", "trace"}
OBJECTS = {"evaluator", "model", "policy_network", "gumbel", "move_scores", "category_weights", "num_players"}


def parameters_of(algorithm: Algorithm) -> list[dict[str, Any]]:
    """Returns the parameters of a search in the form of `Parameter` in `web/src/protocol.ts`."""
    search, source = algorithm.search, algorithm.source
    listed = [
        {"name": each.name, **form_of(each), "help": help_of(search, each.name)} for each in _entered(search).values()
    ]
    for form in listed:
        form["default"] = algorithm.parameters.get(form["name"], form["default"])
    if source is None:
        return listed
    choices = list(algorithm.sources)
    form = {"name": source, "type": "choice", "default": choices[0], "choices": choices}
    return [{**form, "help": f"The {source} of the search."}, *listed]


def _entered(search: type[Search]) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(search) if each.init and each.name not in HANDLED | OBJECTS}


def form_of(declared: Any) -> dict[str, Any]:
    """Returns type, default and bounds of a field, from its check and its default."""
    check = declared.metadata.get("declared")
    default = None if declared.default is MISSING else declared.default
    if check is validation.flag:
        return {"type": "bool", "default": bool(default)}
    if isinstance(check, functools.partial) and check.func is validation.one_of:
        choices = ["none" if value is None else value for value in check.keywords["values"]]
        return {"type": "choice", "default": "none" if default is None else default, "choices": choices}
    kinds = {
        validation.whole_number: ("int", 0),
        validation.count: ("int", 1),
        validation.threads: ("int", 1),
        validation.number: ("float", None),
        validation.positive_number: ("float", None),
    }
    function = check.func if isinstance(check, functools.partial) else check
    if function not in kinds:
        return {"type": "text", "default": to_text(default)}
    kind, least = kinds[function]
    bounds = dict(check.keywords) if isinstance(check, functools.partial) else {}
    bounds = {"least": least, **bounds}
    if function is validation.positive_number:
        bounds = {"above": 0.0}
    finite = {name: value for name, value in bounds.items() if value is not None and abs(value) != float("inf")}
    return {"type": kind, "default": default, **finite}


def to_text(value: Any) -> str:
    """Returns a value as text: a pair as "parent 0.2", None as "none"."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def from_text(text: str) -> Any:
    """Reads what `to_text` writes."""
    words = [_number(word) for word in text.split()]
    if len(words) > 1:
        return tuple(words)
    return words[0] if words else None


def _number(word: str) -> Any:
    if word == "none":
        return None
    try:
        return float(word)
    except ValueError:
        return word


def read_parameters(algorithm: Algorithm, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a search; its own checks validate the values."""
    known, arguments = _entered(algorithm.search), dict(given)
    source = algorithm.source
    if source is not None:
        name = arguments.pop(source, next(iter(algorithm.sources)))
        check = functools.partial(validation.one_of, values=algorithm.sources, listed=" or ".join(algorithm.sources))
        arguments[source] = algorithm.sources[check(name, source)]
    for name in given:
        if name not in known and name != source:
            raise UnknownOptionError(unknown_option(algorithm.search, name, list(known)))
        if isinstance(given[name], str) and name in known and form_of(known[name])["type"] in ("text", "choice"):
            arguments[name] = from_text(given[name])
    return arguments


def settings_of(search: Search | None, algorithms: Sequence[Algorithm], seed: int) -> ViewSettings | None:
    """Returns the settings that make a search again; None if a form has not all of them."""
    algorithm = next((each for each in algorithms if type(search) is each.search), None)
    if search is None or algorithm is None:
        return None
    entered = {name: getattr(search, name) for name in _entered(algorithm.search)}
    parameters = {name: to_text(value) if isinstance(value, tuple) else value for name, value in entered.items()}
    source = algorithm.source
    if source is not None:
        used = getattr(search, source)
        names = [name for name, known in algorithm.sources.items() if _is_same(known, used)]
        if not names:
            return None
        parameters[source] = names[0]
    try:
        again = algorithm.search(**read_parameters(algorithm, parameters))
    except PondertreeError:
        return None
    given = [each.name for each in fields(search) if each.init and each.name not in HANDLED]
    if not all(_is_same(getattr(again, name), getattr(search, name)) for name in given):
        return None
    simulations = search.num_simulations if isinstance(search.num_simulations, int) else None
    return ViewSettings(algorithm.name, parameters, seed, simulations, search.seconds)


def _is_same(first: Any, second: Any) -> bool:
    """Whether two options are equal; they may be arrays."""
    return first is second or (type(first) is type(second) and bool(np.all(first == second)))


def help_of(search: type[Search], name: str) -> str:
    """Returns what the documentation of a search says on an option: its line of the options, or its first sentence."""
    line = re.search(rf"^{name}: (.+)$", inspect.cleandoc(SearchOptions.__doc__ or ""), re.MULTILINE)
    sentences = re.split(r"(?<=\.)\s+", " ".join((search.__doc__ or "").split()))
    text = line[1] if line else next((each for each in sentences if re.search(rf"\b{name}\b", each)), "")
    text = text.replace("`", "")
    return text[:1].upper() + text[1:] if line else text
