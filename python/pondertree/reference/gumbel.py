"""Gumbel search: policy improvement guaranteed from two simulations on (Danihelka et al. 2022).

At the root, the Gumbel-top-k trick samples moves without replacement, and sequential halving allocates the simulations
among them. Below the root, visits follow the improved policy, softmax(logits + sigma(completed Q)), which at the root
is the policy target (`sequential_halving`). The Gumbel variables are the only randomness: there is no Dirichlet noise,
and ties go to the lowest action.

With a network it searches a game as AlphaZero does, with proofs; with a learned model, latent space as MuZero does.
Evaluation and backup are delegated to those searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pondertree.random import GUMBEL, Random, fold, tree_key
from pondertree.reference import alphazero, answer, search_loop
from pondertree.reference.chance import ChanceRule
from pondertree.reference.latent_world import ModelSearch
from pondertree.reference.model import is_model
from pondertree.reference.node import PriorNode
from pondertree.reference.priors import tempered
from pondertree.reference.search_loop import (
    PendingLeaf,
    PriorSearch,
    RootInput,
    at_least,
    not_negative,
    refuse_chance_root,
)
from pondertree.reference.sequential_halving import (
    QTransform,
    Schedule,
    considered_visits,
    gumbel_variate,
    improved_policy,
    interior_scores,
    interior_terms,
)
from pondertree.reference.terms import Record
from pondertree.reference.tree import SearchTree

__all__ = ["MCTS", "Tree", "Result", "Schedule", "considered_visits", "improved_policy"]

Result = answer.Result[PriorNode]


@dataclass(slots=True)
class Tree(search_loop.Tree[PriorNode]):
    """The state of a search whose tree is reused from move to move."""

    schedule: Schedule | None = None
    """Sequential halving of the last call; None at a root without simulations."""


@dataclass(eq=False, repr=False)
class MCTS(PriorSearch[PriorNode]):
    """Gumbel search with the parameters of mctx.

    `network` evaluates positions (`evaluate_states`) or is a learned model (`initial_inference`), with `discount` and
    `num_players` as in MuZero. `gumbel` replaces the sampled Gumbel variables of all actions.
    """

    network: Any
    num_simulations: int = 32
    max_num_considered_actions: int = 16
    gumbel_scale: float = 1.0
    value_scale: float = 0.1
    maxvisit_init: float = 50
    rescale_values: bool = True
    use_mixed_value: bool = True
    _: KW_ONLY
    discount: float | None = None
    """None: 0.997 with a learned model, and 1 with a network."""
    num_players: int = 1
    gumbel: Sequence[float] | None = None
    seed: int = 0
    solve: bool = True
    in_flight: int = 1
    chance: str = "balanced"
    chance_width: int = 36

    def __post_init__(self) -> None:
        at_least(0, num_simulations=self.num_simulations)
        at_least(1, in_flight=self.in_flight, max_num_considered_actions=self.max_num_considered_actions)
        not_negative(gumbel_scale=self.gumbel_scale, value_scale=self.value_scale, maxvisit_init=self.maxvisit_init)
        self.base: PriorSearch[Any]
        if is_model(self.network):
            discount = 0.997 if self.discount is None else self.discount
            self.base, self.solve = ModelSearch(self.network, discount, self.num_players), False
        else:
            self.base = alphazero.MCTS(self.network, discount=1.0 if self.discount is None else self.discount)
        self.chance_rule = ChanceRule(self.chance, self.chance_width)
        self.q_transform = QTransform(self.value_scale, self.maxvisit_init, self.rescale_values, self.use_mixed_value)

    def run(self, state: Any = None, call: int = 0, row: int = 0, *, temperature: float = 0.0, **inputs: Any) -> Result:
        """Searches from a root; (`seed`, `call`, `row`) key the random numbers, `inputs` are those of `tree`."""
        tree = self.tree(state, call, row, **inputs)
        self.simulate(tree, self.num_simulations)
        return self.result(tree, temperature)

    def tree(self, state: Any = None, call: int = 0, row: int = 0, *, trace: bool = False, **inputs: Any) -> Tree:
        """Creates a tree that consists of the root, from a state or, with a model, from the fields of `RootInput`."""
        return Tree(
            self._make_root(state, RootInput(**inputs)), tree_key(self.seed, call, row), trace=[] if trace else None
        )

    def advance(self, tree: Tree, action: int, **inputs: Any) -> None:
        """Plays `action` and keeps its subtree; with a model, `inputs` are as in MuZero's `advance`."""
        tree.root = self._advance_root(tree.root, action, RootInput(**inputs))
        tree.first_simulation, tree.schedule = tree.simulations, None

    def simulate(self, tree: Tree, num_simulations: int, *, cut: int | None = None) -> None:
        """Runs one schedule of `num_simulations`; fewer if the root is proven.

        `cut` ends it after that many simulations, as a time limit would, with the schedule of all of them.
        """
        refuse_chance_root(tree)
        if num_simulations == 0 or tree.root.proven is not None:
            return
        self._prepare_root(tree)
        moves = min(self.max_num_considered_actions, len(tree.root.children))
        variates = self._gumbel_variates(tree)
        tree.schedule = Schedule.start(tree.root, tree.simulations, considered_visits(moves, num_simulations), variates)
        target = tree.simulations + num_simulations
        self._simulate_to(tree, target if cut is None else tree.simulations + cut, target)

    def _gumbel_variates(self, tree: Tree) -> dict[int, float]:
        """Returns the Gumbel variates of the moves of the root: given, or sampled in ascending order of actions."""
        random = Random(fold(tree.key, tree.simulations), GUMBEL)
        return {
            action: self.gumbel_scale * (gumbel_variate(random) if self.gumbel is None else float(self.gumbel[action]))
            for action in sorted(tree.root.children)
        }

    # --- Selection -----------------------------------------------------------------------------------------

    def _descend(
        self, tree: SearchTree[PriorNode], random: Random, record: Record | None, outcome_random: Random
    ) -> PriorNode:
        """Selection: by the schedule at the root, by `interior_scores` below. Proven losses are skipped."""
        node = tree.root
        while node.children and node.proven is None:
            if node.is_chance:
                node = node.try_move(self.chance_rule.choose(node, outcome_random, record))
                continue
            q = self.q_transform.at(node)
            moves = answer.not_lost(node) or list(node.children)
            if node is tree.root:
                assert isinstance(tree, Tree), "created by this search"
                assert tree.schedule is not None, "started before the first descent"
                scores = tree.schedule.scores(node, q, moves)
                terms = tree.schedule.terms(node, q, tree.simulations + node.in_flight)
                action = tree.schedule.choose(node, scores, tree.simulations + node.in_flight)
            else:
                all_scores = interior_scores(node, q)
                scores = {action: all_scores[action] for action in moves}
                terms = interior_terms(node, q)
                action = self._select_interior(node, scores)
            if record is not None:
                record.append((list(scores.items()), terms))
            node = node.try_move(action)
        return node

    def _select_interior(self, node: PriorNode, scores: dict[int, float]) -> int:
        """Returns the highest score, the lowest action of equals; of unvisited moves the highest prior alone."""
        children = node.children
        unvisited = [action for action in scores if not children[action].is_visited]
        candidates = [action for action in scores if children[action].is_visited]
        if unvisited:
            candidates.append(max(unvisited, key=lambda action: (children[action].prior, -action)))
        return max(candidates, key=lambda action: (scores[action], -action))

    # --- The result -----------------------------------------------------------------------------------------

    def _best_move(self, tree: search_loop.Tree[PriorNode], root: PriorNode, random: Random) -> int:
        """Returns the best score among the most visited moves; `answer.best_move` at a won or lost root."""
        assert isinstance(tree, Tree), "created by this search"
        if root.proven not in (None, 0):
            return answer.best_move(root, random)
        schedule = tree.schedule or Schedule.without_simulations(root)
        return schedule.best_move(root, self.q_transform.at(root), answer.candidate_moves(root))

    def _policy_of(self, root: PriorNode, best: int) -> dict[int, float]:
        """Returns the improved policy: one-hot on a proven win, 0 on proven losses unless all moves lose."""
        policy = dict.fromkeys(root.legal_actions(), 0.0)
        return policy | self._policy_at(root, 1.0, best)

    def _policy_at(self, root: PriorNode, temperature: float, best: int) -> dict[int, float]:
        """Returns the improved policy to the power 1/T; one-hot on `best` at T = 0 or at a won root."""
        policy = dict.fromkeys(root.children, 0.0)
        if temperature == 0.0 or root.proven == 1:
            return policy | {best: 1.0}
        moves = answer.candidate_moves(root)
        shares = improved_policy([root.children[action] for action in moves], self.q_transform.at(root))
        if temperature != 1.0:
            shares = tempered(shares, temperature)
        return policy | dict(zip(moves, shares, strict=True))

    # --- Delegated to the base search -----------------------------------------------------------------------

    def _make_root(self, state: Any, root_input: RootInput) -> PriorNode:
        root: PriorNode = self.base._make_root(state, root_input)
        return root

    def _advance_root(self, root: PriorNode, action: int, root_input: RootInput) -> PriorNode:
        after: PriorNode = self.base._advance_root(root, action, root_input)
        return after

    def _evaluate_root(self, tree: search_loop.Tree[PriorNode]) -> None:
        self.base._evaluate_root(tree)

    def _evaluate(
        self, tree: search_loop.Tree[PriorNode], pending: Sequence[PendingLeaf[PriorNode]], target: int
    ) -> list[list[float]]:
        return self.base._evaluate(tree, pending, target)

    def _uniform_root(self, root: PriorNode) -> PriorNode:
        uniform: PriorNode = self.base._uniform_root(root)
        return uniform

    def _backpropagate(self, leaf: PriorNode, values: Sequence[float]) -> None:
        self.base._backpropagate(leaf, values)
