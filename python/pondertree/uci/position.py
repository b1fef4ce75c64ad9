"""The game of the `position` command: its starting position, its moves and the resulting state.

Chess GUIs may continue after an automatic draw (insufficient material, fivefold repetition, the 75-move rule), our
states do not. Such moves are generated from the board alone, so that the engine follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pondertree._core import Chess
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidActionError, InvalidPositionError
from pondertree.uci import protocol
from pondertree.uci.protocol import shown

#: Upper bound of a game's length under the 75-move rule.
MAX_MOVES = 20_000


@dataclass(frozen=True, slots=True)
class UciGame:
    """A game in progress."""

    start: str | None
    """The FEN of the starting position; None is the standard one."""
    moves: tuple[str, ...]
    state: Chess

    def moves_since(self, earlier: UciGame) -> tuple[str, ...] | None:
        """Returns the moves that lead from `earlier` to this game; None if it is not a continuation."""
        known = len(earlier.moves)
        if self.start != earlier.start or self.moves[:known] != earlier.moves:
            return None
        return self.moves[known:]


def new_game() -> UciGame:
    """Returns a game at the standard starting position."""
    return UciGame(None, (), Chess())


def read(command: protocol.Position, known: UciGame) -> UciGame:
    """Returns the game of a `position` command, without replaying the moves of the `known` game.

    Raises an InvalidPositionError or InvalidActionError.
    """
    if len(command.moves) > MAX_MOVES:
        raise InvalidActionError(f"position: {len(command.moves)} moves are more than any game has")
    game = UciGame(command.fen, command.moves, known.state)
    since = game.moves_since(known)
    if since is None:
        try:
            state = Chess(command.fen)
        except InvalidPositionError as error:
            raise InvalidPositionError(f"position: {error}") from None
        since = command.moves
    else:
        state = known.state
    first = len(command.moves) - len(since) + 1
    for number, text in enumerate(since, start=first):
        try:
            state = play(state, text)
        except InvalidActionError:
            raise InvalidActionError(
                f"position: move {number}, {shown(text)}, is not legal after those before"
            ) from None
    return UciGame(command.fen, command.moves, state)


def play(state: Chess, text: str) -> Chess:
    """Returns the state after a move, also after an automatic draw."""
    if not state.is_terminal:
        return state.play(state.parse_action(text))
    for move, fen in state._moves_on_board():
        if move == text:
            return Chess(fen)
    raise InvalidActionError(f"{shown(text)} is not legal")


def legal_moves(state: Chess) -> list[str]:
    """Returns the legal moves, also after an automatic draw; none in checkmate and stalemate."""
    if state.is_terminal:
        return [move for move, _ in state._moves_on_board()]
    return [state.action_to_string(action) for action in state.legal_actions()]


def static_best_move(state: Chess, pesto: Pesto, root_moves: frozenset[str] | None = None) -> str | None:
    """Returns the best move by a one-ply search with the static evaluation; None without legal moves."""
    best, most = None, 0.0
    for move in legal_moves(state):
        if root_moves is not None and move not in root_moves:
            continue
        after = play(state, move)
        worth = 2.0 if after.termination == "checkmate" else 0.0 if after.is_terminal else -pesto.value(after)
        if best is None or worth > most:
            best, most = move, worth
    return best
