"""What the searches with priors have in common: the loop, the root with its noise, the answer.

A search says of itself how it walks down, what a leaf is worth and what goes back up; the rest is here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pondertree.reference import answer
from pondertree.reference.gather import Gathering, Pending
from pondertree.reference.node import PriorNode
from pondertree.reference.noise import noised
from pondertree.reference.policy import draw
from pondertree.reference.random import ANSWER, NOISE, Random, fold
from pondertree.reference.tree import SearchTree

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
