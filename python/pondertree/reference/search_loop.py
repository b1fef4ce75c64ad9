"""The simulation loop of all searches: leaf batches under virtual loss, root preparation, noise and the result.

A search defines selection, evaluation and backup; the loop calls them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pondertree.games.chance import waits_for_outcome
from pondertree.games.playout import Leaf
from pondertree.random import ANSWER, NOISE, OUTCOME, SELECT, Random, draw, fold
from pondertree.reference import answer
from pondertree.reference.chance import ChanceRule
from pondertree.reference.node import PriorNode
from pondertree.reference.noise import noised
from pondertree.reference.terms import Record
from pondertree.reference.tree import N, SearchTree, prove_ancestors, prove_end
from pondertree.trace import TraceRow

MAX_ENDS_PER_BATCH = 1024
"""Exact leaves are backed up while a batch is collected; this bounds their number per batch."""


@dataclass(slots=True)
class PendingLeaf(Generic[N]):
    """A leaf in flight: selected, not yet evaluated."""

    leaf: N
    sim_key: int
    row: TraceRow | None

    @property
    def request(self) -> Leaf:
        """The evaluation request, as playouts and networks take it."""
        return self.leaf.state, self.leaf.chooser, self.sim_key


class BatchedSearch(Generic[N]):
    """A search that evaluates up to `in_flight` leaves in one batch; with `solve` it propagates proofs."""

    in_flight: int
    solve: bool
    chance_rule: ChanceRule = ChanceRule()

    def _select(self, root: N, random: Random, record: Record | None = None, outcome_random: Random | None = None) -> N:
        """Selection: descends to a node without a choice to make; appends the compared scores to `record`.

        `random` breaks ties; `outcome_random` samples the outcomes of chance nodes.
        """
        raise NotImplementedError

    def _descend(self, tree: SearchTree[N], random: Random, record: Record | None, outcome_random: Random) -> N:
        """Selection from the root, for searches that need the state of the tree too."""
        return self._select(tree.root, random, record, outcome_random)

    def _open(self, leaf: N, random: Random, record: Record | None, outcome_random: Random) -> N:
        """Expansion after selection, for searches that create a leaf only then; others return `leaf`."""
        return leaf

    def _backpropagate(self, leaf: N, values: Sequence[float]) -> None:
        """Backs up the values of a leaf, one per player, to the root."""
        raise NotImplementedError

    def _collect_leaves(self, tree: SearchTree[N], limit: int) -> list[PendingLeaf[N]]:
        """Descends until `in_flight` leaves are pending; simulations that end at exact nodes are completed at once."""
        root = tree.root
        pending: list[PendingLeaf[N]] = []
        ends = 0
        while (
            len(pending) < self.in_flight
            and tree.simulations + len(pending) < limit
            and ends < MAX_ENDS_PER_BATCH
            and root.proven is None
        ):
            simulation = tree.simulations + len(pending)
            sim_key = fold(tree.key, simulation)
            random, outcome_random = Random(sim_key, SELECT), Random(sim_key, OUTCOME)
            choices: Record = []
            record = choices if tree.trace is not None else None
            leaf = self._descend(tree, random, record, outcome_random)
            if leaf.is_pending:
                # A collision with a pending leaf. The descent has changed nothing, and its simulation number is reused
                # by the next batch.
                break
            leaf = self._open(leaf, random, record, outcome_random)
            if self.solve:
                prove_end(leaf)
            row: TraceRow | None = None
            if tree.trace is not None:
                scores, terms = [scores for scores, _ in choices], [terms for _, terms in choices]
                row = {"simulation": simulation, "path": leaf.path(), "scores": scores, "terms": terms, "values": []}
                tree.trace.append(row)
            exact = leaf.exact_values()
            if exact is None:
                self._mark_in_flight(leaf, +1)
                pending.append(PendingLeaf(leaf, sim_key, row))
            else:
                self._finish(tree, leaf, exact, row)
                prove_ancestors(leaf)
                ends += 1
        return pending

    def _finish(self, tree: SearchTree[N], leaf: N, values: list[float], row: TraceRow | None) -> None:
        """Completes a simulation: backup, trace and count."""
        if row is not None:
            row["values"] = list(values)
        self._backpropagate(leaf, values)
        tree.simulations += 1

    def _mark_in_flight(self, leaf: N, change: int) -> None:
        """Adds `change` (+1 or -1) to the leaves in flight of every node on the path of a leaf."""
        node: N | None = leaf
        while node is not None:
            node.in_flight += change
            node = node.parent


P = TypeVar("P", bound=PriorNode)


@dataclass(slots=True)
class Tree(SearchTree[P]):
    """The state of a search whose tree is reused from move to move."""

    first_simulation: int = 0
    """The number of simulations when the current root became the root."""
    noise_pending: bool = False
    """Whether fresh noise is mixed in before the next descent."""


@dataclass(frozen=True, slots=True)
class RootInput:
    """Inputs of a root besides its state: the observation for a learned model, and a restriction of its actions."""

    observation: Any = None
    legal_actions: Sequence[int] | None = None
    """None for all actions."""
    to_play: int | None = None
    """None for the first player, or after an action for the next one."""
    root_actions: Collection[int] | None = None
    """The actions to search at the root; None for all legal ones."""


NO_INPUT = RootInput()


class PriorSearch(BatchedSearch[P], Generic[P]):
    """A search whose priors and values come from a network or a learned model."""

    num_simulations: int

    def _make_root(self, state: Any, root_input: RootInput) -> P:
        """Creates a root from a state, or from `root_input`."""
        raise NotImplementedError

    def _advance_root(self, root: P, action: int, root_input: RootInput) -> P:
        """Returns the root after `action`, with its subtree."""
        raise NotImplementedError

    def _evaluate_root(self, tree: Tree[P]) -> None:
        """Evaluates and expands a new root. Not counted as a simulation."""
        raise NotImplementedError

    def _evaluate(self, tree: Tree[P], pending: Sequence[PendingLeaf[P]], target: int) -> list[list[float]]:
        """Expands pending leaves and returns their values; `target` is the simulation count at the end of the call."""
        raise NotImplementedError

    def _uniform_root(self, root: P) -> P:
        """Returns an unevaluated copy of `root` with uniform priors."""
        raise NotImplementedError

    def _simulate_to(self, tree: Tree[P], limit: int, target: int | None = None) -> None:
        """Simulates until the tree has `limit` simulations or a proven root; `target` is the planned total."""
        refuse_chance_root(tree)
        while tree.simulations < limit and tree.root.proven is None:
            self._prepare_root(tree)
            pending = self._collect_leaves(tree, limit)
            values = self._evaluate(tree, pending, target or limit) if pending else []
            for pending_leaf, leaf_values in zip(pending, values, strict=True):
                self._mark_in_flight(pending_leaf.leaf, -1)
                self._finish(tree, pending_leaf.leaf, leaf_values, pending_leaf.row)
                self._after_backup(tree, pending_leaf.leaf, leaf_values)

    def _after_backup(self, tree: Tree[P], leaf: P, values: Sequence[float]) -> None:
        """Hook after the backup of an evaluated leaf."""

    def _prepare_root(self, tree: Tree[P]) -> None:
        """Evaluates and expands a new root, and mixes in pending noise.

        Trap: in the specifications the first simulation expands the root, or nothing does. Noise added before it has no
        children to act on, and the visits of the moves do not sum to the number of simulations. Here the root is
        expanded first and not counted.
        """
        if tree.root.visit_count == 0:
            self._evaluate_root(tree)
        if tree.noise_pending:
            self._add_noise(tree)
            tree.noise_pending = False

    def _add_noise(self, tree: Tree[P]) -> None:
        """Mixes noise into the priors of the root; none by default."""

    # --- The result -----------------------------------------------------------------------------------------

    def result(self, tree: Tree[P], temperature: float = 0.0) -> answer.Result[P]:
        """Returns the current result without changing the tree."""
        refuse_chance_root(tree)
        # Without any simulation the move is drawn from uniform priors.
        root = tree.root if tree.root.children else self._uniform_root(tree.root)
        random = Random(fold(tree.key, tree.simulations), ANSWER)
        best = action = self._best_move(tree, root, random)
        if temperature > 0.0 and root.proven in (None, 0):
            policy = self._policy_at(root, temperature, best)
            action = list(policy)[draw(list(policy.values()), random)]
        simulations = tree.simulations - tree.first_simulation
        result = answer.make_result(root, action, best, simulations, tree.trace, self._value_of(root))
        result.policy = self._policy_of(root, best)
        result.root = tree.root
        return result

    def _value_of(self, root: P) -> float:
        """Returns the value of a root for its player to move: the mean of its visits by default."""
        return root.mean_value

    def _best_move(self, tree: Tree[P], root: P, random: Random) -> int:
        """Returns the move at temperature 0."""
        return answer.best_move(root, random)

    def _policy_of(self, root: P, best: int) -> dict[int, float]:
        """Returns the policy target."""
        return answer.policy_of(root, best)

    def _policy_at(self, root: P, temperature: float, best: int) -> dict[int, float]:
        """Returns the move probabilities at a temperature, in child order."""
        return answer.policy_at(root, temperature, best)


class NoisySearch(PriorSearch[P], Generic[P]):
    """A search with optional Dirichlet noise at the root."""

    alpha: float
    alpha_is_total: bool
    """Whether `alpha` is divided by the number of moves."""
    epsilon: float

    def simulate(self, tree: Tree[P], num_simulations: int, add_noise: bool | None = None) -> None:
        """Runs `num_simulations` more, or fewer if the root is proven. After an exception the tree must be discarded.

        `add_noise=True` mixes fresh noise into the clean priors of the root, False removes it, None keeps it.
        """
        if add_noise is not None:
            tree.noise_pending = add_noise
        if add_noise is False:
            for child in tree.root.children.values():
                child.prior = child.clean_prior
        self._simulate_to(tree, tree.simulations + num_simulations)

    def _add_noise(self, tree: Tree[P]) -> None:
        """Mixes Dirichlet noise into the priors of the root."""
        self._add_exploration_noise(tree.root, Random(fold(tree.key, tree.simulations), NOISE))

    def _add_exploration_noise(self, node: P, random: Random) -> None:
        """Mixes Dirichlet noise into the priors of the children of a node.

        Trap: in a reused tree, noise would accumulate from move to move. It is always mixed into the clean prior, which
        is stored beside the noised one.
        """
        children = node.children
        alpha = self.alpha / len(children) if self.alpha_is_total else self.alpha
        clean = {action: child.clean_prior for action, child in children.items()}
        for action, prior in noised(clean, alpha, self.epsilon, random).items():
            children[action].prior = prior


def refuse_chance_root(tree: SearchTree[N]) -> None:
    """Raises ValueError if the root is a chance node, which an advance leads to: the tree waits for its outcome."""
    if tree.root.is_chance:
        raise waits_for_outcome("the root of this tree")


def at_least(least: int, **numbers: int) -> None:
    """Checks that each named number is at least `least`."""
    for name, number in numbers.items():
        if number < least:
            raise ValueError(f"{name} must be at least {least}, not {number}")


def not_negative(**numbers: float) -> None:
    """Checks that each named number is finite and not negative."""
    for name, number in numbers.items():
        if not (math.isfinite(number) and number >= 0.0):
            raise ValueError(f"{name} must be finite and not negative, not {number}")
