"""What a network says of positions: the priors of their legal moves, and their values.

A network has `evaluate_states(states) -> (policies, values)`, or `evaluate_leaves(leaves)` if it wants to know more;
or it sees positions through their observations, as `evaluate(observations)` or as a function of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pondertree.games.game_state import State, listed_actions
from pondertree.games.playout import Leaf, Playouts, per_player, simulate_leaves
from pondertree.reference.policy import priors_of


class Uniform:
    """A network that knows nothing: every move is as good as any other, every position worth 0."""

    def evaluate_states(self, states: Sequence[State]) -> tuple[None, list[list[float]]]:
        """(even priors, zeros)."""
        return None, [[0.0] * state.num_players for state in states]


class Rollout:
    """A network that plays at random: every move is as good as any other, a position is worth what a playout says."""

    def __init__(self) -> None:
        self.playouts = Playouts()

    def evaluate_leaves(self, leaves: Sequence[Leaf]) -> tuple[None, list[list[float]]]:
        """(even priors, results); the keys of the simulations make the playouts repeatable."""
        return None, simulate_leaves(leaves, playouts=self.playouts)


class MovePriors:
    """A network in the form of the hybrid specification: `evaluate(state) -> ({move: prior}, value)`, as others are.

    Trap: its values are from 0 to 1, which is the specification's range everywhere. Here that ends at this door.
    """

    policy = "probabilities"

    def __init__(self, policy_network: Any) -> None:
        self.policy_network = policy_network

    def evaluate_states(self, states: Sequence[Any]) -> tuple[list[list[float]], list[float]]:
        """(priors over all actions, values from -1 to 1 for the player to move); a move without a prior has 0."""
        answers = [self._evaluate(state) for state in states]
        return [priors for priors, _ in answers], [value for _, value in answers]

    def _evaluate(self, state: Any) -> tuple[list[float], float]:
        said, value = self.policy_network.evaluate(state)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"the policy network gave the value {value}: it must be from 0 to 1")
        legal = set(state.legal_actions())
        priors = [0.0] * int(state.num_actions)
        for move, prior in said.items():
            action = _action_of(state, move)
            if action not in legal:
                raise ValueError(f"the policy network gave a prior to {move!r}, which is not legal")
            priors[action] = float(prior)
        return priors, 2.0 * float(value) - 1.0


def _action_of(state: Any, move: Any) -> Any:
    """The action of a move: a number, text, or a `chess.Move`."""
    text = move.uci() if hasattr(move, "uci") else move
    try:
        return state.parse_action(text) if isinstance(text, str) else move
    except ValueError:
        return None


def _ask(network: Any, leaves: Sequence[Leaf]) -> Any:
    """What the network says, in the first form that it has."""
    states: list[Any] = [state for state, _, _ in leaves]
    if hasattr(network, "evaluate_leaves"):
        return network.evaluate_leaves(leaves)
    if hasattr(network, "evaluate_states"):
        return network.evaluate_states(states)
    observations = np.stack([np.array(state.observation()) for state in states])
    return network.evaluate(observations) if hasattr(network, "evaluate") else network(observations)


def consult(
    network: Any, leaves: Sequence[Leaf], legal: Sequence[Sequence[int]] | None = None
) -> list[tuple[dict[int, float], list[float]]]:
    """The priors of the legal moves of each leaf, or of those in `legal` alone, and its values, one per player.

    A policy is a number for every action, or None if all moves are alike. The numbers are logits, unless an attribute
    `policy` of the network says "probabilities".
    """
    states = [state for state, _, _ in leaves]
    policies, said = _ask(network, leaves)
    values = per_player(states, said)
    if policies is None:
        policies = [None] * len(states)
    if len(policies) != len(states):
        raise ValueError(f"the network gave {len(policies)} policies for {len(states)} states")
    kind = getattr(network, "policy", "logits")
    moves = [listed_actions(state) for state in states] if legal is None else legal
    priors = [priors_of(own, row, kind) for own, row in zip(moves, policies, strict=True)]
    return list(zip(priors, values, strict=True))
