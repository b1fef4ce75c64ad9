"""Roots of a learned model: a state of a game, or a bare observation with what is known of it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from pondertree import validation
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.evaluators.batch import stack_observations
from pondertree.models.arrays import library_of, namespace_of

#: Memory for an array of this shape and type, where a model reads it faster than elsewhere, or None.
Room = Callable[[tuple[int, ...], Any], Any]

#: What errors of shapes speak of: "3-D tensor", "sizes do not match", "too many dimensions".
_OF_SHAPES = re.compile(r"shape|size|dim|matrix|matrices|\d-?D\b")
#: The name of an observation that was given by itself.
ONE = "observation"


@dataclass(slots=True, eq=False)
class Observed:
    """A position of which only an observation is known; below the root not even that. To the search it is a state.

    Nobody changes one. (It is not frozen because that makes it three times as slow to make, and a batch makes many.)
    """

    observation: Any = None
    """As the model takes it, without the axis of the batch; None in positions that the model imagines."""
    allowed: tuple[int, ...] | None = None
    """The legal actions; None where all are."""
    mask_size: int | None = None
    """How many actions they were told of, where that was by a mask."""
    to_play: int = 0
    name: str = field(default="this observation")
    """What messages call it."""
    is_terminal = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Observed, (self.observation, self.allowed, self.mask_size, self.to_play, self.name)

    def legal(self, num_actions: int) -> list[int]:
        """The legal actions as the engine takes them; the engine checks that they are a set of actions."""
        if self.allowed is None:
            return list(range(num_actions))
        if self.mask_size not in (None, num_actions):
            raise InvalidArgumentError(
                f"legal_actions of {self.name} is a mask of {self.mask_size}: there are {num_actions} actions"
            )
        wrong = next((action for action in self.allowed if not 0 <= action < num_actions), None)
        if wrong is not None:
            raise InvalidArgumentError(
                f"legal_actions of {self.name} has {wrong}: actions are from 0 to {num_actions - 1}"
            )
        return list(self.allowed)


class ObservedRows(Sequence[Observed]):
    """Observations that are rows of one array [B, ...], of which nothing else is known. Trees may get other roots.

    They are made when somebody asks for them: there may be thousands, and most callers want arrays.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self._made: dict[int, Observed] = {}

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> Observed: ...

    @overload
    def __getitem__(self, index: slice) -> list[Observed]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        if row not in self._made:
            self._made[row] = Observed(self.array[row], name=f"observation[{row}]")
        return self._made[row]

    def __setitem__(self, index: int, root: Observed) -> None:
        self._made[range(len(self))[index]] = root


def follow(observation: Any, legal_actions: Any, to_play: Any, num_players: int) -> Observed:
    """The root after an action, from what a caller knows of it."""
    name = "the new root"
    return Observed(observation, *_legal(legal_actions, name), _turn(to_play, name, num_players), name)


def roots_of(states: Sequence[Any]) -> Sequence[Observed]:
    """Roots as the search wants them; of several states, the one that breaks its word is named."""
    if isinstance(states, ObservedRows):
        return states
    if len(states) == 1:
        return [root_of(states[0])]
    return [
        state if type(state) is Observed else root_of(state, f"states[{row}]: ") for row, state in enumerate(states)
    ]


def root_of(state: Any, row: str = "") -> Observed:
    """A root as the search wants it: a state says itself what it looks like, what is legal and whose turn it is."""
    if isinstance(state, Observed):
        return state
    name = row + type(state).__name__
    try:
        legal = tuple(operator.index(action) for action in state.legal_actions())
        to_play, players = operator.index(state.to_play), operator.index(state.num_players)
        num_actions = operator.index(state.num_actions)
    except Exception as error:
        raise GameContractError(f"{name} raised {type(error).__name__} when asked about a state: {error}") from error
    if not 0 <= to_play < players:
        raise GameContractError(f"{name}.to_play is {validation.shown(to_play)}: it must be from 0 to {players - 1}")
    wrong = next((action for action in legal if not 0 <= action < num_actions), None)
    if wrong is not None:
        raise GameContractError(
            f"{name}.legal_actions() has {validation.shown(wrong)}: "
            f"actions must be from 0 to num_actions - 1 = {num_actions - 1}"
        )
    if not legal:
        raise GameContractError(f"{name}.legal_actions() is empty although the game is not over")
    if len(set(legal)) < len(legal):
        raise GameContractError(f"{name}.legal_actions() has {_repeated(legal)} twice")
    return Observed(state, legal, None, to_play, name)


def observed(observation: Any, legal_actions: Any, to_play: Any, name: str, num_players: int) -> Observed:
    """A root from what a caller knows, checked as far as it can be without the model."""
    if observation is None:
        raise InvalidArgumentError(f"{name} is None: give what the model's initial_inference takes, without a batch")
    if legal_actions is None and to_play is None:  # the usual case
        return Observed(observation, None, None, 0, name)
    return Observed(observation, *_legal(legal_actions, name), _turn(to_play, name, num_players), name)


def hint_of_many(roots: Sequence[Observed], told: str) -> str | None:
    """What may be wrong where a model complains of shapes: rows were meant to be several observations, or were not."""
    shape = tuple(getattr(roots[0].observation, "shape", ()))
    if isinstance(roots, ObservedRows) and _OF_SHAPES.search(told):
        return f"observation was read as {len(roots)} observations of shape {shape}; for one of them use tree()"
    if len(roots) > 1 or roots[0].name != ONE or len(shape) < 2 or not _OF_SHAPES.search(told):
        return None
    return f"one observation was given, of shape {shape}; give a list for several"


def _turn(to_play: Any, name: str, num_players: int) -> int:
    try:
        if isinstance(to_play, bool):
            raise TypeError
        turn = 0 if to_play is None else operator.index(to_play)
    except TypeError:
        raise InvalidArgumentError(
            f"to_play of {name} is {validation.shown(to_play)}: it must be a whole number"
        ) from None
    if not 0 <= turn < num_players:
        raise InvalidArgumentError(
            f"to_play of {name} is {turn}: it must be from 0 to {num_players - 1} (num_players is {num_players})"
        )
    return turn


def _legal(given: Any, name: str) -> tuple[tuple[int, ...] | None, int | None]:
    """A list of actions, or a mask of True and False for every action: the legal ones, and the length of the mask."""
    if given is None:
        return None, None
    try:
        actions = np.asarray(given)
    except ValueError:  # rows of different lengths
        actions = np.empty(())
    size = None
    if actions.dtype == bool and actions.ndim == 1:
        size = len(actions)
        actions = np.flatnonzero(actions)
    if actions.ndim != 1 or (actions.size and actions.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            f"legal_actions of {name} must be whole numbers, or True and False for every action, "
            f"not {validation.shown(given)}"
        )
    legal = tuple(actions.tolist())
    if size is None and actions.dtype.itemsize == 1 and len(legal) > 1 and set(legal) <= {0, 1}:
        # As Gymnasium's masks are. Two entries could be actions as well, and are never meant as such in this type.
        raise InvalidArgumentError(
            f"legal_actions of {name} is a mask of {actions.dtype}: a mask has True and False, mask.astype(bool)"
        )
    if not legal:
        raise InvalidArgumentError(f"legal_actions of {name} is empty: at least one action must be legal")
    if len(set(legal)) < len(legal):
        hint = " (a mask has True and False, not 1 and 0)" if set(legal) <= {0, 1} else ""
        raise InvalidArgumentError(f"legal_actions of {name} has {_repeated(legal)} twice{hint}")
    return legal, size


def _repeated(legal: tuple[int, ...]) -> int:
    return next(action for place, action in enumerate(legal) if action in legal[:place])


def stack(roots: Sequence[Observed], room: Room | None = None) -> Any:
    """The observations of roots as one batch, in the library they come from; in `room`, if they are arrays of NumPy.

    A copy, in which the model may write.
    """
    if isinstance(roots, ObservedRows):
        return _copy(roots.array, room)
    first = roots[0].observation
    if hasattr(first, "legal_actions") and hasattr(first, "play"):
        if not hasattr(first, "observation"):
            raise GameContractError(f"{roots[0].name} has no observation(): a model sees states through it")
        return stack_observations([root.observation for root in roots])
    observations = [root.observation for root in roots]
    library = library_of(first)
    try:
        if library in ("torch", "jax"):
            return namespace_of(first).stack(observations)
        arrays = observations
        if set(map(type, observations)) != {np.ndarray}:
            arrays = [each if isinstance(each, np.ndarray) else _read(each) for each in observations]
        shape = arrays[0].shape
        if not shape or set(map(len, arrays)) != {shape[0]}:
            return np.stack(arrays)
        # What `stack` does, without its look at each of them: those that differ elsewhere are refused, too.
        place = None if room is None else room((len(arrays), *shape), np.result_type(*{each.dtype for each in arrays}))
        if place is None:
            return np.concatenate(arrays).reshape(len(arrays), *shape)
        np.concatenate(arrays, out=place.reshape(-1, *shape[1:]))
        return place
    except Exception as error:
        raise InvalidArgumentError(f"the observations cannot be put into one batch: {error}") from error


def _copy(array: Any, room: Room | None) -> Any:
    """In the usual order of memory, whatever that of the caller's is."""
    if library_of(array) == "torch":
        return array.clone(memory_format=namespace_of(array).contiguous_format)
    if library_of(array) == "jax":
        return array.copy()
    dtype = array.dtype.newbyteorder("=")
    place = None if room is None else room(array.shape, dtype)
    if place is None:
        return np.array(array, dtype, order="C")
    np.copyto(place, array)
    return place


def _read(listed: Any) -> Any:
    array = np.asarray(listed)
    return array.astype(np.float32) if array.dtype == np.float64 else array
