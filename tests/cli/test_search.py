"""`pondertree search`: what it prints, for people and for programs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.worlds import Guess, Rules

from pondertree import UCT, AlphaZero, Gumbel
from pondertree.chess import Pesto
from pondertree.cli import algorithms, main
from pondertree.cli.algorithms import configure
from pondertree.cli.position import read_position
from pondertree.cli.report import variation_below
from pondertree.cli.searcher import EngineSearcher, ReferenceSearcher, run_search
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.networks.loading import load_for_one_tree

COMMAND = [sys.executable, "-m", "pondertree", "search"]
KEYS = [
    "game",
    "position",
    "to_play",
    "player",
    "algorithm",
    "seed",
    "simulations",
    "elapsed",
    "value",
    "values",
    "proven",
    "move",
    "action",
    "pv",
    "moves",
]
MOVE_KEYS = ["action", "move", "visits", "share", "q", "proven", "pv"]
#: The command, with a word on stderr once it is ready to be interrupted: before that, Python is still starting.
SAY_WHEN_READY = """
import signal, sys, threading, time
from pondertree.cli import main

def wait():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.01)
    print("ready", file=sys.stderr, flush=True)

threading.Thread(target=wait, daemon=True).start()
sys.exit(main(sys.argv[1:]))
"""
MATE_IN_TWO = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"


def search(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What `pondertree search --json` prints."""
    assert main(["search", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.count("\n") == 1
    found: dict[str, Any] = json.loads(printed.out)
    return found


def with_san(keys: list[str], san: list[str]) -> list[str]:
    """The keys of JSON, those of chess having `san` after `move`."""
    after = keys.index("move") + 1
    return [*keys[:after], *san, *keys[after:]]


@pytest.mark.parametrize("game", ["tic-tac-toe", "connect4", "othello", "chess"])
@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_search_prints_json(capsys: pytest.CaptureFixture[str], game: str, algorithm: str) -> None:
    found = search(capsys, game, "--algorithm", algorithm, "--simulations", "60", "--seed", "5")
    state = read_position(game, None, None).state
    legal = state.legal_actions()
    san = ["san"] if game == "chess" else []
    assert list(found) == with_san(KEYS, san)
    assert (found["game"], found["algorithm"], found["seed"], found["to_play"]) == (game, algorithm, 5, 0)
    assert found["simulations"] == 60 == sum(move["visits"] for move in found["moves"])
    assert sorted(move["action"] for move in found["moves"]) == sorted(legal)
    assert all(list(move) == with_san(MOVE_KEYS, san) for move in found["moves"])
    assert sum(move["share"] for move in found["moves"]) == pytest.approx(1.0)
    assert all(move["pv"][0] == move["move"] for move in found["moves"])
    best = found["moves"][0]
    assert (found["action"], found["move"], found["pv"]) == (best["action"], best["move"], best["pv"])
    assert found["move"] == state.action_to_string(found["action"])
    assert -1.0 <= found["value"] <= 1.0
    assert found["values"] == [found["value"], -found["value"]]
    for text in found["pv"]:
        state = state.play(state.parse_action(text))


def test_engine_matches_reference(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("connect4", "--moves", "4 4 3", "--simulations", "300", "--seed", "9")
    uct = search(capsys, *asked, "--algorithm", "uct")
    twin = search(capsys, *asked, "--algorithm", "reference")
    for found in (uct, twin):
        del found["elapsed"], found["algorithm"]
    assert uct == twin


def test_equal_seeds_match_library_result(capsys: pytest.CaptureFixture[str]) -> None:
    once, again = (search(capsys, "othello", "--simulations", "3k", "--seed", "1") for _ in range(2))
    del once["elapsed"], again["elapsed"]
    assert once == again
    result = UCT(3_000, seed=1).run(read_position("othello", None, None).state)
    assert {move["action"]: move["visits"] for move in once["moves"]} == {
        move["action"]: result.visits[move["action"]] for move in once["moves"]
    }
    assert (once["value"], once["pv"]) == (result.value, result.pv)


@pytest.mark.parametrize(
    ("game", "moves", "fen"),
    [
        ("chess", None, MATE_IN_TWO),
        ("connect4", None, None),
        ("connect4", "4 4 3 3 5 7", None),
        ("tic-tac-toe", "a1 b1", None),
        ("tic-tac-toe", "a1 c1", None),
        ("tic-tac-toe", "b1 b2 a3", None),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_printed_lines_match_principal_variations(game: str, moves: str | None, fen: str | None, seed: int) -> None:
    engine = EngineSearcher(read_position(game, moves, fen), seed)
    run_search(engine, 1500, None)
    report, result = engine.report(), engine.tree.result()
    assert list(report.best.pv) == result.pv == list(engine.report(is_preview=True).best.pv)
    places = {int(action): place for place, action in enumerate(result._view.edges(0)[0])}
    for move in report.moves:
        assert len(move.pv) == len(result._view.principal_variation(places[move.action]))
        state = engine.position.state
        for text, action in zip(move.pv, result._view.principal_variation(places[move.action]), strict=True):
            assert state.parse_action(text) == action
            state = state.play(action)
        assert (
            move.proven is None
            or not state.is_terminal
            or move.proven == state.returns()[report.position.state.to_play]
        )
        assert move.proven in (None, 0) or (state.is_terminal and move.plies == len(move.pv))


def test_followed_move_keeps_tree_and_restart_drops_it() -> None:
    engine = EngineSearcher(read_position("connect4", None, None), 1)
    run_search(engine, 2000, None)
    best = engine.report().best
    engine.follow(best.action)
    assert sum(move.visits for move in engine.report().moves) == best.visits - 1
    engine.restart(read_position("connect4", "1", None))
    assert sum(move.visits for move in engine.report().moves) == 0


def test_proven_result_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--fen", MATE_IN_TWO, "--seed", "3", "--algorithm", "uct")
    assert (found["move"], found["proven"], found["value"]) == ("a1a6", 1, 1.0)
    assert found["position"] == MATE_IN_TWO
    assert found["simulations"] < 10_000
    assert main(["search", "chess", "--fen", MATE_IN_TWO, "--seed", "3", "--algorithm", "uct"]) == 0
    printed = capsys.readouterr().out
    assert "White wins in 3 plies" in printed
    assert re.search(r"Ra6 .* win in 3 ", printed)


def test_unvisited_moves_have_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--simulations", "1", "--seed", "1")
    assert [move["q"] is None for move in found["moves"]] == [move["visits"] == 0 for move in found["moves"]]


@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_time_limit_ends_search(capsys: pytest.CaptureFixture[str], algorithm: str) -> None:
    begun = time.perf_counter()
    found = search(capsys, "chess", "--seconds", "0.3", "--algorithm", algorithm)
    assert 0.2 < found["elapsed"] < 2.0
    assert time.perf_counter() - begun >= 0.3


def test_top_option_and_game_aliases(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "reversi", "--top", "2", "--seed", "1")
    assert found["game"] == "othello"
    assert len(found["moves"]) == 2
    assert main(["search", "chess", "--top", "3", "--simulations", "200", "--seed", "1"]) == 0
    assert "17 more moves tried" in capsys.readouterr().out


def test_table_has_statistics_of_moves(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--algorithm", "uct", "--simulations", "10k", "--seed", "1"]
    assert main(["search", "connect4", "--moves", "4 4 3", *asked]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "\x1b" not in printed.out
    assert "\r" not in printed.out
    assert all(line == line.rstrip() for line in printed.out.splitlines())
    assert "Connect 4 after 4 4 3, O to move" in printed.out
    assert ". . X X . . ." in printed.out
    assert "10,000 simulations in" in printed.out
    assert "simulations/s" in printed.out
    assert re.search(r"^move +visits +share +Q +expected line$", printed.out, re.MULTILINE)
    rows = re.findall(r"^[1-7] +([\d,]+) +\d+\.\d% ", printed.out, re.MULTILINE)
    assert sum(int(visits.replace(",", "")) for visits in rows) == 10_000


def test_output_without_utf8_is_ascii() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "tic-tac-toe"], capture_output=True, env=environment, check=True, timeout=60)
    assert done.stdout.isascii()
    assert b"#####" in done.stdout


@pytest.mark.parametrize(
    "extra",
    [
        ["--seconds", "30"],
        ["--seconds", "30", "--json"],
        ["--seconds", "30", "--algorithm", "reference"],
        ["--simulations", "50m", "--algorithm", "gumbel"],
    ],
)
def test_interrupt_prints_result_so_far(extra: list[str]) -> None:
    arguments = ["search", "chess", *extra]
    started = subprocess.Popen(
        [sys.executable, "-c", SAY_WHEN_READY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stderr is not None
    assert started.stderr.readline() == "ready\n"
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    begun = time.perf_counter()
    out, err = started.communicate(timeout=20)
    assert time.perf_counter() - begun < 1.0
    assert started.returncode == 130, err
    assert err == "interrupted: this is what was found so far\n"
    if "--json" in extra:
        assert json.loads(out)["simulations"] > 0
    else:
        assert "best move" in out


def test_terminal_shows_live_table() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    started = subprocess.Popen(
        [*COMMAND, "connect4", "--seconds", "1"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    pieces = []
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and select.select([ours], [], [], 10)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    assert started.wait(timeout=10) == 0
    shown = b"".join(pieces).decode()
    assert shown.count("best move") >= 3
    assert "Ctrl-C ends it here" in shown
    assert "\x1b[" in shown


def test_reference_search_stops_when_solved() -> None:
    twin = ReferenceSearcher(read_position("tic-tac-toe", "a1 b1 a2 b2", None), 1)
    assert run_search(twin, 100_000, None)
    assert twin.is_solved
    assert twin.report().verdict() == "X wins in 1 ply"


def test_proven_line_takes_shortest_win() -> None:
    def node(to_play: int, proven: int | None, distance: int, **children: SimpleNamespace) -> SimpleNamespace:
        below = {int(column[1:]) - 1: child for column, child in children.items()}
        return SimpleNamespace(to_play=to_play, proven=proven, distance=distance, visit_count=1, children=below)

    slow = node(1, -1, 4)
    slow.visit_count = 9
    root = node(0, 1, 3, c1=slow, c2=node(1, None, 0), c5=node(1, -1, 2))
    assert variation_below(read_position("connect4", None, None).state, root) == ["5"]


# --- Games written in Python --------------------------------------------------------------------------------------


NIM = "examples.games.nim:Nim"


def test_python_game_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    told = search(capsys, NIM, "--simulations", "500", "--seed", "1", "--moves", "a-2 b-1")
    assert told["game"] == NIM
    assert told["position"] == "Nim(heaps=(0, 2, 5), to_play=0)"
    assert {move["move"] for move in told["moves"]} == {"b-1", "b-2", "c-1", "c-2", "c-3", "c-4", "c-5"}
    assert told["move"] == "c-3"
    assert told["proven"] == 1
    assert main(["search", NIM, "--simulations", "50", "--algorithm", "reference"]) == 0
    assert "Nim(heaps=(2, 3, 5), to_play=0)" in capsys.readouterr().out
    assert main(["match", "uct:num_simulations=50", "first", "--game", NIM, "--games", "2", "--concurrency", "1"]) == 0
    assert "examples.games.nim.Nim" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnfinishedPlayoutWarning")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([NIM, "--moves", "zz"], "'zz' is no move (legal: a-1 a-2 b-1"),
        ([NIM, "--moves", "a-5"], "'a-5' is not legal here"),
        (["examples.games.nim:Mim"], "cannot be imported"),
        (["examples.games.nim:LARGEST"], "must give a starting state when called"),
        (["examples.games.nim:np.zeros"], "must give a starting state when called without arguments; it raised"),
        (["tests.cli.test_search:Endless"], "Endless"),
        (["gym:CartPole-v1"], "is an environment, which has no rules to search or play by"),
    ],
)
def test_unsupported_python_games_raise(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", *arguments]) == 2
    assert message in capsys.readouterr().err


class Endless:
    """A game of one player that never ends."""

    num_actions, num_players, to_play, is_terminal = 2, 1, 0, False

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Endless:
        return self

    def returns(self) -> list[float]:
        return [0.0]


class Slow(Endless):
    """The same game, 1 ms for each move: a playout is cut after 10 s."""

    def play(self, action: int) -> Slow:
        time.sleep(0.001)
        return Slow()


# --- Games of one player, of several, and with rewards --------------------------------------------------------------


COINS = "examples.games.coin_row:CoinRow"
TRIANGLE = "examples.games.triangle:Triangle"


def test_three_players_have_named_values(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (COINS, "--moves", "last first", "--simulations", "300", "--seed", "1")
    found = search(capsys, *asked)
    result = UCT(num_simulations=300, seed=1).run(read_position(COINS, "last first", None).state)
    assert (found["to_play"], found["player"], found["algorithm"]) == (2, "Player 3", "uct")
    assert found["values"] == list(result.values)
    assert found["values"][2] == found["value"]
    assert sum(found["values"]) == pytest.approx(1.0)
    assert main(["search", *asked]) == 0
    printed = capsys.readouterr().out
    assert "CoinRow after last first, Player 3 to move" in printed
    for player, value in enumerate(found["values"], start=1):
        assert f"{value:+.3f} for Player {player}" in printed
    assert "proven" not in printed


@pytest.mark.parametrize("game", [COINS, TRIANGLE])
def test_reference_matches_engine_values_for_every_player(capsys: pytest.CaptureFixture[str], game: str) -> None:
    engine, reference = (
        search(capsys, game, "--algorithm", algorithm, "--simulations", "200", "--seed", "4")
        for algorithm in ("uct", "reference")
    )
    assert reference["values"] == pytest.approx(engine["values"], abs=1e-12)
    for found in (engine, reference):
        del found["elapsed"], found["algorithm"], found["values"]
    assert reference == engine


def test_single_player_with_rewards_shows_collected_reward(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", TRIANGLE, "--moves", "right left", "--seed", "1"]) == 0
    printed = capsys.readouterr().out
    assert "expected sum of rewards" in printed
    assert re.search(r"so far +0\.8$", printed, re.MULTILINE)
    found = search(capsys, TRIANGLE, "--moves", "right left", "--seed", "1")
    assert found["values"] == [found["value"]]


def test_time_limit_below_one_playout_raises(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "tests.cli.test_search:Slow", "--seconds", "0.2"]) == 2
    assert "not one simulation of Slow ended within 0." in capsys.readouterr().err


def test_search_ends_if_no_playout_fits_longest_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.cli.searcher.MAX_SLICE", 0.15)
    engine = EngineSearcher(read_position("tests.cli.test_search:Slow", None, None), 1)
    with pytest.raises(GameContractError, match="not one simulation of Slow"):
        run_search(engine, 10, None)


# --- Algorithms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "algorithm"),
    [("chess", "hybrid"), ("connect4", "alphazero"), ("tic-tac-toe", "uct"), ("othello", "uct"), (NIM, "uct")],
)
def test_default_algorithm_depends_on_game(capsys: pytest.CaptureFixture[str], game: str, algorithm: str) -> None:
    assert search(capsys, game, "--simulations", "5")["algorithm"] == algorithm


@pytest.mark.parametrize(
    ("game", "algorithm"),
    [("chess", "alphazero"), ("chess", "gumbel"), ("connect4", "alphazero"), ("connect4", "gumbel")],
)
def test_alphazero_and_gumbel_default_to_bundled_evaluators(
    capsys: pytest.CaptureFixture[str], game: str, algorithm: str
) -> None:
    found = search(capsys, game, "--algorithm", algorithm, "--simulations", "40", "--seed", "2")
    evaluator = Pesto() if game == "chess" else load_for_one_tree("connect4")
    preset: Any = {"alphazero": AlphaZero, "gumbel": Gumbel}[algorithm]
    result = preset(evaluator=evaluator, num_simulations=40, seed=2).run(read_position(game, None, None).state)
    assert (found["algorithm"], found["simulations"], found["action"]) == (algorithm, 40, result.action)
    assert {move["action"]: move["visits"] for move in found["moves"]} == {
        move["action"]: result.visits[move["action"]] for move in found["moves"]
    }


def test_hybrid_finds_a_mate_before_the_first_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--fen", MATE_IN_TWO)
    assert (found["algorithm"], found["simulations"], found["proven"]) == ("hybrid", 0, 1)
    assert (found["move"], found["san"], found["pv"][0]) == ("a1a6", "Ra6", "a1a6")
    assert main(["search", "chess", "--fen", MATE_IN_TWO]) == 0
    printed = capsys.readouterr().out
    assert "mates only, before the first simulation" in printed
    assert re.search(r"Ra6 .* win in 3 +\S+ \S+#$", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["othello", "--algorithm", "alphazero"], "alphazero needs a trained player of Othello: --player DIR"),
        (["tic-tac-toe", "--algorithm", "gumbel"], "pondertree train tic-tac-toe --out DIR"),
        (["connect4", "--algorithm", "muzero"], "plans in a learned model: use --player DIR"),
        (["connect4", "--algorithm", "muzero", "--player", "connect4"], "is a policy-value network"),
        (["connect4", "--algorithm", "hybrid"], "hybrid is for chess alone, not for Connect 4"),
        (["connect4", "--algorithm", "uct", "--player", "connect4"], "--player is for alphazero, gumbel and muzero"),
        (["connect4", "--algorithm", "reference", "--player", "connect4"], "not for --algorithm reference"),
        (["chess", "--player", "connect4"], "this is a player of connect4, not of chess"),
    ],
)
def test_invalid_algorithm_options_raise(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_learned_model_selects_muzero_and_alphazero_rejects_it(monkeypatch: pytest.MonkeyPatch) -> None:
    position = read_position("tic-tac-toe", None, None)
    monkeypatch.setattr(algorithms, "_load", lambda player, position: Rules([position.state], Guess()))
    assert configure(position, "auto", "runs/model", 20, None).algorithm == "muzero"
    for algorithm in ("muzero", "gumbel"):
        chosen = configure(position, algorithm, "runs/model", 20, None)
        searcher = chosen.start(position, 1, 1)
        assert run_search(searcher, chosen.simulations, None)
        assert searcher.report().simulations == 20
        assert "trained model" in searcher.report().description
    with pytest.raises(InvalidArgumentError, match="use --algorithm muzero or gumbel"):
        configure(position, "alphazero", "runs/model", 20, None)


def test_chess_text_is_san_and_json_is_uci(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("chess", "--moves", "e2e4 e5 Nf3", "--simulations", "300", "--seed", "1")
    found = search(capsys, *asked)
    assert all(re.fullmatch(r"[a-h][1-8][a-h][1-8][qrbn]?", text) for move in found["moves"] for text in move["pv"])
    assert main(["search", *asked]) == 0
    printed = capsys.readouterr().out
    assert "Chess after e4 e5 Nf3, Black to move" in printed
    assert re.search(rf"best move +{re.escape(found['san'])}$", printed, re.MULTILINE)
    assert not re.search(r"\b[a-h][1-8][a-h][1-8]\b", printed)


@pytest.mark.parametrize("arguments", [("chess",), ("connect4",), ("othello",), (COINS,), (NIM,)])
def test_text_fits_into_80_columns(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main(["search", *arguments, "--simulations", "400", "--seed", "4294967295"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    header = next(number for number, line in enumerate(lines) if line.startswith("move "))
    [rule] = [line for line in lines if set(line) == {"─"}]
    assert all(len(line) <= len(rule) for line in lines[header:])
