"""Moves of Python games on the command line: texts, numbers, the continue command."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pondertree
from pondertree.cli import main
from pondertree.cli.position import read_position
from pondertree.errors import InvalidActionError

#: Four plies; subclasses differ in the texts of their two actions.
GAMES = """
class Base:
    num_players, num_actions = 2, 2
    def __init__(self, moves=()): self.moves = moves
    @property
    def to_play(self): return len(self.moves) % 2
    @property
    def is_terminal(self): return len(self.moves) >= 4
    def legal_actions(self): return [] if self.is_terminal else [0, 1]
    def play(self, action): return type(self)((*self.moves, action))
    def returns(self): return (0.0, 0.0)
    def __str__(self): return repr(self.moves)
    def action_to_string(self, action): return self.texts[action]

class Plain(Base): texts = ("step", "jump")
class Counted(Base): texts = ("1", "0")
class Spaced(Base): texts = ("go left", "go right")
class Prefix(Base): texts = ("go", "go left")
class Commands(Base): texts = ("undo", "quit")
class Same(Base): texts = ("move", "move")
class Quotes(Base): texts = ("it's", "$HOME")
class Dashes(Base): texts = ("-x", "--moves")
class Separator(Base): texts = ("a;b", "a")
class Empty(Base): texts = ("", " ")

class Parsed(Base):
    texts = ("take 1", "take 2")
    def parse_action(self, text): return int(text.split()[-1]) - 1

class Strict(Base):
    texts = ("take 1", "take 2")
    def parse_action(self, text): return self.texts.index(text)

class Deaf(Base):
    texts = ("x", "y")
    def parse_action(self, text): raise KeyError(text)
"""
ALL = [line.split()[1].partition("(")[0] for line in GAMES.splitlines() if "(Base)" in line]


@pytest.fixture(autouse=True)
def games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text_games.py").write_text(GAMES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def played(game: str, moves: str) -> Any:
    return read_position(f"text_games:{game}", moves, None).state.moves


def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, *arguments: str) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["play", *arguments, "--side", "both", "--simulations", "10"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("game", "moves", "actions"),
    [
        ("Plain", "step jump 1", (0, 1, 1)),
        ("Counted", "1 0", (0, 1)),
        ("Spaced", "go left go right", (0, 1)),
        ("Spaced", "go left; go  right ;", (0, 1)),
        ("Prefix", "go left go", (1, 0)),
        ("Prefix", "go; go left", (0, 1)),
        ("Commands", "undo quit", (0, 1)),
        ("Parsed", "take 1 take 2 2", (0, 1, 1)),
        ("Parsed", "1 2 1", (0, 1, 0)),
        ("Strict", "take 1 take 2", (0, 1)),
        ("Deaf", "x y 0", (0, 1, 0)),
    ],
)
def test_moves_are_parsed_by_text_and_number(game: str, moves: str, actions: tuple[int, ...]) -> None:
    assert played(game, moves) == actions


@pytest.mark.parametrize("game", ALL)
def test_listed_moves_reproduce_position(game: str) -> None:
    position = read_position(f"text_games:{game}", None, None)
    for action in (1, 0, 0, 1):
        position = position.play(action)
        assert played(game, position.moves) == position.state.moves


@pytest.mark.parametrize(
    ("game", "moves", "message"),
    [
        ("Plain", "step hop", "--moves, move 2: 'hop' is no move (legal: step jump)"),
        ("Plain", "7", "'7' is not legal here"),
        ("Spaced", "go up", "'go' is no move (legal: go left; go right)"),
        ("Same", "move", "'move' is no move"),
    ],
)
def test_unknown_move_error_lists_legal_moves(
    capsys: pytest.CaptureFixture[str], game: str, moves: str, message: str
) -> None:
    assert main(["search", f"text_games:{game}", "--moves", moves]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("game", [name for name in ALL if name not in ("Same", "Empty")])
def test_play_accepts_listed_moves_and_prints_continue_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], game: str
) -> None:
    texts = [text.strip() for text in read_position(f"text_games:{game}", None, None).legal_moves()]
    out = play(monkeypatch, capsys, "\n".join([texts[1], texts[0], ":quit"]), f"text_games:{game}")
    assert "(1, 0)" in out
    command = shlex.split(out.splitlines()[-1].partition("To go on from here: ")[2])
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(command[1:]) == 0
    assert "(1, 0)" in capsys.readouterr().out


def test_colon_commands_work_if_moves_share_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "quit\n:undo\nundo\n:quit\nundo\n", "text_games:Commands")
    assert out.splitlines()[-1].endswith("--moves undo")


def test_continue_command_is_quoted_for_windows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pondertree.cli.arguments.os", SimpleNamespace(name="nt"))
    out = play(monkeypatch, capsys, "go left\n:quit\n", "text_games:Spaced")
    assert out.splitlines()[-1].endswith('--side both --simulations 10 --moves "go left"')


def test_tree_advance_and_root_actions_take_texts_without_parse_action() -> None:
    state = read_position("text_games:Plain", None, None).state
    tree = pondertree.UCT(10, seed=1).tree(state)
    tree.advance("jump")
    assert tree.state.moves == (1,)
    assert pondertree.UCT(10, seed=1).run(state, root_actions=["step"]).action == 0
    with pytest.raises(pondertree.InvalidActionError, match=r"'hop', the text of no legal action .*'step', 'jump'"):
        tree.advance("hop")
    same = read_position("text_games:Same", None, None).state
    with pytest.raises(pondertree.InvalidActionError, match="'move', the text of 2 legal actions"):
        pondertree.UCT(10).tree(same).advance("move")


def test_one_move_of_several_words_needs_no_separator() -> None:
    alone = read_position("backgammon", " 8/5 6/5 ", None)
    assert alone.history == read_position("backgammon", "8/5 6/5;", None).history == ("8/5 6/5",)
    assert len(read_position("backgammon", "8/5 6/5; 3-3", None).history) == 2
    with pytest.raises(InvalidActionError, match="moves are separated by ';' if one has several words"):
        read_position("backgammon", "8/5 6/5 3-3", None)
    with pytest.raises(InvalidActionError) as refused:
        read_position("connect4", "4 9", None)
    assert "separated" not in str(refused.value)
