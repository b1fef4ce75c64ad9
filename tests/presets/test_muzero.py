"""MuZero as users call it: parameters, batches, answers, limits."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.exact_models import ExactBatchModel, TabularDecisionModel
from tests.support.models import TableModel
from tests.support.observed_models import Seeing, numbered
from tests.support.search_helpers import every_node, fingerprint

import pondertree
from pondertree.games import TicTacToe

# Most models here have no number of players, which does not matter for one.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


ONE = np.array([1])


# --- Parameters ---------------------------------------------------------------------------------------------------


def test_muzero_has_the_parameters_and_defaults_of_the_design() -> None:
    search = pondertree.MuZero(TableModel())
    promised = {
        "num_simulations": 50,
        "pb_c_base": 19652,
        "pb_c_init": 1.25,
        "discount": 0.997,
        "root_dirichlet_alpha": 0.3,
        "root_exploration_fraction": 0.25,
        "num_players": 1,
        "normalize": "node",
        "time_limit": None,
        "max_nodes": None,
        "max_memory": None,
        "in_flight": 1,
        "threads": 1,
        "solve": True,
    }
    assert {name: getattr(search, name) for name in promised} == promised
    assert isinstance(search.seed, int)
    names = list(inspect.signature(pondertree.MuZero).parameters)
    assert names[:9] == ["model", *list(promised)[:8]], "in the order of the table of presets"
    assert pondertree.MuZero.default_temperature == 1.0
    changed = pondertree.MuZero(TableModel(), 7, 5.0, 0.5, 0.9, 0.1, 0.2, 2, None, seed=3)
    assert repr(changed).endswith("num_simulations=7, discount=0.9, seed=3)")
    assert (changed.num_players, changed.normalize, changed.root_exploration_fraction) == (2, None, 0.2)


# --- Batches ------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.data())
def test_muzero_seeded_row_is_independent_of_the_batch(data: st.DataObject) -> None:
    """Neither on its neighbours nor on its place nor on threads."""
    draw = data.draw
    model = TableModel(draw(st.sampled_from([2, 6, 300])), draw(st.sampled_from([3, 1001])), largest_reward=1.0)
    rows = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 99)), min_size=1, max_size=6))
    options = {
        "in_flight": draw(st.sampled_from([1, 3])),
        "normalize": draw(st.sampled_from(["node", "tree", None])),
    }
    noise = draw(st.booleans())
    counts = [draw(st.sampled_from([1, 9, 30])) for _ in rows]
    batched = [
        list(
            map(
                fingerprint,
                pondertree.MuZero(model, counts, threads=threads, **options).run(
                    observation=numbered(*(number for number, _ in rows)),
                    seeds=[seed for _, seed in rows],
                    add_noise=noise,
                ),
            )
        )
        for threads in (1, 2, 4)
    ]
    alone = [
        fingerprint(pondertree.MuZero(model, count, **options).run(observation=[number], seeds=seed, add_noise=noise))
        for count, (number, seed) in zip(counts, rows, strict=True)
    ]
    assert batched == [alone] * 3


def test_same_seed_gives_the_same_tree() -> None:
    model = TableModel(5, levels=3)

    def trees(seed: int) -> list[Any]:
        search = pondertree.MuZero(model, 40, seed=seed)
        calls = [search.run(observation=numbered(1, 1), add_noise=True) for _ in range(2)]
        return [fingerprint(result) for results in calls for result in results]

    assert trees(3) == trees(3)
    assert trees(3) != trees(4)
    assert len(set(trees(3))) == 4, "rows and calls draw their own numbers"
    drawn = pondertree.MuZero(model, 40)
    result = drawn.run(observation=ONE)
    assert fingerprint(pondertree.MuZero(model, 40, seed=result.seed).run(observation=ONE)) == fingerprint(result)


def test_model_is_called_once_per_batch() -> None:
    model = TabularDecisionModel(1)
    sizes: list[int] = []

    def noting(hidden: Any, actions: Any) -> Any:
        assert actions.dtype == np.int64
        sizes.append(len(actions))
        return model.recurrent_inference(hidden, actions)

    both = pondertree.models.FunctionModel(model.initial_inference, noting)
    pondertree.MuZero(both, 10, seed=1).run(observation=numbered(0, 1, 2, 3))
    assert sizes == [4] * 10
    sizes.clear()
    pondertree.MuZero(both, 10, in_flight=3, seed=1).run(observation=numbered(0, 1))
    assert sum(sizes) == 20
    assert 2 < max(sizes) <= 6


# --- Results ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
def test_muzero_policy_is_the_visit_share() -> None:
    result = pondertree.MuZero(TableModel(6), 90, seed=1).run(observation=ONE, legal_actions=[5, 0, 2])
    assert result.visits[[1, 3, 4]].tolist() == [0, 0, 0]
    assert result.policy == pytest.approx(result.visits / 90)
    assert result.policy_at(0.5) == pytest.approx(result.visits**2 / (result.visits**2).sum())
    assert result.action == result.visits.argmax()
    assert np.isnan(result.q).tolist() == (result.visits == 0).tolist()
    even = pondertree.MuZero(TableModel(6), seed=1).tree(observation=ONE).result()
    assert np.isfinite(even.policy).all(), "before any simulation, too"


def test_muzero_temperature_samples_from_the_policy() -> None:
    search = pondertree.MuZero(TabularDecisionModel(0), 24, seed=1)
    results = search.run(observation=numbered(*[3] * 600), temperature=1.0)
    expected = np.mean([result.policy for result in results], axis=0)
    drawn = np.bincount([result.action for result in results], minlength=3) / 600
    assert np.abs(drawn - expected).max() < 0.08
    assert (expected > 0.05).all()
    greedy = search.run(observation=numbered(*[3] * 20), temperature=[0.0] * 20)
    assert all(result.visits[result.action] == result.visits.max() for result in greedy)
    spread = search.run(observation=numbered(*[3] * 200), temperature=1e9)
    assert min(np.bincount([result.action for result in spread], minlength=3)) > 40


def test_noise_is_added_on_request_at_the_root() -> None:
    search = pondertree.MuZero(TableModel(8), 40, root_dirichlet_alpha=0.5, root_exploration_fraction=0.4, seed=1)
    legal = [1, 4, 6]
    calm = search.run(observation=ONE, legal_actions=legal)
    assert all(child.prior == child.clean_prior for child in calm.root.children.values())
    noisy = search.run(observation=ONE, legal_actions=legal, add_noise=True)
    assert sorted(noisy.root.children) == legal
    noise = {a: child.prior - 0.6 * child.clean_prior for a, child in noisy.root.children.items()}
    assert all(part >= -1e-6 for part in noise.values())
    assert sum(noise.values()) == pytest.approx(0.4, abs=1e-6)
    assert max(abs(child.prior - child.clean_prior) for child in noisy.root.children.values()) > 1e-3
    assert {a: child.clean_prior for a, child in noisy.root.children.items()} == {
        a: child.prior for a, child in calm.root.children.items()
    }
    for child in noisy.root.children.values():
        assert all(below.prior == below.clean_prior for below in child.children.values())
    tree = search.tree(observation=ONE)
    tree.simulate(5, add_noise=True)
    tree.simulate(5, add_noise=False)
    assert all(child.prior == child.clean_prior for child in tree.result().root.children.values())
    rows = search.run(observation=numbered(1, 1), add_noise=[True, False])
    assert [any(c.prior != c.clean_prior for c in row.root.children.values()) for row in rows] == [True, False]


# --- Limits -------------------------------------------------------------------------------------------------------


def test_muzero_ends_at_its_time_limit() -> None:
    model = TableModel(3)

    def slow(hidden: Any, actions: Any) -> Any:
        time.sleep(0.004)
        return model.recurrent_inference(hidden, actions)

    slowly = pondertree.models.FunctionModel(model.initial_inference, slow)
    begun = time.perf_counter()
    [result, other] = pondertree.MuZero(slowly, time_limit=0.1, seed=1).run(observation=numbered(1, 2))
    assert time.perf_counter() - begun < 5.0
    assert 1 <= result.simulations <= 25
    assert abs(result.simulations - other.simulations) <= 1
    again = pondertree.MuZero(model, [result.simulations, other.simulations], seed=1).run(observation=numbered(1, 2))
    assert list(map(fingerprint, again)) == list(map(fingerprint, (result, other)))
    assert pondertree.MuZero(slowly, time_limit=1e-6).run(observation=ONE).simulations == 1
    tree = pondertree.MuZero(slowly, seed=1).tree(observation=ONE)
    assert 1 <= tree.simulate(seconds=0.05).result().simulations <= 20


def test_pool_reserves_the_requested_simulations() -> None:
    """For the simulations of each tree, and not for those that a limit of time will cut."""
    search = pondertree.MuZero(TabularDecisionModel(1), seed=1)
    forest = search.forest(observation=numbered(*[1] * 16))
    forest.simulate([1000] + [1] * 15)
    assert forest._world._pool.capacity == 2048, "the power of two above 1000 + 15 + 16"
    hurried = search.forest(observation=numbered(1, 1))
    hurried.simulate(1_000_000, seconds=0.01)
    assert hurried._world._pool.capacity < 100_000


def test_full_tree_still_returns_a_move() -> None:
    tree = pondertree.MuZero(TableModel(4), max_nodes=10, seed=1).tree(observation=ONE)
    result = tree.simulate(100).result()
    assert (result.simulations, result._view.num_nodes) == (9, 10)
    assert tree._forest._world._pool.capacity <= 64
    tree.advance(result.action)
    assert tree.simulate(100).result()._view.num_nodes == 10, "after a move there is room again"
    small = pondertree.MuZero(TableModel(4), 3000, max_memory=0.2, seed=1).run(observation=ONE)
    assert small.simulations < 3000
    assert small.memory <= 0.2 * 2**20


def test_simulations_are_counted_once() -> None:
    """In pieces or in one go, with progress told."""
    told: list[tuple[int, int]] = []
    search = pondertree.MuZero(TableModel(6), seed=3)
    one = search.tree(observation=ONE, seeds=5).simulate(50, progress=lambda *now: told.append(now)).result()
    many = search.tree(observation=ONE, seeds=5)
    for count in (1, 9, 40):
        many.simulate(count)
    assert fingerprint(one) == fingerprint(many.result())
    assert told[-1] == (50, 50)


# --- Predicted lines ----------------------------------------------------------------------------------------------


def test_predicted_lines_beyond_the_rules_have_action_numbers() -> None:
    """As far as the rules allow; in the tree, where the model imagines what they do not, by its number."""
    result = pondertree.MuZero(Seeing(9), 150, seed=1).run(TicTacToe())
    beyond = [node for node in every_node(result.root) if node.visit_count and not hasattr(node.state, "board")]
    assert result.pv[0] == result.move
    names = {TicTacToe().action_to_string(action) for action in range(9)}
    raw = [result._view.principal_variation(place) for place in range(9)]
    lines = [move.pv for move in result.moves]
    assert sum(map(len, raw)) > sum(map(len, lines)), "the model imagined more than the rules allow"
    assert all(set(line) <= names and len(set(line)) == len(line) for line in (result.pv, *lines))
    unruled = [node for node in beyond if "predicted by a model" in repr(node.state)]
    assert unruled
    assert all(node.move.isdigit() for node in unruled)
    for text in (repr(result), result.root.to_text(3), result.root.to_dot(3), result.root.to_json(), str(result.moves)):
        assert text
    legal = pondertree.MuZero(ExactBatchModel([TicTacToe()]), 150, seed=1).run(TicTacToe())
    assert all(text in names for text in legal.pv)
    bare = pondertree.MuZero(TableModel(4), 30, seed=1).run(observation=ONE)
    assert bare.pv[0] == bare.move == str(bare.action)
    assert "predicted by a model" in repr(next(iter(bare.root.children.values())).state)
