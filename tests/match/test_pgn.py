"""PGN and move text of matches, read by our parser and by python-chess."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pondertree.errors import InvalidActionError
from pondertree.game import CHANCE
from pondertree.games import Backgammon, Chess, ConnectFour
from pondertree.match import GameRecord, MatchResult, Opening, play_match, write_games
from pondertree.match.notation import read_pgn
from pondertree.match.openings import make_openings, read_openings
from pondertree.match.result import write_moves, write_pgn

BLACK_TO_MOVE = "4k3/8/8/8/8/8/4P3/4K3 b - - 3 17"


@pytest.fixture(scope="module")
def chess_match() -> MatchResult:
    return play_match("uct:num_simulations=5", "random", "chess", num_games=4, seed=5, concurrency=1)


def test_chess_pgn_round_trips(chess_match: MatchResult) -> None:
    games = read_pgn(write_games(chess_match))
    assert len(games) == 4
    for (fen, moves), game in zip(games, chess_match.games, strict=True):
        state = Chess(fen)
        for text, written in zip(moves, game.moves, strict=True):
            assert state.action_to_string(state.parse_action(text)) == written
            state = state.play(state.parse_action(text))


@pytest.mark.oracle
def test_chess_pgn_is_read_by_python_chess(chess_match: MatchResult) -> None:
    pgn = pytest.importorskip("chess.pgn")
    file = io.StringIO(write_games(chess_match))
    for game in chess_match.games:
        found = pgn.read_game(file)
        assert not found.errors
        assert [move.uci() for move in found.mainline_moves()] == list(game.moves)
        assert found.headers["Round"] == f"{game.number // 2 + 1}.{game.number % 2 + 1}"
        white = chess_match.players[0] if game.first == 1 else chess_match.players[1]
        assert found.headers["White"] == white
        points = game.points if game.first == 1 else 1 - game.points
        assert found.headers["Result"] == {1.0: "1-0", 0.5: "1/2-1/2", 0.0: "0-1"}[points]
        assert int(found.headers["PlyCount"]) == len(game.moves)
    assert pgn.read_game(file) is None


def test_pgn_of_failed_game_starting_with_black() -> None:
    game = GameRecord(
        number=3,
        first=2,
        points=1.0,
        reason="died",
        fen=BLACK_TO_MOVE,
        moves=("e8e7", "e2e4"),
        opening=1,
        seconds=(0.5,),
        values=(-0.25,),
        culprit=2,
        detail='exit {7} "x"',
    )
    text = write_pgn(game, ('a "quoted" \\ name', "b"))
    assert '[White "b"]\n[Black "a \\"quoted\\" \\\\ name"]\n[Result "0-1"]' in text
    assert '[Termination "abandoned"]\n[SetUp "1"]' in text
    assert text.endswith('17... Ke7 18. e4 {-0.25 0.500s} {died: exit (7) "x"} 0-1\n')
    assert read_pgn(text) == [(BLACK_TO_MOVE, ("Ke7", "e4"))]


def test_move_text_of_other_games_is_read_as_openings(tmp_path: Path) -> None:
    path = tmp_path / "games.txt"
    result = play_match("first", "random", "connect4", num_games=4, seed=1, concurrency=1, pgn=path)
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# game 0: first - random ")
    assert lines[1].split() == list(result.games[0].moves)
    assert [one.moves for one in read_openings(path, "connect_four")] == [game.moves for game in result.games]
    assert ConnectFour().parse_action(lines[1].split()[0]) >= 0


def test_games_with_moves_of_several_words_are_read_as_openings(tmp_path: Path) -> None:
    path = tmp_path / "games.txt"
    result = play_match("first", "random", "backgammon", num_games=4, seed=1, concurrency=1, pgn=path)
    book = make_openings(path, Backgammon, "backgammon", 0, 40)
    for number, game in enumerate(result.games):
        assert any(" " in move for move in game.moves[:40])
        assert book[number] == Opening(game.moves[:40], game.fen)
        assert book[number].state(Backgammon).to_play in (0, 1, CHANCE)


def test_game_of_one_move_with_several_words_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "games.txt"
    game = GameRecord(
        number=0,
        first=1,
        points=1.0,
        reason="died",
        fen=None,
        moves=("8/5 6/5",),
        opening=0,
        seconds=(0.5,),
        values=(None,),
    )
    path.write_text(write_moves(game, ("a", "b")))
    assert read_openings(path, "backgammon") == [Opening(("8/5 6/5",))]


def test_listed_openings_of_backgammon_begin_with_a_move_or_a_roll() -> None:
    book = make_openings(["8/5 6/5; 6-4", "X 6-4; 24/14"], Backgammon, "backgammon", 0, None)
    assert (book[0].fen, book[1].fen) == (None, "roll")
    with pytest.raises(InvalidActionError, match='opening 1: move 1: "9/1"'):
        make_openings(["9/1"], Backgammon, "backgammon", 0, None)
