"""Generates the pictures of docs/mathematics.md: `python docs/images/mathematics.py`. Deterministic, byte for byte.

Every number is the result of a search or, for curves of a formula, of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pondertree
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import ConnectFour, TicTacToe
from pondertree.random import SELECT, Random, fold
from pondertree.reference import alphazero

HERE = Path(__file__).parent

INK, SOFT, GRID, PAPER = "#22281e", "#5d6656", "#dedbcf", "#fbf8ef"
GREEN, RUST, BLUE, OCHRE = "#3f7a4a", "#c0562f", "#4a6fa5", "#d19a2f"
SHADES = ["#eef0e2", "#dfe5cf", "#cddaba", "#b8cca3", "#9fbc8b", "#83a872", GREEN]
"""Colours of seven moves, from the worst to the best."""


# --- Drawing ------------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A coordinate with one decimal, for identical bytes on every platform."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, **style: Any) -> str:
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    marks = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{number(x)}" y="{number(y)}"{marks}>{words}</text>'


def bar(x: float, y: float, width: float, height: float, fill: str) -> str:
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect x="{number(x)}" y="{number(y)}" {size} fill="{fill}"/>'


def picture(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A complete SVG file, with its own background so that it is readable on a dark page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="{INK}" text-anchor="middle" role="img">\n'
        f'<title>{title}</title>\n<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


@dataclass
class Panel:
    """A pair of axes; the elements drawn on it are appended to `parts`."""

    x: float
    y: float
    width: float
    height: float
    across: tuple[float, float]
    """The values at the left and the right end."""
    up: tuple[float, float] = (0.0, 1.0)
    log: bool = False
    """Whether the x axis is logarithmic."""
    parts: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        (left, right), (low, high) = self.across, self.up
        part = math.log(x / left) / math.log(right / left) if self.log else (x - left) / (right - left)
        return self.x + part * self.width, self.y + self.height * (1.0 - (y - low) / (high - low))

    def axes(self, title: str, below: Sequence[tuple[float, str]], left: Sequence[tuple[float, str]]) -> None:
        """Draws the title, the tick labels of both axes, and horizontal grid lines."""
        self.parts.append(text(self.x, self.y - 12, title, font_weight="bold", text_anchor="start"))
        for value, words in left:
            _, y = self.at(self.across[0], value)
            self.line_of([(self.x, y), (self.x + self.width, y)], GRID, 1)
            self.parts.append(text(self.x - 7, y + 4, words, text_anchor="end", font_size=11, fill=SOFT))
        for value, words in below:
            x, _ = self.at(value, self.up[0])
            self.parts.append(text(x, self.y + self.height + 17, words, font_size=11, fill=SOFT))

    def line_of(self, points: Sequence[tuple[float, float]], colour: str, width: float, more: str = "") -> None:
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-linejoin="round" stroke-linecap="round"{more}/>'
        )

    def curve(self, points: Iterable[tuple[float, float]], colour: str, width: float = 2.5, more: str = "") -> None:
        self.line_of([self.at(x, y) for x, y in points], colour, width, more)

    def area(self, lower: Sequence[tuple[float, float]], upper: Sequence[tuple[float, float]], colour: str) -> None:
        points = [self.at(x, y) for x, y in [*lower, *reversed(upper)]]
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" fill="{colour}" stroke="{PAPER}" stroke-width="0.6"/>')


def powers(most: int) -> list[tuple[float, str]]:
    return [(10.0**power, f"{10**power:,}") for power in range(most + 1)]


def steps(most: int, count: int) -> list[int]:
    """Integers from 1 to `most`, about evenly spaced on a logarithmic scale."""
    return sorted({round(most ** (place / count)) for place in range(count + 1)})


# --- UCB1 and PUCT ------------------------------------------------------------------------------------------------

VALUES = (-0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.5)
UNIFORM = (1 / 7,) * 7
ACCURATE = (0.02, 0.03, 0.05, 0.10, 0.10, 0.20, 0.50)
MISLEADING = (0.30, 0.20, 0.20, 0.10, 0.10, 0.07, 0.03)


@dataclass(frozen=True)
class Arms:
    """A game of one move with exact values, which isolates the selection rule."""

    pulled: int | None = None
    num_players = 1
    num_actions = 7
    to_play = 0

    @property
    def is_terminal(self) -> bool:
        return self.pulled is not None

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else list(range(7))

    def play(self, action: int) -> Arms:
        return Arms(action)

    def returns(self) -> list[float]:
        assert self.pulled is not None
        return [VALUES[self.pulled]]


@dataclass(frozen=True)
class Priors:
    """An evaluator with the same priors, and the value 0, for every position."""

    priors: tuple[float, ...]
    policy = "probabilities"

    def evaluate_states(self, states: Sequence[Any]) -> tuple[list[tuple[float, ...]], list[float]]:
        return [self.priors] * len(states), [0.0] * len(states)


def bonus() -> str:
    """Exploration bonus of UCB1 and PUCT against visits."""
    total = 1000
    panel = Panel(58, 46, 560, 236, (1, 300), (0.0, 4.0), log=True)
    below = [(float(n), str(n)) for n in (1, 3, 10, 30, 100, 300)]
    panel.axes(
        f"exploration bonus of a move with n visits, of {total:,} visits of its parent",
        below,
        [(n, str(n)) for n in range(5)],
    )
    rows: list[tuple[str, str, Callable[[float], float]]] = [
        (INK, "UCB1, c = 1", lambda n: math.sqrt(2 * math.log(total) / n)),
        (GREEN, "PUCT, c = 1.5, P = 0.5", lambda n: 1.5 * 0.5 * math.sqrt(total) / (1 + n)),
        (BLUE, "PUCT, c = 1.5, P = 1/7", lambda n: 1.5 / 7 * math.sqrt(total) / (1 + n)),
        (RUST, "PUCT, c = 1.5, P = 0.02", lambda n: 1.5 * 0.02 * math.sqrt(total) / (1 + n)),
    ]
    for place, (colour, words, rule) in enumerate(rows):
        grid = [300 ** (step / 120) for step in range(121)]
        panel.curve([(n, rule(n)) for n in grid if rule(n) <= 4.0], colour)
        y = 76 + 20 * place
        panel.line_of([(440, y - 4), (466, y - 4)], colour, 2.5)
        panel.parts.append(text(474, y, words, text_anchor="start"))
    panel.parts.append(text(338, 316, "visits n of the move", fill=SOFT))
    return picture(640, 330, "The bonus of UCB1 and of PUCT against visits", panel.parts)


def allocation() -> str:
    """Visit shares at one root, by UCB1 and by PUCT with three priors."""
    searches: list[tuple[str, pondertree.search.base.Search]] = [
        ("UCB1", pondertree.UCT(seed=1)),
        ("PUCT, uniform priors", pondertree.AlphaZero(Priors(UNIFORM), c_puct=1.5, seed=1)),
        ("PUCT, accurate priors", pondertree.AlphaZero(Priors(ACCURATE), c_puct=1.5, seed=1)),
        ("PUCT, misleading priors", pondertree.AlphaZero(Priors(MISLEADING), c_puct=1.5, seed=1)),
    ]
    parts: list[str] = []
    for place, (title, search) in enumerate(searches):
        panel = Panel(52 + 330 * (place % 2), 46 + 216 * (place // 2), 276, 146, (1, 10_000), log=True)
        panel.axes(title, powers(4), [(0.0, "0%"), (0.5, "50%"), (1.0, "100%")])
        tree, done = search.tree(Arms()), 0
        counts, shares = steps(10_000, 90), []
        for count in counts:
            tree.simulate(count - done)
            done = count
            shares.append([visits / count for visits in tree.result().visits.tolist()])
        lower = [0.0] * len(counts)
        for move in range(7):
            upper = [low + share[move] for low, share in zip(lower, shares, strict=True)]
            panel.area(list(zip(counts, lower, strict=True)), list(zip(counts, upper, strict=True)), SHADES[move])
            lower = upper
        parts += panel.parts
    parts.append(text(355, 456, "simulations", fill=SOFT))
    for move, value in enumerate(VALUES):
        parts.append(bar(88 + 80 * move, 470, 16, 12, SHADES[move]))
        parts.append(text(110 + 80 * move, 480, f"{value:+.1f}", text_anchor="start", font_size=11))
    parts.append(text(52, 480, "value", text_anchor="start", font_size=11, fill=SOFT))
    return picture(680, 496, "Shares of visits of seven moves against simulations", parts)


# --- Temperature --------------------------------------------------------------------------------------------------


def temperature() -> str:
    """The policy of one search at four temperatures, and each probability against the temperature."""
    result = pondertree.UCT(200, seed=1, solve=False).run(ConnectFour())
    parts: list[str] = []
    for place, tau in enumerate((1.0, 0.5, 0.1, 0.0)):
        panel = Panel(56 + 164 * place, 46, 128, 120, (0, 7))
        left = [(0.0, "0"), (0.5, "0.5"), (1.0, "1")] if place == 0 else [(0.0, ""), (0.5, ""), (1.0, "")]
        panel.axes(f"τ = {tau:g}", [(n + 0.5, str(n + 1)) for n in range(7)], left)
        for column, share in enumerate(result.policy_at(tau).tolist()):
            (x, top), (_, bottom) = panel.at(column + 0.12, share), panel.at(0, 0)
            best = column == result.action
            panel.parts.append(bar(x, top, panel.width / 7 * 0.76, bottom - top, GREEN if best else "#9fbc8b"))
        parts += panel.parts
    panel = Panel(56, 232, 620, 150, (0.0, 2.0))
    below = [(n / 4, f"{n / 4:g}") for n in range(9)]
    panel.axes("probability of each column against τ", below, [(0.0, "0"), (0.5, "0.5"), (1.0, "1")])
    grid = [0.01 * step for step in range(201)]
    rows = [result.policy_at(tau).tolist() for tau in grid]
    for column in sorted(range(7), key=lambda column: column == result.action):
        best = column == result.action
        curve = [(tau, row[column]) for tau, row in zip(grid, rows, strict=True)]
        panel.curve(curve, GREEN if best else "#83a872", 3 if best else 1.5)
    for tau in (0.1, 0.5, 1.0):
        panel.curve([(tau, 0.0), (tau, 1.0)], SOFT, 1, ' stroke-dasharray="2 4"')
    panel.parts.append(text(366, 416, "temperature τ", fill=SOFT))
    return picture(700, 430, "Visits of a search at four temperatures", parts + panel.parts)


# --- Dirichlet noise ----------------------------------------------------------------------------------------------


def dirichlet() -> str:
    """Draws over the seven moves of Connect 4: with epsilon 1 the noisy priors of a root are the draw itself."""
    parts: list[str] = []
    draws, high, wide_model = 6, 62, 84
    for row, alpha in enumerate((0.03, 0.3, 1.0, 10.0)):
        y = 40 + row * (high + 26)
        search = pondertree.AlphaZero(Uniform(), 1, dirichlet_alpha=alpha, dirichlet_epsilon=1.0, seed=4)
        parts.append(text(22, y + high / 2, f"α = {alpha:g}", font_weight="bold", text_anchor="start"))
        spread = (7 * alpha + 1) / (alpha + 1)
        parts.append(text(22, y + high / 2 + 16, f"{spread:.1f} moves", text_anchor="start", font_size=11, fill=SOFT))
        for place, result in enumerate(search.run([ConnectFour()] * draws, add_noise=True)):
            panel = Panel(104 + place * (wide_model + 12), y, wide_model, high, (0, 7))
            frame = [(0, 0), (0, 1), (7, 1), (7, 0), (0, 0)]
            panel.curve(frame, GRID, 1)
            for action, child in result.root.children.items():
                (x, top), (_, bottom) = panel.at(action + 0.15, child.prior), panel.at(0, 0)
                panel.parts.append(bar(x, top, wide_model / 7 * 0.7, bottom - top, GREEN))
            panel.curve([(0, 1 / 7), (7, 1 / 7)], RUST, 1, ' stroke-dasharray="3 3"')
            parts += panel.parts
    parts.append(
        text(22, 22, "six draws each over seven columns; dashed: the uniform share", text_anchor="start", fill=SOFT)
    )
    return picture(690, 390, "Draws from the Dirichlet distribution at four concentrations", parts)


# --- Convergence --------------------------------------------------------------------------------------------------


def convergence() -> str:
    """Tic-tac-toe after a corner, where the centre is the only move that does not lose; without proofs."""
    state = TicTacToe().play(0)
    centre = state.parse_action("b2")
    above = Panel(62, 46, 560, 140, (10, 100_000), (-1.0, 0.1), log=True)
    share = Panel(62, 248, 560, 140, (10, 100_000), log=True)
    below = [(10.0**power, f"{10**power:,}") for power in range(1, 6)]
    above.axes("value of the position for O, the player to move", below, [(0.0, "0"), (-0.5, "-0.5"), (-1.0, "-1")])
    share.axes("share of visits of the centre", below, [(0.0, "0%"), (0.5, "50%"), (1.0, "100%")])
    above.curve([(10, 0.0), (100_000, 0.0)], RUST, 1, ' stroke-dasharray="3 3"')
    kinds: list[tuple[str, str, Callable[[int], pondertree.search.base.Search]]] = [
        (BLUE, "UCB1, playouts", lambda seed: pondertree.UCT(seed=seed, solve=False)),
        (GREEN, "PUCT, uniform priors, playouts", lambda seed: pondertree.AlphaZero(Rollout(), seed=seed, solve=False)),
    ]
    counts = [count for count in steps(100_000, 100) if count >= 10]
    for place, (colour, words, make) in enumerate(kinds):
        for seed in (3, 2, 1):
            tree, done, values, shares = make(seed).tree(state), 0, [], []
            for count in counts:
                tree.simulate(count - done)
                done = count
                result = tree.result()
                values.append((count, result.value))
                shares.append((count, result.visits[centre] / count))
            more = "" if seed == 1 else ' stroke-opacity="0.4"'
            above.curve(values, colour, 2.5 if seed == 1 else 1.5, more)
            share.curve(shares, colour, 2.5 if seed == 1 else 1.5, more)
        y = 150 + 20 * place
        above.line_of([(420, y - 4), (446, y - 4)], colour, 2.5)
        above.parts.append(text(454, y, words, text_anchor="start"))
    share.parts.append(text(342, 424, "simulations (three seeds of each search)", fill=SOFT))
    return picture(650, 440, "Value and visits of a search against simulations", above.parts + share.parts)


# --- Virtual loss -------------------------------------------------------------------------------------------------


class CentralPriors(alphazero.Rollout):
    """Playouts, and seven distinct priors that favour the central columns."""

    policy = "probabilities"

    def evaluate_leaves(self, leaves: Sequence[Any], discount: float = 1.0) -> tuple[Any, Any]:
        _, values = super().evaluate_leaves(leaves, discount)
        return [[1.0, 2.0, 3.0, 4.0, 3.1, 2.1, 1.1]] * len(leaves), values


def line_to(node: alphazero.Node) -> tuple[int, ...]:
    actions = []
    while node.parent is not None:
        assert node.action is not None
        actions.append(node.action)
        node = node.parent
    return tuple(reversed(actions))


def virtual_loss() -> str:
    """Sixteen sequential descents from one tree, before any leaf has its value."""
    search = alphazero.MCTS(CentralPriors(), c_puct=1.5, seed=6, solve=False)
    tree = search.tree(ConnectFour())
    search.simulate(tree, 300)

    def gather(mark: bool) -> list[tuple[int, ...]]:
        leaves = []
        for simulation in range(16):
            leaf = search._select(tree.root, Random(fold(tree.key, 300 + simulation), SELECT), [])
            leaves.append(leaf)
            if mark:
                search._mark_in_flight(leaf, +1)
        for leaf in leaves if mark else ():
            search._mark_in_flight(leaf, -1)
        return [line_to(leaf) for leaf in leaves]

    without, with_it = gather(False), gather(True)
    # The frequently visited part of the tree, and every path of the batch.
    known: set[tuple[int, ...]] = set()
    stack = [tree.root]
    while stack:
        node = stack.pop()
        known.add(line_to(node))
        stack.extend(child for child in node.children.values() if child.visit_count >= 4)
    shown = known | {line[:length] for line in without + with_it for length in range(len(line) + 1)}
    places: dict[tuple[int, ...], float] = {}
    tips = 0
    for line in sorted(shown, key=lambda line: (*line, 99)):
        # Sorted after its children: 99 is larger than every action.
        children = [places[other] for other in shown if len(other) == len(line) + 1 and other[: len(line)] == line]
        places[line] = sum(children) / len(children) if children else float(tips)
        tips += not children
    deepest = max(map(len, shown))
    parts: list[str] = []
    panels = [("without virtual loss", without), ("with virtual loss", with_it)]
    for place, (title, lines) in enumerate(panels):
        top, wide_model = 66 + 236 * place, 656

        def spot(line: tuple[int, ...], top: float = top, wide_model: float = wide_model) -> tuple[float, float]:
            return 22 + wide_model * (places[line] + 0.5) / tips, top + 158 * len(line) / deepest

        counts = {line: sum(other[: len(line)] == line for other in lines) for line in shown}
        panel = Panel(22, top, wide_model, 158, (0, 1))
        for line in sorted(shown, key=lambda line: (counts[line] > 0, line)):
            if line:
                colour, width = (RUST, 0.8 + 0.45 * counts[line]) if counts[line] else ("#cfd3c4", 1.0)
                panel.line_of([spot(line[:-1]), spot(line)], colour, round(width, 2))
        for line in sorted(shown):
            x, y = spot(line)
            fill, size = (RUST, 4.5) if line in lines else (("#b4bba8", 2.2) if line else (INK, 5))
            panel.parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{size}" fill="{fill}"/>')
        leaves = len(set(lines))
        words = f"{title}: 16 descents reach {leaves} {'leaf' if leaves == 1 else 'leaves'}"
        panel.parts.append(text(22, top - 30, words, font_weight="bold", text_anchor="start"))
        parts += panel.parts
    return picture(700, 484, "Which leaves a batch gathers without and with virtual loss", parts)


def pictures() -> dict[str, str]:
    """Returns every picture by file name."""
    makers = (bonus, allocation, temperature, dirichlet, convergence, virtual_loss)
    return {f"{maker.__name__.replace('_', '-')}.svg": maker() for maker in makers}


if __name__ == "__main__":
    for name, content in pictures().items():
        (HERE / name).write_text(content, encoding="utf-8")
