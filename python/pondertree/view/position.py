"""The message of a position: the game so far, its board and its legal moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pondertree.game import COMPILED, describe, is_over, state_text
from pondertree.games import Chess, ConnectFour
from pondertree.games.board_svg import CELL, board_svg, can_be_flipped, move_centres
from pondertree.match.game import claimed_draw
from pondertree.view.messages import encode_within
from pondertree.view.setup import GamePosition, Turn, ViewSettings

#: Moves of the game, points of its evaluation and characters of a board in text that a message has at most.
MAX_MOVES, MAX_EVALUATIONS, MAX_BOARD = 300, 400, 10_000
#: Legal moves of a message; of those that follow, fewer if they do not fit.
MAX_LEGAL = 1_000
#: Moves after which most positions of Connect 4 are solved within the seconds that the solver has.
FIRST_SOLVED = 7
#: Characters of a move.
MAX_TEXT = 60


def move_text(position: GamePosition, action: int) -> str:
    """Returns the text of a move for display."""
    return position.write(action)[:MAX_TEXT]


def outcome_of(position: GamePosition) -> str:
    """Describes how the game ended; empty before. Claimable draws end a game of chess, as in `pondertree play`."""
    if is_over(position.state):
        return position.outcome()
    claim = claimed_draw(position.state)
    return "" if claim is None else f"The game is a draw ({claim.replace('_', ' ')})."


def unsolvable_because(state: Any) -> str:
    """Returns why the exact solver cannot value the moves of a position; empty if it may."""
    if isinstance(state, Chess) or not describe(state).is_two_player_zero_sum:
        return "Exact values are for zero-sum games of two players, without chess"
    if isinstance(state, ConnectFour) and state.observation()[:2].sum() < FIRST_SOLVED:
        return f"Connect 4 is solved after {FIRST_SOLVED} moves or more: earlier positions take minutes"
    return ""


def board_message(state: Any, last_move: str = "") -> dict[str, Any]:
    """Returns a board as SVG and as text; for compiled games without the line on the player to move."""
    lines = state_text(state).splitlines()
    return {
        "svg": board_svg(state, last_move),
        "text": "\n".join(lines[:-1] if type(state) in COMPILED else lines)[:MAX_BOARD],
        "flip": 180 if can_be_flipped(state) else 0,
        "cell": CELL,
    }


def legal_message(position: GamePosition) -> list[dict[str, Any]]:
    """Returns the legal moves with the cells that they go through."""
    if outcome_of(position):
        return []
    legal = [int(action) for action in position.state.legal_actions()][:MAX_LEGAL]
    return [
        {"action": action, "text": move_text(position, action), "cells": cells}
        for action, cells in zip(legal, move_centres(position.state, legal), strict=True)
    ]


def position_message(
    number: int,
    history: Sequence[Turn],
    ply: int,
    legal: Sequence[Mapping[str, Any]],
    settings: ViewSettings,
    evaluations: Mapping[int, float],
) -> str:
    """Returns the message of the position after `ply` moves, whose `legal_message` is `legal`."""
    position = history[ply][1]
    outcome = outcome_of(position)
    first = max(0, min(ply - MAX_MOVES // 2, len(history) - 1 - MAX_MOVES))
    moves = [
        {"action": action, "text": move_text(before, action), "player": int(before.state.to_play)}
        for (_, before), (action, _) in zip(history[first:], history[first + 1 :], strict=False)
        if action is not None
    ][:MAX_MOVES]
    action = history[ply][0]
    last_move = "" if action is None else played_text(history[ply - 1][1], action)
    points = sorted(evaluations.items())
    step = 1 + len(points) // MAX_EVALUATIONS
    message = {
        "type": "position",
        "position": number,
        "moves": moves,
        "first": first,
        "ply": ply,
        "to_play": int(position.state.to_play),
        "over": bool(outcome),
        "outcome": outcome,
        "fen": position.state.fen() if isinstance(position.state, Chess) else None,
        "board": board_message(position.state, last_move),
        "legal": legal,
        "unsolvable": unsolvable_because(position.state),
        "settings": asdict(settings),
        "evaluations": [{"ply": ply, "value": value} for ply, value in points[::step]],
    }
    return encode_within(message, ("legal", "evaluations"))


def played_text(before: GamePosition, action: int) -> str:
    """Returns the text of a move as `board_svg` reads it: in the notation of the engine."""
    writer = getattr(before.state, "action_to_string", None)
    return "" if writer is None else str(writer(action))
