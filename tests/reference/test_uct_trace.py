"""The trace of the UCT reference: replay, and the first difference of two traces."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.traces import first_difference
from tests.support.uct import games, nodes_of

from pondertree.reference.uct import MCTS
from pondertree.testing.tabular import TabularGame
from pondertree.trace import TraceRow


def replay(game: TabularGame, rows: list[TraceRow], c_param: float) -> dict[tuple[int, ...], tuple[int, float]]:
    """Recomputes statistics and scores from the trace alone (`in_flight=1`, without proofs)."""
    visits: dict[tuple[int, ...], int] = defaultdict(int)
    totals: dict[tuple[int, ...], float] = defaultdict(float)
    opened: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        assert row["simulation"] == number
        states = [game.start()]
        for depth, (action, scores) in enumerate(zip(row["path"], row["scores"], strict=True)):
            here = tuple(row["path"][:depth])
            legal = states[-1].legal_actions()
            if scores is None:
                assert depth == len(row["path"]) - 1
                assert action in legal
                assert action not in opened[here]
                opened[here].append(action)
            else:
                assert sorted(opened[here]) == sorted(legal)
                parent_visits = sum(visits[*here, a] for a in legal) + (1 if here else 0)
                expected = [
                    (a, totals[*here, a] / visits[*here, a] + c_param * math.sqrt(2.0 * math.log(parent_visits) / n))
                    for a in opened[here]
                    for n in [visits[*here, a]]
                ]
                assert scores == expected
                assert dict(scores)[action] == max(score for _, score in scores)
            states.append(states[-1].play(action))
        values = row["values"]
        if states[-1].is_terminal:
            assert values == ([0.0] * game.players if game.rewards else states[-1].returns())
        for depth in range(len(row["path"]), 0, -1):
            if game.rewards:
                rewards: list[float] = states[depth].rewards()  # type: ignore[attr-defined]
                values = [r + v for r, v in zip(rewards, values, strict=True)]
            edge = tuple(row["path"][:depth])
            visits[edge] += 1
            totals[edge] += values[states[depth - 1].to_play]
    return {edge: (visits[edge], totals[edge]) for edge in visits}


@settings(max_examples=100, deadline=None)
@given(games, st.sampled_from([0.0, 0.7, 1.4]), st.sampled_from([None, 2]))
def test_trace_replays_to_identical_tree(game: TabularGame, c: float, max_depth: int | None) -> None:
    result = MCTS(150, c, max_depth, seed=game.seed, solve=False).run(game.start(), trace=True)
    assert result.trace is not None
    assert len(result.trace) == 150
    replayed = replay(game, result.trace, c)
    tree = {
        node.state.path: (node.visit_count, node.total_value)  # type: ignore[attr-defined]
        for node in nodes_of(result.root)[1:]
    }
    assert replayed == tree


def test_first_difference_names_simulation_and_depth() -> None:
    state = TabularGame(11, branching=(2, 3), depth=(5, 9)).start()
    rows = MCTS(40, solve=False).run(state, trace=True).trace
    assert rows is not None
    assert first_difference(rows, copy.deepcopy(rows)) is None
    assert "a has 40, b has 30" in (first_difference(rows, rows[:30]) or "")

    changed = copy.deepcopy(rows)
    changed[20]["values"][0] += 0.5
    assert "simulation 20" in (first_difference(rows, changed) or "")
    assert "values backed up" in (first_difference(rows, changed) or "")

    changed = copy.deepcopy(rows)
    scores = changed[25]["scores"][0]
    assert scores is not None
    scores[0] = (scores[0][0], scores[0][1] + 1e-12)
    assert f"simulation 25, depth 0, after actions []: action {scores[0][0]} scores" in (
        first_difference(rows, changed) or ""
    )

    changed = copy.deepcopy(rows)
    changed[0]["path"][0] = 99
    assert "opens action" in (first_difference(rows, changed) or "")
    changed[0]["path"] = []
    assert "b stops, a goes on with action" not in (first_difference(rows, rows) or "")
    assert "stops" in (first_difference(rows, changed) or "")
    changed[0] = {**rows[0], "scores": [[(1, 0.0)]]}
    assert "a opens an action, b chooses by score" in (first_difference(rows, changed) or "")
    changed[0] = {**rows[0], "simulation": 5}
    assert "simulation numbers" in (first_difference(rows, changed) or "")
    assert "in a, " in (first_difference(rows, MCTS(40, 0.5, solve=False).run(state, trace=True).trace or []) or "")


def test_first_difference_names_every_term() -> None:
    state = TabularGame(11, branching=(2, 3), depth=(5, 9)).start()
    rows = MCTS(40, solve=False).run(state, trace=True).trace
    assert rows is not None
    for name in rows[25]["terms"][0]["edges"][1]:
        changed: Any = copy.deepcopy(rows)
        del changed[25]["terms"][0]["edges"][1][name]
        if name != "action":
            assert f"the term {name} of action" in (first_difference(rows, changed) or "")
            assert f"the term {name} of action" in (first_difference(changed, rows) or "")
    for name in set(rows[25]["terms"][0]) - {"edges"}:
        changed = copy.deepcopy(rows)
        changed[25]["terms"][0][name] = "other"
        assert f"simulation 25, depth 0, after actions []: the term {name} of the choice differs" in (
            first_difference(rows, changed) or ""
        )
    changed = copy.deepcopy(rows)
    changed[25]["terms"][0]["edges"].pop()
    assert "the recorded actions differ" in (first_difference(rows, changed) or "")
