"""The model of a player that was trained: it knows its game, and sees what the environment gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.envs.spaces import View
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.models.arrays import library_of
from pondertree.models.torch_model import TorchModel


class PlayerModel(TorchModel):
    """A model that `pondertree.load` gives.

    A player of an environment takes observations as the environment gives them: bytes of images, colours last, numbers
    of `Discrete` and `MultiDiscrete`. `see` is what its network makes of one of them, and is taken as well.
    """

    def __init__(self, network: Any, device: Any, about: dict[str, Any], view: View | None) -> None:
        """`about` and `view` are what the file of the network says."""
        super().__init__(network, device)
        self.about = about
        """What the file tells: game, step, and for an environment how it is seen and its first action."""
        self._view = view
        # The sign alone says whether the turn passes; that of 0 as well.
        self.num_players = 2 if math.copysign(1.0, network.architecture.discount) < 0.0 else 1
        """Players of the game that was learned; searches of bare observations ask for it."""
        shape = tuple(network.architecture.shape)
        self.observation_shapes = (shape,) if view is None or view.given == shape else (shape, view.given)
        """What one observation may look like: as the network sees it, or as the environment gives it."""

    def see(self, observation: Any) -> NDArray[np.float32]:
        """One observation as the network sees it: float32, colours first, from 0 to 1, numbers as places."""
        seen: NDArray[np.float32] = self._rows(_array(observation)[None])[0]
        return seen

    def initial_inference(self, observations: Any) -> Any:
        """As every model's; the rows are observations of the environment, or what `see` makes of them."""
        return super().initial_inference(observations if self._view is None else self._rows(observations))

    def _rows(self, observations: Any) -> Any:
        """What the network sees of a batch [B, ...]."""
        view = self._view
        if not hasattr(observations, "shape"):
            observations = _array(observations)  # a list
        shape = tuple(observations.shape[1:])
        if view is None or (shape == view.shape and _are_fractions(observations)):
            return observations  # as the network sees it already
        rows = _array(observations)
        if shape == view.shape and not view.counts:
            return (rows.astype(np.float32) / np.float32(255.0)) if view.pixels else rows.astype(np.float32)
        if shape != view.given:
            either = "" if view.shape == view.given else f", or {view.shape} as `see` gives them"
            raise InvalidArgumentError(
                f"an observation has shape {shape}: a player of {self.about.get('game')} takes {view.given}{either}"
            )
        try:
            return np.stack([view.turn(row) for row in rows])
        except (TypeError, ValueError, IndexError) as error:
            raise InvalidArgumentError(
                f"there is no such observation for a player of {self.about.get('game')}: {error}"
            ) from None


def view_of(network: Any, about: dict[str, Any]) -> View | None:
    """How observations of the environment are read, by what the file of a player says; None where it says nothing."""
    told = about.get("environment")
    try:
        # Files that were made before have none: their models take what `see` gives.
        view = View.of_data(told["view"]) if isinstance(told, dict) and "view" in told else None
    except InvalidArgumentError as error:
        raise StorageError(f"this player is damaged: {error}") from None
    if view is not None and view.shape != tuple(network.architecture.shape):
        raise StorageError("this player is damaged: its network does not see what it tells")
    return view


def _are_fractions(array: Any) -> bool:
    """Whether it has numbers with a point, and no bytes."""
    return bool(array.is_floating_point() if library_of(array) == "torch" else array.dtype.kind == "f")


def _array(given: Any) -> NDArray[Any]:
    array: NDArray[Any] = given.detach().cpu().numpy() if library_of(given) == "torch" else np.asarray(given)
    return array
