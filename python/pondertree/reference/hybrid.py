"""Hybrid chess search: PUCT with mate search, move categories and a static evaluation or a network.

Names are those of the hybrid chess specification; a comment marked "Trap" explains each deviation. Additions: the
extent of category ordering (`priority`), priors from move scores (`move_scores`), proofs (`solve`), first-play urgency
(`fpu`), leaf batches under virtual loss (`in_flight`), tree reuse (`advance`) and reproducible random numbers.

`MctsNode` is in `hybrid_node`; mate search and the history table are in `hybrid_knowledge`; the simulation loop is in
`search_loop`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pondertree._core import Chess
from pondertree.chess.config import ChessConfig, root_budget, root_depth
from pondertree.chess.pesto import Pesto
from pondertree.chess.policy import is_evaluator
from pondertree.config import parse_tagged_number
from pondertree.games.chess_interop import adapt_chess_state, to_chess
from pondertree.games.game_state import actions_among
from pondertree.random import Random, fold, tree_key
from pondertree.reference import answer, search_loop
from pondertree.reference.alphazero import ROOT_EVALUATION
from pondertree.reference.hybrid_knowledge import HistoryTable, mate_values, prove_root, search_mate
from pondertree.reference.hybrid_node import LAST_EAGER, MctsNode
from pondertree.reference.priors import MovePriors, evaluate_positions
from pondertree.reference.search_loop import NO_INPUT, PendingLeaf, PriorSearch, RootInput, at_least, not_negative
from pondertree.reference.terms import Record
from pondertree.reference.tree import prove_ancestors

__all__ = ["MCTS", "MctsNode", "Tree", "Result", "HistoryTable", "mcts_search", "select_leaf_for_expansion"]

Result = answer.Result[MctsNode]


@dataclass(slots=True)
class Tree(search_loop.Tree[MctsNode]):
    """The state of a search, with its history table."""

    history: HistoryTable = field(default_factory=HistoryTable)
    is_root_searched: bool = False
    """Whether the mate search at the root is done."""


def mcts_search(
    root_state: Any,
    policy_network: Any = None,
    mate_search_depth: int = 3,
    iterations: int | None = None,
    time_limit: float | timedelta | None = None,
    **options: Any,
) -> Any:
    """Searches for `iterations` simulations or `time_limit` seconds and returns the move; None without a legal move.

    The move is an int, or a `chess.Move` if `root_state` is a `chess.Board` or a `ChessGame`. `policy_network` has the
    specification's interface, or is a `ChessNN` or another evaluator. `time_limit` may be a `timedelta`.

    Trap: without a limit the loop of the hybrid chess specification does not terminate; that is an error here.
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
        batch = search.in_flight if iterations is None else min(search.in_flight, iterations - tree.simulations)
        search.simulate(tree, batch)
    return answer_as(search.result(tree).action)


def select_leaf_for_expansion(
    node: MctsNode,
    exploration_constant: float,
    fpu: float | tuple[str, float] = 0.0,
    random: Random | None = None,
    record: Record | None = None,
) -> MctsNode:
    """Descends by PUCT to an unevaluated or exact node, or to one with an unexplored move of an eager category."""
    while node.priors is not None and node.terminal_or_mate_value is None and node.is_fully_explored():
        node = node.select_best_child(exploration_constant, fpu, random, record)
    return node


class MCTS(PriorSearch[MctsNode]):
    """Hybrid chess search with the parameters of the hybrid chess specification.

    Leaves are evaluated by `Pesto` with uniform priors, after quiescence search unless `quiescence` is False; by
    `evaluator`, such as a `ChessNN`; or by `policy_network`, with the specification's
    `evaluate(state) -> ({move: prior}, value in [0, 1] for the player to move)`.

    `priority` is the role of move categories: "strict" expands all moves in category order before PUCT selects among
    them (the specification), "tactical" those up to checks, "prior" multiplies priors by category weights, None ignores
    categories. `mate_search_depth` is in moves; 0 is off. `endings` probes the three-piece endgame tables. `fpu` is the
    value of an unvisited move, or `("parent", reduction)`. `details` are further fields of `ChessConfig`.
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
        parse_tagged_number(fpu, "fpu", "parent")
        if priority not in LAST_EAGER:
            raise ValueError(f'priority must be "strict", "tactical", "prior" or None, not {priority!r}')
        if evaluator is not None and policy_network is not None:
            raise ValueError("give an evaluator or a policy_network, not both")
        pesto = Pesto(quiescence=quiescence)
        self.network: Any = pesto if evaluator is None else evaluator
        if policy_network is not None:
            self.network = MovePriors(policy_network)
        self.chess_config = ChessConfig(
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

    def run(self, state: Any, call: int = 0, row: int = 0, *, temperature: float = 0.0, **inputs: Any) -> Result:
        """Searches from `state`; (`seed`, `call`, `row`) key the random numbers, `inputs` are those of `tree`."""
        tree = self.tree(state, call, row, **inputs)
        self.simulate(tree, self.num_simulations)
        return self.result(tree, temperature)

    def tree(
        self, state: Any, call: int = 0, row: int = 0, *, trace: bool = False, root_actions: Sequence[int] | None = None
    ) -> Tree:
        """Creates a tree that consists of the root, from a `Chess` state, a `chess.Board` or a `ChessGame`.

        A restricted root has no mate search, since a mate may begin with an excluded move.
        """
        root = self._make_root(to_chess(state), RootInput(root_actions=root_actions))
        is_restricted = len(root.list_actions()) < len(root.legal_actions())
        key = tree_key(self.seed, call, row)
        return Tree(root, key, trace=[] if trace else None, is_root_searched=is_restricted)

    def simulate(self, tree: Tree, num_simulations: int) -> None:
        """Runs `num_simulations` more; fewer if the root is proven. After an exception the tree must be discarded."""
        self._simulate_to(tree, tree.simulations + num_simulations)

    def advance(self, tree: Tree, action: int) -> None:
        """Plays `action` and keeps its subtree. Simulations continue to be counted, which keys the random numbers."""
        tree.root, tree.first_simulation = self._advance_root(tree.root, action), tree.simulations
        tree.is_root_searched = False
        tree.history.advance()

    # --- The root -----------------------------------------------------------------------------------------------

    def _make_root(self, state: Chess, root_input: RootInput = NO_INPUT) -> MctsNode:
        root = MctsNode.new_root(state)
        if root_input.root_actions is not None:
            root.unexplored = actions_among(root.legal_actions(), root_input.root_actions)
        return root

    def _advance_root(self, root: MctsNode, action: int, root_input: RootInput = NO_INPUT) -> MctsNode:
        return root.after(action)

    def _uniform_root(self, root: MctsNode) -> MctsNode:
        # An unevaluated root lists its moves without priors.
        return root

    def _prepare_root(self, tree: search_loop.Tree[MctsNode]) -> None:
        """Runs the exhaustive mate search at a new root, then evaluates it unless it is proven."""
        assert isinstance(tree, Tree), "created by this search"
        if not tree.is_root_searched and (self.chess_config.mate_depth > 0 or self.chess_config.endings):
            prove_root(tree.root, self.chess_config)
        tree.is_root_searched = True
        if tree.root.proven is None:
            super()._prepare_root(tree)

    def _evaluate_root(self, tree: search_loop.Tree[MctsNode]) -> None:
        root = tree.root
        request = root.state, 0, fold(tree.key, ROOT_EVALUATION)
        ((priors, values),) = evaluate_positions(self.network, [request], [root.list_actions()])
        self._expand(tree, root, priors, values)
        self._backpropagate(root, values)

    # --- The steps of a simulation ------------------------------------------------------------------------------

    def _select(
        self, root: MctsNode, random: Random, record: Record | None = None, outcome_random: Random | None = None
    ) -> MctsNode:
        """SELECT."""
        return select_leaf_for_expansion(root, self.exploration_constant, self.fpu, random, record)

    def _open(self, leaf: MctsNode, random: Random, record: Record | None, outcome_random: Random) -> MctsNode:
        """EXPAND: expands the next move of an eager category, if the selected node has one."""
        if leaf.terminal_or_mate_value is not None:
            return leaf
        terms = leaf.untried_terms()
        action = leaf.get_best_unexplored_move()
        if action is None:
            return leaf
        if record is not None:
            record.append((None, terms))
        return leaf.add_child(action)

    def _evaluate(
        self, tree: search_loop.Tree[MctsNode], pending: Sequence[PendingLeaf[MctsNode]], target: int
    ) -> list[list[float]]:
        """MATE CHECK and EVALUATE: evaluates all leaves without a mate in one batch.

        Each node is pending once, so mate search runs once per node. All leaves of a batch use the history table as it
        was before the batch.
        """
        for pending_leaf in pending:
            search_mate(pending_leaf.leaf, self.chess_config)
        without_mate = [pending_leaf for pending_leaf in pending if pending_leaf.leaf.mate is None]
        requests = [pending_leaf.request for pending_leaf in without_mate]
        evaluations = evaluate_positions(self.network, requests) if requests else []
        for pending_leaf, (priors, values) in zip(without_mate, evaluations, strict=True):
            self._expand(tree, pending_leaf.leaf, priors, values)
        rows = iter(evaluations)
        return [next(rows)[1] if each.leaf.mate is None else mate_values(each.leaf) for each in pending]

    def _expand(
        self, tree: search_loop.Tree[MctsNode], leaf: MctsNode, priors: dict[int, float], values: Sequence[float]
    ) -> None:
        """Stores the evaluation of a leaf and the order of its moves."""
        assert isinstance(tree, Tree), "created by this search"
        leaf.nn_value = values[leaf.to_play]
        leaf.store_priors_and_categorize_moves(
            priors,
            self.chess_config.priority,
            killers=tree.history.killers_at(leaf),
            history=tree.history.scores[leaf.to_play],
            see_threshold=self.chess_config.see_threshold,
            weights=self.chess_config.weights,
            move_scores=self.chess_config.move_scores,
        )

    def _backpropagate(self, leaf: MctsNode, values: Sequence[float]) -> None:
        """BACKUP."""
        leaf.backpropagate(values[leaf.to_play])

    def _after_backup(self, tree: search_loop.Tree[MctsNode], leaf: MctsNode, values: Sequence[float]) -> None:
        """Proves a leaf with a mate, propagating the proof if `solve`, and updates the history table.

        Simulations that end at an exact node are completed during collection and do not update the table.
        """
        assert isinstance(tree, Tree), "created by this search"
        if leaf.mate is not None:
            leaf.set_proven(*leaf.mate, propagates=self.solve)
            prove_ancestors(leaf)
        if self.chess_config.priority is not None:
            tree.history.update(leaf, values[leaf.to_play], self.chess_config.killer_visits)
