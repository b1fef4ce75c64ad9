"""Priors, policies and values: evaluation of positions by a network, softmax, temperature, and 32-bit rounding.

A network has `evaluate_states(states) -> (policies, values)`, or `evaluate_leaves(leaves)` if it needs the simulation
keys too; or it reads observations, as `evaluate(observations)` or as a function of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pondertree.games.game_state import State, listed_actions
from pondertree.games.playout import Leaf, Playouts, per_player, simulate_leaves
from pondertree.random import Random, add_up

# --- Networks -------------------------------------------------------------------------------------------------------


class Uniform:
    """A network with uniform priors and value 0 everywhere."""

    def evaluate_states(self, states: Sequence[State]) -> tuple[None, list[list[float]]]:
        """Returns (None for uniform priors, zeros)."""
        return None, [[0.0] * state.num_players for state in states]


class Rollout:
    """A network with uniform priors whose value of a position is the result of one random playout."""

    def __init__(self) -> None:
        self.playouts = Playouts()

    def evaluate_leaves(self, leaves: Sequence[Leaf], discount: float = 1.0) -> tuple[None, list[list[float]]]:
        """Returns (None for uniform priors, playout results); the simulation keys make the playouts reproducible."""
        return None, simulate_leaves(leaves, playouts=self.playouts, discount=discount)


class MovePriors:
    """Adapts a network of the hybrid chess specification, `evaluate(state) -> ({move: prior}, value)`.

    Trap: the specification's values are in [0, 1] throughout. They are converted to [-1, 1] here, and only here.
    """

    policy = "probabilities"

    def __init__(self, policy_network: Any) -> None:
        self.policy_network = policy_network

    def evaluate_states(self, states: Sequence[Any]) -> tuple[list[list[float]], list[float]]:
        """Returns (priors over all actions, values in [-1, 1] for the player to move); a missing prior is 0."""
        evaluations = [self._evaluate(state) for state in states]
        return [priors for priors, _ in evaluations], [value for _, value in evaluations]

    def _evaluate(self, state: Any) -> tuple[list[float], float]:
        priors_by_move, value = self.policy_network.evaluate(state)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"the policy network gave the value {value}: it must be from 0 to 1")
        legal = set(state.legal_actions())
        priors = [0.0] * int(state.num_actions)
        for move, prior in priors_by_move.items():
            action = _action_of(state, move)
            if action not in legal:
                raise ValueError(f"the policy network gave a prior to {move!r}, which is not legal")
            priors[action] = float(prior)
        return priors, 2.0 * float(value) - 1.0


def _action_of(state: Any, move: Any) -> Any:
    """Returns the action of a move: an int, a text or a `chess.Move`; None for an illegal text."""
    text = move.uci() if hasattr(move, "uci") else move
    try:
        return state.parse_action(text) if isinstance(text, str) else move
    except ValueError:
        return None


def _call(network: Any, leaves: Sequence[Leaf], discount: float) -> Any:
    """Calls the network through the first of its interfaces."""
    states: list[Any] = [state for state, _, _ in leaves]
    if hasattr(network, "evaluate_leaves"):
        return network.evaluate_leaves(leaves, discount)
    if hasattr(network, "evaluate_states"):
        return network.evaluate_states(states)
    observations = np.stack([np.array(state.observation()) for state in states])
    return network.evaluate(observations) if hasattr(network, "evaluate") else network(observations)


def evaluate_positions(
    network: Any, leaves: Sequence[Leaf], legal: Sequence[Sequence[int]] | None = None, discount: float = 1.0
) -> list[tuple[dict[int, float], list[float]]]:
    """Returns the priors and the values (one per player) of each leaf, from one call of the network.

    Priors are over the legal moves, or over `legal` if given. A policy has one entry per action, or is None for uniform
    priors. Entries are logits, unless the network's attribute `policy` is "probabilities". `discount` is that of the
    moves of playouts.
    """
    states = [state for state, _, _ in leaves]
    policies, raw_values = _call(network, leaves, discount)
    values = per_player(states, raw_values)
    if policies is None:
        policies = [None] * len(states)
    if len(policies) != len(states):
        raise ValueError(f"the network gave {len(policies)} policies for {len(states)} states")
    kind = getattr(network, "policy", "logits")
    moves = [listed_actions(state) for state in states] if legal is None else legal
    priors = [priors_of(actions, row, kind) for actions, row in zip(moves, policies, strict=True)]
    return list(zip(priors, values, strict=True))


# --- Distributions --------------------------------------------------------------------------------------------------


def priors_of(legal: Sequence[int], policy: Sequence[float] | None, kind: str = "logits") -> dict[int, float]:
    """Returns the prior of each legal move from logits or probabilities over all actions; None gives uniform priors.

    Illegal actions are masked, the rest is normalised and rounded to 32 bits, as the engine stores priors.
    """
    if kind not in ("logits", "probabilities"):
        raise ValueError(f'policy must be "logits" or "probabilities", not {kind!r}')
    if policy is None:
        return dict.fromkeys(legal, float32(1.0 / len(legal)))
    if any(math.isnan(number) or number == math.inf for number in policy):
        raise ValueError("the numbers of a policy must be finite, or -inf for a masked action")
    masked = [float32(float(policy[action])) for action in legal]
    if math.inf in masked:
        raise ValueError("a number of the policy is too large for 32 bits")
    if kind == "logits":
        if max(masked) == -math.inf:
            raise ValueError("the logits are -inf on every legal move: at least one must be finite")
        shares = softmax(masked)
    elif min(masked) < 0.0:
        raise ValueError("a probability is negative")
    elif not any(masked):
        return priors_of(legal, None)
    else:
        shares = normalised(masked)
    return {action: float32(share) for action, share in zip(legal, shares, strict=True)}


def softmax(logits: Sequence[float]) -> list[float]:
    """Returns the softmax, with the maximum subtracted against overflow; at least one logit must be above -inf."""
    most = max(logits)
    return normalised([math.exp(logit - most) for logit in logits])


def tempered(visits: Sequence[float], temperature: float) -> list[float]:
    """Returns the visits (or other weights) to the power 1/T, T > 0, normalised; uniform if all are 0.

    Trap: `count ** (1 / T)` overflows for small T. Logarithms with the maximum subtracted do not.
    """
    most = max(visits)
    if most == 0:
        return normalised([1.0] * len(visits))
    return normalised([math.exp((math.log(n) - math.log(most)) / temperature) if n > 0 else 0.0 for n in visits])


def normalised(weights: Sequence[float]) -> list[float]:
    """Returns the weights divided by their sum."""
    total = add_up(weights)
    return [weight / total for weight in weights]


def highest(scores: Mapping[int, float], random: Random) -> int:
    """Returns the action with the highest score; ties are broken at random."""
    best = max(scores.values())
    ties = [action for action, score in scores.items() if score == best]
    return ties[random.choose(len(ties))]


def float32(number: float) -> float:
    """Returns the number rounded to single precision; infinite beyond its range."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return rounded
