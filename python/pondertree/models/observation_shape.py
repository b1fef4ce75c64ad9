"""Distinguishes single observations from batches by the shapes that a model takes."""

from __future__ import annotations

from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.awaiting import awaited
from pondertree.models.arrays import namespace_of
from pondertree.models.players import MAX_WRAPPED
from pondertree.models.responses import check_column, check_logits, root_parts

Shape = tuple[int, ...]


def declared_shapes(model: Any) -> tuple[Shape, ...]:
    """Returns the shapes of single observations that a model declares, also inside adapters; empty if there are none.

    The attribute `observation_shape` is one shape, `observation_shapes` several.
    """
    for _ in range(MAX_WRAPPED):
        one, several = getattr(model, "observation_shape", None), getattr(model, "observation_shapes", None)
        if one is not None or several is not None:
            given = several if one is None else [one]
            try:
                return tuple(tuple(int(size) for size in shape) for shape in given or ())
            except (TypeError, ValueError):
                shown = validation.shown(several if one is None else one)
                raise InvalidArgumentError(
                    f"observation_shape of the model must be a tuple of whole numbers, not {shown}"
                ) from None
        model = getattr(model, "model", None)
    return ()


class ObservationShape:
    """Decides whether an array is one observation of a model, or a batch [B, ...] of them.

    Declared shapes decide, and shapes seen before in calls that take single observations. Otherwise the model is probed
    once for each shape, with two rows of either reading: one of the inferences must succeed. If both do, the array is
    ambiguous, which is an error.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._declared = declared_shapes(model)
        self._seen: set[Shape] = set()

    def note(self, shape: Shape) -> None:
        """Records the shape of a single observation."""
        self._seen.add(shape)

    def known(self, array: Any) -> bool | None:
        """Whether an array is a batch, by declared or recorded shapes; None if they do not decide."""
        shape = tuple(array.shape)
        shapes = self._declared or tuple(self._seen)
        if shape in shapes:
            return False
        if shape[1:] in shapes:
            return True
        if not self._declared:
            return None
        if self._takes(array):
            expected = " or ".join(map(str, self._declared))
            raise InvalidArgumentError(
                f"observation has shape {shape}: an observation has shape {expected} in this model, and several are a "
                "list of them, or an array with the axis of the batch first"
            )
        return False  # inference reports the error

    def is_batch(self, array: Any, either_is_one: bool = False) -> bool:
        """Whether an array is a batch. An ambiguous one is a single observation if `either_is_one`, else an error."""
        shape, known = tuple(array.shape), self.known(array)
        if known is not None:
            return known
        # An array with one axis is one observation: batches of scalars are declared, or lists.
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
        if batch or one:  # otherwise inference reports the error
            self.note(shape[1:] if batch else shape)
        return batch

    def _takes(self, observation: Any) -> bool:
        """Whether the model returns valid outputs for two rows of this observation."""
        try:
            rows = namespace_of(observation).stack([observation, observation])
            _, policy, value = root_parts(awaited(self._model.initial_inference, rows))
            check_logits(policy, 2, None)
            check_column(value, 2, "value")
        except MemoryError:
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":  # PyTorch: says nothing about the shape
                raise
            return False
        return True
