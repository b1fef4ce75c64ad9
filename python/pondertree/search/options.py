"""Options of searches, as dataclass fields: the shared ones are declared once and inherited by every preset."""

from __future__ import annotations

import difflib
import functools
import inspect
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, TypeVar, dataclass_transform

from pondertree import validation
from pondertree.errors import UnknownOptionError

Preset = TypeVar("Preset", bound=type)
Check = Callable[[Any, str], Any]


class DefaultSimulations(int):
    """The number of simulations where none is given; a `time_limit` alone lifts it, as it does not lift a given one."""


def option(default: Any, checked: Check, *, optional: bool = False) -> Any:
    """A field of a preset: its default, and the check that validates and converts what is given.

    `checked(value, name)` returns the value to keep or raises an error that names the option. With `optional`, None is
    kept as it is.
    """
    validate = (lambda value, name: None if value is None else checked(value, name)) if optional else checked
    return field(default=default, metadata={"check": validate})


def one_of(*values: str | None) -> Check:
    """The check of an option that is one of some names."""
    listed = " or ".join(filter(None, [", ".join(_quoted(value) for value in values[:-1]), _quoted(values[-1])]))
    return functools.partial(validation.one_of, values=values, listed=listed)


def bounded_int(least: int, most: int) -> Check:
    """The check of a whole number from `least` to `most`."""
    return functools.partial(validation.whole_number, least=least, most=most)


def bounded_float(least: float, most: float = float("inf")) -> Check:
    """The check of a finite number from `least` to `most`."""
    return functools.partial(validation.number, least=least, most=most)


def _quoted(value: str | None) -> str:
    return "None" if value is None else f'"{value}"'


def _simulations(value: Any, name: str) -> int | list[int]:
    if validation.is_listed(value):
        return [validation.count(each, f"{name}[{row}]") for row, each in enumerate(value)]
    return validation.count(value, name)


def simulations(default: int) -> Any:
    """The field `num_simulations` of a preset: one number, one for each row of a batch, or None beside a time limit."""
    return option(DefaultSimulations(default), _simulations, optional=True)


@dataclass(kw_only=True, repr=False, eq=False)
class SearchOptions:
    """Options that all searches share, keyword-only:

    time_limit: seconds, or a `timedelta`. Given without `num_simulations`, it alone ends the search.
    max_nodes: most positions one tree may hold; a full tree stops growing and still answers.
    max_memory: most MiB that all trees of one call may hold.
    seed: same seed, same tree. None draws one, which results report.
    in_flight: leaves of one tree that are evaluated in one batch, under virtual loss.
    threads: threads of the engine. Results do not depend on it.
    solve: propagate proven results (two-player zero-sum games): a proven win is played at once, a proven loss avoided.
    early_stop: stop a tree when its leading move cannot be overtaken any more.
    trace: record every descent, for `Forest.trace`.
    """

    time_limit: float | timedelta | None = option(None, validation.seconds, optional=True)
    max_nodes: int | None = option(None, validation.count, optional=True)
    max_memory: float | None = option(None, validation.positive_number, optional=True)
    seed: int | None = option(None, validation.whole_number, optional=True)
    in_flight: int = option(1, bounded_int(1, 65535))
    threads: int = option(1, validation.threads)
    solve: bool = option(True, validation.flag)
    early_stop: bool = option(False, validation.flag)
    trace: bool = option(False, validation.flag)

    def __post_init__(self) -> None:
        for each in fields(self):
            if "check" in each.metadata:
                setattr(self, each.name, each.metadata["check"](getattr(self, each.name), each.name))
        #: The seed that was drawn because none was given.
        self._own_seed: int | None = None
        if self.seed is None:
            self._draw_seed()

    def _draw_seed(self) -> None:
        self.seed = self._own_seed = secrets.randbits(63)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def preset(cls: Preset) -> Preset:
    """Makes a search a dataclass whose constructor names the nearest option where an unknown one is given."""
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
    made.__doc__ = f"{inspect.cleandoc(made.__doc__)}\n\n{inspect.cleandoc(SearchOptions.__doc__ or '')}"
    return cls


#: Options by what other libraries call them. Several stand for the same thing: a preset has one of them.
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
    """The message for a keyword that a search does not have: the nearest one, by its meaning or its spelling."""
    said = f"{search.__name__} has no option {name!r}"
    if name in ("temperature", "add_noise", "seeds", "root_actions", "progress"):
        return f"{said}: it is an argument of run()"
    meant = [option for options, names in SYNONYMS.items() if name.lower() in names.split() for option in options]
    nearest = [option for option in meant if option in known] or difflib.get_close_matches(name, known, 1)
    if nearest:
        return f"{said}: did you mean {nearest[0]}?"
    return f"{said}: it has {', '.join(known)}"
