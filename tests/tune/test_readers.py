"""Positions from PGN, EPD and match records; invalid entries are skipped and reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess
from pondertree.match import play_match
from pondertree.tune import from_epd, from_pgn, join, read_positions
from pondertree.tune.readers import epd_result, read_self_play

QUIET = "1. Nf3 Nf6 2. g3 g6 3. Bg2 Bg7 4. O-O O-O 5. d3 d6 6. c3 c6 7. h3"
PGN = f"""\
[White "Ærøskøbing"]
[Result "1-0"]

{QUIET} 1-0

[Result "0-1"]

1. e4 e5 2. Ke3 Nf6 0-1

[Result "*"]

1. e4 e5 *

[Result "1/2-1/2"]
[FEN "this is none"]

1. e4 *

[Result "1/2-1/2"]

{QUIET}
"""


def test_pgn_games_yield_positions_and_results() -> None:
    found = from_pgn(PGN, "games.pgn")
    assert found.num_games == 2
    assert sorted(set(found.results)) == [0.5, 1.0]
    assert found.fens[0].decode().startswith("rnbq1rk1/ppppppbp/5np1/8/8/5NP1/PPPPPPBP/RNBQ1RK1 w")
    assert len(found) == 10
    assert found.skipped.count == 3
    one, two, three = found.skipped.named
    assert one.startswith('games.pgn, game 2: "Ke3" is not a legal move')
    assert two == "games.pgn, game 3: it has no result"
    assert three.startswith("games.pgn, game 4: ")


def test_epd_lines_yield_positions_and_results() -> None:
    start, fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -", "4k3/8/8/8/8/8/4P3/4K3 b - - 4 30"
    lines = [
        f'{start} c9 "1-0";',
        "# a comment",
        "",
        f"{fen} [0.5]",
        f"{fen}; 0-1",
        f'{start} hmvc 3; c9 "1/2-1/2"; id "some";',
        f"{start}",
        "8/8/8/8/8/8/8/8 w - - 1-0",
        "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1 [1.0]",
        "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1 [1.0]",
        "nonsense 0-1",
    ]
    found = from_epd("\n".join(lines), "quiet.epd")
    assert found.results.tolist() == [1.0, 0.5, 0.0, 0.5]
    assert found.fens[1].decode() == fen
    assert found.num_games == 4
    assert found.skipped.not_quiet == 1
    assert found.skipped.count == 4
    assert [text.split(":")[0] for text in found.skipped.named] == [
        f"quiet.epd, line {number}" for number in (7, 8, 10, 11)
    ]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('c9 "1-0";', 1.0),
        ("0-1", 0.0),
        ("[1/2-1/2]", 0.5),
        ("[1]", 1.0),
        ("[ 0.50 ]", 0.5),
        ("[0.0]", 0.0),
        ("[0.7]", None),
        ("[-1]", None),
        ('id "11-0";', None),
        ("", None),
    ],
)
def test_epd_result_notations_are_read(text: str, result: float | None) -> None:
    assert epd_result(f"4k3/8/8/8/8/8/4P3/4K3 b - - 0 1 {text}") == result


def test_reader_follows_file_suffix(tmp_path: Path) -> None:
    (tmp_path / "games.pgn").write_bytes(PGN.encode("latin-1"))
    (tmp_path / "quiet.epd").write_text(f'{Chess().fen()} c9 "1-0";\n')
    both = join([read_positions(tmp_path / "games.pgn"), read_positions(str(tmp_path / "quiet.epd"))])
    assert len(both) == 11
    both.save(tmp_path / "positions.npz")
    assert len(read_positions(tmp_path / "positions.npz")) == 11
    with pytest.raises(InvalidArgumentError, match=r"none\.pgn' cannot be read"):
        read_positions(tmp_path / "none.pgn")
    with pytest.raises(InvalidArgumentError, match=r"are read from \.pgn"):
        read_positions(tmp_path / "games.txt")


def test_match_records_yield_positions(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    result = play_match("random", "random", "chess", num_games=2, seed=1, concurrency=1, out=path)
    found = read_positions(path)
    assert 0 < len(found) < sum(len(game.moves) for game in result.games)
    play_match("random", "random", "connect4", num_games=2, seed=1, concurrency=1, out=tmp_path / "other.jsonl")
    with pytest.raises(InvalidArgumentError, match="a match of connect_four, not of chess"):
        read_self_play(tmp_path / "other.jsonl")
