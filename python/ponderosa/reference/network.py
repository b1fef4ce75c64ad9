"""What a network says of positions: the priors of their legal moves, and their values.

A network has `evaluate_states(states) -> (policies, values)`, or `evaluate_leaves(leaves)` if it wants to know more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ponderosa.reference.playout import Leaf, per_player, simulate_leaves
from ponderosa.reference.policy import priors_of
from ponderosa.reference.state import State, listed_actions


class Uniform:
    """A network that knows nothing: every move is as good as any other, every position worth 0."""

    def evaluate_states(self, states: Sequence[State]) -> tuple[None, list[list[float]]]:
        """(even priors, zeros)."""
        return None, [[0.0] * state.num_players for state in states]


class Rollout:
    """A network that plays at random: every move is as good as any other, a position is worth what a playout says."""

    def evaluate_leaves(self, leaves: Sequence[Leaf]) -> tuple[None, list[list[float]]]:
        """(even priors, results); the keys of the simulations make the playouts repeatable."""
        return None, simulate_leaves(leaves)


def consult(network: Any, leaves: Sequence[Leaf]) -> list[tuple[dict[int, float], list[float]]]:
    """The priors of the legal moves of each leaf, and its values, one per player.

    A policy is a number for every action, or None if all moves are alike. The numbers are logits, unless an attribute
    `policy` of the network says "probabilities".
    """
    states = [state for state, _, _ in leaves]
    answer = network.evaluate_leaves(leaves) if hasattr(network, "evaluate_leaves") else network.evaluate_states(states)
    policies, said = answer
    values = per_player(states, said)
    if policies is None:
        policies = [None] * len(states)
    if len(policies) != len(states):
        raise ValueError(f"the network gave {len(policies)} policies for {len(states)} states")
    kind = getattr(network, "policy", "logits")
    priors = [priors_of(listed_actions(state), row, kind) for state, row in zip(states, policies, strict=True)]
    return list(zip(priors, values, strict=True))
