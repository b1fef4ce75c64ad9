"""Mate search: who is forced to mate whom within a few moves, proven against every defence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pondertree import _core, validation
from pondertree._core import Chess
from pondertree.chess.config import MAX_MATE_DEPTH
from pondertree.errors import InvalidArgumentError
from pondertree.games import chess_interop

if TYPE_CHECKING:
    import chess

    from pondertree.chess.alphazero import ChessGame

#: The deepest search that can be asked for, in moves.
MAX_DEPTH = MAX_MATE_DEPTH

#: The score of a mate for the side to move in the specification; against it, minus that; without a mate, 0.
MATE_SCORE = 1_000_000

Kind = Literal["mate_in", "mated_in", "unknown"]


@dataclass(frozen=True, slots=True)
class MateAnswer:
    """What `mate_search` found out, for the side to move. Moves are in the terms of the question: UCI text for a state
    or a FEN, `chess.Move` for a python-chess board.

    It unpacks as the specification's tuple: `score, move, nodes = mate_search(state, depth)`.
    """

    kind: Kind
    """`"mate_in"`: it mates; `"mated_in"`: it is mated whatever it plays; `"unknown"`: neither is proven."""
    n: int | None
    """In how many moves of the side that mates, against the longest defence; None if unknown."""
    move: Any
    """The move to play: the first of the mate, or of the longest defence; None if unknown."""
    action: int | None
    """The number of `move`, as states play it; None if unknown."""
    line: list[Any]
    """All moves up to the mate, both sides playing their best; empty if unknown."""
    nodes: int
    """Positions looked at."""

    @property
    def score(self) -> int:
        """The specification's score for the side to move: 1000000 mates, -1000000 is mated, 0 is neither."""
        return {"mate_in": MATE_SCORE, "mated_in": -MATE_SCORE, "unknown": 0}[self.kind]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.score, self.move, self.nodes))


def mate_search(state: Chess | str | chess.Board | ChessGame, depth: int, budget: int | None = None) -> MateAnswer:
    """The shortest mate for or against the side to move within `depth` moves (mate in n is 2n - 1 plies).

    All moves of both sides are tried, so "unknown" without a `budget` says that there is no such mate. A mate that is
    claimed is one: stalemate, insufficient material, a third repetition (the history of the state counts) and the
    50-move rule are draws on the way to it. The position asked about is played on even where a draw could be claimed.

    `state` is a chess state, a FEN, a `chess.Board` or a `ChessGame`. `budget` bounds the positions looked at: when it
    is used up, what is not proven is unknown. Depth 4 takes about a tenth of a second in a middlegame, each further
    move about thirty times as long; Ctrl-C works.

    Raises a GameOverError if the game is over, and an InvalidArgumentError if it is not chess or `depth` is above 64.
    """
    depth = validation.whole_number(depth, "depth", most=MAX_DEPTH)
    if budget is not None:
        budget = validation.whole_number(budget, "budget")
    position = chess_interop.to_state(Chess(state) if isinstance(state, str) else state)
    if not isinstance(position, Chess):
        raise InvalidArgumentError(
            f"state must be a chess state, a FEN, a chess.Board or a ChessGame, not {type(state).__name__}"
        )
    moves, actions, nodes = _core.mate_search(position, depth, budget)
    as_text = position is state or isinstance(state, str)
    line: list[Any] = []
    for action in actions:
        line.append(position.action_to_string(action) if as_text else chess_interop.chess_move(position, action))
        position = position.play(action)
    kind: Kind = "mate_in" if moves > 0 else "mated_in" if moves < 0 else "unknown"
    return MateAnswer(
        kind=kind,
        n=abs(moves) or None,
        move=line[0] if line else None,
        action=actions[0] if actions else None,
        line=line,
        nodes=nodes,
    )
