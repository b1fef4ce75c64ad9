"""One simulation at a time: the engine's record, with the moves as texts; U and score of a frame are its terms."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.view import Server, call, live_of, session_of, setup_of, wait_until

from pondertree.errors import UsageError
from pondertree.search.tree import Tree
from pondertree.view.live import build

pytestmark = pytest.mark.skipif(not hasattr(Tree, "step"), reason="trees have no single steps yet")
CASES = [
    ("connect4", "uct", {"c_param": 0.8}),
    ("othello", "alphazero", {"evaluator": "playouts", "c_puct": 2.0}),
    ("connect4", "alphazero", {}),
    ("connect4", "gumbel", {"evaluator": "playouts"}),
    ("chess", "hybrid", {}),
    ("examples.games.nim:Nim", "uct", {}),
    ("examples.games.coin_row:CoinRow", "uct", {}),
]


@pytest.mark.parametrize(("game", "algorithm", "parameters"), CASES)
def test_steps_grow_the_tree_of_run_and_explain_it(game: str, algorithm: str, parameters: dict[str, Any]) -> None:
    setup = setup_of(game, algorithm, simulations=30, **parameters)
    live = live_of(setup)
    for number in range(30):
        before = {row["action"]: row for row in live.snapshot(1, number).head["moves"]}
        found = live.step(30)
        assert found["simulation"] == number
        assert len(found["choices"]) == len(found["path"]) > 0
        assert [choice["chosen"] for choice in found["choices"]] == found["path"]
        for choice in found["choices"]:
            assert choice["text"]
            assert choice["chosen"] in [edge["action"] for edge in choice["compared"]] or choice["how"] == "untried"
            assert choice["how"] in ("score", "forced", "halving", "untried")
        root = found["choices"][0]
        # Before the first simulation, the root is not evaluated.
        if number and root["how"] == "score" and algorithm != "gumbel":
            for edge in root["compared"]:
                terms = dict(edge["terms"])
                row = before[edge["action"]]
                assert terms["exploration"] == pytest.approx(row["u"], abs=2e-6)
                assert row["visits"] == terms["visits"]
                if row["score"] is not None and edge["score"] is not None:
                    assert edge["score"] == pytest.approx(row["score"], abs=3e-6)
    expected = build(setup.algorithms, setup.settings).run(setup.history[0][1].state)
    assert live.require_tree().result().visits.tolist() == expected.visits.tolist()


def test_step_names_the_positions_of_its_path() -> None:
    with session_of(setup_of("connect4", simulations=200)) as session:
        for _ in range(20):
            found = call(session, session.step)
        assert found["type"] == "step"
        assert found["nodes"][0] == 0
        assert len(found["nodes"]) == len(found["choices"]) + 1
        snapshot = session.snapshot
        assert snapshot is not None
        assert set(found["nodes"]) <= set(snapshot.rows.ids.tolist())
        assert len(found["values"]) == 2


def test_step_of_a_solved_position_is_refused() -> None:
    with session_of(setup_of("connect4", moves="1 2 1 2 1 3")) as session:
        call(session, session.start)
        wait_until(lambda: not session.is_running)
        with pytest.raises(UsageError, match="no simulation is left"):
            call(session, session.step)


def test_step_is_answered_over_the_socket() -> None:
    with Server(setup_of()) as server, server.page() as page:
        assert page.ask("step")["simulation"] == 0
        page.catch_up(server.session)
        assert len(page.nodes) == 2
