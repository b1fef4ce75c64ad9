"""The forms an evaluator may have, and how it is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError, InvalidArgumentError, call_evaluator
from pondertree.evaluators.batch import Batch, Packed
from pondertree.evaluators.outputs import check_policy, check_values
from pondertree.game import GameInfo
from pondertree.validation import shown


@runtime_checkable
class Evaluator(Protocol):
    """Values positions by what they look like. An attribute `policy` may say "probabilities" instead of "logits"."""

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions], values [B]) of observations [B, ...]."""
        ...


@runtime_checkable
class StateEvaluator(Protocol):
    """Values positions by the states themselves."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions] or None for even ones, values [B]) of states."""
        ...


@runtime_checkable
class PackedEvaluator(Protocol):
    """The fast form, for compiled games: packed planes and legal actions go up, logits of legal actions come down."""

    def evaluate_packed(self, packed: Packed) -> tuple[Any, Any]:
        """(logits of `packed.legal_actions` [L], values [B])."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What an evaluator said of a batch, checked."""

    policy: NDArray[np.float32] | None
    """[rows, num_actions], or [number of legal actions] from the packed form; None where all moves are alike."""
    values: NDArray[np.float64]
    """[rows] for the player to move, or [rows, num_players]."""
    probabilities: bool
    """The policy holds probabilities, not logits."""


FORMS = ("evaluate_packed", "evaluate_states", "evaluate")


def compiled_leaf(evaluator: Any, info: GameInfo) -> Any:
    """The engine's own form of an evaluator on a game, where it has one: leaves need no Python."""
    offer = getattr(evaluator, "compiled_leaf", None)
    return offer(info) if callable(offer) else None


def as_evaluator(given: Any, name: str = "evaluator") -> Any:
    """The evaluator as it is; a bare module of PyTorch, which would be called with arrays of NumPy, in `Torch`."""
    # An empty tuple where PyTorch is not loaded: nothing is a module of it.
    module = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", ())
    if isinstance(given, module) and not any(hasattr(given, form) for form in FORMS):
        from pondertree.evaluators.torch_module import Torch

        return Torch(given)
    check_evaluator(given, name)
    return given


def check_evaluator(evaluator: Any, name: str = "evaluator") -> None:
    """Refuses what has none of the forms."""
    if isinstance(evaluator, type) or not (any(hasattr(evaluator, form) for form in FORMS) or callable(evaluator)):
        hint = f"; did you mean num_simulations={shown(evaluator, 80)}?" if isinstance(evaluator, int) else ""
        raise InvalidArgumentError(
            f"{name} is {shown(evaluator, 80)}: it must have evaluate(observations) or evaluate_states(states), "
            f"or be a function of observations{hint}"
        )
    policy_of(evaluator)


def check_policy_kind(policy: Any, name: str = "policy") -> str:
    """ "logits" or "probabilities": what the first part of an answer holds."""
    if not isinstance(policy, str) or policy not in ("logits", "probabilities"):
        raise InvalidArgumentError(f'{name} must be "logits" or "probabilities", not {shown(policy, 80)}')
    return policy


def policy_of(evaluator: Any) -> str:
    """The kind of policy that an evaluator gives."""
    return check_policy_kind(getattr(evaluator, "policy", "logits"), "evaluator.policy")


def observer_of(evaluator: Any) -> Callable[[Any], Any]:
    """The form of an evaluator that takes observations; an error that says what is missing if it has none."""
    function = getattr(evaluator, "evaluate", evaluator)
    if not callable(function):
        raise EvaluationError(
            f"evaluator {shown(evaluator, 80)} has evaluate_packed alone, which is asked only about compiled games in "
            "searches with priors (such as AlphaZero): elsewhere it needs evaluate(observations)"
        )
    return cast(Callable[[Any], Any], function)


def ask(evaluator: Any, batch: Batch) -> Answer:
    """The evaluator's answer to a batch, in the fastest form both know; its shapes, kinds and values checked."""
    packed = batch.packed() if hasattr(evaluator, "evaluate_packed") and batch.packed is not None else None
    if packed is not None:
        answer = call_evaluator(evaluator.evaluate_packed, packed)
    elif hasattr(evaluator, "evaluate_states"):
        answer = call_evaluator(evaluator.evaluate_states, batch.states())
    else:
        answer = call_evaluator(observer_of(evaluator), batch.observations())
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise EvaluationError(f"the evaluator returned {shown(answer, 80)}: it must return (policy_logits, values)")
    policy, values = answer
    if policy is not None and packed is None:
        policy = check_policy(policy, (batch.rows, batch.num_actions))
    elif policy is not None and packed is not None:
        policy = check_policy(policy, (len(packed.legal_actions),), packed.legal_offsets)
    values = check_values(values, batch.rows, batch.num_players, batch.info)
    return Answer(policy, values, policy_of(evaluator) == "probabilities")
