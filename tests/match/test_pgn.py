"""PGN and move text of matches, read by our parser and by python-chess."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pondertree.games import Chess, ConnectFour
from pondertree.match import GameRecord, MatchResult, play_match, write_games
from pondertree.match.notation import read_pgn
from pondertree.match.openings import read_openings
from pondertree.match.result import write_pgn

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
