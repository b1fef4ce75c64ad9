"""The node of a search with priors, and its tree from move to move; in the names of AlphaZero's specification."""

from __future__ import annotations

from dataclasses import dataclass, field

from ponderosa.reference.state import State, end_values, is_zero_sum, refuse_end, rewards_of
from ponderosa.reference.tree import TreeNode


@dataclass(slots=True, eq=False)
class Node(TreeNode):
    """A position, made with its prior when its parent is expanded; its state is found out when it is first visited."""

    prior: float
    """P, as selection uses it: at the root's moves with the noise, if there is any."""
    visit_count: int = 0
    """N. An expanded node has one visit of its own and those of its children."""
    total_value: float = 0.0
    """W, the sum of values for the player to move **at this node**: the parent negates it if the turn has changed."""
    children: dict[int, Node] = field(default_factory=dict, repr=False)
    """Every legal move: those that were tried, in the order they were, then the others. Ties are drawn so."""

    parent: Node | None = field(default=None, repr=False)
    action: int | None = None
    clean_prior: float = field(init=False)
    """P without noise."""
    position: State | None = field(default=None, init=False, repr=False)
    """The state, once the node was visited."""
    to_play: int = field(default=-1, init=False)
    """Who moves here, once the node was visited."""
    raw_value: float = field(default=0.0, init=False)
    """What the network said of it, for the player to move here."""
    chooser_value: float | None = field(default=None, init=False)
    """The sum of values for the player who chose the move that leads here, the reward of that move included: kept where
    `total_value` does not say it, which is everywhere but in two-player zero-sum games."""
    rewards: list[float] | None = field(default=None, init=False)
    end: list[float] | None = field(default=None, init=False)
    in_flight: int = field(default=0, init=False)
    proven: int | None = field(default=None, init=False)
    distance: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.clean_prior = self.prior

    @classmethod
    def of_root(cls, state: State) -> Node:
        """The node of a new root, whose prior means nothing and is 1 by convention."""
        refuse_end(state)
        root = cls(1.0)
        root.arrive(state)
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
    def mean_value(self) -> float:
        """The value of the position for the player to move here: what the network said and what its moves brought."""
        total, visits = self.sum_of_moves()
        return (self.raw_value + total) / (1.0 + visits)

    def arrive(self, state: State) -> None:
        """The first visit: finds out who moves here and whether the game is over."""
        self.position = state
        self.to_play = state.to_play
        self.rewards = rewards_of(state)
        self.chooser_value = None if is_zero_sum(state) else 0.0
        # Trap: an end is worth its result for the player to move there. A checkmated player has lost, whatever colour.
        self.end = end_values(state) if state.is_terminal else None

    def expand(self, priors: dict[int, float]) -> None:
        """Creates a child for each legal move."""
        self.children = {action: Node(prior, parent=self, action=action) for action, prior in priors.items()}

    def try_move(self, action: int) -> Node:
        """The child behind a move. At its first visit it changes places with the first one that was never tried."""
        child = self.children[action]
        if child.position is None:
            order = list(self.children)
            first = sum(other.position is not None for other in self.children.values())
            place = order.index(action)
            order[first], order[place] = order[place], order[first]
            self.children = {each: self.children[each] for each in order}
            child.arrive(self.state.play(action))
        return child

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
