"""Conversion of observations for networks: vectors, planes, and images with channels first and values in [0, 1]."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.optional import require

#: A last axis of at most this length holds the colour channels of an image.
MAX_COLOURS = 4


@dataclass(frozen=True, slots=True)
class View:
    """The conversion of the observations of one space, as plain data that are saved with a player."""

    shape: tuple[int, ...]
    """The shape of the network's input."""
    pixels: bool
    """Whether values are bytes, scaled to [0, 1]."""
    given: tuple[int, ...]
    """The shape of the environment's observations; images have their channels last there."""
    firsts: tuple[int, ...] = ()
    """The least value of each number that is one-hot encoded."""
    counts: tuple[int, ...] = ()
    """The number of values of each of them."""

    def turn(self, array: NDArray[Any]) -> NDArray[np.float32]:
        """Returns the network's input for an observation; `ValueError` if it is not in the space."""
        if self.counts:
            return _one_of(array, np.array(self.firsts), np.array(self.counts))
        if len(self.given) == 3 and self.shape != self.given:
            array = np.moveaxis(array, 2, 0)
        with np.errstate(over="ignore"):  # overflows to infinity, which `read` refuses
            numbers = np.array(array, dtype=np.float32, order="C")  # a copy: some environments reuse the array
        return (numbers / np.float32(255.0) if self.pixels else numbers).reshape(self.shape)

    def read(self, observation: Any, name: str) -> NDArray[np.float32]:
        """Returns the network's input for an observation, checked; `name` is that of the environment in messages."""
        try:
            array = np.asarray(observation)
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
        """Returns plain data for `of_data`."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: Any) -> View:
        """Returns the view that `as_data` described."""
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
    """Returns the view of a space; raises `InvalidArgumentError` for a space without a network input."""
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
            f"environment {name!r} has observations of {space}: networks take Box, Discrete, MultiDiscrete and "
            "MultiBinary; gymnasium.wrappers.FlattenObservation makes one vector of the others"
        )
    shape = tuple(int(length) for length in space.shape)
    pixels = space.dtype == np.uint8 and len(shape) in (2, 3)
    if pixels and len(shape) == 2:
        return View((1, *shape), True, shape)
    if len(shape) == 3 and shape[2] <= MAX_COLOURS and shape[2] < shape[0]:
        return View((shape[2], *shape[:2]), pixels, shape)
    return View(shape or (1,), pixels, shape)


def _one_of(observation: NDArray[Any], firsts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float32]:
    """Returns the concatenated one-hot encodings of the numbers."""
    numbers = np.asarray(observation, dtype=np.int64).reshape(-1) - firsts
    if (numbers < 0).any() or (numbers >= counts).any():
        raise ValueError(f"{np.asarray(observation).tolist()} is not in the space")
    view = np.zeros(int(counts.sum()), dtype=np.float32)
    view[np.concatenate([[0], np.cumsum(counts)[:-1]]) + numbers] = 1.0
    return view
