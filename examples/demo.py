"""A tour of Pondertree in the terminal (`make demo`): four live searches in about ten seconds."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pondertree.cli.position import Position, read_position
from pondertree.cli.searcher import EXIT_INTERRUPTED, EngineSearcher, run_search
from pondertree.errors import MissingExtraError

try:
    from pondertree.cli import output
except MissingExtraError as error:
    sys.exit(f"demo: {error}")

from rich.columns import Columns
from rich.console import Console, Group
from rich.text import Text

#: A problem by Paul Morphy: White to move and mate in two.
MORPHY = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"


def title(console: Console, text: str) -> None:
    """Prints a heading."""
    console.print()
    console.rule(Text(text, "bold green"), align="left", style="green")
    console.print()


def search(console: Console, position: Position, seconds: float) -> EngineSearcher:
    """Searches a position with a live display and prints the result."""
    engine = EngineSearcher(position, seed=2024)
    if not output.watch_and_show(console, engine, None, seconds, top=7):
        raise KeyboardInterrupt
    return engine


def play(console: Console, simulations: int) -> None:
    """Plays tic-tac-toe against itself with tree reuse."""
    engine = EngineSearcher(read_position("tic-tac-toe", None, None), seed=2024)
    pictures = []
    while not engine.position.state.is_terminal:
        run_search(engine, simulations, None)
        report = engine.report(is_preview=True)
        verdict = f"{report.value:+.2f}" if report.proven is None else "proven"
        engine.follow(report.best.action)
        caption = Text(f"{engine.position.history[-1]} {verdict}", "dim")
        pictures.append(Group(output.draw_board(engine.position), caption, ""))
    output.print_renderable(console, Columns(pictures, padding=(0, 3)))
    console.print(engine.position.outcome(), style="bold")


def command() -> str:
    """Returns the shell command of `pondertree`: its name if on the PATH, else its path beside this Python."""
    installed = Path(sys.executable).with_name("pondertree")
    return "pondertree" if shutil.which("pondertree") or not installed.exists() else os.path.relpath(installed)


def main() -> int:
    """Runs the tour and returns the exit status."""
    console = output.make_console()
    title(console, "Connect 4: which column, after three moves?")
    engine = search(console, read_position("connect4", "4 4 3", None), seconds=5.0)

    title(console, "The top of that tree: visits, share, value for the player who moves")
    console.print(engine.tree.result().root.to_text(depth=2, width=3))

    title(console, "Chess: Morphy's mate in two, proven by the search")
    search(console, read_position("chess", None, MORPHY), seconds=5.0)

    title(console, "Tic-tac-toe: the search against itself")
    play(console, simulations=2_000)

    title(console, "Next")
    for line, purpose in (
        (f"{command()} search othello --seconds 5", "analyse a position"),
        (f"{command()} play connect4", "play against it"),
        (f"{command()} --help", "all commands"),
        ("make view", "look inside a search, in the browser"),
    ):
        console.print(f"{line:50}{purpose}", soft_wrap=True, highlight=False)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
