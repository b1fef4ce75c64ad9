"""MuZero's trees from move to move: advance, reset, slots and the pool of hidden states."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
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
from pondertree.games import ConnectFour
from pondertree.reference import muzero

# Most models here have no number of players, which does not matter for one.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

ONE = np.array([1])


# --- Tree reuse ---------------------------------------------------------------------------------------------------


def test_tree_of_states_advances_by_the_rules() -> None:
    model = Seeing(7)
    tree = pondertree.MuZero(model, seed=1).tree(ConnectFour())
    tree.simulate(60)
    action = tree.result().action
    retained = tree.result().root.children[action]
    state = ConnectFour().play(action)
    tree.advance(action)
    result = tree.result()
    assert tree.state == state
    assert np.array_equal(model.seen[-1], state.observation()[None]), "the new root is seen as it is"
    assert result.root.visit_count == retained.visit_count
    assert {a: child.visit_count for a, child in result.root.children.items() if child.visit_count} == {
        a: child.visit_count for a, child in retained.children.items() if child.visit_count
    }
    assert result.simulations == 0
    _, logits, values = model.initial_inference(state.observation()[None])
    assert result.root.raw_value == values[0]
    weights = np.exp(logits[0].astype(np.float64))
    assert [result.root.children[a].prior for a in range(7)] == pytest.approx(weights / weights.sum(), abs=1e-6)
    tree.simulate(10)
    assert tree.result().simulations == 10
    assert tree.result().visits.sum() == retained.visit_count - 1 + 10


def test_tree_of_observations_advances_by_given_observations() -> None:
    """With an observation and without one; what is legal may change, and what is no longer legal goes."""
    model = TableModel(5, largest_reward=1.0)
    for told in (
        {},
        {"observation": np.array([77])},
        {"observation": [77], "legal_actions": [0, 3], "to_play": 1},
        {"legal_actions": [True, False, False, True, False]},
    ):
        tree = pondertree.MuZero(model, num_players=2, seed=2).tree(observation=ONE)
        tree.simulate(60)
        action = tree.result().action
        retained = tree.result().root.children[action]
        tree.advance(action, **told)
        root = tree.result().root
        legal = [0, 3] if "legal_actions" in told else list(range(5))
        assert sorted(root.children) == legal
        assert root.to_play == 1
        assert {a: root.children[a].visit_count for a in legal} == {
            a: retained.children[a].visit_count if a in retained.children else 0 for a in legal
        }
        assert root.visit_count == 1 + sum(child.visit_count for child in root.children.values())
        if "observation" in told:
            assert root.raw_value == model.row(77)[2]
        else:
            assert root.raw_value == retained.raw_value, "the model's own idea of the position"
        assert tree.simulate(20).result().visits.sum() == root.visit_count - 1 + 20


def test_player_to_move_after_advance() -> None:
    """The model's word counts, unless the caller knows better; then what was seen from the wrong side is dropped."""
    model = TableModel(4, discounts=(1.0, -1.0), seed=2)
    to_play = set()
    for action in range(4):
        for observation in (None, [9]):
            for wrong in (False, True):
                tree = pondertree.MuZero(model, num_players=2, seed=1).tree(
                    observation=ONE, legal_actions=[action], to_play=1
                )
                retained = tree.simulate(20).result().root.children[action]
                assert retained.visit_count > 1
                to_play.add(retained.to_play)
                told = {"to_play": 1 - retained.to_play} if wrong else {}
                tree.advance(action, observation=observation, **told)
                root = tree.result().root
                assert root.to_play == (1 - retained.to_play if wrong else retained.to_play)
                assert root.visit_count == (1 if wrong else retained.visit_count)
    assert to_play == {0, 1}


def test_unvisited_move_starts_a_new_tree() -> None:
    """From the hidden state of what is seen; without that, of what the model imagines."""
    model = TableModel(9)
    for observation in ([5], None):
        tree = pondertree.MuZero(model, seed=1).tree(observation=ONE)
        tree.simulate(3)
        never = int(np.flatnonzero(tree.result().visits == 0)[0])
        tree.advance(never, observation=observation)
        assert tree.result().root.visit_count == 1
        result = tree.simulate(4).result()
        assert result.visits.sum() == 4
        hidden = 5 if observation else 31 + never + 7
        for action in np.flatnonzero(result.visits).tolist():
            assert result.root.children[action].raw_value == model.row(hidden * 31 + action + 7)[2]


def test_reset_replaces_the_root() -> None:
    forest = pondertree.MuZero(TableModel(4), 20, num_players=2, seed=1).forest(observation=numbered(1, 2))
    forest.simulate()
    other = fingerprint(forest.result(1))
    forest.reset(0, observation=[9], legal_actions=[3, 1], to_play=1)
    assert forest.result(0).simulations == 0
    assert forest.result(0).root.to_play == 1
    assert sorted(forest.result(0).root.children) == [1, 3]
    assert fingerprint(forest.result(1)) == other
    forest.simulate([20, 0])
    assert forest.result(0).root.raw_value == TableModel(4).row(9)[2]
    of_states = pondertree.MuZero(Seeing(7), 20, seed=1).tree(ConnectFour())
    of_states.simulate()
    of_states.reset(ConnectFour().play(3))
    assert of_states.simulate().result().root.to_play == 1
    with pytest.raises(pondertree.InvalidArgumentError, match="give a state"):
        of_states.reset(observation=np.zeros((3, 6, 7)))


class Jackpot:
    """Action 0 of the root pays 100 and leads where rewards are small; the order there depends on the scale."""

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        hidden = np.asarray(observations).astype(np.int64)
        return hidden, *self.predict(hidden)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        depth = hidden_states[:, 0] + 1
        reward = np.where(depth == 1, np.where(actions == 0, 100.0, -100.0), np.where(actions == 2, 0.5, 0.0))
        hidden = depth[:, None]
        return hidden, reward, *self.predict(hidden)

    def predict(self, hidden: Any) -> tuple[Any, Any]:
        return np.tile([1.0, 0.5, 0.0], (len(hidden), 1)), np.zeros(len(hidden))


def test_normalisation_bounds_are_reset_by_advance() -> None:
    class Frozen(muzero.MCTS):
        """Keeps the bounds."""

        def advance(self, tree: Any, action: int, **about: Any) -> None:
            low, high = tree.low, tree.high
            super().advance(tree, action, **about)
            tree.low, tree.high = low, high

    visits = []
    for reference in (muzero.MCTS, Frozen):
        search = reference(Jackpot(), normalize="tree", seed=1)
        tree = search.tree(observation=[0])
        search.simulate(tree, 40)
        search.advance(tree, 0)
        search.simulate(tree, 60)
        visits.append(search.result(tree).visits)
    ours = pondertree.MuZero(Jackpot(), normalize="tree", seed=1).tree(observation=[0])
    ours.simulate(40)
    ours.advance(0)
    ours.simulate(60)
    assert dict(enumerate(ours.result().visits.tolist())) == visits[0]
    assert visits[0] != visits[1], "on the old scale it would have chosen otherwise"


# --- Nodes, slots and the pool ------------------------------------------------------------------------------------


def slots_of(forest: Any) -> list[int]:
    views = [result._view for result in forest.results()]
    return [view.node(index)[8] for view in views for index in range(view.num_nodes)]


def test_nodes_have_consistent_rewards_slots_and_values() -> None:
    model = TableModel(4, largest_reward=2.0, discounts=(0.0, 0.5, -0.9))
    result = pondertree.MuZero(model, 120, num_players=2, seed=4).run(observation=ONE)
    below = [node for node in every_node(result.root) if node.visit_count and node.parent is not None]
    assert len(below) == 120
    hidden = {id(result.root): 1}
    for node in below:
        assert node.parent is not None
        hidden[id(node)] = key = (hidden[id(node.parent)] * 31 + node.action + 7) % 1_000_003
        reward, _, value, discount = model.row(key)
        assert node.reward == reward
        assert node.raw_value == value
        assert node.to_play == (1 - node.parent.to_play if discount < 0 else node.parent.to_play)
        flip = 1.0 if node.to_play == node.parent.to_play else -1.0
        edge = node.visit_count * reward + flip * abs(discount) * node.total_value
        assert node._edge["sum"] == pytest.approx(edge, abs=1e-9), "W is reward + discount * value, for who chose"
        assert node.in_flight == 0
        assert not node.is_terminal
        assert node.proven is None
    for node in every_node(result.root):
        children = node.children.values()
        if node.visit_count:
            assert node.visit_count == 1 + sum(child.visit_count for child in children)
            assert sum(child.prior for child in children) == pytest.approx(1.0)
            sums = sum(child._edge["sum"] for child in children)
            assert node.total_value == pytest.approx(node.raw_value + sums)
        else:
            assert (node.total_value, node.q_value, node.reward, node.slot) == (0.0, 0.0, 0.0, None)
    assert result.value == pytest.approx(result.root.q_value)
    for action, child in result.root.children.items():
        if child.visit_count:
            assert result.q[action] == pytest.approx(child._edge["sum"] / child.visit_count)
    with pytest.raises(AttributeError):
        result.root.slot = 3  # type: ignore[misc]


def test_slots_are_unique_within_a_forest() -> None:
    forest = pondertree.MuZero(TableModel(4), seed=1, in_flight=2).forest(observation=numbered(1, 2, 3))
    for _ in range(3):
        forest.simulate(30)
        slots = slots_of(forest)
        assert len(slots) == len(set(slots)) == sum(result._view.num_nodes for result in forest.results())
        forest.advance(1, forest.result(1).action)
        forest.reset(2, observation=[8])


@pytest.mark.parametrize("kind", ["state", "told", "imagined"])
def test_pool_stays_small_over_200_moves(kind: str) -> None:
    """Slots are given back: the pool holds what the trees hold, and never much more."""
    states = kind == "state"
    model: Any = ExactBatchModel([ConnectFour()]) if states else TabularDecisionModel(1)
    search = pondertree.MuZero(model, seed=1)
    forest = search.forest([ConnectFour()] * 2) if states else search.forest(observation=numbered(1, 2))
    world = forest._world
    largest = 0
    for move in range(200):
        forest.simulate(12)
        slots = slots_of(forest)
        assert len(slots) == len(set(slots))
        assert max(slots) < world._pool.capacity
        largest = max(largest, len(slots))
        for tree in range(2):
            action = forest.result(tree).action
            if states and forest.state(tree).play(action).is_terminal:
                forest.reset(tree, ConnectFour())
            elif states:
                forest.advance(tree, action)
            elif move % 50 == 49:
                forest.reset(tree, observation=[move % 5])
            else:
                forest.advance(tree, action, **({"observation": [move % 5]} if kind == "told" else {}))
    assert world._pool.capacity <= max(128, 2 * (largest + 2 * 13))
    assert world._pool.nbytes == world._pool.capacity * 8
    for tree in range(2):
        forest.reset(tree, **({"state": ConnectFour()} if states else {"observation": [0]}))
    assert len(slots_of(forest)) == 2


@dataclass
class Faltering:
    """A table of which one call in so many fails."""

    model: Any
    every: int
    calls: int = 0

    def initial_inference(self, observations: Any) -> Any:
        return self.model.initial_inference(observations)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> Any:
        self.calls += 1
        if self.calls % self.every == 0:
            raise RuntimeError("no answer")
        return self.model.recurrent_inference(hidden_states, actions)


STEPS = st.tuples(st.sampled_from(["simulate", "see", "imagine", "reset"]), st.integers(0, 2), st.integers(0, 999))


@settings(max_examples=120)
@given(
    st.lists(STEPS, min_size=1, max_size=12),
    st.sampled_from([1, 4]),
    st.sampled_from([3, 1000]),
    st.sampled_from([pondertree.MuZero, pondertree.Gumbel]),
)
def test_pool_holds_the_hidden_states_of_the_trees(steps: Any, in_flight: int, every: int, preset: Any) -> None:
    """Whatever was done and whatever failed: under the slot of each node lies its own hidden state."""
    model = Faltering(TableModel(4), every)
    forest = preset(model, in_flight=in_flight, seed=1).forest(observation=numbered(0, 1, 2))
    roots = [0, 1, 2]
    for what, tree, number in steps:
        with contextlib.suppress(pondertree.EvaluationError):
            if what == "simulate":
                forest.simulate([number % 13, 5, 2])
            elif what == "reset":
                forest.reset(tree, observation=[number])
                roots[tree] = number
            elif what == "see":
                forest.advance(tree, number % 4, observation=[number])
                roots[tree] = number
            else:
                forest.advance(tree, number % 4)
                roots[tree] = (roots[tree] * 31 + number % 4 + 7) % 1_000_003
        slots = slots_of(forest)
        assert len(slots) == len(set(slots))
        for result, root in zip(forest.results(), roots, strict=True):
            nodes = [(result.root, root)]
            for node, hidden in nodes:
                assert forest._world._pool.gather(np.array([node.slot])).tolist() == [[hidden]]
                tried = [child for child in node.children.values() if child.visit_count]
                for child in tried:
                    below = (hidden * 31 + (child.action or 0) + 7) % 1_000_003
                    if node is result.root:  # what is kept below it may have been imagined before it was seen
                        below = int(forest._world._pool.gather(np.array([child.slot]))[0, 0])
                        assert child.raw_value == model.model.row(below)[2]
                    nodes.append((child, below))
            assert all(node.in_flight == 0 for node, _ in nodes)


def test_muzero_result_does_not_change_when_the_tree_grows() -> None:
    tree = pondertree.MuZero(TableModel(4), seed=1).tree(observation=ONE)
    held = tree.simulate(20).result()
    before = fingerprint(held)
    tree.simulate(20)
    tree.advance(0)
    tree.simulate(20)
    assert fingerprint(held) == before
