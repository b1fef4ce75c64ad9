"""UCT: Monte Carlo tree search with UCB1 selection, expansion, random playouts and backpropagation.

Names are those of the classic UCT specification; a comment marked "Trap" explains each deviation. Additions: proofs
(`solve`), leaf batches under virtual loss (`in_flight`) and reproducible random numbers.

This module also exports the main names of `games.game_state`, `games.playout` and `games.lookahead`. The tree and the
proofs are in `tree`, the simulation loop in `search_loop`, the result in `answer`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from pondertree.games.chance import is_chance, read_outcomes, refuse_chance
from pondertree.games.dict_state import DictState
from pondertree.games.game_state import (
    State,
    actions_among,
    end_in_search,
    end_values,
    is_zero_sum,
    listed_actions,
    refuse_end,
    rewards_of,
)
from pondertree.games.lookahead import forced_actions, minimax
from pondertree.games.playout import PlayoutPolicy, evaluate, random_playout, simulate_leaves
from pondertree.random import ANSWER, OUTCOME, SELECT, Random, fold, tree_key
from pondertree.reference import answer
from pondertree.reference.chance import ChanceRule
from pondertree.reference.planning import (
    Scale,
    before_move,
    best_value,
    check_planning,
    check_players,
    discount_of,
    for_each_player,
    mean_for_chooser,
    normalized,
    scale_of,
    value_of,
)
from pondertree.reference.priors import float32, highest
from pondertree.reference.search_loop import BatchedSearch, at_least, not_negative, refuse_chance_root
from pondertree.reference.terms import Record, choice, excluded_losses, scored, untried, virtual_loss
from pondertree.reference.tree import SearchTree, TreeNode
from pondertree.trace import ChoiceTerms, EdgeTerms, TraceRow

__all__ = [
    "MCTS",
    "MCTSNode",
    "Tree",
    "Result",
    "State",
    "DictState",
    "PlayoutPolicy",
    "rewards_of",
    "is_zero_sum",
    "end_values",
    "listed_actions",
    "random_playout",
    "simulate_leaves",
    "evaluate",
    "forced_actions",
    "minimax",
]


# --- The tree ---------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class MCTSNode(TreeNode):
    """A position, with the statistics of the edge leading to it.

    Trap: the classic UCT specification states that edge statistics are stored in the parent, but lists them in the
    node. In a tree each node has one incoming edge, whose statistics are `visit_count` and `total_value`. They serve
    the parent's choice, so `total_value` is from the perspective of the player to move in the **parent**. At the root,
    which has no parent, it is from that of its own player to move.
    """

    state: State
    """The position; with a `game` of functions, a `DictState`."""
    parent: MCTSNode | None = field(default=None, repr=False)
    forced_depth_left: int = 0
    children: dict[int, MCTSNode] = field(default_factory=dict, repr=False)
    """The expanded moves, in order of expansion, which is also the order in which scores are compared."""
    visit_count: int = 0
    total_value: float = 0.0

    action: int | None = None
    to_play: int = field(init=False)
    untried: list[int] | None = field(default=None, repr=False)
    """The unexpanded moves; None until the node is visited a second time."""
    in_flight: int = 0
    rewards: list[float] | None = field(init=False)
    end: list[float] | None = field(init=False)
    proven: int | None = None
    distance: int = 0
    probabilities: dict[int, float] = field(default_factory=dict, init=False, repr=False)
    """At a chance node, the probability of each outcome in 32 bits."""
    own_random: Random | None = field(default=None, init=False, repr=False)
    """At a root: the default generator of `expand` and `best_child`."""

    def __post_init__(self) -> None:
        self.to_play = self.state.to_play
        self.rewards = rewards_of(self.state)
        self.end = None if self.parent is None else end_in_search(self.state)
        if self.end is None and is_chance(self.state):
            self.probabilities = {outcome: float32(p) for outcome, p in zip(*read_outcomes(self.state), strict=True)}
            self.untried = list(self.probabilities)

    @property
    def total_for_chooser(self) -> float:
        """`total_value`, which has the perspective of the chooser."""
        return self.total_value

    @property
    def mean_value(self) -> float:
        """The mean value of the moves for the player to move here; 0 without visits."""
        total, visits = self.sum_of_moves()
        return total / visits if visits else 0.0

    def list_actions(self, root_actions: Collection[int] | None = None) -> list[int]:
        """Returns the unexpanded moves. The first call lists the legal moves, within `root_actions` if given.

        It also prunes by forced moves. A pruned move is never listed, so the node can become fully expanded without it.
        """
        if self.untried is None:
            self.untried = actions_among(listed_actions(self.state), root_actions)
            if self.forced_depth_left > 0:
                self.untried = forced_actions(self.state, self.untried)
        return self.untried

    def expand(self, random: Random | None = None) -> MCTSNode:
        """Expands a random unexpanded move and returns the new child.

        `random` defaults to the generator of the tree, which has a fixed seed.
        """
        untried = self.list_actions()
        if not untried:
            raise ValueError("the node is fully expanded: all its moves have a child")
        return self._expand_at((random or self.tree_random()).choose(len(untried)))

    def try_outcome(self, outcome: int) -> MCTSNode:
        """Returns the child of an outcome of chance, expanded if it has none."""
        return self.children.get(outcome) or self._expand_at(self.list_actions().index(outcome))

    def outcomes(self) -> list[tuple[int, float, MCTSNode | None]]:
        """Returns (outcome, probability, child) of a chance node: the expanded outcomes first."""
        return [
            (each, self.probabilities[each], self.children.get(each)) for each in [*self.children, *self.list_actions()]
        ]

    def _expand_at(self, index: int) -> MCTSNode:
        """Expands an unexpanded move, swapped with the first of them."""
        untried = self.list_actions()
        untried[0], untried[index] = untried[index], untried[0]
        action = untried.pop(0)
        child = MCTSNode(self.state.play(action), self, max(self.forced_depth_left - 1, 0), action=action)
        self.children[action] = child
        return child

    def score(self, parent_visits: int, c_param: float, scale: Scale | None = None) -> float:
        """Returns the UCB1 score of the move leading here; infinite without visits. A leaf in flight counts as a visit.

        Trap: the factor 2 is inside the square root, so `c_param = 1` corresponds to the usual constant sqrt(2), and
        values are in [-1, 1], twice the range for which UCB1 was derived. `scale` maps them to [0, 1].
        """
        visits = self.visit_count + self.in_flight
        if visits == 0:
            return math.inf
        explore = math.sqrt(2.0 * math.log(parent_visits) / visits)
        q = self.expected_for_chooser() if scale is None else normalized(mean_for_chooser(self), scale)
        return q + c_param * explore

    def best_child(
        self,
        c_param: float = 1.0,
        random: Random | None = None,
        record: Record | None = None,
        scale: Scale | None = None,
    ) -> MCTSNode:
        """Returns the child with the highest score; ties are broken at random. Proven losses are skipped unless all
        lose.

        `random` defaults to the generator of the tree, which has a fixed seed. `scale` (`planning.scale_of`) normalises
        values.

        N of the parent is its own visit count: one for its evaluation, plus the visits of its children. The root is not
        evaluated, and its N is the sum over its children.
        """
        if not self.children:
            raise ValueError("the node has no children: expand it first")
        candidates = {action: child for action, child in self.children.items() if child.proven_for_chooser != -1}
        candidates = candidates or self.children
        parent_visits = max(self.visit_count + self.in_flight, 1)
        scores = {action: child.score(parent_visits, c_param, scale) for action, child in candidates.items()}
        if record is not None:
            record.append((list(scores.items()), self._choice_terms(parent_visits, c_param, scale)))
        return candidates[highest(scores, random or self.tree_random())]

    def _choice_terms(self, parent_visits: int, c_param: float, scale: Scale | None = None) -> ChoiceTerms:
        """Returns what the scores of `best_child` are made of."""
        excluded = excluded_losses(self)
        edges: list[EdgeTerms] = []
        for action, child in self.children.items():
            n = child.visit_count + child.in_flight
            exploration = c_param * math.sqrt(2.0 * math.log(parent_visits) / n)
            terms: EdgeTerms
            if scale is None:
                q = child.expected_for_chooser()
                terms = {"virtual_loss": virtual_loss(child), "q": q, "exploration": exploration}
            else:
                mean = mean_for_chooser(child)
                q = normalized(mean, scale)
                terms = {"q": mean, "normalized_q": q, "exploration": exploration}
            edges.append(scored({**child.edge_terms(action), **terms}, q + exploration, excluded))
        shared: ChoiceTerms | None = None if scale is None else {"low": scale[0], "scale": scale[1]}
        return choice(self, "ucb1", "score", edges, shared)

    def tree_random(self) -> Random:
        """Returns the default generator of the tree."""
        root = self
        while root.parent is not None:
            root = root.parent
        if root.own_random is None:
            root.own_random = Random(0, SELECT)
        return root.own_random

    def update(self, value: float) -> None:
        """Adds a visit with a value from the perspective of the chooser."""
        self.visit_count += 1
        self.total_value += value


Tree = SearchTree[MCTSNode]
Result = answer.Result[MCTSNode]


# --- The search -------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class MCTS(BatchedSearch[MCTSNode]):
    """UCT with the parameters of the classic UCT specification.

    `max_depth` cuts playouts; `evaluator` evaluates the leaf (`max_depth` None or 0) or the position where a playout
    was cut; `playout_policy` chooses playout moves; `minimax_depth` is the depth of the minimax guard on the final
    move; `forced_depth` is the number of plies below the root that are restricted to forced moves. `normalize`,
    `discount` and `backup` are those of `planning`. `solve=False`, `in_flight=1` is the specification to the letter.
    Outcomes of chance nodes are visited as `chance` says: "balanced" up to `chance_width` outcomes, or by "sample".
    With a `game` of functions, states are dicts: see `DictState`.
    """

    num_simulations: int = 1000
    c_param: float = 1.0
    max_depth: int | None = None
    evaluator: Any = None
    playout_policy: PlayoutPolicy | None = None
    minimax_depth: int = 0
    forced_depth: int = 0
    normalize: str | None = None
    discount: float = 1.0
    backup: str = "mean"
    _: KW_ONLY
    seed: int = 0
    solve: bool = True
    in_flight: int = 1
    chance: str = "balanced"
    chance_width: int = 36
    game: Any = None
    calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        at_least(0, num_simulations=self.num_simulations, max_depth=self.max_depth or 0)
        at_least(0, minimax_depth=self.minimax_depth, forced_depth=self.forced_depth)
        at_least(1, in_flight=self.in_flight)
        not_negative(c_param=self.c_param)
        check_planning(self.normalize, self.discount, self.backup)
        self.chance_rule = ChanceRule(self.chance, self.chance_width)

    def search(self, state: Any) -> int:
        """Returns the move to play. Each call draws new random numbers."""
        result = self.run(state, call=self.calls)
        self.calls += 1
        return result.action

    def run(self, state: Any, call: int = 0, row: int = 0, **inputs: Any) -> Result:
        """Searches from `state`; (`seed`, `call`, `row`) key the random numbers, `inputs` are those of `tree`."""
        tree = self.tree(state, call, row, **inputs)
        self.simulate(tree, self.num_simulations)
        return self.result(tree)

    def tree(
        self, state: Any, call: int = 0, row: int = 0, *, trace: bool = False, root_actions: Sequence[int] | None = None
    ) -> Tree:
        """Creates a tree that consists of the root, restricted to `root_actions`."""
        state = self._state(state)
        refuse_end(state)
        refuse_chance(state)
        check_players(self.backup, state.num_players)
        root = MCTSNode(state, forced_depth_left=self.forced_depth if is_zero_sum(state) else 0)
        if root_actions is not None:
            root.list_actions(root_actions)
        return Tree(root, tree_key(self.seed, call, row), trace=[] if trace else None)

    def simulate(self, tree: Tree, num_simulations: int) -> None:
        """Runs `num_simulations` more; fewer if the root is proven. After an exception the tree must be discarded."""
        refuse_chance_root(tree)
        discount = discount_of(tree.root.state, self.discount)
        limit = tree.simulations + num_simulations
        while tree.simulations < limit and tree.root.proven is None:
            pending = self._collect_leaves(tree, limit)
            leaves = [pending_leaf.request for pending_leaf in pending]
            values = simulate_leaves(
                leaves, self.max_depth, self.evaluator, self.playout_policy, tree.playouts, discount
            )
            for pending_leaf, leaf_values in zip(pending, values, strict=True):
                self._mark_in_flight(pending_leaf.leaf, -1)
                self._finish(tree, pending_leaf.leaf, leaf_values, pending_leaf.row)

    def _state(self, state: Any) -> State:
        """Wraps a dict state with the functions of the game; returns other states unchanged."""
        if hasattr(state, "legal_actions"):
            own: State = state
            return own
        if self.game is None:
            raise ValueError(f"a state that is a {type(state).__name__} needs the functions of its game: give game=")
        return DictState(state, self.game)

    def _descend(self, tree: Tree, random: Random, record: Record | None, outcome_random: Random) -> MCTSNode:
        """Selection from the root, on values normalised by the bounds of the tree if `normalize` says so."""
        return self._select(
            tree.root, random, record, outcome_random, scale_of(tree) if self.normalize == "tree" else None
        )

    def _select(
        self,
        root: MCTSNode,
        random: Random | None = None,
        record: Record | None = None,
        outcome_random: Random | None = None,
        scale: Scale | None = None,
    ) -> MCTSNode:
        """Selection: descends to a node with an unexpanded move, an end, a proven node or a leaf in flight.

        At a chance node the descent follows an outcome (`chance`), which may lead to a new leaf.
        """
        node = root
        while node.exact_values() is None and not node.is_pending and not node.is_new:
            if node.is_chance:
                node = self._through_chance(node, outcome_random or Random(0, OUTCOME), record)
            elif node.list_actions():
                break
            else:
                node = node.best_child(self.c_param, random, record, scale)
        return node

    def _open(self, leaf: MCTSNode, random: Random, record: Record | None, outcome_random: Random) -> MCTSNode:
        """Expansion: expands a move of the selected node, unless its value is exact or it is new (behind chance)."""
        if leaf.exact_values() is not None or leaf.is_new:
            return leaf
        if record is not None:
            edges = [untried(action) for action in leaf.list_actions()]
            record.append((None, choice(leaf, "ucb1", "untried", edges)))
        return self._through_chance(leaf.expand(random), outcome_random, record)

    def _through_chance(self, node: MCTSNode, outcome_random: Random, record: Record | None) -> MCTSNode:
        """Returns the decision or end behind a chance node, or behind several of them; other nodes as they are."""
        while node.is_chance and node.proven is None:
            node = node.try_outcome(self.chance_rule.choose(node, outcome_random, record))
        return node

    def _backpropagate(self, leaf: MCTSNode, values: Sequence[float] | float) -> None:
        """Adds the values of a leaf, one per player, to every edge on the path to the root.

        A single number is from the perspective of the leaf's chooser, as in the specification; of two players the other
        one gets its negative.

        Trap: the classic UCT specification negates the value at each step "because turns alternate". They do not after
        a pass, in a double move, or with one or three players. Here every edge takes the value of its chooser.
        """
        values = for_each_player(leaf, values)
        if self.backup == "max":
            self._back_up_best(leaf, values)
            return
        discount = discount_of(leaf.state, self.discount)
        node: MCTSNode | None = leaf
        while node is not None:
            if node.parent is None:
                node.update(values[node.to_play])
            else:
                values = before_move(node, values, discount)
                node.update(values[node.chooser])
            node = node.parent

    def _back_up_best(self, leaf: MCTSNode, values: list[float]) -> None:
        """Backs up the best moves' values (MaxUCT): every edge on the path is worth its reward plus what follows.

        W is N times that value, so that W / N is Q whatever the backup.
        """
        node, discount = leaf, discount_of(leaf.state, self.discount)
        while node.parent is not None:
            values = before_move(node, values, discount)
            node.visit_count += 1
            node.total_value = node.visit_count * values[0]
            node = node.parent
            best = best_value(node)
            assert best is not None, "a move of it was visited just now"
            values = [best]
        node.update(values[0])

    def _finish(self, tree: Tree, leaf: MCTSNode, values: list[float], row: TraceRow | None) -> None:
        """Completes a simulation and extends the bounds of the tree."""
        super()._finish(tree, leaf, values, row)
        if self.normalize == "tree":
            tree.widen_bounds(leaf)

    # --- Choosing an action ---------------------------------------------------------------------------------

    def _best_action(self, tree: Tree | MCTSNode) -> int:
        """Returns the best move, corrected by the minimax guard unless the root is proven.

        A root may be given in place of its tree.
        """
        if isinstance(tree, MCTSNode):
            root, random = tree, tree.tree_random()
        else:
            root, random = tree.root, Random(fold(tree.key, tree.simulations), ANSWER)
        chosen = answer.best_move(root, random, self.backup)
        if root.proven is None and self.minimax_depth > 0 and is_zero_sum(root.state):
            chosen = answer.minimax_guard(root, chosen, self.minimax_depth, random)
        return chosen

    def result(self, tree: Tree) -> Result:
        """Returns the current result without changing the tree."""
        action = self._best_action(tree)
        value = value_of(tree.root, self.backup)
        return answer.make_result(tree.root, action, action, tree.simulations, tree.trace, value)
