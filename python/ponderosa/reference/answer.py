"""The answer of a search: which moves it may come from, the guard of minimax, the policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ponderosa.reference.lookahead import minimax
from ponderosa.reference.random import Random
from ponderosa.reference.state import listed_actions
from ponderosa.reference.trace import TraceRow

if TYPE_CHECKING:
    from ponderosa.reference.uct import MCTSNode


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


def guard(root: MCTSNode, chosen: int, depth: int, random: Random) -> int:
    """Depth-limited minimax corrects the search where it has a proof.

    Trap: in the specification its result always overrides the search, also when it saw nothing but equal leaves
    (then the first move wins). Here it speaks up only for a proven win, or against a proven loss.
    """
    verdicts = minimax(root.state, depth)
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


def policy_of(root: MCTSNode, answer: int) -> dict[int, float]:
    """The share of visits of each move, with what is proven: all on a won move, none on lost ones."""
    policy = dict.fromkeys(listed_actions(root.state), 0.0)
    if root.proven == 1:
        policy[answer] = 1.0
        return policy
    if root.proven == 0:
        actions = [action for action, child in root.children.items() if child.proven_for_chooser == 0]
    elif root.proven == -1:
        actions = list(root.children)
    else:
        actions = not_lost(root)
    total = sum(visits_of(root, action) for action in actions)
    for action in actions:
        policy[action] = visits_of(root, action) / total if total else 1.0 / len(actions)
    return policy


def describe(root: MCTSNode, answer: int, simulations: int, trace: list[TraceRow] | None) -> Result:
    """The result of a search whose answer is known."""
    legal = listed_actions(root.state)
    visits = {action: visits_of(root, action) for action in legal}
    # The sum goes in the order of opening, so that it is the engine's to the last bit.
    total = 0.0
    for child in root.children.values():
        total += child.total_value
    visited = sum(visits.values())
    return Result(
        action=answer,
        visits=visits,
        values={action: root.children[action].total_value if action in root.children else 0.0 for action in legal},
        policy=policy_of(root, answer),
        q={action: mean_of(root, action) for action in legal},
        value=float(root.proven) if root.proven is not None else total / visited if visited else 0.0,
        proven=root.proven,
        simulations=simulations,
        root=root,
        trace=trace,
    )


def visits_of(root: MCTSNode, action: int) -> int:
    """The visits of a move; 0 if it was not opened."""
    return root.children[action].visit_count if action in root.children else 0


def mean_of(root: MCTSNode, action: int) -> float:
    """The mean value of a move for who makes it; exact if proven, NaN if it was never tried."""
    child = root.children.get(action)
    if child is None or child.visit_count == 0:
        return math.nan
    proven = child.proven_for_chooser
    return float(proven) if proven is not None else child.total_value / child.visit_count


def not_lost(root: MCTSNode) -> list[int]:
    """The root's moves that are not proven to lose: the opened ones in order of opening, then the others."""
    opened = [action for action, child in root.children.items() if child.proven_for_chooser != -1]
    return opened + root.list_actions()


def lowest(actions: list[int], measure: Callable[[int], int]) -> list[int]:
    """The actions for which `measure` is least, in the order given."""
    least = min(measure(action) for action in actions)
    return [action for action in actions if measure(action) == least]
