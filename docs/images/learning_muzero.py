"""Generates the MuZero picture of docs/learning.md: `python docs/images/learning_muzero.py`.

`learning-muzero.json` holds the returns of episodes in two training runs, by minutes: in self-play, averaged over some
rounds, and in evaluations, from their `metrics.jsonl`.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
INK, SOFT, GRID, PAPER = "#22281e", "#5d6656", "#dedbcf", "#fbf8ef"
GREEN, RUST = "#3f7a4a", "#c0562f"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 300, 60, 60, 60
APART = 70


def returns() -> str:
    """Draws the returns of episodes in two environments, side by side."""
    recorded = json.loads((HERE / "learning-muzero.json").read_text(encoding="utf-8"))
    plot_width = (WIDTH - LEFT - APART - 30) / 2
    parts: list[str] = []
    for number, (name, lines) in enumerate(recorded.items()):
        parts += panel(name, lines, LEFT + number * (plot_width + APART), plot_width)
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 12}" fill="{GREEN}">self-play</text>')
    parts.append(f'<text x="{LEFT + 110}" y="{HEIGHT - 12}" fill="{RUST}">evaluations, deterministic</text>')
    title = "MuZero in environments: mean return per episode"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="{INK}" role="img">\n<title>{title}</title>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{PAPER}"/>\n'
        f'<text x="{LEFT}" y="20" font-weight="bold">{title}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def panel(name: str, lines: dict[str, list[list[float]]], left: float, plot_width: float) -> list[str]:
    """Draws the panel of one environment."""
    high = HEIGHT - TOP - BOTTOM
    last, most = max(minutes for minutes, _ in lines["evaluations"]), lines["most"][0][0]

    def at(minutes: float, reward: float) -> str:
        return f"{left + plot_width * min(minutes / last, 1.0):.1f},{TOP + high * (1.0 - reward / most):.1f}"

    parts = [f'<text x="{left}" y="44">{name}</text>']
    for share in (0.0, 0.5, 1.0):
        y = TOP + high * (1.0 - share)
        parts.append(f'<line x1="{left}" y1="{y}" x2="{left + plot_width}" y2="{y}" stroke="{GRID}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end" fill="{SOFT}">{most * share:g}</text>')
    under = TOP + high + 18
    parts.append(f'<text x="{left + plot_width}" y="{under}" text-anchor="end" fill="{SOFT}">{last:.0f} minutes</text>')
    for kind, colour in (("self_play", GREEN), ("evaluations", RUST)):
        points = " ".join(at(minutes, reward) for minutes, reward in lines[kind])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for minutes, reward in lines["evaluations"]:
        x, y = at(minutes, reward).split(",")
        parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{RUST}"/>')
    return parts


def pictures() -> dict[str, str]:
    """Returns every picture by file name."""
    return {"learning-muzero.svg": returns()}


if __name__ == "__main__":
    for name, text in pictures().items():
        (HERE / name).write_text(text, encoding="utf-8")
