"""The nodes of the hybrid chess search, in the names of its specification: moves are opened category by category."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pondertree._core import Chess, MoveWeights
from pondertree.chess.config import CATEGORY_WEIGHTS
from pondertree.chess.move_ordering import MoveCategory, categorize
from pondertree.games.chess_interop import NUM_ACTIONS
from pondertree.games.game_state import end_in_search, listed_actions, refuse_end
from pondertree.random import SELECT, Random
from pondertree.reference.node import PriorNode
from pondertree.reference.policy import float32, highest, normalised
from pondertree.reference.trace import Scores


class SpecifiedNames(PriorNode):
    """A node with `visits`, `policy_prior` and `nn_value`, which the parts of all searches find by their own names."""

    __slots__ = ("nn_value", "policy_prior", "visits")

    visits: int
    policy_prior: float
    nn_value: float | None

    @property
    def visit_count(self) -> int:
        """`visits`."""
        return self.visits

    @visit_count.setter
    def visit_count(self, visits: int) -> None:
        self.visits = visits

    @property
    def prior(self) -> float:
        """`policy_prior`."""
        return self.policy_prior

    @prior.setter
    def prior(self, prior: float) -> None:
        self.policy_prior = prior

    @property
    def clean_prior(self) -> float:
        """`policy_prior`: this search has no noise."""
        return self.policy_prior

    @clean_prior.setter
    def clean_prior(self, prior: float) -> None:
        self.policy_prior = prior

    @property
    def raw_value(self) -> float:
        """`nn_value`, or 0 without one."""
        return 0.0 if self.nn_value is None else self.nn_value

    @raw_value.setter
    def raw_value(self, value: float) -> None:
        self.nn_value = value

    @property
    def is_tried(self) -> bool:
        """A move gets its node when it is tried."""
        return True

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return NUM_ACTIONS


NOTHING_EAGER: Final = -1

LAST_EAGER: Final[dict[str | None, int]] = {
    "strict": MoveCategory.LosingCapture,
    "tactical": MoveCategory.Check,
    "prior": NOTHING_EAGER,
    None: NOTHING_EAGER,
}
"""By priority: the last category whose moves are opened before any score is looked at."""

_NEXT_NODE_ID = itertools.count()


@dataclass(slots=True, eq=False)
class MctsNode(SpecifiedNames):
    """A position that was visited, with the statistics of the move that leads to it.

    Trap: the specification keeps every value from 0 to 1 for White, so that a Black chooser has to turn them around,
    and its formula does not. Here a value is from -1 to 1 **for the player to move at the node** that has it, and the
    parent negates it.
    """

    state: Chess
    """With its history: a bare board would hide repetitions."""
    parent: MctsNode | None = field(default=None, repr=False)
    children: dict[int, MctsNode] = field(default_factory=dict, repr=False)
    """The explored moves, in the order of their first visits."""
    action: int | None = None
    policy_prior: float = 1.0
    """P of the move that leads here, as selection uses it."""
    visits: int = 0
    """N. An evaluated node has one visit of its own and those of its children."""
    total_value: float = 0.0
    """W, the sum of values for the player to move here."""
    nn_value: float | None = None
    """What the evaluation said of the position; None before it was asked, and where it never is."""
    priors: dict[int, float] | None = field(default=None, repr=False)
    """P of every legal move, once the position was evaluated."""
    categories: dict[int, MoveCategory] = field(default_factory=dict, repr=False)
    """The category of every legal move; empty in a search without them."""
    unexplored: list[int] | None = field(default=None, repr=False)
    """The moves never tried, in the order in which they are scored; None before they were listed."""
    last_eager: int = NOTHING_EAGER
    """Unexplored moves of the categories up to this one are opened before any score is looked at."""
    current_priority_category: MoveCategory = MoveCategory.ForcedMate
    id: int = field(default_factory=lambda: next(_NEXT_NODE_ID))

    to_play: int = field(init=False)
    rewards: None = field(default=None, init=False, repr=False)
    end: list[float] | None = field(default=None, init=False)
    in_flight: int = field(default=0, init=False)
    proven: int | None = field(default=None, init=False)
    distance: int = field(default=0, init=False)
    mate: tuple[int, int] | None = field(default=None, init=False)
    """1 or -1, and in how many plies the player to move here mates or is mated, if the look at a new position has found
    that."""
    is_told: bool = field(default=True, init=False)
    """Whether the parent knows of `proven`. It does not where a mate was found and results are not handed up."""

    def __post_init__(self) -> None:
        self.to_play = self.state.to_play

    @classmethod
    def new_root(cls, state: Chess) -> MctsNode:
        """The node of a new root. It is searched even if a draw could be claimed in it."""
        refuse_end(state)
        return cls(state)

    @classmethod
    def new_child(cls, state: Chess, action: int, parent: MctsNode, policy_prior: float) -> MctsNode:
        """The node behind a move that is tried for the first time.

        Trap: the specification evaluates it at once, so that a checkmated position gets a static score. The end of the
        game is looked for first, draws that can be claimed included; then mates; and only then comes an evaluation.
        """
        child = cls(state, parent, action=action, policy_prior=policy_prior)
        child.end = end_in_search(state)
        return child

    @property
    def total_for_chooser(self) -> float:
        """W as the parent sees it. Players of chess alternate."""
        return self.total_value if self.parent is None else -self.total_value

    @property
    def proven_for_chooser(self) -> int | None:
        """The exact result for the player who chose the move that leads here, if the parent knows it."""
        return None if self.proven is None or self.parent is None or not self.is_told else -self.proven

    # --- What is known of the position ------------------------------------------------------------------------------

    @property
    def terminal_or_mate_value(self) -> float | None:
        """The exact value for the player to move here: by the end of the game, a mate, or a proof; else None."""
        exact = self.exact_values()
        return None if exact is None else exact[self.to_play]

    def is_terminal(self) -> bool:
        """Whether the game is over here; in the tree that includes draws a player could claim."""
        return self.end is not None or self.state.is_terminal

    @property
    def category(self) -> MoveCategory | None:
        """The category of the move that leads here."""
        return None if self.parent is None or self.action is None else self.parent.categories.get(self.action)

    def decide(self, value: int, distance: int, *, is_told: bool = True) -> None:
        """Mate search has the exact result for the player to move here, reached in `distance` plies.

        Trap: averaged with the values below it, an exact result would be lost. Nothing below is looked at any more, and
        what was is forgotten.
        """
        self.proven, self.distance, self.is_told = value, distance, is_told
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
        """Notes the priors of the legal moves, given in the order of the game, and the order in which they are tried.

        That is by category, the higher prior first within one, then as the game lists them. Where categories shape the
        priors they do so after that, and the scores of moves with them.
        """
        self.last_eager = LAST_EAGER[priority]
        order = list(priors)
        self.priors = dict(priors)
        if priority is not None:
            known = {action: history[action] for action in order if action in history} if history else None
            self.categories = categorize(self.state, killers, known, see_threshold)
            order.sort(key=lambda action: (self.categories[action], -priors[action]))
        if priority == "prior":
            factors = dict(move_scores.factors(self.state, see_threshold)) if move_scores else {}
            weighted = {action: weights[self.categories[action]] * factors.get(action, 1.0) for action in order}
            shaped = normalised([priors[action] * weighted[action] for action in order])
            self.priors = {action: float32(share) for action, share in zip(order, shaped, strict=True)}
        self.unexplored = order

    # --- Which move next --------------------------------------------------------------------------------------------

    @property
    def unexplored_moves_by_cat(self) -> dict[MoveCategory, list[int]]:
        """The moves never tried, by category; none before the position is evaluated."""
        by_category: dict[MoveCategory, list[int]] = {}
        for action in self.unexplored or ():
            if action in self.categories:
                by_category.setdefault(self.categories[action], []).append(action)
        return by_category

    def is_fully_explored(self) -> bool:
        """Whether no move is left that is to be opened before scores are looked at.

        Trap: the comment in the specification says "the current category and higher", its code says all of them; then
        every node opens its losing captures too before any move gets a second visit. `last_eager` says which it is. A
        node that was not evaluated has no moves yet, and so nothing to explore: who asks looks at that first.
        """
        return all(category > self.last_eager for category in self.unexplored_moves_by_cat)

    def advance_priority_category(self) -> bool:
        """Goes to the first category that still has a move to be opened; False if there is none."""
        left = [category for category in self.unexplored_moves_by_cat if category <= self.last_eager]
        if left:
            self.current_priority_category = min(left)
        return bool(left)

    def get_best_unexplored_move(self) -> int | None:
        """Takes the next move out of the unexplored ones; None if the rest is for scores to choose from."""
        if self.is_fully_explored():
            return None
        if self.current_priority_category not in self.unexplored_moves_by_cat:
            self.advance_priority_category()
        action = self.unexplored_moves_by_cat[self.current_priority_category][0]
        self._take(action)
        return action

    def list_actions(self) -> list[int]:
        """The moves that have no child yet; of a position that was not evaluated, in the order of the game."""
        if self.unexplored is None:
            self.unexplored = listed_actions(self.state)
        return self.unexplored

    def _take(self, action: int) -> None:
        """Takes a move out of the unexplored ones: it changes places with the first, as in the engine."""
        left = self.list_actions()
        place = left.index(action)
        left[0], left[place] = left[place], left[0]
        left.pop(0)

    def grow(self, action: int) -> MctsNode:
        """The new child behind a move that was taken out of the unexplored ones."""
        prior = 1.0 / len(self.legal_actions()) if self.priors is None else self.priors[action]
        child = MctsNode.new_child(self.state.play(action), action, self, prior)
        self.children[action] = child
        return child

    def try_move(self, action: int) -> MctsNode:
        """The child behind a move, made if there is none."""
        if action in self.children:
            return self.children[action]
        self._take(action)
        return self.grow(action)

    def puct_value(self, exploration_constant: float) -> float:
        """PUCT(child) = Q + c * P * sqrt(N_parent) / (1 + N), for the player who chooses in the parent."""
        assert self.parent is not None, "nobody chooses the root"
        visits = self.visits + self.in_flight
        return self.expected_for_chooser() + self.parent._urge(exploration_constant, self.policy_prior, visits)

    def _urge(self, exploration_constant: float, prior: float, visits: int) -> float:
        """How much a move from here is worth looking at: a leaf in flight counts as a visit in both N."""
        return exploration_constant * math.sqrt(self.visits + self.in_flight) * prior / (1.0 + visits)

    def select_best_child(
        self,
        exploration_constant: float,
        fpu: float | tuple[str, float] = 0.0,
        random: Random | None = None,
        record: list[Scores | None] | None = None,
    ) -> MctsNode:
        """The child with the highest PUCT among all moves; a move never tried is worth `fpu`, and is tried if chosen.

        Moves proven to lose are passed over if anything else is left. Ties are broken at random.
        """
        untried = self.mean_value - fpu[1] if isinstance(fpu, tuple) else fpu
        left = self.list_actions()
        lost = {action for action, child in self.children.items() if child.proven_for_chooser == -1}
        if len(lost) == len(self.children) + len(left):
            lost = set()
        scores = {
            action: child.puct_value(exploration_constant)
            for action, child in self.children.items()
            if action not in lost
        }
        assert self.priors is not None, "a position that was evaluated has priors"
        for action in left:
            scores[action] = untried + self._urge(exploration_constant, self.priors[action], 0)
        if record is not None:
            record.append(list(scores.items()))
        return self.try_move(highest(scores, random or Random(0, SELECT)))

    # --- On the way back, and from move to move ---------------------------------------------------------------------

    def backpropagate(self, value: float) -> None:
        """Counts a visit from here to the root; `value` is for the player to move here, and each node takes its own.

        Trap: the specification adds the same number everywhere, for White. The sign follows whose turn it is.
        """
        node: MctsNode | None = self
        while node is not None:
            node.visits += 1
            node.total_value += value if node.to_play == self.to_play else -value
            node = node.parent

    def after(self, action: int) -> MctsNode:
        """The root after `action`, with what is known below it. This node is not to be used any more."""
        legal = self.legal_actions()
        if action not in legal:
            raise ValueError(f"action {action} is not legal; legal are {legal}")
        child = self.children.get(action)
        if child is None or child.priors is None:
            # Nothing is known of it, or mate search decided it; or it is an end, which a root refuses or plays on from.
            return MctsNode.new_root(self.state.play(action))
        child.parent, child.action, child.policy_prior = None, None, 1.0
        return child
