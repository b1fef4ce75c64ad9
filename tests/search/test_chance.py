"""Chance nodes in searches: trees as files, limits, proofs, drawings, reuse."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.chance_games import Certain, Race, Wide
from tests.support.search_helpers import every_node, fingerprint

import pondertree
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.testing.tabular import TabularGame

SEARCHES: dict[str, Any] = {
    "uct": lambda **options: pondertree.UCT(seed=2, **options),
    "alphazero": lambda **options: pondertree.AlphaZero(Uniform(), seed=2, **options),
    "gumbel": lambda **options: pondertree.Gumbel(Uniform(), seed=2, **options),
}
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"in_flight": 4}, {"chance": "sample"}, {"chance_width": 2, "in_flight": 3})


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("options", OPTIONS)
def test_saved_tree_continues_bit_for_bit(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    for game in (Race(), TabularGame(8, chance=0.5, rewards=True, players=3).start(), Wide(5000)):
        tree = SEARCHES[name](trace=True, **options).tree(game).simulate(60)
        tree.save(tmp_path / "tree")
        loaded = pondertree.load_tree(tmp_path / "tree", state=game)
        for each in (loaded, pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree)):
            assert fingerprint(each.result()) == fingerprint(tree.result())
        tree.simulate(60)
        assert fingerprint(loaded.simulate(60).result()) == fingerprint(tree.result())
        assert loaded.trace() == tree.trace()


@pytest.mark.parametrize("name", SEARCHES)
def test_tree_that_waits_cannot_be_saved(name: str, tmp_path: Path) -> None:
    tree = SEARCHES[name]().tree(Race()).simulate(50)
    tree.advance(1)
    for refused in (tree.result, lambda: tree.save(tmp_path / "tree"), lambda: pickle.dumps(tree), tree.step):
        with pytest.raises(InvalidArgumentError, match="advance\\(outcome\\) first"):
            refused()
    assert "waits for an outcome" in repr(tree)
    assert tree._repr_html_() is None
    tree.advance("rolled 2")
    assert tree.simulate(20).result().simulations == 20
    tree.save(tmp_path / "tree")
    loaded = pondertree.load_tree(tmp_path / "tree", state=Race())
    assert fingerprint(loaded.simulate(20).result()) == fingerprint(tree.simulate(20).result())


def test_forest_advances_each_tree_over_its_outcomes() -> None:
    forest = pondertree.UCT(seed=1).forest([Race(), Race(goal=8)]).simulate(200)
    forest.advance(0, 1)
    assert forest.waits_for_outcome(0)
    assert not forest.waits_for_outcome(1)
    for refused in (forest.results, forest.actions, forest.visits, forest.values, forest.policies):
        with pytest.raises(InvalidArgumentError, match="the root of tree 0 is a chance node"):
            refused()
    assert forest.simulate([0, 50]).result(1).simulations == 250
    forest.advance(0, 2)
    visits = forest.visits()
    assert visits.shape == (2, 2)
    assert visits[0].sum() > 0


def test_unsearched_action_may_lead_to_chance() -> None:
    tree = pondertree.UCT(seed=1).tree(Race(), root_actions=[0]).simulate(50)
    tree.advance(1)
    assert tree.waits_for_outcome()
    tree.advance(7)
    assert tree.state == Race().play(1).play(7)
    assert tree.simulate(30).result().simulations == 30


def test_outcomes_follow_their_probabilities() -> None:
    for chance, tolerance in (("balanced", 0.01), ("sample", 0.05)):
        root = pondertree.UCT(4000, seed=1, chance=chance, solve=False).run(Race()).root
        roll = root.children[1]
        assert (roll.is_chance, roll.to_play, roll.nn_value) == (True, pondertree.CHANCE, None)
        assert {outcome: child.prior for outcome, child in roll.children.items()} == {1: 0.5, 2: 0.25, 7: 0.25}
        shares = {outcome: child.visit_count / roll.visit_count for outcome, child in roll.children.items()}
        assert shares == pytest.approx({1: 0.5, 2: 0.25, 7: 0.25}, abs=tolerance)
        # For player 0, who moves at the root.
        mean = sum(child._edge["sum"] for child in roll.children.values()) / roll.visit_count
        assert roll.q_value == pytest.approx(mean)
        assert root.children[1]._edge["sum"] / roll.visit_count == pytest.approx(mean)


def test_wide_nodes_are_sampled() -> None:
    root = pondertree.UCT(2000, seed=1).run(Wide(100)).root
    counts = np.array([child.visit_count for child in root.children[1].children.values()])
    assert counts.sum() > 500
    assert counts.max() - counts.min() > 1, "balanced visits would be even"
    root = pondertree.UCT(2000, seed=1, chance_width=100).run(Wide(100)).root
    counts = np.array([child.visit_count for child in root.children[1].children.values()])
    assert counts.max() - counts.min() <= 1


def test_only_common_results_prove_a_chance_node() -> None:
    result = pondertree.UCT(3000, seed=1).run(Certain(goal=2))
    assert (result.proven, result.action) == (1, 1)
    roll = result.root.children[1]
    assert (roll.proven, roll.distance) == (1, 1)
    uncertain = pondertree.UCT(3000, seed=1).run(Race(goal=2))
    assert uncertain.root.children[1].proven is None
    # For player 1 the win of the roll is a loss of player 0.
    other = pondertree.UCT(3000, seed=1).run(Certain(goal=2, turn=1))
    assert (other.proven, other.root.children[1].proven) == (1, -1)
    assert other.moves[0].proven == 1
    assert pondertree.UCT(3000, seed=1, solve=False).run(Certain(goal=2)).proven is None


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("options", OPTIONS)
def test_limits_hold(name: str, options: dict[str, Any]) -> None:
    result = SEARCHES[name](max_nodes=60, **options).run(Race(goal=20))
    assert result.num_positions <= 60
    assert result.simulations > 0
    small = SEARCHES[name](max_memory=0.05, **options).run(Race(goal=20))
    assert small.memory <= 0.05 * 2**20
    quick = SEARCHES[name](num_simulations=10**6, time_limit=0.05, **options).run(Race(goal=20))
    assert 0 < quick.simulations < 10**6


def test_early_stop_with_chance() -> None:
    game = Wide(20)
    whole = pondertree.UCT(5000, seed=1).run(game)
    short = pondertree.UCT(5000, seed=1, early_stop=True).run(game)
    assert short.simulations < whole.simulations
    assert short.action == whole.action


def test_interrupted_search_is_whole() -> None:
    class Interrupts(Race):
        count = 0

        def play(self, action: int) -> Any:
            Interrupts.count += 1
            if Interrupts.count == 500:
                raise KeyboardInterrupt
            return super().play(action)

    for options in OPTIONS:
        Interrupts.count = 0
        tree = pondertree.UCT(seed=1, **options).tree(Interrupts(goal=9))
        with pytest.raises(KeyboardInterrupt):
            tree.simulate(2000)
        done = tree.result().simulations
        assert done > 0
        assert all(node.in_flight == 0 for node in every_node(tree.result().root))
        same = pondertree.UCT(seed=1, **options).tree(Interrupts(goal=9)).simulate(done)
        assert fingerprint(same.result()) == fingerprint(tree.result())
        assert fingerprint(same.simulate(100).result()) == fingerprint(tree.simulate(100).result())


def test_drawings_show_chance_nodes() -> None:
    root = pondertree.UCT(500, seed=1).run(Race()).root
    text = root.to_text(depth=3)
    assert "  chance" in text
    assert "rolled 1" in text
    assert 'rx="28"' in root.to_svg(depth=2)
    assert "shape=ellipse" in root.to_dot(depth=2)
    data = json.loads(root.to_json(depth=2))
    roll = next(child for child in data["children"] if child["action"] == 1)
    assert roll["to_play"] == pondertree.CHANCE
    assert {child["action"]: child["prior"] for child in roll["children"]} == {1: 0.5, 2: 0.25, 7: 0.25}
    result = pondertree.UCT(500, seed=1).run(Race())
    assert "roll" in result._repr_html_()


def test_principal_variations_end_at_a_chance_node() -> None:
    result = pondertree.UCT(2000, seed=1, solve=False).run(Race(places=(4, 4)))
    assert not any(text.startswith("rolled") for move in result.moves for text in move.pv)
    assert any(move.pv[-1] == "roll" for move in result.moves)
    rows = range(len(result.edges.actions))
    lines = [
        (result._view.principal_variation(row), result._view.principal_variation(row, through_chance=True))
        for row in rows
    ]
    assert all(whole[: len(line)] == line for line, whole in lines)
    assert any(len(whole) > len(line) for line, whole in lines)


def test_trace_and_step_record_outcomes() -> None:
    tree = pondertree.UCT(seed=1, chance="sample").tree(Race())
    rows = [tree.step() for _ in range(30)]
    outcomes = [terms for row in rows if row for terms in row["terms"] if terms["rule"] == "chance"]
    assert outcomes
    assert {terms["how"] for terms in outcomes} == {"sample"}
    whole = pondertree.UCT(30, seed=1, chance="sample", trace=True).tree(Race()).simulate()
    assert whole.trace() == rows


def test_values_agree_with_each_player() -> None:
    state = TabularGame(11, players=3, chance=0.6, rewards=True, depth=(3, 5)).start()
    result = pondertree.UCT(3000, seed=1, solve=False).run(state)
    assert result.values[state.to_play] == result.value
    assert len(result.values) == 3


def test_evaluators_never_see_chance_nodes() -> None:
    """`Race.observation` refuses them, also where a playout is cut."""
    pondertree.AlphaZero(Rollout(), 300, seed=1).run(Race())
    network = _Zero()
    for search in (
        pondertree.AlphaZero(network, 300, seed=1, in_flight=4),
        pondertree.Gumbel(network, 300, seed=1),
        pondertree.UCT(300, seed=1, evaluator=network),
        pondertree.UCT(300, seed=1, evaluator=network, max_depth=1),
    ):
        search.run(Race(goal=12))


class _Zero:
    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        return np.zeros((len(observations), 2), dtype=np.float32), np.zeros(len(observations))


def test_learned_models_refuse_chance() -> None:
    class Model:
        def initial_inference(self, observations: Any) -> Any:
            raise AssertionError

        recurrent_inference = initial_inference

    for search in (pondertree.MuZero(Model(), num_players=2), pondertree.Gumbel(model=Model(), num_players=2)):
        with pytest.raises(InvalidArgumentError, match="has chance nodes"):
            search.run(Race())
