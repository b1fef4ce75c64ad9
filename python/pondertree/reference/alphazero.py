"""AlphaZero's search: PUCT selection with the priors of a network, whose value replaces the playout.

Names are those of the AlphaZero chess specification; a comment marked "Trap" explains each deviation. Additions:
first-play urgency (`fpu`), the definition of N(s) (`parent_visits`), forced playouts, proofs (`solve`), leaf batches
under virtual loss (`in_flight`), tree reuse (`advance`) and reproducible random numbers. `solve=False` with all other
defaults is the specification to the letter.

This module also exports the main names of `node`, `priors`, `noise` and `answer`; the simulation loop is in
`search_loop`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from pondertree.config import parse_tagged_number
from pondertree.games.chance import refuse_chance
from pondertree.games.chess_interop import adapt_state, to_state
from pondertree.games.game_state import State
from pondertree.random import OUTCOME, Random, fold, tree_key
from pondertree.reference import answer, search_loop
from pondertree.reference.answer import policy_at
from pondertree.reference.chance import ChanceRule
from pondertree.reference.node import Node
from pondertree.reference.noise import dirichlet
from pondertree.reference.planning import (
    Scale,
    before_move,
    best_value,
    check_planning,
    check_players,
    discount_of,
    mean_for_chooser,
    normalized,
    scale_of,
    value_of,
)
from pondertree.reference.priors import Rollout, Uniform, evaluate_positions, float32, highest, priors_of
from pondertree.reference.search_loop import NO_INPUT, NoisySearch, PendingLeaf, RootInput, at_least, not_negative
from pondertree.reference.terms import How, Record, puct
from pondertree.reference.tree import SearchTree
from pondertree.trace import ChoiceTerms, TraceRow
from pondertree.validation import number, positive_number

__all__ = [
    "MCTS",
    "Node",
    "Tree",
    "Result",
    "Uniform",
    "Rollout",
    "evaluate_positions",
    "priors_of",
    "float32",
    "dirichlet",
    "policy_at",
]

ROOT_EVALUATION = 2**64 - 1
"""The index that keys the random numbers of the root evaluation, which is not a simulation."""


Tree = search_loop.Tree[Node]
Result = answer.Result[Node]


@dataclass(eq=False, repr=False)
class MCTS(NoisySearch[Node]):
    """AlphaZero's search with the parameters of the AlphaZero chess specification.

    `neural_network` has `evaluate_states(states) -> (logits, values)`, or `evaluate(observations)` with the same
    result, as `ChessNN` has. Logits are over all actions (None for uniform priors), or probabilities if its attribute
    `policy` is "probabilities"; values are for the player to move, or one per player. A game is a state, or in chess a
    `ChessGame` or a `chess.Board`.

    `dirichlet_alpha` is the concentration per move, or `("total", alpha)`, which is divided by the number of moves.
    `fpu` is the value of an unvisited move, or `("parent", reduction)`, which is subtracted from the parent's value.
    `parent_visits` defines N(s): "node", the visits of the node; "edges", the sum over its moves. With
    `forced_playouts` k, visited moves of the root get at least sqrt(k * P * N) simulations. Outcomes of chance nodes
    are visited as `chance` says: "balanced" up to `chance_width` outcomes, or by "sample". `normalize`, `discount` and
    `backup` are those of `planning`; with `normalize`, `fpu` is on the scale of the tree.
    """

    rule: ClassVar[str] = "puct"
    """The name of the scoring rule in traces."""

    neural_network: Any
    num_simulations: int = 100
    c_puct: float = 1.0
    dirichlet_alpha: float | tuple[str, float] = 0.3
    dirichlet_epsilon: float = 0.25
    _: KW_ONLY
    fpu: float | tuple[str, float] = 0.0
    parent_visits: str = "node"
    forced_playouts: float = 0.0
    normalize: str | None = None
    discount: float = 1.0
    backup: str = "mean"
    seed: int = 0
    solve: bool = True
    in_flight: int = 1
    chance: str = "balanced"
    chance_width: int = 36
    calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        at_least(0, num_simulations=self.num_simulations)
        at_least(1, in_flight=self.in_flight)
        not_negative(c_puct=self.c_puct, forced_playouts=self.forced_playouts)
        check_planning(self.normalize, self.discount, self.backup)
        self.alpha_is_total, alpha = parse_tagged_number(self.dirichlet_alpha, "dirichlet_alpha", "total")
        self.alpha = positive_number(alpha, "dirichlet_alpha")
        self.fpu_is_relative, self.fpu_number = parse_tagged_number(self.fpu, "fpu", "parent")
        self.epsilon = number(self.dirichlet_epsilon, "dirichlet_epsilon", least=0.0, most=1.0)
        if self.parent_visits not in ("node", "edges"):
            raise ValueError(f'parent_visits must be "node" or "edges", not {self.parent_visits!r}')
        self.chance_rule = ChanceRule(self.chance, self.chance_width)

    def search(self, game: Any, temperature: float = 1.0, add_noise: bool = False) -> Any:
        """Runs the search and returns the selected move: an int, or a `chess.Move` for a `ChessGame` or a board."""
        return self.get_policy(game, temperature, add_noise)[0]

    def get_policy(self, game: Any, temperature: float = 1.0, add_noise: bool = False) -> tuple[Any, list[float]]:
        """Returns the selected move and the visit distribution over all actions (0 for illegal ones).

        Each call draws new random numbers.

        Trap: in the AlphaZero chess specification the visits of the moves sum to one less than the number of
        simulations, so the distribution is 0 / 0 after one simulation. Here the evaluation of the root is not a
        simulation, and every simulation visits a child. Without any simulation the distribution is uniform.
        """
        state, answer_as = adapt_state(game)
        result = self.run(state, self.calls, temperature=temperature, add_noise=add_noise)
        self.calls += 1
        size = getattr(state, "num_actions", 1 + max(result.policy))
        return answer_as(result.action), [result.policy.get(action, 0.0) for action in range(size)]

    def run(
        self,
        game: Any,
        call: int = 0,
        row: int = 0,
        *,
        temperature: float = 0.0,
        add_noise: bool = False,
        **given: Any,
    ) -> Result:
        """Searches from `game`; (`seed`, `call`, `row`) key the random numbers, `given` are those of `tree`."""
        tree = self.tree(game, call, row, **given)
        self.simulate(tree, self.num_simulations, add_noise)
        return self.result(tree, temperature)

    def tree(
        self, game: Any, call: int = 0, row: int = 0, *, trace: bool = False, root_actions: Sequence[int] | None = None
    ) -> Tree:
        """Creates a tree that consists of the root, restricted to `root_actions`."""
        root = self._make_root(to_state(game), RootInput(root_actions=root_actions))
        return Tree(root, tree_key(self.seed, call, row), trace=[] if trace else None)

    def advance(self, tree: Tree, action: int) -> None:
        """Plays `action` and keeps its subtree. Simulations continue to be counted, which keys the random numbers."""
        tree.root, tree.first_simulation = self._advance_root(tree.root, action), tree.simulations
        if self.normalize == "tree":
            tree.reset_bounds()

    def _make_root(self, state: State, root_input: RootInput = NO_INPUT) -> Node:
        refuse_chance(state)
        check_players(self.backup, state.num_players)
        return Node.of_root(state, root_input.root_actions)

    def _advance_root(self, root: Node, action: int, root_input: RootInput = NO_INPUT) -> Node:
        return root.after(action)

    def _evaluate_root(self, tree: Tree) -> None:
        root = tree.root
        request = root.state, 0, fold(tree.key, ROOT_EVALUATION)
        legal = None if root.root_actions is None else [root.root_actions]
        discount = discount_of(root.state, self.discount)
        ((priors, values),) = evaluate_positions(self.neural_network, [request], legal, discount)
        self._expand(root, priors, values)
        self._backpropagate(root, values)

    def _uniform_root(self, root: Node) -> Node:
        return root.with_uniform_priors()

    # --- The four steps of a simulation ---------------------------------------------------------------------

    def _descend(self, tree: SearchTree[Node], random: Random, record: Record | None, outcome_random: Random) -> Node:
        """Selection from the root, on values normalised by the bounds of the tree if `normalize` says so."""
        return self._select(
            tree.root, random, record, outcome_random, scale_of(tree) if self.normalize == "tree" else None
        )

    def _select(
        self,
        root: Node,
        random: Random,
        record: Record | None = None,
        outcome_random: Random | None = None,
        scale: Scale | None = None,
    ) -> Node:
        """SELECT: descends by the highest score to a leaf, an end or a proven node; ties are broken at random.

        At chance nodes the descent follows an outcome, sampled from `outcome_random` or balanced (`chance`).
        """
        node = root
        while node.children and node.proven is None:
            if node.is_chance:
                node = node.try_move(self.chance_rule.choose(node, outcome_random or Random(0, OUTCOME), record))
                continue
            scores = self._scores(node, scale)
            forced = self._forced(node) if node is root and self.forced_playouts > 0.0 else None
            if record is not None:
                terms = self._choice_terms(node, node is root, "score" if forced is None else "forced", scale)
                record.append((list(scores.items()), terms))
            chosen = highest(scores, random)
            node = node.try_move(chosen if forced is None else forced)
        return node

    def _forced(self, root: Node) -> int | None:
        """Returns the visited, unproven move with fewer than sqrt(k * P * N) visits; None if there is none.

        Forced playouts (Wu 2019, section 3.2). N is the sum of visits over all moves. Of several moves the one with the
        highest prior is forced, then the lowest action.
        """
        total = root.visit_count + root.in_flight - 1
        best: tuple[float, int] | None = None
        for action, child in root.children.items():
            n = child.visit_count + child.in_flight
            if n == 0 or child.proven is not None or n >= math.sqrt(self.forced_playouts * child.prior * total):
                continue
            if best is None or (child.prior, -action) > best:
                best = child.prior, -action
        return None if best is None else -best[1]

    def _urgency(self, node: Node, scale: Scale | None) -> float:
        """Returns the value of an unvisited move of `node`, on the scale of the tree if there is one.

        Trap: 0 for an unvisited move is optimistic in a lost position and pessimistic in a won one.
        """
        if not self.fpu_is_relative:
            return self.fpu_number
        value = value_of(node, self.backup)
        return (value if scale is None else normalized(value, scale)) - self.fpu_number

    def _choice_terms(self, node: Node, is_root: bool, how: How, scale: Scale | None = None) -> ChoiceTerms:
        """Returns what the scores of a choice are made of."""
        visits = node.visit_count + node.in_flight
        weight = self._exploration(max(visits - 1, 1) if self.parent_visits == "edges" else visits)
        urgency = self._urgency(node, scale)
        k = self.forced_playouts
        forced = {action: math.sqrt(k * child.prior * (visits - 1)) for action, child in node.children.items()}
        edges = [(child.edge_terms(action), child) for action, child in node.children.items()]
        return puct(node, self.rule, edges, weight, urgency, forced if is_root and k > 0.0 else None, how, scale)

    def _scores(self, node: Node, scale: Scale | None = None) -> dict[int, float]:
        """Returns PUCT(child) = Q(child) + c_puct * P(child) * sqrt(N_parent) / (1 + N(child)) of each move.

        Q is for the player to move at `node`. Proven losses are skipped unless all moves lose. A leaf in flight counts
        as a visit in both N, and in Q as a loss for the chooser; in Q on the scale of the tree it does not count.

        Trap: "N(s) = sum over the moves" is 0 at the first selection, which would ignore the priors. The visits of a
        node include its own evaluation; with `parent_visits="edges"` the sum is at least 1.
        """
        visits = node.visit_count + node.in_flight
        if self.parent_visits == "edges":
            visits = max(visits - 1, 1)
        exploration = self._exploration(visits)
        unvisited = self._urgency(node, scale)
        lost = {action for action, child in node.children.items() if child.proven_for_chooser == -1}
        scores: dict[int, float] = {}
        for action, child in node.children.items():
            if action in lost and len(lost) < len(node.children):
                continue
            n = child.visit_count + child.in_flight
            if scale is not None:
                mean = mean_for_chooser(child)
                q = unvisited if mean is None else normalized(mean, scale)
            else:
                q = unvisited if n == 0 and child.proven is None else child.expected_for_chooser()
            scores[action] = q + exploration * child.prior / (1.0 + n)
        return scores

    def _exploration(self, visits: int) -> float:
        """Returns the factor of P(child) / (1 + N(child))."""
        return self.c_puct * math.sqrt(visits)

    def _evaluate(self, tree: Tree, pending: Sequence[PendingLeaf[Node]], target: int) -> list[list[float]]:
        """EXPAND and EVALUATE: evaluates all pending leaves in one batch."""
        leaves = [pending_leaf.request for pending_leaf in pending]
        discount = discount_of(tree.root.state, self.discount)
        evaluations = evaluate_positions(self.neural_network, leaves, discount=discount)
        for pending_leaf, (priors, values) in zip(pending, evaluations, strict=True):
            self._expand(pending_leaf.leaf, priors, values)
        return [values for _, values in evaluations]

    def _expand(self, leaf: Node, priors: dict[int, float], values: Sequence[float]) -> None:
        """Creates a child with its prior for each legal move, and stores the network's value."""
        leaf.expand(priors)
        leaf.raw_value = values[leaf.to_play]

    def _backpropagate(self, leaf: Node, values: Sequence[float]) -> None:
        """BACKUP: at each node on the path to the root, N += 1 and W += the value for its player to move.

        Trap: the specifications negate the value at each level, the PUCT mathematics counting levels from the root
        instead of the leaf. Players do not alternate after a pass, in a double move, or with one or three of them. Here
        the values of all players are backed up, and each node takes that of its player to move.
        """
        values = list(values)
        if self.backup == "max":
            self._back_up_best(leaf, values)
            return
        discount = discount_of(leaf.state, self.discount)
        node: Node | None = leaf
        while node is not None:
            node.visit_count += 1
            node.total_value += values[node.owner]
            if node.parent is not None:
                values = before_move(node, values, discount)
                if node.chooser_value is None and discount < 1.0:
                    node.chooser_value = 0.0  # it no longer follows from `total_value`
                if node.chooser_value is not None:
                    node.chooser_value += values[node.chooser]
            node = node.parent

    def _back_up_best(self, leaf: Node, values: list[float]) -> None:
        """Backs up the best moves' values (MaxUCT): a node is worth its best visited move, a leaf its own value.

        W is N times that value, so that W / N is Q whatever the backup.
        """
        discount = discount_of(leaf.state, self.discount)
        node: Node | None = leaf
        while node is not None:
            best = best_value(node)
            values = values if best is None else [best]
            node.visit_count += 1
            node.total_value = node.visit_count * values[0]
            if node.parent is not None:
                values = before_move(node, values, discount)
                node.chooser_value = node.visit_count * values[0]
            node = node.parent

    def _finish(self, tree: SearchTree[Node], leaf: Node, values: list[float], row: TraceRow | None) -> None:
        """Completes a simulation and extends the bounds of the tree."""
        super()._finish(tree, leaf, values, row)
        if self.normalize == "tree":
            tree.widen_bounds(leaf)

    def _best_move(self, tree: Tree, root: Node, random: Random) -> int:
        """Returns the move at temperature 0: the most visited one, or that of the highest Q (`backup="max"`)."""
        return answer.best_move(root, random, self.backup)

    def _value_of(self, root: Node) -> float:
        """Returns the value of a root for its player to move."""
        return value_of(root, self.backup)
