"""Policies as numbers: priors from what a network says, shares from visits, and the action with the highest score."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence

from pondertree.random import Random, add_up


def priors_of(legal: Sequence[int], policy: Sequence[float] | None, kind: str = "logits") -> dict[int, float]:
    """The prior of each legal move from a number for every action: logits or probabilities; None is even priors.

    Masked to the legal moves and normalised over them. The priors are rounded to 32 bits, as the engine keeps them.
    """
    if kind not in ("logits", "probabilities"):
        raise ValueError(f'policy must be "logits" or "probabilities", not {kind!r}')
    if policy is None:
        return dict.fromkeys(legal, float32(1.0 / len(legal)))
    if any(math.isnan(number) or number == math.inf for number in policy):
        raise ValueError("the numbers of a policy must be finite, or -inf for a move that is not to be looked at")
    own = [float32(float(policy[action])) for action in legal]
    if math.inf in own:
        raise ValueError("a number of the policy is too large for 32 bits")
    if kind == "logits":
        if max(own) == -math.inf:
            raise ValueError("the logits are -inf on every legal move: at least one must be finite")
        shares = softmax(own)
    elif min(own) < 0.0:
        raise ValueError("a probability is negative")
    elif not any(own):
        return priors_of(legal, None)
    else:
        shares = normalised(own)
    return {action: float32(share) for action, share in zip(legal, shares, strict=True)}


def softmax(logits: Sequence[float]) -> list[float]:
    """exp(x) over their sum. The greatest is subtracted first, so that nothing overflows; one must be above -inf."""
    most = max(logits)
    return normalised([math.exp(logit - most) for logit in logits])


def tempered(visits: Sequence[float], temperature: float) -> list[float]:
    """Visits, or other weights, to the power 1/T over their sum, for T above 0; if all are 0, all shares are the same.

    Trap: `count ** (1 / T)` overflows where T is small. In logarithms, with the greatest subtracted, nothing does.
    """
    most = max(visits)
    if most == 0:
        return normalised([1.0] * len(visits))
    return normalised([math.exp((math.log(n) - math.log(most)) / temperature) if n > 0 else 0.0 for n in visits])


def normalised(weights: Sequence[float]) -> list[float]:
    """The weights over their sum."""
    total = add_up(weights)
    return [weight / total for weight in weights]


def highest(scores: Mapping[int, float], random: Random) -> int:
    """The action with the highest score; ties are broken at random."""
    best = max(scores.values())
    ties = [action for action, score in scores.items() if score == best]
    return ties[random.choose(len(ties))]


def float32(number: float) -> float:
    """The nearest number of 32 bits."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return rounded
