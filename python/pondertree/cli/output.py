"""Terminal output with rich: boards, move tables, live display of a running search."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pondertree.errors import MissingExtraError
from pondertree.optional import install_command

try:
    from rich import box
    from rich.console import Console, Group, JustifyMethod, RenderableType
    from rich.live import Live
    from rich.padding import Padding
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text
except ImportError as error:
    raise MissingExtraError(f"this command needs rich: {install_command('cli')}") from error

from pondertree.cli.position import Position
from pondertree.cli.search_report import Move, Report, count_text, fit
from pondertree.cli.searcher import Searcher, run_search
from pondertree.game import join_moves

BAR_WIDTH = 12
#: Seconds between updates of the live display, which take time from the search.
REFRESH = 0.25
#: Text width without a terminal.
PLAIN_WIDTH = 80
EIGHTHS = " ▏▎▍▌▋▊▉█"
#: Maximum width of a board with the summary to its right.
MAX_BOARD_WIDTH = 24
#: Gap between table columns.
COLUMN_GAP = 3


class PipeConsole(Console):
    """A console that raises BrokenPipeError for a closed pipe, where rich would exit."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def make_console() -> Console:
    """Returns a console with colours on a terminal, else plain."""
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    return PipeConsole(file=sys.stdout, width=width, highlight=False, emoji=False, markup=False)


def print_renderable(console: Console, what: RenderableType) -> None:
    """Prints a renderable; without a terminal, trailing spaces are stripped."""
    if sys.stdout.isatty():
        console.print(what)
        return
    with console.capture() as capture:
        console.print(what)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def can_watch(console: Console) -> bool:
    """Whether a live display is possible."""
    return sys.stdout.isatty() and not console.is_dumb_terminal


def draw_board(position: Position) -> Text:
    """Renders the board with the players' pieces in two colours."""
    board = Text()
    for line in position.board.splitlines():
        edge = all(sign in "abcdefgh12345678" for sign in line.replace(" ", ""))
        for sign in line:
            if edge or sign.isdigit() or sign == ".":
                style = "dim"
            elif position.game == "chess":
                style = "bold" if sign.isupper() else "bold magenta"
            else:
                style = {"X": "bold red", "O": "bold yellow"}.get(sign, "")
            board.append(sign, style)
        board.append("\n")
    board.rstrip()
    return board


def draw_bar(share: float, ascii_only: bool) -> str:
    """Renders a bar for a share in [0, 1]."""
    if ascii_only:
        return "#" * round(share * BAR_WIDTH)
    whole, part = divmod(round(share * BAR_WIDTH * 8), 8)
    return "█" * whole + (EIGHTHS[part] if part else "")


def value_text(value: float | None) -> Text:
    """Renders a value, green if positive and red if negative."""
    if value is None:
        return Text("-", "dim")
    text = f"{value:+.3f}" if abs(value) < 10_000 else f"{value:+.4g}"
    return Text(text, "green" if value > 0.05 else "red" if value < -0.05 else "")


def proof_text(move: Move) -> Text:
    """Renders the value or the proven result of a move."""
    if move.proven is None:
        return value_text(move.q)
    word, style = {1: ("win", "bold green"), 0: ("draw", "bold"), -1: ("loss", "bold red")}[move.proven]
    # The length of a draw is not meaningful.
    return Text(word if move.proven == 0 else f"{word} in {move.plies}", style)


def move_table(report: Report, top: int, width: int, *, ascii_only: bool = False) -> RenderableType:
    """Renders the moves, the best first; principal variations are truncated to `width` columns."""
    tried = [move for place, move in enumerate(report.moves) if move.visits or place == 0]
    most = max(1, *(move.visits for move in tried))
    shown = tried[:top]
    rows = [
        (
            Text(report.text_of(move), "bold" if place == 0 else ""),
            Text(f"{move.visits:,}"),
            Text(f"{move.share:.1%}"),
            Text(draw_bar(move.visits / most, ascii_only), "green" if place == 0 else "cyan"),
            proof_text(move),
        )
        for place, move in enumerate(shown)
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for column, name in enumerate(("move", "visits", "share", "", "Q")):
        widest = max(len(name), *(len(row[column]) for row in rows))
        width -= widest + COLUMN_GAP
        justify: JustifyMethod = "right" if name in ("visits", "share", "Q") else "left"
        table.add_column(name, justify=justify, no_wrap=True, min_width=widest)
    table.add_column("expected line", no_wrap=True)
    for row, move in zip(rows, shown, strict=True):
        table.add_row(*row, Text(fit(report.line_of(move)[1:], width), "dim"))
    left_out = [f"{len(tried) - top} more moves tried"] if len(tried) > top else []
    left_out += [f"{len(report.moves) - len(tried)} moves not tried"] if len(report.moves) > len(tried) else []
    return Group(table, Text(", ".join(left_out), "dim")) if left_out else table


def summary_table(report: Report) -> Table:
    """Renders the summary of a report."""
    position = report.position
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row("best move", Text(report.text_of(report.best), "bold"))
    for name, value in value_rows(report):
        grid.add_row(name, value)
    if position.rewards:
        grid.add_row("so far", position.scores_text(position.rewards))
    if position.info.is_two_player_zero_sum:
        grid.add_row("proven", Text(report.verdict(), "dim" if report.proven is None else "bold"))
    if report.simulations:
        grid.add_row("searched", f"{count_text(report.simulations)} in {report.elapsed:.2f} s")
        grid.add_row("speed", f"{report.speed:,.0f} simulations/s")
    else:
        grid.add_row("searched", "mates only, before the first simulation" if report.proven else "nothing yet")
    grid.add_row("search", f"{report.description}, seed {report.seed}")
    return grid


def value_rows(report: Report) -> Iterator[tuple[str, Text]]:
    """Yields the values: for the player to move in two-player zero-sum games, else for each player."""
    position = report.position
    if position.info.is_two_player_zero_sum:
        label = f" for {position.player}, expected score {(report.value + 1) / 2:.0%}"
        yield "value", value_text(report.value).append(label, "default")
        return
    what = ", expected sum of rewards" if position.info.has_rewards else ", expected result"
    for place, (player, value) in enumerate(zip(position.players, report.values, strict=True)):
        name = "" if len(report.values) == 1 else f" for {player}"
        yield "" if place else "value", value_text(value).append(name + ("" if place else what), "default")


def headline(position: Position) -> Text:
    """Renders the game and the player to move."""
    text = Text(position.title, "bold")
    if position.history:
        shown = join_moves(position.history[-8:])
        text.append(f" after {'... ' if len(position.history) > 8 else ''}{shown}", "default")
    return text.append(f", {position.player} to move", "default")


def show(report: Report, top: int, width: int = PLAIN_WIDTH, *, ascii_only: bool = False) -> RenderableType:
    """Renders a report, with board, summary and moves, `width` columns wide."""
    board = draw_board(report.position)
    if max(map(len, board.plain.splitlines()), default=0) > MAX_BOARD_WIDTH:
        head: RenderableType = Group(board, "", summary_table(report))
    else:
        grid = Table.grid(padding=(0, 4))
        grid.add_row(board, summary_table(report))
        head = grid
    moves = move_table(report, top, width, ascii_only=ascii_only)
    return Group(headline(report.position), "", Padding(head, (0, 0, 1, 1)), moves)


@contextmanager
def progress_bar(console: Console, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Yields a callback (done, total, text), which updates a progress bar on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=quiet or not can_watch(console)) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total, description=text)

        yield show


@contextmanager
def watching(console: Console, searcher: Searcher, top: int) -> Iterator[Callable[[float], object] | None]:
    """Yields the callback of a live display; None without a terminal."""
    if not can_watch(console):
        yield None
        return
    ascii_only = console.options.ascii_only
    drawn = -math.inf
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def watch(fraction: float) -> None:
            nonlocal drawn
            if time.monotonic() - drawn < REFRESH:
                return
            drawn = time.monotonic()
            bar = ProgressBar(total=1.0, completed=min(fraction, 1.0), width=30)
            progress = Table.grid(padding=(0, 2))
            progress.add_row(bar, f"{min(fraction, 1.0):4.0%}", Text("Ctrl-C ends it here", "dim"))
            now = show(searcher.report(is_preview=True), top, console.width, ascii_only=ascii_only)
            live.update(Group(now, "", progress), refresh=True)

        yield watch


def watch_and_show(
    console: Console, searcher: Searcher, simulations: int | None, seconds: float | None, top: int
) -> bool:
    """Runs the search with a live display and prints the report; returns False if interrupted."""
    with watching(console, searcher, top) as watch:
        finished = run_search(searcher, simulations, seconds, watch)
    print_renderable(console, show(searcher.report(), top, console.width, ascii_only=console.options.ascii_only))
    return finished
