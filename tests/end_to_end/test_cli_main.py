"""The command line as a whole: help, errors, imports, the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pondertree
from pondertree import games
from pondertree.cli import main
from pondertree.cli.arguments import shell_line
from pondertree.optional import install_command

ROOT = Path(__file__).parents[2]

MISTAKES = [
    (["search", "go"], "unknown game 'go'"),
    (["search", "connect4", "--moves", "4 9"], 'move 2: "9"'),
    (["search", "connect4", "--moves", "1 1 2 2 3 3 4 4"], "the game is over before move 8"),
    (["search", "connect4", "--moves", "1 1 2 2 3 3 4"], "the game is over in this position"),
    (["search", "chess", "--moves", "e4 e5 Ke3"], 'move 3: "Ke3"'),
    (["search", "chess", "--fen", "nonsense"], "--fen: a FEN has"),
    (["search", "chess", "--fen", "8/8/8/8/8/8/8/8 w - - 0 1"], "kings"),
    (["search", "connect4", "--fen", "x"], "--fen describes a chess position"),
    (["search", "chess", "--fen", "x", "--moves", "e4"], "not allowed with"),
    (["search", "connect4", "--simulations", "0"], "at least 1"),
    (["search", "connect4", "--simulations", "many"], "whole number"),
    (["search", "connect4", "--seconds", "0"], "above 0"),
    (["train", "connect4", "--minutes", "0"], "--minutes: must be a number of minutes above 0, not '0'"),
    (["train", "connect4", "--minutes=-1"], "a number of minutes above 0, not '-1'"),
    (["train", "connect4", "--minutes", "nan"], "a number of minutes above 0, not 'nan'"),
    (["train", "connect4", "--steps", str(1 << 32)], "--steps: must be a whole number of at most 2**32 - 1, not"),
    (["train", "connect4", "--steps", "0"], "--steps: must be a whole number of at least 1, not '0'"),
    (["search", "connect4", "--seconds", "nan"], "above 0"),
    (["search", "connect4", "--seconds", "1", "--simulations", "5"], "not allowed with"),
    (["search", "connect4", "--seed", "-1"], "from 0"),
    (["search", "connect4", "--threads", "2", "--algorithm", "reference"], "one thread"),
    (["search", "connect4", "--threads", "5000"], "threads"),
    (["search", "connect4", "--algorithm", "magic"], "invalid choice: 'magic'"),
    (["search", "connect4", "--top", "0"], "at least 1"),
    (["search"], "GAME"),
    (["play"], f"no GAME was given: name one of {games.KNOWN}, or module:Class"),
    (["play", "go"], "unknown game 'go'"),
    (["play", "conect4"], f"did you mean connect4? The games are {games.KNOWN}, or module:Cl"),
    (["play", "games/mine.py"], "did you mean games.mine:Class"),
    (["play", "connect4", "--side", "3"], "(choose first, second, both, none, 1 to 2, X, O, red, yellow)"),
    (["play", "examples.games.triangle:Triangle", "--side", "second"], "(choose all, none, 1, Player)"),
    (["play", "connect4", "--level", "11"], "must be a number from 1 to 10, or beginner (1), easy (3), medium (5)"),
    (["play", "connect4", "--level", "3", "--seconds", "1"], "not allowed with argument --level"),
    (["search", "chess", "--max-depth", "5"], "--max-depth cuts playouts, and hybrid has none: add --algorithm uct"),
    (["search", "connect4", "--algorithm", "gumbel", "--max-depth", "5"], "--max-depth cuts playouts, and gumbel"),
    (["search", "othello", "--max-depth", "0"], "--max-depth: must be a whole number of at least 1, not '0'"),
    (["search", "othello", "--max-depth", "3000m"], "--max-depth: must be a whole number of at most 2**31 - 1"),
    (["play", "connect4", "--algorithm", "magic"], "invalid choice: 'magic'"),
    (["play", "connect4", "--side", "left"], "invalid choice: 'left'"),
    (["serve"], "invalid choice: 'serve'"),
    ([], "COMMAND"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=lambda value: " ".join(value) if value else "nothing")
def test_invalid_arguments_print_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    try:
        status = main(arguments)
    except SystemExit as stopped:  # raised by argparse
        status = int(stopped.code or 0)
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("pondertree")
    assert message in printed.err


@pytest.mark.parametrize("command", [[], ["search"], ["play"], ["match"]])
def test_help_lists_commands_and_options(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert "Examples:\n  pondertree " in printed
    assert not any(f"pondertree {name}" in printed for name in ("train", "export", "tune", "uci", "serve"))


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"pondertree {pondertree.__version__}\n"


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a subprocess."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", ["search connect4", "play connect4", "match random first --game connect4"])
def test_missing_rich_error_names_package(command: str) -> None:
    code = "import sys; sys.modules['rich'] = None; from pondertree.cli import main; sys.exit(main(sys.argv[1:]))"
    done = python(code, *command.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"pondertree: this command needs rich: {install_command('cli')}\n"
    assert python(code, command.split()[0], "--help").returncode == 0


def test_import_pondertree_does_not_import_cli() -> None:
    modules = set(python("import sys, pondertree; print(*sys.modules)").stdout.split())
    assert "pondertree.search.forest" in modules
    assert not modules & {"rich", "tyro", "argparse", "multiprocessing", "pondertree.cli", "pondertree.match"}


def test_closed_stdout_reader_ends_command_quietly() -> None:
    command = [sys.executable, "-m", "pondertree", "search", "othello", "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.close()
    assert started.wait(timeout=60) == 1
    with started.stderr as errors:
        assert errors.read() == b""


@pytest.mark.parametrize("command", ["search connect4", "play connect4 --side none --level 1", "play connect4"])
def test_closed_pipe_ends_a_command_quietly(command: str) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "pondertree", *command.split()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.close()
    assert started.wait(timeout=60) == 1
    with started.stderr as errors:
        assert errors.read() == b""


@pytest.mark.slow
def test_demo_runs() -> None:
    done = subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.count("best move") == 2
    assert "White wins in 3 plies" in done.stdout
    assert "The game is a draw." in done.stdout
    assert len((ROOT / "examples" / "demo.py").read_text().splitlines()) < 100


FAULTY = {
    "syntax": "def f(:\n",
    "division": "1 / 0\n",
    "leaving": "import sys\nsys.exit(7)\n",
    "raising": """
class G:
    num_players, num_actions, to_play = 2, 2, 0
    @property
    def is_terminal(self): return 1 / 0
    def legal_actions(self): return [0, 1]
    def play(self, action): return self
    def returns(self): return (0.0, 0.0)
""",
    "exploding": """
class G:
    num_players, num_actions, to_play, is_terminal = 2, 2, 0, False
    def legal_actions(self): return [0, 1]
    def play(self, action): raise KeyError("no")
    def returns(self): return (0.0, 0.0)
""",
    "leaving_late": """
import sys
class G:
    num_players, num_actions, to_play, is_terminal = 2, 2, 0, False
    def legal_actions(self): return [0, 1]
    def play(self, action): sys.exit(0)
    def returns(self): return (0.0, 0.0)
""",
}


@pytest.mark.parametrize("module", FAULTY)
@pytest.mark.parametrize(
    "command",
    ["search {}:G --simulations 5", "play {}:G --side none --simulations 5", "match random first --game {}:G"],
)
def test_faulty_games_print_one_line_on_stderr(tmp_path: Path, module: str, command: str) -> None:
    (tmp_path / f"{module}.py").write_text(FAULTY[module])
    done = subprocess.run(
        [sys.executable, "-m", "pondertree", *command.format(module).split()],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode in (1, 2), done
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("pondertree: ")
    assert len(done.stderr.splitlines()) == 1
    assert module != "raising" or "raised by is_terminal in " in done.stderr


def test_unexpected_exception_prints_traceback_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising.py").write_text(FAULTY["raising"])
    monkeypatch.setenv("PONDERTREE_TRACEBACK", "1")
    done = subprocess.run(
        [sys.executable, "-m", "pondertree", "search", "raising:G"], capture_output=True, text=True, cwd=tmp_path
    )
    assert "ZeroDivisionError" in done.stderr.splitlines()[-1]
    assert "Traceback" in done.stderr


def run_in(folder: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder with Python games."""
    command = [sys.executable, "-m", "pondertree", *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=60, cwd=folder)


def test_import_exception_is_reported_with_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "division.py").write_text("\n1 / 0\n")
    told = run_in(tmp_path, "search", "division:G").stderr
    assert f"ZeroDivisionError: division by zero, raised by <module> in {tmp_path / 'division.py'}, line 2" in told
    monkeypatch.setenv("PONDERTREE_TRACEBACK", "1")
    told = run_in(tmp_path, "search", "division:G").stderr
    assert "Traceback" in told
    assert f'File "{tmp_path / "division.py"}", line 2' in told


@pytest.mark.parametrize(
    ("game", "message"),
    [
        ("needing:G", "without arguments; it raised TypeError: G.__init__() missing 1 required positional argument"),
        ("needing:H", "game 'needing:H' cannot be imported: module 'needing' has no attribute 'H'"),
        ("nowhere:G", "game 'nowhere:G' cannot be imported: No module named 'nowhere'"),
    ],
)
def test_errors_outside_game_code_name_no_library_line(tmp_path: Path, game: str, message: str) -> None:
    (tmp_path / "needing.py").write_text("class G:\n    def __init__(self, size): pass\n")
    done = run_in(tmp_path, "search", game)
    assert done.returncode == 2
    assert message in done.stderr
    assert "raised by" not in done.stderr
    assert "TRACEBACK" not in done.stderr


@pytest.mark.parametrize("mistake", ["raise KeyError('no')", "sys.exit(3)"])
def test_play_prints_continue_command_after_game_error(tmp_path: Path, mistake: str) -> None:
    (tmp_path / "late.py").write_text(f"""
import sys
class G:
    num_players, num_actions, to_play, is_terminal = 1, 2, 0, False
    def legal_actions(self): return [0, 1]
    def play(self, action):
        if action == 1:
            {mistake}
        return G()
    def returns(self): return (0.0,)
""")
    done = run_in(tmp_path, "play", "late:G", "--max-depth", "3", typed="0\n0\n1\n")
    assert done.returncode == 2
    continued = shell_line(["pondertree", *["play", "late:G", "--side", "first", "--max-depth", "3", "--moves"], "0 0"])
    assert done.stdout.splitlines()[-1] == f"Stopped by an error. To go on from here: {continued}"
    assert "raised by play in " in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_max_depth_allows_endless_games(tmp_path: Path, algorithm: str) -> None:
    (tmp_path / "endless.py").write_text("""
class G:
    num_players, num_actions, to_play, is_terminal = 2, 2, 0, False
    def legal_actions(self): return [0, 1]
    def play(self, action): return G()
    def returns(self): return (0.0, 0.0)
""")
    options = ["--max-depth", "20", "--simulations", "50", "--algorithm", algorithm]
    for command in ("search", "play"):
        done = run_in(tmp_path, command, "endless:G", *options, typed="hint\n")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert ", playouts of 20 moves, " in done.stdout
        assert "50 simulations" in done.stdout


def test_max_depth_matches_library_search(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["search", "othello", "--simulations", "300", "--seed", "4", "--max-depth", "7", "--json", "--algorithm"]
    expected = pondertree.UCT(300, seed=4, max_depth=7).run(pondertree.games.Othello()).value
    for algorithm in ("uct", "reference"):
        assert main([*command, algorithm]) == 0
        assert json.loads(capsys.readouterr().out)["value"] == expected


def test_game_warning_is_one_line_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "warning.py").write_text("""
import warnings
class W:
    num_players, num_actions, to_play, is_terminal = 1, 2, 0, False
    def legal_actions(self): return [0, 1]
    def play(self, action):
        warnings.warn("a strange move")
        ended = W()
        ended.is_terminal = True
        return ended
    def returns(self): return (1.0,)
""")
    done = subprocess.run(
        [sys.executable, "-m", "pondertree", "search", "warning:W", "--simulations", "5"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert done.stderr == "pondertree: warning: a strange move\n"


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the streams")
@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("search connect4 --simulations 10 >&-", 0),
        ("play connect4 --simulations 10 <&-", 0),
        ("uci <&-", 0),
        ("search nothing 2>&-", 2),
    ],
)
def test_closed_standard_streams_do_not_raise(command: str, status: int) -> None:
    done = subprocess.run(
        f'"{sys.executable}" -m pondertree {command}', shell=True, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, done
    assert "Traceback" not in done.stderr
    assert "nothing" not in done.stdout


def test_search_finishes_if_playout_exceeds_slice(tmp_path: Path) -> None:
    """A playout of 0.9 s, far longer than a search slice."""
    (tmp_path / "slow.py").write_text("""
import time
class S:
    num_players, num_actions = 2, 2
    def __init__(self, moves=0):
        self.moves, self.to_play, self.is_terminal = moves, moves % 2, moves >= 300
    def legal_actions(self): return [0, 1]
    def play(self, action):
        time.sleep(0.003)
        return S(self.moves + 1)
    def returns(self): return (1.0, -1.0)
""")
    done = subprocess.run(
        [sys.executable, "-m", "pondertree", "search", "slow:S", "--simulations", "2", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["simulations"] == 2
