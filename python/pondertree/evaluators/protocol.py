"""The forms of evaluators, and the call that validates their outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError, InvalidArgumentError, call_evaluator
from pondertree.evaluators.awaiting import awaited
from pondertree.evaluators.batch import Batch, Packed
from pondertree.evaluators.outputs import check_policy, check_values
from pondertree.game import GameInfo
from pondertree.games import BY_NAME, name_of_info
from pondertree.validation import shown


@runtime_checkable
class Evaluator(Protocol):
    """Evaluates observations. An optional attribute `policy` is "logits" (default) or "probabilities"."""

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions], values [B]) of observations [B, ...]."""
        ...


@runtime_checkable
class StateEvaluator(Protocol):
    """Evaluates states."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions] or None for uniform ones, values [B]) of states."""
        ...


@runtime_checkable
class PackedEvaluator(Protocol):
    """The fast form for compiled games: packed planes and legal actions in, logits of legal actions out."""

    def evaluate_packed(self, packed: Packed) -> tuple[Any, Any]:
        """(logits of `packed.legal_actions` [L], values [B])."""
        ...


@dataclass(slots=True)  # not frozen: one is made for every batch
class EvaluatorOutput:
    """Validated outputs of an evaluator."""

    policy: NDArray[np.float32] | None
    """[rows, num_actions], or [number of legal actions] from the packed form; None if it is uniform."""
    values: NDArray[np.float64]
    """[rows] for the player to move, or [rows, num_players]."""
    probabilities: bool
    """The policy holds probabilities, not logits."""


FORMS = ("evaluate_packed", "evaluate_states", "evaluate")


def compiled_leaf(evaluator: Any, info: GameInfo) -> Any:
    """The compiled equivalent of an evaluator for a game, which needs no Python at leaves; None if there is none."""
    offer = getattr(evaluator, "compiled_leaf", None)
    return offer(info) if callable(offer) else None


def check_evaluator(evaluator: Any, name: str = "evaluator") -> None:
    """Raises `InvalidArgumentError` for an object that is no evaluator."""
    if isinstance(evaluator, type) or not (any(hasattr(evaluator, form) for form in FORMS) or callable(evaluator)):
        hint = f"; did you mean num_simulations={shown(evaluator, 80)}?" if isinstance(evaluator, int) else ""
        raise InvalidArgumentError(
            f"{name} is {shown(evaluator, 80)}: it must have evaluate(observations) or evaluate_states(states), "
            f"or be a function of observations{hint}"
        )
    policy_of(evaluator)


def check_policy_kind(policy: Any, name: str = "policy") -> str:
    """Validates a policy kind, "logits" or "probabilities"."""
    if not isinstance(policy, str) or policy not in ("logits", "probabilities"):
        raise InvalidArgumentError(f'{name} must be "logits" or "probabilities", not {shown(policy, 80)}')
    return policy


def policy_of(evaluator: Any) -> str:
    """The policy kind of an evaluator."""
    return check_policy_kind(getattr(evaluator, "policy", "logits"), "evaluator.policy")


def observer_of(evaluator: Any) -> Callable[[Any], Any]:
    """The function of observations of an evaluator; raises `EvaluationError` if it has none."""
    function = getattr(evaluator, "evaluate", evaluator)
    if not callable(function):
        raise EvaluationError(
            f"evaluator {shown(evaluator, 80)} has only evaluate_packed, which serves compiled games in "
            "searches with priors (such as AlphaZero): other searches need evaluate(observations)"
        )
    return cast(Callable[[Any], Any], function)


def evaluate_batch(evaluator: Any, batch: Batch) -> EvaluatorOutput:
    """Evaluates a batch in the fastest form that both support; validates shapes, dtypes and values."""
    packed = batch.packed() if hasattr(evaluator, "evaluate_packed") and batch.packed is not None else None
    if packed is not None:
        answer = call_evaluator(awaited, evaluator.evaluate_packed, packed)
    elif hasattr(evaluator, "evaluate_states"):
        answer = call_evaluator(awaited, evaluator.evaluate_states, batch.states())
    else:
        answer = call_evaluator(awaited, observer_of(evaluator), batch.observations())
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise EvaluationError(f"the evaluator returned {shown(answer, 80)}: it must return (policy_logits, values)")
    policy, values = answer
    if policy is not None and packed is None:
        policy = check_policy(policy, (batch.rows, batch.num_actions))
    elif policy is not None and packed is not None:
        policy = check_policy(policy, (len(packed.legal_actions),), packed.legal_offsets)
    values = check_values(values, batch.rows, batch.num_players, batch.info)
    return EvaluatorOutput(policy, values, policy_of(evaluator) == "probabilities")


def check_player_game(player: Any, info: GameInfo) -> None:
    """Raises `InvalidArgumentError` if a loaded player was trained on another game; other evaluators pass.

    Compares the number of actions and, for compiled games, the name and the shape of observations: a game written in
    Python may have had another name during training.
    """
    about = getattr(player, "about", None)
    if not isinstance(about, dict):
        return
    trained, expected = str(about.get("game", "")), name_of_info(info)
    network = about.get("network")
    network = network if isinstance(network, dict) else {}
    actions, shape = network.get("num_actions"), network.get("shape")
    are_compiled = trained.partition(":")[0] in BY_NAME and info.compiled
    if (are_compiled and trained != expected) or (trained and actions not in (None, info.num_actions)):
        raise InvalidArgumentError(f"this is a player of {trained}, not of {expected}")
    expected_shape = list(info.observation_shape) if info.compiled else shape
    if actions not in (None, info.num_actions) or shape not in (None, expected_shape):
        raise InvalidArgumentError(
            f"this player is not one of {expected}: it has {actions} actions and observations of shape {shape}, "
            f"the game {info.num_actions} and {expected_shape}"
        )
