"""A watched search: its tree is that of `run`, and its numbers are those of the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.view import live_of, setup_of

from pondertree.view.live import LiveSearch, build
from pondertree.view.setup import Setup

CASES = [
    ("connect4", "uct", {}),
    ("connect4", "uct", {"in_flight": 4}),
    ("connect4", "uct", {"minimax_depth": 3, "early_stop": True}),
    ("othello", "alphazero", {"evaluator": "playouts", "c_puct": 2.5, "fpu": "parent 0.2"}),
    ("connect4", "alphazero", {}),
    ("connect4", "alphazero", {"in_flight": 8, "evaluator": "uniform"}),
    ("hex:5", "gumbel", {"evaluator": "playouts"}),
    ("chess", "hybrid", {"priority": "tactical"}),
    ("examples.games.nim:Nim", "uct", {}),
    ("examples.games.coin_row:CoinRow", "uct", {"max_nodes": 50}),
]


def watched(setup: Setup, simulations: int) -> LiveSearch:
    """Searches in slices of a few milliseconds, and reads the tree after each."""
    live = live_of(setup)
    live.start(simulations, None)
    assert live.run is not None
    for number in range(100_000):
        live.run.slice_seconds, live._reading = 0.003, 0.0
        if live.run_slice(lambda: False):
            live.stop()
            return live
        live.snapshot(1, number)
        live.inspect(0)
    raise AssertionError("the search does not end")


@pytest.mark.parametrize(("game", "algorithm", "parameters"), CASES)
def test_tree_of_a_watched_search_equals_run(game: str, algorithm: str, parameters: dict[str, Any]) -> None:
    simulations = 400 if algorithm == "alphazero" and not parameters else 4_000
    setup = setup_of(game, algorithm, simulations=simulations, **parameters)
    live = watched(setup, simulations)
    search = build(setup.algorithms, setup.settings)
    expected = search.run(setup.history[-1][1].state)._view.columns()
    found = live.require_tree().result()._view.columns()
    assert found.keys() == expected.keys()
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)


def test_search_among_some_moves_equals_run() -> None:
    setup = setup_of("connect4", simulations=2_000)
    setup = replace(setup, settings=replace(setup.settings, exclude=[3, 4]))
    from pondertree.view.live import root_actions

    state = setup.history[-1][1].state
    actions = root_actions(state, setup.settings)
    assert actions == [0, 1, 2, 5, 6]
    search = build(setup.algorithms, setup.settings)
    live = LiveSearch(search, state, search.tree(state, root_actions=actions))
    live.start(2_000, None)
    while not live.run_slice(lambda: False):
        pass
    expected = build(setup.algorithms, setup.settings).run(state, root_actions=actions)
    np.testing.assert_array_equal(live.require_tree().result().visits, expected.visits)


@pytest.mark.parametrize(("game", "algorithm", "parameters"), CASES)
def test_numbers_of_a_snapshot_are_those_of_the_result(game: str, algorithm: str, parameters: dict[str, Any]) -> None:
    simulations = 1_000
    live = watched(setup_of(game, algorithm, simulations=simulations, **parameters), simulations)
    result = live.require_tree().result()
    snapshot = live.snapshot(3, 7)
    assert (snapshot.position, snapshot.number) == (3, 7)
    status, moves = snapshot.head["status"], snapshot.head["moves"]
    # The walk of the whole tree does not delay the first snapshot of a search that has ended.
    assert (status["depth"], live.is_complete) == (None, False)
    status = live.snapshot(3, 8).head["status"]
    assert live.is_complete
    assert status["simulations"] == result.simulations
    assert status["value"] == pytest.approx(result.value, abs=1e-6)
    assert (status["proven"], status["distance"]) == (result.proven, result.root.distance)
    assert status["best"] == moves[0]["action"] == result.action
    assert status["depth"] == [pytest.approx(result.depths()[0], abs=1e-6), result.depths()[1]]
    assert (status["bytes"], status["running"], status["goal"]) == (result.memory, False, None)
    expected = {move.action: move for move in result.moves}
    assert {row["action"] for row in moves} == expected.keys()
    assert [row["visits"] for row in moves[1:]] == sorted((row["visits"] for row in moves[1:]), reverse=True)
    has_priors = bool(result.edges.priors.any())
    for row in moves:
        move, node = expected[row["action"]], result.root.children.get(row["action"])
        assert row["visits"] == move.visits
        assert row["share"] == pytest.approx(move.share, abs=1e-6)
        assert row["q"] == (None if np.isnan(move.q) else pytest.approx(move.q, abs=1e-6))
        assert row["proven"] == (None if move.visits == 0 and move.proven is None else move.proven)
        if move.distance is not None:
            assert row["distance"] == move.distance
        assert row["prior"] == (pytest.approx(move.prior, abs=1e-6) if has_priors else None)
        assert row["clean_prior"] == row["prior"]
        if move.visits:
            line = result.line(list(result.edges.actions).index(move.action))
            assert len(row["line"]) == min(len(line), 12)
            if game != "chess":
                assert row["line"] == line[:12]
        if row["network"] is not None:
            assert node is not None
            sign = 1 if node.to_play == result.root.to_play else -1
            assert row["network"] == pytest.approx(sign * node.nn_value, abs=1e-6)
    assert any(row["network"] is not None for row in moves) == live._evaluates
    assert snapshot.head["shares"] == [[row["action"], row["share"]] for row in moves if row["visits"]]


@pytest.mark.parametrize(
    ("algorithm", "parameters"), [("uct", {"c_param": 0.7}), ("alphazero", {"evaluator": "playouts", "c_puct": 1.7})]
)
def test_next_simulation_follows_the_highest_score(algorithm: str, parameters: dict[str, Any]) -> None:
    """Q + U in a frame is the score by which the engine selects."""
    live = live_of(setup_of("connect4", algorithm, **parameters))
    tree = live.require_tree()
    for number in range(40):
        tree.simulate(50 if number == 0 else 1)
        moves = live.snapshot(1, number).head["moves"]
        before = {move["action"]: move["visits"] for move in moves}
        highest = max(moves, key=lambda move: move["score"])
        ties = [move for move in moves if move["score"] > highest["score"] - 2e-6]
        tree.simulate(1)
        after = {move["action"]: move["visits"] for move in live.snapshot(1, number).head["moves"]}
        grown = [action for action in after if after[action] > before[action]]
        assert len(grown) == 1
        assert grown[0] in [move["action"] for move in ties]


def test_details_of_a_position_are_those_of_its_node() -> None:
    live = live_of(setup_of("connect4", "alphazero"))
    live.require_tree().simulate(200)
    snapshot = live.snapshot(1, 1)
    result = live.require_tree().result()
    for number in snapshot.rows.ids.tolist()[:30]:
        found = live.inspect(number)
        node = result.root
        for action in live.window.path(number):
            node = node.children[action]
        assert found["node"]["visit_count"] == node.visit_count
        for name in ("total_value", "q_value", "raw_value", "prior", "nn_value"):
            value = getattr(node, name)
            assert found["node"][name] == (None if value is None else pytest.approx(value, abs=1e-6))
        assert (found["node"]["proven"], found["node"]["to_play"]) == (node.proven, node.to_play)
        assert len(found["path"]) == len(live.window.path(number))
        rows = {row["action"]: row for row in found["moves"]}
        for action, child in node.children.items():
            sign = 1 if child.to_play == node.to_play else -1
            assert rows[action]["visits"] == child.visit_count
            assert rows[action]["prior"] == pytest.approx(child.prior, abs=1e-6)
            if child.visit_count:
                assert rows[action]["q"] == pytest.approx(sign * child.q_value, abs=1e-6)
            if child.nn_value is not None:
                assert rows[action]["network"] == pytest.approx(sign * child.nn_value, abs=1e-6)
