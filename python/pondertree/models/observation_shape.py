"""One observation or a batch of them: what is known of the shape that a model takes."""

from __future__ import annotations

from typing import Any

from pondertree import validation
from pondertree.config import MOST_WRAPPED
from pondertree.errors import InvalidArgumentError
from pondertree.models.arrays import namespace_of
from pondertree.models.responses import check_column, check_logits, root_parts

Shape = tuple[int, ...]


def declared_shapes(model: Any) -> tuple[Shape, ...]:
    """The shapes of one observation that a model, or the model in an adapter, declares; none if it declares nothing.

    `observation_shape` is one of them, `observation_shapes` are several.
    """
    for _ in range(MOST_WRAPPED):
        one, several = getattr(model, "observation_shape", None), getattr(model, "observation_shapes", None)
        if one is not None or several is not None:
            given = several if one is None else [one]
            try:
                return tuple(tuple(int(size) for size in shape) for shape in given or ())
            except (TypeError, ValueError):
                told = validation.shown(several if one is None else one)
                raise InvalidArgumentError(
                    f"observation_shape of the model must be a tuple of whole numbers, not {told}"
                ) from None
        model = getattr(model, "model", None)
    return ()


class ObservationShape:
    """Tells whether an array is one observation of a model, or a batch [B, ...] of them.

    What the model declares is certain, and so is a shape that was given before where it could only be one observation.
    Otherwise the model is asked, once for each shape, about two rows of either kind, one inference each: of the two
    readings it can take one. An array that it takes either way is refused.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._declared = declared_shapes(model)
        self._seen: set[Shape] = set()

    def note(self, shape: Shape) -> None:
        """Remembers the shape of what was certainly one observation."""
        self._seen.add(shape)

    def known(self, array: Any) -> bool | None:
        """Whether an array is a batch, by shapes that are declared or were seen; None where these do not say."""
        shape = tuple(array.shape)
        shapes = self._declared or tuple(self._seen)
        if shape in shapes:
            return False
        if shape[1:] in shapes:
            return True
        if not self._declared:
            return None
        if self._takes(array):
            told = " or ".join(map(str, self._declared))
            raise InvalidArgumentError(
                f"observation has shape {shape}: an observation has shape {told} in this model, and several are a list "
                "of them, or an array with the axis of the batch first"
            )
        return False  # the model will say itself what is wrong

    def is_batch(self, array: Any, either_is_one: bool = False) -> bool:
        """Whether an array is a batch. One that could be either is one if `either_is_one`, else an error."""
        shape, known = tuple(array.shape), self.known(array)
        if known is not None:
            return known
        # An array with one axis is one observation: batches of single numbers are declared, or are lists.
        batch = len(shape) >= 2 and len(array) > 0 and self._takes(array[0])
        one = len(shape) < 2 or self._takes(array)
        if batch and one and either_is_one:
            return False
        if batch and one:
            raise InvalidArgumentError(
                f"observation has shape {shape}, and this model takes it as one observation and as {shape[0]} of them: "
                "give list(observation) for several, [observation] for one, or declare observation_shape, the shape of "
                "one, on the model"
            )
        if batch or one:  # else the model will say itself what is wrong, and nothing is learned of its shapes
            self.note(shape[1:] if batch else shape)
        return batch

    def _takes(self, observation: Any) -> bool:
        """Whether the model answers rightly for two rows of this observation."""
        try:
            rows = namespace_of(observation).stack([observation, observation])
            _, policy, value = root_parts(self._model.initial_inference(rows))
            check_logits(policy, 2, None)
            check_column(value, 2, "value")
        except MemoryError:
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":  # of PyTorch: it says nothing about the shape
                raise
            return False
        return True
