"""The nodes of a search in a learned model, in the names of MuZero's specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pondertree.reference.node import PriorNode


@dataclass(slots=True, eq=False)
class Node(PriorNode):
    """A hidden state, made with its prior when its parent is expanded; the model is asked when it is first visited.

    Nothing is ever proven here, and nothing ends.
    """

    prior: float
    value_sum: float = 0.0
    """Sum of the values for the player to move **at this node**, without the reward of the action that leads here."""
    visit_count: int = 0
    """N. An expanded node has one visit of its own and those of its children."""
    children: dict[int, Node] = field(default_factory=dict, repr=False)
    hidden_state: Any = field(default=None, repr=False)
    reward: float = 0.0
    """Of the action that leads here, for the player who chose it."""

    parent: Node | None = field(default=None, repr=False)
    action: int | None = None
    to_play: int = 0
    players: int = field(default=1, init=False)
    discount: float = field(default=1.0, init=False)
    """What the value of this node is multiplied by on its way up; not negative: the sign follows whose turn it is."""
    clean_prior: float = field(init=False)
    raw_value: float = field(default=0.0, init=False)
    returns: float = field(default=0.0, init=False)
    """W of the action that leads here: the sum of reward + discount * value, for the player who chose it."""
    listed: list[int] = field(default_factory=list, init=False, repr=False)
    action_space: int = field(default=0, init=False, repr=False)
    untold: float = field(default=0.0, init=False, repr=False)
    tried: bool = field(default=False, init=False, repr=False)
    position: Any = field(default=None, init=False, repr=False)
    """The state of a root that began with one."""
    in_flight: int = field(default=0, init=False)
    rewards: list[float] | None = field(default=None, init=False, repr=False)
    end: list[float] | None = field(default=None, init=False, repr=False)
    proven: int | None = field(default=None, init=False, repr=False)
    distance: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.clean_prior = self.prior

    def expanded(self) -> bool:
        """Whether the node has been expanded."""
        return len(self.children) > 0

    def value(self) -> float:
        """The mean value of the node, or 0 if unvisited."""
        return self.value_sum / self.visit_count if self.visit_count else 0.0

    @property
    def total_for_chooser(self) -> float:
        """The sum of values for the player who chose the action that leads here.

        Trap: the specification chooses by `child.value()`, so that the reward of an action never speaks for choosing
        it, and a good position of the opponent looks good. It must be reward + discount * value, with the sign of
        whose turn it is (Schrittwieser et al. 2020, appendix B, equations 3 and 4); here that is what is added up.
        """
        return self.returns

    @property
    def is_tried(self) -> bool:
        """Whether a descent ever came here."""
        return self.tried

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return self.action_space

    @property
    def tail(self) -> float:
        """The priors, added up, of moves that got no child."""
        return self.untold

    def legal_actions(self) -> list[int]:
        """The actions of an expanded node in the order they were given, or in that of their numbers."""
        return list(self.listed)

    def expand(self, priors: dict[int, float], num_actions: int, tail: float = 0.0) -> None:
        """Creates a child for each action that has a prior here."""
        self.adopt({action: Node(prior) for action, prior in priors.items()}, list(priors))
        self.action_space, self.untold = num_actions, tail

    def _reach(self, child: Node) -> None:
        """The first visit of a child: from now on it stands among those tried."""
        child.tried = True

    def adopt(self, children: dict[int, Node], actions: Sequence[int]) -> None:
        """Takes over children made by others, as the specification's caller makes those of the root."""
        self.children, self.listed = children, list(actions)
        for action, child in children.items():
            child.parent, child.action, child.players = self, action, self.players

    def inherit(self, known: Node) -> None:
        """Takes over what is known below the same position in another tree, of the moves that are legal here."""
        kept = {action: child for action, child in known.children.items() if child.tried and action in self.children}
        for action, child in kept.items():
            child.prior = child.clean_prior = self.children[action].prior
        # Those that were tried first, in the order they were; then the others in the order given.
        self.adopt(kept | {action: child for action, child in self.children.items() if action not in kept}, self.listed)
        total, visits = self.sum_of_moves()
        self.visit_count, self.value_sum = 1 + visits, self.raw_value + total


class RootNode(Node):
    """The root. It may be made without anything; whoever searches from it evaluates and expands it first."""

    __slots__ = ()

    def __init__(self, prior: float = 1.0, hidden_state: Any = None, to_play: int = 0, *, position: Any = None) -> None:
        super().__init__(prior, hidden_state=hidden_state, to_play=to_play)
        self.position = position
