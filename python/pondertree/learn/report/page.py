"""The report of a run: a self-contained HTML page, and its plots as files."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pondertree.errors import InvalidArgumentError, MissingExtraError, StorageError
from pondertree.files import make_folder, reading, write_bytes
from pondertree.games import known
from pondertree.learn.config import OPPONENT, data_of_text, start_of_training
from pondertree.learn.evaluation import games_of, interval, rating_of
from pondertree.learn.report.plots import MODEL_QUALITY, draw_plots
from pondertree.learn.report.progress import actor_state, clock
from pondertree.learn.report.samples import choose_samples
from pondertree.learn.report.samples_html import STYLE as GAMES_STYLE
from pondertree.learn.report.samples_html import samples_html
from pondertree.learn.report.summary import LOSSES, Summary, read_summary
from pondertree.optional import require

STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; }
td, th { padding: 0.2rem 0.9rem; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child { text-align: left; } svg { max-width: 100%; height: auto; }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; font-size: 13px; }
"""

#: Fields of evaluations with episode returns.
RETURNS = ("mean_return", "return_low", "return_high", "least_return", "most_return", "random_return", "greedy_return")


def write_report(out: Path, factory: Callable[[], Any] | None = None) -> tuple[Path, str]:
    """Writes `report.html` and `plots/` into a run folder; returns (page, reason for missing plots).

    `factory` gives the starting states of a game in Python, to show its positions; otherwise only compiled games are
    replayed: a game's name in the folder never imports code.
    """
    with reading(out, "a run folder", StorageError):
        return _write_report(out, factory)


def _write_report(out: Path, factory: Callable[[], Any] | None) -> tuple[Path, str]:
    summary = read_summary(out)
    complaint = ""
    drawings: list[str] = []
    try:
        require("matplotlib", "viz", "drawing plots")  # before an empty folder is created
        make_folder(out / "plots", "plots")
        drawings = [path.read_text(encoding="utf-8") for path in draw_plots(summary, out / "plots", "svg")]
        draw_plots(summary, out / "plots", "png")
    except MissingExtraError as error:
        complaint = f"no plots: {error}"
    config = _config(summary.config)
    evaluation = config.get("evaluation")
    simulations = evaluation.get("simulations") if isinstance(evaluation, dict) else None
    samples = choose_samples(out, summary.evaluations, simulations if type(simulations) is int else None)
    compiled = known(config.get("game"))
    games = samples_html(samples, factory or (compiled and start_of_training(compiled)))
    path = out / "report.html"
    write_bytes(path, report_html(summary, drawings, complaint, games).encode(errors="replace"), "report")
    return path, complaint


def report_html(summary: Summary, drawings: list[str], complaint: str = "", games: str = "") -> str:
    """Returns the HTML page; `games` is HTML."""
    last = summary.last
    overview = {
        "games": f"{last.get('games', 0):,}",
        "positions": f"{last.get('positions', 0):,}",
        "steps": f"{last.get('step', 0):,}",
        "time": clock(last.get("elapsed")),
        **{f"{label} loss": _number(last[name]) for name, label in LOSSES.items() if name in last},
    }
    rows = "".join(f"<tr><td>{name}</td><td>{text}</td></tr>" for name, text in overview.items())
    game = _config(summary.config).get("game")
    title = html.escape(f"Training run: {game}" if game else "Training run")
    parts = [
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>",
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}{GAMES_STYLE}</style></head><body>"
        f"<h1>{title}</h1><table>{rows}</table>",
        f"<h2>Evaluations</h2>{_evaluations(summary.evaluations)}",
        games,
        f"<h2>Prediction errors by unroll depth</h2>{_model(summary.models[-1])}" if summary.models else "",
        f"<h2>Self-play actors</h2>{_actors(summary.actors)}" if summary.actors else "",
        # The XML declaration of a plot is not allowed inside a page.
        *(f"<figure>{text[text.index('<svg') :]}</figure>" for text in drawings),
        f"<p>{html.escape(complaint)}</p>" if complaint else "",
        f"<h2>Configuration</h2><pre>{html.escape(summary.config)}</pre></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _config(text: str) -> dict[str, Any]:
    """Parses the configuration; empty if it is unreadable."""
    try:
        return data_of_text(text)
    except InvalidArgumentError:
        return {}


def _evaluations(lines: list[dict[str, Any]]) -> str:
    if not lines:
        return "<p>None.</p>"
    opponents = _references(lines)
    exact = [name for name in ("keeps_value", "policy_keeps_value") if any(name in line for line in lines)]
    returns = [name for name in RETURNS if any(name in line for line in lines)]
    strength = [] if returns else ["Elo (95 %)"]
    heads = ["player", "time", *(f"score against {other}" for other in opponents), *strength, *exact, *returns]
    rows = []
    for line in lines:
        scores = [_percent(line["scores"].get(other)) for other in opponents]
        elo = str(rating_of(line) or "")
        shares = [_percent(line.get(name)) for name in exact]
        episode_returns = [f"{line[name]:.2f}" if name in line else "" for name in returns]
        cells = [line["name"], clock(line["elapsed"]), *scores, *([] if returns else [elo]), *shares, *episode_returns]
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in heads)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>{_scale(lines, opponents)}"


def _references(lines: list[dict[str, Any]]) -> list[str]:
    """Returns the anchor opponents met, UCT first, each preset by simulations."""
    met = {other: OPPONENT.fullmatch(other) for line in lines for other in line["scores"]}
    return sorted((name for name, found in met.items() if found), key=lambda name: (name[:3] != "UCT", _budget(name)))


def _budget(name: str) -> int:
    return int(name.split()[1])


def _scale(lines: list[dict[str, Any]], opponents: list[str]) -> str:
    """Returns a paragraph on the Elo scale: the anchors, rated by all games of all evaluations."""
    if not opponents:
        return ""
    games, anchor = games_of(lines), opponents[0]
    rated = [f"{name} {interval(games, anchor, name)}" for name in opponents[1:]]
    return (
        f"<p>Elo 0 is {html.escape(anchor.replace(' ', ' with '))} simulations per move"
        f"{html.escape(': ' + ', '.join(rated) if rated else '')}. All evaluations are rated jointly; where a 95 % "
        "interval is too long to be informative, its nearer end is given as a bound.</p>"
    )


def _actors(actors: dict[str, dict[str, float]]) -> str:
    """Returns a table of the actors' last measurements."""
    columns = {
        "games": "{:,.0f}",
        "positions": "{:,.0f}",
        "games_per_second": "{:,.2f}",
        "lag": "{:,.0f}",
        "restarts": "{:,.0f}",
        "dropped": "{:,.0f}",
        "utilisation": "{:.0%}",
    }
    heads = ["actor", *(name.replace("_", " ") for name in columns), "state"]
    rows = [
        [name, *(text.format(one.get(key, 0)) for key, text in columns.items()), actor_state(one)]
        for name, one in actors.items()
    ]
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{body}</table>"


def _model(line: dict[str, Any]) -> str:
    by_depth = line["by_depth"]
    depths = len(by_depth["value"])
    head = "".join(f"<th>{text}</th>" for text in ("", *range(depths)))
    rows = []
    for name, label in MODEL_QUALITY.items():
        numbers = by_depth[name]
        cells = [""] * (depths - len(numbers)) + ["" if number is None else f"{number:.3f}" for number in numbers]
        rows.append(f"<tr><td>{label}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
