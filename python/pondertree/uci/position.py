"""The game as the other program tells it: where it began, the moves since, and the state they lead to.

Chess programs may play on where the rules have ended a game by a draw (bare kings, a fifth repetition, 75 moves). Our
states do not; here such moves are read off the board, so that the engine is never left behind with an old position.
"""

from __future__ import annotations

from dataclasses import dataclass

from pondertree._core import Chess
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidActionError, InvalidPositionError
from pondertree.uci import protocol
from pondertree.uci.protocol import shown

#: A game that is ended by 75 moves without progress has fewer.
MOST_MOVES = 20_000


@dataclass(frozen=True, slots=True)
class Game:
    """A game up to now."""

    start: str | None
    """The FEN it began with; None is the usual start."""
    moves: tuple[str, ...]
    state: Chess

    def moves_since(self, earlier: Game) -> tuple[str, ...] | None:
        """The moves by which this game goes on from an earlier point of it; None if it is another game."""
        known = len(earlier.moves)
        if self.start != earlier.start or self.moves[:known] != earlier.moves:
            return None
        return self.moves[known:]


def new_game() -> Game:
    """The usual start."""
    return Game(None, (), Chess())


def read(command: protocol.Position, known: Game) -> Game:
    """The game of a `position` command. What goes on from the game that is `known` is not played again.

    Raises an InvalidPositionError or InvalidActionError that says what is wrong.
    """
    if len(command.moves) > MOST_MOVES:
        raise InvalidActionError(f"position: {len(command.moves)} moves are more than any game has")
    game = Game(command.fen, command.moves, known.state)
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
    return Game(command.fen, command.moves, state)


def play(state: Chess, text: str) -> Chess:
    """The state after a move, also where the game is drawn by rule."""
    if not state.is_terminal:
        return state.play(state.parse_action(text))
    for move, fen in state._moves_on_board():
        if move == text:
            return Chess(fen)
    raise InvalidActionError(f"{shown(text)} is not legal")


def legal_moves(state: Chess) -> list[str]:
    """The moves of the pieces, drawn by rule or not; none in mate and stalemate."""
    if state.is_terminal:
        return [move for move, _ in state._moves_on_board()]
    return [state.action_to_string(action) for action in state.legal_actions()]


def at_first_sight(state: Chess, pesto: Pesto, among: frozenset[str] | None = None) -> str | None:
    """A sensible move without any search: the best by what the positions after it are worth; None if there is none."""
    best, most = None, 0.0
    for move in legal_moves(state):
        if among is not None and move not in among:
            continue
        after = play(state, move)
        worth = 2.0 if after.termination == "checkmate" else 0.0 if after.is_terminal else -pesto.value(after)
        if best is None or worth > most:
            best, most = move, worth
    return best
