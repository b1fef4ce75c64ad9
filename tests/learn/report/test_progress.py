"""Progress on a terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from tests.support.learning import small

pytest.importorskip("rich")
pytest.importorskip("torch")

from rich.console import Console

from pondertree.learn import train
from pondertree.learn.data.checkpoint import Counters
from pondertree.learn.evaluation.ratings import rating_of
from pondertree.learn.report.progress import PanelWatcher, Status, Watcher, actors_summary


def test_panel_prints_notes_verbatim() -> None:
    drawn = io.StringIO()
    watcher = PanelWatcher("connect4", Console(file=drawn, force_terminal=True, width=80))
    with watcher:
        watcher.show(Status(Counters(games=7), {}, {}, {}, 0.5, 10.0))
        watcher.note("a [dim]note[/dim]")
        watcher.show(Status(Counters(games=8), {}, {}, {}, 0.6, 10.0))
    assert "a [dim]note[/dim]" in drawn.getvalue()
    assert "[dim]games" not in drawn.getvalue()
    assert "connect4" in drawn.getvalue()


def test_status_of_environment_shows_returns_instead_of_elo() -> None:
    """Also before the first episode has ended."""
    for has_returns, name in ((True, "return"), (False, "Elo")):
        rows = dict(Status(Counters(), {}, {}, {}, 0.0, None, has_returns).rows())
        assert rows[name] == "not yet"
        assert ("Elo" in rows) != has_returns
    assert ("return", "3.5") in Status(Counters(), {"mean_return": 3.5}, {}, {}, 0.0, None, True).rows()
    rows = Status(Counters(), {}, {}, {"mean_return": 7.25}, 0.0, None, True).rows()
    assert ("evaluated", "7.2") in rows


@pytest.mark.parametrize(
    ("evaluation", "rows"),
    [
        ({}, [("Elo", "not yet")]),
        ({"elo": -12.3}, [("Elo", "-12")]),
        ({"elo": 40.0, "keeps_value": 0.913}, [("Elo", "+40"), ("keeps value", "91.3%")]),
        ({"elo": None, "keeps_value": 0.5}, [("keeps value", "50.0%")]),
        ({"elo": 40.0, "elo_error": 90.0}, [("Elo", "+40 ± 90")]),
        ({"elo": 851.2, "elo_error": 809.4, "elo_low": 360.2, "elo_high": 2205.0}, [("Elo", "≥ +360")]),
        (
            {"elo": 40.0, "elo_error": 90.0, "scores": {"UCT 100": 1.0, "UCT 400": 0.45, "step 7": 0.5}},
            [("Elo", "+40 ± 90"), ("score", "45% against UCT 400")],
        ),
    ],
)
def test_status_shows_last_evaluation(evaluation: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    shown = Status(Counters(), {}, {}, evaluation, 0.0, None).rows()
    assert [row for row in shown if row[0] in ("Elo", "score", "keeps value")] == rows


class Seen(Watcher):
    """Records statuses and notes."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def show(self, status: Status) -> None:
        self.events.append(dict(status.rows())["Elo"])

    def note(self, text: str) -> None:
        self.events.append(text)


@pytest.mark.parametrize("side_by_side", [False, True])
def test_watcher_receives_evaluation_when_it_completes(tmp_path: Path, side_by_side: bool) -> None:
    """Including the last one, which no round follows."""
    seen = Seen()
    few = {"games": 2, "positions": 0, "simulations": 4, "uct_simulations": [4], "every_minutes": 0.0}
    result = train(small(tmp_path, steps=6, side_by_side=side_by_side).with_values(evaluation=few), watcher=seen)
    [evaluation] = result.evaluations
    [place] = [place for place, event in enumerate(seen.events) if event.startswith("step 6:")]
    assert set(seen.events[:place]) == {"not yet"}
    assert seen.events[place + 1 :] == [str(rating_of(evaluation))]


@pytest.mark.parametrize(
    ("restarts", "text"), [(0, "1 playing"), (1, "1 playing, 1 restart"), (2, "1 playing, 2 restarts")]
)
def test_restarts_of_actors_are_counted(restarts: int, text: str) -> None:
    assert actors_summary({"0": {"ready": 1, "restarts": restarts}}) == text
