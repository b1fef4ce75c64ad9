"""`pondertree play` with scripted input."""

from __future__ import annotations

import argparse
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from examples.games.coin_row import CoinRow

from pondertree.cli import main
from pondertree.cli.algorithms import Level, configure
from pondertree.cli.arguments import shell_line
from pondertree.cli.play import read_side
from pondertree.cli.position import Position, read_position
from pondertree.cli.search_report import Move
from pondertree.cli.searcher import run_search
from pondertree.errors import InvalidArgumentError
from pondertree.games import Breakthrough

COINS = "examples.games.coin_row:CoinRow"
TRIANGLE = "examples.games.triangle:Triangle"
COMMAND = [sys.executable, "-m", "pondertree", "play"]


def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, *arguments: str) -> str:
    """The output for the input lines `typed`."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["play", *arguments, "--simulations", "400", "--seed", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_two_users_play_to_the_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "a1\nb1\na2\nb2\na3\n", "tic-tac-toe", "--side", "both")
    assert out.endswith("1 X O .\n2 X O .\n3 X . .\nX wins.\n")


def test_chess_moves_are_read_in_uci_and_san(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "f3\ne7e5\ng2g4\nQh4#\n", "chess", "--side", "both")
    assert out.endswith("Black wins (checkmate).\n")


def test_invalid_input_is_reported_and_prompt_repeats(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "9\n\nnonsense\nmoves\nhelp\n4\nquit\n", "connect4")
    assert out.count("(legal: 1 2 3 4 5 6 7)") == 2
    assert "X> moves\n1 2 3 4 5 6 7\n" in out
    assert "take back your last move" in out
    assert "O plays " in out


def test_undo_also_takes_back_reply(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "undo\nb2\nundo\nundo\na1\n", "tic-tac-toe")
    assert out.count("There is nothing to take back.") == 2
    assert shlex.split(out.splitlines()[-1])[-1].startswith("a1 ")


def test_hint_is_a_legal_move(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "hint\n", "connect4", "--moves", "1 1 2 2 3 5")
    assert "X could play 4  X wins" in out


def test_end_of_input_prints_continue_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "", "othello", "--side", "second")
    message = "Stopped. To go on from here: pondertree play othello --side second --simulations 400 --seed 1 --moves "
    assert out.splitlines()[-1].startswith(message)
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"
    out = play(monkeypatch, capsys, "", "chess", "--fen", fen)
    assert out.splitlines()[-1].endswith(f" {shell_line(['--fen', fen])}")


@pytest.mark.parametrize("game", ["tic-tac-toe", "connect4", "othello"])
def test_search_plays_against_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], game: str
) -> None:
    asked = (game, "--side", "none", "--algorithm", "uct")
    out = play(monkeypatch, capsys, "", *asked)
    assert out.splitlines()[-1] in ("X wins.", "O wins.", "The game is a draw.")
    assert out == play(monkeypatch, capsys, "", *asked)


def test_search_does_not_lose_at_tic_tac_toe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "a1\nb1\nc1\na2\nb2\nc2\na3\nb3\nc3\n" * 3, "tic-tac-toe")
    assert out.splitlines()[-1] in ("O wins.", "The game is a draw.")


def test_piped_input_is_played() -> None:
    done = subprocess.run(
        [*COMMAND, "tic-tac-toe", "--seed", "1"], input="b2\n", capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "O plays " in done.stdout


def test_continue_command_repeats_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed moves, entered again, reproduce the game."""
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    given = ["connect4", "--player", "connect4", "--seconds", "0.05", "--threads", "2", "--moves", "4 4"]
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert main(["play", *given]) == 0
    command = capsys.readouterr().out.splitlines()[-1].partition("To go on from here: pondertree ")[2]
    options = "--side first --player connect4 --seconds 0.05 --threads 2"
    assert command == f"play connect4 {options} {shell_line(['--moves', '4 4'])}"
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert main(shlex.split(command)) == 0
    assert command in capsys.readouterr().out


def test_python_game_is_played(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "c-9\nhint\nc-4\n", "examples.games.nim:Nim")
    assert "'c-9' is no" in out
    assert "Player 1 could play " in out
    assert "Player 2 plays " in out
    assert shlex.split(out.splitlines()[-1])[-2] == "--moves"
    assert shlex.split(out.splitlines()[-1])[-1].startswith("c-4 ")


# --- Introduction, notation and commands ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "who", "example"),
    [
        (["connect4"], "Connect 4. You play X, the search plays O.", "such as 4,"),
        (["chess", "--side", "black"], "Chess. You play Black, the search plays White.", "such as e6 (or e7e6),"),
        (["chess", "--side", "both"], "Chess. You play all sides, White and Black, and can ask", "such as e4"),
        ([COINS, "--side", "2"], "CoinRow. You play Player 2, the search plays Player 1 and Player 3.", "such as"),
        ([COINS, "--side", "1,3"], "You play Player 1 and Player 3, the search plays Player 2.", "such as first,"),
        ([TRIANGLE], "Triangle. You play, and can ask the search for hints.", "such as left,"),
    ],
)
def test_introduction_names_players_and_move_format(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], who: str, example: str
) -> None:
    out = play(monkeypatch, capsys, "", *arguments)
    lines = out.splitlines()
    assert who in lines[0]
    assert "400 simulations per move, full strength" in lines[1]
    assert f"Enter a move {example}" in lines[2]
    assert "type help" in lines[2]
    assert max(map(len, lines[:-1])) <= 80


@pytest.mark.parametrize(("game", "count"), [("tic-tac-toe", 2), (COINS, 3), (TRIANGLE, 1)])
def test_search_plays_every_side_without_users(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], game: str, count: int
) -> None:
    out = play(monkeypatch, capsys, "", game, "--side", "none")
    assert out.startswith(f"{read_position(game, None, None).title}. The search plays")
    assert len({line.split(" plays ")[0] for line in out.splitlines() if " plays " in line and "  " in line}) == count


def test_chess_prints_san_in_every_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "e2e4\nmoves\nhint\nNf3\nquit\n", "chess")
    outputs = re.findall(r"^Black plays (\S+)  ", out, re.MULTILINE)
    assert len(outputs) == 2
    assert re.search(r"^White could play \S+  value ", out, re.MULTILINE)
    assert "Nf3" in out.partition("White> moves\n")[2].partition("White>")[0].split()
    history = out.splitlines()[-1].partition("--moves ")[2].strip("\"'").split()
    assert history == ["e4", outputs[0], "Nf3", outputs[1]]
    coordinates = re.findall(r"\b[a-h][1-8][a-h][1-8]\b", out)
    assert coordinates == ["e2e4", "e2e4"], "the example in the introduction, and what was typed"
    assert main(["search", "chess", "--moves", " ".join(history), "--simulations", "5"]) == 0


def test_move_lines_fit_into_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "moves\nnonsense\nhint\nhelp\ne4\nhint\n", "chess")
    assert max(len(line) for line in out.splitlines()[:-1]) <= 80


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (["connect4"], "X resigns. O wins."),
        (["connect4", "--side", "second"], "O resigns. X wins."),
        (["chess", "--side", "both", "--moves", "e4"], "Black resigns. White wins."),
        ([COINS], "Player 1 resigns. The game ends here."),
        ([TRIANGLE, "--moves", "right"], "Player resigns. The game ends here. Rewards: 0.5."),
    ],
)
def test_resign_ends_the_game_with_its_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], result: str
) -> None:
    out = play(monkeypatch, capsys, "resign\nmoves\n", *arguments)
    assert out.splitlines()[-1] == result


def test_undo_returns_to_the_previous_turn_of_the_user_with_three_players(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "first\nlast\nundo\nundo\nundo\n", COINS, "--side", "2")
    boards = [line for line in out.splitlines() if line.startswith("CoinRow(")]
    assert len(boards) == 5
    assert boards[1] == boards[3]
    assert boards[0] == boards[4]
    assert "There is nothing to take back." in out


def test_undo_restores_rewards(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "left\nundo\nright\nright\n", TRIANGLE)
    assert re.findall(r"^reward (\S+), total (\S+)$", out, re.MULTILINE) == [
        ("+0.2", "0.2"),
        ("+0.5", "0.5"),
        ("+0.4", "0.9"),
    ]


def test_final_scores_of_three_players_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "first\nlast\n" * 10, COINS, "--side", "all")
    state = CoinRow()
    for place in range(9):
        state = state.play(place % 2 if len(state.coins) > 1 else 0)
    shares = [coins / sum(state.taken) for coins in state.taken]
    final_scores = ", ".join(f"Player {player} {share:.4g}" for player, share in enumerate(shares, start=1))
    assert out.splitlines()[-1] == f"Player {shares.index(max(shares)) + 1} wins. Final scores: {final_scores}."


def test_total_reward_of_one_player_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "", TRIANGLE, "--side", "none", "--algorithm", "uct")
    assert out.splitlines()[-1] == "The game is over. Total reward: 2.9."


def test_shared_wins_and_draws_of_several_players_are_printed() -> None:
    class Tie:
        num_actions, num_players, to_play, is_terminal = 1, 3, 0, True

        def __init__(self, *scores: float) -> None:
            self.scores = scores

        def legal_actions(self) -> list[int]:
            return []

        def play(self, action: int) -> Tie:
            return self

        def returns(self) -> tuple[float, ...]:
            return self.scores

    outcomes = [Position("tests:Tie", Tie(*scores)).outcome() for scores in ((1, 1, -1), (0, 0, 0), (0, 1, 0))]
    assert outcomes[0] == "Player 1 and Player 2 share the win. Final scores: Player 1 1, Player 2 1, Player 3 -1."
    assert outcomes[1].startswith("The game is a draw. Final scores: ")
    assert outcomes[2].startswith("Player 2 wins. ")


def test_endless_game_without_users_is_aborted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pondertree.cli.play.MAX_MOVES", 3)
    assert main(["play", "chess", "--side", "none", "--simulations", "2"]) == 2
    assert "has not ended after 3 moves" in capsys.readouterr().err


@pytest.mark.parametrize("algorithm", ["uct", "alphazero", "gumbel", "reference"])
def test_every_algorithm_plays_and_undoes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], algorithm: str
) -> None:
    out = play(monkeypatch, capsys, "4\nundo\n3\nhint\n", "connect4", "--algorithm", algorithm)
    assert out.count("O plays ") == 2
    assert "X could play " in out
    assert f"--algorithm {algorithm} " in out.splitlines()[-1]


def test_mate_found_without_simulations_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "", "chess", "--side", "none", "--fen", "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1")
    assert "White plays Ra6  White wins, found by the mate search, expects " in out
    assert out.splitlines()[-1] == "White wins (checkmate)."


def test_documented_transcript_matches_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    [transcript] = re.findall(r"^```text\n\$ pondertree (play .*?)\n```$", page, re.DOTALL | re.MULTILINE)
    command, *lines = transcript.splitlines()
    typed = [line.removeprefix("X> ") for line in lines if line.startswith("X> ")]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed) + "\n"))
    assert main(shlex.split(command)) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == lines


# --- Levels -------------------------------------------------------------------------------------------------------


def test_levels_grow_in_simulations_and_fall_in_temperature() -> None:
    levels = [Level(number) for number in range(1, 11)]
    assert [level.number for level in levels if level.is_full] == [10]
    for full in (400, 10_000, 50_000):
        simulations = [level.simulations(full) for level in levels]
        assert simulations == sorted(set(simulations))
        assert (simulations[0], simulations[-1]) == (4, full)
    temperatures = [level.temperature for level in levels]
    assert temperatures == sorted(set(temperatures), reverse=True)
    assert (temperatures[0], temperatures[-1]) == (2.0, 0.0)


def test_level_samples_moves_by_visits_and_level_10_plays_best() -> None:
    moves = [move(0, 90), move(1, 9), move(2, 0)]
    random = Random(1)
    counts = {number: [0, 0, 0] for number in (1, 5, 10)}
    for number, drawn in counts.items():
        for _ in range(4000):
            drawn[Level(number).choose(moves, 100, random).action] += 1
    weights = [91**0.5, 10**0.5, 1.0]
    assert counts[1] == pytest.approx([4000 * weight / sum(weights) for weight in weights], rel=0.15)
    assert counts[1][0] < counts[5][0] < counts[10][0] == 4000
    assert counts[5][2] < counts[1][2]


def test_level_prefers_proven_wins_and_avoids_proven_losses() -> None:
    random = Random(1)
    won, lost = [move(0, 0, 1), move(1, 3)], [move(0, 3), move(1, 50, -1)]
    assert all(Level(9).choose(won, 1000, random).action == 0 for _ in range(500))
    assert all(Level(9).choose(lost, 1000, random).action == 0 for _ in range(500))
    all_lost = [move(0, 5, -1), move(1, 50, -1)]
    assert {Level(1).choose(all_lost, 4, random).action for _ in range(100)} == {0, 1}


def test_play_at_level_is_reproducible_and_can_be_continued(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for name in ("easy", "3"):
        monkeypatch.setattr("sys.stdin", io.StringIO("4\n4\nhint\n"))
        assert main(["play", "connect4", "--algorithm", "uct", "--level", name, "--seed", "5"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "level 3 of 10" in printed[0]
    assert "--algorithm uct --seed 5 --level 3 --moves " in printed[0].splitlines()[-1]
    simulations = Level(3).simulations(100_000)
    assert f"{simulations:,} simulations per move" in printed[0]
    assert re.search(r"X could play \d  .*100,000 simulations", printed[0]), "hints are of full strength"


def test_level_5_beats_level_1_at_connect_four() -> None:
    """Eight games with both sides: equal players would win at least seven with probability 0.035."""
    start = read_position("connect4", None, None)
    none = dict.fromkeys(("player", "simulations", "seconds", "max_depth"))
    chosen = configure(start, argparse.Namespace(algorithm="uct", **none))
    score = 0
    for game in range(8):
        random, engine, position = Random(game), chosen.start(start, game, 1), start
        while not position.state.is_terminal:
            level = Level((5, 1)[position.state.to_play ^ (game % 2)])
            simulations = level.simulations(10_000)
            engine.restart(position)
            run_search(engine, simulations, None)
            position = position.play(level.choose(engine.report().moves, simulations, random).action)
        score += position.state.returns()[game % 2] > 0
    assert score >= 7


def move(action: int, visits: int, proven: int | None = None) -> Move:
    """A move of a report."""
    plies = None if proven is None else 1
    return Move(action, str(action), visits, 0.0, None, proven, plies, (str(action),))


def test_threefold_repetition_and_fifty_moves_end_a_game_of_chess(capsys: pytest.CaptureFixture[str]) -> None:
    shuffle = "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8"
    assert main(["play", "chess", "--side", "both", "--moves", shuffle]) == 0
    assert "The game is a draw (threefold repetition)." in capsys.readouterr().out
    assert main(["play", "chess", "--side", "both", "--fen", "6k1/8/8/8/8/8/1R6/6K1 w - - 100 120"]) == 0
    assert "The game is a draw (fifty moves)." in capsys.readouterr().out


def test_move_numbers_of_game_score_are_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "chess", "--moves", "1. e4 e5 2.Nf3 2...Nc6", "--simulations", "20", "--json"]) == 0
    position = json.loads(capsys.readouterr().out)["position"]
    assert position.startswith("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w")


@pytest.mark.parametrize("side", ["O", "white", "WHITE", "second"])
def test_example_is_a_move_of_the_users_side(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], side: str
) -> None:
    out = play(monkeypatch, capsys, "quit\n", "breakthrough", "--side", side)
    assert "You play O, the search plays X." in out
    example = re.search("a move such as (.*), or", out)
    assert example is not None
    # Every first move of player 1 begins on rank 2.
    assert Breakthrough().play(25).parse_action(example[1]) in Breakthrough().play(25).legal_actions()


@pytest.mark.parametrize(
    ("game", "colour", "player"), [("hex", "red", 0), ("hex:5", "blue", 1), ("connect4", "yellow", 1)]
)
def test_sides_are_named_by_their_colours(game: str, colour: str, player: int) -> None:
    assert read_side(colour, read_position(game, None, None)) == (player,)
    with pytest.raises(InvalidArgumentError, match=rf"choose first.*, X, O, .*{colour}"):
        read_side("green", read_position(game, None, None))
