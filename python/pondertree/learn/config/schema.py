"""The complete training configuration, and its TOML form."""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import os
import textwrap
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pondertree import validation
from pondertree.config import bounded_float, bounded_int, one_of, option
from pondertree.errors import InvalidArgumentError
from pondertree.files import reading
from pondertree.learn.config.sections import (
    EvaluationConfig,
    LatentModelConfig,
    LearnerConfig,
    ReplayConfig,
    ReturnsConfig,
    SelfPlayConfig,
)
from pondertree.networks import NetworkConfig
from pondertree.optional import require
from pondertree.validation import brief

#: The training algorithms, and whether each learns a model of the game, in which it searches.
LEARNS_MODEL = {"gumbel": False, "alphazero": False, "muzero": True}
ALGORITHMS = tuple(LEARNS_MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A training run. `pondertree.learn.default_config(game)` has good values for a game."""

    game: str = "connect4"
    """The game: a compiled one by name, `module:Class` for one written in Python, or `gym:NAME` for an environment."""
    out: str = ""
    """The run folder."""
    algorithm: str = option("gumbel", one_of(*ALGORITHMS))
    """Training algorithm: "gumbel" or "alphazero" (search by the rules), "muzero" (search in a learned model)."""
    minutes: float | None = option(None, validation.positive_number, optional=True)
    """Limit in minutes."""
    games: int | None = option(None, bounded_int(1, (1 << 64) - 1), optional=True)
    """Limit in self-play games."""
    steps: int | None = option(None, bounded_int(1, (1 << 64) - 1), optional=True)
    """Limit in optimiser steps."""
    device: str = "auto"
    """Device of the network: "cpu", "cuda", "cuda:1", or "auto" for a GPU if there is one."""
    side_by_side: bool | None = option(None, validation.flag, optional=True)
    """Self-play and optimisation run concurrently; None: only on a GPU. Only alternating runs are reproducible."""
    seed: int = option(0, bounded_int(0, (1 << 63) - 1))
    """Random seed of the run."""
    cycle_moves: int = option(16, validation.count)
    """Self-play moves per game between two rounds of optimisation."""
    checkpoint_minutes: float = option(1.0, bounded_float(0.0))
    """Minutes between checkpoints; 0 writes one after each round."""
    keep_checkpoints: int = option(3, validation.count)
    """Number of newest checkpoints to keep."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """Size of the network."""
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    """Self-play."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """Replay buffer."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """Optimisation."""
    returns: ReturnsConfig = field(default_factory=ReturnsConfig)
    """Returns in games with rewards."""
    muzero: LatentModelConfig = field(default_factory=LatentModelConfig)
    """Learned model (`algorithm = "muzero"`)."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Strength evaluation."""

    def __post_init__(self) -> None:
        if not isinstance(self.game, str) or not self.game:
            raise InvalidArgumentError(
                f"game must be the name of a game, or module:Class of one written in Python, "
                f"not {validation.shown(self.game)}"
            )
        if isinstance(self.out, os.PathLike):
            object.__setattr__(self, "out", os.fspath(self.out))
        if not isinstance(self.out, str):
            raise InvalidArgumentError(f"out must be the name of a folder, not {validation.shown(self.out)}")
        if not isinstance(self.device, str):
            raise InvalidArgumentError(f"device must be cpu, cuda or auto, not {validation.shown(self.device)}")
        validation.check_fields(self)
        for name, kind in SECTIONS.items():
            validation.instance(getattr(self, name), kind, name)

    @property
    def learns_model(self) -> bool:
        """Whether the algorithm learns a model of the game, in which it searches."""
        return LEARNS_MODEL[self.algorithm]

    def with_values(self, **changes: Any) -> Config:
        """Returns a copy with other values; `self_play={"simulations": 16}` changes one field of a section."""
        check_keys(changes, Config)
        for name in list(changes):
            if name in SECTIONS and isinstance(changes[name], dict):
                check_keys(changes[name], SECTIONS[name], f" in [{name}]")
                changes[name] = replace(getattr(self, name), **changes[name])
        return replace(self, **changes)


SECTIONS: dict[str, Any] = {
    "network": NetworkConfig,
    "self_play": SelfPlayConfig,
    "replay": ReplayConfig,
    "learner": LearnerConfig,
    "returns": ReturnsConfig,
    "muzero": LatentModelConfig,
    "evaluation": EvaluationConfig,
}


def field_names(kind: Any) -> list[str]:
    """Returns the field names of a section or of `Config`, in order."""
    return [one.name for one in fields(kind)]


def check_keys(given: Iterable[Any], kind: Any, where: str = "") -> None:
    """Raises `InvalidArgumentError` for names that are not fields of `kind`, suggesting the closest one."""
    known = field_names(kind)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(known)}"
            raise InvalidArgumentError(f"unknown key {validation.shown(name)}{where}: {hint}")


#: Upper bounds on the size of a configuration text and on the dots in a line.
MAX_TEXT_LENGTH, MAX_DOTS = 1 << 18, 200


def read_config(path: Path, base: Config) -> Config:
    """Returns `base` with the values of a TOML file; unknown keys are refused with a suggestion."""
    return config_file(path)(base)


def config_file(path: Path) -> Callable[[Config], Config]:
    """Reads a TOML file once, since it may be a pipe; the returned function is `read_config` for any base."""
    with reading(path, "a configuration") as file:
        text = file.read_text(encoding="utf-8")

    def with_file(base: Config) -> Config:
        with reading(path, "a configuration"):
            return config_of_text(text, base)

    return with_file


def config_of_text(text: str, base: Config) -> Config:
    """Returns `base` with the values of a TOML text."""
    data = data_of_text(text)
    for name, value in data.items():
        if name in SECTIONS and not isinstance(value, dict):
            raise InvalidArgumentError(f"{name} must be a table, [{name}], not {validation.shown(value)}")
    return base.with_values(**data)


def data_of_text(text: str) -> dict[str, Any]:
    """Parses a TOML text to a dict."""
    # tomllib takes superquadratic time in the number of parts of a dotted key.
    if len(text) > MAX_TEXT_LENGTH or any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        most = f"at most {MAX_TEXT_LENGTH:,} characters, and {MAX_DOTS} dots per line"
        raise InvalidArgumentError(f"not the TOML of a configuration, which has {most}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an oversized integer is not a TOMLDecodeError
        raise InvalidArgumentError(f"invalid TOML: {brief(str(error))}") from None


def text_of_config(config: Config) -> str:
    """Returns the configuration as TOML, each field below its documentation; None becomes a comment."""
    lines = _lines(validation.instance(config, Config, "config"))
    for name, kind in SECTIONS.items():
        lines += ["", f"# {inspect.cleandoc(kind.__doc__).splitlines()[0]}", f"[{name}]"]
        lines += _lines(getattr(config, name))
    return "\n".join(lines) + "\n"


def _lines(section: Any) -> list[str]:
    dumps = require("tomli_w", "train", "writing a configuration").dumps
    kind: Any = type(section)
    docs = field_docs(kind)
    lines = []
    for name in field_names(kind):
        if isinstance(section, Config) and name in SECTIONS:
            continue
        lines += [f"# {line}" for line in textwrap.wrap(docs.get(name, ""), 116)]
        value = getattr(section, name)
        lines.append(f"# {name} is not set" if value is None else dumps({name: value}).rstrip("\n"))
    return lines


@functools.cache
def field_docs(kind: Any) -> dict[str, str]:
    """Returns the docstring below each field of a dataclass, parsed from its source; empty without source."""
    try:
        source = inspect.getsource(kind)
    except OSError:
        return {}
    [definition] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for statement, after in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = after.value.value if is_text else ""  # type: ignore[attr-defined]
            found[statement.target.id] = " ".join(str(text).split())
    return found


# Cached at import: the sources may be replaced during a long run.
for _kind in (Config, *SECTIONS.values()):
    field_docs(_kind)
