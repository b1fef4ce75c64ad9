"""Openings: balance, distinctness and reproducibility of random ones; files and errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples.games.nim import Nim

from pondertree import UCT
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.games import Chess, ConnectFour, Hex, Othello, TicTacToe
from pondertree.match import Opening, openings
from pondertree.match.notation import read_epd, read_pgn
from pondertree.match.openings import RandomOpenings, default_plies, make_openings


@dataclass(frozen=True)
class Stones:
    """A Python game without notation: take one, two or three; taking the last one wins."""

    left: int = 15
    to_play: int = 0
    num_players = 2
    num_actions = 3

    @property
    def is_terminal(self) -> bool:
        return self.left == 0

    def legal_actions(self) -> list[int]:
        return list(range(min(3, self.left)))

    def play(self, action: int) -> Stones:
        return Stones(self.left - action - 1, 1 - self.to_play)

    def returns(self) -> tuple[float, float]:
        return (-1.0, 1.0) if self.to_play == 0 else (1.0, -1.0)


MATE = "6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1"


@pytest.mark.parametrize("game", [TicTacToe, ConnectFour, Othello, Chess, Nim, Stones])
def test_random_openings_are_reproducible(game: Any) -> None:
    book = RandomOpenings(game, 7, 3)
    again = RandomOpenings(game, 7, 3)
    other = RandomOpenings(game, 8, 3)
    drawn = [book[number] for number in range(5)]
    assert [again[number] for number in (4, 0, 1, 2, 3)] == [drawn[number] for number in (4, 0, 1, 2, 3)]
    assert [other[number] for number in range(5)] != drawn
    assert all(len(opening.moves) == 3 and not opening.state(game).is_terminal for opening in drawn)
    assert len(set(drawn)) == 5


def test_random_openings_are_distinct() -> None:
    book = RandomOpenings(TicTacToe, 1, 1)
    assert len({book[number] for number in range(7)}) == 7
    assert book[20].moves  # there are only nine distinct ones


def decided(book: RandomOpenings) -> int:
    """The number of 60 Connect 4 openings that a search finds won or lost."""
    roots = [book[number].state(ConnectFour) for number in range(60)]
    return sum(result.proven in (-1, 1) for result in UCT(2000, seed=1).run(roots))


def test_unbalanced_openings_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    even = decided(RandomOpenings(ConnectFour, 3, 8))
    monkeypatch.setattr(openings, "_is_even", lambda state, seed: True)
    assert even * 3 < decided(RandomOpenings(ConnectFour, 3, 8))


@pytest.mark.parametrize("moves", ["e4 e5 Nf3 Nc6", "d4 d5 c4 e6 Nc3 Nf6", "e4 d5", ""])
def test_chess_openings_are_balanced(moves: str) -> None:
    assert openings._is_even(Opening(tuple(moves.split())).state(Chess), 1)


@pytest.mark.parametrize("moves", ["e4 e5 Qh5 g6", "e4 f6 d4 g5", "e4 e5 Ba6", "Nf3 g5", "d4 e5"])
def test_chess_judge_detects_hanging_pieces_and_mates(moves: str) -> None:
    assert not openings._is_even(Opening(tuple(moves.split())).state(Chess), 1)


def test_known_openings_are_not_drawn_again() -> None:
    book, again = RandomOpenings(ConnectFour, 1, 4), RandomOpenings(ConnectFour, 1, 4)
    for number in range(3):
        again.restore(number, book[number])
    assert again[5] == book[5]
    recorded = Opening(("1", "1", "1", "1"))
    other = RandomOpenings(ConnectFour, 1, 4)
    other.restore(0, recorded)
    assert other[0] == recorded


def test_too_many_plies_raise() -> None:
    with pytest.raises(InvalidArgumentError, match=r"plies \(--plies\) must be at most 8: after"):
        RandomOpenings(TicTacToe, 1, 9)[0]
    with pytest.raises(InvalidArgumentError, match="plies"):
        make_openings("random", TicTacToe, "tic_tac_toe", 1, -1)
    assert make_openings("none", TicTacToe, "tic_tac_toe", 1, None)[3] == Opening()


def test_move_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "book.txt"
    file.write_text("# three of them\n4 4 3\n\n1 2  # at the edge\n7\n")
    book = make_openings(str(file), ConnectFour, "connect_four", 0, None)
    assert [book[number].moves for number in range(4)] == [("4", "4", "3"), ("1", "2"), ("7",), ("4", "4", "3")]
    assert make_openings(file, ConnectFour, "connect_four", 0, 1)[0].moves == ("4",)
    listed = make_openings(["4 4 3", Opening(("1", "2")), "7"], ConnectFour, "connect_four", 0, None)
    assert listed.text == book.text


def test_epd_and_fen_files_are_read(tmp_path: Path) -> None:
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -"
    lines = f'{start} bm e4; id "one";\n\n{start} hmvc 3; fmvn 9;\n{MATE}\n'
    assert read_epd(lines) == [f"{start} 0 1", f"{start} 3 9", MATE]
    file = tmp_path / "book.epd"
    file.write_text(lines)
    book = make_openings(file, Chess, "chess", 0, None)
    assert book[2].state(Chess).fen() == Chess(MATE).fen()


PGN = """\
[Event "one"]
[Result "1-0"]

1. e4 {best [%eval 0.3]} e5 (1... c5 2. Nf3 (2. c3)) 2. Nf3! $1 Nc6 ; to the end of the line 3. Bb5
3.Bc4 Bc5 4.0-0 Nf6?! 1-0

[Event "two"]
[FEN "6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1"]

1. Kd2 Kf8 *
"""


def test_pgn_files_are_read(tmp_path: Path) -> None:
    one = ("e4", "e5", "Nf3", "Nc6", "Bc4", "Bc5", "O-O", "Nf6")
    assert read_pgn(PGN) == [(None, one), (MATE, ("Kd2", "Kf8"))]
    assert read_pgn("1. d4 d5") == [(None, ("d4", "d5"))]
    file = tmp_path / "book.pgn"
    file.write_text(PGN)
    book = make_openings(file, Chess, "chess", 0, 4)
    assert book[0].moves == one[:4]
    assert book[1].state(Chess).to_play == 0


WRONG: list[tuple[str, str, Any, str, str]] = [
    ("book.txt", "4 4\n4 9\n", ConnectFour, "connect_four", 'opening 2: move 2: "9"'),
    ("book.txt", "1 1 2 2 3 3 4\n", ConnectFour, "connect_four", "opening 1: the game is over after it"),
    ("book.txt", "1 1 2 2 3 3 4 4\n", ConnectFour, "connect_four", "the game is over before move 8"),
    ("book.txt", "# nothing\n", ConnectFour, "connect_four", "there are no openings"),
    ("book.epd", "4 4\n", ConnectFour, "connect_four", "is for chess"),
    ("book.epd", "8/8/8/8/8/8/8/8 w - -\n", Chess, "chess", "opening 1: .*king"),
    ("book.pgn", "1. e4 e5 2. Ke3", Chess, "chess", 'opening 1: move 3: "Ke3"'),
    ("book.txt", "0 x\n", Stones, "Stones", "opening 1: move 2: 'x' is not a move"),
    ("book.txt", "99\n", Stones, "Stones", "opening 1: move 1: '99' is not a legal move"),
]


@pytest.mark.parametrize(("name", "text", "game", "called", "message"), WRONG)
def test_invalid_files_raise_naming_line(
    tmp_path: Path, name: str, text: str, game: Any, called: str, message: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(PondertreeError, match=message) as caught:
        make_openings(file, game, called, 0, None)
    assert name in str(caught.value)


def test_unreadable_files_raise(tmp_path: Path) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\xff")
    for name in ("missing.txt", "bytes.txt"):
        with pytest.raises(InvalidArgumentError, match=r"cannot be read|is not a text of openings"):
            make_openings(tmp_path / name, ConnectFour, "connect_four", 0, None)


@pytest.mark.parametrize("given", [3, [3], [["4"]], {"a": 1}])
def test_invalid_openings_argument_raises(given: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="openings"):
        make_openings(given, ConnectFour, "connect_four", 0, None)


@pytest.mark.parametrize(("size", "plies"), [(1, 0), (2, 2), (3, 2), (11, 2)])
def test_default_plies_are_fewer_than_the_moves_of_the_game(size: int, plies: int) -> None:
    assert default_plies(lambda: Hex(size)) == plies
    assert len(make_openings(None, lambda: Hex(size), "hex", 1, None)[0].moves) == plies


def test_error_of_too_many_plies_names_a_number_that_works() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"plies \(--plies\) must be at most 3: after 4 random moves"
    ) as error:
        make_openings(None, lambda: Hex(2), "hex", 1, 4)[0]
    assert len(make_openings(None, lambda: Hex(2), "hex", 1, int(str(error.value).split()[6][0]))[0].moves) == 3
