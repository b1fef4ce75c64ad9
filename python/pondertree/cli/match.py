"""`pondertree match`: two players, many games, and how much stronger one of them is."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pondertree import games
from pondertree.cli.arguments import Commands, Parser, count, resuming, seed, shell_line
from pondertree.cli.position import find_game
from pondertree.cli.searcher import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from pondertree.match import MatchResult
    from pondertree.match.runner import Progress

#: What a match without --out says when it is interrupted.
NOT_STORED = "nothing was stored: with --out FILE a match can be resumed"
SUMMARY = "Play a match between two players, and say how much stronger the first one is."
EXAMPLES = """\
  pondertree match uct:num_simulations=400 uct:num_simulations=100 --game connect4 --games 200
  pondertree match uct:c_param=1.4 uct:c_param=0.7 --game othello --sprt 0,20 --out tune.jsonl
  pondertree match uct:time_limit=0.1 "uci:stockfish,nodes=100,option.Skill Level=0" --game chess --pgn games.pgn
  pondertree match uct:c_param=1.4 uct:c_param=0.7 --game othello --sprt 0,20 --out tune.jsonl --resume

A player is a name with its settings: uct, alphazero and gumbel (evaluator=rollout, uniform, pesto, player:PLAYER with
the folder of a training, a .safetensors or .onnx file or connect4, onnx:FILE or keras:FILE), muzero and gumbel
(model=player:PLAYER), hybrid (chess), random, first, or uci:PROGRAM for chess, which needs nodes=, depth= or movetime=
(seconds a move) and takes option.NAME= for its own options. Searches also take reuse=true (keep the tree from move to
move) and temperature=. Every opening is played twice, with the sides exchanged."""


def add_arguments(commands: Commands) -> None:
    """The arguments of `pondertree match`."""
    parser: Parser = commands.add_parser("match", help=SUMMARY, description=SUMMARY, epilog=f"Examples:\n{EXAMPLES}")
    parser.set_defaults(run=run)
    parser.add_argument("player1", metavar="PLAYER1", help="whose score is told")
    parser.add_argument("player2", metavar="PLAYER2", help="its opponent")
    parser.add_argument(
        "--game", metavar="GAME", required=True, help=f"the game: {', '.join(games.BY_NAME)}, or module:Class"
    )
    parser.add_argument(
        "--games", metavar="N", type=count, default=100, help="most games, an even number (default: 100)"
    )
    parser.add_argument(
        "--sprt", metavar="ELO0,ELO1", type=numbers(2, 2), help="stop when it is clear which of the two holds"
    )
    parser.add_argument(
        "--openings",
        metavar="WHAT",
        default="random",
        help="random (default), none, or a file: .epd, .fen or .pgn for chess, else a line of moves for each",
    )
    parser.add_argument("--plies", metavar="K", type=int, help="moves of a random opening, or most of one from a file")
    parser.add_argument("--seed", metavar="N", type=seed, help="repeat the random numbers of an earlier match")
    parser.add_argument(
        "--concurrency", metavar="N", type=count, help="games at a time, in processes (default: one per processor)"
    )
    parser.add_argument(
        "--max-plies", metavar="N", type=count, default=1000, help="longer games are draws (default: 1000)"
    )
    parser.add_argument(
        "--resign",
        metavar="V[,N]",
        type=numbers(1, 2),
        help="lost at a value of -V for N moves in a row, both agreeing",
    )
    parser.add_argument("--resign-alone", action="store_true", help="whoever resigns need not be agreed with")
    parser.add_argument(
        "--draw",
        metavar="V[,N[,PLY]]",
        type=numbers(1, 3),
        help="drawn when both values are within V for N moves in a row, from ply PLY on",
    )
    parser.add_argument(
        "--on-failure",
        choices=("loss", "error"),
        default="loss",
        help="a program that dies, hangs or makes an illegal move loses the game (default), or ends the match",
    )
    parser.add_argument("--out", metavar="FILE", help="write every finished pair of games there, as it is finished")
    parser.add_argument("--resume", action="store_true", help="go on with the match in the file of --out")
    parser.add_argument(
        "--pgn", metavar="FILE", help="write the games there when the match ends: PGN, or lines of moves"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def numbers(least: int, most: int) -> Any:
    """Reads numbers separated by commas, from `least` to `most` of them."""

    def read(text: str) -> list[float]:
        try:
            found = [float(part) for part in text.split(",")]
        except ValueError:
            found = []
        if not least <= len(found) <= most:
            many = f"{most}" if least == most else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"must be {many} numbers separated by commas, not {text!r}")
        return found

    return read


def run(arguments: argparse.Namespace) -> int:
    """Runs it; the exit status."""
    latest: list[MatchResult] = []
    go_on = NOT_STORED if arguments.out is None else f"to go on: {shell_line(resuming(arguments.typed))}"
    finished = True
    try:
        result = _play(arguments, latest)
    except KeyboardInterrupt:
        if not latest:
            print(f"interrupted before a pair of games was finished; {go_on}", file=sys.stderr)
            return INTERRUPTED
        result, finished = latest[-1], False
    if arguments.json:
        json.dump(result.as_json(), sys.stdout, ensure_ascii=False)
        print()
    else:
        print(result)
    if not finished:
        print(f"interrupted: this is what was played so far; {go_on}", file=sys.stderr)
    return 0 if finished else INTERRUPTED


def _play(arguments: argparse.Namespace, latest: list[MatchResult]) -> MatchResult:
    """Plays the match; `latest` holds the result after each pair."""
    # Asked for first, so that whoever lacks rich hears it before a long match.
    from pondertree.cli import output
    from pondertree.match import play_match

    with watching(output.make_console(), arguments.games, latest, arguments.json) as progress:
        return play_match(
            arguments.player1,
            arguments.player2,
            find_game(arguments.game),
            num_games=arguments.games,
            sprt=arguments.sprt,
            openings=arguments.openings,
            plies=arguments.plies,
            seed=arguments.seed,
            adjudication=adjudication(arguments),
            on_failure=arguments.on_failure,
            concurrency=arguments.concurrency,
            out=arguments.out,
            resume=arguments.resume,
            pgn=arguments.pgn,
            progress=progress,
        )


def adjudication(arguments: argparse.Namespace) -> Any:
    """When games are ended from outside."""
    from pondertree.match import Adjudication

    settings: dict[str, Any] = {"max_plies": arguments.max_plies, "agree": not arguments.resign_alone}
    named = {"resign": ("resign", "resign_moves"), "draw": ("draw", "draw_moves", "draw_after")}
    for option, names in named.items():
        # The first number is a value, the others are counts.
        for name, number in zip(names, getattr(arguments, option) or (), strict=False):
            settings[name] = number if name == option or not number.is_integer() else int(number)
    return Adjudication(**settings)


@contextmanager
def watching(console: Console, wanted: int, latest: list[MatchResult], quiet: bool) -> Iterator[Progress]:
    """What to call after each pair: it keeps the latest result, and shows it where somebody watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from pondertree.cli.output import can_watch

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=quiet or not can_watch(console)) as bar:
        task = bar.add_task("", total=wanted)

        def progress(result: MatchResult) -> None:
            latest[:] = [result]
            if not bar.disable:
                said = f"+{result.wins} ={result.draws} -{result.losses}  Elo {result.elo.elo:+.0f}"
                if result.sprt is not None:
                    said += f"  LLR {result.sprt.llr:+.2f}"
                bar.update(task, completed=len(result.games), description=said)

        yield progress
