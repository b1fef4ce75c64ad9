"""Progress of a run for users: silent, as plain lines, or as a live terminal panel."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import IO, Any, Self

from pondertree.learn.config import OPPONENT
from pondertree.learn.data import Counters
from pondertree.learn.evaluation import rating_of
from pondertree.learn.report.summary import LOSSES

#: Actors that the panel shows one by one.
MAX_ACTOR_ROWS = 16


@dataclass(frozen=True, slots=True)
class Status:
    """The progress of a run."""

    counters: Counters
    line: dict[str, Any]
    """Metrics of the last round."""
    losses: dict[str, float]
    evaluation: dict[str, Any]
    """Metrics of the last evaluation; empty before the first."""
    progress: float
    seconds_left: float | None
    has_returns: bool = False
    """Whether strength is measured by episode returns instead of Elo."""
    actors: dict[str, dict[str, float]] = field(default_factory=dict)
    """Measurements of the self-play actors in other processes."""
    evaluation_pid: int | None = None
    """The process of the evaluation actor, where there is one."""

    def rows(self) -> list[tuple[str, str]]:
        """Returns the displayed rows: (name, value)."""
        line, counters = self.line, self.counters
        return [
            ("games", f"{counters.games:,} ({line.get('games_per_second', 0):,.1f}/s)"),
            ("positions", f"{counters.positions:,} ({line.get('positions_per_second', 0):,.0f}/s)"),
            ("steps", f"{counters.step:,}"),
            *((f"{label} loss", _number(self.losses[name])) for name, label in LOSSES.items() if name in self.losses),
            ("game length", _number(line.get("game_length"), 1)),
            *([("return", _number(line.get("mean_return"), 1))] if self.has_returns else []),
            *_strength(self.evaluation, self.has_returns),
            ("time", f"{clock(counters.elapsed)}, left {clock(self.seconds_left)}"),
            *([("actors", actors_summary(self.actors))] if self.actors else []),
        ]

    def actor_rows(self) -> list[tuple[str, str]]:
        """Returns a row for each of the first actors."""
        return [(f"actor {name}", actor_summary(one)) for name, one in list(self.actors.items())[:MAX_ACTOR_ROWS]]

    def __str__(self) -> str:
        return f"{self.progress:4.0%}  " + "  ".join(f"{name} {text}" for name, text in self.rows())


class Watcher:
    """Receives the progress of a run; this base class ignores it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, status: Status) -> None:
        """Called after each round."""

    def note(self, text: str) -> None:
        """Called with a message for the user."""


class LineWatcher(Watcher):
    """Prints a line at most every few seconds."""

    def __init__(self, stream: IO[str] | None = None, seconds: float = 10.0) -> None:
        self._stream = stream or sys.stderr
        self._seconds = seconds
        self._last = -float("inf")

    def show(self, status: Status) -> None:
        """Prints a line, rate-limited."""
        if time.monotonic() - self._last >= self._seconds:
            self._last = time.monotonic()
            print(status, file=self._stream, flush=True)

    def note(self, text: str) -> None:
        """Prints the message."""
        print(text, file=self._stream, flush=True)


class PanelWatcher(Watcher):
    """Shows a live panel on the terminal (rich)."""

    def __init__(self, title: str, console: Any) -> None:
        from rich.live import Live

        self._title = title
        self._live = Live(console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._live.__exit__(*details)  # type: ignore[arg-type]

    def show(self, status: Status) -> None:
        """Redraws the panel."""
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for name, text in [*status.rows(), *status.actor_rows()]:
            table.add_row(Text(name, "dim"), Text(text))
        bar = ProgressBar(total=1.0, completed=status.progress)
        self._live.update(Panel(Group(table, bar), title=self._title, width=60))

    def note(self, text: str) -> None:
        """Prints the message above the panel."""
        from rich.text import Text

        # A Text is printed verbatim; disabling markup on the console would affect the panel, too.
        self._live.console.print(Text(text, "dim"))


def actor_state(measured: dict[str, float]) -> str:
    """Returns whether an actor plays."""
    if measured.get("quarantined"):
        return "quarantined"
    return "playing" if measured.get("ready") else "starting"


def actor_summary(measured: dict[str, float]) -> str:
    """Returns a line about an actor."""
    restarts = measured.get("restarts", 0)
    return (
        f"{actor_state(measured)}, {measured.get('games_per_second', 0.0):,.2f} games/s, "
        f"lag {measured.get('lag', 0):,.0f}, busy {measured.get('utilisation', 0.0):.0%}"
        f"{restarts_text(restarts)}"
    )


def actors_summary(actors: dict[str, dict[str, float]]) -> str:
    """Returns a line about all actors."""
    states = [actor_state(measured) for measured in actors.values()]
    counted = ", ".join(f"{states.count(name)} {name}" for name in dict.fromkeys(states))
    restarts = sum(measured.get("restarts", 0) for measured in actors.values())
    return f"{counted}{restarts_text(restarts)}"


def restarts_text(restarts: float) -> str:
    """Returns the end of a line about actors: ", 2 restarts", or nothing without any."""
    return f", {restarts:.0f} restart{'' if restarts == 1 else 's'}" if restarts else ""


def clock(seconds: float | None) -> str:
    """Formats a duration as h:mm:ss or m:ss."""
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _strength(evaluation: dict[str, Any], has_returns: bool) -> list[tuple[str, str]]:
    """Returns the rows of the last evaluation: returns, or Elo, score and exact play."""
    if has_returns:
        text = _number(evaluation.get("mean_return"), 1)
        named = [name for name in ("random", "greedy") if f"{name}_return" in evaluation]
        others = ", ".join(f"{name} {evaluation[f'{name}_return']:.1f}" for name in named)
        return [("evaluated", f"{text} ({others})" if others else text)]
    elo, share = evaluation.get("elo"), evaluation.get("keeps_value")
    rating = "not yet" if elo is None else str(rating_of(evaluation) or f"{elo:+.0f}")
    rows = [] if elo is None and share is not None else [("Elo", rating)]
    last = next((other for other in reversed(evaluation.get("scores", {})) if OPPONENT.fullmatch(other)), None)
    if last is not None:
        rows.append(("score", f"{evaluation['scores'][last]:.0%} against {last}"))
    return rows if share is None else [*rows, ("keeps value", f"{share:.1%}")]


def _number(value: float | None, digits: int = 3) -> str:
    return "not yet" if value is None else f"{value:.{digits}f}"
