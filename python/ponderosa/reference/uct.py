"""UCT, the classical Monte Carlo tree search: selection by UCB1, expansion, simulation, back-propagation.

It reads as its specification, in the specification's names, with the traps mended; a comment marked "Trap" stands
wherever this text departs from it, and says why. What is more than the specification: results that are proven
(`solve`), several leaves in flight at once (`in_flight`), and random numbers that can be replayed.

What is no node and no search stands in files of its own, and the main names of these also here: `state` (what a
state says), `playout` (simulation), `lookahead` (forced moves, minimax), `proof` and `answer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ponderosa.reference.answer import Result, describe, guard, lowest, not_lost, visits_of
from ponderosa.reference.lookahead import forced_actions, minimax
from ponderosa.reference.playout import PlayoutPolicy, evaluate, random_playout, simulate_leaves
from ponderosa.reference.proof import note_end, prove_ancestors
from ponderosa.reference.random import ANSWER, SELECT, Random, fold, tree_key
from ponderosa.reference.state import State, end_values, is_zero_sum, listed_actions, rewards_of
from ponderosa.reference.trace import Scores, TraceRow

__all__ = [
    "MCTS",
    "MCTSNode",
    "Tree",
    "Result",
    "State",
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

MOST_ENDS_PER_BATCH = 1024
"""Ends of game are backed up at once while leaves are gathered; this bounds how long one gathering may take."""


# --- The tree ---------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class MCTSNode:
    """A position in the tree, with the statistics of the move that leads to it.

    Trap: the specification says that edge statistics are stored in the parent, and then lists them in the node. In a
    tree this is the same, since a node has one move leading to it: `visit_count` and `total_value` here are those of
    the edge. They belong to the parent's choice, so `total_value` is the sum of values for the player who **chose**
    the move, the one to move in the parent; never for the player to move here. The root was chosen by nobody: its
    `total_value` is for its own player to move.
    """

    state: State
    parent: MCTSNode | None = field(default=None, repr=False)
    forced_depth_left: int = 0
    children: dict[int, MCTSNode] = field(default_factory=dict, repr=False)
    """The opened moves, in the order of opening; scores are looked at in this order."""
    visit_count: int = 0
    total_value: float = 0.0

    action: int | None = None
    """The move that leads here; None at the root."""
    to_play: int = field(init=False)
    untried: list[int] | None = field(default=None, repr=False)
    """The moves not opened yet; None until they are listed, which is when the node is first descended to again."""
    in_flight: int = 0
    """How many leaves below this node, or this one, wait for their values."""
    rewards: list[float] | None = field(init=False)
    end: list[float] | None = field(init=False)
    """The result for each player if the game is over here."""
    proven: int | None = None
    """The exact result for the player to move here, once it is known: -1, 0 or +1."""
    distance: int = 0
    """In how many plies a proven result is reached."""

    def __post_init__(self) -> None:
        self.to_play = self.state.to_play
        self.rewards = rewards_of(self.state)
        self.end = end_values(self.state) if self.state.is_terminal else None

    @property
    def is_waiting(self) -> bool:
        """Whether this is a leaf whose first value is still in flight: nothing can be known below it."""
        return self.parent is not None and self.visit_count == 0 and self.in_flight > 0

    @property
    def proven_for_chooser(self) -> int | None:
        """The exact result for the player who chose the move that leads here (None if not known, or at the root)."""
        if self.proven is None or self.parent is None:
            return None
        # The sign follows whose turn it is: after a double move or a pass both players are the same one.
        return self.proven if self.to_play == self.parent.to_play else -self.proven

    def exact_values(self) -> list[float] | None:
        """The values for each player if they are known exactly: the game is over, or the result is proven."""
        if self.end is not None:
            return self.end
        if self.proven is not None:
            value = float(self.proven)
            return [value, -value] if self.to_play == 0 else [-value, value]
        return None

    def list_actions(self) -> list[int]:
        """The moves not opened yet. The first call asks the state and prunes by forced moves.

        A pruned move is never listed at all, so it cannot keep the node from being fully expanded.
        """
        if self.untried is None:
            self.untried = listed_actions(self.state)
            if self.forced_depth_left > 0:
                self.untried = forced_actions(self.state, self.untried)
        return self.untried

    def expand(self, random: Random) -> MCTSNode:
        """Opens one of the moves not opened yet: the new child."""
        untried = self.list_actions()
        j = random.choose(len(untried))
        untried[0], untried[j] = untried[j], untried[0]
        action = untried.pop(0)
        child = MCTSNode(self.state.play(action), self, max(self.forced_depth_left - 1, 0), action=action)
        self.children[action] = child
        return child

    def score(self, parent_visits: int, c_param: float) -> float:
        """UCB1 of the move that leads here.

        Trap: the constant. The 2 stands inside the root, so `c_param = 1` is the classical sqrt(2) outside of it;
        and values lie in [-1, 1], twice the range UCB1 was made for.

        A leaf in flight counts as a visit, and as a loss where values are plain results in [-1, 1] (with rewards a
        loss has no fixed size). Without it all leaves gathered together would be the same one.
        """
        visits = self.visit_count + self.in_flight
        proven = self.proven_for_chooser
        if proven is not None:
            exploit = float(proven)
        elif self.rewards is None:
            exploit = (self.total_value - self.in_flight) / visits
        else:
            exploit = self.total_value / visits
        explore = math.sqrt(2.0 * math.log(parent_visits) / visits)
        return exploit + c_param * explore

    def best_child(self, c_param: float, random: Random, record: list[Scores | None] | None = None) -> MCTSNode:
        """The child with the highest score, ties broken at random. Proven losses are passed over if anything else is.

        A node's visits are those that passed through it: the first one, which evaluated it, and then one per visit of
        its children. The root is not evaluated and has only the latter.
        """
        candidates = [child for child in self.children.values() if child.proven_for_chooser != -1]
        candidates = candidates or list(self.children.values())
        parent_visits = self.visit_count + self.in_flight
        scores = [child.score(parent_visits, c_param) for child in candidates]
        if record is not None:
            record.append([(_action(child), score) for child, score in zip(candidates, scores, strict=True)])
        best = max(scores)
        ties = [child for child, score in zip(candidates, scores, strict=True) if score == best]
        return ties[random.choose(len(ties))]

    def update(self, value: float) -> None:
        """Counts one visit with its value for the player who chose the move that leads here."""
        self.visit_count += 1
        self.total_value += value


def _action(node: MCTSNode) -> int:
    assert node.action is not None, "only the root has no action"
    return node.action


@dataclass(slots=True)
class Tree:
    """A search under way: its root, the key of its random numbers, and how many simulations are done."""

    root: MCTSNode
    key: int
    simulations: int = 0
    trace: list[TraceRow] | None = None


@dataclass(slots=True)
class _Pending:
    """A leaf in flight."""

    leaf: MCTSNode
    sim_key: int
    row: TraceRow | None


# --- The search -------------------------------------------------------------------------------------------------


class MCTS:
    """UCT with the specification's parameters.

    `max_depth` cuts playouts; `evaluator` values the leaf itself (`max_depth` None or 0) or the position where the
    playout was cut; `playout_policy` chooses the moves of playouts; `minimax_depth` guards the answer;
    `forced_depth` is how many plies below the root forced moves are looked for. With `solve=False`, `in_flight=1`
    this is the specification to the letter.
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
    ) -> None:
        for name, number, least in (
            ("num_simulations", num_simulations, 0),
            ("max_depth", max_depth or 0, 0),
            ("minimax_depth", minimax_depth, 0),
            ("forced_depth", forced_depth, 0),
            ("in_flight", in_flight, 1),
        ):
            if number < least:
                raise ValueError(f"{name} must be at least {least}, not {number}")
        if not (math.isfinite(c_param) and c_param >= 0.0):
            raise ValueError(f"c_param must be finite and not negative, not {c_param}")
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
        self.calls = 0

    def search(self, state: State) -> int:
        """The move to play. Calls are numbered, so that searching the same state again draws new numbers."""
        result = self.run(state, call=self.calls)
        self.calls += 1
        return result.action

    def run(self, state: State, call: int = 0, row: int = 0, *, trace: bool = False) -> Result:
        """One whole search from `state`: the `row`-th tree of the `call`-th call."""
        tree = self.tree(state, call, row, trace=trace)
        self.simulate(tree, self.num_simulations)
        return self.result(tree)

    def tree(self, state: State, call: int = 0, row: int = 0, *, trace: bool = False) -> Tree:
        """A tree of the root alone."""
        if state.is_terminal:
            raise ValueError("the game is over: there is nothing to search")
        root = MCTSNode(state, forced_depth_left=self.forced_depth if is_zero_sum(state) else 0)
        return Tree(root, tree_key(self.seed, call, row), trace=[] if trace else None)

    def simulate(self, tree: Tree, num_simulations: int) -> None:
        """So many more simulations; fewer if the root is proven. If a game or an evaluator raises, drop the tree."""
        limit = tree.simulations + num_simulations
        while tree.simulations < limit and tree.root.proven is None:
            pending = self._gather(tree, limit)
            leaves = [(p.leaf.state, _chooser(p.leaf), p.sim_key) for p in pending]
            values = simulate_leaves(leaves, self.max_depth, self.evaluator, self.playout_policy)
            for waiting, leaf_values in zip(pending, values, strict=True):
                self._mark_in_flight(waiting.leaf, -1)
                self._finish(tree, waiting.leaf, leaf_values, waiting.row)

    def _gather(self, tree: Tree, limit: int) -> list[_Pending]:
        """Descends until `in_flight` leaves wait for values; what needs no evaluation is finished on the way."""
        root = tree.root
        pending: list[_Pending] = []
        ends = 0
        while (
            len(pending) < self.in_flight
            and tree.simulations + len(pending) < limit
            and ends < MOST_ENDS_PER_BATCH
            and root.proven is None
        ):
            simulation = tree.simulations + len(pending)
            sim_key = fold(tree.key, simulation)
            random = Random(sim_key, SELECT)
            scores: list[Scores | None] = []
            leaf = self._select(root, random, scores if tree.trace is not None else None)
            if leaf.is_waiting:
                # It has no value yet to choose by. Nothing was changed on the way down, so there is nothing to undo,
                # and the simulation number was not used up: the next batch begins with it.
                break
            if leaf.exact_values() is None:
                leaf = leaf.expand(random)
                scores.append(None)
                if self.solve:
                    note_end(leaf)
            row: TraceRow | None = None
            if tree.trace is not None:
                row = {"simulation": simulation, "path": _path(leaf), "scores": scores, "values": []}
                tree.trace.append(row)
            exact = leaf.exact_values()
            if exact is None:
                self._mark_in_flight(leaf, +1)
                pending.append(_Pending(leaf, sim_key, row))
            else:
                self._finish(tree, leaf, exact, row)
                prove_ancestors(leaf)
                ends += 1
        return pending

    def _select(self, root: MCTSNode, random: Random, record: list[Scores | None] | None = None) -> MCTSNode:
        """Walks down from the root to a node that has a move to open, or below which nothing is to be chosen.

        The latter is an end, a proven result, or a leaf already in flight.
        """
        node = root
        while node.exact_values() is None and not node.is_waiting and not node.list_actions():
            node = node.best_child(self.c_param, random, record)
        return node

    def _finish(self, tree: Tree, leaf: MCTSNode, values: list[float], row: TraceRow | None) -> None:
        """The last step of a simulation."""
        if row is not None:
            row["values"] = list(values)
        self._backpropagate(leaf, values)
        tree.simulations += 1

    def _backpropagate(self, leaf: MCTSNode, values: Sequence[float]) -> None:
        """Adds the values of a leaf, one per player, to every move on the way back to the root.

        Trap: the specification flips the sign at each step "because turns alternate". They do not after a pass, in a
        double move, or with one or three players. Here every move takes the value of the player who chose it.
        """
        values = list(values)
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

    def _mark_in_flight(self, leaf: MCTSNode, change: int) -> None:
        """Counts a leaf in flight on its whole path (+1), or takes it back (-1)."""
        node: MCTSNode | None = leaf
        while node is not None:
            node.in_flight += change
            node = node.parent

    # --- Choosing an action ---------------------------------------------------------------------------------

    def _best_action(self, tree: Tree) -> int:
        """The most visited move. A proven root is played exactly: the shortest win, or the longest defence."""
        root = tree.root
        random = Random(fold(tree.key, tree.simulations), ANSWER)
        children = root.children
        if root.proven is not None:
            actions = [action for action, child in children.items() if child.proven_for_chooser == root.proven]
            if root.proven == 1:
                actions = lowest(actions, lambda action: children[action].distance)
            elif root.proven == -1:
                actions = lowest(actions, lambda action: -children[action].distance)
            if root.proven != 1:
                actions = lowest(actions, lambda action: -children[action].visit_count)
            return actions[random.choose(len(actions))]
        most_visited = lowest(not_lost(root), lambda action: -visits_of(root, action))
        chosen = most_visited[random.choose(len(most_visited))]
        if self.minimax_depth > 0 and is_zero_sum(root.state):
            chosen = guard(root, chosen, self.minimax_depth, random)
        return chosen

    def result(self, tree: Tree) -> Result:
        """What the tree says so far; asking does not change it."""
        return describe(tree.root, self._best_action(tree), tree.simulations, tree.trace)


def _chooser(leaf: MCTSNode) -> int:
    """The player who chose the move to a leaf."""
    assert leaf.parent is not None, "the root is never a leaf to evaluate"
    return leaf.parent.to_play


def _path(node: MCTSNode) -> list[int]:
    """The actions from the root to `node`."""
    path: list[int] = []
    while node.parent is not None:
        path.append(_action(node))
        node = node.parent
    return path[::-1]
