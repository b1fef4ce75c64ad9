"""Gumbel search: a policy that improves with as few as two simulations (Danihelka et al. 2022).

At the root, moves are drawn without replacement by Gumbel numbers, and sequential halving spends the simulations on the
best of them (`halving`). Below it, the choice makes visits follow a policy improved by what is known (`completed`), and
that policy at the root is the answer to train with. There is no chance but the Gumbel numbers: no Dirichlet noise, and
ties go to the lowest action.

It plans in either world: in a game, with a network that values positions as AlphaZero's, with proven results; or in a
learned model, as MuZero. What is evaluated there and goes back up is the same, so it borrows those searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pondertree.random import GUMBEL, Random, fold, tree_key
from pondertree.reference import alphazero, answer, search_loop
from pondertree.reference.latent_world import ModelSearch
from pondertree.reference.model import is_model
from pondertree.reference.node import PriorNode
from pondertree.reference.policy import tempered
from pondertree.reference.search_loop import Pending, PriorSearch, Told, at_least, not_negative
from pondertree.reference.sequential_halving import (
    Completion,
    Schedule,
    considered_visits,
    gumbel_number,
    improved_policy,
    interior_scores,
)
from pondertree.reference.trace import Scores
from pondertree.reference.tree import SearchTree

__all__ = ["MCTS", "Tree", "Result", "Schedule", "considered_visits", "improved_policy"]

Result = answer.Result[PriorNode]


@dataclass(slots=True)
class Tree(search_loop.Tree[PriorNode]):
    """A search under way, which goes on from move to move."""

    schedule: Schedule | None = None
    """How the simulations of the last call were to be spent; None at a root that has not been searched."""


class MCTS(PriorSearch[PriorNode]):
    """The search with the parameters of mctx.

    `network` is a network that values the positions of a game (`evaluate_states`), or a learned model
    (`initial_inference`); with a model, `discount` and `num_players` as in MuZero. `gumbel` are Gumbel numbers for all
    actions, instead of drawn ones.
    """

    def __init__(
        self,
        network: Any,
        num_simulations: int = 32,
        max_num_considered_actions: int = 16,
        gumbel_scale: float = 1.0,
        value_scale: float = 0.1,
        maxvisit_init: float = 50,
        rescale_values: bool = True,
        use_mixed_value: bool = True,
        *,
        discount: float = 0.997,
        num_players: int = 1,
        gumbel: Sequence[float] | None = None,
        seed: int = 0,
        solve: bool = True,
        in_flight: int = 1,
    ) -> None:
        at_least(0, num_simulations=num_simulations)
        at_least(1, in_flight=in_flight, max_num_considered_actions=max_num_considered_actions)
        not_negative(gumbel_scale=gumbel_scale, value_scale=value_scale, maxvisit_init=maxvisit_init)
        self.world: PriorSearch[Any]
        if is_model(network):
            self.world, solve = ModelSearch(network, discount, num_players), False
        else:
            self.world = alphazero.MCTS(network)
        self.num_simulations = num_simulations
        self.max_num_considered_actions = max_num_considered_actions
        self.gumbel_scale = gumbel_scale
        self.completion = Completion(value_scale, maxvisit_init, rescale_values, use_mixed_value)
        self.gumbel = gumbel
        self.seed = seed
        self.solve = solve
        self.in_flight = in_flight

    def run(
        self,
        state: Any = None,
        call: int = 0,
        row: int = 0,
        *,
        temperature: float = 0.0,
        trace: bool = False,
        **about: Any,
    ) -> Result:
        """One whole search: the `row`-th tree of the `call`-th call."""
        tree = self.tree(state, call, row, trace=trace, **about)
        self.simulate(tree, self.num_simulations)
        return self.result(tree, temperature)

    def tree(self, state: Any = None, call: int = 0, row: int = 0, *, trace: bool = False, **about: Any) -> Tree:
        """A tree of the root alone: a state; or, with a model, `observation`, `legal_actions` and `to_play`.

        With `root_actions` these are the only actions that are searched there.
        """
        return Tree(self._plant(state, Told(**about)), tree_key(self.seed, call, row), trace=[] if trace else None)

    def advance(self, tree: Tree, action: int, **about: Any) -> None:
        """Plays `action` and keeps what is known below it; with a model, `about` is as in MuZero's `advance`."""
        tree.root, tree.begun, tree.schedule = self._follow(tree.root, action, Told(**about)), tree.simulations, None

    def simulate(self, tree: Tree, num_simulations: int, *, cut: int | None = None) -> None:
        """So many more simulations, which are one schedule; fewer if the root is proven.

        `cut` ends it after so many simulations, as a limit of time does: the schedule is that of them all.
        """
        if num_simulations == 0 or tree.root.proven is not None:
            return
        self._settle_root(tree)
        moves = min(self.max_num_considered_actions, len(tree.root.children))
        numbers = self._gumbel_numbers(tree)
        tree.schedule = Schedule.of(tree.root, tree.simulations, considered_visits(moves, num_simulations), numbers)
        target = tree.simulations + num_simulations
        self._simulate_to(tree, target if cut is None else tree.simulations + cut, target)

    def _gumbel_numbers(self, tree: Tree) -> dict[int, float]:
        """The Gumbel numbers of the root's moves: those given, or fresh ones, drawn from the lowest action on."""
        random = Random(fold(tree.key, tree.simulations), GUMBEL)
        return {
            action: self.gumbel_scale * (gumbel_number(random) if self.gumbel is None else float(self.gumbel[action]))
            for action in sorted(tree.root.children)
        }

    # --- The choice -----------------------------------------------------------------------------------------

    def _descend(self, tree: SearchTree[PriorNode], random: Random, record: list[Scores | None] | None) -> PriorNode:
        """From the root, where the schedule chooses, down to a leaf. Moves proven to lose are passed over."""
        node = tree.root
        while node.children and node.proven is None:
            bonus = self.completion.at(node)
            moves = answer.not_lost(node) or list(node.children)
            if node is tree.root:
                assert isinstance(tree, Tree), "made by this search"
                assert tree.schedule is not None, "begun before the first descent"
                scores = tree.schedule.scores(node, bonus, moves)
                action = tree.schedule.choose(node, scores, tree.simulations + node.in_flight)
            else:
                every = interior_scores(node, bonus)
                scores = {action: every[action] for action in moves}
                action = self._furthest_behind(node, scores)
            if record is not None:
                record.append(list(scores.items()))
            node = node.try_move(action)
        return node

    def _furthest_behind(self, node: PriorNode, scores: dict[int, float]) -> int:
        """The move with the highest score, the lowest among equals. Of those never tried the likeliest is the next."""
        children = node.children
        untried = [action for action in scores if not children[action].is_tried]
        candidates = [action for action in scores if children[action].is_tried]
        if untried:
            candidates.append(max(untried, key=lambda action: (children[action].prior, -action)))
        return max(candidates, key=lambda action: (scores[action], -action))

    # --- The answer -----------------------------------------------------------------------------------------

    def _best_move(self, tree: search_loop.Tree[PriorNode], root: PriorNode, random: Random) -> int:
        """The best score among the most visited; where the root is won or lost, as every search plays it."""
        assert isinstance(tree, Tree), "made by this search"
        if root.proven not in (None, 0):
            return answer.best_move(root, random)
        schedule = tree.schedule or Schedule.none(root)
        return schedule.answer(root, self.completion.at(root), answer.allowed(root))

    def _policy_of(self, root: PriorNode, best: int) -> dict[int, float]:
        """The improved policy, with what is proven: all on a won move, none on lost ones."""
        policy = dict.fromkeys(root.legal_actions(), 0.0)
        return policy | self._policy_at(root, 1.0, best)

    def _policy_at(self, root: PriorNode, temperature: float, best: int) -> dict[int, float]:
        """The improved policy to the power 1/T; at 0, or where the root is won, the best move alone."""
        policy = dict.fromkeys(root.children, 0.0)
        if temperature == 0.0 or root.proven == 1:
            return policy | {best: 1.0}
        moves = answer.allowed(root)
        shares = improved_policy([root.children[action] for action in moves], self.completion.at(root))
        if temperature != 1.0:
            shares = tempered(shares, temperature)
        return policy | dict(zip(moves, shares, strict=True))

    # --- The world, which is that of another search ---------------------------------------------------------

    def _plant(self, state: Any, told: Told) -> PriorNode:
        root: PriorNode = self.world._plant(state, told)
        return root

    def _follow(self, root: PriorNode, action: int, told: Told) -> PriorNode:
        after: PriorNode = self.world._follow(root, action, told)
        return after

    def _evaluate_root(self, tree: search_loop.Tree[PriorNode]) -> None:
        self.world._evaluate_root(tree)

    def _evaluate(
        self, tree: search_loop.Tree[PriorNode], pending: Sequence[Pending[PriorNode]], target: int
    ) -> list[list[float]]:
        return self.world._evaluate(tree, pending, target)

    def _unasked(self, root: PriorNode) -> PriorNode:
        blank: PriorNode = self.world._unasked(root)
        return blank

    def _backpropagate(self, leaf: PriorNode, values: Sequence[float]) -> None:
        self.world._backpropagate(leaf, values)
