"""The search of MuZero: it plans in a model that was learned, which knows no rules and needs none.

It reads as its specification, in the specification's names, with the traps mended; a comment marked "Trap" stands
wherever this text departs from it, and says why. What is more than the specification: values on a scale of their own
(`normalize`), two players, discounts from the model, several leaves in flight at once (`in_flight`), a tree that is
kept from move to move (`advance`), very many actions, and random numbers that can be replayed.

What it shares with other searches stands in files of its own: `imagine` (the root, evaluation and backup in a model),
`latent` (the nodes), `model` (asking the model), `planning` (the loop, noise at the root, the result).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pondertree.config import AssumedPlayers, MCTSConfig, MuZeroConfig, players_of, warn_of_unknown_players
from pondertree.random import ANSWER, SELECT, Random, draw, fold, tree_key
from pondertree.reference import answer, search_loop
from pondertree.reference.latent_world import ModelSearch, Node, RootNode
from pondertree.reference.model import ask_initial, mask_policy
from pondertree.reference.policy import highest, tempered
from pondertree.reference.search_loop import Told, at_least, check_noise, not_negative
from pondertree.reference.trace import Scores, TraceRow
from pondertree.reference.tree import SearchTree

__all__ = ["MCTS", "MCTSConfig", "MuZeroConfig", "Node", "RootNode", "Tree", "Result", "mask_policy", "select_action"]

LEAST_SPAN = 1e-8
"""Values closer together than this count as so far apart, so that equal ones do not divide by 0."""


@dataclass(slots=True)
class Tree(search_loop.Tree[Node]):
    """A search under way, which goes on from move to move."""

    low: float = math.inf
    """The lowest value of an action met since the root became the root."""
    high: float = -math.inf
    """The highest."""


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
    """Selects an action by a search from one observation.

    Trap: `p ** (1 / T)` underflows to 0 / 0 where T is small. In logarithms, with the greatest subtracted, it does not.
    """
    seed = secrets.randbits(63) if seed is None else seed
    mcts = MCTS(network, config, seed=seed)
    actions, probabilities = mcts.run(RootNode(), observation, legal_actions, add_noise=add_noise)
    if temperature == 0:
        return actions[int(np.argmax(probabilities))]
    random = Random(fold(tree_key(seed, 0, 0), mcts.config.num_simulations), ANSWER)
    return actions[draw(tempered(probabilities, temperature), random)]


class MCTS(ModelSearch):
    """The search with the specification's settings: a `config`, or single ones by name; the rest are its defaults.

    `normalize` says how values are brought to a scale on which priors can be weighed against them: "node", by the node
    and its actions; "tree", by all that was met in the tree; None, not at all. The specification has no such scale, and
    chooses by `child.value()`. Without a scale it is here reward + discount * value, the value negated where the turn
    passes: the same number with one player, no rewards and a discount of 1.
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
            told = players_of(network)
            self._players_are_assumed = told is None
            config.num_players = 1 if told is None else told
        super().__init__(network, config.discount, config.num_players)
        at_least(0, num_simulations=config.num_simulations)
        at_least(1, in_flight=in_flight)
        not_negative(pb_c_base=config.pb_c_base, pb_c_init=config.pb_c_init)
        if config.pb_c_base == 0.0:
            raise ValueError("pb_c_base must be above 0")
        if normalize not in ("node", "tree", None):
            raise ValueError(f'normalize must be "node", "tree" or None, not {normalize!r}')
        self.alpha, self.noise_share = config.root_dirichlet_alpha, config.root_exploration_fraction
        check_noise(self.alpha, self.noise_share, "root_dirichlet_alpha", "root_exploration_fraction")
        self.spread_alpha = False
        self.num_simulations = config.num_simulations
        self.normalize = normalize
        self.seed = seed
        self.in_flight = in_flight
        self.calls = 0
        self.own_random = Random(tree_key(seed, 0, 0), SELECT)
        """For whoever calls the steps of a simulation by hand, and gives no generator."""

    def run(
        self, root: Node, observation: Any, legal_actions: Sequence[int], *, add_noise: bool = True
    ) -> tuple[tuple[int, ...], list[float]]:
        """Runs the search from a root: its actions, and the share of visits of each.

        Calls are numbered, so that searching again draws new numbers.

        Trap: noise is for self-play alone, so it can be left out.
        """
        if self._players_are_assumed:
            warn_of_unknown_players()
        root.players = self.num_players
        if root.visit_count == 0:
            self._expand_root(root, ask_initial(self.network, observation), legal_actions)
        tree = Tree(root, tree_key(self.seed, self.calls, 0))
        self.calls += 1
        self.simulate(tree, self.config.num_simulations, add_noise)
        return self._get_distributions(root)

    def _get_distributions(self, root: Node) -> tuple[tuple[int, ...], list[float]]:
        """The root's actions in the order they were given, and the share of visits of each; even without any."""
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
        """A tree of the root alone: a state, which knows all about itself, or a bare observation.

        Without `legal_actions` an observation may be followed by any action; without `to_play` the first player moves.
        With `root_actions` these are the only actions that are searched at the root.
        """
        root = self._plant(state, Told(observation, legal_actions, to_play, root_actions))
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
        """Plays `action`: what is known below it is kept, and the model is asked anew about the position itself.

        A tree that began with a state knows what comes of it; of other trees the caller says. Without an observation
        the position is the one that the model imagines; without the others all actions are legal and players alternate.
        """
        tree.root = self._follow(tree.root, action, Told(observation, legal_actions, to_play))
        tree.begun, tree.low, tree.high = tree.simulations, math.inf, -math.inf

    # --- The steps of a simulation --------------------------------------------------------------------------

    def _descend(self, tree: SearchTree[Node], random: Random, record: list[Scores | None] | None) -> Node:
        """Selection: from the root, always the child with the highest score, to one that was never expanded."""
        node = tree.root
        while node.expanded():
            _, node = self._select_child(node, tree, random, record)
        return node

    def _select_child(
        self,
        node: Node,
        tree: SearchTree[Node] | None = None,
        random: Random | None = None,
        record: list[Scores | None] | None = None,
    ) -> tuple[int, Node]:
        """The action with the highest score and its child; ties are broken at random."""
        scores = self._ucb_scores(tree, node)
        if record is not None:
            record.append(list(scores.items()))
        action = highest(scores, random or self.own_random)
        return action, node.try_move(action)

    def _ucb_scores(self, tree: SearchTree[Node] | None, node: Node) -> dict[int, float]:
        """The score of each action. What the actions of a node share is computed once."""
        shared = self._exploration(node), self._scale(tree, node)
        return {action: self._ucb_score(node, child, tree, shared) for action, child in node.children.items()}

    def _ucb_score(
        self,
        parent: Node,
        child: Node,
        tree: SearchTree[Node] | None = None,
        shared: tuple[float, tuple[float, float]] | None = None,
    ) -> float:
        """The score of an action: its value, brought to a scale, and pb_c times its prior.

        A leaf in flight counts as a visit in both N. An action never tried has the value 0, on every scale.
        """
        exploration, (low, scale) = shared or (self._exploration(parent), self._scale(tree, parent))
        value = (child.returns / child.visit_count - low) * scale if child.visit_count else 0.0
        return value + exploration * child.prior / (1.0 + (child.visit_count + child.in_flight))

    def _exploration(self, node: Node) -> float:
        """pb_c of a node, times the root of its visits."""
        visits = node.visit_count + node.in_flight
        base, init = self.config.pb_c_base, self.config.pb_c_init
        return (math.log((visits + base + 1.0) / base) + init) * math.sqrt(visits)

    def _scale(self, tree: SearchTree[Node] | None, node: Node) -> tuple[float, float]:
        """What is taken off values, and what the rest is multiplied by.

        Trap: the specification has no scale. Rewards may have any size, and where it is large the priors are drowned
        (Schrittwieser et al. 2020, appendix B, equation 5). Values that are all the same need care.
        """
        if self.normalize == "node":
            values = [child.returns / child.visit_count for child in node.children.values() if child.visit_count]
            values.append(node.mean_value)
            low, high = min(values), max(values)
            return low, 1.0 / max(high - low, LEAST_SPAN)
        if self.normalize == "tree" and isinstance(tree, Tree) and tree.high > tree.low:
            return tree.low, 1.0 / (tree.high - tree.low)
        return 0.0, 1.0  # also where a node is looked at by hand, without the tree that knows its bounds

    def _mask_policy(self, policy: Any, legal_actions: Sequence[int]) -> Any:
        """`mask_policy`."""
        return mask_policy(policy, legal_actions)

    def _add_exploration_noise(self, node: Node, random: Random | None = None) -> None:
        """Mixes Dirichlet noise into the priors of the actions of a node: of the root, that is."""
        super()._add_exploration_noise(node, random or self.own_random)

    def _finish(self, tree: SearchTree[Node], leaf: Node, values: list[float], row: TraceRow | None) -> None:
        """The last step of a simulation; the values of the actions on its path widen the bounds of the tree."""
        super()._finish(tree, leaf, values, row)
        node = leaf
        while isinstance(tree, Tree) and node.parent is not None:
            mean = node.returns / node.visit_count
            tree.low, tree.high = min(tree.low, mean), max(tree.high, mean)
            node = node.parent
