"""Leaves in flight: a search descends several times before it asks what the leaves are worth.

This is the same for every search. What differs is how it descends, and what goes back up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pondertree.games.playout import Leaf
from pondertree.random import ANSWER, NOISE, SELECT, Random, draw, fold
from pondertree.reference import answer
from pondertree.reference.node import PriorNode
from pondertree.reference.noise import noised
from pondertree.reference.trace import Scores, TraceRow
from pondertree.reference.tree import N, SearchTree, note_end, prove_ancestors

MOST_ENDS_PER_BATCH = 1024
"""Ends of game are backed up at once while leaves are gathered; this bounds how long one gathering may take."""


@dataclass(slots=True)
class Pending(Generic[N]):
    """A leaf in flight."""

    leaf: N
    sim_key: int
    row: TraceRow | None

    @property
    def question(self) -> Leaf:
        """What is asked about it, in the form in which playouts and networks want it."""
        return self.leaf.state, self.leaf.chooser, self.sim_key


class Gathering(Generic[N]):
    """A search that gathers up to `in_flight` leaves at once; with `solve` it proves what it can on the way."""

    in_flight: int
    solve: bool

    def _select(self, root: N, random: Random, record: list[Scores | None] | None = None) -> N:
        """Walks down to a node below which nothing is to be chosen, and writes the scores it chose by in `record`."""
        raise NotImplementedError

    def _descend(self, tree: SearchTree[N], random: Random, record: list[Scores | None] | None) -> N:
        """Walks down from the root, for a search that chooses by more than the nodes it meets."""
        return self._select(tree.root, random, record)

    def _open(self, leaf: N, random: Random, record: list[Scores | None] | None) -> N:
        """The new leaf, for a search that makes it only once a descent is over; others have it already."""
        return leaf

    def _backpropagate(self, leaf: N, values: Sequence[float]) -> None:
        """Takes the values of a leaf, one per player, up to the root."""
        raise NotImplementedError

    def _gather(self, tree: SearchTree[N], limit: int) -> list[Pending[N]]:
        """Descends until `in_flight` leaves wait for values; what needs no evaluation is finished on the way."""
        root = tree.root
        pending: list[Pending[N]] = []
        ends = 0
        while (
            len(pending) < self.in_flight
            and tree.simulations + len(pending) < limit
            and ends < MOST_ENDS_PER_BATCH
            and root.proven is None
        ):
            simulation = tree.simulations + len(pending)
            sim_key = fold(tree.key, simulation)
            random = Random(sim_key, SELECT)
            scores: list[Scores | None] = []
            record = scores if tree.trace is not None else None
            leaf = self._descend(tree, random, record)
            if leaf.is_waiting:
                # It has no value yet to choose by. Nothing was changed on the way down, so there is nothing to undo,
                # and the simulation number was not used up: the next batch begins with it.
                break
            leaf = self._open(leaf, random, record)
            if self.solve:
                note_end(leaf)
            row: TraceRow | None = None
            if tree.trace is not None:
                row = {"simulation": simulation, "path": leaf.path(), "scores": scores, "values": []}
                tree.trace.append(row)
            exact = leaf.exact_values()
            if exact is None:
                self._mark_in_flight(leaf, +1)
                pending.append(Pending(leaf, sim_key, row))
            else:
                self._finish(tree, leaf, exact, row)
                prove_ancestors(leaf)
                ends += 1
        return pending

    def _finish(self, tree: SearchTree[N], leaf: N, values: list[float], row: TraceRow | None) -> None:
        """The last step of a simulation."""
        if row is not None:
            row["values"] = list(values)
        self._backpropagate(leaf, values)
        tree.simulations += 1

    def _mark_in_flight(self, leaf: N, change: int) -> None:
        """Counts a leaf in flight on its whole path (+1), or takes it back (-1)."""
        node: N | None = leaf
        while node is not None:
            node.in_flight += change
            node = node.parent


P = TypeVar("P", bound=PriorNode)


@dataclass(slots=True)
class Tree(SearchTree[P]):
    """A search under way, which goes on from move to move."""

    begun: int = 0
    """How many simulations were done when the present root became the root."""
    wants_noise: bool = False
    """Fresh noise is to be mixed in before the next descent."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a caller says of a root: to a learned model, what it sees; to any search, which actions it may try."""

    observation: Any = None
    legal_actions: Sequence[int] | None = None
    """None: all actions are legal."""
    to_play: int | None = None
    """None: the first player moves; after an action, the next one."""
    root_actions: Collection[int] | None = None
    """The only actions that are searched at the root; None: all legal ones."""


NOTHING = Told()


class PriorSearch(Gathering[P], Generic[P]):
    """A search that asks a network or a model what its leaves are worth, and where to look below them."""

    num_simulations: int

    def _plant(self, state: Any, told: Told) -> P:
        """The node of a new root: a state, or what was told of it."""
        raise NotImplementedError

    def _follow(self, root: P, action: int, told: Told) -> P:
        """The root after `action`, with what is known below it."""
        raise NotImplementedError

    def _evaluate_root(self, tree: Tree[P]) -> None:
        """Evaluates and expands a root that is new. That is no simulation."""
        raise NotImplementedError

    def _evaluate(self, tree: Tree[P], pending: Sequence[Pending[P]], target: int) -> list[list[float]]:
        """Expands leaves in flight, and answers their values. The tree is to have `target` simulations."""
        raise NotImplementedError

    def _unasked(self, root: P) -> P:
        """A root like `root`, which was never evaluated, with a child for each of its moves, all alike."""
        raise NotImplementedError

    def _simulate_to(self, tree: Tree[P], limit: int, target: int | None = None) -> None:
        """Simulates until the tree has had `limit` simulations, of `target` it is to have, or its root is proven."""
        while tree.simulations < limit and tree.root.proven is None:
            self._settle_root(tree)
            pending = self._gather(tree, limit)
            values = self._evaluate(tree, pending, target or limit) if pending else []
            for waiting, answers in zip(pending, values, strict=True):
                self._mark_in_flight(waiting.leaf, -1)
                self._finish(tree, waiting.leaf, answers, waiting.row)
                self._conclude(tree, waiting.leaf, answers)

    def _conclude(self, tree: Tree[P], leaf: P, values: Sequence[float]) -> None:
        """What follows from a simulation whose leaf was evaluated, in a search that draws conclusions."""

    def _settle_root(self, tree: Tree[P]) -> None:
        """Evaluates and expands the root if it is new, and mixes in the noise that was asked for.

        Trap: in the specifications the first simulation expands the root, or nobody does. Noise added before has no
        children to be added to, and simulations and visits of moves are not the same number. The root is expanded
        first, outside of the count.
        """
        if tree.root.visit_count == 0:
            self._evaluate_root(tree)
        if tree.wants_noise:
            self._add_noise(tree)
            tree.wants_noise = False

    def _add_noise(self, tree: Tree[P]) -> None:
        """Mixes noise into the priors of the root's moves, in a search that has such noise."""

    # --- The answer -----------------------------------------------------------------------------------------

    def result(self, tree: Tree[P], temperature: float = 0.0) -> answer.Result[P]:
        """What the tree says so far; asking does not change it."""
        # Without any simulation all moves are alike. The answer is drawn from a root made for that.
        root = tree.root if tree.root.children else self._unasked(tree.root)
        random = Random(fold(tree.key, tree.simulations), ANSWER)
        best = action = self._best_move(tree, root, random)
        if temperature > 0.0 and root.proven in (None, 0):
            policy = self._policy_at(root, temperature, best)
            action = list(policy)[draw(list(policy.values()), random)]
        result = answer.describe(root, action, best, tree.simulations - tree.begun, tree.trace)
        result.policy = self._policy_of(root, best)
        result.root = tree.root
        return result

    def _best_move(self, tree: Tree[P], root: P, random: Random) -> int:
        """The move to play if it is not drawn."""
        return answer.best_move(root, random)

    def _policy_of(self, root: P, best: int) -> dict[int, float]:
        """What a network is trained on."""
        return answer.policy_of(root, best)

    def _policy_at(self, root: P, temperature: float, best: int) -> dict[int, float]:
        """The chances of the root's moves at a temperature, in the order of its children."""
        return answer.policy_at(root, temperature, best)


class NoisySearch(PriorSearch[P], Generic[P]):
    """A search with Dirichlet noise at its root, on request."""

    alpha: float
    spread_alpha: bool
    """Whether `alpha` is spread over the moves, or is that of each."""
    noise_share: float

    def simulate(self, tree: Tree[P], num_simulations: int, add_noise: bool | None = None) -> None:
        """So many more simulations; fewer if the root is proven. If a game or a network raises, drop the tree.

        `add_noise` True mixes fresh noise into the root's clean priors, False takes it out, None leaves it as it is.
        """
        if add_noise is not None:
            tree.wants_noise = add_noise
        if add_noise is False:
            for child in tree.root.children.values():
                child.prior = child.clean_prior
        self._simulate_to(tree, tree.simulations + num_simulations)

    def _add_noise(self, tree: Tree[P]) -> None:
        """Mixes Dirichlet noise into the priors of the root's moves."""
        self._add_exploration_noise(tree.root, Random(fold(tree.key, tree.simulations), NOISE))

    def _add_exploration_noise(self, node: P, random: Random) -> None:
        """Mixes Dirichlet noise into the priors of a node's moves.

        Trap: a kept tree would be noised again with every move. So the clean prior stays beside the noised one, and
        noise is always mixed into that.
        """
        children = node.children
        alpha = self.alpha / len(children) if self.spread_alpha else self.alpha
        clean = {action: child.clean_prior for action, child in children.items()}
        for action, prior in noised(clean, alpha, self.noise_share, random).items():
            children[action].prior = prior


def at_least(least: int, **numbers: int) -> None:
    """Each of the numbers, given by name, must be `least` or more."""
    for name, number in numbers.items():
        if number < least:
            raise ValueError(f"{name} must be at least {least}, not {number}")


def not_negative(**numbers: float) -> None:
    """Each of the numbers, given by name, must be finite and not below 0."""
    for name, number in numbers.items():
        if not (math.isfinite(number) and number >= 0.0):
            raise ValueError(f"{name} must be finite and not negative, not {number}")


def tagged(value: float | tuple[str, float], name: str, tag: str) -> tuple[bool, float]:
    """A number, or a pair of `tag` and a number: whether it is tagged, and the number."""
    is_tagged = isinstance(value, tuple)
    if isinstance(value, tuple):
        if len(value) != 2 or value[0] != tag:
            raise ValueError(f'{name} must be a number or ("{tag}", number), not {value!r}')
        value = value[1]
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    return is_tagged, float(value)


def check_noise(alpha: float, share: float, alpha_name: str, share_name: str) -> None:
    """Noise at the root must have a concentration, and a share of the priors."""
    if alpha <= 0.0:
        raise ValueError(f"{alpha_name} must be above 0, not {alpha}")
    between(0.0, 1.0, **{share_name: share})


def between(least: float, most: float, **numbers: float) -> None:
    """Each of the numbers, given by name, must be from `least` to `most`."""
    for name, number in numbers.items():
        if not least <= number <= most:
            raise ValueError(f"{name} must be from {least:g} to {most:g}, not {number}")
