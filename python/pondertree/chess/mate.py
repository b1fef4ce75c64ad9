"""Mate search: proves forced mates within a few moves, for or against the side to move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pondertree import validation
from pondertree._core import Chess
from pondertree._core import mate_search as engine_mate_search
from pondertree.chess.config import MAX_MATE_DEPTH
from pondertree.errors import InvalidArgumentError
from pondertree.games import chess_interop

if TYPE_CHECKING:
    import chess

    from pondertree.chess.alphazero import ChessGame


#: The hybrid specification's score of a mate for the side to move; negated against it, 0 without a mate.
MATE_SCORE = 1_000_000

MateKind = Literal["mate_in", "mated_in", "unknown"]


@dataclass(frozen=True, slots=True)
class MateAnswer:
    """The result of `mate_search` for the side to move. Moves are UCI text for a state or a FEN, and `chess.Move` for a
    python-chess board.

    Unpacks as the specification's tuple: `score, move, nodes = mate_search(state, depth)`.
    """

    kind: MateKind
    """`"mate_in"`: a forced mate; `"mated_in"`: mated against every defence; `"unknown"`: neither is proven."""
    n: int | None
    """Moves of the mating side, against the longest defence; None if unknown."""
    move: Any
    """The first move of the mate or of the longest defence; None if unknown."""
    action: int | None
    """The action of `move`; None if unknown."""
    line: list[Any]
    """The principal variation up to the mate; empty if unknown."""
    nodes: int
    """Nodes searched."""

    @property
    def score(self) -> int:
        """The specification's score: 1000000 for a mate, -1000000 for being mated, 0 if unknown."""
        return {"mate_in": MATE_SCORE, "mated_in": -MATE_SCORE, "unknown": 0}[self.kind]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.score, self.move, self.nodes))


def mate_search(state: Chess | str | chess.Board | ChessGame, depth: int, budget: int | None = None) -> MateAnswer:
    """Returns the shortest mate for or against the side to move within `depth` moves (mate in n is 2n - 1 plies).

    The search is full-width and exact: "unknown" without a `budget` means that no such mate exists. Stalemate,
    insufficient material, a third repetition (the state's history counts) and the 50-move rule are draws below the
    root; the root itself is searched even where a draw could be claimed.

    `state` is a chess state, a FEN, a `chess.Board` or a `ChessGame`. `budget` bounds the nodes searched. Depth 4 takes
    about a tenth of a second in a middlegame, each further move about thirty times as long; Ctrl-C interrupts.

    Raises a GameOverError if the game is over, and an InvalidArgumentError if it is not chess or `depth` is above 64.
    """
    depth = validation.whole_number(depth, "depth", most=MAX_MATE_DEPTH)
    if budget is not None:
        budget = validation.whole_number(budget, "budget")
    position = chess_interop.to_state(Chess(state) if isinstance(state, str) else state)
    if not isinstance(position, Chess):
        raise InvalidArgumentError(
            f"state must be a chess state, a FEN, a chess.Board or a ChessGame, not {type(state).__name__}"
        )
    moves, actions, nodes = engine_mate_search(position, depth, budget)
    as_text = position is state or isinstance(state, str)
    line: list[Any] = []
    for action in actions:
        line.append(position.action_to_string(action) if as_text else chess_interop.chess_move(position, action))
        position = position.play(action)
    kind: MateKind = "mate_in" if moves > 0 else "mated_in" if moves < 0 else "unknown"
    return MateAnswer(
        kind=kind,
        n=abs(moves) or None,
        move=line[0] if line else None,
        action=actions[0] if actions else None,
        line=line,
        nodes=nodes,
    )
