"""What a search has found, in the words of UCI: scores, chances, lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pondertree._core import Chess, ending, ending_line, mate_search
from pondertree.chess.config import MAX_MATE_DEPTH
from pondertree.result import UNPROVEN, SearchResult

#: No score is told beyond this: a value of 1 that is not proven would be infinite.
MOST_CENTIPAWNS = 15_000


@dataclass(frozen=True, slots=True)
class Line:
    """One move at the root, as it looks now; values are for the player to move."""

    move: str
    visits: int
    value: float
    proven: int | None
    plies: int
    """To the end, where that is proven."""
    pv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """A search at one moment, as plain data: whoever keeps it holds no tree."""

    lines: tuple[Line, ...]
    """The best moves, the one to play first."""
    first: int
    second: int
    """Visits of the two most visited moves that are not proven to lose."""
    agreed: bool
    """Whether the move to play is also worth the most, among those that were visited a fair number of times."""
    proven: int | None
    simulations: int
    """Since the root was set."""
    bytes: int

    @property
    def best(self) -> Line:
        """The move to play."""
        return self.lines[0]


def look(state: Chess, result: SearchResult, count: int) -> Look:
    """The search as it is now, with its `count` best moves."""
    actions, visits, _, _, q, proven = result.edges
    greedy = result.best_row
    values = np.where(np.isnan(q), -np.inf, q)
    alive = np.sort(visits[proven != -1])[::-1]
    first, second = (int(alive[place]) if place < len(alive) else 0 for place in (0, 1))

    # The move to play first; then wins, then by visits, and losses last.
    order = sorted(
        range(len(actions)),
        key=lambda place: (place != greedy, proven[place] != 1, proven[place] == -1, -int(visits[place])),
    )
    shown = [place for place in order if place == greedy or visits[place] > 0 or proven[place] != UNPROVEN]
    lines = []
    for place in shown[:count]:
        known = bool(visits[place] > 0 or proven[place] != UNPROVEN)
        lines.append(
            Line(
                move=state.action_to_string(int(actions[place])),
                visits=int(visits[place]),
                value=float(values[place]) if known else result.value,
                proven=None if proven[place] == UNPROVEN else int(proven[place]),
                plies=result.distance(place),
                pv=tuple(result.line(place)),
            )
        )
    fair = values[(visits * 10 >= first) & (proven != -1)]
    return Look(
        lines=tuple(lines),
        first=first,
        second=second,
        agreed=bool(len(fair) == 0 or values[greedy] >= fair.max() - 1e-9),
        proven=result.proven,
        simulations=result.simulations,
        bytes=result.memory,
    )


def below(decided: Look, others: Sequence[Line], count: int) -> Look:
    """`count` lines: those of a search whose root is decided, then those of moves that it left out."""
    return replace(decided, lines=(*decided.lines, *others)[:count])


def centipawns(value: float, scale: float) -> int:
    """The score whose value this is: the inverse of `Pesto`'s sigmoid, `2 * scale * artanh(value)`."""
    if abs(value) >= 1.0:
        return int(math.copysign(MOST_CENTIPAWNS, value))
    return max(-MOST_CENTIPAWNS, min(round(2.0 * scale * math.atanh(value)), MOST_CENTIPAWNS))


def score(line: Line, scale: float) -> str:
    """`cp`, or `mate` where one is proven."""
    if line.proven is not None and line.proven != 0:
        moves = (line.plies + 1) // 2
        return f"mate {moves if line.proven > 0 else -moves}"
    return f"cp {centipawns(line.value if line.proven is None else 0.0, scale)}"


def chances(value: float) -> tuple[int, int, int]:
    """Win, draw and loss in permille; they sum to 1000.

    With p the expected score, (value + 1) / 2: p squared, 2p(1 - p), (1 - p) squared. Win less loss is the value, and
    draws are half of all games between equals and vanish towards the ends. Proven results need no model.
    """
    p = min(max((value + 1.0) / 2.0, 0.0), 1.0)
    win, loss = round(1000 * p * p), round(1000 * (1 - p) * (1 - p))
    return win, 1000 - win - loss, loss


def line_chances(line: Line) -> tuple[int, int, int]:
    """The same for a line, exact where it is proven."""
    if line.proven == 0:
        return 0, 1000, 0
    return chances(line.value if line.proven is None else float(line.proven))


@dataclass(frozen=True, slots=True)
class Progress:
    """What all lines of one report share."""

    depth: int
    seldepth: int
    nodes: int
    seconds: float
    hashfull: int
    scale: float
    wdl: bool


def info(look: Look, progress: Progress) -> Iterator[str]:
    """The `info` lines of one report, one for each move."""
    passed = max(progress.seconds, 1e-4)
    for number, line in enumerate(look.lines, start=1):
        words = [f"info depth {progress.depth} seldepth {progress.seldepth} multipv {number}"]
        words.append(f"score {score(line, progress.scale)}")
        if progress.wdl:
            words.append("wdl {} {} {}".format(*line_chances(line)))
        words.append(f"nodes {progress.nodes} nps {round(progress.nodes / passed)} hashfull {progress.hashfull}")
        words.append(f"time {round(progress.seconds * 1000)} pv {' '.join(line.pv)}")
        yield " ".join(words)


def statistics(result: SearchResult) -> Iterator[str]:
    """Every move with its visits, prior and value, the most visited last, so that it stands beside the answer."""
    for move in reversed(result.moves):
        value = "  -   " if math.isnan(move.q) else f"{move.q:+.4f}"
        known = "" if move.proven is None else f" ({('loss', 'draw', 'win')[move.proven + 1]} in {move.distance})"
        yield f"info string {move.move:5} N: {move.visits:7} (P: {100 * move.prior:5.2f}%) (Q: {value}){known}"


#: Positions that the rest of a line may cost, some hundredths of a second.
BUDGET = 20_000


def search(state: Chess, moves: int, stop: Callable[[], object]) -> tuple[Look | None, int]:
    """The shortest mate for or against the side to move within so many moves, and the positions looked at."""
    found, actions, nodes = mate_search(state, min(max(moves, 1), MAX_MATE_DEPTH), None, stop)
    if found == 0:
        return None, nodes
    pv = _texts(state, actions)
    line = Line(pv[0], 1, 0.0, 1 if found > 0 else -1, len(pv), pv)
    return Look((line,), 1, 0, True, line.proven, nodes, 0), nodes


def by_table(state: Chess, moves: Collection[str]) -> list[Line]:
    """The lines of those moves of an elementary ending whose result is known, the best first."""
    lines = []
    for move in moves:
        after = state.play(state.parse_action(move))
        known = (-1 if after.termination == "checkmate" else 0, 0) if after.is_terminal else ending(after)
        if known is not None:
            value, plies = -known[0], known[1] + 1
            pv = (move, *_texts(after, ending_line(after)))
            lines.append(Line(move, 0, float(value), value, plies, pv))
    # The shortest win and the longest defence first.
    return sorted(lines, key=lambda line: (-line.value, line.value * line.plies))


def completed(look: Look, state: Chess) -> Look:
    """The same, its lines told up to the mate, where there is one: the search proves mates without playing them.

    A table tells every line to its end; a mate search costs time, and is for the best line alone.
    """
    best, *others = look.lines
    lines = (_completed(best, state, BUDGET), *(_completed(line, state, 0) for line in others))
    return replace(look, lines=lines)


def _completed(line: Line, state: Chess, budget: int) -> Line:
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
        # After an even number of moves it is still us who mate, or are mated.
        wins = line.proven if len(line.pv) % 2 == 0 else -line.proven
        if found * wins <= 0:
            return line
    return replace(line, pv=line.pv + _texts(state, actions))


def _texts(state: Chess, actions: list[int]) -> tuple[str, ...]:
    texts = []
    for action in actions:
        texts.append(state.action_to_string(action))
        state = state.play(action)
    return tuple(texts)
