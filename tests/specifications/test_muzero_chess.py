"""MuZero chess: the search of a learned model, step by step, and the nodes."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
import pytest
from tests.specifications.examples import RUN
from tests.specifications.support import DocumentModel, Traced

from pondertree import MuZero
from pondertree.reference.latent_world import Node, RootNode
from pondertree.reference.muzero import MCTS, MCTSConfig

each_implementation = pytest.mark.parametrize("kind", ["engine", "reference"])

PB_C = (math.log((1 + 19652 + 1) / 19652) + 1.25, math.log((2 + 19652 + 1) / 19652) + 1.25)
"""pb_c of a node with one and with two visits."""


def traced(kind: str, simulations: int, model: Any = None, legal: Any = None, **options: Any) -> Traced:
    """A search from observation 5 by the engine or the reference; values unscaled unless `normalize` is given."""
    model = model or DocumentModel()
    options = {"normalize": None, "seed": 1, **options}
    if kind == "engine":
        tree = MuZero(model, trace=True, **options).tree(observation=np.array([5.0]), legal_actions=legal)
        tree.simulate(simulations)
        return Traced(tree.trace(), tree.result().root)
    search = MCTS(model, **options)
    grown = search.tree(observation=np.array([5.0]), legal_actions=legal, trace=True)
    search.simulate(grown, simulations)
    return Traced(list(grown.trace or []), grown.root)


def expanded_root(model: Any, legal: Any = (0, 1, 2, 3)) -> RootNode:
    """A root that the caller has expanded, as the document's `select_action` does."""
    hidden, policy, _ = model.initial_inference(np.array([5.0]))
    root = RootNode(0, hidden)
    weights = {action: math.exp(policy[action]) for action in legal}
    for action in legal:
        root.children[action] = Node(prior=weights[action] / sum(weights.values()))
    return root


# --- Overview, MCTS Algorithm Overview ----------------------------------------------------------------------------


class Corridor:
    """A model in which action 1 twice in a row earns a reward, and nothing else does."""

    num_players = 1

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        return 0, np.zeros(2), 0.0

    def recurrent_inference(self, hidden_state: Any, action: Any) -> tuple[Any, Any]:
        step = int(hidden_state) + 1 if action == 1 else -9
        return step, float(step == 2)

    def prediction(self, hidden_state: Any) -> tuple[Any, Any]:
        return np.zeros(2), 0.0


def test_actions_are_selected_by_planning_in_the_model() -> None:
    from pondertree import select_action
    from pondertree.reference import muzero

    for select in (select_action, muzero.select_action):
        assert select(Corridor(), MCTSConfig(), np.zeros(1), [0, 1], temperature=0) == 1


@each_implementation
def test_selection_descends_by_the_highest_score(kind: str) -> None:
    search = traced(kind, 120)
    assert max(map(len, search.paths())) > 2
    for row in search.trace:
        for action, scores in zip(row["path"], row["scores"], strict=True):
            assert dict(scores)[action] == max(score for _, score in scores)


@each_implementation
def test_expansion_adds_one_node_per_simulation(kind: str) -> None:
    paths = traced(kind, 60).paths()
    assert len(set(paths)) == 60
    assert all(len(path) == 1 or path[:-1] in paths for path in paths)


@each_implementation
def test_evaluation_asks_the_model_once_per_simulation(kind: str) -> None:
    model = DocumentModel()
    traced(kind, 60, model)
    assert len(model.recurrent) == len(model.predicted) == 60


@each_implementation
def test_backup_counts_every_node_of_the_path(kind: str) -> None:
    search = traced(kind, 60)
    for prefix in {path[:depth] for path in search.paths() for depth in range(1, len(path) + 1)}:
        assert search.node(prefix).visit_count == sum(path[: len(prefix)] == prefix for path in search.paths())


# --- Core Data Structures -----------------------------------------------------------------------------------------


def test_node_is_made_from_its_prior() -> None:
    assert Node(0.5).prior == Node(prior=0.5).prior == 0.5


@pytest.mark.parametrize(
    ("field", "value"),
    [("prior", 0.5), ("value_sum", 0), ("visit_count", 0), ("children", {}), ("hidden_state", None), ("reward", 0)],
)
def test_node_field_has_its_initial_value(field: str, value: Any) -> None:
    assert getattr(Node(prior=0.5), field) == value


def test_node_is_expanded_when_it_has_children() -> None:
    node = Node(0.5)
    assert node.expanded() is False
    node.children[0] = Node(1.0)
    assert node.expanded() is True


def test_node_value_is_the_mean_or_zero() -> None:
    node = Node(0.5)
    assert node.value() == 0
    node.value_sum, node.visit_count = 3.0, 4
    assert node.value() == 0.75


def test_root_node_takes_prior_and_hidden_state() -> None:
    root = RootNode(0.25, "hidden")
    assert isinstance(root, Node)
    assert root.prior == 0.25
    assert not root.expanded()


def test_root_node_keeps_its_hidden_state() -> None:
    assert RootNode(0, "hidden").hidden_state == "hidden"


def test_root_node_has_the_first_player_to_move() -> None:
    assert RootNode(0, "hidden").to_play == 0
    assert RootNode(0, "hidden", to_play=1).to_play == 1


# --- MCTS Class: run ----------------------------------------------------------------------------------------------


def test_mcts_keeps_network_and_config() -> None:
    model, config = DocumentModel(), MCTSConfig(num_simulations=7, discount=0.5)
    search = MCTS(model, config)
    assert search.network is model
    assert (search.config.num_simulations, search.config.discount) == (7, 0.5)


def test_nodes_are_found_through_their_parents() -> None:
    """There is no map of nodes: the children of the root lead to all of them."""
    search, root = MCTS(DocumentModel(), MCTSConfig()), RootNode()
    search.run(root, np.array([5.0]), [0, 1, 2, 3])
    assert not hasattr(search, "nodes")
    nodes: list[Any] = [root]
    for node in nodes:
        nodes.extend(child for child in node.children.values() if child.visit_count)
    assert len(nodes) == 51


def test_run_takes_root_observation_and_legal_actions() -> None:
    """The root may be expanded by the caller or not: as written, a fresh one would be an IndexError."""
    model = DocumentModel()
    for root in (expanded_root(model, (3, 1)), RootNode()):
        actions, probabilities = MCTS(model, MCTSConfig()).run(root, np.array([5.0]), [3, 1])
        assert actions == (3, 1)
        assert sum(probabilities) == pytest.approx(1.0)
        assert root.visit_count == 51


def test_run_adds_noise_to_the_root_first() -> None:
    plain, noisy = expanded_root(DocumentModel()), expanded_root(DocumentModel())
    for root, noise in ((plain, False), (noisy, True)):
        MCTS(DocumentModel(), MCTSConfig()).run(root, np.array([5.0]), [0, 1, 2, 3], add_noise=noise)
        assert all((child.prior == child.clean_prior) is not noise for child in root.children.values())
    assert sum(child.prior for child in noisy.children.values()) == pytest.approx(1.0)


def test_run_makes_num_simulations_from_the_root() -> None:
    for simulations in (1, 5, 40):
        root = RootNode()
        MCTS(DocumentModel(), num_simulations=simulations).run(root, np.array([5.0]), [0, 1, 2, 3])
        assert sum(child.visit_count for child in root.children.values()) == simulations


@each_implementation
def test_selection_phase_ends_at_a_node_that_is_not_expanded(kind: str) -> None:
    seen: set[tuple[int, ...]] = {()}
    for path in traced(kind, 80).paths():
        assert path not in seen
        assert all(path[:depth] in seen for depth in range(len(path)))
        seen.add(path)


@each_implementation
def test_dynamics_is_asked_for_the_parents_state_and_the_last_action(kind: str) -> None:
    model = DocumentModel()
    search = traced(kind, 40, model)
    asked = []
    for path in search.paths():
        hidden = 5.0
        for action in path[:-1]:
            hidden = model.step(hidden, action)
        asked.append((hidden, path[-1]))
    assert model.recurrent == asked


@each_implementation
def test_prediction_is_asked_for_the_next_state(kind: str) -> None:
    model = DocumentModel()
    traced(kind, 40, model)
    assert model.predicted == [model.step(hidden, action) for hidden, action in model.recurrent]


def test_new_node_gets_its_hidden_state_and_reward() -> None:
    model = DocumentModel(reward=2.0)
    search = traced("reference", 40, model)
    engine = traced("engine", 40, model)
    for path in search.paths():
        hidden, reward = 5.0, 0.0
        for action in path:
            reward = model.reward_of(hidden, action)
            hidden = model.step(hidden, action)
        assert (search.node(path).hidden_state, search.node(path).reward) == (hidden, pytest.approx(reward))
        assert engine.node(path).reward == pytest.approx(reward)


@each_implementation
def test_legal_actions_are_those_of_the_root_alone(kind: str) -> None:
    """One move later they would be those of the wrong player, so that nothing is masked below the root."""
    search = traced(kind, 60, legal=[1, 3])
    assert set(search.root.children) == {1, 3}
    below = {path[1] for path in search.paths() if len(path) > 1}
    assert below == {0, 1, 2, 3}


def test_run_backs_up_the_predicted_value() -> None:
    search = traced("reference", 1)
    (action,) = search.paths()[0]
    model = DocumentModel()
    value = model.value_of(model.step(5.0, action))
    assert search.node((action,)).value_sum == pytest.approx(value)
    assert search.root.value_sum == pytest.approx(model.value_of(5.0) + 0.997 * value)


def test_run_returns_the_distributions() -> None:
    search, root = MCTS(DocumentModel(), MCTSConfig()), RootNode()
    assert search.run(root, np.array([5.0]), [2, 0, 1]) == search._get_distributions(root)


def test_run_of_the_document_runs_as_written() -> None:
    names: dict[str, Any] = {}
    exec(textwrap.dedent(RUN.text), names)
    model = DocumentModel()
    search, root = MCTS(model, MCTSConfig()), expanded_root(model)
    actions, probabilities = names["run"](search, root, np.array([5.0]), [0, 1, 2, 3])
    assert sorted(actions) == [0, 1, 2, 3]
    assert sum(probabilities) == pytest.approx(1.0)
    assert sum(child.visit_count for child in root.children.values()) == root.visit_count == 50


# --- MCTS Class: selection ----------------------------------------------------------------------------------------


def scored_node() -> tuple[MCTS, RootNode]:
    """Two actions with priors 3/4 and 1/4, three visits of mean 1 and one visit of 4, unscaled."""
    root = RootNode(0, "hidden")
    root.visit_count = 5
    for action, prior, visits, total in ((0, 0.75, 3, 3.0), (1, 0.25, 1, 4.0)):
        child = root.children[action] = Node(prior)
        child.visit_count, child.value_sum, child.returns, child.parent = visits, total, total, root
    return MCTS(DocumentModel(), MCTSConfig(), normalize=None), root


def test_select_child_takes_a_node() -> None:
    search, root = scored_node()
    action, child = search._select_child(root)
    assert root.children[action] is child


def test_select_child_has_the_highest_score_and_draws_ties() -> None:
    search, root = scored_node()
    scores = {action: search._ucb_score(root, child) for action, child in root.children.items()}
    assert search._select_child(root)[0] == max(scores, key=scores.__getitem__) == 1
    for child in root.children.values():
        child.prior, child.visit_count, child.returns, child.value_sum = 0.5, 2, 1.0, 1.0
    assert {search._select_child(root)[0] for _ in range(40)} == {0, 1}


def test_select_child_returns_action_and_child() -> None:
    search, root = scored_node()
    answer = search._select_child(root)
    assert isinstance(answer, tuple)
    assert answer == (1, root.children[1])


def test_ucb_score_takes_parent_and_child() -> None:
    search, root = scored_node()
    assert isinstance(search._ucb_score(root, root.children[0]), float)


@each_implementation
def test_pb_c_grows_with_the_logarithm_of_the_visits(kind: str) -> None:
    """The factor of an unvisited action's prior, after k simulations of a root that counts its own evaluation."""
    search = traced(kind, 30, DocumentModel(value=0.0), pb_c_base=4.0, pb_c_init=0.5)
    for simulation in (0, 7, 29):
        visits = 1 + simulation
        tried = {path[0] for path in search.paths()[:simulation]}
        factor = (math.log((visits + 4.0 + 1) / 4.0) + 0.5) * math.sqrt(visits)
        for action, score in search.trace[simulation]["scores"][0]:
            if action not in tried:
                assert score == pytest.approx(factor * search.root.children[action].prior)


@each_implementation
def test_pb_c_uses_visits_and_the_root_has_one_of_its_own(kind: str) -> None:
    """At the first choice sqrt(N) is 1, so that the priors count; as written it is 0."""
    search = traced(kind, 2, DocumentModel(value=0.0))
    priors = {action: child.prior for action, child in search.root.children.items()}
    assert dict(search.trace[0]["scores"][0]) == pytest.approx({a: PB_C[0] * p for a, p in priors.items()})
    (first,) = search.paths()[0]
    expected = {a: PB_C[1] * math.sqrt(2) / (1 + (a == first)) * p for a, p in priors.items()}
    assert dict(search.trace[1]["scores"][0]) == pytest.approx(expected)


def test_prior_score_is_pb_c_times_the_prior() -> None:
    search, root = scored_node()
    child = root.children[0]
    pb_c = (math.log((5 + 19652 + 1) / 19652) + 1.25) * math.sqrt(5) / (3 + 1)
    assert search._ucb_score(root, child) - child.value() == pytest.approx(pb_c * 0.75)


@each_implementation
def test_value_score_is_reward_plus_discounted_value(kind: str) -> None:
    """An action's own reward counts for choosing it; as written only the value of the child would."""
    model = DocumentModel(reward=3.0)
    before, row = traced(kind, 12, model), traced(kind, 13, model).trace[12]
    pb_c = (math.log((13 + 19652 + 1) / 19652) + 1.25) * math.sqrt(13)
    for action, score in row["scores"][0]:
        child = before.root.children[action]
        if child.visit_count:
            mean = child.value() if kind == "reference" else child.q_value
            expected = child.reward + 0.997 * mean + pb_c * child.prior / (1 + child.visit_count)
            assert score == pytest.approx(expected)
    assert len(before.root.children) == 4


@each_implementation
def test_value_score_equals_the_documents_without_rewards_and_discount(kind: str) -> None:
    """`normalize=None`, one player, no rewards, discount 1: the score is prior_score + child.value() to the letter."""
    before, row = (traced(kind, n, discount=1.0) for n in (12, 13))
    pb_c = (math.log((13 + 19652 + 1) / 19652) + 1.25) * math.sqrt(13)
    for action, score in row.trace[12]["scores"][0]:
        child = before.root.children[action]
        mean = child.value() if kind == "reference" else child.q_value
        assert score == pytest.approx(mean + pb_c * child.prior / (1 + child.visit_count))


@each_implementation
def test_score_adds_a_scaled_value_by_default(kind: str) -> None:
    """With rewards of any size the value is scaled to [0, 1], or it would drown the prior; None leaves it."""
    model = DocumentModel(reward=500.0)
    assert MuZero(model).normalize == MCTS(model).normalize == "node"
    pb_c = (math.log((31 + 19652 + 1) / 19652) + 1.25) * math.sqrt(31)

    def values(normalize: str | None) -> list[float]:
        before = traced(kind, 30, model, normalize=normalize).root
        scores = traced(kind, 31, model, normalize=normalize).trace[30]["scores"][0]
        return [s - pb_c * before.children[a].prior / (1 + before.children[a].visit_count) for a, s in scores]

    assert all(-1e-9 <= value <= 1.0 + 1e-9 for value in values("node"))
    assert max(map(abs, values(None))) > 100
