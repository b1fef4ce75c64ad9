"""The whole configuration of a training, and what its keys are."""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import os
import textwrap
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError
from pondertree.files import reading
from pondertree.learn.config.sections import (
    EvaluationConfig,
    LatentModelConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
)
from pondertree.networks.architecture import NetworkConfig
from pondertree.validation import brief

ALGORITHMS = ("gumbel", "alphazero", "muzero")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole training. `pondertree.learn.default_config(game)` has good values for a game."""

    game: str = "connect4"
    """The game: the name of a compiled one, `module:Class` of one written in Python, or `gym:NAME`, an environment."""
    out: str = ""
    """The folder that everything goes to."""
    algorithm: str = "gumbel"
    """What learns, and how it searches: "gumbel" or "alphazero" by the rules of the game, "muzero" in a model."""
    minutes: float | None = None
    """The training ends after so many minutes."""
    games: int | None = None
    """The training ends after so many games."""
    steps: int | None = None
    """The training ends after so many steps of learning."""
    device: str = "auto"
    """Where the network runs: "cpu", "cuda", "cuda:1", or "auto" for a GPU if there is one."""
    side_by_side: bool | None = None
    """Play and learn at the same time; None does so on a GPU. Only one after the other can be repeated exactly."""
    seed: int = 0
    """The seed of everything random."""
    cycle_moves: int = 16
    """Moves in every game between two rounds of learning."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints; 0 makes one after each round."""
    keep_checkpoints: int = 3
    """Checkpoints that are kept, the newest ones."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """How large the network is."""
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    """How games are played."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """What is learned from."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """How the network learns."""
    muzero: LatentModelConfig = field(default_factory=LatentModelConfig)
    """How a model is learned, and planned in."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """How strength is measured."""

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
        if not validation.is_one_of(self.algorithm, ALGORITHMS):
            raise InvalidArgumentError(
                f"algorithm must be {', '.join(ALGORITHMS[:-1])} or {ALGORITHMS[-1]}, "
                f"not {validation.shown(self.algorithm)}"
            )
        if self.minutes is not None:
            validation.positive_number(self.minutes, "minutes")
        for name in ("games", "steps"):
            if getattr(self, name) is not None:
                validation.whole_number(getattr(self, name), name, least=1)
        if not isinstance(self.device, str):
            raise InvalidArgumentError(f"device must be cpu, cuda or auto, not {validation.shown(self.device)}")
        validation.optional_flag(self.side_by_side, "side_by_side")
        validation.whole_number(self.seed, "seed", most=(1 << 63) - 1)
        validation.count(self.cycle_moves, "cycle_moves")
        validation.number(self.checkpoint_minutes, "checkpoint_minutes", least=0.0)
        validation.count(self.keep_checkpoints, "keep_checkpoints")
        for name, kind in SECTIONS.items():
            if not isinstance(getattr(self, name), kind):
                raise InvalidArgumentError(
                    f"{name} must be a {kind.__name__}, not {validation.shown(getattr(self, name))}"
                )

    def with_values(self, **changes: Any) -> Config:
        """The same with other values; `self_play={"simulations": 16}` changes one field of a section."""
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
    "muzero": LatentModelConfig,
    "evaluation": EvaluationConfig,
}


def field_names(kind: Any) -> list[str]:
    """The names of the fields of a section, or of the whole, in their order."""
    return [one.name for one in fields(kind)]


def check_keys(given: Iterable[Any], kind: Any, where: str = "") -> None:
    """Refuses names that are no fields of a section, or of the whole, with the nearest that is one."""
    known = field_names(kind)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise InvalidArgumentError(f"unknown key {validation.shown(name)}{where}: {hint}")


#: Longer texts, and lines with more dots, are no configurations.
LONGEST_TEXT, MOST_DOTS = 1 << 18, 200


def read_config(path: Path, base: Config) -> Config:
    """`base` with the values of a file; keys that there are not are refused, with the nearest that there is."""
    with reading(path, "a configuration") as file:
        return config_of_text(file.read_text(encoding="utf-8"), base)


def config_of_text(text: str, base: Config) -> Config:
    """`base` with the values of a TOML text."""
    return config_of_data(data_of_text(text), base)


def data_of_text(text: str) -> dict[str, Any]:
    """The values of a TOML text, by name."""
    # tomllib takes superquadratic time in the parts of a dotted key.
    if len(text) > LONGEST_TEXT or any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        most = f"at most {LONGEST_TEXT:,} characters, and {MOST_DOTS} dots in a line"
        raise InvalidArgumentError(f"this is no TOML of a configuration, which has {most}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number with too many digits is no TOMLDecodeError
        raise InvalidArgumentError(f"this is no TOML: {brief(str(error))}") from None


def config_of_data(data: dict[str, Any], base: Config) -> Config:
    """`base` with the values of plain data."""
    check_keys(data, Config)
    for name, value in data.items():
        if name in SECTIONS and not isinstance(value, dict):
            raise InvalidArgumentError(f"{name} must be a table, [{name}], not {validation.shown(value)}")
    return base.with_values(**data)


def text_of_config(config: Config) -> str:
    """The whole configuration as TOML, each field under its sentence. What is None is written as a comment."""
    lines = _lines(validation.instance(config, Config, "config"))
    for name, kind in SECTIONS.items():
        lines += ["", f"# {inspect.cleandoc(kind.__doc__).splitlines()[0]}", f"[{name}]"]
        lines += _lines(getattr(config, name))
    return "\n".join(lines) + "\n"


def _lines(section: Any) -> list[str]:
    kind: Any = type(section)
    sentences = field_sentences(kind)
    lines = []
    for name in field_names(kind):
        if isinstance(section, Config) and name in SECTIONS:
            continue
        lines += [f"# {line}" for line in textwrap.wrap(sentences.get(name, ""), 116)]
        value = getattr(section, name)
        lines.append(f"# {name} is not set" if value is None else f"{name} = {toml_value(value)}")
    return lines


@functools.cache
def field_sentences(kind: Any) -> dict[str, str]:
    """The sentence under each field of a dataclass, from its source; none where there is no source to be read."""
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
            sentence = after.value.value if is_text else ""  # type: ignore[attr-defined]
            found[statement.target.id] = " ".join(str(sentence).split())
    return found


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(toml_value(one) for one in value)}]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign >= " " and sign != "\x7f" else f"\\u{ord(sign):04x}" for sign in escaped) + '"'


# Read now, while the sources are those of what runs: they may be replaced during a long training.
for _kind in (Config, *SECTIONS.values()):
    field_sentences(_kind)
