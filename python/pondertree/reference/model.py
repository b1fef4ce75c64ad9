"""Learned models: initial and recurrent inference, top-k priors and masking.

Two interfaces are supported. The batched one, here with batches of one: `initial_inference(observations) ->
(hidden_state, policy_logits, value)`, `recurrent_inference(hidden_states, actions) -> (hidden_state, reward,
policy_logits, value)`, optionally with a discount. That of the MuZero specification, unbatched:
`recurrent_inference(hidden_state, action) -> (hidden_state, reward)` and `prediction(hidden_state) -> (policy, value)`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree.games.game_state import LARGEST_REWARD
from pondertree.models.arrays import library_of, namespace_of
from pondertree.random import add_up
from pondertree.reference.priors import float32, priors_of

TOP_K_THRESHOLD = 256
"""In larger action spaces a node has children for its top-k actions alone."""
MIN_TOP_K = 64
"""Lower bound of k, so that a reused tree still has a choice."""


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """The output of a model for one hidden state."""

    hidden_state: Any
    """Opaque: passed back to the model unchanged."""
    logits: list[float]
    """One per action."""
    value: float
    """For the player to move."""
    reward: float = 0.0
    """Of the action leading there, for the player who chose it."""
    discount: float | None = None
    """The discount in backup; negative if the player to move changes. None for the discount of the search."""


def is_model(network: Any) -> bool:
    """Returns whether this is a learned model, rather than a network that evaluates positions."""
    return hasattr(network, "initial_inference")


def initial_inference(model: Any, observation: Any) -> ModelOutput:
    """Returns the model's output for an observation."""
    output = model.initial_inference(observation if _is_unbatched(model) else _batch_of_one(observation))
    if len(output) != 3:
        raise ValueError(
            f"initial_inference must return (hidden_state, policy_logits, value), not {len(output)} things"
        )
    hidden_state, logits, value = output
    return ModelOutput(hidden_state, row_of(logits), number_of(value, "value"))


def recurrent_inference(model: Any, hidden_state: Any, action: int) -> ModelOutput:
    """Returns the model's output for an action in a hidden state."""
    chosen = action if _is_unbatched(model) else np.array([action])
    output = tuple(model.recurrent_inference(hidden_state, chosen))
    if len(output) == 2 and _is_unbatched(model):
        output = (*output, *model.prediction(output[0]))
    if len(output) not in (4, 5):
        raise ValueError(
            "recurrent_inference must return (hidden_state, reward, policy_logits, value), and perhaps a discount, "
            f"not {len(output)} things"
        )
    hidden_state, reward, logits, value, *more = output
    discount = number_of(more[0], "discount") if more else None
    if discount is not None and abs(discount) > 1.0:
        raise ValueError(f"discount is {discount}: it must be from -1 to 1")
    return ModelOutput(hidden_state, row_of(logits), number_of(value, "value"), number_of(reward, "reward"), discount)


def top_k_priors(logits: Sequence[float], k: int) -> tuple[dict[int, float], float]:
    """Returns the priors of the children of a node below the root, in ascending order of actions, and the total of the
    rest.

    No action is masked, but those with prior 0 get no child. In large action spaces only the `k` actions with the
    highest priors do: unvisited actions are visited in the order of their priors, so a node with at most k visits needs
    no more.
    """
    priors = priors_of(range(len(logits)), logits)
    nonzero = [action for action, prior in priors.items() if prior > 0.0]
    if len(logits) <= TOP_K_THRESHOLD or len(nonzero) <= k:
        return {action: priors[action] for action in nonzero}, 0.0
    by_logit = sorted(nonzero, key=lambda action: (-float32(logits[action]), action))
    retained, dropped = sorted(by_logit[:k]), sorted(by_logit[k:])
    return {action: priors[action] for action in retained}, float32(add_up(priors[action] for action in dropped))


def mask_policy(policy: Any, legal_actions: Sequence[int]) -> Any:
    """Returns the logits with -inf at illegal actions; the last axis is the action axis.

    A PyTorch tensor keeps its gradient, dtype and device; anything else becomes a NumPy array.

    Trap: the MuZero specification calls this function without defining it, and masks in other places by -1e32, which
    overflows in half precision. Without any legal action the softmax would be undefined, so that is an error.
    """
    if library_of(policy) == "torch":
        torch = namespace_of(policy)
        logits = policy if policy.is_floating_point() else policy.to(torch.get_default_dtype())
        masked = torch.full_like(logits, -math.inf)
    else:
        logits = np.asarray(policy)
        masked = np.full_like(logits, -np.inf, dtype=np.result_type(logits, np.float16))
    legal = checked_actions(legal_actions, logits.shape[-1] if logits.ndim else 0)
    masked[..., legal] = logits[..., legal]
    return masked


def checked_actions(legal_actions: Sequence[int] | None, num_actions: int) -> list[int]:
    """Returns legal actions, given as ints or as a boolean mask, as a list of ints; None gives all actions."""
    if legal_actions is None:
        return list(range(num_actions))
    given = list(legal_actions)
    if given and all(isinstance(entry, (bool, np.bool_)) for entry in given):
        if len(given) != num_actions:
            raise ValueError(f"legal_actions is a mask of {len(given)}: there are {num_actions} actions")
        given = [action for action, allowed in enumerate(given) if allowed]
    legal = [operator.index(action) for action in given]
    if not legal:
        raise ValueError("legal_actions is empty: at least one action must be legal")
    wrong = [action for action in legal if not 0 <= action < num_actions]
    if wrong:
        raise ValueError(f"legal_actions has {wrong[0]}: actions must be from 0 to {num_actions - 1}")
    if len(set(legal)) < len(legal):
        raise ValueError(f"legal_actions has an action twice: {legal}")
    return legal


def _is_unbatched(model: Any) -> bool:
    """Returns whether the model has the unbatched interface of the MuZero specification."""
    return callable(getattr(model, "prediction", None))


def _batch_of_one(observation: Any) -> Any:
    """Adds the batch axis to an observation; Python numbers become float32."""
    array = np.asarray(observation)
    if array is not observation and array.dtype == np.float64:
        array = array.astype(np.float32)
    return array[np.newaxis]


def _plain(array: Any) -> Any:
    """Converts an array of any library to lists of floats."""
    return array.tolist() if hasattr(array, "tolist") else array


def row_of(logits: Any) -> list[float]:
    """Returns the logits of a batch of one, or without a batch axis."""
    numbers = _plain(logits)
    while isinstance(numbers, Sequence) and len(numbers) == 1 and isinstance(_plain(numbers[0]), Sequence):
        numbers = _plain(numbers[0])
    try:
        return [float(number) for number in numbers]
    except TypeError:
        raise ValueError("policy_logits must be one row with a number for every action") from None


def number_of(array: Any, name: str) -> float:
    """Returns the scalar of a batch of one, or without a batch axis."""
    number = _plain(array)
    while isinstance(number, Sequence) and len(number) == 1:
        number = _plain(number[0])
    try:
        number = float(number)
    except TypeError:
        raise ValueError(f"{name} must be one number for a batch of one") from None
    if not abs(number) <= LARGEST_REWARD:  # a NaN is not, either
        raise ValueError(f"{name} is {number}: it must be a finite number of at most {LARGEST_REWARD:.0e} in size")
    return float(number)
