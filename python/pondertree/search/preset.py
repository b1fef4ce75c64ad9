"""The `preset` decorator: options as dataclass fields, visible in signatures, with a hint for an unknown keyword."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

from pondertree import validation
from pondertree.config import SearchOptions, option
from pondertree.errors import UnknownOptionError

Preset = TypeVar("Preset", bound=type)


class DefaultSimulations(int):
    """A default number of simulations, which `time_limit` replaces; a given number applies in addition to it."""


def _simulations(value: Any, name: str) -> int | list[int]:
    if validation.is_listed(value):
        return [validation.count(each, f"{name}[{row}]") for row, each in enumerate(value)]
    return validation.count(value, name)


def simulations(default: int) -> Any:
    """Returns the field `num_simulations`: a number, a list with one per row of a batch, or None with a time limit."""
    return option(DefaultSimulations(default), _simulations, optional=True)


_SIMULATIONS_DOC = """
`num_simulations` is the number of simulations of each search: one number, a list with one per row of a batch, or None
for a search that `time_limit` alone ends.
"""


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def preset(cls: Preset) -> Preset:
    """Turns a search into a dataclass whose constructor suggests the nearest option for an unknown keyword."""
    made: Any = dataclass(repr=False, eq=False)(cls)
    construct = made.__init__
    known = [each.name for each in sorted(fields(made), key=lambda each: bool(each.kw_only)) if each.init]

    @functools.wraps(construct)
    def construct_checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in known:
                raise UnknownOptionError(unknown_option(made, name, known))
        construct(self, *args, **kwargs)

    made.__init__ = construct_checked
    made.__doc__ = "\n\n".join(
        inspect.cleandoc(part) for part in (made.__doc__, _SIMULATIONS_DOC, SearchOptions.__doc__ or "")
    )
    return cls


#: Options and their names in other libraries; a preset has one of the options of a key.
SYNONYMS = {
    ("num_simulations", "iterations"): "num_simulations iterations iteration_limit max_iterations n_iterations n_iter "
    "num_iterations simulations n_simulations max_simulations num_sims n_sims nsims sims budget playouts num_playouts "
    "n_playout num_rollouts rollouts",
    ("c_param", "c_puct", "exploration_constant", "pb_c_init", "gumbel_scale"): "c cpuct c_uct uct_c c_init c_param "
    "c_puct pb_c_init exploration exploration_constant exploration_weight exploration_rate exploration_param",
    ("time_limit",): "time timeout seconds max_time movetime time_limit_seconds",
    ("threads",): "num_threads n_threads workers num_workers n_jobs cores",
    ("in_flight",): "batch_size leaf_batch_size virtual_loss num_parallel parallel",
    ("seed",): "random_seed random_state rng rng_key",
    ("max_memory",): "memory hash max_memory_mb",
    (
        "evaluator",
        "model",
        "neural_network",
    ): "network net neural_network nn evaluate evaluation eval_fn value_function "
    "policy_value_fn evaluator model recurrent_fn",
    ("playout_policy",): "rollout_policy simulation_policy default_policy policy",
    ("max_depth",): "depth rollout_depth max_rollout_depth playout_depth",
    ("discount",): "gamma discount_factor",
    ("dirichlet_alpha", "root_dirichlet_alpha"): "alpha noise_alpha dirichlet_alpha root_dirichlet_alpha",
    ("dirichlet_epsilon", "root_exploration_fraction"): "epsilon noise_epsilon dirichlet_epsilon dirichlet_fraction "
    "root_exploration_fraction exploration_fraction",
    ("max_num_considered_actions",): "num_considered_actions considered m",
    ("solve",): "solver mcts_solver",
}


def unknown_option(search: Any, name: str, known: Sequence[str]) -> str:
    """Returns the message for an unknown keyword, with the nearest option by meaning or spelling."""
    problem = f"{search.__name__} has no option {name!r}"
    if name in ("temperature", "add_noise", "seeds", "root_actions", "progress"):
        return f"{problem}: it is an argument of run()"
    synonyms = [option for options, names in SYNONYMS.items() if name.lower() in names.split() for option in options]
    nearest = [option for option in synonyms if option in known] or difflib.get_close_matches(name, known, 1)
    if nearest:
        return f"{problem}: did you mean {nearest[0]}?"
    return f"{problem}: it has {', '.join(known)}"
