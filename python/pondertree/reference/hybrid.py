"""The hybrid chess search: mates first, moves by category, a classical evaluation in place of a network.

It reads as its specification, in the specification's names, with the traps mended; a comment marked "Trap" stands
wherever this text departs from it, and says why. What is more than the specification: how far categories go before
scores (`priority`), priors by scores of moves (`move_scores`), results that are proven (`solve`), what a move never
tried is worth (`fpu`), several leaves in flight at once (`in_flight`), a tree kept from move to move (`advance`), and
random numbers that can be replayed.

The parts stand in files of their own: `hybrid_node` (`MctsNode`: categories, PUCT, backup), `mates` (the look for mates
at leaves and at the root), `killers` (what is learned of quiet moves); and as in all searches with priors `planning`,
`network`, `gather`, `proof` and `answer`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pondertree._core import Chess
from pondertree.chess.config import ChessConfig, root_budget, root_depth
from pondertree.chess.pesto import Pesto
from pondertree.chess.policy import is_evaluator
from pondertree.games.chess_interop import adapt_chess_state, to_chess
from pondertree.games.game_state import actions_among
from pondertree.random import Random, fold, tree_key
from pondertree.reference import answer, search_loop
from pondertree.reference.alphazero import ROOT_EVALUATION
from pondertree.reference.hybrid_knowledge import Learned, decide_root, look_for_mate, mate_values
from pondertree.reference.hybrid_node import LAST_EAGER, MctsNode
from pondertree.reference.network import MovePriors, consult
from pondertree.reference.search_loop import NOTHING, Pending, PriorSearch, Told, at_least, not_negative, tagged
from pondertree.reference.trace import Scores
from pondertree.reference.tree import prove_ancestors

__all__ = ["MCTS", "MctsNode", "Tree", "Result", "Learned", "mcts_search", "select_leaf_for_expansion"]

Result = answer.Result[MctsNode]


@dataclass(slots=True)
class Tree(search_loop.Tree[MctsNode]):
    """A search under way, with what it has learned."""

    learned: Learned = field(default_factory=Learned)
    is_root_searched: bool = False
    """Whether mates were looked for at the present root."""


def mcts_search(
    root_state: Any,
    policy_network: Any = None,
    mate_search_depth: int = 3,
    iterations: int | None = None,
    time_limit: float | timedelta | None = None,
    **options: Any,
) -> Any:
    """The move to play after so many simulations, or seconds, whichever is over first; None if there is no legal move.

    It is a number, or a `chess.Move` if `root_state` is a `chess.Board` or a `ChessGame`. `policy_network` has the
    specification's form, or is a `ChessNN` or another evaluator. `time_limit` may be a `timedelta`.

    Trap: without any limit the specification's loop would never end.
    """
    if iterations is None and time_limit is None:
        raise ValueError("the search has no limit: give iterations, time_limit, or both")
    at_least(1, iterations=1 if iterations is None else iterations)
    seconds = time_limit.total_seconds() if isinstance(time_limit, timedelta) else time_limit
    not_negative(time_limit=seconds or 0.0)
    state, answer_as = adapt_chess_state(root_state, "root_state")
    if state.is_terminal:
        return None
    if is_evaluator(policy_network) and options.get("evaluator") is None:
        options["evaluator"], policy_network = policy_network, None
    search = MCTS(policy_network=policy_network, mate_search_depth=mate_search_depth, **options)
    tree = search.tree(state)
    deadline = None if seconds is None else time.monotonic() + seconds
    while tree.root.proven is None and (iterations is None or tree.simulations < iterations):
        if deadline is not None and tree.simulations > 0 and time.monotonic() >= deadline:
            break
        left = search.in_flight if iterations is None else min(search.in_flight, iterations - tree.simulations)
        search.simulate(tree, left)
    return answer_as(search.result(tree).action)


def select_leaf_for_expansion(
    node: MctsNode,
    exploration_constant: float,
    fpu: float | tuple[str, float] = 0.0,
    random: Random | None = None,
    record: list[Scores | None] | None = None,
) -> MctsNode:
    """Walks down by PUCT to a node that has a move of an eager category to open, or to a new one, or to an exact one.

    A node that was never evaluated is a leaf: it may be new, or in flight.
    """
    while node.priors is not None and node.terminal_or_mate_value is None and node.is_fully_explored():
        node = node.select_best_child(exploration_constant, fpu, random, record)
    return node


class MCTS(PriorSearch[MctsNode]):
    """The search with its parameters.

    Leaves are valued by `Pesto`, after a quiescence search unless `quiescence` is off, and all moves have the same
    prior; by `evaluator`, such as a `ChessNN`, which is asked as other searches ask theirs; or by `policy_network`,
    which has the specification's `evaluate(state) -> ({move: prior}, value from 0 to 1 for the player to move)`.

    `priority` says what categories are for: "strict" opens every move in their order before any score is looked at (the
    specification), "tactical" those up to checks, "prior" multiplies priors by a weight of each category; None does
    without them. Mates are looked for in `mate_search_depth` moves; 0 looks for none. With `endings`, positions of
    three pieces are looked up in tables. A move never tried is worth `fpu`: a number, or `("parent", reduction)`.
    `details` are further fields of `ChessConfig`.
    """

    def __init__(
        self,
        evaluator: Any = None,
        policy_network: Any = None,
        num_simulations: int = 1000,
        mate_search_depth: int = 3,
        exploration_constant: float = 1.5,
        priority: str | None = "strict",
        see_threshold: int = 0,
        quiescence: bool = True,
        *,
        fpu: float | tuple[str, float] = ("parent", 0.0),
        seed: int = 0,
        solve: bool = True,
        in_flight: int = 1,
        endings: bool = True,
        **details: Any,
    ) -> None:
        at_least(0, num_simulations=num_simulations, mate_search_depth=mate_search_depth, see_threshold=see_threshold)
        at_least(1, in_flight=in_flight)
        not_negative(exploration_constant=exploration_constant)
        tagged(fpu, "fpu", "parent")
        if priority not in LAST_EAGER:
            raise ValueError(f'priority must be "strict", "tactical", "prior" or None, not {priority!r}')
        if evaluator is not None and policy_network is not None:
            raise ValueError("give an evaluator or a policy_network, not both: each says what a position is worth")
        pesto = Pesto(quiescence=quiescence)
        self.network: Any = pesto if evaluator is None else evaluator
        if policy_network is not None:
            self.network = MovePriors(policy_network)
        self.knowledge = ChessConfig(
            pesto=pesto.compiled,
            quiescence=quiescence,
            endings=endings,
            mate_depth=mate_search_depth,
            see_threshold=see_threshold,
            priority=priority,
            **{
                "root_depth": root_depth(mate_search_depth),
                "root_budget": root_budget(num_simulations, None),
                **details,
            },
        )
        self.num_simulations = num_simulations
        self.exploration_constant = exploration_constant
        self.fpu = fpu
        self.seed = seed
        self.solve = solve
        self.in_flight = in_flight

    def run(
        self,
        state: Any,
        call: int = 0,
        row: int = 0,
        *,
        temperature: float = 0.0,
        trace: bool = False,
        root_actions: Collection[int] | None = None,
    ) -> Result:
        """One whole search from `state`: the `row`-th tree of the `call`-th call; of `root_actions` alone, if given."""
        tree = self.tree(state, call, row, trace=trace, root_actions=root_actions)
        self.simulate(tree, self.num_simulations)
        return self.result(tree, temperature)

    def tree(
        self,
        state: Any,
        call: int = 0,
        row: int = 0,
        *,
        trace: bool = False,
        root_actions: Collection[int] | None = None,
    ) -> Tree:
        """A tree of the root alone: a `Chess` state, a `chess.Board` or a `ChessGame`.

        A root with some of its moves alone is not searched for mates: one may begin with another move.
        """
        root = self._plant(to_chess(state), Told(root_actions=root_actions))
        is_restricted = len(root.list_actions()) < len(root.legal_actions())
        key = tree_key(self.seed, call, row)
        return Tree(root, key, trace=[] if trace else None, is_root_searched=is_restricted)

    def simulate(self, tree: Tree, num_simulations: int) -> None:
        """So many more simulations; fewer if the root is proven. If an evaluator raises, drop the tree."""
        self._simulate_to(tree, tree.simulations + num_simulations)

    def advance(self, tree: Tree, action: int) -> None:
        """Plays `action` and keeps what is known below it. The random numbers go on where they were."""
        tree.root, tree.begun = self._follow(tree.root, action), tree.simulations
        tree.is_root_searched = False
        tree.learned.advance()

    # --- The root -----------------------------------------------------------------------------------------------

    def _plant(self, state: Chess, told: Told = NOTHING) -> MctsNode:
        root = MctsNode.new_root(state)
        if told.root_actions is not None:
            root.unexplored = actions_among(root.legal_actions(), told.root_actions)
        return root

    def _follow(self, root: MctsNode, action: int, told: Told = NOTHING) -> MctsNode:
        return root.after(action)

    def _unasked(self, root: MctsNode) -> MctsNode:
        # Its moves are listed whether they were tried or not.
        return root

    def _settle_root(self, tree: search_loop.Tree[MctsNode]) -> None:
        """Looks for mates at a new root, at length; then evaluates it, if it is not decided."""
        assert isinstance(tree, Tree), "made by this search"
        if not tree.is_root_searched and (self.knowledge.mate_depth > 0 or self.knowledge.endings):
            decide_root(tree.root, self.knowledge)
        tree.is_root_searched = True
        if tree.root.proven is None:
            super()._settle_root(tree)

    def _evaluate_root(self, tree: search_loop.Tree[MctsNode]) -> None:
        root = tree.root
        question = root.state, 0, fold(tree.key, ROOT_EVALUATION)
        ((priors, values),) = consult(self.network, [question], [root.list_actions()])
        self._expand(tree, root, priors, values)
        self._backpropagate(root, values)

    # --- The steps of a simulation ------------------------------------------------------------------------------

    def _select(self, root: MctsNode, random: Random, record: list[Scores | None] | None = None) -> MctsNode:
        """SELECT."""
        return select_leaf_for_expansion(root, self.exploration_constant, self.fpu, random, record)

    def _open(self, leaf: MctsNode, random: Random, record: list[Scores | None] | None) -> MctsNode:
        """EXPAND: opens the next move of an eager category, where the descent has ended at a node that has one."""
        if leaf.terminal_or_mate_value is not None:
            return leaf
        action = leaf.get_best_unexplored_move()
        if action is None:
            return leaf
        if record is not None:
            record.append(None)
        return leaf.grow(action)

    def _evaluate(
        self, tree: search_loop.Tree[MctsNode], pending: Sequence[Pending[MctsNode]], target: int
    ) -> list[list[float]]:
        """MATE CHECK and EVALUATE: the network is asked, once, about all leaves in which no mate was found.

        A leaf waits once in its life, so that mates are looked for once per node. All leaves hear of the killers and
        the history before any of them teaches something.
        """
        for waiting in pending:
            look_for_mate(waiting.leaf, self.knowledge)
        asked = [waiting for waiting in pending if waiting.leaf.mate is None]
        answers = consult(self.network, [waiting.question for waiting in asked]) if asked else []
        for waiting, (priors, values) in zip(asked, answers, strict=True):
            self._expand(tree, waiting.leaf, priors, values)
        said = iter(answers)
        return [next(said)[1] if waiting.leaf.mate is None else mate_values(waiting.leaf) for waiting in pending]

    def _expand(
        self, tree: search_loop.Tree[MctsNode], leaf: MctsNode, priors: dict[int, float], values: Sequence[float]
    ) -> None:
        """What the network said of a position; its moves in the order in which they are tried."""
        assert isinstance(tree, Tree), "made by this search"
        leaf.nn_value = values[leaf.to_play]
        leaf.store_priors_and_categorize_moves(
            priors,
            self.knowledge.priority,
            killers=tree.learned.killers_at(leaf),
            history=tree.learned.history[leaf.to_play],
            see_threshold=self.knowledge.see_threshold,
            weights=self.knowledge.weights,
            move_scores=self.knowledge.move_scores,
        )

    def _backpropagate(self, leaf: MctsNode, values: Sequence[float]) -> None:
        """BACKUP."""
        leaf.backpropagate(values[leaf.to_play])

    def _conclude(self, tree: search_loop.Tree[MctsNode], leaf: MctsNode, values: Sequence[float]) -> None:
        """A mate found at the leaf is exact, and handed up as a proof if that is wanted; quiet moves are learned.

        Ends, and nodes that were exact before, are met while gathering, do not come here, and teach nothing.
        """
        assert isinstance(tree, Tree), "made by this search"
        if leaf.mate is not None:
            leaf.decide(*leaf.mate, is_told=self.solve)
            prove_ancestors(leaf)
        if self.knowledge.priority is not None:
            tree.learned.learn(leaf, values[leaf.to_play], self.knowledge.killer_visits)
