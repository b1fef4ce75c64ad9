"""What a session shows: the game, the searches that can be chosen, and the settings to begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from pondertree.game import GameInfo
from pondertree.search.base import Search


class GamePosition(Protocol):
    """A state with its history, as the command line reads it (`pondertree.cli.position.Position`)."""

    @property
    def game(self) -> str: ...
    @property
    def state(self) -> Any: ...
    @property
    def title(self) -> str: ...
    @property
    def info(self) -> GameInfo: ...
    @property
    def players(self) -> tuple[str, ...]: ...
    def write(self, action: int) -> str: ...
    def parse(self, text: str) -> int: ...
    def play(self, action: int) -> Self: ...
    def outcome(self) -> str: ...


@dataclass(frozen=True)
class Algorithm:
    """A search that can be chosen."""

    name: str
    title: str
    search: type[Search]
    source: str | None = None
    """The argument that takes one of `sources`: "evaluator" or "model"."""
    sources: Mapping[str, Any] = field(default_factory=dict)
    """Evaluators or models by their names on the page; the first one is the default."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that the game asks for, in place of the defaults of the search."""


@dataclass(frozen=True)
class ViewSettings:
    """The settings of a search; `web/src/protocol.ts` describes them."""

    preset: str
    parameters: Mapping[str, Any]
    seed: int | None
    simulations: int | None
    seconds: float | None
    exclude: Sequence[int] = ()
    force: Sequence[int] = ()


#: The action that led to a position (None for the first one), and the position.
Turn = tuple[int | None, GamePosition]


@dataclass(frozen=True)
class Setup:
    """A game and its searches."""

    history: Sequence[Turn]
    """The game so far."""
    begin: Callable[[str | None, str], Sequence[Turn]]
    """Returns the game from a FEN (None: the usual start) and moves."""
    algorithms: Sequence[Algorithm]
    settings: ViewSettings
    version: str
    """The version of the package."""
    tree: Any = None
    """A tree of the last position, from a file."""
    read_only: str = ""
    """Why that tree cannot grow; empty if it can."""
    has_settings: bool = True
    """Whether `settings` are those of the tree."""
