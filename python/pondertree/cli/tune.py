"""`pondertree tune`: Texel tuning of the evaluation, or SPSA tuning of the hybrid search."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pondertree.cli.arguments import Commands, add_parser, count, seed
from pondertree.cli.searcher import EXIT_INTERRUPTED
from pondertree.errors import InvalidArgumentError, MissingExtraError

if TYPE_CHECKING:
    from pondertree.chess.pesto import Pesto
    from pondertree.tune import Positions, Report

SUMMARY = "Tune the weights of the chess evaluation from games, or the settings of the hybrid search by matches."
EXAMPLES = """\
  pondertree tune --self-play 2000 --out tuned
  pondertree tune games.pgn quiet.epd --out tuned --start material
  pondertree tune tuned/positions.npz --out again --regularisation 30
  pondertree tune --self-play 2000 --out tuned --resume
  pondertree tune --search --iterations 200 --out settings

FILES hold positions with results: PGN; EPD or FEN with c9 "1-0", 1-0 or [1.0], for White; .npz (positions of an earlier
run); .jsonl (the record of a chess match). The folder of --out holds weights.json (for Pesto.from_file, and for
evaluator=pesto:FILE in a match), report.txt, report.json, plots, and a checkpoint for --resume; with --search,
settings.json (for Hybrid) and search.jsonl."""

#: File names of self-play and positions in the output folder.
GAMES, POSITIONS = "games.jsonl", "positions.npz"
#: Progress callback: (done, total, description).
Show = Callable[[int, int, str], None]


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree tune`."""
    parser = add_parser(commands, "tune", SUMMARY, EXAMPLES, run)
    parser.add_argument("files", metavar="FILES", nargs="*", help="positions with results, see below")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="the output folder, created if missing")
    parser.add_argument(
        "--resume", action="store_true", help="resume the run in the folder, also with more --iterations"
    )
    parser.add_argument("--seed", metavar="N", type=seed, default=0, help="random seed (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument(
        "--simulations", metavar="N", type=count, default=100, help="simulations per move of self-play (default: 100)"
    )
    parser.add_argument(
        "--concurrency", metavar="N", type=count, help="number of worker processes (default: one per CPU)"
    )

    parser.add_argument(
        "--iterations", metavar="N", type=count, help="maximum number of steps (default: 300; with --search 100)"
    )

    data = parser.add_argument_group("positions")
    data.add_argument("--self-play", metavar="N", type=count, help="play N games of self-play, an even number")
    data.add_argument("--data-only", action="store_true", help="write positions.npz and exit")
    data.add_argument(
        "--held-back",
        metavar="SHARE",
        type=float,
        default=0.15,
        help="share of games for validation, which stops the fit; above 0 (default: 0.15)",
    )
    data.add_argument(
        "--per-game", metavar="N", type=count, default=20, help="maximum positions per game (default: 20)"
    )
    data.add_argument(
        "--mirror", action="store_true", help="augment positions without castling rights by horizontal flips"
    )

    fit = parser.add_argument_group("weights")
    fit.add_argument(
        "--start", metavar="WHAT", default="default", help="default, published, material, or a file (default: default)"
    )
    fit.add_argument(
        "--regularisation", metavar="X", type=float, default=10.0, help="L2 penalty towards the start (default: 10)"
    )
    fit.add_argument(
        "--patience", metavar="N", type=count, default=10, help="steps without progress before the end (default: 10)"
    )
    fit.add_argument("--keep-scale", action="store_true", help="do not fit the scale of the sigmoid")
    fit.add_argument("--plots", choices=("png", "svg", "none"), default="png", help="format of plots (default: png)")

    search = parser.add_argument_group("search")
    search.add_argument("--search", action="store_true", help="tune the settings of the hybrid search instead, by SPSA")
    search.add_argument("--games", metavar="N", type=count, default=16, help="games per step, even (default: 16)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit status."""
    # Imported first: a missing rich is reported before long work.
    from pondertree.cli import output

    console = output.make_console()
    with output.progress_bar(console, arguments.json) as show:
        work = tune_search if arguments.search else tune_weights
        found, finished = work(arguments, show)
    if arguments.json and found is not None:
        print(json.dumps(found if isinstance(found, dict) else found.as_json()))
    elif found is not None:
        print(json.dumps(found, indent=1) if isinstance(found, dict) else found)
    if not finished:
        print("interrupted: resume with the same command and --resume", file=sys.stderr)
    return 0 if finished else EXIT_INTERRUPTED


def tune_weights(arguments: argparse.Namespace, show: Show) -> tuple[Any, bool]:
    """Returns (the result to print or None, whether the run is complete)."""
    from pondertree.files import check_path, make_folder
    from pondertree.tune import FitOptions, tune

    options = FitOptions(
        iterations=arguments.iterations or 300,
        regularisation=arguments.regularisation,
        patience=arguments.patience,
        fit_scale=not arguments.keep_scale,
        seed=arguments.seed,
    )
    start = read_start(arguments.start)
    folder = check_path(arguments.out, "--out", POSITIONS)
    make_folder(folder, "out")
    positions = gather(arguments, folder, show)
    if positions is None:
        return None, False
    if arguments.data_only:
        skipped = positions.skipped.as_json()
        return {"positions": len(positions), "games": positions.num_games, "skipped": skipped}, True
    report = tune(
        positions,
        start,
        options,
        held_back=arguments.held_back,
        per_game=arguments.per_game,
        mirror=arguments.mirror,
        out=folder,
        resume=arguments.resume,
        progress=lambda state: show(state.iteration, options.iterations, f"held-back error {state.best_error:.5f}"),
    )
    draw(report, folder, arguments.plots)
    return report, report.finished


def gather(arguments: argparse.Namespace, folder: Path, show: Show) -> Positions | None:
    """Collects the positions of all sources and writes them to the folder; None if self-play was interrupted."""
    from pondertree.tune import join, positions_of, read_positions, self_play
    from pondertree.tune.positions import check_some

    if not arguments.files and arguments.self_play is None:
        raise InvalidArgumentError("give FILES with positions, or --self-play N")
    parts = [read_positions(file) for file in arguments.files]
    if arguments.self_play is not None:
        num_games: int = arguments.self_play
        try:
            played = self_play(
                num_games,
                simulations=arguments.simulations,
                seed=arguments.seed,
                record=folder / GAMES,
                resume=arguments.resume,
                concurrency=arguments.concurrency,
                progress=lambda result: show(len(result.games), num_games, "games of self-play"),
            )
        except KeyboardInterrupt:
            return None
        parts.append(positions_of(played.games))
    positions = join(parts)
    check_some(positions)
    positions.save(folder / POSITIONS)
    return positions


def read_start(text: str) -> Pesto:
    """Returns the initial weights of a fit."""
    from pondertree.chess.pesto import Pesto
    from pondertree.tune import material_only

    if text == "material":
        return material_only()
    if text in ("default", "published"):
        return Pesto() if text == "default" else Pesto.published()
    try:
        return Pesto.from_file(text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"--start: {error}") from None


def draw(report: Report, folder: Path, ending: str) -> None:
    """Writes the plots if requested; a missing matplotlib is a warning."""
    from pondertree.tune import draw_plots

    if ending != "none":
        try:
            draw_plots(report, folder, ending)
        except MissingExtraError as error:
            print(f"pondertree: no plots: {error}", file=sys.stderr)


def tune_search(arguments: argparse.Namespace, show: Show) -> tuple[dict[str, Any], bool]:
    """Returns (the settings, whether the run is complete)."""
    from pondertree.tune import tune_search
    from pondertree.tune.search_settings import PARAMETERS, settings_of
    from pondertree.tune.spsa import Step, best_values

    iterations = arguments.iterations or 100
    made: list[Step] = []

    def progress(steps: list[Step]) -> None:
        made[:] = steps
        show(len(steps), iterations, f"score of the last step {steps[-1].score:.3f}")

    if arguments.files or arguments.self_play is not None:
        raise InvalidArgumentError("--search plays its own games: it takes no FILES and no --self-play")
    try:
        found = tune_search(
            simulations=arguments.simulations,
            games=arguments.games,
            iterations=iterations,
            progress=progress,
            out=arguments.out,
            resume=arguments.resume,
            seed=arguments.seed,
            concurrency=arguments.concurrency,
        )
    except KeyboardInterrupt:
        return settings_of(best_values(PARAMETERS, made)), False
    return found, True
