"""Adaptation and dispatch: which forms an evaluator has, and calls whose outputs can be split by rows."""

from __future__ import annotations

import sys
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError
from pondertree.evaluators.awaiting import awaited
from pondertree.evaluators.batch import Packed
from pondertree.evaluators.outputs import check_policy, read_numbers
from pondertree.evaluators.protocol import FORMS, check_evaluator, observer_of

Rows = NDArray[np.int64]
Arrays = tuple[NDArray[np.float32] | None, NDArray[Any]]


def as_evaluator(given: Any, name: str = "evaluator") -> Any:
    """Returns the evaluator itself, or a bare PyTorch module wrapped in `Torch`."""
    # If PyTorch is not loaded, nothing is an instance of the empty tuple.
    module = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", ())
    if isinstance(given, module) and not any(hasattr(given, form) for form in FORMS):
        from pondertree.evaluators.torch_module import Torch

        return Torch(given)
    check_evaluator(given, name)
    return given


class Wrapper:
    """The base class of evaluators around another one."""

    evaluator: Any

    @property
    def policy(self) -> str:
        """The kind of policy of the inner evaluator."""
        return str(getattr(self.evaluator, "policy", "logits"))

    @property
    def version(self) -> Any:
        """The version of the inner evaluator."""
        return getattr(self.evaluator, "version", 0)


def has_states(evaluator: Any) -> bool:
    """Whether an evaluator takes states."""
    return hasattr(evaluator, "evaluate_states")


def has_observations(evaluator: Any) -> bool:
    """Whether an evaluator takes observations."""
    return hasattr(evaluator, "evaluate") or callable(evaluator)


def can_take_packed(evaluator: Any) -> bool:
    """Whether packed positions can be passed: in that form, or unpacked for an evaluator of observations."""
    return hasattr(evaluator, "evaluate_packed") or (has_observations(evaluator) and not has_states(evaluator))


def call_states(evaluator: Any, states: list[Any]) -> Arrays:
    """(policy [B, num_actions] or None, values [B, ...])."""
    return _arrays(awaited(evaluator.evaluate_states, states), len(states))


def call_observations(evaluator: Any, observations: NDArray[np.float32]) -> Arrays:
    """(policy [B, num_actions] or None, values [B, ...])."""
    return _arrays(awaited(observer_of(evaluator), observations), len(observations))


def call_packed(evaluator: Any, packed: Packed) -> Arrays:
    """(policy of the legal actions [L] or None, values [B, ...]), from the packed form if the evaluator has it."""
    if hasattr(evaluator, "evaluate_packed"):
        policy, values = _pair(awaited(evaluator.evaluate_packed, packed))
        if policy is not None:
            policy = check_policy(policy, (len(packed.legal_actions),), packed.legal_offsets)
        return policy, _values(values, len(packed))
    policy, values = call_observations(evaluator, packed.unpack())
    if policy is None:
        return None, values
    policy = check_policy(policy, (len(packed), packed.num_actions))
    return policy[packed.rows(), packed.legal_actions], values


def observation_keys(observations: NDArray[Any]) -> list[bytes]:
    """A 128-bit digest of each observation; collisions are negligible."""
    kind = repr((observations.shape[1:], observations.dtype.str)).encode()
    return [blake2b(row.tobytes() + kind, digest_size=16).digest() for row in observations]


def packed_keys(packed: Packed) -> list[bytes]:
    """A digest of each position: planes, scalars and legal actions."""
    kind = repr(
        (packed.planes.shape[1], packed.scalars.shape[1], packed.height, packed.width, packed.num_actions)
    ).encode()
    planes, scalars, legal = packed.planes, packed.scalars, packed.legal_actions
    return [
        blake2b(
            planes[row].tobytes() + scalars[row].tobytes() + legal[begin:end].tobytes() + kind, digest_size=16
        ).digest()
        for row, (begin, end) in enumerate(pairwise(packed.legal_offsets.tolist()))
    ]


def _arrays(answer: Any, rows: int) -> Arrays:
    policy, values = _pair(answer)
    if policy is not None:
        policy = check_policy(policy, (rows, None))
    return policy, _values(values, rows)


def _pair(answer: Any) -> tuple[Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise EvaluationError(f"the evaluator returned {str(answer)[:80]}: it must return (policy_logits, values)")
    return answer


def _values(given: Any, rows: int) -> NDArray[Any]:
    values = read_numbers(given, "values")
    if values.ndim not in (1, 2) or len(values) != rows:
        raise EvaluationError(f"values has shape {values.shape}: it must have {rows} rows")
    return values
