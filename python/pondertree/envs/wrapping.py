"""One entry point for environments and games of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pondertree.errors import InvalidArgumentError
from pondertree.validation import shown

#: Base classes by module and name: the module of the adapter and its function, or advice why there is none.
_KINDS: tuple[tuple[str, str, tuple[str, str] | str], ...] = (
    ("gymnasium.vector.vector_env", "VectorEnv", "a search copies a single environment: pass one of them"),
    ("gymnasium.core", "Env", ("gymnasium_state", "from_gymnasium")),
    (
        "pettingzoo.utils.env",
        "ParallelEnv",
        "its agents act at the same time, and a search needs turns: pass an AEC environment; "
        "pettingzoo.utils.parallel_to_aec lets agents act in turn, who then see what others chose",
    ),
    ("pettingzoo.utils.env", "AECEnv", ("pettingzoo", "from_pettingzoo")),
    ("gym.core", "Env", "it is an environment of the former gym: shimmy.GymV26CompatibilityV0 converts it"),
)


def wrap(x: Any, **options: Any) -> Any:
    """Returns the present state of an environment, or a game of OpenSpiel or its name, as a state to search.

    Calls `from_gymnasium`, `from_pettingzoo` or `from_openspiel`, by the kind of `x`, with the options.
    """
    return _adapter(x)(x, **options)


def _adapter(x: Any) -> Callable[..., Any]:
    if isinstance(x, str):  # the name of a game
        return _found(("openspiel.states", "from_openspiel"), x)
    names = {(each.__module__, each.__name__) for each in type(x).__mro__}
    for module, name, adapter in _KINDS:
        if (module, name) in names:
            return _found(adapter, x)
    if any(module.partition(".")[0] in ("pyspiel", "open_spiel") for module, _ in names):
        return _found(("openspiel.states", "from_openspiel"), x)
    if hasattr(x, "agent_selection") and hasattr(x, "last"):  # a wrapper that does not inherit
        return _found(("pettingzoo", "from_pettingzoo"), x)
    raise InvalidArgumentError(
        "wrap takes an environment of Gymnasium, an AEC environment of PettingZoo, or a game or state of OpenSpiel, "
        f"not {shown(x)}"
    )


def _found(adapter: tuple[str, str] | str, x: Any) -> Callable[..., Any]:
    if isinstance(adapter, str):
        raise InvalidArgumentError(f"{type(x).__name__} cannot be searched: {adapter}")
    function: Callable[..., Any] = getattr(import_module(f"pondertree.envs.{adapter[0]}"), adapter[1])
    return function
