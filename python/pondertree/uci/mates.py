"""Mates, as lines: `go mate`, and the rest of lines whose mate is proven but not in the tree."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from pondertree import _core
from pondertree._core import Chess
from pondertree.knowledge import MAX_MATE_DEPTH
from pondertree.uci.report import Line, Look

#: Positions that the rest of a line may cost, some hundredths of a second.
BUDGET = 20_000


def search(state: Chess, moves: int, stop: Callable[[], object]) -> tuple[Look | None, int]:
    """The shortest mate for or against the side to move within so many moves, and the positions looked at."""
    found, actions, nodes = _core.mate_search(state, min(max(moves, 1), MAX_MATE_DEPTH), None, stop)
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
        known = (-1 if after.termination == "checkmate" else 0, 0) if after.is_terminal else _core.ending(after)
        if known is not None:
            value, plies = -known[0], known[1] + 1
            pv = (move, *_texts(after, _core.ending_line(after)))
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
    actions = _core.ending_line(state)
    if not actions and budget > 0:
        left = line.plies - len(line.pv)
        found, actions, _ = _core.mate_search(state, min((left + 1) // 2, MAX_MATE_DEPTH), budget)
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
