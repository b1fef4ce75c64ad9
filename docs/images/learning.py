"""Generates the pictures of docs/learning.md: `python docs/images/learning.py`. Each shows one training run.

`learning-connect4.json` and `learning-connect4-gpu.json` hold the evaluations from the `metrics.jsonl` of these runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INK, SOFT, GRID, PAPER = "#22281e", "#5d6656", "#dedbcf", "#fbf8ef"
GREEN, RUST = "#3f7a4a", "#c0562f"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 320, 60, 50, 50


#: A curve: the value of an evaluation, the label and the colour.
Series = tuple[Callable[[dict[str, Any]], float], str, str]


def curve(name: str, title: str, shown: Sequence[Series], marks: Sequence[float], minutes_apart: int) -> str:
    """Draws shares against minutes of training."""
    recorded = json.loads((HERE / name).read_text(encoding="utf-8"))
    lines = recorded["evaluations"]
    last = max(line["elapsed"] / 60.0 for line in lines)
    plot_width, high = WIDTH - LEFT - 30, HEIGHT - TOP - BOTTOM
    least, most = marks[0], marks[-1]

    def at(minutes: float, share: float) -> tuple[str, str]:
        height = (share - least) / (most - least)
        return f"{LEFT + plot_width * minutes / last:.1f}", f"{TOP + high * (1.0 - height):.1f}"

    parts = []
    for score in marks:
        x, y = at(0.0, score)
        parts.append(f'<line x1="{x}" y1="{y}" x2="{LEFT + plot_width}" y2="{y}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{float(y) + 4:.1f}" text-anchor="end" fill="{SOFT}">{score:.0%}</text>')
    for minutes in range(0, int(last) + 1, minutes_apart):
        x, y = at(minutes, least)
        parts.append(f'<text x="{x}" y="{float(y) + 18:.1f}" text-anchor="middle" fill="{SOFT}">{minutes}</text>')
    parts.append(f'<text x="{LEFT + plot_width}" y="{HEIGHT - 10}" text-anchor="end" fill="{SOFT}">minutes</text>')
    for number, (read, words, colour) in enumerate(shown):
        points = [at(line["elapsed"] / 60.0, read(line)) for line in lines]
        drawn = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
        parts.append(f'<text x="{LEFT + 260 * number}" y="36" fill="{colour}">{words}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="{INK}" role="img">\n<title>{title}</title>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{PAPER}"/>\n'
        f'<text x="{LEFT}" y="20" font-weight="bold">{title}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def pictures() -> dict[str, str]:
    """Returns every picture by file name."""
    matches: list[Series] = [
        (lambda line: line["scores"]["UCT 100"], "against UCT with 100 simulations", GREEN),
        (lambda line: line["scores"]["UCT 1000"], "against UCT with 1000 simulations", RUST),
    ]
    exact: list[Series] = [
        (lambda line: line["keeps_value"], "with 100 simulations", GREEN),
        (lambda line: line["policy_keeps_value"], "without search", RUST),
    ]
    return {
        "learning.svg": curve(
            "learning-connect4.json",
            "Connect 4 from scratch: score",
            matches,
            (0.0, 0.25, 0.5, 0.75, 1.0),
            10,
        ),
        "learning-gpu.svg": curve(
            "learning-connect4-gpu.json",
            "Connect 4 from scratch on a GPU: moves that preserve the exact value",
            exact,
            (0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0),
            1,
        ),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (HERE / name).write_text(text, encoding="utf-8")
