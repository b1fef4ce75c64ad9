"""Nodes with priors: their base class, and the AlphaZero node in the names of its specification."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Self

from pondertree.games.chance import is_chance, read_outcomes
from pondertree.games.game_state import (
    State,
    actions_among,
    end_in_search,
    is_zero_sum,
    listed_actions,
    refuse_end,
    rewards_of,
)
from pondertree.reference.priors import float32, priors_of
from pondertree.reference.tree import TreeNode
from pondertree.trace import EdgeTerms

UNKNOWN_PLAYER = -2
"""The player to move at a node without a state."""


class PriorNode(TreeNode):
    """A node whose children are created at once, each with its prior, and visited one after another.

    `children` lists visited children first, in order of their first visits, then the unvisited ones. Ties between
    scores are broken by an index into this order.
    """

    __slots__ = ("clean_prior", "prior", "raw_value")

    prior: float
    """P as selection uses it, with noise at the children of the root."""
    clean_prior: float
    """P without noise."""
    raw_value: float
    """The network's value for the player to move here."""

    @property
    def is_visited(self) -> bool:
        """Whether a descent has reached the node."""
        raise NotImplementedError

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        raise NotImplementedError

    @property
    def tail_prior(self) -> float:
        """The total prior of the actions without a child: 0 except in large action spaces of learned models."""
        return 0.0

    @property
    def mean_value(self) -> float:
        """The mean of the network's value and the values of the moves, for the player to move here."""
        total, visits = self.sum_of_moves()
        return (self.raw_value + total) / (1.0 + visits)

    def edge_terms(self, action: int) -> EdgeTerms:
        """Returns what a trace records of the edge to this node, whatever the rule."""
        return {**super().edge_terms(action), "prior": self.prior, "clean_prior": self.clean_prior}

    def outcomes(self) -> list[tuple[int, float, Self | None]]:
        """Returns (outcome, probability, child) of a chance node, in child order."""
        return [(outcome, child.prior, child) for outcome, child in self.children.items()]

    def try_move(self, action: int) -> Self:
        """Returns the child of a move. On its first visit it is swapped with the first unvisited child."""
        child = self.children[action]
        if not child.is_visited:
            order = list(self.children)
            first = sum(other.is_visited for other in self.children.values())
            index = order.index(action)
            order[first], order[index] = order[index], order[first]
            self.children = {each: self.children[each] for each in order}
            self._visit_first(child)
        return child

    def _visit_first(self, child: Self) -> None:
        """Initialises a child on its first visit."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Node(PriorNode):
    """A position, created with its prior when the parent is expanded; its state is computed on the first visit."""

    prior: float
    visit_count: int = 0
    """N: one for the node's own evaluation, plus the visits of its children."""
    total_value: float = 0.0
    """W, the sum of values for the player to move **at this node**; the parent negates it if the turn changes."""
    children: dict[int, Node] = field(default_factory=dict, repr=False)
    """One child per legal move."""

    parent: Node | None = field(default=None, repr=False)
    action: int | None = None
    clean_prior: float = field(init=False)
    position: State | None = field(default=None, init=False, repr=False)
    """The state; None before the first visit."""
    to_play: int = field(default=UNKNOWN_PLAYER, init=False)
    """The player to move, or `CHANCE`; `UNKNOWN_PLAYER` before the first visit."""
    raw_value: float = field(default=0.0, init=False)
    chooser_value: float | None = field(default=None, init=False)
    """The sum of values for the chooser, including the rewards of the move leading here. None in two-player zero-sum
    games, where it follows from `total_value`."""
    rewards: list[float] | None = field(default=None, init=False)
    end: list[float] | None = field(default=None, init=False)
    in_flight: int = field(default=0, init=False)
    proven: int | None = field(default=None, init=False)
    distance: int = field(default=0, init=False)
    root_actions: list[int] | None = field(default=None, init=False, repr=False)
    """At a root: the moves to search; None for all."""

    def __post_init__(self) -> None:
        self.clean_prior = self.prior

    @classmethod
    def of_root(cls, state: State, root_actions: Collection[int] | None = None) -> Node:
        """Creates a root, with prior 1 by convention; `root_actions` restricts its moves."""
        refuse_end(state)
        root = cls(1.0)
        root.set_state(state)
        if root_actions is not None:
            root.root_actions = actions_among(listed_actions(state), root_actions)
        return root

    @property
    def q_value(self) -> float:
        """Q = W / N for the player to move here; 0 if unvisited."""
        return self.total_value / self.visit_count if self.visit_count else 0.0

    @property
    def state(self) -> State:
        """The state of a visited node."""
        assert self.position is not None, "an unvisited node has no state"
        return self.position

    @property
    def total_for_chooser(self) -> float:
        """W from the perspective of the chooser.

        Trap: the AlphaZero chess specification adds Q(child) in its formula but negates it in the prose, "the
        opponent's gain is our loss". The prose is right only if the opponent moves next: after a double move or a pass
        the same player does. The sign therefore depends on the players to move.
        """
        if self.chooser_value is not None:
            return self.chooser_value
        return self.total_value if self.parent is None or self.parent.owner == self.owner else -self.total_value

    @property
    def is_visited(self) -> bool:
        """Whether a descent has reached the node."""
        return self.position is not None

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return int(getattr(self.state, "num_actions", len(self.children)))

    def set_state(self, state: State) -> None:
        """Sets the state on the first visit: the player to move, rewards, and the result at an end."""
        self.position = state
        self.to_play = state.to_play
        self.rewards = rewards_of(state)
        self.chooser_value = None if is_zero_sum(state) else 0.0
        # Trap: the value of an end is from the perspective of the player to move: a checkmated player has lost.
        self.end = None if self.parent is None else end_in_search(state)
        if self.end is None and is_chance(state):
            # All outcomes are known at once, and there is nothing to evaluate.
            self.expand({outcome: float32(p) for outcome, p in zip(*read_outcomes(state), strict=True)})

    def expand(self, priors: dict[int, float]) -> None:
        """Creates a child for each legal move."""
        self.children = {action: Node(prior, parent=self, action=action) for action, prior in priors.items()}

    def _visit_first(self, child: Node) -> None:
        """Computes the position of a child on its first visit."""
        assert child.action is not None, "only the root has no action"
        child.set_state(self.state.play(child.action))

    def with_uniform_priors(self) -> Node:
        """Returns an unevaluated root of the same position with uniform priors."""
        root = Node.of_root(self.state, self.root_actions)
        root.expand(priors_of(actions_among(listed_actions(self.state), self.root_actions), None))
        return root

    def after(self, action: int) -> Node:
        """Returns the root after `action`, with the subtree below it. This node must not be used afterwards."""
        legal = list(self.state.legal_actions())
        if action not in legal:
            raise ValueError(f"action {action} is not legal; legal are {legal}")
        child = self.children.get(action)
        if child is None or child.visit_count == 0 or child.end is not None:
            # Unvisited; or terminal, which a root refuses.
            return Node.of_root(self.state.play(action))
        child.parent, child.action = None, None
        child.prior = child.clean_prior = 1.0
        return child
