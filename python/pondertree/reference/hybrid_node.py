"""The node of the hybrid chess search, in the names of its specification: expansion by move category, then PUCT."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pondertree._core import Chess, MoveWeights
from pondertree.chess.config import CATEGORY_WEIGHTS, MoveCategory
from pondertree.chess.move_ordering import categorize
from pondertree.games.chess_interop import NUM_ACTIONS
from pondertree.games.game_state import end_in_search, listed_actions, refuse_end
from pondertree.random import SELECT, Random
from pondertree.reference.node import PriorNode
from pondertree.reference.priors import float32, highest, normalised
from pondertree.reference.terms import Record, choice, puct, untried
from pondertree.trace import ChoiceTerms, EdgeTerms


def _alias(name: str) -> Any:
    """Returns a property that reads and writes the attribute `name`."""
    return property(operator.attrgetter(name), lambda self, value: setattr(self, name, value))


class NodeAliases(PriorNode):
    """Aliases of `visits`, `policy_prior` and `nn_value` under the names of `PriorNode`."""

    __slots__ = ("nn_value", "policy_prior", "visits")

    visits: int
    policy_prior: float
    nn_value: float | None

    visit_count = _alias("visits")
    prior = _alias("policy_prior")
    clean_prior = _alias("policy_prior")
    """Without noise."""
    is_visited = True
    """A child is created on its first visit."""
    num_actions = NUM_ACTIONS

    @property
    def raw_value(self) -> float:
        """`nn_value`, or 0 if None."""
        return 0.0 if self.nn_value is None else self.nn_value

    @raw_value.setter
    def raw_value(self, value: float) -> None:
        self.nn_value = value


NO_EAGER_CATEGORY: Final = -1

LAST_EAGER: Final[dict[str | None, int]] = {
    "strict": MoveCategory.LosingCapture,
    "tactical": MoveCategory.Check,
    "prior": NO_EAGER_CATEGORY,
    None: NO_EAGER_CATEGORY,
}
"""By priority: the last category whose moves are expanded before PUCT selects among the children."""

_NEXT_NODE_ID = itertools.count()


@dataclass(slots=True, eq=False)
class MctsNode(NodeAliases):
    """A visited position.

    Trap: the hybrid chess specification keeps all values in [0, 1] for White, and its PUCT formula omits the conversion
    that Black needs. Here values are in [-1, 1] **for the player to move at the node**, and the parent negates them.
    """

    state: Chess
    """Includes the game history, for repetitions."""
    parent: MctsNode | None = field(default=None, repr=False)
    children: dict[int, MctsNode] = field(default_factory=dict, repr=False)
    """The explored moves, in the order of their first visits."""
    action: int | None = None
    policy_prior: float = 1.0
    """P of the move leading here."""
    visits: int = 0
    """N: one for the node's own evaluation, plus the visits of its children."""
    total_value: float = 0.0
    """W, the sum of values for the player to move here."""
    nn_value: float | None = None
    """The evaluation of the position; None if unevaluated."""
    priors: dict[int, float] | None = field(default=None, repr=False)
    """P of every legal move; None if unevaluated."""
    categories: dict[int, MoveCategory] = field(default_factory=dict, repr=False)
    """The category of every legal move; empty without categories."""
    unexplored: list[int] | None = field(default=None, repr=False)
    """The unexplored moves in order of exploration; None before they are listed."""
    last_eager: int = NO_EAGER_CATEGORY
    """Unexplored moves up to this category are expanded before PUCT selects among the children."""
    current_priority_category: MoveCategory = MoveCategory.ForcedMate
    id: int = field(default_factory=lambda: next(_NEXT_NODE_ID))

    to_play: int = field(init=False)
    rewards: None = field(default=None, init=False, repr=False)
    end: list[float] | None = field(default=None, init=False)
    in_flight: int = field(default=0, init=False)
    proven: int | None = field(default=None, init=False)
    distance: int = field(default=0, init=False)
    mate: tuple[int, int] | None = field(default=None, init=False)
    """(1 or -1 for the player to move here, plies to mate), from the mate search at a new leaf."""
    propagates: bool = field(default=True, init=False)
    """Whether the parent uses `proven`; False for a mate found with `solve=False`."""

    def __post_init__(self) -> None:
        self.to_play = self.state.to_play

    @classmethod
    def new_root(cls, state: Chess) -> MctsNode:
        """Creates a root. It is searched even if a draw could be claimed."""
        refuse_end(state)
        return cls(state)

    @classmethod
    def new_child(cls, state: Chess, action: int, parent: MctsNode, policy_prior: float) -> MctsNode:
        """Creates the child of a move.

        Trap: the hybrid chess specification evaluates it at once, so that a checkmated position gets a static score.
        Here the end of the game is checked first, including claimable draws, then mate search, and only then the
        evaluation.
        """
        child = cls(state, parent, action=action, policy_prior=policy_prior)
        child.end = end_in_search(state)
        return child

    @property
    def total_for_chooser(self) -> float:
        """W from the perspective of the chooser; in chess players alternate."""
        return self.total_value if self.parent is None else -self.total_value

    @property
    def proven_for_chooser(self) -> int | None:
        """The proven result from the perspective of the chooser; None if the proof does not propagate."""
        return None if self.proven is None or self.parent is None or not self.propagates else -self.proven

    # --- Position ---------------------------------------------------------------------------------------------------

    @property
    def terminal_or_mate_value(self) -> float | None:
        """The exact value for the player to move here, at an end, a mate or a proof; else None."""
        exact = self.exact_values()
        return None if exact is None else exact[self.to_play]

    def is_terminal(self) -> bool:
        """Returns whether the game is over here; below the root this includes claimable draws."""
        return self.end is not None or self.state.is_terminal

    @property
    def category(self) -> MoveCategory | None:
        """The category of the move leading here."""
        return None if self.parent is None or self.action is None else self.parent.categories.get(self.action)

    def set_proven(self, value: int, distance: int, *, propagates: bool = True) -> None:
        """Sets the result for the player to move here, reached in `distance` plies, and drops the subtree.

        Trap: the hybrid chess specification averages it with the values of the subtree, so that it is no longer exact.
        """
        self.proven, self.distance, self.propagates = value, distance, propagates
        self.children, self.unexplored = {}, []
        self.priors, self.nn_value = None, None

    def store_priors_and_categorize_moves(
        self,
        priors: Mapping[int, float],
        priority: str | None = "strict",
        *,
        killers: Sequence[int | None] = (),
        history: Mapping[int, float] | None = None,
        see_threshold: int = 0,
        weights: Sequence[float] = CATEGORY_WEIGHTS,
        move_scores: MoveWeights | None = None,
    ) -> None:
        """Stores the priors of the legal moves and their order of exploration.

        The order is by category, then by descending prior, then as the game lists the moves. With `priority="prior"`
        the priors are then multiplied by category weights and move scores.
        """
        self.last_eager = LAST_EAGER[priority]
        order = list(priors)
        self.priors = dict(priors)
        if priority is not None:
            scores = {action: history[action] for action in order if action in history} if history else None
            self.categories = categorize(self.state, killers, scores, see_threshold)
            order.sort(key=lambda action: (self.categories[action], -priors[action]))
        if priority == "prior":
            factors = dict(move_scores.factors(self.state, see_threshold)) if move_scores else {}
            weighted = {action: weights[self.categories[action]] * factors.get(action, 1.0) for action in order}
            shaped = normalised([priors[action] * weighted[action] for action in order])
            self.priors = {action: float32(share) for action, share in zip(order, shaped, strict=True)}
        self.unexplored = order

    # --- Expansion and selection ------------------------------------------------------------------------------------

    @property
    def unexplored_moves_by_cat(self) -> dict[MoveCategory, list[int]]:
        """The unexplored moves by category; empty before the evaluation."""
        by_category: dict[MoveCategory, list[int]] = {}
        for action in self.unexplored or ():
            if action in self.categories:
                by_category.setdefault(self.categories[action], []).append(action)
        return by_category

    def is_fully_explored(self) -> bool:
        """Returns whether no move of an eager category is unexplored. Trivially true before the evaluation.

        Trap: the hybrid chess specification contradicts itself: its comment requires "the current category and higher",
        its code all categories, so that even losing captures are expanded before any move gets a second visit.
        `last_eager` selects the behaviour.
        """
        return all(category > self.last_eager for category in self.unexplored_moves_by_cat)

    def advance_priority_category(self) -> bool:
        """Moves on to the first eager category with an unexplored move; returns False if there is none."""
        eager = [category for category in self.unexplored_moves_by_cat if category <= self.last_eager]
        if eager:
            self.current_priority_category = min(eager)
        return bool(eager)

    def get_best_unexplored_move(self) -> int | None:
        """Removes and returns the next unexplored move of an eager category; None if PUCT selects among the rest."""
        if self.is_fully_explored():
            return None
        if self.current_priority_category not in self.unexplored_moves_by_cat:
            self.advance_priority_category()
        action = self.unexplored_moves_by_cat[self.current_priority_category][0]
        self._mark_explored(action)
        return action

    def list_actions(self) -> list[int]:
        """Returns the unexplored moves; before the evaluation, in the order of the game."""
        if self.unexplored is None:
            self.unexplored = listed_actions(self.state)
        return self.unexplored

    def _mark_explored(self, action: int) -> None:
        """Removes a move from the unexplored ones by swapping it with the first, as the engine does."""
        unexplored = self.list_actions()
        index = unexplored.index(action)
        unexplored[0], unexplored[index] = unexplored[index], unexplored[0]
        unexplored.pop(0)

    def add_child(self, action: int) -> MctsNode:
        """Creates the child of a move that is no longer among the unexplored ones."""
        prior = 1.0 / len(self.legal_actions()) if self.priors is None else self.priors[action]
        child = MctsNode.new_child(self.state.play(action), action, self, prior)
        self.children[action] = child
        return child

    def try_move(self, action: int) -> MctsNode:
        """Returns the child of a move, created on the first visit."""
        if action in self.children:
            return self.children[action]
        self._mark_explored(action)
        return self.add_child(action)

    def puct_value(self, exploration_constant: float) -> float:
        """Returns PUCT(child) = Q + c * P * sqrt(N_parent) / (1 + N), from the perspective of the parent."""
        assert self.parent is not None, "the root has no score"
        visits = self.visits + self.in_flight
        return self.expected_for_chooser() + self.parent._exploration(exploration_constant, self.policy_prior, visits)

    def _exploration(self, exploration_constant: float, prior: float, visits: int) -> float:
        """Returns the exploration term of a move; a leaf in flight counts as a visit in both N."""
        return exploration_constant * math.sqrt(self.visits + self.in_flight) * prior / (1.0 + visits)

    def select_best_child(
        self,
        exploration_constant: float,
        fpu: float | tuple[str, float] = 0.0,
        random: Random | None = None,
        record: Record | None = None,
    ) -> MctsNode:
        """Returns the child with the highest PUCT among all moves, created if unexplored; the Q of those is `fpu`.

        Proven losses are skipped unless all moves lose. Ties are broken at random.
        """
        unvisited = self.mean_value - fpu[1] if isinstance(fpu, tuple) else fpu
        unexplored = self.list_actions()
        lost = {action for action, child in self.children.items() if child.proven_for_chooser == -1}
        if len(lost) == len(self.children) + len(unexplored):
            lost = set()
        scores = {
            action: child.puct_value(exploration_constant)
            for action, child in self.children.items()
            if action not in lost
        }
        assert self.priors is not None, "an evaluated node has priors"
        for action in unexplored:
            scores[action] = unvisited + self._exploration(exploration_constant, self.priors[action], 0)
        if record is not None:
            edges = [(child.edge_terms(action), child) for action, child in self.children.items()]
            weight = exploration_constant * math.sqrt(self.visits + self.in_flight)
            unvisited_edges = [(self._untried(action), None) for action in unexplored]
            record.append((list(scores.items()), puct(self, "puct", [*edges, *unvisited_edges], weight, unvisited)))
        return self.try_move(highest(scores, random or Random(0, SELECT)))

    def edge_terms(self, action: int) -> EdgeTerms:
        """Returns what a trace records of the edge to this node, whatever the rule."""
        terms = NodeAliases.edge_terms(self, action)
        return terms if self.category is None else {**terms, "category": int(self.category)}

    def _untried(self, action: int) -> EdgeTerms:
        """Returns what a trace records of the edge of an unexplored move."""
        assert self.priors is not None, "an evaluated node has priors"
        prior = self.priors[action]
        terms: EdgeTerms = {**untried(action), "prior": prior, "clean_prior": prior}
        return {**terms, "category": int(self.categories[action])} if self.categories else terms

    def untried_terms(self) -> ChoiceTerms:
        """Returns the terms of a choice by category, among the unexplored moves of eager categories."""
        eager = [action for action in self.unexplored or () if self.categories.get(action, math.inf) <= self.last_eager]
        return choice(self, "puct", "untried", [self._untried(action) for action in eager])

    # --- Backup and tree reuse --------------------------------------------------------------------------------------

    def backpropagate(self, value: float) -> None:
        """Adds a visit to every node up to the root; `value` is for the player to move here.

        Trap: the hybrid chess specification adds the same value everywhere, for White. The sign depends on the players
        to move.
        """
        node: MctsNode | None = self
        while node is not None:
            node.visits += 1
            node.total_value += value if node.to_play == self.to_play else -value
            node = node.parent

    def after(self, action: int) -> MctsNode:
        """Returns the root after `action`, with its subtree. This node must not be used afterwards."""
        legal = self.legal_actions()
        if action not in legal:
            raise ValueError(f"action {action} is not legal; legal are {legal}")
        child = self.children.get(action)
        if child is None or child.priors is None:
            # Unexplored, unevaluated, proven by mate search, or terminal.
            return MctsNode.new_root(self.state.play(action))
        child.parent, child.action, child.policy_prior = None, None, 1.0
        return child
