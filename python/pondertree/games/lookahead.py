"""Shallow search in two-player zero-sum games: forced moves, and minimax over ends of the game.

Both stop at chance nodes, behind which nothing is forced.
"""

from __future__ import annotations

from collections.abc import Sequence

from pondertree.games.chance import CHANCE
from pondertree.games.game_state import State, listed_actions


def forced_actions(state: State, legal: Sequence[int]) -> list[int]:
    """Returns the actions of `legal` to search: immediate wins if there are any, else those that do not lose at once.

    Deviation: the specification names forced moves without defining them. Excluding a move is sound only if it cannot
    be better than a remaining one. So a move is excluded only if another wins at once, or if the opponent can win right
    after it and another move prevents that.
    """
    player = state.to_play
    after = {action: state.play(action) for action in legal}
    wins = [action for action in legal if after[action].is_terminal and after[action].returns()[player] > 0]
    if wins:
        return wins
    safe = [action for action in legal if not _loses_at_once(after[action], player)]
    return safe or list(legal)


def _loses_at_once(state: State, player: int) -> bool:
    """Whether `player` has lost in `state`, or the opponent has a move that wins at once."""
    if state.is_terminal:
        return state.returns()[player] < 0
    opponent = state.to_play
    # After a double move the same player is to move, and the opponent cannot win here; chance is no opponent.
    if opponent in (player, CHANCE):
        return False
    replies = (state.play(action) for action in state.legal_actions())
    return any(reply.is_terminal and reply.returns()[opponent] > 0 for reply in replies)


def minimax(state: State, depth: int) -> dict[int, tuple[int, int]]:
    """Returns (verdict, plies) of each legal action by minimax of `depth` plies, for the player to move.

    The verdict is +1 for a forced win, -1 for a forced loss, 0 for neither (a draw, or unknown within the depth).
    `plies` counts to the end of the game, this action included: the fewest for a win, the most for a loss, 0 for
    neither. Only ends of the game count; positions at the horizon and chance nodes are unknown, not draws.
    """
    player = state.to_play
    verdicts: dict[int, tuple[int, int]] = {}
    for action in listed_actions(state):
        verdict, plies = _verdict(state.play(action), depth - 1, player) if depth > 0 else (0, 0)
        verdicts[action] = (verdict, plies + 1 if verdict else 0)
    return verdicts


def _verdict(state: State, depth: int, player: int) -> tuple[int, int]:
    """Returns (verdict, plies) for `player`. The recursion is as deep as `depth`."""
    if state.is_terminal:
        result = state.returns()[player]
        return (1 if result > 0 else -1 if result < 0 else 0), 0
    if depth == 0 or state.to_play == CHANCE:
        return 0, 0
    win = 1 if state.to_play == player else -1  # the verdict that the player to move aims for
    verdicts = [_verdict(state.play(action), depth - 1, player) for action in listed_actions(state)]
    wins = [plies for verdict, plies in verdicts if verdict == win]
    if wins:
        return win, 1 + min(wins)
    if all(verdict == -win for verdict, _ in verdicts):
        return -win, 1 + max(plies for _, plies in verdicts)
    return 0, 0
