"""Tic-tac-toe, Connect 4 and Othello compared with OpenSpiel, and with the moves played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel
import pytest
from numpy.typing import NDArray

from pondertree.errors import GameOverError, InvalidActionError
from pondertree.games import ConnectFour, Othello, TicTacToe
from pondertree.random import PLAYOUT, Random, fold

pytestmark = pytest.mark.oracle

GAMES: list[tuple[Any, str]] = [(TicTacToe, "tic_tac_toe"), (ConnectFour, "connect_four"), (Othello, "othello")]
games = pytest.mark.parametrize(("game", "name"), GAMES)
classes = pytest.mark.parametrize("game", [game for game, _ in GAMES])
SIZES = {TicTacToe: (3, 3), ConnectFour: (6, 7), Othello: (8, 8)}


def random_game(game: Any, seed: int) -> Iterator[tuple[Any, list[int]]]:
    """The states of a random game with the actions that led there."""
    random, state, path = Random(seed, PLAYOUT), game(), []
    while True:
        yield state, list(path)
        legal = state.legal_actions()
        if not legal:
            return
        path.append(legal[random.choose(len(legal))])
        state = state.play(path[-1])


@games
def test_rules_match_openspiel(game: Any, name: str) -> None:
    oracle = pyspiel.load_game(name)
    assert game().num_actions == oracle.num_distinct_actions()
    assert game().num_players == oracle.num_players()
    results = set()
    passes = 0
    for number in range(300):
        theirs = oracle.new_initial_state()
        for state, path in random_game(game, fold(1, number)):
            if path:
                theirs.apply_action(path[-1])
            assert state.is_terminal == theirs.is_terminal()
            if state.is_terminal:
                assert state.returns() == theirs.returns()
                assert state.legal_actions() == []
                results.add(state.returns()[0])
            else:
                assert state.to_play == theirs.current_player()
                assert state.legal_actions() == theirs.legal_actions()
                assert state.returns() == [0.0, 0.0]
                passes += state.legal_actions() == [64]
    assert results >= {1.0, -1.0}
    assert game is not Othello or passes > 50


def test_all_ends_of_tic_tac_toe_match_openspiel() -> None:
    """The whole game: every position that can come about."""
    seen: set[TicTacToe] = set()
    todo = [(TicTacToe(), pyspiel.load_game("tic_tac_toe").new_initial_state())]
    while todo:
        state, theirs = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        assert state.is_terminal == theirs.is_terminal()
        assert state.returns() == theirs.returns()
        assert state.legal_actions() == ([] if theirs.is_terminal() else theirs.legal_actions())
        todo += [(state.play(action), theirs.child(action)) for action in state.legal_actions()]
    assert len(seen) == 5478


def test_drawn_connect_four_game_ends() -> None:
    """Random games seldom fill the board, so many are played."""
    drawn = 0
    for number in range(4000):
        state = ConnectFour()
        _, _, state = state._playout(number, "random", None)
        if state.is_terminal and state.returns() == [0.0, 0.0]:
            drawn += 1
            assert "." not in str(state)
            assert state.legal_actions() == []
            assert str(state).endswith("draw")
    assert drawn > 3


@classes
def test_move_text_round_trips(game: Any) -> None:
    for number in range(40):
        for state, _ in random_game(game, fold(2, number)):
            texts = [state.action_to_string(action) for action in state.legal_actions()]
            assert len(set(texts)) == len(texts)
            for action, text in zip(state.legal_actions(), texts, strict=True):
                assert state.parse_action(text) == action
                assert state.parse_action(f" {text.upper()} ") == action


def test_move_texts_are_pinned() -> None:
    assert [TicTacToe().action_to_string(action) for action in range(9)] == [
        "a1",
        "b1",
        "c1",
        "a2",
        "b2",
        "c2",
        "a3",
        "b3",
        "c3",
    ]
    assert [ConnectFour().action_to_string(action) for action in range(7)] == list("1234567")
    # Black's four openings.
    assert [Othello().action_to_string(action) for action in Othello().legal_actions()] == ["d3", "c4", "f5", "e6"]


# Boards kept by hand: what the moves say, without any of the engine's tricks.


def board_of(game: Any, path: list[int]) -> NDArray[np.int64]:
    """0 is empty, 1 and 2 are the players' stones; row 0 is at the top."""
    board = np.zeros(SIZES[game], dtype=np.int64)
    if game is Othello:
        board[3, 3] = board[4, 4] = 2
        board[3, 4] = board[4, 3] = 1
    for ply, action in enumerate(path):
        own = 1 + ply % 2
        if game is TicTacToe:
            board[action // 3, action % 3] = own
        elif game is ConnectFour:
            board[max(row for row in range(6) if board[row, action] == 0), action] = own
        elif action != 64:
            put_disc(board, action // 8, action % 8, own)
    return board


def put_disc(board: NDArray[np.int64], row: int, column: int, own: int) -> None:
    flips = [(row, column)]
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            line = []
            y, x = row + down, column + right
            while 0 <= y < 8 and 0 <= x < 8 and board[y, x] == 3 - own:
                line.append((y, x))
                y, x = y + down, x + right
            if 0 <= y < 8 and 0 <= x < 8 and board[y, x] == own:
                flips += line
    for y, x in flips:
        board[y, x] = own


@classes
def test_observation_and_text_show_the_board(game: Any) -> None:
    """Own stones, the other's, and 1 where player 0 is to move; the drawing has the same stones."""
    for number in range(30):
        for state, path in random_game(game, fold(3, number)):
            board = board_of(game, path)
            own = 1 + len(path) % 2
            expected = np.stack([board == own, board == 3 - own, np.full(board.shape, own == 1)]).astype(np.float32)
            seen = state.observation()
            assert seen.dtype == np.float32
            assert np.array_equal(seen, expected)
            drawn = [symbol for line in str(state).splitlines()[:-1] for symbol in line.split() if symbol in ".XO"]
            assert drawn == [".XO"[stone] for stone in board.flat]
            last = str(state).splitlines()[-1]
            if state.is_terminal:
                assert last == {0.0: "draw", 1.0: "X wins", -1.0: "O wins"}[state.returns()[0]]
            else:
                assert last == f"{'XO'[state.to_play]} to move"


@classes
def test_small_game_states_are_equal_with_equal_hashes(game: Any) -> None:
    """Equal exactly where the board and the player to move are."""
    by_key: dict[tuple[bytes, int], Any] = {}
    for number in range(40):
        for state, path in random_game(game, fold(4, number)):
            key = board_of(game, path).tobytes(), len(path) % 2
            known = by_key.setdefault(key, state)
            assert state == known
            assert (state != known) is False
            assert hash(state) == hash(known)
    assert len(set(by_key.values())) == len(by_key)
    assert game() != "a board"
    assert all(game() != other() for other, _ in GAMES if other is not game)


@classes
def test_small_game_states_are_values(game: Any) -> None:
    """Nothing can be set, and an observation belongs to the caller."""
    state = game()
    with pytest.raises(AttributeError):
        state.to_play = 1
    seen = state.observation()
    seen[:] = 7
    assert state.observation().max() == 1.0


@classes
def test_illegal_moves_raise_typed_errors(game: Any) -> None:
    start = game()
    for action in (-1, start.num_actions, 10**9, -(10**9)):
        for method in (start.play, start.action_to_string):
            with pytest.raises(InvalidActionError, match=f"action {action} is not legal here; legal actions: "):
                method(action)
    for text in ("", "x9", "-1", "pass", "\U0001f600", "0x1"):
        with pytest.raises(InvalidActionError):
            start.parse_action(text)
    for wrong in ("1", 1.5, None):
        with pytest.raises(TypeError):
            start.play(wrong)
    for state, _ in random_game(game, 5):
        legal = set(state.legal_actions())
        for action in range(state.num_actions):
            if action not in legal:
                with pytest.raises(GameOverError if state.is_terminal else InvalidActionError):
                    state.play(action)
    assert state.is_terminal
    with pytest.raises(InvalidActionError, match="the game is over"):
        state.parse_action("1")
