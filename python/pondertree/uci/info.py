"""UCI `info` output: snapshots of a search, scores, win-draw-loss, depths, principal variations, proven mates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pondertree._core import Chess, ending, ending_line, mate_search
from pondertree.chess.config import MAX_MATE_DEPTH
from pondertree.result import UNPROVEN, SearchResult
from pondertree.search.tree import Tree

#: Bound of centipawn scores: an unproven value of 1 would be infinite.
MAX_CENTIPAWNS = 15_000


class PvLine(NamedTuple):
    """A root move with its principal variation; values are for the player to move."""

    move: str
    visits: int
    value: float
    proven: int | None
    plies: int
    """Plies to the end, where the result is proven."""
    pv: tuple[str, ...]


class SearchSnapshot(NamedTuple):
    """The state of a search as plain data, without a reference to its tree."""

    lines: tuple[PvLine, ...]
    """The best moves, the move to play first."""
    first: int
    second: int
    """Visits of the two most visited moves that are not proven losses."""
    is_consistent: bool
    """Whether the move to play has the highest value among sufficiently visited moves."""
    proven: int | None
    simulations: int
    """Since the root was set."""
    bytes: int

    @property
    def best(self) -> PvLine:
        """The move to play."""
        return self.lines[0]


def snapshot(state: Chess, result: SearchResult, count: int) -> SearchSnapshot:
    """Returns the current state of a search with its `count` best moves."""
    actions, visits, _, _, q, proven, _ = result.edges
    greedy = result.best_row
    values = np.where(np.isnan(q), -np.inf, q)
    alive = np.sort(visits[proven != -1])[::-1]
    first, second = (int(alive[place]) if place < len(alive) else 0 for place in (0, 1))

    # The move to play, then wins, then by visits, losses last.
    order = sorted(
        range(len(actions)),
        key=lambda place: (place != greedy, proven[place] != 1, proven[place] == -1, -int(visits[place])),
    )
    shown = [place for place in order if place == greedy or visits[place] > 0 or proven[place] != UNPROVEN]
    lines = []
    for place in shown[:count]:
        known = bool(visits[place] > 0 or proven[place] != UNPROVEN)
        lines.append(
            PvLine(
                move=state.action_to_string(int(actions[place])),
                visits=int(visits[place]),
                value=float(values[place]) if known else result.value,
                proven=None if proven[place] == UNPROVEN else int(proven[place]),
                plies=result.distance(place),
                pv=tuple(result.line(place)),
            )
        )
    comparable = values[(visits * 10 >= first) & (proven != -1)]
    return SearchSnapshot(
        lines=tuple(lines),
        first=first,
        second=second,
        is_consistent=bool(len(comparable) == 0 or values[greedy] >= comparable.max() - 1e-9),
        proven=result.proven,
        simulations=result.simulations,
        bytes=result.memory,
    )


def append_lines(decided: SearchSnapshot, others: Sequence[PvLine], count: int) -> SearchSnapshot:
    """Returns `count` lines: those of a search with a proven root, then those of the moves it left out."""
    return decided._replace(lines=(*decided.lines, *others)[:count])


def centipawns(value: float, scale: float) -> int:
    """Converts a value to centipawns by the inverse of `Pesto`'s sigmoid, `2 * scale * artanh(value)`."""
    if abs(value) >= 1.0:
        return int(math.copysign(MAX_CENTIPAWNS, value))
    return max(-MAX_CENTIPAWNS, min(round(2.0 * scale * math.atanh(value)), MAX_CENTIPAWNS))


def score(line: PvLine, scale: float) -> str:
    """Returns the UCI score: `mate` if proven, else `cp`."""
    if line.proven is not None and line.proven != 0:
        moves = (line.plies + 1) // 2
        return f"mate {moves if line.proven > 0 else -moves}"
    return f"cp {centipawns(line.value if line.proven is None else 0.0, scale)}"


def wdl_of(value: float) -> tuple[int, int, int]:
    """Returns win, draw and loss in permille, with sum 1000.

    With p the expected score, (value + 1) / 2: p^2, 2p(1 - p), (1 - p)^2. Win minus loss is the value; draws are half
    of all games at value 0 and vanish at the ends.
    """
    p = min(max((value + 1.0) / 2.0, 0.0), 1.0)
    win, loss = round(1000 * p * p), round(1000 * (1 - p) * (1 - p))
    return win, 1000 - win - loss, loss


def line_wdl(line: PvLine) -> tuple[int, int, int]:
    """Returns win, draw and loss of a root move, exact where proven."""
    if line.proven == 0:
        return 0, 1000, 0
    return wdl_of(line.value if line.proven is None else float(line.proven))


class Progress(NamedTuple):
    """Fields that all lines of one report share."""

    depth: int
    seldepth: int
    nodes: int
    seconds: float
    hashfull: int
    scale: float
    wdl: bool


def info(snapshot: SearchSnapshot, progress: Progress) -> Iterator[str]:
    """Yields the `info` lines of one report, one per root move."""
    elapsed = max(progress.seconds, 1e-4)
    for number, line in enumerate(snapshot.lines, start=1):
        fields = [f"info depth {progress.depth} seldepth {progress.seldepth} multipv {number}"]
        fields.append(f"score {score(line, progress.scale)}")
        if progress.wdl:
            fields.append("wdl {} {} {}".format(*line_wdl(line)))
        fields.append(f"nodes {progress.nodes} nps {round(progress.nodes / elapsed)} hashfull {progress.hashfull}")
        fields.append(f"time {round(progress.seconds * 1000)} pv {' '.join(line.pv)}")
        yield " ".join(fields)


def statistics(result: SearchResult) -> Iterator[str]:
    """Yields the statistics of every root move, the most visited last, next to `bestmove`."""
    for move in reversed(result.moves):
        value = "  -   " if math.isnan(move.q) else f"{move.q:+.4f}"
        known = "" if move.proven is None else f" ({('loss', 'draw', 'win')[move.proven + 1]} in {move.distance})"
        yield f"info string {move.move:5} N: {move.visits:7} (P: {100 * move.prior:5.2f}%) (Q: {value}){known}"


#: Node budget for completing a mate line, some hundredths of a second.
COMPLETION_BUDGET = 20_000


def find_mate(state: Chess, moves: int, stop: Callable[[], object]) -> tuple[SearchSnapshot | None, int]:
    """Returns the shortest mate for or against the side to move within `moves`, if any, and the nodes searched."""
    found, actions, nodes = mate_search(state, min(max(moves, 1), MAX_MATE_DEPTH), None, stop)
    if found == 0:
        return None, nodes
    pv = _texts(state, actions)
    line = PvLine(pv[0], 1, 0.0, 1 if found > 0 else -1, len(pv), pv)
    return SearchSnapshot((line,), 1, 0, True, line.proven, nodes, 0), nodes


def table_lines(state: Chess, moves: Collection[str]) -> list[PvLine]:
    """Returns the lines of the moves that the endgame tables resolve, the best first."""
    lines = []
    for move in moves:
        after = state.play(state.parse_action(move))
        known = (-1 if after.termination == "checkmate" else 0, 0) if after.is_terminal else ending(after)
        if known is not None:
            value, plies = -known[0], known[1] + 1
            pv = (move, *_texts(after, ending_line(after)))
            lines.append(PvLine(move, 0, float(value), value, plies, pv))
    # The shortest win and the longest defence first.
    return sorted(lines, key=lambda line: (-line.value, line.value * line.plies))


def complete_lines(snapshot: SearchSnapshot, state: Chess) -> SearchSnapshot:
    """Extends lines with a proven mate up to the mate, since the search proves mates without expanding them.

    Endgame tables complete every line; a mate search, which takes time, only the best one.
    """
    best, *others = snapshot.lines
    lines = (_complete_line(best, state, COMPLETION_BUDGET), *(_complete_line(line, state, 0) for line in others))
    return snapshot._replace(lines=lines)


def _complete_line(line: PvLine, state: Chess, budget: int) -> PvLine:
    if not line.proven or len(line.pv) >= line.plies:
        return line
    for move in line.pv:
        state = state.play(state.parse_action(move))
    if state.is_terminal:
        return line
    actions = ending_line(state)
    if not actions and budget > 0:
        left = line.plies - len(line.pv)
        found, actions, _ = mate_search(state, min((left + 1) // 2, MAX_MATE_DEPTH), budget)
        # The sign of the result alternates by ply.
        wins = line.proven if len(line.pv) % 2 == 0 else -line.proven
        if found * wins <= 0:
            return line
    return line._replace(pv=line.pv + _texts(state, actions))


def _texts(state: Chess, actions: list[int]) -> tuple[str, ...]:
    texts = []
    for action in actions:
        texts.append(state.action_to_string(action))
        state = state.play(action)
    return tuple(texts)


#: Maximum share of the search time for measuring depths.
MAX_DEPTH_SHARE = 0.02
#: Maximum seconds of a measurement between `stop` and the reply.
MAX_FINAL_DEPTH_SECONDS = 0.01


class DepthEstimate:
    """The last measured depth of a tree: the rounded mean over simulations, and the maximum."""

    def __init__(self, arrived: float) -> None:
        self.mean = self.most = 1
        self._arrived = arrived
        self._total_seconds = self._last_seconds = 0.0

    def measure(self, tree: Tree, at_the_end: bool = False) -> int:
        """Returns the mean depth, measured again unless that takes too long."""
        started = time.perf_counter()
        is_affordable = (
            self._last_seconds < MAX_FINAL_DEPTH_SECONDS
            if at_the_end
            else started - self._arrived >= self._total_seconds / MAX_DEPTH_SHARE
        )
        if is_affordable:
            mean, most = tree.depths()
            self.mean, self.most = max(round(mean), 1), max(most, 1)
            self._last_seconds = time.perf_counter() - started
            self._total_seconds += self._last_seconds
        return self.mean
