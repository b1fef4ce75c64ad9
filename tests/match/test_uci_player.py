"""UCI programs as players: correct ones, and ones that hang, die or play illegal moves."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pondertree.errors import InvalidArgumentError, MissingExtraError, PlayerError
from pondertree.match import Adjudication, MatchResult, UciEntrant, play_match
from pondertree.match.uci_player import _value

pytest.importorskip("chess.engine")

PROGRAM = Path(__file__).parents[1] / "support" / "uci_program.py"


def program(*arguments: object, **settings: Any) -> UciEntrant:
    settings = {"nodes": 10, "timeout": 30.0, "name_as": "tester", **settings}
    return UciEntrant([sys.executable, str(PROGRAM), *map(str, arguments)], **settings)


def match(player: Any, other: Any = "random", **settings: Any) -> MatchResult:
    settings = {"num_games": 4, "seed": 1, "concurrency": 1, "adjudication": Adjudication(max_plies=60), **settings}
    return play_match(player, other, "chess", **settings)


def test_uci_program_plays_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("UCI_PROGRAM_LOG", str(log))
    result = match(program("good", options={"Hash": 32}), num_games=2)
    assert not result.failures
    assert result.games[0].values[0] == pytest.approx(0.0575, abs=1e-4)  # 20 centipawns
    lines = [line.split(" ", 1) for line in log.read_text().splitlines()]
    assert len({process for process, _ in lines}) == 1
    said = Counter(line for _, line in lines)
    assert said["setoption name Hash value 32"] == 1
    assert said["ucinewgame"] == 2
    assert said["go nodes 10"] == sum(
        (place % 2 == 0) == (game.first == 1) for game in result.games for place in range(8, len(game.moves))
    )
    # The opening is sent as moves, so that repetitions count.
    assert any(line.startswith("position startpos moves ") for line in said)


@pytest.mark.slow
def test_uci_match_is_independent_of_concurrency() -> None:
    """One program process per worker; the games do not depend on the number of workers."""
    entrant = program("good")
    results = [match(entrant, concurrency=count).games for count in (1, 2)]
    assert [game.moves for game in results[0]] == [game.moves for game in results[1]]
    again = match(program("good", restart=True)).games
    assert [game.moves for game in again] == [game.moves for game in results[0]]


def test_uci_programs_from_specs_play_each_other() -> None:
    words = f"uci:{shlex.join([sys.executable, str(PROGRAM), 'good'])},nodes=5"
    result = match(words, words, num_games=2)
    assert result.pentanomial == (0, 0, 1, 0, 0)
    assert not result.failures


@pytest.mark.parametrize(
    ("mode", "reason", "detail"),
    [
        ("hang", "timeout", "no move within 1"),
        ("die", "died", "exit code: 7"),
        ("illegal", "illegal_move", "a1h8"),
        ("nothing", "illegal_move", "no move"),
        ("null", "illegal_move", "no move"),
        ("garbage", "illegal_move", "zz99"),
    ],
)
def test_failing_program_loses_game(tmp_path: Path, mode: str, reason: str, detail: str) -> None:
    """The third move of each game fails: the game is lost and recorded, and the next one is played."""
    out = tmp_path / "match.jsonl"
    bad = program(mode, 3, timeout=1.0 if mode == "hang" else 30.0)
    result = match("first", bad, num_games=2, out=out)
    assert [(game.points, game.reason, game.culprit) for game in result.games] == [(1.0, reason, 2)] * 2
    assert all(detail in game.detail for game in result.games)
    assert all(len(game.seconds) in (4, 5) for game in result.games)
    assert f"tester failed in game 0 ({reason})" in str(result)
    assert len(out.read_text().splitlines()) == 2


@pytest.mark.slow
def test_program_failure_ends_match_and_keeps_record(tmp_path: Path) -> None:
    """The program dies at its 90th move, in a later game; with "error" that ends the match, which can go on."""
    out = tmp_path / "match.jsonl"
    settings: dict[str, Any] = {"num_games": 40, "out": out, "on_failure": "error", "concurrency": 2}
    with pytest.raises(PlayerError, match=r"tester \(player 2\) failed in game \d+ after \d+ moves \(died\)"):
        match("uct:num_simulations=1", program("die", 90), **settings)
    retained = len(out.read_text().splitlines()) - 1
    with pytest.raises(PlayerError, match="died"):
        match("uct:num_simulations=1", program("die", 90), resume=True, **settings)
    assert len(out.read_text().splitlines()) - 1 >= retained


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (program("mute", start_timeout=1.0), "tester cannot be started: no answer to uci within 1 s"),
        (program("good", options={"Magic": 3}), "tester cannot be started: .*Magic"),
        (UciEntrant([sys.executable, "-c", "pass"], nodes=1), "cannot be started: .*(exit code: 0|Terminated)"),
    ],
)
def test_program_that_cannot_start_ends_match(bad: UciEntrant, message: str) -> None:
    with pytest.raises(PlayerError, match=message):
        match("random", bad)


def test_invalid_uci_entrants_raise_before_match(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError, match="player1: a UCI program plays chess, not connect4"):
        play_match(program("good"), "random", "connect4")
    with pytest.raises(InvalidArgumentError, match="player2: there is no program 'no-such-program'"):
        match("random", "uci:no-such-program,nodes=1")
    monkeypatch.setitem(sys.modules, "chess.engine", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[python-chess\]"):
        match("random", program("good"))


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes in /proc")
def test_match_leaves_no_processes() -> None:
    def running() -> int:
        found = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    found += str(PROGRAM) in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
        return found

    result = match("first", program("hang", 2, timeout=1.0), concurrency=2)
    assert len(result.failures) == 4
    assert running() == 0


def test_uci_scores_convert_to_values() -> None:
    engine = pytest.importorskip("chess.engine")
    white = True
    assert _value(None) is None
    assert _value(engine.PovScore(engine.Cp(0), white)) == 0.0
    assert _value(engine.PovScore(engine.Cp(400), white)) == pytest.approx(9 / 11)
    assert _value(engine.PovScore(engine.Mate(3), white)) == 1.0
    assert _value(engine.PovScore(engine.Mate(-3), white)) == -1.0
