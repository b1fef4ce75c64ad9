"""The search of AlphaZero: a network's policy says where to look, its value what was found there; no playouts.

It reads as its specification, in the specification's names, with the traps mended; a comment marked "Trap" stands
wherever this text departs from it, and says why. What is more than the specification: what a move never tried is
worth (`fpu`), what N(s) counts (`parent_visits`), results that are proven (`solve`), several leaves in flight at once
(`in_flight`), a tree that is kept from move to move (`advance`), and random numbers that can be replayed.

With `solve=False` and everything else left alone this is the specification to the letter.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ponderosa.reference.answer import lowest, not_lost, policy_of
from ponderosa.reference.proof import note_end, prove_ancestors
from ponderosa.reference.random import ANSWER, NOISE, SELECT, Random, fold, tree_key
from ponderosa.reference.trace import Scores, TraceRow
from ponderosa.reference.uct import (
    MOST_ENDS_PER_BATCH,
    MCTSNode,
    State,
    end_values,
    evaluate,
    is_zero_sum,
    listed_actions,
    rewards_of,
    simulate_leaves,
)

__all__ = ["MCTS", "Node", "Tree", "Result", "Uniform", "Rollout", "priors_of", "dirichlet"]

ROOT_EVALUATION = 2**64 - 1
"""The number under which the evaluation of the root draws, since it is no simulation."""

Leaf = tuple[State, int, int]
"""A position to evaluate: its state, the player who chose the move to it (0 at the root), the key of its simulation."""


# --- The tree ---------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Node:
    """A position, made with its prior when its parent is expanded; its state is found out when it is first visited."""

    prior: float
    """P, as selection uses it: at the root's moves with the noise, if there is any."""
    visit_count: int = 0
    """N. An expanded node has one visit of its own and those of its children."""
    total_value: float = 0.0
    """W, the sum of values for the player to move **at this node**: the parent negates it if the turn has changed."""
    children: dict[int, Node] = field(default_factory=dict, repr=False)
    """Every legal move: those that were tried, in the order they were, then the others. Ties are drawn so."""

    parent: Node | None = field(default=None, repr=False)
    action: int | None = None
    """The move that leads here; None at the root."""
    clean_prior: float = field(init=False)
    """P without noise."""
    position: State | None = field(default=None, init=False, repr=False)
    """The state, once the node was visited."""
    to_play: int = field(default=-1, init=False)
    """Who moves here, once the node was visited."""
    raw_value: float = field(default=0.0, init=False)
    """What the network said of it, for the player to move here."""
    chooser_value: float | None = field(default=None, init=False)
    """The sum of values for the player who chose the move that leads here, the reward of that move included: kept where
    `total_value` does not say it, which is everywhere but in two-player zero-sum games."""
    rewards: list[float] | None = field(default=None, init=False)
    end: list[float] | None = field(default=None, init=False)
    """The result for each player if the game is over here."""
    in_flight: int = field(default=0, init=False)
    """How many leaves below this node, or this one, wait for their values."""
    proven: int | None = field(default=None, init=False)
    """The exact result for the player to move here, once it is known: -1, 0 or +1."""
    distance: int = field(default=0, init=False)
    """In how many plies a proven result is reached."""

    def __post_init__(self) -> None:
        self.clean_prior = self.prior

    @property
    def q_value(self) -> float:
        """Q = W / N for the player to move here, or 0 if unvisited."""
        return self.total_value / self.visit_count if self.visit_count else 0.0

    @property
    def state(self) -> State:
        """The state of a node that was visited."""
        assert self.position is not None, "a move that was never tried has no state yet"
        return self.position

    @property
    def total_for_chooser(self) -> float:
        """W as the parent sees it: the sum of values for the player who chose the move that leads here.

        Trap: the specification adds Q(child) in its formula and negates it in the prose, "the opponent's gain is our
        loss". The prose is right, but only where the opponent moves next: after a double move or a pass the child's
        player is our own. So the sign follows whose turn it is.
        """
        if self.chooser_value is not None:
            return self.chooser_value
        return self.total_value if self.parent is None or self.parent.to_play == self.to_play else -self.total_value

    @property
    def proven_for_chooser(self) -> int | None:
        """The exact result for the player who chose the move that leads here (None if not known, or at the root)."""
        if self.proven is None or self.parent is None:
            return None
        return self.proven if self.to_play == self.parent.to_play else -self.proven

    @property
    def mean_value(self) -> float:
        """The value of the position for the player to move here: what the network said and what its moves brought."""
        total, visits = 0.0, 0
        for child in self.children.values():
            if child.visit_count > 0:
                total += child.total_for_chooser
                visits += child.visit_count
        return (self.raw_value + total) / (1.0 + visits)

    def exact_values(self) -> list[float] | None:
        """The values for each player if they are known exactly: the game is over, or the result is proven."""
        if self.end is not None or self.proven is None:
            return self.end
        value = float(self.proven)
        return [value, -value] if self.to_play == 0 else [-value, value]

    def list_actions(self) -> list[int]:
        """The moves that have no child yet, as UCT's nodes have them: none, since all get theirs together."""
        return []

    def arrive(self, state: State) -> None:
        """The first visit: finds out who moves here and whether the game is over."""
        self.position = state
        self.to_play = state.to_play
        self.rewards = rewards_of(state)
        self.chooser_value = None if is_zero_sum(state) else 0.0
        # Trap: an end is worth its result for the player to move there. A checkmated player has lost, whatever colour.
        self.end = end_values(state) if state.is_terminal else None

    def expand(self, priors: dict[int, float]) -> None:
        """Creates a child for each legal move."""
        self.children = {action: Node(prior, parent=self, action=action) for action, prior in priors.items()}

    def try_move(self, action: int) -> Node:
        """The child behind a move. At its first visit it changes places with the first one that was never tried."""
        child = self.children[action]
        if child.position is None:
            order = list(self.children)
            first = sum(other.position is not None for other in self.children.values())
            place = order.index(action)
            order[first], order[place] = order[place], order[first]
            self.children = {each: self.children[each] for each in order}
            child.arrive(self.state.play(action))
        return child


@dataclass(slots=True)
class Tree:
    """A search under way: its root, the key of its random numbers, and how many simulations are done."""

    root: Node
    key: int
    simulations: int = 0
    """Over the whole life of the tree."""
    begun: int = 0
    """How many of them were done when the present root became the root."""
    trace: list[TraceRow] | None = None
    wants_noise: bool = False
    """Fresh noise is to be mixed in before the next descent."""


@dataclass(slots=True)
class Result:
    """What a search found. The dicts have every legal action of the root, in the order of `legal_actions()`."""

    action: int
    visits: dict[int, int]
    values: dict[int, float]
    """The sums of values W, for the player to move at the root."""
    policy: dict[int, float]
    """The share of visits, whatever the temperature: what a network is trained on."""
    q: dict[int, float]
    """The mean value for the player to move at the root; exact where proven, NaN where unvisited."""
    value: float
    """The root's value for its player to move; exact if proven."""
    proven: int | None
    simulations: int
    """Since the root became the root."""
    root: Node
    trace: list[TraceRow] | None


@dataclass(slots=True)
class _Pending:
    """A leaf in flight."""

    leaf: Node
    sim_key: int
    row: TraceRow | None


def _as_uct(node: Node) -> MCTSNode:
    """Proofs and visit shares are those of UCT, and look only at what the nodes of both searches have."""
    return cast(MCTSNode, node)


# --- Policy and value of a position -----------------------------------------------------------------------------


class Uniform:
    """A network that knows nothing: every move is as good as any other, every position worth 0."""

    def evaluate_states(self, states: Sequence[State]) -> tuple[None, list[list[float]]]:
        """(even priors, zeros)."""
        return None, [[0.0] * state.num_players for state in states]


class Rollout:
    """A network that plays at random: every move is as good as any other, a position is worth what a playout says."""

    def evaluate_leaves(self, leaves: Sequence[Leaf]) -> tuple[None, list[list[float]]]:
        """(even priors, results); the keys of the simulations make the playouts repeatable."""
        return None, simulate_leaves(leaves)


class _Said:
    """Values that a network has given already, in the form in which UCT's `evaluate` asks for them and checks them."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def evaluate_states(self, states: Sequence[State]) -> tuple[None, Any]:
        return None, self.values


def consult(network: Any, leaves: Sequence[Leaf]) -> list[tuple[dict[int, float], list[float]]]:
    """The priors of the legal moves of each leaf, and its values, one per player."""
    states = [state for state, _, _ in leaves]
    answer = network.evaluate_leaves(leaves) if hasattr(network, "evaluate_leaves") else network.evaluate_states(states)
    policies, said = answer
    values = evaluate(_Said(said), states)
    if policies is None:
        policies = [None] * len(states)
    if len(policies) != len(states):
        raise ValueError(f"the network gave {len(policies)} policies for {len(states)} states")
    kind = getattr(network, "policy", "logits")
    priors = [priors_of(listed_actions(state), row, kind) for state, row in zip(states, policies, strict=True)]
    return list(zip(priors, values, strict=True))


def priors_of(legal: Sequence[int], policy: Sequence[float] | None, kind: str = "logits") -> dict[int, float]:
    """The prior of each legal move from a number for every action: logits or probabilities; None is even priors.

    Masked to the legal moves and normalised over them. The priors are rounded to 32 bits, as the engine keeps them.
    """
    if kind not in ("logits", "probabilities"):
        raise ValueError(f'policy must be "logits" or "probabilities", not {kind!r}')
    if policy is None:
        return dict.fromkeys(legal, float32(1.0 / len(legal)))
    if any(math.isnan(number) or number == math.inf for number in policy):
        raise ValueError("the numbers of a policy must be finite, or -inf for a move that is not to be looked at")
    own = [float32(float(policy[action])) for action in legal]
    if kind == "logits":
        most = max(own)
        if most == -math.inf:
            raise ValueError("the logits are -inf on every legal move: at least one must be finite")
        own = [math.exp(number - most) for number in own]
    elif min(own) < 0.0:
        raise ValueError("a probability is negative")
    total = add_up(own)
    if total == 0.0:
        return priors_of(legal, None)
    return {action: float32(number / total) for action, number in zip(legal, own, strict=True)}


def float32(number: float) -> float:
    """The nearest number of 32 bits."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return rounded


def add_up(numbers: Iterable[float]) -> float:
    """The sum, added one by one: `sum` rounds differently from Python 3.12 on."""
    total = 0.0
    for number in numbers:
        total += number
    return total


# --- Noise ------------------------------------------------------------------------------------------------------


def dirichlet(alpha: float, count: int, random: Random) -> list[float]:
    """A draw from the symmetric Dirichlet distribution: gamma variates over their sum.

    Computed in logarithms: with a small alpha the variates themselves are often too small for a float.
    """
    logs = [_log_gamma_variate(alpha, random) for _ in range(count)]
    most = max(logs)
    weights = [math.exp(log - most) for log in logs]
    total = add_up(weights)
    return [weight / total for weight in weights]


def _log_gamma_variate(alpha: float, random: Random) -> float:
    """The logarithm of a gamma variate of shape `alpha` (Marsaglia & Tsang 2000)."""
    if alpha < 1.0:
        boosted = _log_gamma_variate(alpha + 1.0, random)
        return boosted + math.log(1.0 - random.uniform()) / alpha
    d = alpha - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(random)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = 1.0 - random.uniform()
        if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return math.log(d * v)


def _normal(random: Random) -> float:
    """A standard normal number (Box & Muller 1958); the second of the pair is not used."""
    u = 1.0 - random.uniform()
    v = random.uniform()
    return math.sqrt(-2.0 * math.log(u)) * math.cos(math.tau * v)


# --- The search -------------------------------------------------------------------------------------------------


class MCTS:
    """The search with the specification's parameters.

    `neural_network` has `evaluate_states(states) -> (logits, values)`: a number for every action of each state (None:
    all moves are alike), and a value for the player to move, or one per player. With an attribute `policy` that says
    "probabilities", the numbers are that. `dirichlet_alpha` is the concentration of each move, or `("total", alpha)` of
    all together. A move never tried is worth `fpu`: a number, or `("parent", reduction)` for the value of its position
    less so much. `parent_visits` says what N(s) counts: "node", the visits of the node; "edges", those of its moves.
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
        seed: int = 0,
        solve: bool = True,
        in_flight: int = 1,
    ) -> None:
        for name, number, least in (("num_simulations", num_simulations, 0), ("in_flight", in_flight, 1)):
            if number < least:
                raise ValueError(f"{name} must be at least {least}, not {number}")
        if not (math.isfinite(c_puct) and c_puct >= 0.0):
            raise ValueError(f"c_puct must be finite and not negative, not {c_puct}")
        self.spread_alpha, self.alpha = _tagged(dirichlet_alpha, "dirichlet_alpha", "total")
        self.fpu_of_parent, self.fpu = _tagged(fpu, "fpu", "parent")
        if self.alpha <= 0.0:
            raise ValueError(f"dirichlet_alpha must be above 0, not {self.alpha}")
        if not 0.0 <= dirichlet_epsilon <= 1.0:
            raise ValueError(f"dirichlet_epsilon must be from 0 to 1, not {dirichlet_epsilon}")
        if parent_visits not in ("node", "edges"):
            raise ValueError(f'parent_visits must be "node" or "edges", not {parent_visits!r}')
        self.neural_network = neural_network
        self.num_simulations = num_simulations
        self.c_puct = c_puct
        self.dirichlet_alpha = dirichlet_alpha
        self.dirichlet_epsilon = dirichlet_epsilon
        self.parent_visits = parent_visits
        self.seed = seed
        self.solve = solve
        self.in_flight = in_flight
        self.calls = 0

    def search(self, game: State, temperature: float = 1.0, add_noise: bool = False) -> int:
        """Runs the search and returns the selected move."""
        return self.get_policy(game, temperature, add_noise)[0]

    def get_policy(self, game: State, temperature: float = 1.0, add_noise: bool = False) -> tuple[int, list[float]]:
        """The selected move, and the share of visits of every action (0 for illegal ones).

        Calls are numbered, so that searching the same state again draws new numbers.

        Trap: the specification's shares are over all visits below the root, one less than there were simulations, and
        with one simulation they are 0 / 0. Here the root's evaluation is no simulation, so that a child is visited in
        every one. Without any simulation all moves have the same share.
        """
        result = self.run(game, self.calls, temperature=temperature, add_noise=add_noise)
        self.calls += 1
        size = getattr(game, "num_actions", 1 + max(result.policy))
        return result.action, [result.policy.get(action, 0.0) for action in range(size)]

    def run(
        self,
        game: State,
        call: int = 0,
        row: int = 0,
        *,
        temperature: float = 0.0,
        add_noise: bool = False,
        trace: bool = False,
    ) -> Result:
        """One whole search from `game`: the `row`-th tree of the `call`-th call."""
        tree = self.tree(game, call, row, trace=trace)
        self.simulate(tree, self.num_simulations, add_noise)
        return self.result(tree, temperature)

    def tree(self, game: State, call: int = 0, row: int = 0, *, trace: bool = False) -> Tree:
        """A tree of the root alone."""
        return Tree(_root(game), tree_key(self.seed, call, row), trace=[] if trace else None)

    def advance(self, tree: Tree, action: int) -> None:
        """Plays `action` and keeps what is known below it. The random numbers go on where they were."""
        child = tree.root.children.get(action)
        if action not in tree.root.state.legal_actions():
            raise ValueError(f"action {action} is not legal; legal are {list(tree.root.state.legal_actions())}")
        if child is None or child.visit_count == 0 or child.end is not None:
            # Nothing is known of it; or the game is over there, which `_root` refuses.
            child = _root(tree.root.state.play(action))
        child.parent, child.action = None, None
        child.prior = child.clean_prior = 1.0
        tree.root, tree.begun = child, tree.simulations

    def simulate(self, tree: Tree, num_simulations: int, add_noise: bool | None = None) -> None:
        """So many more simulations; fewer if the root is proven. If a game or a network raises, drop the tree.

        `add_noise` True mixes fresh noise into the root's clean priors, False takes it out, None leaves it as it is.
        """
        if add_noise is not None:
            tree.wants_noise = add_noise
        if add_noise is False:
            for child in tree.root.children.values():
                child.prior = child.clean_prior
        limit = tree.simulations + num_simulations
        while tree.simulations < limit and tree.root.proven is None:
            self._settle_root(tree)
            pending = self._gather(tree, limit)
            leaves = [(p.leaf.state, _chooser(p.leaf), p.sim_key) for p in pending]
            answers = consult(self.neural_network, leaves) if leaves else []
            for waiting, (priors, values) in zip(pending, answers, strict=True):
                self._mark_in_flight(waiting.leaf, -1)
                self._expand(waiting.leaf, priors, values)
                self._finish(tree, waiting.leaf, values, waiting.row)

    def _settle_root(self, tree: Tree) -> None:
        """Evaluates and expands the root if it is new, and mixes in the noise that was asked for.

        Trap: in the specification the first simulation expands the root, so that noise added before has no children to
        be added to, and simulations and visits of moves are not the same number. The root is expanded first, outside of
        the count.
        """
        root = tree.root
        if root.visit_count == 0:
            ((priors, values),) = consult(self.neural_network, [(root.state, 0, fold(tree.key, ROOT_EVALUATION))])
            self._expand(root, priors, values)
            self._backpropagate(root, values)
        if tree.wants_noise:
            self._add_noise(tree)
            tree.wants_noise = False

    def _add_noise(self, tree: Tree) -> None:
        """Mixes Dirichlet noise into the priors of the root's moves.

        Trap: a kept tree would be noised again with every move. So the clean prior stays beside the noised one, and
        noise is always mixed into that. It is drawn for the legal moves alone, after the mask, in ascending order: the
        children may have changed places since.
        """
        children = tree.root.children
        alpha = self.alpha / len(children) if self.spread_alpha else self.alpha
        random = Random(fold(tree.key, tree.simulations), NOISE)
        noise = dirichlet(alpha, len(children), random)
        epsilon = self.dirichlet_epsilon
        for action, share in zip(sorted(children), noise, strict=True):
            child = children[action]
            child.prior = float32((1.0 - epsilon) * child.clean_prior + epsilon * share)

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
            scores: list[Scores | None] = []
            leaf = self._select(root, Random(sim_key, SELECT), scores)
            if leaf.visit_count == 0 and leaf.in_flight > 0:
                # It waits for its value already. Nothing was changed on the way down, so there is nothing to undo,
                # and the simulation number was not used up: the next batch begins with it.
                break
            if self.solve:
                note_end(_as_uct(leaf))
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
                prove_ancestors(_as_uct(leaf))
                ends += 1
        return pending

    # --- The four steps of a simulation ---------------------------------------------------------------------

    def _select(self, root: Node, random: Random, record: list[Scores | None]) -> Node:
        """SELECT: while the node has children, go to the one with the highest score; ties are broken at random.

        A proven result is as good as an end: nothing below it is looked at any more.
        """
        node = root
        while node.children and node.proven is None:
            scores = self._scores(node)
            record.append(list(scores.items()))
            best = max(scores.values())
            ties = [action for action, score in scores.items() if score == best]
            node = node.try_move(ties[random.choose(len(ties))])
        return node

    def _scores(self, node: Node) -> dict[int, float]:
        """PUCT(child) = Q(child) + c_puct * P(child) * sqrt(N_parent) / (1 + N(child)) of each move.

        Q is for the player who chooses here. Moves proven to lose are passed over if anything else is left. A leaf in
        flight counts as a visit in both N, and as a loss for the chooser where values are plain results in [-1, 1]
        (with rewards a loss has no fixed size).

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
            proven = child.proven_for_chooser
            if proven is not None:
                q = float(proven)
            elif n == 0:
                q = untried
            elif child.rewards is None:
                q = (child.total_for_chooser - child.in_flight) / n
            else:
                q = child.total_for_chooser / n
            scores[action] = q + exploration * child.prior / (1.0 + n)
        return scores

    def _expand(self, leaf: Node, priors: dict[int, float], values: Sequence[float]) -> None:
        """EXPAND and EVALUATE: a child with its prior for each legal move; what the network said of the position."""
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

    def _finish(self, tree: Tree, leaf: Node, values: list[float], row: TraceRow | None) -> None:
        """The last step of a simulation."""
        if row is not None:
            row["values"] = list(values)
        self._backpropagate(leaf, values)
        tree.simulations += 1

    def _mark_in_flight(self, leaf: Node, change: int) -> None:
        """Counts a leaf in flight on its whole path (+1), or takes it back (-1)."""
        node: Node | None = leaf
        while node is not None:
            node.in_flight += change
            node = node.parent

    # --- Move selection -------------------------------------------------------------------------------------

    def result(self, tree: Tree, temperature: float = 0.0) -> Result:
        """What the tree says so far; asking does not change it."""
        root = tree.root
        legal = listed_actions(root.state)
        random = Random(fold(tree.key, tree.simulations), ANSWER)
        if not root.children:
            # Nothing was simulated yet, so all moves are alike. The answer is drawn from a root made for that.
            root = _root(root.state)
            root.expand(priors_of(legal, None))
        best = _best_move(root, random)
        action = best
        if temperature > 0.0 and root.proven in (None, 0):
            action = _sample(policy_at(root, temperature, best), random)
        children = root.children
        return Result(
            action=action,
            visits={action: children[action].visit_count for action in legal},
            values={action: children[action].total_for_chooser for action in legal},
            policy=policy_of(_as_uct(root), best),
            q={action: _mean_for_chooser(children[action]) for action in legal},
            value=float(root.proven) if root.proven is not None else root.mean_value,
            proven=root.proven,
            simulations=tree.simulations - tree.begun,
            root=tree.root,
            trace=tree.trace,
        )


def policy_at(root: Node, temperature: float, best: int) -> dict[int, float]:
    """Visits to the power 1/T over their sum, for each move in the order of the children; at 0 the best move alone.

    Trap: `count ** (1 / T)` overflows where T is small. In logarithms, with the greatest subtracted, nothing does.
    Moves proven to lose have no chance while another is left, and a win is played at any temperature.
    """
    if temperature == 0.0 or root.proven == 1:
        return {action: 1.0 if action == best else 0.0 for action in root.children}
    allowed = _allowed(root)
    most = max(root.children[action].visit_count for action in allowed)
    weights = dict.fromkeys(root.children, 0.0)
    for action in allowed:
        visits = root.children[action].visit_count
        if most == 0:
            weights[action] = 1.0
        elif visits > 0:
            weights[action] = math.exp((math.log(visits) - math.log(most)) / temperature)
    total = add_up(weights.values())
    return {action: weight / total for action, weight in weights.items()}


def _best_move(root: Node, random: Random) -> int:
    """The most visited move. A proven root is played exactly: the shortest win, or the longest defence."""
    actions = _allowed(root)
    children = root.children
    if root.proven is not None and root.proven != 0:
        # Fewest plies where it is won, most where it is lost.
        sign = root.proven
        actions = lowest(actions, lambda action: sign * children[action].distance)
    if root.proven != 1:
        actions = lowest(actions, lambda action: -children[action].visit_count)
    return actions[random.choose(len(actions))]


def _allowed(root: Node) -> list[int]:
    """The moves an answer may come from: those that keep what is proven, or else those not proven to lose."""
    if root.proven is None:
        return not_lost(_as_uct(root))
    return [action for action, child in root.children.items() if child.proven_for_chooser == root.proven]


def _sample(policy: dict[int, float], random: Random) -> int:
    """A move drawn by its probability."""
    mark = random.uniform() * add_up(policy.values())
    running = 0.0
    for action, share in policy.items():
        running += share
        if running > mark:
            return action
    return next(action for action in reversed(policy) if policy[action] > 0.0)


def _mean_for_chooser(child: Node) -> float:
    """The mean value of a move for who makes it; exact if proven, NaN if it was never tried."""
    proven = child.proven_for_chooser
    if proven is not None:
        return float(proven)
    return child.total_for_chooser / child.visit_count if child.visit_count else math.nan


def _root(state: State) -> Node:
    """The node of a new root, whose prior means nothing and is 1 by convention."""
    if state.is_terminal:
        raise ValueError("the game is over: there is nothing to search")
    root = Node(1.0)
    root.arrive(state)
    return root


def _chooser(leaf: Node) -> int:
    """The player who chose the move to a leaf."""
    assert leaf.parent is not None, "the root is evaluated by itself"
    return leaf.parent.to_play


def _path(node: Node) -> list[int]:
    """The actions from the root to `node`."""
    path: list[int] = []
    while node.parent is not None:
        assert node.action is not None, "only the root has no action"
        path.append(node.action)
        node = node.parent
    return path[::-1]


def _tagged(value: float | tuple[str, float], name: str, tag: str) -> tuple[bool, float]:
    """A number, or a pair of `tag` and a number: whether it is tagged, and the number."""
    tagged = isinstance(value, tuple)
    if isinstance(value, tuple):
        if len(value) != 2 or value[0] != tag:
            raise ValueError(f'{name} must be a number or ("{tag}", number), not {value!r}')
        value = value[1]
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    return tagged, float(value)
