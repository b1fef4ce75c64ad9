"""Draws the picture of docs/learning.md again: `python docs/images/learning.py`. Its numbers are those of one training.

`learning-connect4.json` has the evaluations of that training, as its `metrics.jsonl` told them.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
INK, SOFT, GRID, PAPER = "#22281e", "#5d6656", "#dedbcf", "#fbf8ef"
GREEN, RUST = "#3f7a4a", "#c0562f"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 320, 60, 50, 50


def curve() -> str:
    """Scores against two UCT searches, by minutes."""
    told = json.loads((HERE / "learning-connect4.json").read_text(encoding="utf-8"))
    lines = told["evaluations"]
    last = max(line["elapsed"] / 60.0 for line in lines)
    wide, high = WIDTH - LEFT - 30, HEIGHT - TOP - BOTTOM

    def at(minutes: float, score: float) -> tuple[str, str]:
        return f"{LEFT + wide * minutes / last:.1f}", f"{TOP + high * (1.0 - score):.1f}"

    parts = []
    for score in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(0.0, score)
        parts.append(f'<line x1="{x}" y1="{y}" x2="{LEFT + wide}" y2="{y}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{float(y) + 4:.1f}" text-anchor="end" fill="{SOFT}">{score:.0%}</text>')
    for minutes in range(0, int(last) + 1, 10):
        x, y = at(minutes, 0.0)
        parts.append(f'<text x="{x}" y="{float(y) + 18:.1f}" text-anchor="middle" fill="{SOFT}">{minutes}</text>')
    parts.append(f'<text x="{LEFT + wide}" y="{HEIGHT - 10}" text-anchor="end" fill="{SOFT}">minutes</text>')
    for number, (other, colour) in enumerate((("UCT 100", GREEN), ("UCT 1000", RUST))):
        points = [at(line["elapsed"] / 60.0, line["scores"][other]) for line in lines]
        drawn = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
        words = f"against {other.replace('UCT', 'UCT with')} simulations"
        parts.append(f'<text x="{LEFT + 260 * number}" y="36" fill="{colour}">{words}</text>')
    title = "Connect 4 from nothing: share of points"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="{INK}" role="img">\n<title>{title}</title>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{PAPER}"/>\n'
        f'<text x="{LEFT}" y="20" font-weight="bold">{title}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def pictures() -> dict[str, str]:
    """Every picture by the name of its file."""
    return {"learning.svg": curve()}


if __name__ == "__main__":
    for name, text in pictures().items():
        (HERE / name).write_text(text, encoding="utf-8")
