"""UCT, the classical Monte Carlo tree search: selection by UCB1, expansion, simulation, back-propagation.

It reads as its specification, in the specification's names, with the traps mended; a comment marked "Trap" stands
wherever this text departs from it, and says why. What is more than the specification: results that are proven
(`solve`), several leaves in flight at once (`in_flight`), and random numbers that can be replayed.

What is no node and no search stands in files of its own, and the main names of these also here: `state` (what a
state says), `playout` (simulation), `lookahead` (forced moves, minimax), `tree` (what nodes of all searches have),
`gather` (leaves in flight), `proof` and `answer`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from pondertree.random import ANSWER, SELECT, Random, fold, tree_key
from pondertree.reference import answer
from pondertree.reference.search_loop import Gathering, at_least, not_negative
from pondertree.reference.trace import Scores
from pondertree.reference.tree import SearchTree, TreeNode

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
    """A position in the tree, with the statistics of the move that leads to it.

    Trap: the specification says that edge statistics are stored in the parent, and then lists them in the node. In a
    tree this is the same, since a node has one move leading to it: `visit_count` and `total_value` here are those of
    the edge. They belong to the parent's choice, so `total_value` is the sum of values for the player who **chose**
    the move, the one to move in the parent; never for the player to move here. The root was chosen by nobody: its
    `total_value` is for its own player to move.
    """

    state: State
    """The position after the move leading here; a dict in a search that was given a `game` (see `DictState`)."""
    parent: MCTSNode | None = field(default=None, repr=False)
    forced_depth_left: int = 0
    children: dict[int, MCTSNode] = field(default_factory=dict, repr=False)
    """The opened moves, in the order of opening; scores are looked at in this order."""
    visit_count: int = 0
    total_value: float = 0.0

    action: int | None = None
    to_play: int = field(init=False)
    untried: list[int] | None = field(default=None, repr=False)
    """The moves not opened yet; None until they are listed, which is when the node is first descended to again."""
    in_flight: int = 0
    rewards: list[float] | None = field(init=False)
    end: list[float] | None = field(init=False)
    proven: int | None = None
    distance: int = 0
    own_random: Random | None = field(default=None, init=False, repr=False)
    """Of a root whose nodes are expanded and chosen from by hand: where their random numbers come from."""

    def __post_init__(self) -> None:
        self.to_play = self.state.to_play
        self.rewards = rewards_of(self.state)
        self.end = None if self.parent is None else end_in_search(self.state)

    @property
    def total_for_chooser(self) -> float:
        """`total_value`, which is theirs already."""
        return self.total_value

    @property
    def mean_value(self) -> float:
        """The value of the position for the player to move here: the mean of what its moves brought, 0 without any."""
        total, visits = self.sum_of_moves()
        return total / visits if visits else 0.0

    def list_actions(self, root_actions: Collection[int] | None = None) -> list[int]:
        """The moves not opened yet. The first call asks the state, of `root_actions` alone, and prunes by forced moves.

        A pruned move is never listed at all, so it cannot keep the node from being fully expanded.
        """
        if self.untried is None:
            self.untried = actions_among(listed_actions(self.state), root_actions)
            if self.forced_depth_left > 0:
                self.untried = forced_actions(self.state, self.untried)
        return self.untried

    def expand(self, random: Random | None = None) -> MCTSNode:
        """Opens one of the moves not opened yet: the new child.

        Without `random`, the numbers are those of the tree's own generator, the same ones for every tree.
        """
        untried = self.list_actions()
        if not untried:
            raise ValueError("the node is fully expanded: all its moves have a child")
        j = (random or self.tree_random()).choose(len(untried))
        untried[0], untried[j] = untried[j], untried[0]
        action = untried.pop(0)
        child = MCTSNode(self.state.play(action), self, max(self.forced_depth_left - 1, 0), action=action)
        self.children[action] = child
        return child

    def score(self, parent_visits: int, c_param: float) -> float:
        """UCB1 of the move that leads here.

        Trap: the constant. The 2 stands inside the root, so `c_param = 1` is the classical sqrt(2) outside of it;
        and values lie in [-1, 1], twice the range UCB1 was made for.

        A leaf in flight counts as a visit. A move without any comes before all others.
        """
        visits = self.visit_count + self.in_flight
        if visits == 0:
            return math.inf
        explore = math.sqrt(2.0 * math.log(parent_visits) / visits)
        return self.expected_for_chooser() + c_param * explore

    def best_child(
        self, c_param: float = 1.0, random: Random | None = None, record: list[Scores | None] | None = None
    ) -> MCTSNode:
        """The child with the highest score, ties broken at random. Proven losses are passed over if anything else is.

        Without `random`, the numbers are those of the tree's own generator, the same ones for every tree.

        A node's visits are those that passed through it: the first one, which evaluated it, and then one per visit of
        its children. The root is not evaluated and has only the latter.
        """
        if not self.children:
            raise ValueError("the node has no children: expand it first")
        candidates = {action: child for action, child in self.children.items() if child.proven_for_chooser != -1}
        candidates = candidates or self.children
        parent_visits = max(self.visit_count + self.in_flight, 1)
        scores = [(action, child.score(parent_visits, c_param)) for action, child in candidates.items()]
        if record is not None:
            record.append(scores)
        best = max(score for _, score in scores)
        ties = [action for action, score in scores if score == best]
        return candidates[ties[(random or self.tree_random()).choose(len(ties))]]

    def tree_random(self) -> Random:
        """The generator of the tree that this node is in, for whoever gives none."""
        root = self
        while root.parent is not None:
            root = root.parent
        if root.own_random is None:
            root.own_random = Random(0, SELECT)
        return root.own_random

    def update(self, value: float) -> None:
        """Counts one visit with its value for the player who chose the move that leads here."""
        self.visit_count += 1
        self.total_value += value


Tree = SearchTree[MCTSNode]
Result = answer.Result[MCTSNode]


# --- The search -------------------------------------------------------------------------------------------------


class MCTS(Gathering[MCTSNode]):
    """UCT with the specification's parameters.

    `max_depth` cuts playouts; `evaluator` values the leaf itself (`max_depth` None or 0) or the position where the
    playout was cut; `playout_policy` chooses the moves of playouts; `minimax_depth` guards the answer;
    `forced_depth` is how many plies below the root forced moves are looked for. With `solve=False`, `in_flight=1`
    this is the specification to the letter. With a `game` of functions, states are plain dicts: see `DictState`.
    """

    def __init__(
        self,
        num_simulations: int = 1000,
        c_param: float = 1.0,
        max_depth: int | None = None,
        evaluator: Any = None,
        playout_policy: PlayoutPolicy | None = None,
        minimax_depth: int = 0,
        forced_depth: int = 0,
        *,
        seed: int = 0,
        solve: bool = True,
        in_flight: int = 1,
        game: Any = None,
    ) -> None:
        at_least(0, num_simulations=num_simulations, max_depth=max_depth or 0)
        at_least(0, minimax_depth=minimax_depth, forced_depth=forced_depth)
        at_least(1, in_flight=in_flight)
        not_negative(c_param=c_param)
        self.num_simulations = num_simulations
        self.c_param = c_param
        self.max_depth = max_depth
        self.evaluator = evaluator
        self.playout_policy = playout_policy
        self.minimax_depth = minimax_depth
        self.forced_depth = forced_depth
        self.seed = seed
        self.solve = solve
        self.in_flight = in_flight
        self.game = game
        self.calls = 0

    def search(self, state: Any) -> int:
        """The move to play. Calls are numbered, so that searching the same state again draws new numbers."""
        result = self.run(state, call=self.calls)
        self.calls += 1
        return result.action

    def run(
        self,
        state: Any,
        call: int = 0,
        row: int = 0,
        *,
        trace: bool = False,
        root_actions: Collection[int] | None = None,
    ) -> Result:
        """One whole search from `state`: the `row`-th tree of the `call`-th call; of `root_actions` alone, if given."""
        tree = self.tree(state, call, row, trace=trace, root_actions=root_actions)
        self.simulate(tree, self.num_simulations)
        return self.result(tree)

    def tree(
        self,
        state: Any,
        call: int = 0,
        row: int = 0,
        *,
        trace: bool = False,
        root_actions: Collection[int] | None = None,
    ) -> Tree:
        """A tree of the root alone."""
        state = self._state(state)
        refuse_end(state)
        root = MCTSNode(state, forced_depth_left=self.forced_depth if is_zero_sum(state) else 0)
        if root_actions is not None:
            root.list_actions(root_actions)
        return Tree(root, tree_key(self.seed, call, row), trace=[] if trace else None)

    def simulate(self, tree: Tree, num_simulations: int) -> None:
        """So many more simulations; fewer if the root is proven. If a game or an evaluator raises, drop the tree."""
        limit = tree.simulations + num_simulations
        while tree.simulations < limit and tree.root.proven is None:
            pending = self._gather(tree, limit)
            leaves = [waiting.question for waiting in pending]
            values = simulate_leaves(leaves, self.max_depth, self.evaluator, self.playout_policy, tree.playouts)
            for waiting, leaf_values in zip(pending, values, strict=True):
                self._mark_in_flight(waiting.leaf, -1)
                self._finish(tree, waiting.leaf, leaf_values, waiting.row)

    def _state(self, state: Any) -> State:
        """A state as the search wants it: a dict gets the functions of the game."""
        if hasattr(state, "legal_actions"):
            own: State = state
            return own
        if self.game is None:
            raise ValueError(f"a state that is a {type(state).__name__} needs the functions of its game: give game=")
        return DictState(state, self.game)

    def _select(
        self, root: MCTSNode, random: Random | None = None, record: list[Scores | None] | None = None
    ) -> MCTSNode:
        """Walks down from the root to a node that has a move to open, or below which nothing is to be chosen.

        The latter is an end, a proven result, or a leaf already in flight.
        """
        node = root
        while node.exact_values() is None and not node.is_waiting and not node.list_actions():
            node = node.best_child(self.c_param, random, record)
        return node

    def _open(self, leaf: MCTSNode, random: Random, record: list[Scores | None] | None) -> MCTSNode:
        """Opens a move of the node where a descent has ended, unless nothing is left to find out there."""
        if leaf.exact_values() is not None:
            return leaf
        if record is not None:
            record.append(None)
        return leaf.expand(random)

    def _backpropagate(self, leaf: MCTSNode, values: Sequence[float] | float) -> None:
        """Adds the values of a leaf, one per player, to every move on the way back to the root.

        One number is for the player who chose the move to the leaf, as in the specification; the other player of two
        gets its negative.

        Trap: the specification flips the sign at each step "because turns alternate". They do not after a pass, in a
        double move, or with one or three players. Here every move takes the value of the player who chose it.
        """
        values = _for_each_player(leaf, values)
        node: MCTSNode | None = leaf
        while node is not None:
            if node.parent is None:
                node.update(values[node.to_play])
            else:
                if node.rewards is not None:
                    # The reward of the move that leads here belongs to that move and to all before it.
                    values = [r + v for r, v in zip(node.rewards, values, strict=True)]
                node.update(values[node.parent.to_play])
            node = node.parent

    # --- Choosing an action ---------------------------------------------------------------------------------

    def _best_action(self, tree: Tree | MCTSNode) -> int:
        """The best move, which is played exactly if the root is proven; if not, minimax may correct it.

        A root that was searched by hand may be given alone.
        """
        if isinstance(tree, MCTSNode):
            root, random = tree, tree.tree_random()
        else:
            root, random = tree.root, Random(fold(tree.key, tree.simulations), ANSWER)
        chosen = answer.best_move(root, random)
        if root.proven is None and self.minimax_depth > 0 and is_zero_sum(root.state):
            chosen = answer.guard(root, chosen, self.minimax_depth, random)
        return chosen

    def result(self, tree: Tree) -> Result:
        """What the tree says so far; asking does not change it."""
        action = self._best_action(tree)
        return answer.describe(tree.root, action, action, tree.simulations, tree.trace)


def _for_each_player(leaf: MCTSNode, values: Sequence[float] | float) -> list[float]:
    """Values, one per player; one number is that of the player who chose the move to the leaf."""
    if not isinstance(values, (int, float)):
        return list(values)
    if leaf.state.num_players > 2:
        raise ValueError(f"one value for {leaf.state.num_players} players: give one for each")
    player = leaf.to_play if leaf.parent is None else leaf.chooser
    return [float(values) if each == player else -float(values) for each in range(leaf.state.num_players)]
