"""The search of AlphaZero: a network's policy says where to look, its value what was found there; no playouts.

It reads as its specification, in the specification's names, with the traps mended; a comment marked "Trap" stands
wherever this text departs from it, and says why. What is more than the specification: what a move never tried is
worth (`fpu`), what N(s) counts (`parent_visits`), results that are proven (`solve`), several leaves in flight at once
(`in_flight`), a tree that is kept from move to move (`advance`), and random numbers that can be replayed.

With `solve=False` and everything else left alone this is the specification to the letter.

What other searches have too stands in files of its own, and the main names of these also here: `planning` (the loop,
noise at the root, the result), `node` (the tree), `network` (policy and value of a position), `policy` (priors, draws),
`noise`, `gather` (leaves in flight) and `answer`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from pondertree.games.chess_interop import adapt_state, to_state
from pondertree.games.game_state import State
from pondertree.random import Random, fold, tree_key
from pondertree.reference import answer, search_loop
from pondertree.reference.answer import policy_at
from pondertree.reference.network import Rollout, Uniform, consult
from pondertree.reference.node import Node
from pondertree.reference.noise import dirichlet
from pondertree.reference.policy import float32, highest, priors_of
from pondertree.reference.search_loop import (
    NOTHING,
    NoisySearch,
    Pending,
    Told,
    at_least,
    check_noise,
    not_negative,
    tagged,
)
from pondertree.reference.trace import Scores

__all__ = [
    "MCTS",
    "Node",
    "Tree",
    "Result",
    "Uniform",
    "Rollout",
    "consult",
    "priors_of",
    "float32",
    "dirichlet",
    "policy_at",
]

ROOT_EVALUATION = 2**64 - 1
"""The number under which the evaluation of the root draws, since it is no simulation."""


Tree = search_loop.Tree[Node]
Result = answer.Result[Node]


class MCTS(NoisySearch[Node]):
    """The search with the specification's parameters.

    `neural_network` has `evaluate_states(states) -> (logits, values)`: a number for every action of each state (None:
    all moves are alike), and a value for the player to move, or one per player; or `evaluate(observations)` with the
    same answer, as a `ChessNN` has. With an attribute `policy` that says "probabilities", the numbers are that. A game
    is a state, or in chess a `ChessGame` or a `chess.Board`.

    `dirichlet_alpha` is the concentration of each move, or `("total", alpha)` of all together. A move never tried is
    worth `fpu`: a number, or `("parent", reduction)` for the value of its position less so much. `parent_visits`
    says what N(s) counts: "node", the visits of the node; "edges", those of its moves. With `forced_playouts` k, moves
    of the root that were tried get sqrt(k * P * N) simulations at least.
    """

    def __init__(
        self,
        neural_network: Any,
        num_simulations: int = 100,
        c_puct: float = 1.0,
        dirichlet_alpha: float | tuple[str, float] = 0.3,
        dirichlet_epsilon: float = 0.25,
        *,
        fpu: float | tuple[str, float] = 0.0,
        parent_visits: str = "node",
        forced_playouts: float = 0.0,
        seed: int = 0,
        solve: bool = True,
        in_flight: int = 1,
    ) -> None:
        at_least(0, num_simulations=num_simulations)
        at_least(1, in_flight=in_flight)
        not_negative(c_puct=c_puct, forced_playouts=forced_playouts)
        self.spread_alpha, self.alpha = tagged(dirichlet_alpha, "dirichlet_alpha", "total")
        self.fpu_of_parent, self.fpu = tagged(fpu, "fpu", "parent")
        check_noise(self.alpha, dirichlet_epsilon, "dirichlet_alpha", "dirichlet_epsilon")
        if parent_visits not in ("node", "edges"):
            raise ValueError(f'parent_visits must be "node" or "edges", not {parent_visits!r}')
        self.neural_network = neural_network
        self.num_simulations = num_simulations
        self.c_puct = c_puct
        self.dirichlet_alpha = dirichlet_alpha
        self.dirichlet_epsilon = self.noise_share = dirichlet_epsilon
        self.parent_visits = parent_visits
        self.forced_playouts = forced_playouts
        self.seed = seed
        self.solve = solve
        self.in_flight = in_flight
        self.calls = 0

    def search(self, game: Any, temperature: float = 1.0, add_noise: bool = False) -> Any:
        """Runs the search and returns the selected move: a number, or a `chess.Move` for a `ChessGame` or a board."""
        return self.get_policy(game, temperature, add_noise)[0]

    def get_policy(self, game: Any, temperature: float = 1.0, add_noise: bool = False) -> tuple[Any, list[float]]:
        """The selected move, and the share of visits of every action (0 for illegal ones).

        Calls are numbered, so that searching the same state again draws new numbers.

        Trap: the specification's shares are over all visits below the root, one less than there were simulations, and
        with one simulation they are 0 / 0. Here the root's evaluation is no simulation, so that a child is visited in
        every one. Without any simulation all moves have the same share.
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
        trace: bool = False,
        root_actions: Collection[int] | None = None,
    ) -> Result:
        """One whole search from `game`: the `row`-th tree of the `call`-th call; of `root_actions` alone, if given."""
        tree = self.tree(game, call, row, trace=trace, root_actions=root_actions)
        self.simulate(tree, self.num_simulations, add_noise)
        return self.result(tree, temperature)

    def tree(
        self,
        game: Any,
        call: int = 0,
        row: int = 0,
        *,
        trace: bool = False,
        root_actions: Collection[int] | None = None,
    ) -> Tree:
        """A tree of the root alone."""
        root = self._plant(to_state(game), Told(root_actions=root_actions))
        return Tree(root, tree_key(self.seed, call, row), trace=[] if trace else None)

    def advance(self, tree: Tree, action: int) -> None:
        """Plays `action` and keeps what is known below it. The random numbers go on where they were."""
        tree.root, tree.begun = self._follow(tree.root, action), tree.simulations

    def _plant(self, state: State, told: Told = NOTHING) -> Node:
        return Node.of_root(state, told.root_actions)

    def _follow(self, root: Node, action: int, told: Told = NOTHING) -> Node:
        return root.after(action)

    def _evaluate_root(self, tree: Tree) -> None:
        root = tree.root
        question = root.state, 0, fold(tree.key, ROOT_EVALUATION)
        legal = None if root.root_actions is None else [root.root_actions]
        ((priors, values),) = consult(self.neural_network, [question], legal)
        self._expand(root, priors, values)
        self._backpropagate(root, values)

    def _unasked(self, root: Node) -> Node:
        return root.unasked()

    # --- The four steps of a simulation ---------------------------------------------------------------------

    def _select(self, root: Node, random: Random, record: list[Scores | None] | None = None) -> Node:
        """SELECT: while the node has children, go to the one with the highest score; ties are broken at random.

        A proven result is as good as an end: nothing below it is looked at any more.
        """
        node = root
        while node.children and node.proven is None:
            scores = self._scores(node)
            if record is not None:
                record.append(list(scores.items()))
            chosen = highest(scores, random)
            if node is root and self.forced_playouts > 0.0:
                chosen = self._forced(root, chosen)
            node = node.try_move(chosen)
        return node

    def _forced(self, root: Node, chosen: int) -> int:
        """FORCED PLAYOUTS (Wu 2019, section 3.2): a tried move with fewer than sqrt(k * P * N) visits goes first.

        N are the visits of all moves. Of several it is the one with the greatest prior, then the lowest action; what is
        proven needs no more looking at.
        """
        total = root.visit_count + root.in_flight - 1
        best: tuple[float, int] | None = None
        for action, child in root.children.items():
            n = child.visit_count + child.in_flight
            if n == 0 or child.proven is not None or n >= math.sqrt(self.forced_playouts * child.prior * total):
                continue
            if best is None or (child.prior, -action) > best:
                best = child.prior, -action
        return chosen if best is None else -best[1]

    def _scores(self, node: Node) -> dict[int, float]:
        """PUCT(child) = Q(child) + c_puct * P(child) * sqrt(N_parent) / (1 + N(child)) of each move.

        Q is for the player who chooses here. Moves proven to lose are passed over if anything else is left. A leaf in
        flight counts as a visit in both N, and in Q as a loss for the chooser.

        Trap: "N(s) = sum over the moves" is 0 at the first choice, and the priors would not matter. A node's visits
        include its own evaluation; where the sum is wanted all the same, it is at least 1.
        """
        visits = node.visit_count + node.in_flight
        if self.parent_visits == "edges":
            visits = max(visits - 1, 1)
        exploration = self.c_puct * math.sqrt(visits)
        # Trap: 0 for a move never tried is much for a player who is losing, and little for one who is winning.
        untried = node.mean_value - self.fpu if self.fpu_of_parent else self.fpu
        lost = {action for action, child in node.children.items() if child.proven_for_chooser == -1}
        scores: dict[int, float] = {}
        for action, child in node.children.items():
            if action in lost and len(lost) < len(node.children):
                continue
            n = child.visit_count + child.in_flight
            q = untried if n == 0 and child.proven is None else child.expected_for_chooser()
            scores[action] = q + exploration * child.prior / (1.0 + n)
        return scores

    def _evaluate(self, tree: Tree, pending: Sequence[Pending[Node]], target: int) -> list[list[float]]:
        """EXPAND and EVALUATE: one question to the network for all leaves that wait."""
        answers = consult(self.neural_network, [waiting.question for waiting in pending])
        for waiting, (priors, values) in zip(pending, answers, strict=True):
            self._expand(waiting.leaf, priors, values)
        return [values for _, values in answers]

    def _expand(self, leaf: Node, priors: dict[int, float], values: Sequence[float]) -> None:
        """A child with its prior for each legal move; what the network said of the position."""
        leaf.expand(priors)
        leaf.raw_value = values[leaf.to_play]

    def _backpropagate(self, leaf: Node, values: Sequence[float]) -> None:
        """BACKUP: at each node back to the root, N += 1 and W += the value for the player to move there.

        Trap: the specifications flip the sign at each level, one of them counted from the root instead of the leaf.
        Players do not alternate after a pass, in a double move, or with one or three of them. Here the values of all
        players go up, and each node takes that of its own.
        """
        values = list(values)
        node: Node | None = leaf
        while node is not None:
            node.visit_count += 1
            node.total_value += values[node.to_play]
            if node.parent is not None:
                if node.rewards is not None:
                    # The reward of the move that leads here belongs to that move and to all before it.
                    values = [r + v for r, v in zip(node.rewards, values, strict=True)]
                if node.chooser_value is not None:
                    node.chooser_value += values[node.parent.to_play]
            node = node.parent
