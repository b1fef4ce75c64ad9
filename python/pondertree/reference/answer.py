"""The result of a search: candidate moves, the best move, the minimax guard and the policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from pondertree.games.lookahead import minimax
from pondertree.random import Random
from pondertree.reference.priors import tempered
from pondertree.reference.tree import N, TreeNode
from pondertree.trace import TraceRow


@dataclass(slots=True)
class Result(Generic[N]):
    """The result of a search. The dicts hold every legal action of the root, in the order of `legal_actions()`."""

    action: int
    visits: dict[int, int]
    values: dict[int, float]
    """The sums of values W, for the player to move at the root."""
    policy: dict[int, float]
    """The visit distribution at temperature 1: the policy target."""
    q: dict[int, float]
    """The mean value for the player to move at the root; exact where proven, NaN where unvisited."""
    value: float
    """The value of the root for its player to move; exact if proven, 0 without simulations."""
    proven: int | None
    simulations: int
    """Simulations since the tree was created or advanced."""
    root: N
    trace: list[TraceRow] | None


def best_move(root: TreeNode, random: Random, backup: str = "mean") -> int:
    """Returns the most visited move; at a proven root the shortest win or the longest defence. Ties are random.

    With `backup="max"`, whose value of the root is the highest Q, the move is one with that Q; ties are broken by
    visits first.
    """
    actions = candidate_moves(root)
    if root.proven is None and backup == "max":
        visited = [action for action in actions if visits_of(root, action) > 0]
        actions = minimizers(visited, lambda action: -mean_of(root, action)) if visited else actions
    if root.proven is not None and root.proven != 0:
        # Fewest plies to a win, most to a loss.
        sign = root.proven
        actions = minimizers(actions, lambda action: sign * root.children[action].distance)
    if root.proven != 1:
        actions = minimizers(actions, lambda action: -visits_of(root, action))
    return actions[random.choose(len(actions))]


def minimax_guard(root: TreeNode, chosen: int, depth: int, random: Random) -> int:
    """Returns `chosen`, unless a depth-limited minimax proves that it misses a win or loses.

    Trap: in the classic UCT specification the minimax result always overrides the search, even if all leaves are equal
    (then the first move is played). Here only a proven win or a proven loss overrides it.
    """
    searched = {*root.children, *root.list_actions()}
    verdicts = {action: verdict for action, verdict in minimax(root.state, depth).items() if action in searched}
    wins = [action for action, (verdict, _) in verdicts.items() if verdict == 1]
    if wins:
        shortest = minimizers(wins, lambda action: verdicts[action][1])
        return chosen if verdicts[chosen][0] == 1 else shortest[0]
    if verdicts[chosen][0] == -1:
        others = [action for action in not_lost(root) if verdicts[action][0] != -1]
        if others:
            others = minimizers(others, lambda action: -visits_of(root, action))
            return others[random.choose(len(others))]
    return chosen


def policy_of(root: TreeNode, best: int) -> dict[int, float]:
    """Returns the visit distribution: one-hot on a proven win, 0 on proven losses unless all moves lose."""
    policy = dict.fromkeys(root.legal_actions(), 0.0)
    if root.proven == 1:
        policy[best] = 1.0
        return policy
    actions = candidate_moves(root)
    total = sum(visits_of(root, action) for action in actions)
    for action in actions:
        policy[action] = visits_of(root, action) / total if total else 1.0 / len(actions)
    return policy


def policy_at(root: TreeNode, temperature: float, best: int) -> dict[int, float]:
    """Returns the normalised visits to the power 1/T, in child order; one-hot on `best` at T = 0.

    Proven losses get 0 unless all moves lose, and a proven win is one-hot at any temperature.
    """
    policy = dict.fromkeys(root.children, 0.0)
    if temperature == 0.0 or root.proven == 1:
        policy[best] = 1.0
        return policy
    actions = candidate_moves(root)
    shares = tempered([visits_of(root, action) for action in actions], temperature)
    policy.update(zip(actions, shares, strict=True))
    return policy


def make_result(
    root: N, action: int, best: int, simulations: int, trace: list[TraceRow] | None, value: float | None = None
) -> Result[N]:
    """Builds the result; `action` is the move to play, `best` the one at temperature 0.

    `value` is that of an unproven root; by default the mean of its visits.
    """
    value = root.mean_value if value is None else value
    legal = root.legal_actions()
    children = root.children
    return Result(
        action=action,
        visits={action: visits_of(root, action) for action in legal},
        values={action: children[action].total_for_chooser if action in children else 0.0 for action in legal},
        policy=policy_of(root, best),
        q={action: mean_of(root, action) for action in legal},
        value=float(root.proven) if root.proven is not None else value,
        proven=root.proven,
        simulations=simulations,
        root=root,
        trace=trace,
    )


def visits_of(root: TreeNode, action: int) -> int:
    """Returns the visits of a move; 0 if unexpanded."""
    return root.children[action].visit_count if action in root.children else 0


def mean_of(root: TreeNode, action: int) -> float:
    """Returns Q of a move for the player to move at the root; exact if proven, NaN if unvisited."""
    child = root.children.get(action)
    if child is None or child.visit_count == 0:
        return math.nan
    proven = child.proven_for_chooser
    return float(proven) if proven is not None else child.total_for_chooser / child.visit_count


def candidate_moves(root: TreeNode) -> list[int]:
    """Returns the moves that may be played: those that preserve the proven result, else those not proven to lose."""
    if root.proven is None:
        return not_lost(root)
    return [action for action, child in root.children.items() if child.proven_for_chooser == root.proven]


def not_lost(root: TreeNode) -> list[int]:
    """Returns the moves not proven to lose: the expanded ones in child order, then the others."""
    expanded = [action for action, child in root.children.items() if child.proven_for_chooser != -1]
    return expanded + root.list_actions()


def minimizers(actions: list[int], key: Callable[[int], float]) -> list[int]:
    """Returns the actions that minimise `key`, in the given order."""
    least = min(key(action) for action in actions)
    return [action for action in actions if key(action) == least]
