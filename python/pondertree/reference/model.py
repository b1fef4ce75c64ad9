"""What a learned model says: of an observation, and of where an action leads from a hidden state.

A model has one of two forms. Ours is asked in batches, here of one: `initial_inference(observations)` answers
(hidden_state, policy_logits, value), `recurrent_inference(hidden_states, actions)` answers (hidden_state, reward,
policy_logits, value), and may add a discount. The specification's is asked about one thing at a time, its
`recurrent_inference(hidden_state, action)` answers (hidden_state, reward), and `prediction(hidden_state)` the rest.
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
from pondertree.reference.policy import float32, priors_of

WIDE = 256
"""In action spaces above this size a node keeps only the moves it can come to need."""
LEAST_KEPT = 64
"""It keeps so many in any case, so that a tree that is kept from move to move still has a choice."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said of one hidden state."""

    hidden_state: Any
    """As the model gave it, and as it gets it back."""
    logits: list[float]
    """A number for every action."""
    value: float
    """For the player to move there."""
    reward: float = 0.0
    """Of the action that leads there, for the player who chose it."""
    discount: float | None = None
    """What the value is multiplied by on its way up; a negative sign changes the player. None: the search's own."""


def is_model(network: Any) -> bool:
    """Whether this is a learned model, and no network that values positions of a game."""
    return hasattr(network, "initial_inference")


def ask_initial(model: Any, observation: Any) -> Answer:
    """What the model makes of an observation."""
    answer = model.initial_inference(observation if _has_own_prediction(model) else _batch_of_one(observation))
    if len(answer) != 3:
        raise ValueError(
            f"initial_inference must return (hidden_state, policy_logits, value), not {len(answer)} things"
        )
    hidden_state, logits, value = answer
    return Answer(hidden_state, row_of(logits), number_of(value, "value"))


def ask_recurrent(model: Any, hidden_state: Any, action: int) -> Answer:
    """Where the model thinks an action leads."""
    chosen = action if _has_own_prediction(model) else np.array([action])
    answer = tuple(model.recurrent_inference(hidden_state, chosen))
    if len(answer) == 2 and _has_own_prediction(model):
        answer = (*answer, *model.prediction(answer[0]))
    if len(answer) not in (4, 5):
        raise ValueError(
            "recurrent_inference must return (hidden_state, reward, policy_logits, value), and perhaps a discount, "
            f"not {len(answer)} things"
        )
    hidden_state, reward, logits, value, *more = answer
    discount = number_of(more[0], "discount") if more else None
    if discount is not None and abs(discount) > 1.0:
        raise ValueError(f"discount is {discount}: it must be from -1 to 1")
    return Answer(hidden_state, row_of(logits), number_of(value, "value"), number_of(reward, "reward"), discount)


def kept_priors(logits: Sequence[float], most: int) -> tuple[dict[int, float], float]:
    """The priors of the moves that a node below the root keeps, lowest action first, and what the others add up to.

    Nothing is masked there; but a move that got prior 0 is left out. In wide spaces only the `most` likeliest are kept:
    of the moves never tried the likeliest is tried next, so a node that is visited so often needs no others.
    """
    priors = priors_of(range(len(logits)), logits)
    likely = [action for action, prior in priors.items() if prior > 0.0]
    if len(logits) <= WIDE or len(likely) <= most:
        return {action: priors[action] for action in likely}, 0.0
    by_logit = sorted(likely, key=lambda action: (-float32(logits[action]), action))
    kept, dropped = sorted(by_logit[:most]), sorted(by_logit[most:])
    return {action: priors[action] for action in kept}, float32(add_up(priors[action] for action in dropped))


def mask_policy(policy: Any, legal_actions: Sequence[int]) -> Any:
    """The logits with minus infinity where an action is not legal; the last axis is that of the actions.

    A tensor of PyTorch stays one, with its gradient, type and device; anything else becomes an array of NumPy.

    Trap: in the specification the function is called and never defined, and its sibling masks by -1e32, which half
    precision does not have. All masked, a softmax has nothing left: no legal action is refused.
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
    """The legal actions, given as numbers or as a mask; all of them if none are given."""
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


def _has_own_prediction(model: Any) -> bool:
    """Whether the model has the specification's form."""
    return callable(getattr(model, "prediction", None))


def _batch_of_one(observation: Any) -> Any:
    """An observation with the axis of the batch; numbers that are no array yet become one of 32 bits."""
    array = np.asarray(observation)
    if array is not observation and array.dtype == np.float64:
        array = array.astype(np.float32)
    return array[np.newaxis]


def _plain(array: Any) -> Any:
    """Numbers of any library as lists of floats."""
    return array.tolist() if hasattr(array, "tolist") else array


def row_of(logits: Any) -> list[float]:
    """The logits of a batch of one, or of no batch."""
    numbers = _plain(logits)
    while isinstance(numbers, Sequence) and len(numbers) == 1 and isinstance(_plain(numbers[0]), Sequence):
        numbers = _plain(numbers[0])
    try:
        return [float(number) for number in numbers]
    except TypeError:
        raise ValueError("policy_logits must be one row with a number for every action") from None


def number_of(array: Any, name: str) -> float:
    """The number of a batch of one, or of no batch."""
    number = _plain(array)
    while isinstance(number, Sequence) and len(number) == 1:
        number = _plain(number[0])
    try:
        number = float(number)
    except TypeError:
        raise ValueError(f"{name} must be one number for the one row that was asked about") from None
    if not abs(number) <= LARGEST_REWARD:  # a NaN is not, either
        raise ValueError(f"{name} is {number}: it must be a finite number of at most {LARGEST_REWARD:.0e} in size")
    return float(number)
