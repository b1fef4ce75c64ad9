"""What a search has found, as plain data: one form for all algorithms, for tables and for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pondertree.cli.position import Position
from pondertree.game import move_text


class TreeNode(Protocol):
    """What the engine's `Node` and the twin's `MCTSNode` have in common."""

    @property
    def visit_count(self) -> int: ...
    @property
    def to_play(self) -> int: ...
    @property
    def proven(self) -> int | None: ...
    @property
    def distance(self) -> int | None: ...
    @property
    def children(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Move:
    """A move at the root, in the game's notation (chess: UCI).

    `q` and `proven` are for the player to move there; `plies` counts this move too.
    """

    action: int
    move: str
    visits: int
    share: float
    q: float | None
    proven: int | None
    plies: int | None
    pv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A search: its answer, and every legal move, the answer first and then by visits."""

    position: Position
    algorithm: str
    description: str
    """The description of the search."""
    seed: int
    simulations: int
    elapsed: float
    value: float
    values: tuple[float, ...]
    """One for each player; `value` is that of the player to move."""
    proven: int | None
    plies: int | None
    moves: tuple[Move, ...]

    @property
    def best(self) -> Move:
        """The move to play."""
        return self.moves[0]

    @property
    def speed(self) -> float:
        """Simulations per second."""
        return self.simulations / self.elapsed if self.elapsed > 0 else 0.0

    def verdict(self) -> str:
        """What is proven, in words."""
        if self.proven is None:
            return "nothing yet"
        player = self.position.player
        within = f" in {plies_text(self.plies)}" if self.plies else ""
        return {1: f"{player} wins{within}", 0: "a draw with best play", -1: f"{player} loses{within}"}[self.proven]

    def text_of(self, move: Move) -> str:
        """A move at the root as people read it: in chess, standard algebraic notation."""
        return self.position.write(move.action)

    def line_of(self, move: Move) -> list[str]:
        """The line that begins with `move`, as people read it."""
        return self.position.write_line(move.pv)

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """The object that `--json` prints; moves of chess are in UCI notation, with `san` beside it."""
        is_chess = self.position.game == "chess"
        return {
            "game": self.position.game,
            "position": self.position.text,
            "to_play": self.position.state.to_play,
            "player": self.position.player,
            "algorithm": self.algorithm,
            "seed": self.seed,
            "simulations": self.simulations,
            "elapsed": round(self.elapsed, 6),
            "value": self.value,
            "values": list(self.values),
            "proven": self.proven,
            "move": self.best.move,
            **({"san": self.text_of(self.best)} if is_chess else {}),
            "action": self.best.action,
            "pv": list(self.best.pv),
            "moves": [
                {
                    "action": move.action,
                    "move": move.move,
                    **({"san": self.text_of(move)} if is_chess else {}),
                    "visits": move.visits,
                    "share": move.share,
                    "q": move.q,
                    "proven": move.proven,
                    "pv": list(move.pv),
                }
                for move in self.moves[:top]
            ],
        }


def plies_text(plies: int | None) -> str:
    """A number of plies, in words."""
    return "1 ply" if plies == 1 else f"{plies} plies"


def count_text(simulations: int) -> str:
    """A number of simulations, in words."""
    return "1 simulation" if simulations == 1 else f"{simulations:,} simulations"


def fit(moves: Sequence[str], columns: int) -> str:
    """The moves in one line, truncated to the given number of columns at a whole move."""
    text = ""
    for move in moves:
        longer = f"{text} {move}" if text else move
        if len(longer) > columns:
            break
        text = longer
    return text


def list_moves(
    state: Any, answer: int, visits: Any, q: Any, root: TreeNode | None, pv: Sequence[str] = ()
) -> tuple[Move, ...]:
    """Every legal move, the answer first, then the most visited. `visits` and `q` have a number for each action.

    Proofs and lines are read off the tree; the line of the answer is `pv` where it is given.
    """
    legal = [int(action) for action in state.legal_actions()]
    total = sum(int(visits[action]) for action in legal)
    moves = []
    for action in legal:
        text = move_text(state, action)
        child = None if root is None else root.children.get(action)
        proven = None if root is None or child is None else proven_for_chooser(root, child)
        moves.append(
            Move(
                action=action,
                move=text,
                visits=int(visits[action]),
                share=int(visits[action]) / total if total else 0.0,
                q=None if math.isnan(q[action]) else float(q[action]),
                proven=proven,
                plies=None if child is None or proven is None else 1 + (child.distance or 0),
                pv=tuple(pv) if pv and action == answer else (text, *line_below(state.play(action), child)),
            )
        )
    return tuple(sorted(moves, key=lambda move: (move.action != answer, -move.visits)))


def proven_for_chooser(node: TreeNode, child: TreeNode) -> int | None:
    """What is proven of the move to `child`, for the player who makes it."""
    if child.proven is None:
        return None
    return child.proven if child.to_play == node.to_play else -child.proven


def line_below(state: Any, node: TreeNode | None) -> list[str]:
    """The expected moves below `node`: the most visited, or those of what is proven. It is the rule of the engine."""
    line = []
    while node is not None and node.children:
        parent, proven = node, node.proven

        def rank(action: int, parent: TreeNode = parent, proven: int | None = proven) -> tuple[int, int, int]:
            child: TreeNode = parent.children[action]
            exact = int(proven is not None and proven_for_chooser(parent, child) == proven)
            plies = child.distance or 0
            if proven == 1:
                return exact, -plies, 0
            return (exact, plies, child.visit_count) if proven == -1 else (exact, child.visit_count, 0)

        action = max(node.children, key=rank)
        if state.is_terminal or action not in state.legal_actions():
            break  # a learned model imagines what the rules do not allow
        line.append(move_text(state, action))
        state, node = state.play(action), node.children[action]
    return line
