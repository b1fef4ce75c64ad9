"""Watching a training on a terminal."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("rich")
pytest.importorskip("torch")

from rich.console import Console

from pondertree.learn.session import Counters
from pondertree.learn.watch import PanelWatcher, Status


def test_a_note_is_printed_as_it_is_and_the_panel_is_drawn() -> None:
    drawn = io.StringIO()
    watcher = PanelWatcher("connect4", Console(file=drawn, force_terminal=True, width=80))
    with watcher:
        watcher.show(Status(Counters(games=7), {}, {}, None, 0.5, 10.0))
        watcher.note("a [dim]note[/dim]")
        watcher.show(Status(Counters(games=8), {}, {}, None, 0.6, 10.0))
    assert "a [dim]note[/dim]" in drawn.getvalue()
    assert "[dim]games" not in drawn.getvalue()
    assert "connect4" in drawn.getvalue()


def test_environments_have_returns_and_no_elo() -> None:
    """From the first moment, when no episode has ended yet."""
    for has_returns, name in ((True, "return"), (False, "Elo")):
        rows = dict(Status(Counters(), {}, {}, None, 0.0, None, has_returns).rows())
        assert rows[name] == "not yet"
        assert ("Elo" in rows) != has_returns
    assert ("return", "3.5") in Status(Counters(), {"mean_return": 3.5}, {}, None, 0.0, None, True).rows()
