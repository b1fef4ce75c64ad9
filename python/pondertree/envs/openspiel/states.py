"""Games of OpenSpiel as games of this package: sequential, with perfect information and explicit chance."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import PlayoutRandom
from pondertree.envs.openspiel.compiled import compiled_state
from pondertree.envs.openspiel.load import openspiel, state_of
from pondertree.errors import GameContractError, GameOverError, InvalidActionError, InvalidArgumentError
from pondertree.game import CHANCE
from pondertree.validation import shown

#: Seeds of OpenSpiel's generators are below this number.
SEEDS = 1 << 31


class OpenSpielState:
    """A state of OpenSpiel, with the interface of a state of a game (`pondertree.Game`).

    Each game has a subclass, which is named after it and has `rewards`, `chance_outcomes` and `observation` where
    OpenSpiel has them.
    """

    __slots__ = ("_earned", "_legal", "_spiel", "is_terminal", "to_play")

    num_players: ClassVar[int]
    num_actions: ClassVar[int]
    zero_sum: ClassVar[bool]
    scale: ClassVar[float]
    """The number that OpenSpiel's returns and rewards are divided by."""
    _game: ClassVar[Any]

    def __init__(self, spiel: Any, earned: list[float] | None = None) -> None:
        """`spiel` is a state of OpenSpiel that nothing else modifies, `earned` what `rewards` returns."""
        self._spiel = spiel
        self._earned = earned
        self._legal: list[int] | None = None
        self.is_terminal: bool = spiel.is_terminal()
        #: The player to move, or `CHANCE`.
        self.to_play: int = 0 if self.is_terminal else spiel.current_player()

    def to_openspiel(self) -> Any:
        """Returns a copy of the state of OpenSpiel."""
        return self._spiel.clone()

    def legal_actions(self) -> list[int]:
        """Returns the legal actions in OpenSpiel's order; at a chance node its outcomes."""
        return self._listed().copy()

    def _listed(self) -> list[int]:
        if self._legal is None:
            self._legal = self._read_legal()
        return self._legal

    def _read_legal(self) -> list[int]:
        legal: list[int] = [] if self.is_terminal else self._spiel.legal_actions()
        return legal

    def play(self, action: int) -> Self:
        """Returns the state after an action, or after an outcome of chance."""
        self._check(action)
        return type(self)(self._child(action))

    def _check(self, action: int) -> None:
        """Raises if an action is not legal."""
        if action not in self._listed():
            if self.is_terminal:
                raise GameOverError(f"action {shown(action)} in a finished game of {type(self).__name__}")
            raise InvalidActionError(
                f"action {shown(action)} is not legal in {self!r}; legal are {shown(self._listed())}"
            )

    def _child(self, action: int) -> Any:
        try:
            return self._spiel.child(action)
        except Exception as error:
            raise GameContractError(
                f"{type(self).__name__}: apply_action({action}) raised {type(error).__name__}: {error}"
            ) from error

    def returns(self) -> list[float]:
        """Returns OpenSpiel's returns divided by `scale`, one number per player."""
        return _divided(self._spiel.returns(), self.scale)

    def random_playout(self, seed: int) -> list[float]:
        """Returns the result of a random game from here for each player, with rewards their sum from here on.

        OpenSpiel plays it without Python, drawing from its own generators with seeds that follow from `seed`.
        """
        pyspiel = openspiel()
        draw = PlayoutRandom(seed).choose
        players = [pyspiel.make_uniform_random_bot(player, draw(SEEDS)) for player in range(self.num_players)]
        try:
            results = pyspiel.evaluate_bots(self._spiel.clone(), players, draw(SEEDS))
        except Exception as error:
            raise GameContractError(
                f"{type(self).__name__}: a random game raised {type(error).__name__}: {error}"
            ) from error
        return self._gained(results)

    def _gained(self, results: list[float]) -> list[float]:
        """Returns what later returns of OpenSpiel add to this state."""
        return _divided(results, self.scale)

    def action_to_string(self, action: int) -> str:
        """Returns the text of an action, or of an outcome of chance."""
        text: str = self._spiel.action_to_string(self.to_play, action)
        return text

    def __str__(self) -> str:
        return str(self._spiel)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} after {validation.brief(str(self._spiel.history()), 100)}>"

    def __eq__(self, other: object) -> bool:
        """Whether two states are of one game and have the same history."""
        if type(other) is not type(self):
            return NotImplemented
        return self._earned == other._earned and self._text() == other._text()

    def __hash__(self) -> int:
        return hash(self._text())

    def _text(self) -> tuple[str, str]:
        # Some games serialise only the actions, whatever the board was that they started from.
        return self._spiel.serialize(), str(self._spiel)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the state as OpenSpiel serialises it, for pickle."""
        data = openspiel().serialize_game_and_state(self._game, self._spiel)
        return _restored, (data, self.scale, self._earned)


class _WithRewards:
    """States of a game with rewards."""

    __slots__ = ()

    def play(self: Any, action: int) -> Any:
        """Returns the state after an action, or after an outcome of chance."""
        self._check(action)
        after = self._child(action)
        return type(self)(after, self._gained(after.returns()))

    def rewards(self: Any) -> list[float]:
        """Returns each player's reward for the action that led here, divided by `scale`; 0 in a converted state."""
        return [0.0] * self.num_players if self._earned is None else list(self._earned)

    def _gained(self: Any, results: list[float]) -> list[float]:
        # OpenSpiel's own `rewards` repeat those of an action after an outcome of chance. Returns are their sums.
        before = self._spiel.returns()
        return [(after - now) / self.scale for after, now in zip(results, before, strict=True)]


class _WithChance:
    """States of a game with chance nodes."""

    __slots__ = ()

    def chance_outcomes(self: Any) -> list[tuple[int, float]]:
        """Returns the outcomes of a chance node with their probabilities."""
        if self.to_play != CHANCE:
            return []
        return [pair for pair in self._spiel.chance_outcomes() if pair[1] > 0.0]

    def _read_legal(self: Any) -> list[int]:
        if self.to_play == CHANCE:
            return [outcome for outcome, _ in self.chance_outcomes()]
        legal: list[int] = super()._read_legal()  # type: ignore[misc]
        return legal


class _WithObservation:
    """States of a game with observation tensors."""

    __slots__ = ()

    _shape: ClassVar[list[int]]

    def observation(self: Any) -> NDArray[np.float32]:
        """Returns OpenSpiel's observation tensor of the player to move, in its shape."""
        tensor = self._spiel.observation_tensor(max(self.to_play, 0))
        return np.array(tensor, dtype=np.float32).reshape(self._shape)


def _divided(numbers: list[float], scale: float) -> list[float]:
    return numbers if scale == 1.0 else [number / scale for number in numbers]


def from_openspiel(game_or_state: Any, *, compiled: bool = True, scale: float | None = None) -> Any:
    """Returns a game or state of OpenSpiel as a state of this package; a later change of the original does not count.

    `game_or_state` is a `pyspiel` game, a state, or the name of a game with its parameters, such as
    "go(board_size=9)". The game must be sequential, with perfect information and explicit chance.

    Where a game is compiled here, the answer is its state after the same actions, unless `compiled=False` or a
    `scale` is given; `openspiel_actions` translates the actions (docs/environments_openspiel.md). Otherwise
    it is an `OpenSpielState`, with OpenSpiel's actions and observations.

    Returns are divided by `scale`. By default that is the largest size of a return that the game declares, or 1 if
    that is less, so that results are in [-1, 1]; in games with rewards it is 1: rewards may have any size, for which
    `UCT` has `normalize="tree"`.
    """
    spiel = state_of(game_or_state)
    divisor = None if scale is None else validation.positive_number(scale, "scale")
    if validation.flag(compiled, "compiled") and divisor is None:
        found = compiled_state(spiel)
        if found is not None:
            return found
    return _class_of(spiel.get_game(), divisor)(spiel.clone())


#: The classes of states by game and scale.
_classes: dict[tuple[str, float], type[OpenSpielState]] = {}


def _class_of(game: Any, scale: float | None) -> type[OpenSpielState]:
    """Returns the class of the states of a game; without `scale`, with the default one."""
    kinds, kind = openspiel().GameType, game.get_type()
    has_rewards = kind.reward_model == kinds.RewardModel.REWARDS
    if scale is None:
        scale = 1.0 if has_rewards else _largest_return(game)
    key = str(game), scale
    if key in _classes:
        return _classes[key]
    attributes: dict[str, Any] = {
        "__slots__": (),
        "__module__": __name__,
        "num_players": game.num_players(),
        "num_actions": game.num_distinct_actions(),
        "zero_sum": game.num_players() == 2 and kind.utility == kinds.Utility.ZERO_SUM and not has_rewards,
        "scale": scale,
        "_game": game,
    }
    bases: list[type] = [OpenSpielState]
    if kind.provides_observation_tensor:
        attributes["_shape"] = game.observation_tensor_shape()
        bases.insert(0, _WithObservation)
    if kind.chance_mode != kinds.ChanceMode.DETERMINISTIC:
        bases.insert(0, _WithChance)
    if has_rewards:
        bases.insert(0, _WithRewards)
    _classes[key] = type(f"openspiel:{key[0]}", tuple(bases), attributes)
    return _classes[key]


def _largest_return(game: Any) -> float:
    """Returns the largest size of a return that a game declares, at least 1."""
    largest: float = max(1.0, abs(game.min_utility()), abs(game.max_utility()))
    if not largest < float("inf"):  # also True for NaN
        raise InvalidArgumentError(
            f"the OpenSpiel game {game} declares no bounds of its returns: give scale=, the number to divide them by"
        )
    return largest


def _restored(data: str, scale: float, earned: list[float] | None) -> OpenSpielState:
    game, spiel = openspiel().deserialize_game_and_state(data)
    return _class_of(game, scale)(spiel, earned)
