"""Networks and traced searches that the tests of the specifications share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import AlphaZero
from pondertree.chess import PestoPolicy
from pondertree.games import Chess, ConnectFour
from pondertree.reference import alphazero, hybrid


@dataclass
class Network:
    """An evaluator with one policy for all positions and a value by position; records the states."""

    priors: Sequence[float]
    """Probabilities of all actions, legal or not."""
    value: Callable[[Any], float] = lambda state: 0.0
    """The value for the player to move."""
    evaluated: list[Any] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    policy = "probabilities"

    def evaluate_states(self, states: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self.evaluated.extend(states)
        self.batches.append(len(states))
        return np.tile(np.asarray(self.priors, dtype=float), (len(states), 1)), np.array([*map(self.value, states)])


def signature_value(state: Any) -> float:
    """A value in [-0.9, 0.9] that differs between positions."""
    numbers = np.random.default_rng(np.asarray(state.observation()).ravel().astype(np.uint32))
    return float(numbers.integers(-900, 901)) / 1000


class ChessNetwork:
    """A small chess evaluator on observations: fixed random logits, the value by material."""

    def __init__(self) -> None:
        self.logits = np.random.default_rng(0).normal(size=4672).astype(np.float32)
        self.batches: list[int] = []

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.batches.append(len(observations))
        worth = np.array([1, 3, 3, 5, 9], dtype=np.float32)
        pieces = observations[:, :12].sum(axis=(2, 3))
        material = pieces[:, :5] @ worth - pieces[:, 6:11] @ worth
        return np.tile(self.logits, (len(observations), 1)), np.tanh(material / 10)


@dataclass
class Traced:
    """A finished search: one trace row per simulation, and the root with its statistics."""

    trace: list[Any]
    root: Any

    def paths(self) -> list[tuple[int, ...]]:
        """The actions of each simulation."""
        return [tuple(row["path"]) for row in self.trace]

    def node(self, path: Sequence[int]) -> Any:
        """The node behind a path of actions."""
        node = self.root
        for action in path:
            node = node.children[action]
        return node


def traced_alphazero(kind: str, network: Any, state: Any, simulations: int, **options: Any) -> Traced:
    """A search of AlphaZero without proofs, by the engine or the reference."""
    options = {"seed": 1, "solve": False, **options}
    if kind == "engine":
        tree = AlphaZero(network, trace=True, **options).tree(state)
        tree.simulate(simulations)
        return Traced(tree.trace(), tree.result().root)
    search = alphazero.MCTS(network, **options)
    grown = search.tree(state, trace=True)
    search.simulate(grown, simulations)
    return Traced(list(grown.trace or []), grown.root)


def scores_at_root(traced: Traced, simulation: int) -> dict[int, float]:
    """The scores from which a simulation chose its first action."""
    return dict(traced.trace[simulation]["scores"][0])


CONNECT_FOUR_PRIORS = (0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04)

CONNECT_FOUR_PRESET: dict[str, Any] = {"c_puct": 1.5, "parent_visits": "edges"}
"""The parameters of the PUCT mathematics, as keywords of `AlphaZero` and of the reference."""


def traced_connect_four(kind: str, simulations: int, value: Any = signature_value, **options: Any) -> Traced:
    """A search of Connect 4 with the parameters of the PUCT mathematics."""
    network = Network(CONNECT_FOUR_PRIORS, value)
    return traced_alphazero(kind, network, ConnectFour(), simulations, **{**CONNECT_FOUR_PRESET, **options})


def walk(root: Any) -> list[Any]:
    """All nodes below a root, itself first."""
    nodes = [root]
    for node in nodes:
        nodes.extend(node.children.values())
    return nodes


class RecordedPolicy:
    """A `PestoPolicy` that records the evaluated positions."""

    def __init__(self) -> None:
        self.evaluated: list[str] = []

    def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
        self.evaluated.append(state.fen())
        return PestoPolicy().evaluate(state)


def hybrid_tree(fen: str, simulations: int, **options: Any) -> Any:
    """A tree of the hybrid reference; `root_depth=0` leaves even a mate at the root to the simulations."""
    search = hybrid.MCTS(**{"mate_search_depth": 0, "endings": False, "root_depth": 0, **options})
    tree = search.tree(Chess(fen), trace=True)
    search.simulate(tree, simulations)
    return tree


@dataclass
class DocumentModel:
    """A learned model in the form of the MuZero document, with four actions; hidden states are numbers.

    Everything follows from the hidden state. `reward` and `value` are the largest in size.
    """

    reward: float = 0.0
    value: float = 1.0
    num_players: int = 1
    recurrent: list[tuple[float, int]] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)

    @staticmethod
    def step(hidden: float, action: int) -> float:
        """The hidden state after an action."""
        return float((31 * int(hidden) + int(action) + 7) % 10_007)

    def reward_of(self, hidden: float, action: int) -> float:
        """The reward of an action."""
        return self.reward * ((self.step(hidden, action) % 11) / 5 - 1)

    def value_of(self, hidden: float) -> float:
        """The value of a hidden state."""
        return self.value * ((int(hidden) % 17) / 8 - 1)

    def policy_of(self, hidden: float) -> NDArray[np.float64]:
        """The logits of a hidden state."""
        return np.array([((int(hidden) + 3 * action) % 7) / 7 for action in range(4)])

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        """The observation is the hidden state."""
        hidden = float(np.asarray(observation).reshape(-1)[0])
        return hidden, self.policy_of(hidden), self.value_of(hidden)

    def recurrent_inference(self, hidden_state: Any, action: Any) -> tuple[Any, Any]:
        """(next hidden state, reward)."""
        self.recurrent.append((float(hidden_state), int(action)))
        return self.step(hidden_state, action), self.reward_of(hidden_state, action)

    def prediction(self, hidden_state: Any) -> tuple[Any, Any]:
        """(policy, value)."""
        self.predicted.append(float(hidden_state))
        return self.policy_of(hidden_state), self.value_of(hidden_state)
