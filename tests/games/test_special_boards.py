"""Pictures of games that are no grids of pieces."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from pondertree.game import COMPILED
from pondertree.games import Backgammon, Pig, TwentyFortyEight
from pondertree.games.board_svg import board_svg, can_be_flipped, move_centres, piece_colours
from pondertree.games.special_boards import LAST, PICTURES

SVG = "{http://www.w3.org/2000/svg}"
GAMES = [start for start, game in COMPILED.items() if game.board in PICTURES]


def drawn(state: Any, move: str = "") -> str:
    picture = board_svg(state, move)
    assert picture is not None
    return picture


def texts(picture: str) -> list[str]:
    return [str(element.text) for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@pytest.mark.parametrize("start", GAMES)
def test_every_state_of_a_game_is_drawn(start: Any) -> None:
    numbers, state = random.Random(1), start()
    assert len(GAMES) == 3
    while not state.is_terminal:
        action = numbers.choice(state.legal_actions())
        move = state.action_to_string(action)
        state = state.play(action)
        label = ElementTree.fromstring(drawn(state, move)).attrib["aria-label"]
        assert label.startswith(COMPILED[start].title)
        assert str(state).splitlines()[-1] in label
    assert move_centres(state, [0]) == [[]]
    assert piece_colours(start) is None
    assert not can_be_flipped(state)


def test_tiles_show_their_numbers_and_the_last_one() -> None:
    state = TwentyFortyEight("empty").play(2).play(9)
    assert texts(drawn(state)) == ["2", "4", "score 0"]
    assert LAST not in drawn(state)
    assert f'<rect x="2" y="32" width="26" height="26" rx="2" fill="#ede0c8" stroke="{LAST}"' in drawn(state, "a2=4")


def test_points_show_every_checker() -> None:
    assert drawn(Backgammon("roll")).count("<circle") == 30
    crowded = drawn(Backgammon("XGID=-I----F-----------a-b-----:0:0:1:31"))
    assert crowded.count("<circle") == 5 + 5 + 1 + 2 + 5  # those of O that are off
    assert {"9", "6"} <= set(texts(crowded))


def test_scores_show_both_players_and_the_turn() -> None:
    state = Pig().play(0).play(6).play(1).play(0).play(4)
    assert texts(drawn(state, "4")) == ["X", "6", "O", "0", "turn", "4", "4"]
