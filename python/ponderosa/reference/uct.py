"""UCT, the classical Monte Carlo tree search: selection by UCB1, expansion, simulation, back-propagation.

It reads as its specification, in the specification's names, with the traps mended; a comment marked "Trap" stands
wherever this text departs from it, and says why. What is more than the specification: results that are proven
(`solve`), several leaves in flight at once (`in_flight`), and random numbers that can be replayed.

A state is any value with `legal_actions()`, `play(action)`, `to_play`, `is_terminal`, `returns()`, `num_players`;
optionally `rewards()`, `zero_sum` and `simulateRandomPlayout(perspective_player, max_depth)`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ponderosa.reference.random import ANSWER, PLAYOUT, SELECT, Random, fold, tree_key
from ponderosa.reference.trace import Scores, TraceRow

MOST_ENDS_PER_BATCH = 1024
"""Ends of game are backed up at once while leaves are gathered; this bounds how long one gathering may take."""


class State(Protocol):
    """What a game must offer (the optional parts are looked up by name)."""

    @property
    def to_play(self) -> int: ...
    @property
    def is_terminal(self) -> bool: ...
    @property
    def num_players(self) -> int: ...
    def legal_actions(self) -> Sequence[int]: ...
    def play(self, action: int, /) -> State: ...
    def returns(self) -> Sequence[float]: ...


PlayoutPolicy = Callable[[Any], Any]
"""A state to one action, or to one weight per legal action."""


# --- What a state says, in the form the search wants it ---------------------------------------------------------


def rewards_of(state: State) -> list[float] | None:
    """What each player got for the move that led to `state`; None if the game has no rewards."""
    if not hasattr(state, "rewards"):
        return None
    return [float(reward) for reward in state.rewards()]


def is_zero_sum(state: State) -> bool:
    """Whether a win of one is the loss of the other, so that results can be proven and moves be forced.

    That needs two players whose results count: a game with rewards is scored by the way, not by its end.
    """
    return state.num_players == 2 and not hasattr(state, "rewards") and bool(getattr(state, "zero_sum", True))


def end_values(state: State) -> list[float]:
    """The value of a finished game for each player. With rewards an end itself is worth nothing."""
    if hasattr(state, "rewards"):
        return [0.0] * state.num_players
    values = [float(value) for value in state.returns()]
    if is_zero_sum(state) and abs(sum(values)) > 1e-9:
        raise ValueError(f"the game is zero-sum but ends with {values}; if it is not, set zero_sum = False")
    return values


def listed_actions(state: State) -> list[int]:
    """The legal actions of a state that is no end: there must be some."""
    actions = [int(action) for action in state.legal_actions()]
    if not actions:
        raise ValueError("the state has no legal actions and is not terminal")
    return actions


# --- Simulation -------------------------------------------------------------------------------------------------


def random_playout(
    state: State, random: Random, max_depth: int | None = None, policy: PlayoutPolicy | None = None
) -> tuple[list[float] | None, State]:
    """Plays at random, or by `policy`, to the end or for `max_depth` moves: the values and the last state.

    The values are one per player, and None if the playout was cut. In a game with rewards they are the sums of the
    rewards of the playout's moves.
    """
    earned, final = _play(state, random, max_depth, policy)
    if not final.is_terminal:
        return None, final
    return [e + v for e, v in zip(earned, end_values(final), strict=True)], final


def _play(
    state: State, random: Random, max_depth: int | None, policy: PlayoutPolicy | None
) -> tuple[list[float], State]:
    """The moves of a playout: the rewards earned on the way (0 for all if there are none) and the last state."""
    earned = [0.0] * state.num_players
    depth = 0
    while not state.is_terminal and depth != max_depth:
        legal = listed_actions(state)
        action = legal[random.choose(len(legal))] if policy is None else _follow(policy, state, legal, random)
        state = state.play(action)
        depth += 1
        rewards = rewards_of(state)
        if rewards is not None:
            earned = [e + r for e, r in zip(earned, rewards, strict=True)]
    return earned, state


def _follow(policy: PlayoutPolicy, state: State, legal: list[int], random: Random) -> int:
    """The policy's action, or one drawn by its weights."""
    answer = policy(state)
    weights = _numbers(answer)
    if weights is None:
        action = operator.index(answer)
        if action not in legal:
            raise ValueError(f"the playout policy chose action {action}; legal are {legal}")
        return action
    if len(weights) != len(legal):
        raise ValueError(f"the playout policy gave {len(weights)} weights for {len(legal)} legal actions")
    if not all(math.isfinite(weight) and weight >= 0.0 for weight in weights) or not any(weights):
        raise ValueError(f"the weights of a playout policy must be finite, not negative, and not all 0: {weights}")
    # Added one by one: `sum` rounds differently from Python 3.12 on, and the engine must draw the same action.
    total = 0.0
    for weight in weights:
        total += weight
    x = random.uniform() * total
    running = 0.0
    chosen = 0
    for index, weight in enumerate(weights):
        if weight > 0.0:
            chosen = index
        running += weight
        if running > x:
            break
    return legal[chosen]


def _numbers(answer: Any) -> list[float] | None:
    """A list, tuple or array as a list of floats; None for a single number (also one in an array without axes)."""
    try:
        return [float(number) for number in answer]
    except TypeError:
        return None


def simulate_leaves(
    leaves: Sequence[tuple[State, int, int]],
    max_depth: int | None = None,
    evaluator: Any = None,
    policy: PlayoutPolicy | None = None,
) -> list[list[float]]:
    """The values of new leaves, one list per leaf, one number per player.

    A leaf is its state, the player who chose the move to it, and the key of its simulation. With an evaluator and no
    depth to play to, the leaves are evaluated as they are. Otherwise each is played out.

    Trap: a playout cut at `max_depth` has no result, and the specification does not say what it is worth. It is the
    evaluator's value of the position where it was cut, or a draw without one; rewards earned so far are kept.
    """
    values: list[list[float]] = []
    to_evaluate: list[tuple[int, State]] = []
    for state, chooser, sim_key in leaves:
        if evaluator is not None and max_depth in (None, 0):
            to_evaluate.append((len(values), state))
            values.append([0.0] * state.num_players)
        elif evaluator is None and policy is None and hasattr(state, "simulateRandomPlayout"):
            values.append(_own_playout(state, chooser, max_depth))
        else:
            earned, final = _play(state, Random(sim_key, PLAYOUT), max_depth, policy)
            if final.is_terminal:
                earned = [e + v for e, v in zip(earned, end_values(final), strict=True)]
            elif evaluator is not None:
                to_evaluate.append((len(values), final))
            values.append(earned)
    answers = evaluate(evaluator, [state for _, state in to_evaluate]) if to_evaluate else []
    for (index, _), answer in zip(to_evaluate, answers, strict=True):
        values[index] = [e + v for e, v in zip(values[index], answer, strict=True)]
    return values


def _own_playout(state: Any, chooser: int, max_depth: int | None) -> list[float]:
    """The values by the game's own `simulateRandomPlayout`, which answers for the player it is asked about.

    Trap: the specification leaves open whose view that is, and then adds it unsigned to the node that was expanded.
    So we ask for the player who chose the move to the leaf: that is the player whose statistics come first.
    """
    players = state.num_players
    if players == 1:
        return [float(state.simulateRandomPlayout(0, max_depth))]
    if players == 2:
        value = float(state.simulateRandomPlayout(chooser, max_depth))
        return [value, -value] if chooser == 0 else [-value, value]
    return [float(state.simulateRandomPlayout(player, max_depth)) for player in range(players)]


def evaluate(evaluator: Any, states: Sequence[State]) -> list[list[float]]:
    """The evaluator's values of `states`, one list per state, one number per player.

    An evaluator has `evaluate_states(states) -> (logits, values)`, or is a function of one state. A value is one
    number per player, or one number for the player to move (with two players the other gets its negative).
    """
    if hasattr(evaluator, "evaluate_states"):
        answers = list(evaluator.evaluate_states(list(states))[1])
    else:
        answers = [evaluator(state) for state in states]
    if len(answers) != len(states):
        raise ValueError(f"the evaluator gave {len(answers)} values for {len(states)} states")
    return [_per_player(state, answer) for state, answer in zip(states, answers, strict=True)]


def _per_player(state: State, answer: Any) -> list[float]:
    players = state.num_players
    listed = _numbers(answer)
    values = [float(answer)] if listed is None else listed
    if len(values) == 1 and players == 2:
        # The other player's number is the negative, and it stands where that player's number belongs.
        values = [values[0], -values[0]] if state.to_play == 0 else [-values[0], values[0]]
    if len(values) != players:
        raise ValueError(f"the evaluator gave {len(values)} values for {players} players")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"the evaluator gave values that are not finite: {values}")
    return values


# --- Short looks ahead (two-player zero-sum games) --------------------------------------------------------------


def forced_actions(state: State, legal: Sequence[int]) -> list[int]:
    """The actions of `legal` worth looking at: those that win at once, or else those that do not lose at once.

    Trap: the specification names forced moves without saying what they are. Dropping a move is sound only if it
    cannot be better than one that stays. So nothing is dropped unless a move wins at once, or the opponent can end
    the game with a win right after it while another move prevents that.
    """
    player = state.to_play
    after = {action: state.play(action) for action in legal}
    wins = [action for action in legal if after[action].is_terminal and after[action].returns()[player] > 0]
    if wins:
        return wins
    safe = [action for action in legal if not _loses_at_once(after[action], player)]
    return safe or list(legal)


def _loses_at_once(state: State, player: int) -> bool:
    """Whether `player` has lost in `state`, or loses if the opponent finds the one move that ends the game."""
    if state.is_terminal:
        return state.returns()[player] < 0
    opponent = state.to_play
    # After a double move it is still our turn, and nobody else can win here.
    if opponent == player:
        return False
    replies = (state.play(action) for action in state.legal_actions())
    return any(reply.is_terminal and reply.returns()[opponent] > 0 for reply in replies)


def minimax(state: State, depth: int) -> dict[int, tuple[int, int]]:
    """What each legal action leads to for the player to move, seen `depth` plies deep: (verdict, plies).

    The verdict is +1 for a forced win, -1 for a forced loss, 0 for neither (a draw, or not known within the depth).
    `plies` counts to the end of the game, this action included: the fewest for a win, the most for a loss, 0 for
    neither. Only ends of the game count, and positions at the edge of the depth are unknown, never equal.
    """
    player = state.to_play
    verdicts: dict[int, tuple[int, int]] = {}
    for action in listed_actions(state):
        verdict, plies = _verdict(state.play(action), depth - 1, player) if depth > 0 else (0, 0)
        verdicts[action] = (verdict, plies + 1 if verdict else 0)
    return verdicts


def _verdict(state: State, depth: int, player: int) -> tuple[int, int]:
    """The verdict for `player`, whoever is to move. The recursion is as deep as `depth`, not as the game."""
    if state.is_terminal:
        result = state.returns()[player]
        return (1 if result > 0 else -1 if result < 0 else 0), 0
    if depth == 0:
        return 0, 0
    win = 1 if state.to_play == player else -1  # what the player to move here hopes for
    verdicts = [_verdict(state.play(action), depth - 1, player) for action in listed_actions(state)]
    wins = [plies for verdict, plies in verdicts if verdict == win]
    if wins:
        return win, 1 + min(wins)
    if all(verdict == -win for verdict, _ in verdicts):
        return -win, 1 + max(plies for _, plies in verdicts)
    return 0, 0


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
class Result:
    """What a search found. The dicts have every legal action of the root, in the order of `legal_actions()`."""

    action: int
    visits: dict[int, int]
    values: dict[int, float]
    """The sums of values W, for the player to move at the root."""
    policy: dict[int, float]
    q: dict[int, float]
    """The mean value for the player to move at the root; exact where proven, NaN where unvisited."""
    value: float
    """The root's value for its player to move; exact if proven, 0 without any simulation."""
    proven: int | None
    simulations: int
    root: MCTSNode
    trace: list[TraceRow] | None


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
                self._note_end(leaf)
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
                self._prove_ancestors(leaf)
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

    def _note_end(self, leaf: MCTSNode) -> None:
        """A new leaf where the game is over is proven, if its result is one of those that proofs are made of."""
        if self.solve and leaf.end is not None and is_zero_sum(leaf.state):
            result = leaf.end[leaf.to_play]
            if result in (-1.0, 0.0, 1.0):
                leaf.proven = int(result)

    def _prove_ancestors(self, leaf: MCTSNode) -> None:
        """Walks up from a proven leaf for as long as each next node is decided by its children.

        A win needs one winning move; anything else needs all moves. The sums of the ancestors are not rewritten.
        """
        node = leaf.parent if leaf.proven is not None else None
        while node is not None and node.proven is None:
            known = [(c.proven_for_chooser, c.distance) for c in node.children.values()]
            results = [(result, distance) for result, distance in known if result is not None]
            wins = [distance for result, distance in results if result == 1]
            if wins:
                node.proven, node.distance = 1, 1 + min(wins)
            elif not node.list_actions() and len(results) == len(known):
                node.proven = max(result for result, _ in results)
                node.distance = 1 + max(distance for result, distance in results if result == node.proven)
            else:
                return
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
                actions = _least(actions, lambda action: children[action].distance)
            elif root.proven == -1:
                actions = _least(actions, lambda action: -children[action].distance)
            if root.proven != 1:
                actions = _least(actions, lambda action: -children[action].visit_count)
            return actions[random.choose(len(actions))]
        most_visited = _least(_not_lost(root), lambda action: -_visits(root, action))
        chosen = most_visited[random.choose(len(most_visited))]
        if self.minimax_depth > 0 and is_zero_sum(root.state):
            chosen = self._guard(root, chosen, random)
        return chosen

    def _guard(self, root: MCTSNode, chosen: int, random: Random) -> int:
        """Depth-limited minimax corrects the search where it has a proof.

        Trap: in the specification its result always overrides the search, also when it saw nothing but equal leaves
        (then the first move wins). Here it speaks up only for a proven win, or against a proven loss.
        """
        verdicts = minimax(root.state, self.minimax_depth)
        wins = [action for action, (verdict, _) in verdicts.items() if verdict == 1]
        if wins:
            shortest = _least(wins, lambda action: verdicts[action][1])
            return chosen if verdicts[chosen][0] == 1 else shortest[0]
        if verdicts[chosen][0] == -1:
            others = [action for action in _not_lost(root) if verdicts[action][0] != -1]
            if others:
                others = _least(others, lambda action: -_visits(root, action))
                return others[random.choose(len(others))]
        return chosen

    def _policy(self, tree: Tree, answer: int) -> dict[int, float]:
        """The share of visits of each move, with what is proven: all on a won move, none on lost ones."""
        root = tree.root
        policy = dict.fromkeys(listed_actions(root.state), 0.0)
        if root.proven == 1:
            policy[answer] = 1.0
            return policy
        if root.proven == 0:
            actions = [action for action, child in root.children.items() if child.proven_for_chooser == 0]
        elif root.proven == -1:
            actions = list(root.children)
        else:
            actions = _not_lost(root)
        total = sum(_visits(root, action) for action in actions)
        for action in actions:
            policy[action] = _visits(root, action) / total if total else 1.0 / len(actions)
        return policy

    def result(self, tree: Tree) -> Result:
        """What the tree says so far; asking does not change it."""
        root = tree.root
        answer = self._best_action(tree)
        legal = listed_actions(root.state)
        visits = {action: _visits(root, action) for action in legal}
        values = {action: root.children[action].total_value if action in root.children else 0.0 for action in legal}
        q = {action: _mean(root, action) for action in legal}
        # The sum goes in the order of opening, so that it is the engine's to the last bit.
        total = 0.0
        for child in root.children.values():
            total += child.total_value
        simulations = sum(visits.values())
        value = float(root.proven) if root.proven is not None else total / simulations if simulations else 0.0
        return Result(
            action=answer,
            visits=visits,
            values=values,
            policy=self._policy(tree, answer),
            q=q,
            value=value,
            proven=root.proven,
            simulations=tree.simulations,
            root=root,
            trace=tree.trace,
        )


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


def _visits(root: MCTSNode, action: int) -> int:
    """The visits of a move; 0 if it was not opened."""
    return root.children[action].visit_count if action in root.children else 0


def _mean(root: MCTSNode, action: int) -> float:
    child = root.children.get(action)
    if child is None or child.visit_count == 0:
        return math.nan
    proven = child.proven_for_chooser
    return float(proven) if proven is not None else child.total_value / child.visit_count


def _not_lost(root: MCTSNode) -> list[int]:
    """The root's moves that are not proven to lose: the opened ones in order of opening, then the others."""
    opened = [action for action, child in root.children.items() if child.proven_for_chooser != -1]
    return opened + root.list_actions()


def _least(actions: list[int], measure: Callable[[int], int]) -> list[int]:
    """The actions for which `measure` is least, in the order given."""
    least = min(measure(action) for action in actions)
    return [action for action in actions if measure(action) == least]
