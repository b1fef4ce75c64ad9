"""Search results as plain data, in one form for all algorithms, for tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pondertree.cli.position import Position
from pondertree.drawing import SearchedNode
from pondertree.game import move_text, perspective
from pondertree.games.chance import is_chance


@dataclass(frozen=True, slots=True)
class Move:
    """A move at the root, in the game's notation (chess: UCI).

    `q` and `proven` are for the player to move at the root; `plies` includes this move.
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
    """The result of a search, with every legal move: the best one first, then by visits."""

    position: Position
    algorithm: str
    description: str
    """The description of the search."""
    seed: int
    simulations: int
    elapsed: float
    value: float
    values: tuple[float, ...]
    """Value per player; `value` is that of the player to move."""
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
        """Describes the proven result."""
        if self.proven is None:
            return "nothing yet"
        player = self.position.player
        within = f" in {plies_text(self.plies)}" if self.plies else ""
        return {1: f"{player} wins{within}", 0: "a draw with best play", -1: f"{player} loses{within}"}[self.proven]

    def text_of(self, move: Move) -> str:
        """Returns the display text of a root move; in chess, standard algebraic notation."""
        return self.position.write(move.action)

    def line_of(self, move: Move) -> list[str]:
        """Returns the principal variation of `move` in display notation."""
        return self.position.write_line(move.pv)

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """Returns the object that `--json` prints; chess moves are in UCI notation, with an additional `san`."""
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
    """Formats a number of plies."""
    return "1 ply" if plies == 1 else f"{plies} plies"


def count_text(simulations: int) -> str:
    """Formats a number of simulations."""
    return "1 simulation" if simulations == 1 else f"{simulations:,} simulations"


def fit(moves: Sequence[str], columns: int) -> str:
    """Joins moves in one line, truncated to `columns` at a whole move."""
    text = ""
    for move in moves:
        longer = f"{text} {move}" if text else move
        if len(longer) > columns:
            break
        text = longer
    return text


def list_moves(
    state: Any, best_action: int, visits: Any, q: Any, root: SearchedNode | None, pv: Sequence[str] = ()
) -> tuple[Move, ...]:
    """Returns every legal move, `best_action` first, then by visits. `visits` and `q` are indexed by action.

    Proofs and principal variations are read from the tree; that of `best_action` is `pv` if given. They stop at the
    first chance node, where there is nothing to choose.
    """
    legal = [int(action) for action in state.legal_actions()]
    total = sum(int(visits[action]) for action in legal)
    moves = []
    for action in legal:
        text = move_text(state, action)
        child = None if root is None else root.children.get(action)
        proven = None if root is None or child is None else proven_for_parent(root, child)
        is_best = bool(pv) and action == best_action
        line = tuple(pv) if is_best else (text, *variation_below(state.play(action), child))
        moves.append(
            Move(
                action=action,
                move=text,
                visits=int(visits[action]),
                share=int(visits[action]) / total if total else 0.0,
                q=None if math.isnan(q[action]) else float(q[action]),
                proven=proven,
                plies=None if child is None or proven is None else 1 + (child.distance or 0),
                pv=line,
            )
        )
    return tuple(sorted(moves, key=lambda move: (move.action != best_action, -move.visits)))


def proven_for_parent(node: SearchedNode, child: SearchedNode) -> int | None:
    """Returns the proven result of the edge to `child`, for the player to move at `node`."""
    if child.proven is None:
        return None
    return child.proven if perspective(child.to_play) == perspective(node.to_play) else -child.proven


def variation_below(state: Any, node: SearchedNode | None) -> list[str]:
    """Returns the principal variation below `node`, by the engine's rule: most visited, or by proofs.

    It stops at a chance node.
    """
    line = []
    while node is not None and node.children and not is_chance(state):
        parent, proven = node, node.proven

        def rank(action: int, parent: SearchedNode = parent, proven: int | None = proven) -> tuple[int, int, int]:
            child: SearchedNode = parent.children[action]
            exact = int(proven is not None and proven_for_parent(parent, child) == proven)
            plies = child.distance or 0
            if proven == 1:
                return exact, -plies, 0
            return (exact, plies, child.visit_count) if proven == -1 else (exact, child.visit_count, 0)

        action = max(node.children, key=rank)
        if state.is_terminal or action not in state.legal_actions():
            break  # a learned model may leave the rules
        line.append(move_text(state, action))
        state, node = state.play(action), node.children[action]
    return line
