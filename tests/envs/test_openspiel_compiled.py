"""Games of OpenSpiel that are compiled here: equal states, and the translation of actions."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pyspiel
import pytest
from tests.support.openspiel import games_to_compare

from pondertree import CHANCE
from pondertree.envs import from_openspiel, openspiel_actions
from pondertree.envs.openspiel.compiled import translation_of
from pondertree.envs.openspiel.states import OpenSpielState
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

pytestmark = pytest.mark.oracle

#: Names, classes, and random games to compare.
TRANSLATED = [
    ("2048(max_tile=65536)", TwentyFortyEight, 3),
    ("backgammon", Backgammon, 3),
    ("breakthrough", Breakthrough, 30),
    ("chess", Chess, 2),
    ("connect_four", ConnectFour, 50),
    ("hex", Hex, 5),
    ("hex(num_cols=3,num_rows=3)", Hex, 50),
    ("othello", Othello, 20),
    ("pig(horizon=100000,winscore=30)", Pig, 20),
    ("tic_tac_toe", TicTacToe, 100),
]


def drawn(state: Any, numbers: random.Random) -> int:
    """A random legal action, or an outcome by its probability."""
    if state.is_chance_node():
        chosen: int = numbers.choices(*zip(*state.chance_outcomes(), strict=True))[0]
        return chosen
    return numbers.choice(state.legal_actions())


@pytest.mark.parametrize(("name", "kind", "games"), TRANSLATED)
def test_random_games_are_the_same(name: str, kind: type, games: int) -> None:
    """Follows games by the translation of their actions; compares with the conversion of whole states."""
    game, numbers = pyspiel.load_game(name), random.Random(name)
    for _ in range(games_to_compare(games)):
        theirs = game.new_initial_state()
        ours = from_openspiel(theirs)
        swapped = isinstance(ours, Chess)
        translation = translation_of(theirs)
        assert translation is not None
        while not theirs.is_terminal():
            assert isinstance(ours, kind)
            actions = translation.actions(theirs, ours)
            assert actions is not None
            assert list(actions) == theirs.legal_actions()
            if kind is TwentyFortyEight:  # OpenSpiel omits some mergers
                assert set(actions.values()) <= set(ours.legal_actions())
            else:
                assert set(actions.values()) == set(ours.legal_actions())
            if theirs.is_chance_node():
                assert ours.to_play == CHANCE
                expected: dict[int, float] = {}
                for outcome, probability in theirs.chance_outcomes():
                    expected[actions[outcome]] = expected.get(actions[outcome], 0.0) + probability
                assert dict(ours.chance_outcomes()) == pytest.approx(expected)
            else:
                assert ours.to_play == (1 - theirs.current_player() if swapped else theirs.current_player())
            action = drawn(theirs, numbers)
            ours = ours.play(actions[action])
            theirs.apply_action(action)
            if not theirs.is_terminal() and theirs.move_number() % 20 == 0:
                assert from_openspiel(theirs) == ours
                assert openspiel_actions(theirs) == translation.actions(theirs, ours)
        if swapped and not ours.is_terminal:  # claims of a draw end the game in OpenSpiel
            assert isinstance(from_openspiel(theirs), OpenSpielState)
            assert theirs.returns() == [0.0, 0.0]
            assert ours.repetitions >= 2 or int(ours.fen().split()[4]) >= 100
            continue
        assert from_openspiel(theirs) == ours
        assert ours.is_terminal
        if kind is TwentyFortyEight:
            assert [ours.score] == theirs.returns()
        else:
            assert ours.returns() == (theirs.returns()[::-1] if swapped else theirs.returns())


@pytest.mark.parametrize(
    "name",
    [
        "2048",
        "backgammon(hyper_backgammon=true)",
        "backgammon(scoring_type=full_scoring)",
        "breakthrough(rows=6,columns=6)",
        "chess(chess960=true)",
        "connect_four(rows=5)",
        "connect_four(x_in_row=3)",
        "hex(num_cols=4,num_rows=5)",
        "hex(swap=true)",
        "hex(board_size=20)",
        "pig(players=3)",
        "pig(piglet=true)",
        "pig(diceoutcomes=4)",
        "misere(game=tic_tac_toe())",
        "clobber",
    ],
)
def test_other_rules_are_not_translated(name: str) -> None:
    state = pyspiel.load_game(name).new_initial_state()
    assert isinstance(from_openspiel(state), OpenSpielState)
    assert openspiel_actions(state) == {action: action for action in state.legal_actions()}


def test_own_rules_are_an_option() -> None:
    assert isinstance(from_openspiel("othello", compiled=False), OpenSpielState)
    assert isinstance(from_openspiel("othello", scale=1.0), OpenSpielState)
    assert isinstance(from_openspiel("othello"), Othello)


def test_chess_positions_keep_their_start_and_history() -> None:
    fen = "r3k2r/pPpp1ppp/8/3Pp3/8/8/P1P1PPPP/R3K2R w KQkq e6 0 1"
    theirs = pyspiel.load_game("chess").new_initial_state(fen)
    state = from_openspiel(theirs)
    assert state == Chess(fen)
    texts = {state.action_to_string(ours) for ours in openspiel_actions(theirs).values()}
    assert {"e1g1", "e1c1", "b7a8q", "b7a8n", "d5e6"} <= texts
    for text in ("O-O", "O-O"):
        theirs.apply_action(theirs.string_to_action(text))
    assert from_openspiel(theirs).fen().startswith("r4rk1/pPpp1ppp/8/3Pp3/8/8/P1P1PPPP/R4RK1 w - ")


def test_boards_of_other_starts_are_not_translated() -> None:
    game = pyspiel.load_game("connect_four")
    played = game.new_initial_state()
    for action in (3, 3, 2, 1):
        played.apply_action(action)
    other = game.new_initial_state(str(played.to_json()))
    assert other.history() == []
    assert other.legal_actions() == game.new_initial_state().legal_actions()
    state = from_openspiel(other)
    assert isinstance(state, OpenSpielState)
    assert str(state) == str(played)
    assert pickle.loads(pickle.dumps(state)) == state != from_openspiel(played, compiled=False)


def test_chess_draw_by_repetition_is_an_end() -> None:
    theirs = pyspiel.load_game("chess").new_initial_state()
    for text in ("Nf3", "Nf6", "Ng1", "Ng8") * 2:
        assert isinstance(from_openspiel(theirs), Chess)
        theirs.apply_action(theirs.string_to_action(text))
    state = from_openspiel(theirs)
    assert isinstance(state, OpenSpielState)
    assert state.is_terminal
    assert state.returns() == [0.0, 0.0]


def test_games_near_their_limit_are_not_translated() -> None:
    theirs = pyspiel.load_game("pig(horizon=20)").new_initial_state()
    for number in range(1, 13):
        theirs.apply_action(1)
        assert isinstance(from_openspiel(theirs), Pig if number <= 10 else OpenSpielState)
        assert (translation_of(theirs) is None) == (number > 10)


def test_backgammon_orders_of_a_play_are_one_action() -> None:
    theirs = pyspiel.load_game("backgammon").new_initial_state()
    theirs.apply_action(0)
    actions = openspiel_actions(theirs)
    assert len(set(actions.values())) < len(actions)
    ours = from_openspiel(theirs)
    for action, same in actions.items():
        assert from_openspiel(theirs.child(action)) == ours.play(same)
