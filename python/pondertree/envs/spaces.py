"""What is seen of an environment, as a network takes it: vectors, planes, and images as channels from 0 to 1."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.optional import require

#: The last axis of an image has the colours if it is at most so long.
MOST_COLOURS = 4


@dataclass(frozen=True, slots=True)
class View:
    """How observations of one space are read, in plain data: it is kept with a player."""

    shape: tuple[int, ...]
    """The shape a network sees."""
    pixels: bool
    """Whether they are bytes, seen as numbers from 0 to 1."""
    given: tuple[int, ...]
    """The shape the environment gives; that of a network has the colours of an image first."""
    firsts: tuple[int, ...] = ()
    """The least of each number, where numbers are seen as one place among as many as there could be."""
    counts: tuple[int, ...] = ()
    """How many values each of them may have."""

    def turn(self, array: NDArray[Any]) -> NDArray[np.float32]:
        """What a network sees of an observation; a `ValueError` if there is no such observation."""
        if self.counts:
            return _one_of(array, np.array(self.firsts), np.array(self.counts))
        if len(self.given) == 3 and self.shape != self.given:
            array = np.moveaxis(array, 2, 0)
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
            return (_scaled(array) if self.pixels else _plain(array)).reshape(self.shape)

    def read(self, seen: Any, name: str) -> NDArray[np.float32]:
        """What was seen, checked; `name` is the environment's."""
        try:
            array = np.asarray(seen)
        except ValueError as error:
            raise GameContractError(f"{name} gave an observation that is no array: {error}") from None
        if array.shape != self.given:
            raise GameContractError(
                f"{name} gave an observation of shape {array.shape}: its observation_space says {self.given}"
            )
        try:
            view = self.turn(array)
        except (TypeError, ValueError, IndexError) as error:
            raise GameContractError(f"{name} gave an observation outside its observation_space: {error}") from None
        if not np.isfinite(view).all():
            raise GameContractError(f"{name} gave an observation with a number that is not finite")
        return view

    def as_data(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: Any) -> View:
        """From plain data that `as_data` gave."""
        try:
            numbers = {
                name: tuple(validation.whole_number(number, name, least=least, most=1 << 62) for number in data[name])
                for name, least in (("shape", 1), ("given", 0), ("firsts", -(1 << 62)), ("counts", 1))
            }
            view = cls(pixels=bool(data["pixels"]), **numbers)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"this describes no observations: {error!r}") from None
        if len(view.firsts) != len(view.counts) or (view.counts and view.shape != (sum(view.counts),)):
            raise InvalidArgumentError("this describes no observations: firsts, counts and shape do not fit together")
        return view


def view_of(space: Any, name: str) -> View:
    """How observations of a space are read; spaces that no network takes are refused."""
    spaces = require("gymnasium", "envs", "an environment").spaces
    if isinstance(space, spaces.Discrete):
        count = int(space.n)
        return View((count,), False, (), (int(space.start),), (count,))
    if isinstance(space, spaces.MultiDiscrete):
        firsts, counts = (tuple(array.reshape(-1).tolist()) for array in (space.start, space.nvec))
        return View((sum(counts),), False, tuple(space.shape), firsts, counts)
    if isinstance(space, spaces.MultiBinary):
        return View(tuple(space.shape), False, tuple(space.shape))
    if not isinstance(space, spaces.Box):
        raise InvalidArgumentError(
            f"environment {name!r} is seen as {space}: Box, Discrete, MultiDiscrete and MultiBinary can be learned "
            "from; gymnasium.wrappers.FlattenObservation makes one vector of the others"
        )
    shape = tuple(int(length) for length in space.shape)
    pixels = space.dtype == np.uint8 and len(shape) in (2, 3)
    if pixels and len(shape) == 2:
        return View((1, *shape), True, shape)
    if len(shape) == 3 and shape[2] <= MOST_COLOURS and shape[2] < shape[0]:
        return View((shape[2], *shape[:2]), pixels, shape)
    return View(shape or (1,), pixels, shape)


def _plain(seen: NDArray[Any]) -> NDArray[np.float32]:
    return np.array(seen, dtype=np.float32, order="C")  # a copy: some environments write into the same array again


def _scaled(seen: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(seen, dtype=np.float32) / np.float32(255.0)


def _one_of(seen: NDArray[Any], firsts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float32]:
    """Each number as one place among as many as there could be."""
    numbers = np.asarray(seen, dtype=np.int64).reshape(-1) - firsts
    if (numbers < 0).any() or (numbers >= counts).any():
        raise ValueError(f"{np.asarray(seen).tolist()} is not in it")
    view = np.zeros(int(counts.sum()), dtype=np.float32)
    view[np.concatenate([[0], np.cumsum(counts)[:-1]]) + numbers] = 1.0
    return view
