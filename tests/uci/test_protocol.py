"""Parsing of UCI commands, options and positions; scores of `info` output."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondertree.chess import Pesto
from pondertree.errors import InvalidActionError, InvalidArgumentError, InvalidPositionError
from pondertree.games import Chess
from pondertree.uci import info, position
from pondertree.uci.options import TABLE, Options, build, declarations
from pondertree.uci.protocol import Debug, Go, Plain, Position, SetOption, Unknown, parse

DOCS = Path(__file__).parents[2] / "docs/chess.md"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", None),
        ("   \t ", None),
        ("uci", Plain("uci")),
        ("  isready  ", Plain("isready")),
        ("quit now please", Plain("quit")),
        ("joho debug on", Debug(True)),
        ("debug off", Debug(False)),
        ("position startpos", Position(None, ())),
        ("position startpos moves e2e4 e7e5", Position(None, ("e2e4", "e7e5"))),
        ("position fen 8/8/8/8/8/8/8/K1k5 w - - 0 1", Position("8/8/8/8/8/8/8/K1k5 w - - 0 1", ())),
        ("position fen 8/8 w moves a1a2", Position("8/8 w", ("a1a2",))),
        ("setoption name Hash value 64", SetOption("Hash", "64")),
        ("setoption name Move Overhead value 1 2", SetOption("Move Overhead", "1 2")),
        ("setoption name Clear Hash", SetOption("Clear Hash", None)),
        ("setoption name EvalFile value", SetOption("EvalFile", "")),
        ("go", Go()),
        ("go infinite", Go(infinite=True)),
        ("go wtime 100 btime -5 winc 1 binc 2 movestogo 3", Go(wtime=100, btime=-5, winc=1, binc=2, movestogo=3)),
        ("go ponder searchmoves e2e4 d2d4 depth 3", Go(ponder=True, depth=3, searchmoves=("e2e4", "d2d4"))),
        ("go nodes 99999999999999999999", Go(nodes=1 << 53)),
        ("go wtime x btime 7", Go(btime=7)),
        ("go movetime", Go(movetime=1000)),
        ("go depth infinite", Go(infinite=True)),
    ],
)
def test_parse_returns_commands(line: str, command: Any) -> None:
    assert parse(line) == command


@pytest.mark.parametrize("line", ["hello", "\0", "position", "position fen", "position moves e2e4", "setoption", "Uci"])
def test_parse_returns_unknown_for_invalid_lines(line: str) -> None:
    assert isinstance(parse(line), Unknown)


def test_invalid_go_arguments_are_reported_as_problems() -> None:
    command = parse("go wtime x nonsense depth")
    assert isinstance(command, Go)
    assert [complaint.split(":")[1].strip() for complaint in command.problems] == [
        "wtime requires an integer",
        "'nonsense' is not known",
        "depth requires an integer",
    ]


@given(st.text(max_size=200))
def test_parse_accepts_any_text(text: str) -> None:
    command = parse(text)
    assert command is None or "\n" not in repr(command)


# --- options ------------------------------------------------------------------------------------------------------


def test_declared_defaults_build_a_search() -> None:
    options = Options()
    for option in TABLE:
        if option.kind != "button":
            options.set(option.name.upper(), option.default)
    assert options.search_key == Options().search_key
    assert build(options).max_memory == 512
    lines = list(declarations())
    assert "option name Hash type spin default 512 min 1 max 1048576" in lines
    assert "option name Algorithm type combo default hybrid var hybrid var alphazero" in lines
    assert "option name Clear Hash type button" in lines


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("Hash", "0", "option Hash: must be from 1 to"),
        ("Hash", "many", "option Hash: must be a whole number, not 'many'"),
        ("Hash", None, "option Hash requires a value"),
        ("Ponder", "yes", "option Ponder: must be true or false"),
        ("Priority", "loud", "must be one of strict, tactical, prior, none"),
        ("ExplorationConstant", "nan", "must be from 0 to 1000"),
        ("ExplorationConstant", "x", "must be a number"),
        ("Fpu", "parent 1 2", "must be a number"),
        ("CategoryWeights", "1 2 3", "must be 10 numbers, not 3"),
        ("CategoryWeights", "0 1 1 1 1 1 1 1 1 1", "must be from 1e-06"),
        ("NetworkFile", "weights.pb.gz", "must be a file in the ONNX format"),
        ("NetworkFile", "none-such.onnx", "there is no file"),
        ("EvalFile", "none-such.json", "there is no file"),
        ("EvalFile", "a\0b", "there is no file"),
        ("UCI_Chess960", "true", "there is no option 'UCI_Chess960'"),
        ("\0" * 500, "1", "there is no option"),
    ],
)
def test_invalid_option_value_raises_and_keeps_old_value(name: str, value: str | None, message: str) -> None:
    options = Options()
    with pytest.raises(InvalidArgumentError, match=message):
        options.set(name, value)
    assert options.search_key == Options().search_key


def test_options_configure_the_search(tmp_path: Path) -> None:
    weights = tmp_path / "weights.json"
    Pesto(scale=99.0).to_file(weights)
    options = Options()
    for name, value in {
        "EvalFile": str(weights),
        "Threads": "2",
        "MateSearchDepth": "2",
        "Endings": "false",
        "ExplorationConstant": "2.5",
        "Priority": "none",
        "SeeThreshold": "50",
        "Quiescence": "false",
        "MoveScores": "false",
        "Fpu": "parent 0.25",
        "CategoryWeights": "1 2 3 4 5 6 7 8 9 10",
        "Seed": "7",
    }.items():
        before = options.search_key
        options.set(name, value)
        assert options.search_key != before
    search: Any = build(options)
    assert (search.threads, search.in_flight, search.mate_search_depth, search.seed) == (2, 16, 2, 7)
    assert (search.exploration_constant, search.priority, search.see_threshold) == (2.5, None, 50)
    assert (search.quiescence, search.fpu, search.category_weights[9]) == (False, ("parent", 0.25), 10.0)
    assert (search.evaluator.scale, search.move_scores, search.endings) == (99.0, None, False)
    options.set("EvalFile", "Published")
    assert build(options).evaluator == Pesto.published()  # type: ignore[attr-defined]
    options.set("EvalFile", "<empty>")
    assert options["EvalFile"] is None
    weights.write_text(weights.read_text()[:200])
    with pytest.raises(InvalidArgumentError, match="EvalFile"):
        options.set("EvalFile", str(weights))
    options.set("Algorithm", "AlphaZero")
    with pytest.raises(InvalidArgumentError, match="set the option NetworkFile"):
        build(options)


def test_documentation_lists_every_option() -> None:
    text = DOCS.read_text("utf-8")
    for option in TABLE:
        assert f"| `{option.name}` | {option.kind} |" in text, option.name
        if option.kind == "spin":
            assert f"| `{option.name}` | spin | {option.default} | {option.least} to {option.most} |" in text


# --- positions ----------------------------------------------------------------------------------------------------


def read(line: str, known: position.UciGame | None = None) -> position.UciGame:
    command = parse(line)
    assert isinstance(command, Position)
    return position.read(command, known or position.new_game())


def test_position_command_replays_moves_incrementally() -> None:
    game = read("position startpos moves e2e4 e7e5")
    assert game.state.fen().startswith("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w")
    on = read("position startpos moves e2e4 e7e5 g1f3", game)
    assert on.moves_since(game) == ("g1f3",)
    assert game.moves_since(on) is None
    other = read("position startpos moves d2d4", game)
    assert other.moves_since(game) is None
    with pytest.raises(InvalidActionError, match=r"move 3, 'e1e3', is not legal"):
        read("position startpos moves e2e4 e7e5 e1e3", game)
    begun = time.perf_counter()
    longest = read("position startpos moves" + " g1f3 g8f6 f3g1 f6g8" * 5000)
    assert longest.state.fen().startswith("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq")
    assert time.perf_counter() - begun < 5.0
    with pytest.raises(InvalidPositionError):
        read("position fen 8/8/8/8/8/8/8/8 w - - 0 1")


def test_moves_after_automatic_draw_are_followed() -> None:
    """GUIs may continue after an automatic draw; the engine must follow."""
    there, back = ("g1f3", "g8f6"), ("f3g1", "f6g8")
    shuffle = " ".join((*there, *back) * 5)
    game = read(f"position startpos moves {shuffle} e2e4 e7e5")
    assert game.state.fen().split()[0] == "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR"
    bare = read("position fen 8/8/4k3/8/8/4K3/8/8 w - - 0 1 moves e3e4 e6d6 e4d4")
    assert bare.state.fen().split()[0] == "8/8/3k4/8/3K4/8/8/8"
    assert sorted(position.legal_moves(bare.state)) == ["d6c6", "d6c7", "d6d7", "d6e6", "d6e7"]
    assert position.static_best_move(bare.state, Pesto()) in position.legal_moves(bare.state)
    late = read("position fen 8/8/4k3/8/8/4K3/8/7R w - - 148 200 moves h1h2 e6e5 h2h3 e5d5 h3h4")
    assert late.state.is_terminal
    assert len(position.legal_moves(late.state)) == 5
    with pytest.raises(InvalidActionError):
        position.play(bare.state, "d6d5")


def test_static_best_move_takes_mate_and_material() -> None:
    mate = Chess("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1")
    assert position.static_best_move(mate, Pesto()) == "a1a8"
    assert position.static_best_move(mate, Pesto(), frozenset({"e1e2"})) == "e1e2"
    takes = Chess("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1")
    assert position.static_best_move(takes, Pesto()) == "e4d5"
    assert position.static_best_move(Chess("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"), Pesto()) is None


# --- scores -------------------------------------------------------------------------------------------------------


@given(st.integers(-1500, 1500), st.floats(50.0, 500.0))
def test_centipawns_invert_pesto_sigmoid(score: int, scale: float) -> None:
    value = math.tanh(score / (2.0 * scale))
    if abs(value) < 1 - 1e-9:
        assert info.centipawns(value, scale) == pytest.approx(score, abs=1)


@given(st.floats(-1.0, 1.0))
def test_wdl_sums_to_1000_and_matches_value(value: float) -> None:
    win, draw, loss = info.wdl_of(value)
    assert win + draw + loss == 1000
    assert min(win, draw, loss) >= 0
    assert (win - loss) / 1000 == pytest.approx(value, abs=0.0011)


@pytest.mark.parametrize(
    ("proven", "plies", "text"),
    [(1, 1, "mate 1"), (1, 3, "mate 2"), (-1, 2, "mate -1"), (-1, 4, "mate -2"), (0, 5, "cp 0"), (None, 1, "cp 34")],
)
def test_scores_report_mate_or_centipawns(proven: int | None, plies: int, text: str) -> None:
    line = info.PvLine("e2e4", 1, 0.11, proven, plies, ("e2e4",))
    assert info.score(line, 153.4) == text


def test_centipawns_and_wdl_are_bounded_at_extreme_values() -> None:
    assert info.centipawns(1.0, 153.4) == 15_000
    assert info.centipawns(-1.0, 153.4) == -15_000
    assert info.wdl_of(1.0) == (1000, 0, 0)
    assert info.wdl_of(0.0) == (250, 500, 250)
