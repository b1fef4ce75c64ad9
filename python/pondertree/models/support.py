"""Values and rewards as categories: the support and the transform of the MuZero paper, for the networks of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree import validation
from pondertree.errors import InvalidArgumentError
from pondertree.models.arrays import library_of, namespace_of


@dataclass(frozen=True, slots=True)
class Support:
    """Whole numbers from -`size` to `size`, on which a network spreads its value or reward by a softmax.

    What it spreads is h(x), which grows like a root, so that large values have room (MuZero, appendix F; Pohlen et al.
    2018): h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x. With 300 atoms on each side, numbers up to 58,705 fit.

    Every method takes arrays of NumPy, PyTorch or JAX and answers in kind, on their device and with their gradients.
    """

    size: int = 300
    epsilon: float = 0.001

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", validation.count(self.size, "size"))
        object.__setattr__(self, "epsilon", validation.number(self.epsilon, "epsilon", least=0.0))

    @property
    def num_atoms(self) -> int:
        """How many logits a network must give: 2 size + 1."""
        return 2 * self.size + 1

    @property
    def largest(self) -> float:
        """The largest number that can be said; larger ones become this."""
        return float(self.inverse(float(self.size)))

    def to_scalar(self, logits: Any) -> Any:
        """The numbers [...] that logits [..., 2 size + 1] mean: the inverse of h at their softmax's expectation."""
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
        """Probabilities [..., 2 size + 1] for numbers [...]: h(x) shared between the two atoms around it."""
        scalars = _floating(scalars)
        xp = namespace_of(scalars)
        place = xp.clip(self.transform(scalars), -self.size, self.size)[..., None]
        # The atom on the side of 0, and the next one outwards: so a small share is exact, whatever its sign.
        inner = xp.trunc(place)
        share = abs(place - inner)
        atoms = self._atoms(scalars)
        return (atoms == inner) * (1 - share) + (atoms == inner + xp.sign(place)) * share

    def transform(self, scalars: Any) -> Any:
        """h(x)."""
        x = _floating(scalars)
        xp = namespace_of(x)
        size = abs(x)
        # sqrt(|x| + 1) - 1, without the difference of two numbers that are nearly equal.
        return xp.sign(x) * (size / (xp.sqrt(size + 1) + 1)) + self.epsilon * x

    def inverse(self, transformed: Any) -> Any:
        """The x whose h(x) was given.

        With u = sqrt(|x| + 1) - 1, |h| = u + epsilon u (u + 2): a quadratic equation, solved for u in the form that has
        no difference in it. Then |x| = u (u + 2). The paper's formula is the same, and loses digits near 0.
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
    """An array of floating numbers: numbers and lists become NumPy's float64."""
    if library_of(given) == "torch":
        return given if given.is_floating_point() else given.float()
    if library_of(given) == "jax":
        return given if given.dtype.kind in "fV" else given.astype("float32")
    array = np.asarray(given)
    return array if array.dtype.kind == "f" else array.astype(np.float64)
