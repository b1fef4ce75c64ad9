"""The games of OpenSpiel that are compiled here: the same states, and the translation of actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pondertree.envs.openspiel.load import openspiel, state_of
from pondertree.errors import PondertreeError
from pondertree.games import (
    Backgammon,
    Breakthrough,
    Chess,
    ConnectFour,
    Hex,
    Othello,
    Pig,
    TicTacToe,
    TwentyFortyEight,
)

#: OpenSpiel's rolls of two different dice, in the order of its outcomes; the doubles follow.
_ROLLS = "12 21 13 31 14 41 15 51 16 61 23 32 24 42 25 52 26 62 34 43 35 53 36 63 45 54 46 64 56 65 11 22 33 44 55 66"
_DICE = [sorted(map(int, roll)) for roll in _ROLLS.split()]
#: Two tiles of this size and above merge in OpenSpiel only.
_LARGEST_TILE = 65_536


def _same(theirs: Any, ours: Any, action: int) -> int:
    return action


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of a game of OpenSpiel to a compiled one."""

    start: Callable[[Mapping[str, Any], Any], Any]
    """Maps the parameters of the game and a state to the start of the state's game here; None for other rules."""
    action: Callable[[Any, Any, int], int] = _same
    """Maps a state, the same state here, and an action or outcome in it to that of the compiled game."""
    longest: Callable[[Mapping[str, Any]], float] = lambda parameters: float("inf")
    """Returns the length of a history that limits the game in OpenSpiel alone."""
    omits_actions: bool = False
    """Whether OpenSpiel omits some legal actions."""
    swaps_players: bool = False
    """Whether player 0 is player 1 there."""

    def applies(self, theirs: Any) -> bool:
        """Whether a state is so far from the limit of its game that this limit does not matter."""
        return 2 * len(theirs.history()) <= self.longest(theirs.get_game().get_parameters())

    def actions(self, theirs: Any, ours: Any) -> dict[int, int] | None:
        """Returns the compiled game's actions by OpenSpiel's legal ones; None unless the states have the same."""
        if theirs.is_terminal() or ours.is_terminal:
            return {} if theirs.is_terminal() and ours.is_terminal else None
        player = theirs.current_player()
        if ours.to_play != (1 - player if self.swaps_players else player):
            return None
        translated = {action: self.action(theirs, ours, action) for action in theirs.legal_actions()}
        found, legal = set(translated.values()), set(ours.legal_actions())
        return translated if found == legal or (self.omits_actions and found < legal) else None


def _hex(parameters: Mapping[str, Any], theirs: Any) -> Any:
    rows = parameters["num_rows"]
    is_same = rows == parameters["num_cols"] and not parameters["swap"]
    return Hex(rows) if is_same else None


def _chess(parameters: Mapping[str, Any], theirs: Any) -> Any:
    return None if parameters["chess960"] else Chess(theirs.start_fen())


def _chess_action(theirs: Any, ours: Any, action: int) -> int:
    move = openspiel().chess.action_to_move(action, theirs.board())
    found: int = ours.parse_action(move.to_lan())
    return found


def _breakthrough_action(theirs: Any, ours: Any, action: int) -> int:
    # OpenSpiel numbers them by row from the top, column, direction (0 to 2 of player 0, 3 to 5 of player 1), capture.
    square, direction = divmod(action // 2, 6)
    return (square if direction < 3 else square ^ 56) * 3 + direction % 3


def _pig(parameters: Mapping[str, Any], theirs: Any) -> Any:
    is_same = parameters["players"] == 2 and parameters["diceoutcomes"] == 6 and not parameters["piglet"]
    return Pig(parameters["winscore"]) if is_same else None


def _pig_action(theirs: Any, ours: Any, action: int) -> int:
    return action + int(theirs.is_chance_node())  # faces are numbered from 0 there


def _backgammon(parameters: Mapping[str, Any], theirs: Any) -> Any:
    is_same = parameters["scoring_type"] == "winloss_scoring" and not parameters["hyper_backgammon"]
    return Backgammon("roll") if is_same else None


def _backgammon_action(theirs: Any, ours: Any, action: int) -> int:
    if theirs.is_chance_node():
        # OpenSpiel distinguishes the order of the dice, which here only the first roll has: it decides who starts.
        low, high = _DICE[action]
        return high * (high - 1) // 2 + low - 1 + 21 * (theirs.is_initial_state() and action % 2)
    player = theirs.current_player()
    order, pair = divmod(action, 676)
    # Points are counted from the side of X there, from the mover's here.
    first, second = (point if point >= 24 or player == 0 else 23 - point for point in (pair % 26, pair // 26))
    legal = ours.legal_actions()
    # Of the plays that lead to the same position, one is legal here: often the same two moves in the other order.
    for same in (order * 676 + second * 26 + first, (1 - order) * 676 + first * 26 + second):
        if same in legal:
            return int(same)
    text = re.sub(r"^\d+ - |(?<=.) Pass$", "", theirs.action_to_string(player, action)).lower()
    found: int = ours.parse_action(text)
    return found


_TRANSLATIONS = {
    "2048": Translation(
        lambda parameters, _: TwentyFortyEight("empty") if parameters["max_tile"] >= _LARGEST_TILE else None,
        omits_actions=True,
    ),
    "backgammon": Translation(
        # A turn is a roll and a move.
        _backgammon,
        _backgammon_action,
        lambda parameters: 2 * parameters["max_player_turns"],
    ),
    "breakthrough": Translation(
        lambda parameters, _: Breakthrough() if parameters["rows"] == parameters["columns"] == 8 else None,
        _breakthrough_action,
    ),
    "chess": Translation(_chess, _chess_action, swaps_players=True),
    "connect_four": Translation(
        lambda parameters, _: (
            ConnectFour() if [parameters[name] for name in ("rows", "columns", "x_in_row")] == [6, 7, 4] else None
        )
    ),
    "hex": Translation(_hex),
    "othello": Translation(lambda *_: Othello()),
    "pig": Translation(_pig, _pig_action, lambda parameters: parameters["horizon"]),
    "tic_tac_toe": Translation(lambda *_: TicTacToe()),
}


def translation_of(theirs: Any) -> Translation | None:
    """Returns the translation of the game of a state; None if the game is not compiled."""
    found = _TRANSLATIONS.get(theirs.get_game().get_type().short_name)
    return found if found is not None and found.applies(theirs) else None


def compiled_state(theirs: Any) -> Any:
    """Returns the state of a compiled game after the same actions; None if there is none."""
    found = _compiled(theirs)
    return None if found is None else found[0]


def _compiled(theirs: Any) -> tuple[Any, dict[int, int]] | None:
    """Returns the state of a compiled game after the same actions, and its actions by OpenSpiel's; None if none is.

    The state is compared with the original: the board is that of its history in OpenSpiel, the same player is to move,
    and the legal actions are the same.
    """
    translation = translation_of(theirs)
    if translation is None:
        return None
    game = theirs.get_game()
    try:
        ours = translation.start(game.get_parameters(), theirs)
        if ours is None:
            return None
        is_chess = isinstance(ours, Chess)
        replayed = game.new_initial_state(theirs.start_fen()) if is_chess else game.new_initial_state()
        for action in theirs.history():
            ours = ours.play(translation.action(replayed, ours, action))
            replayed.apply_action(action)
        actions = translation.actions(theirs, ours)
    except (PondertreeError, openspiel().SpielError):  # a start or an action that the game here has not
        return None
    return None if actions is None or str(replayed) != str(theirs) else (ours, actions)


def openspiel_actions(state: Any) -> dict[int, int]:
    """Returns the actions of `from_openspiel(state)` by OpenSpiel's legal actions in `state`.

    They are the same numbers unless the game is compiled here. Several actions of OpenSpiel may be one here: in
    backgammon the orders of moves that lead to the same position.
    """
    theirs = state_of(state)
    found = _compiled(theirs)
    return {action: action for action in theirs.legal_actions()} if found is None else found[1]
