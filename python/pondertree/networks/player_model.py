"""Loaded MuZero players as models that accept the environment's raw observations."""

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
    """A model loaded by `pondertree.load`.

    A player of an environment takes raw observations (bytes of channels-last images, numbers of `Discrete` and
    `MultiDiscrete`) or network inputs; `see` converts the former to the latter.
    """

    def __init__(self, network: Any, device: Any, about: dict[str, Any], view: View | None) -> None:
        """`about` and `view` come from the player file."""
        super().__init__(network, device)
        self.about = about
        """Metadata of the file: game, step, and for an environment its observation view and first action."""
        self._view = view
        # The sign of the discount, also of 0, says whether players alternate.
        self.num_players = 2 if math.copysign(1.0, network.architecture.discount) < 0.0 else 1
        """Players of the trained game; searches of bare observations need it."""
        shape = tuple(network.architecture.shape)
        self.observation_shapes = (shape,) if view is None or view.given == shape else (shape, view.given)
        """Accepted shapes of one observation: the network's and the environment's."""

    def see(self, observation: Any) -> NDArray[np.float32]:
        """Returns one observation as network input: float32, channels first, scaled to [0, 1], categories one-hot."""
        seen: NDArray[np.float32] = self._rows(_array(observation)[None])[0]
        return seen

    def initial_inference(self, observations: Any) -> Any:
        """Accepts rows of raw observations or of network inputs."""
        return super().initial_inference(observations if self._view is None else self._rows(observations))

    def _rows(self, observations: Any) -> Any:
        """Returns a batch [B, ...] as network input."""
        view = self._view
        if not hasattr(observations, "shape"):
            observations = _array(observations)  # a list
        shape = tuple(observations.shape[1:])
        if view is None or (shape == view.shape and _are_fractions(observations)):
            return observations  # already network input
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
    """Returns the observation view in a player's metadata; None if there is none."""
    environment = about.get("environment")
    try:
        # Older files have none: their models take network inputs.
        view = View.of_data(environment["view"]) if isinstance(environment, dict) and "view" in environment else None
    except InvalidArgumentError as error:
        raise StorageError(f"this player is damaged: {error}") from None
    if view is not None and view.shape != tuple(network.architecture.shape):
        raise StorageError("this player is damaged: its network and its observation view disagree")
    return view


def _are_fractions(array: Any) -> bool:
    """Whether the array is floating-point."""
    return bool(array.is_floating_point() if library_of(array) == "torch" else array.dtype.kind == "f")


def _array(given: Any) -> NDArray[Any]:
    array: NDArray[Any] = given.detach().cpu().numpy() if library_of(given) == "torch" else np.asarray(given)
    return array
