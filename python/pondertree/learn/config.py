"""The whole configuration of a training, and what its keys are."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pondertree import check
from pondertree.errors import InvalidArgumentError
from pondertree.learn.config_sections import (
    EvaluationConfig,
    LearnerConfig,
    MuZeroConfig,
    NetworkConfig,
    ReplayConfig,
    SelfPlayConfig,
)

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
    muzero: MuZeroConfig = field(default_factory=MuZeroConfig)
    """How a model is learned, and planned in."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """How strength is measured."""

    def __post_init__(self) -> None:
        if not isinstance(self.game, str) or not self.game:
            raise InvalidArgumentError(
                f"game must be the name of a game, or module:Class of one written in Python, "
                f"not {check.shown(self.game)}"
            )
        if isinstance(self.out, os.PathLike):
            object.__setattr__(self, "out", os.fspath(self.out))
        if not isinstance(self.out, str):
            raise InvalidArgumentError(f"out must be the name of a folder, not {check.shown(self.out)}")
        if not check.is_one_of(self.algorithm, ALGORITHMS):
            raise InvalidArgumentError(
                f"algorithm must be {', '.join(ALGORITHMS[:-1])} or {ALGORITHMS[-1]}, not {check.shown(self.algorithm)}"
            )
        if self.minutes is not None:
            check.positive_number(self.minutes, "minutes")
        for name in ("games", "steps"):
            if getattr(self, name) is not None:
                check.whole_number(getattr(self, name), name, least=1)
        if not isinstance(self.device, str):
            raise InvalidArgumentError(f"device must be cpu, cuda or auto, not {check.shown(self.device)}")
        check.optional_flag(self.side_by_side, "side_by_side")
        check.whole_number(self.seed, "seed", most=(1 << 63) - 1)
        check.count(self.cycle_moves, "cycle_moves")
        check.number(self.checkpoint_minutes, "checkpoint_minutes", least=0.0)
        check.count(self.keep_checkpoints, "keep_checkpoints")
        for name, kind in SECTIONS.items():
            if not isinstance(getattr(self, name), kind):
                raise InvalidArgumentError(f"{name} must be a {kind.__name__}, not {check.shown(getattr(self, name))}")

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
    "muzero": MuZeroConfig,
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
            raise InvalidArgumentError(f"unknown key {check.shown(name)}{where}: {hint}")
