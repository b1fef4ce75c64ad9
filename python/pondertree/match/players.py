"""Players of matches: searches, plain functions, and two baselines.

An entrant is a picklable description of a player. `start` creates the player, which plays games one after another; its
random numbers depend on the seed of the game alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError, PlayerError
from pondertree.game import GameInfo
from pondertree.random import ANSWER, Random
from pondertree.search.base import Search
from pondertree.search.tree import Tree


@dataclass(frozen=True, slots=True)
class PlayedMove:
    """A move and the player's evaluation of the position."""

    action: int
    value: float | None = None
    """From -1 (lost) to +1 (won), for the player itself; None if unknown."""


class Player(ABC):
    """A running player."""

    @abstractmethod
    def new_game(self, state: Any, seed: int) -> None:
        """Starts a game in `state`, with all random numbers drawn from `seed`."""

    @abstractmethod
    def choose(self, state: Any) -> PlayedMove:
        """Returns the move in `state`. Raises `PlayerFailure` if the player fails."""

    def played(self, state: Any, action: int) -> None:  # noqa: B027 (optional)
        """Notifies of a move by either side in `state`."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Releases resources after the match."""


class PlayerFailure(Exception):  # noqa: N818 (part of the public interface)
    """A failure that loses a game: the player died, timed out, or played an illegal move."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        """"died", "timeout" or "illegal_move"."""
        self.detail = detail

    def __reduce__(self) -> Any:
        return type(self), (self.reason, self.detail)


class Entrant(ABC):
    """A description of a player."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Its settings in one line, stored in match records: equal texts mean equal players."""

    @property
    def name(self) -> str:
        """The display name."""
        return self.text

    def check(self, info: GameInfo) -> None:  # noqa: B027 (optional)
        """Raises an InvalidArgumentError for a game it cannot play."""

    @abstractmethod
    def start(self) -> Player:
        """Creates the player."""


@dataclass(frozen=True)
class SearchEntrant(Entrant):
    """A search as a player. Its seed is ignored: each game has its own.

    With `reuse` the tree is reused from move to move. With a `temperature` moves are sampled by visits; None is greedy.
    """

    search: Search
    reuse: bool = False
    temperature: float | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.search, Search):
            raise InvalidArgumentError(
                f"search must be a search such as pondertree.UCT(), not {validation.shown(self.search)}"
            )
        if validation.is_listed(self.search.num_simulations):
            raise InvalidArgumentError("num_simulations must be one number for a player of a match, not a list")
        validation.flag(self.reuse, "reuse")
        validation.optional_temperature(self.temperature)

    @property
    def text(self) -> str:
        settings = {
            name: value if _is_plain(value) else type(value).__name__
            for name, value in sorted(vars(self.search).items())
            if not name.startswith("_") and name != "seed"
        }
        settings |= {"reuse": self.reuse, "temperature": self.temperature}
        return f"{type(self.search).__name__}({', '.join(f'{name}={value}' for name, value in settings.items())})"

    @property
    def name(self) -> str:
        return self.label or f"{type(self.search).__name__}({self.search.limit_text})"

    def check(self, info: GameInfo) -> None:
        """Raises an InvalidArgumentError for a game that its network was not trained on."""
        from pondertree.evaluators.protocol import check_player_game

        for part in vars(self.search).values():
            check_player_game(part, info)

    def start(self) -> Player:
        return _SearchPlayer(self.search, self.reuse, self.temperature)


class _SearchPlayer(Player):
    def __init__(self, search: Search, reuse: bool, temperature: float | None) -> None:
        self._given = search
        self._reuse = reuse
        self._temperature = temperature

    def new_game(self, state: Any, seed: int) -> None:
        # A copy per game: the random numbers of a game do not depend on the games before it.
        self._search = self._given.with_seed(seed)
        self._tree: Tree | None = None

    def choose(self, state: Any) -> PlayedMove:
        if not self._reuse:
            result = self._search.run(state, temperature=self._temperature)
        else:
            if self._tree is None:
                self._tree = self._search.tree(state)
            self._tree.simulate()
            result = self._tree.result(temperature=self._temperature)
        return PlayedMove(result.action, result.value if result.proven is None else float(result.proven))

    def played(self, state: Any, action: int) -> None:
        if self._tree is not None and not state.play(action).is_terminal:
            self._tree.advance(action)


@dataclass(frozen=True)
class FunctionEntrant(Entrant, Player):
    """A function from a state to a legal action as a player."""

    function: Callable[[Any], Any]
    label: str | None = None

    def __post_init__(self) -> None:
        validation.function(self.function, "function", "function of a state")

    @property
    def text(self) -> str:
        function = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        return f"{function.__module__}.{function.__qualname__}"

    @property
    def name(self) -> str:
        return self.label or self.text.rpartition(".")[2]

    def start(self) -> Player:
        return self

    def new_game(self, state: Any, seed: int) -> None:
        pass

    def choose(self, state: Any) -> PlayedMove:
        answer = self.function(state)
        try:
            return PlayedMove(validation.whole_number(answer, "the action"))
        except InvalidArgumentError as error:
            raise PlayerFailure("illegal_move", str(error)) from None


@dataclass(frozen=True)
class SimpleEntrant(Entrant):
    """`random` plays a uniformly random legal move, `first` the first one."""

    kind: str

    @property
    def text(self) -> str:
        return self.kind

    def start(self) -> Player:
        return _SimplePlayer(self.kind == "random")


class _SimplePlayer(Player):
    def __init__(self, random: bool) -> None:
        self._random = random

    def new_game(self, state: Any, seed: int) -> None:
        self._numbers = Random(seed, ANSWER)

    def choose(self, state: Any) -> PlayedMove:
        legal = state.legal_actions()
        return PlayedMove(int(legal[self._numbers.choose(len(legal)) if self._random else 0]))


def start(entrant: Entrant) -> Player:
    """Creates the player of an entrant; errors name it."""
    try:
        return entrant.start()
    except PlayerFailure as failure:
        raise PlayerError(f"{entrant.name} cannot be started: {failure.detail}") from failure


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(entry) for entry in value)
    return value is None or isinstance(value, (bool, int, float, str))
