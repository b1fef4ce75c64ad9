"""The settings of a search as plain data, from which it is made again, unless they contain Python objects."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

import numpy as np

from pondertree.errors import InvalidArgumentError
from pondertree.validation import shown

#: The searches and parts that a file may name, and their packages; nothing else is created.
_CLASSES = {
    "UCT": "pondertree.presets",
    "AlphaZero": "pondertree.presets",
    "Gumbel": "pondertree.presets",
    "Hybrid": "pondertree.chess.hybrid",
    "MCTS": "pondertree.chess",
    "Uniform": "pondertree.evaluators",
    "Rollout": "pondertree.evaluators",
    "Pesto": "pondertree.chess",
    "PestoPolicy": "pondertree.chess",
    "MoveScores": "pondertree.chess",
}
#: Options that may differ when a tree is continued: limits, and those that do not change results.
_FREE = ("num_simulations", "time_limit", "max_nodes", "max_memory", "seed", "threads", "trace")


def named_class(name: str, package: str) -> Any:
    """Returns a class of this package by name; its module is imported only now, since it may be of a higher layer."""
    return getattr(importlib.import_module(package), name)


def settings_data(search: Any) -> dict[str, Any]:
    """Returns class and options as plain data; `python` names the options that are Python objects."""
    python: list[str] = []
    options = {each.name: _data(getattr(search, each.name), each.name, python) for each in fields(search)}
    name = type(search).__name__
    if not _is_known(search):
        python.append("search")
    return {"class": name, "options": options, "python": python}


def _is_known(thing: Any) -> bool:
    name = type(thing).__name__
    return name in _CLASSES and named_class(name, _CLASSES[name]) is type(thing)


def _data(value: Any, name: str, python: list[str]) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (list, tuple)):
        return [_data(each, name, python) for each in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if _is_known(value):
        if type(value).__name__ == "MoveScores":
            options = {"weights": value.weights}
        elif type(value).__name__ == "PestoPolicy":
            options = {"pesto": _data(value.pesto, name, python), "quiescence": value.quiescence}
        else:
            options = {each.name: _data(getattr(value, each.name), name, python) for each in fields(value) if each.init}
        return {"class": type(value).__name__, "options": options}
    if name not in python:
        python.append(name)
    return {"python": type(value).__name__}


def made_of(data: Any) -> Any:
    """Returns the search, or an option of it, that `settings_data` describes."""
    if isinstance(data, list):
        # Options are tuples where they are listed; numbers of arrays and simulations may be either.
        return tuple(made_of(each) for each in data)
    if not isinstance(data, dict):
        return data
    name = data["class"]
    if name not in _CLASSES:
        raise InvalidArgumentError(f"the settings name {shown(name)}, which is unknown")
    return named_class(name, _CLASSES[name])(**{option: made_of(value) for option, value in data["options"].items()})


def check_settings(search: Any, data: Mapping[str, Any]) -> None:
    """Raises `InvalidArgumentError` unless a search continues a tree of `settings_data`: only its limits may differ.

    A file written before an option existed lacks it: its tree was searched with what is the default.
    """
    given = settings_data(search)
    if given["class"] != data["class"]:
        raise InvalidArgumentError(f"search is a {given['class']}: the tree is of a search with {shown(data['class'])}")
    defaults = {each.name: _data(each.default, each.name, []) for each in fields(search)}
    for name, value in given["options"].items():
        saved = data["options"].get(name, defaults[name])
        if name not in _FREE and name not in given["python"] and saved != value and not _is_python(saved):
            raise InvalidArgumentError(f"search has {name}={shown(value)}: the tree was searched with {shown(saved)}")


def _is_python(value: Any) -> bool:
    return isinstance(value, dict) and "python" in value
