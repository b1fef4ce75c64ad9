"""Categorical values and rewards: support and transform of the MuZero paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree import validation
from pondertree.config import bounded_float, option
from pondertree.errors import InvalidArgumentError
from pondertree.models.arrays import library_of, namespace_of


@dataclass(frozen=True, slots=True)
class Support:
    """The integers from -`size` to `size`, over which a network predicts a value or reward as a softmax.

    The distribution is over h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x, which compresses large numbers (MuZero,
    appendix F; Pohlen et al. 2018). With 300 atoms on each side, numbers up to 58,705 fit.

    Methods take and return arrays of NumPy, PyTorch or JAX, on their device and with gradients.
    """

    size: int = option(300, validation.count)
    epsilon: float = option(0.001, bounded_float(0.0))

    def __post_init__(self) -> None:
        validation.check_fields(self)

    @property
    def num_atoms(self) -> int:
        """Number of logits: 2 size + 1."""
        return 2 * self.size + 1

    @property
    def largest(self) -> float:
        """The largest representable number; larger ones are clipped to it."""
        return float(self.inverse(float(self.size)))

    def to_scalar(self, logits: Any) -> Any:
        """Converts logits [..., 2 size + 1] to numbers [...]: the inverse of h at the expectation of their softmax."""
        logits = _floating(logits)
        if logits.shape[-1] != self.num_atoms:
            raise InvalidArgumentError(
                f"logits has shape {tuple(logits.shape)}: the last axis must be {self.num_atoms}, 2 * size + 1"
            )
        xp = namespace_of(logits)
        weights = xp.exp(logits - xp.amax(logits, axis=-1, keepdims=True))
        expected = (weights * self._atoms(logits)).sum(-1) / weights.sum(-1)
        return self.inverse(expected)

    def to_categorical(self, scalars: Any) -> Any:
        """Converts numbers [...] to probabilities [..., 2 size + 1]: h(x) is split between the two nearest atoms."""
        scalars = _floating(scalars)
        xp = namespace_of(scalars)
        place = xp.clip(self.transform(scalars), -self.size, self.size)[..., None]
        # Splits between the atom towards 0 and the next one outwards, so that small shares are exact for both signs.
        inner = xp.trunc(place)
        share = abs(place - inner)
        atoms = self._atoms(scalars)
        return (atoms == inner) * (1 - share) + (atoms == inner + xp.sign(place)) * share

    def transform(self, scalars: Any) -> Any:
        """h(x)."""
        x = _floating(scalars)
        xp = namespace_of(x)
        size = abs(x)
        # sqrt(|x| + 1) - 1 without cancellation.
        return xp.sign(x) * (size / (xp.sqrt(size + 1) + 1)) + self.epsilon * x

    def inverse(self, transformed: Any) -> Any:
        """The inverse of h.

        With u = sqrt(|x| + 1) - 1, |h| = u + epsilon u (u + 2): a quadratic equation, solved without cancellation. Then
        |x| = u (u + 2). The paper's formula is equivalent and loses digits near 0.
        """
        y = _floating(transformed)
        xp = namespace_of(y)
        b = 1 + 2 * self.epsilon
        u = 2 * abs(y) / (b + xp.sqrt(b * b + 4 * self.epsilon * abs(y)))
        return xp.sign(y) * u * (u + 2)

    def _atoms(self, like: Any) -> Any:
        if library_of(like) == "torch":
            return namespace_of(like).arange(-self.size, self.size + 1, dtype=like.dtype, device=like.device)
        return namespace_of(like).arange(-self.size, self.size + 1, dtype=like.dtype)


def _floating(given: Any) -> Any:
    """Converts to a floating-point array; numbers and lists become NumPy float64."""
    if library_of(given) == "torch":
        return given if given.is_floating_point() else given.float()
    if library_of(given) == "jax":
        return given if given.dtype.kind in "fV" else given.astype("float32")
    array = np.asarray(given)
    return array if array.dtype.kind == "f" else array.astype(np.float64)
