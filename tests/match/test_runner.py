"""Matches: strength, reproducibility for any concurrency, SPRT, resume, invalid arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from examples.games.nim import Nim
from tests.support.matches import lines_without_times, shape

import pondertree
from pondertree.errors import InvalidArgumentError
from pondertree.match import Adjudication, MatchResult, SearchEntrant, play_match, read_record

STRONG, WEAK = "uct:num_simulations=400", "uct:num_simulations=20"


# --- strength -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["tictactoe", "connect4"])
def test_more_simulations_score_higher(game: str) -> None:
    result = play_match(STRONG, WEAK, game, num_games=60, seed=1, concurrency=1)
    assert result.finished
    assert result.wins + result.draws + result.losses == 60 == 2 * sum(result.pentanomial)
    assert result.elo.low > 30.0
    assert result.elo.los > 0.99
    back = play_match(WEAK, STRONG, game, num_games=60, seed=1, concurrency=1)
    assert back.elo.high < -30.0


def test_player_scores_half_against_itself() -> None:
    result = play_match(WEAK, WEAK, "connect4", num_games=200, seed=3, concurrency=1)
    assert result.elo.low < 0.0 < result.elo.high


def test_deterministic_equal_players_split_every_pair() -> None:
    result = play_match("first", "first", "connect4", num_games=20, seed=1, concurrency=1)
    assert result.pentanomial == (0, 0, 10, 0, 0)
    assert all(one.moves == two.moves for one, two in [pair.games for pair in result.pairs])


def test_every_game_and_player_type_is_accepted() -> None:
    """A Python game; a search, a function and an entrant."""
    best = play_match(pondertree.UCT(300, seed=9), lambda state: state.legal_actions()[0], Nim, num_games=4, seed=1)
    assert best.players == ("UCT(num_simulations=300)", "<lambda>")
    assert best.game == "examples.games.nim.Nim"
    assert best.wins >= 2
    named = SearchEntrant(pondertree.UCT(20), reuse=True, label="mine")
    assert play_match(named, "random", "tictactoe", num_games=2, concurrency=1).players == ("mine", "random")


# --- repeating ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_results_depend_on_seed_and_not_on_concurrency(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"num_games": 16, "seed": 5}
    players = "uct:num_simulations=60,temperature=0.5", pondertree.UCT(40, c_param=0.7)
    first = play_match(*players, "connect4", concurrency=1, out=tmp_path / "one", **settings)
    again = play_match(*players, "connect4", concurrency=1, **settings)
    spread = play_match(*players, "connect4", concurrency=3, out=tmp_path / "three", **settings)
    other = play_match(*players, "connect4", concurrency=1, num_games=16, seed=6)
    assert shape(first) == shape(again) == shape(spread) != shape(other)
    assert lines_without_times(tmp_path / "one") == lines_without_times(tmp_path / "three")


def test_previous_use_of_search_does_not_change_match() -> None:
    fresh, used = pondertree.UCT(30), pondertree.UCT(30)
    used.run([pondertree.games.ConnectFour()] * 3)
    used.run(pondertree.games.ConnectFour())
    results = [play_match(one, "random", "connect4", num_games=4, seed=2, concurrency=1) for one in (fresh, used)]
    assert shape(results[0]) == shape(results[1])


def test_games_have_distinct_numbers_and_seeds() -> None:
    result = play_match("random", "random", "connect4", num_games=12, seed=1, concurrency=1, openings=["4 4"])
    assert [game.number for game in result.games] == list(range(12))
    assert [game.first for game in result.games] == [1, 2] * 6
    assert len({game.moves for game in result.games}) == 12


def test_missing_seed_is_drawn_and_reported() -> None:
    drawn = play_match(WEAK, WEAK, "tictactoe", num_games=4, concurrency=1)
    again = play_match(WEAK, WEAK, "tictactoe", num_games=4, concurrency=1, seed=drawn.seed)
    assert shape(drawn) == shape(again)


def test_games_are_independent_of_num_games() -> None:
    few, more = (play_match(WEAK, WEAK, "connect4", num_games=n, seed=2, concurrency=1).games for n in (4, 10))
    assert [game.moves for game in few] == [game.moves for game in more[:4]]


# --- the sequential test --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sprt_stops_match_independently_of_concurrency(tmp_path: Path) -> None:
    results = [
        play_match(STRONG, WEAK, "connect4", num_games=400, seed=1, sprt=(0, 100), concurrency=n, out=tmp_path / str(n))
        for n in (1, 3)
    ]
    assert results[0].sprt is not None
    assert results[0].sprt.verdict == "H1"
    assert 4 <= len(results[0].games) < 100
    assert results[0].finished
    assert shape(results[0]) == shape(results[1])
    assert lines_without_times(tmp_path / "1") == lines_without_times(tmp_path / "3")
    # A decided match is not continued.
    more = play_match(
        STRONG, WEAK, "connect4", num_games=800, seed=1, sprt=(0, 100), concurrency=1, out=tmp_path / "1", resume=True
    )
    assert shape(more) == shape(results[0])


# --- going on -------------------------------------------------------------------------------------------------


class Stop(Exception):  # noqa: N818 (nothing went wrong)
    pass


@pytest.mark.parametrize("kind", [Stop, KeyboardInterrupt])
def test_interrupted_match_resumes(tmp_path: Path, kind: type[BaseException]) -> None:
    whole, part, games = tmp_path / "whole", tmp_path / "part", tmp_path / "games.txt"
    settings: dict[str, Any] = {"num_games": 12, "concurrency": 1}

    def stop(result: MatchResult) -> None:
        assert not result.finished
        if len(result.games) == 6:
            raise kind

    full = play_match(WEAK, "random", "connect4", out=whole, seed=4, **settings)
    with pytest.raises(kind):
        play_match(WEAK, "random", "connect4", out=part, progress=stop, seed=4, pgn=games, **settings)
    assert len(read_record(part)[1]) == 3
    assert games.read_text().count("# game") == 6
    seen: list[int] = []
    # The default seed is that of the file.
    resumed = play_match(
        WEAK, "random", "connect4", out=part, resume=True, progress=lambda r: seen.append(len(r.games)), **settings
    )
    assert seen == [8, 10, 12]
    assert shape(resumed) == shape(full)
    assert lines_without_times(part) == lines_without_times(whole)


def test_finished_match_can_be_extended(tmp_path: Path) -> None:
    out = tmp_path / "match.jsonl"
    play_match(WEAK, "random", "tictactoe", num_games=4, seed=4, concurrency=1, out=out)
    more = play_match(WEAK, "random", "tictactoe", num_games=8, concurrency=1, out=out, resume=True)
    assert shape(more) == shape(play_match(WEAK, "random", "tictactoe", num_games=8, seed=4, concurrency=1))
    fewer = play_match(WEAK, "random", "tictactoe", num_games=2, concurrency=1, out=out, resume=True)
    assert len(fewer.games) == 2
    assert len(read_record(out)[1]) == 4  # finished pairs are kept


# --- what is wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_games": 3}, "num_games must be even"),
        ({"num_games": 0}, "num_games must be at least 1"),
        ({"num_games": 2.0}, "num_games"),
        ({"game": "go"}, "unknown game 'go'"),
        ({"game": 3}, "game must be"),
        ({"game": pondertree.games.TicTacToe()}, "game must be"),
        ({"player1": "uct:x=1"}, "player1 'uct:x=1': unknown setting 'x'"),
        ({"player2": 7}, "player2 must be"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 2, "player1": lambda state: 0}, "concurrency must be 1: player1, <lambda>, cannot be sent"),
        ({"sprt": (5, 0)}, "elo0 must be below elo1"),
        ({"openings": 3}, "openings"),
        ({"plies": -1}, "plies"),
        ({"adjudication": {"max_plies": 3}}, "adjudication must be an Adjudication"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"resume": True}, "resume requires out"),
        ({"progress": 3}, "progress"),
    ],
)
def test_invalid_arguments_raise_naming_argument(settings: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"player1": "random", "player2": "first", "game": "tictactoe", "num_games": 2}
    with pytest.raises(InvalidArgumentError, match=message):
        play_match(**{**arguments, **settings})


def test_unsupported_games_raise() -> None:
    class Solitaire(Nim):
        num_players = 1

    with pytest.raises(InvalidArgumentError, match="game: a match needs"):
        play_match("random", "first", Solitaire)


def test_resume_rejects_another_match(tmp_path: Path) -> None:
    out = tmp_path / "match.jsonl"
    play_match("random", "first", "tictactoe", num_games=2, seed=1, concurrency=1, out=out)
    retained = out.read_bytes()
    for other in (
        {"player1": "first"},
        {"seed": 2},
        {"game": "connect4"},
        {"plies": 2},
        {"sprt": (0, 5)},
        {"adjudication": Adjudication(max_plies=5)},
        {"on_failure": "error"},
    ):
        arguments: dict[str, Any] = {"player1": "random", "player2": "first", "game": "tictactoe", **other}
        with pytest.raises(InvalidArgumentError, match="was started with"):
            play_match(**arguments, num_games=2, out=out, resume=True, concurrency=1)
    with pytest.raises(InvalidArgumentError, match="exists already"):
        play_match("random", "first", "tictactoe", num_games=2, out=out)
    assert out.read_bytes() == retained


def test_existing_pgn_raises_before_match(tmp_path: Path) -> None:
    (tmp_path / "games.txt").write_text("kept")
    for path in (tmp_path, tmp_path / "none" / "games.txt", tmp_path / "games.txt"):
        with pytest.raises(InvalidArgumentError, match="pgn: "):
            play_match("random", "first", "tictactoe", num_games=2, pgn=path, concurrency=1)
    assert (tmp_path / "games.txt").read_text() == "kept"


def test_result_as_json_has_all_statistics() -> None:
    result = play_match("first", "random", "connect4", num_games=4, seed=1, concurrency=1, sprt=(0, 10))
    data = json.loads(json.dumps(result.as_json()))
    assert data["games"] == data["wins"] + data["draws"] + data["losses"] == 4
    assert data["sprt"]["verdict"] is None
    assert len(data["interval"]) == 2
    assert result.interval == (result.elo.low, result.elo.high)
    assert str(result).splitlines()[-1].startswith("SPRT of 0 against 10 Elo: LLR")
