"""The answer of a search: which moves it may come from, the best of them, the guard of minimax, the policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from pondertree.games.lookahead import minimax
from pondertree.random import Random
from pondertree.reference.policy import tempered
from pondertree.reference.trace import TraceRow
from pondertree.reference.tree import N, TreeNode


@dataclass(slots=True)
class Result(Generic[N]):
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
    """The root's value for its player to move; exact if proven, 0 if nothing is known."""
    proven: int | None
    simulations: int
    """Since the root became the root."""
    root: N
    trace: list[TraceRow] | None


def best_move(root: TreeNode, random: Random) -> int:
    """The most visited move. A proven root is played exactly: the shortest win, or the longest defence."""
    actions = allowed(root)
    if root.proven is not None and root.proven != 0:
        # Fewest plies where it is won, most where it is lost.
        sign = root.proven
        actions = lowest(actions, lambda action: sign * root.children[action].distance)
    if root.proven != 1:
        actions = lowest(actions, lambda action: -visits_of(root, action))
    return actions[random.choose(len(actions))]


def guard(root: TreeNode, chosen: int, depth: int, random: Random) -> int:
    """Depth-limited minimax corrects the search where it has a proof.

    Trap: in the specification its result always overrides the search, also when it saw nothing but equal leaves
    (then the first move wins). Here it speaks up only for a proven win, or against a proven loss.
    """
    searched = {*root.children, *root.list_actions()}
    verdicts = {action: verdict for action, verdict in minimax(root.state, depth).items() if action in searched}
    wins = [action for action, (verdict, _) in verdicts.items() if verdict == 1]
    if wins:
        shortest = lowest(wins, lambda action: verdicts[action][1])
        return chosen if verdicts[chosen][0] == 1 else shortest[0]
    if verdicts[chosen][0] == -1:
        others = [action for action in not_lost(root) if verdicts[action][0] != -1]
        if others:
            others = lowest(others, lambda action: -visits_of(root, action))
            return others[random.choose(len(others))]
    return chosen


def policy_of(root: TreeNode, answer: int) -> dict[int, float]:
    """The share of visits of each move, with what is proven: all on a won move, none on lost ones."""
    policy = dict.fromkeys(root.legal_actions(), 0.0)
    if root.proven == 1:
        policy[answer] = 1.0
        return policy
    actions = allowed(root)
    total = sum(visits_of(root, action) for action in actions)
    for action in actions:
        policy[action] = visits_of(root, action) / total if total else 1.0 / len(actions)
    return policy


def policy_at(root: TreeNode, temperature: float, best: int) -> dict[int, float]:
    """Visits to the power 1/T over their sum, for each move in the order of the children; at 0 the best move alone.

    Moves proven to lose have no chance while another is left, and a win is played at any temperature.
    """
    policy = dict.fromkeys(root.children, 0.0)
    if temperature == 0.0 or root.proven == 1:
        policy[best] = 1.0
        return policy
    actions = allowed(root)
    shares = tempered([visits_of(root, action) for action in actions], temperature)
    policy.update(zip(actions, shares, strict=True))
    return policy


def describe(root: N, action: int, best: int, simulations: int, trace: list[TraceRow] | None) -> Result[N]:
    """The result of a search whose answer is known, and the best move, which is another one where moves are drawn."""
    legal = root.legal_actions()
    children = root.children
    return Result(
        action=action,
        visits={action: visits_of(root, action) for action in legal},
        values={action: children[action].total_for_chooser if action in children else 0.0 for action in legal},
        policy=policy_of(root, best),
        q={action: mean_of(root, action) for action in legal},
        value=float(root.proven) if root.proven is not None else root.mean_value,
        proven=root.proven,
        simulations=simulations,
        root=root,
        trace=trace,
    )


def visits_of(root: TreeNode, action: int) -> int:
    """The visits of a move; 0 if it was not opened."""
    return root.children[action].visit_count if action in root.children else 0


def mean_of(root: TreeNode, action: int) -> float:
    """The mean value of a move for who makes it; exact if proven, NaN if it was never tried."""
    child = root.children.get(action)
    if child is None or child.visit_count == 0:
        return math.nan
    proven = child.proven_for_chooser
    return float(proven) if proven is not None else child.total_for_chooser / child.visit_count


def allowed(root: TreeNode) -> list[int]:
    """The moves an answer may come from: those that keep what is proven, or else those not proven to lose."""
    if root.proven is None:
        return not_lost(root)
    return [action for action, child in root.children.items() if child.proven_for_chooser == root.proven]


def not_lost(root: TreeNode) -> list[int]:
    """The root's moves that are not proven to lose: the opened ones in order of opening, then the others."""
    opened = [action for action, child in root.children.items() if child.proven_for_chooser != -1]
    return opened + root.list_actions()


def lowest(actions: list[int], measure: Callable[[int], int]) -> list[int]:
    """The actions for which `measure` is least, in the order given."""
    least = min(measure(action) for action in actions)
    return [action for action in actions if measure(action) == least]
