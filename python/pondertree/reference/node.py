"""The nodes of searches with priors: what all have, and those of games, in the names of AlphaZero's specification."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Self

from pondertree.games.game_state import (
    State,
    actions_among,
    end_in_search,
    is_zero_sum,
    listed_actions,
    refuse_end,
    rewards_of,
)
from pondertree.reference.policy import priors_of
from pondertree.reference.tree import TreeNode


class PriorNode(TreeNode):
    """What a node with priors has: its children are made together, each with its prior, and tried one after another.

    `children` has those that were tried first, in the order they were, then the others. Ties are drawn so.
    """

    __slots__ = ("clean_prior", "prior", "raw_value")

    prior: float
    """P, as selection uses it: at the root's moves with the noise, if there is any."""
    clean_prior: float
    """P without noise."""
    raw_value: float
    """What the network said of it, for the player to move here."""

    @property
    def is_tried(self) -> bool:
        """Whether a descent ever came here."""
        raise NotImplementedError

    @property
    def num_actions(self) -> int:
        """The size of the action space: there are at least as many actions as moves."""
        raise NotImplementedError

    @property
    def tail(self) -> float:
        """The priors, added up, of moves that got no child: none do, but in very wide latent spaces."""
        return 0.0

    @property
    def mean_value(self) -> float:
        """The value of the position for the player to move here: what the network said and what its moves brought."""
        total, visits = self.sum_of_moves()
        return (self.raw_value + total) / (1.0 + visits)

    def try_move(self, action: int) -> Self:
        """The child behind a move. At its first visit it changes places with the first one that was never tried."""
        child = self.children[action]
        if not child.is_tried:
            order = list(self.children)
            first = sum(other.is_tried for other in self.children.values())
            place = order.index(action)
            order[first], order[place] = order[place], order[first]
            self.children = {each: self.children[each] for each in order}
            self._reach(child)
        return child

    def _reach(self, child: Self) -> None:
        """The first visit of a child."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Node(PriorNode):
    """A position, made with its prior when its parent is expanded; its state is found out when it is first visited."""

    prior: float
    visit_count: int = 0
    """N. An expanded node has one visit of its own and those of its children."""
    total_value: float = 0.0
    """W, the sum of values for the player to move **at this node**: the parent negates it if the turn has changed."""
    children: dict[int, Node] = field(default_factory=dict, repr=False)
    """Every legal move."""

    parent: Node | None = field(default=None, repr=False)
    action: int | None = None
    clean_prior: float = field(init=False)
    position: State | None = field(default=None, init=False, repr=False)
    """The state, once the node was visited."""
    to_play: int = field(default=-1, init=False)
    """Who moves here, once the node was visited."""
    raw_value: float = field(default=0.0, init=False)
    chooser_value: float | None = field(default=None, init=False)
    """The sum of values for the player who chose the move that leads here, the reward of that move included: kept where
    `total_value` does not say it, which is everywhere but in two-player zero-sum games."""
    rewards: list[float] | None = field(default=None, init=False)
    end: list[float] | None = field(default=None, init=False)
    in_flight: int = field(default=0, init=False)
    proven: int | None = field(default=None, init=False)
    distance: int = field(default=0, init=False)
    root_actions: list[int] | None = field(default=None, init=False, repr=False)
    """Of a root: the only moves that are searched; None if all are."""

    def __post_init__(self) -> None:
        self.clean_prior = self.prior

    @classmethod
    def of_root(cls, state: State, root_actions: Collection[int] | None = None) -> Node:
        """The node of a new root, whose prior means nothing and is 1 by convention; of some of its moves, if given."""
        refuse_end(state)
        root = cls(1.0)
        root.arrive(state)
        if root_actions is not None:
            root.root_actions = actions_among(listed_actions(state), root_actions)
        return root

    @property
    def q_value(self) -> float:
        """Q = W / N for the player to move here, or 0 if unvisited."""
        return self.total_value / self.visit_count if self.visit_count else 0.0

    @property
    def state(self) -> State:
        """The state of a node that was visited."""
        assert self.position is not None, "a move that was never tried has no state yet"
        return self.position

    @property
    def total_for_chooser(self) -> float:
        """W as the parent sees it: the sum of values for the player who chose the move that leads here.

        Trap: the specification adds Q(child) in its formula and negates it in the prose, "the opponent's gain is our
        loss". The prose is right, but only where the opponent moves next: after a double move or a pass the child's
        player is our own. So the sign follows whose turn it is.
        """
        if self.chooser_value is not None:
            return self.chooser_value
        return self.total_value if self.parent is None or self.parent.to_play == self.to_play else -self.total_value

    @property
    def is_tried(self) -> bool:
        """Whether a descent ever came here."""
        return self.position is not None

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return int(getattr(self.state, "num_actions", len(self.children)))

    def arrive(self, state: State) -> None:
        """The first visit: finds out who moves here and whether the game is over."""
        self.position = state
        self.to_play = state.to_play
        self.rewards = rewards_of(state)
        self.chooser_value = None if is_zero_sum(state) else 0.0
        # Trap: an end is worth its result for the player to move there. A checkmated player has lost, whatever colour.
        self.end = None if self.parent is None else end_in_search(state)

    def expand(self, priors: dict[int, float]) -> None:
        """Creates a child for each legal move."""
        self.children = {action: Node(prior, parent=self, action=action) for action, prior in priors.items()}

    def _reach(self, child: Node) -> None:
        """The first visit of a child: its position is found out."""
        assert child.action is not None, "only the root has no action"
        child.arrive(self.state.play(child.action))

    def unasked(self) -> Node:
        """A root of the same position, whose moves are all alike."""
        root = Node.of_root(self.state, self.root_actions)
        root.expand(priors_of(actions_among(listed_actions(self.state), self.root_actions), None))
        return root

    def after(self, action: int) -> Node:
        """The root after `action`, with what is known below it. This node is not to be used any more."""
        legal = list(self.state.legal_actions())
        if action not in legal:
            raise ValueError(f"action {action} is not legal; legal are {legal}")
        child = self.children.get(action)
        if child is None or child.visit_count == 0 or child.end is not None:
            # Nothing is known of it; or the game is over there, which a root refuses.
            return Node.of_root(self.state.play(action))
        child.parent, child.action = None, None
        child.prior = child.clean_prior = 1.0
        return child
