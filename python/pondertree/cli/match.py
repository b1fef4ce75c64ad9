"""`pondertree match`: a match between two players, with Elo and SPRT."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from pondertree import games
from pondertree.cli.arguments import Commands, add_parser, count, resume_command, seed, shell_line
from pondertree.cli.position import find_game
from pondertree.cli.searcher import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from pondertree.match import MatchResult

#: The message of an interrupted match without --out.
NOT_STORED = "nothing was stored: with --out FILE a match can be resumed"
SUMMARY = "Play a match between two players and estimate the Elo difference."
EXAMPLES = """\
  pondertree match uct:num_simulations=400 uct:num_simulations=100 --game connect4 --games 200
  pondertree match uct:c_param=1.4 uct:c_param=0.7 --game othello --sprt 0,20 --out tune.jsonl
  pondertree match uct:time_limit=0.1 "uci:stockfish,nodes=100,option.Skill Level=0" --game chess --pgn games.pgn
  pondertree match uct:c_param=1.4 uct:c_param=0.7 --game othello --sprt 0,20 --out tune.jsonl --resume

A player is a name with settings: uct, alphazero and gumbel (evaluator=rollout, uniform, pesto, player:PLAYER with the
folder of a training run, a .safetensors or .onnx file or connect4, onnx:FILE or keras:FILE), muzero and gumbel
(model=player:PLAYER), hybrid (chess), random, first, or uci:PROGRAM for chess, which needs nodes=, depth= or movetime=
(seconds per move) and takes option.NAME= for its own options. Searches also take reuse=true (tree reuse between moves)
and temperature=. Every opening is played twice, with sides exchanged."""


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree match`."""
    parser = add_parser(commands, "match", SUMMARY, EXAMPLES, run)
    parser.add_argument("player1", metavar="PLAYER1", help="the player whose score is reported")
    parser.add_argument("player2", metavar="PLAYER2", help="its opponent")
    known = f"the game: {games.KNOWN_IN_MATCHES}, or module:Class"
    parser.add_argument("--game", metavar="GAME", required=True, help=known)
    parser.add_argument(
        "--games", metavar="N", type=count, default=100, help="maximum number of games, even (default: 100)"
    )
    parser.add_argument(
        "--sprt",
        metavar="ELO0,ELO1",
        type=numbers(2, 2),
        help="stop at the verdict of a sequential probability ratio test",
    )
    parser.add_argument(
        "--openings",
        metavar="WHAT",
        default="random",
        help="random (default), none, or a file: .epd, .fen or .pgn for chess, else one line of moves per opening",
    )
    parser.add_argument("--plies", metavar="K", type=int, help="plies of a random opening, maximum of one from a file")
    parser.add_argument("--seed", metavar="N", type=seed, help="random seed")
    parser.add_argument(
        "--concurrency", metavar="N", type=count, help="number of worker processes (default: one per CPU)"
    )
    parser.add_argument(
        "--max-plies", metavar="N", type=count, default=1000, help="adjudicate longer games as draws (default: 1000)"
    )
    parser.add_argument(
        "--resign",
        metavar="V[,N]",
        type=numbers(1, 2),
        help="resign after N consecutive values of at most -V, if the opponent agrees",
    )
    parser.add_argument("--resign-alone", action="store_true", help="resign without the opponent's agreement")
    parser.add_argument(
        "--draw",
        metavar="V[,N[,PLY]]",
        type=numbers(1, 3),
        help="draw after N consecutive values of both players within V, from ply PLY on",
    )
    parser.add_argument(
        "--on-failure",
        choices=("loss", "error"),
        default="loss",
        help="a program that dies, times out or plays an illegal move loses the game (default) or ends the match",
    )
    parser.add_argument("--out", metavar="FILE", help="record file, appended after every pair of games")
    parser.add_argument("--resume", action="store_true", help="resume the match in the file of --out")
    parser.add_argument("--pgn", metavar="FILE", help="write the games at the end: PGN for chess, else lines of moves")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def numbers(least: int, most: int) -> Any:
    """Returns a parser of `least` to `most` comma-separated numbers."""

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
    """Runs the command and returns the exit status."""
    latest: list[MatchResult] = []
    hint = NOT_STORED if arguments.out is None else f"to go on: {shell_line(resume_command(arguments.typed))}"
    finished = True
    try:
        result = _play(arguments, latest)
    except KeyboardInterrupt:
        if not latest:
            print(f"interrupted before a pair of games was finished; {hint}", file=sys.stderr)
            return EXIT_INTERRUPTED
        result, finished = latest[-1], False
    if arguments.json:
        json.dump(result.as_json(), sys.stdout, ensure_ascii=False)
        print()
    else:
        print(result)
    if not finished:
        print(f"interrupted: this is what was played so far; {hint}", file=sys.stderr)
    return 0 if finished else EXIT_INTERRUPTED


def _play(arguments: argparse.Namespace, latest: list[MatchResult]) -> MatchResult:
    """Plays the match; `latest` holds the result after each pair."""
    # Imported first: a missing rich is reported before a long match.
    from pondertree.cli import output
    from pondertree.match import play_match

    def progress(result: MatchResult) -> None:
        latest[:] = [result]
        text = f"+{result.wins} ={result.draws} -{result.losses}  Elo {result.elo.elo:+.0f}"
        if result.sprt is not None:
            text += f"  LLR {result.sprt.llr:+.2f}"
        show(len(result.games), arguments.games, text)

    with output.progress_bar(output.make_console(), arguments.json) as show:
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
    """Builds the adjudication rules."""
    from pondertree.match import Adjudication

    settings: dict[str, Any] = {"max_plies": arguments.max_plies, "agree": not arguments.resign_alone}
    named = {"resign": ("resign", "resign_moves"), "draw": ("draw", "draw_moves", "draw_after")}
    for option, names in named.items():
        # The first number is a value, the others are counts.
        for name, number in zip(names, getattr(arguments, option) or (), strict=False):
            settings[name] = number if name == option or not number.is_integer() else int(number)
    return Adjudication(**settings)
