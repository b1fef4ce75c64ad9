"""MuZero's search: PUCT selection in the latent space of a learned model.

Names are those of the MuZero specification; a comment marked "Trap" explains each deviation. Additions: value
normalisation (`normalize`), two players, discounts predicted by the model, leaf batches under virtual loss
(`in_flight`), tree reuse (`advance`), top-k expansion in large action spaces and reproducible random numbers.

Nodes, evaluation and backup are in `latent_world`, inference in `model`, the simulation loop in `search_loop`.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from pondertree.models.players import AssumedPlayers, MCTSConfig, MuZeroConfig, players_of, warn_of_unknown_players
from pondertree.random import ANSWER, SELECT, Random, draw, fold, tree_key
from pondertree.reference import answer, search_loop
from pondertree.reference.latent_world import ModelSearch, Node, RootNode
from pondertree.reference.model import initial_inference, mask_policy
from pondertree.reference.priors import highest, tempered
from pondertree.reference.search_loop import RootInput, at_least, not_negative
from pondertree.reference.terms import Record, choice, scored
from pondertree.reference.tree import SearchTree
from pondertree.trace import ChoiceTerms, EdgeTerms, TraceRow
from pondertree.validation import number, positive_number

__all__ = ["MCTS", "MCTSConfig", "MuZeroConfig", "Node", "RootNode", "Tree", "Result", "mask_policy", "select_action"]

MIN_SPAN = 1e-8
"""Lower bound of the range of values in normalisation, against division by 0."""


Tree = search_loop.Tree[Node]
Result = answer.Result[Node]


def select_action(
    network: Any,
    config: MCTSConfig,
    observation: Any,
    legal_actions: Sequence[int],
    temperature: float = 1.0,
    add_noise: bool = True,
    *,
    seed: int | None = None,
) -> int:
    """Selects an action by a search from one unbatched observation.

    Trap: `p ** (1 / T)` underflows to 0 / 0 for small T. Logarithms with the maximum subtracted do not.
    """
    seed = secrets.randbits(63) if seed is None else seed
    mcts = MCTS(network, config, seed=seed)
    actions, probabilities = mcts.run(RootNode(), observation, legal_actions, add_noise=add_noise)
    if temperature == 0:
        return actions[int(np.argmax(probabilities))]
    random = Random(fold(tree_key(seed, 0, 0), mcts.config.num_simulations), ANSWER)
    return actions[draw(tempered(probabilities, temperature), random)]


class MCTS(ModelSearch):
    """MuZero's search with the parameters of the MuZero specification, from a `config` or by name.

    `normalize` scales values to the range of the priors: "node" by the values of a node and its actions, "tree" by the
    bounds of all values in the tree, None not at all. The specification does not normalise and selects by
    `child.value()`; with None, selection uses reward + discount * value, negated if the player changes, which is equal
    with one player, no rewards and a discount of 1.
    """

    def __init__(
        self,
        network: Any,
        config: MCTSConfig | None = None,
        *,
        normalize: str | None = "node",
        seed: int = 0,
        in_flight: int = 1,
        **settings: Any,
    ) -> None:
        given = {each.name: getattr(config, each.name) for each in fields(MCTSConfig) if hasattr(config, each.name)}
        self.config = config = MCTSConfig(**given | settings)
        self._players_are_assumed = False
        if isinstance(config.num_players, AssumedPlayers):
            declared = players_of(network)
            self._players_are_assumed = declared is None
            config.num_players = 1 if declared is None else declared
        super().__init__(network, config.discount, config.num_players)
        at_least(0, num_simulations=config.num_simulations)
        at_least(1, in_flight=in_flight)
        positive_number(config.pb_c_base, "pb_c_base")
        not_negative(pb_c_init=config.pb_c_init)
        if normalize not in ("node", "tree", None):
            raise ValueError(f'normalize must be "node", "tree" or None, not {normalize!r}')
        self.alpha = positive_number(config.root_dirichlet_alpha, "root_dirichlet_alpha")
        fraction = config.root_exploration_fraction
        self.epsilon = number(fraction, "root_exploration_fraction", least=0.0, most=1.0)
        self.alpha_is_total = False
        self.num_simulations = config.num_simulations
        self.normalize = normalize
        self.seed = seed
        self.in_flight = in_flight
        self.calls = 0
        self.default_random = Random(tree_key(seed, 0, 0), SELECT)
        """The default generator of the steps of a simulation."""

    def run(
        self, root: Node, observation: Any, legal_actions: Sequence[int], *, add_noise: bool = True
    ) -> tuple[tuple[int, ...], list[float]]:
        """Runs the search from a root and returns its actions and their visit distribution.

        Each call draws new random numbers.

        Trap: the MuZero specification always adds noise; outside self-play it can be switched off.
        """
        if self._players_are_assumed:
            warn_of_unknown_players()
        root.players = self.num_players
        if root.visit_count == 0:
            self._expand_root(root, initial_inference(self.network, observation), legal_actions)
        tree = Tree(root, tree_key(self.seed, self.calls, 0))
        self.calls += 1
        self.simulate(tree, self.config.num_simulations, add_noise)
        return self._get_distributions(root)

    def _get_distributions(self, root: Node) -> tuple[tuple[int, ...], list[float]]:
        """Returns the actions of the root in the given order and their visit distribution; uniform without visits."""
        policy = answer.policy_of(root, 0)
        return tuple(policy), list(policy.values())

    def tree(
        self,
        state: Any = None,
        call: int = 0,
        row: int = 0,
        *,
        observation: Any = None,
        legal_actions: Sequence[int] | None = None,
        to_play: int | None = None,
        root_actions: Collection[int] | None = None,
        trace: bool = False,
    ) -> Tree:
        """Creates a tree that consists of the root, from a state or from an observation.

        With an observation, `legal_actions` defaults to all actions and `to_play` to the first player. `root_actions`
        restricts the root.
        """
        root = self._make_root(state, RootInput(observation, legal_actions, to_play, root_actions))
        return Tree(root, tree_key(self.seed, call, row), trace=[] if trace else None)

    def advance(
        self,
        tree: Tree,
        action: int,
        *,
        observation: Any = None,
        legal_actions: Sequence[int] | None = None,
        to_play: int | None = None,
    ) -> None:
        """Plays `action`, keeps its subtree and evaluates the new root.

        In a tree created from a state the game gives the new state. Otherwise the new root is the given `observation`,
        or without one the latent successor; `legal_actions` defaults to all actions and `to_play` to alternating
        players.
        """
        tree.root = self._advance_root(tree.root, action, RootInput(observation, legal_actions, to_play))
        tree.first_simulation, tree.low, tree.high = tree.simulations, math.inf, -math.inf

    # --- The steps of a simulation --------------------------------------------------------------------------

    def _descend(self, tree: SearchTree[Node], random: Random, record: Record | None, outcome_random: Random) -> Node:
        """Selection: descends by the highest score to an unexpanded node."""
        node = tree.root
        while node.expanded():
            _, node = self._select_child(node, tree, random, record)
        return node

    def _select_child(
        self,
        node: Node,
        tree: SearchTree[Node] | None = None,
        random: Random | None = None,
        record: Record | None = None,
    ) -> tuple[int, Node]:
        """Returns the action with the highest score and its child; ties are broken at random."""
        scores = self._ucb_scores(tree, node)
        if record is not None:
            record.append((list(scores.items()), self._choice_terms(tree, node)))
        action = highest(scores, random or self.default_random)
        return action, node.try_move(action)

    def _ucb_scores(self, tree: SearchTree[Node] | None, node: Node) -> dict[int, float]:
        """Returns the score of each action; terms common to all actions are computed once."""
        terms = self._exploration(node), self._scale(tree, node)
        return {action: self._ucb_score(node, child, tree, terms) for action, child in node.children.items()}

    def _ucb_score(
        self,
        parent: Node,
        child: Node,
        tree: SearchTree[Node] | None = None,
        terms: tuple[float, tuple[float, float]] | None = None,
    ) -> float:
        """Returns the score of an action: its normalised value plus pb_c times its prior.

        A leaf in flight counts as a visit in both N. The normalised value of an unvisited action is 0.
        """
        exploration, (low, scale) = terms or (self._exploration(parent), self._scale(tree, parent))
        value = (child.returns / child.visit_count - low) * scale if child.visit_count else 0.0
        return value + exploration * child.prior / (1.0 + (child.visit_count + child.in_flight))

    def _choice_terms(self, tree: SearchTree[Node] | None, node: Node) -> ChoiceTerms:
        """Returns what the scores of a choice are made of."""
        weight, (low, scale) = self._exploration(node), self._scale(tree, node)
        edges: list[EdgeTerms] = []
        for action, child in node.children.items():
            q = child.returns / child.visit_count if child.visit_count else None
            normalized_q = 0.0 if q is None else (q - low) * scale
            exploration = weight * child.prior / (1.0 + (child.visit_count + child.in_flight))
            terms: EdgeTerms = {"q": q, "normalized_q": normalized_q, "exploration": exploration}
            edges.append(scored({**child.edge_terms(action), **terms}, normalized_q + exploration, ()))
        shared: ChoiceTerms = {"exploration_weight": weight, "low": low, "scale": scale}
        return choice(node, "log_puct", "score", edges, shared)

    def _exploration(self, node: Node) -> float:
        """Returns pb_c of a node times the square root of its visits."""
        visits = node.visit_count + node.in_flight
        base, init = self.config.pb_c_base, self.config.pb_c_init
        return (math.log((visits + base + 1.0) / base) + init) * math.sqrt(visits)

    def _scale(self, tree: SearchTree[Node] | None, node: Node) -> tuple[float, float]:
        """Returns the offset and the factor of value normalisation.

        Trap: the MuZero specification does not normalise. Rewards of any size would then dominate the priors
        (Schrittwieser et al. 2020, appendix B, equation 5). A range of 0 must not divide.
        """
        if self.normalize == "node":
            values = [child.returns / child.visit_count for child in node.children.values() if child.visit_count]
            values.append(node.mean_value)
            low, high = min(values), max(values)
            return low, 1.0 / max(high - low, MIN_SPAN)
        if self.normalize == "tree" and tree is not None and tree.high > tree.low:
            return tree.low, 1.0 / (tree.high - tree.low)
        return 0.0, 1.0  # also without a tree, whose bounds are then unknown

    def _mask_policy(self, policy: Any, legal_actions: Sequence[int]) -> Any:
        """Calls `mask_policy`."""
        return mask_policy(policy, legal_actions)

    def _add_exploration_noise(self, node: Node, random: Random | None = None) -> None:
        """Mixes Dirichlet noise into the priors of the children of the root."""
        super()._add_exploration_noise(node, random or self.default_random)

    def _finish(self, tree: SearchTree[Node], leaf: Node, values: list[float], row: TraceRow | None) -> None:
        """Completes a simulation and extends the bounds of the tree."""
        super()._finish(tree, leaf, values, row)
        tree.widen_bounds(leaf)
