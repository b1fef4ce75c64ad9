"""The MuZero reference: invariants in random models, names and defaults, and invalid input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.tabular import Tabular
from tests.support.exact_models import ExactModel
from tests.support.muzero import Fixed, nodes_of
from tests.support.traces import first_difference

from pondertree.games import TicTacToe
from pondertree.reference.muzero import (
    MCTS,
    MCTSConfig,
    MuZeroConfig,
    Node,
    Result,
    RootNode,
    mask_policy,
    select_action,
)
from pondertree.reference.priors import float32

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


@dataclass
class SpecificationForm:
    """A tabular model with the unbatched interface of the MuZero specification."""

    inside: Tabular

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        hidden, logits, value = self.inside.initial_inference([observation])
        return int(hidden[0]), logits[0], value[0]

    def recurrent_inference(self, hidden_state: int, action: int) -> tuple[int, Any]:
        assert isinstance(action, int)
        hidden, reward, *_ = self.inside.recurrent_inference([hidden_state], [action])
        return int(hidden[0]), reward[0]

    def prediction(self, hidden_state: int) -> tuple[Any, Any]:
        _, logits, value = self.inside.initial_inference([hidden_state])
        return logits[0], value[0]


def check_tree(result: Result, legal: list[int]) -> None:
    """Checks the invariants of every search tree."""
    root = result.root
    assert result.action in legal
    assert result.proven is None
    assert list(result.visits) == list(result.policy) == list(result.q) == legal
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert sorted(root.children) == sorted(legal)
    for node in nodes_of(root):
        assert node.in_flight == 0
        below = [child for child in node.children.values() if child.visit_count]
        assert node.visit_count == 1 + sum(child.visit_count for child in below)
        assert node.value() == pytest.approx(node.mean_value, rel=1e-9, abs=1e-9)
        assert sum(child.clean_prior for child in node.children.values()) + node.tail_prior == pytest.approx(
            1.0, abs=1e-5
        )
        assert [child.is_visited for child in node.children.values()] == [True] * len(below) + [False] * (
            len(node.children) - len(below)
        )
        for child in below:
            sign = 1.0 if child.to_play == node.to_play else -1.0
            expected = child.visit_count * child.reward + child.discount * sign * child.value_sum
            assert child.returns == pytest.approx(expected, rel=1e-9, abs=1e-9)


@st.composite
def models(draw: Any) -> tuple[Tabular, int]:
    """A model and its number of players."""
    players = draw(st.sampled_from([1, 2]))
    discounts = draw(st.sampled_from([None, None, (0.997, 0.5, 0.0), (1.0,)] + [(-1.0, 0.9, 0.0)] * (players - 1)))
    table = Tabular(
        seed=draw(st.integers(0, 10**6)),
        states=draw(st.sampled_from([3, 40])),
        actions=draw(st.sampled_from([1, 2, 5, 12])),
        reward_scale=draw(st.sampled_from([0.0, 1.0, 50.0])),
        value_scale=draw(st.sampled_from([1.0, 20.0])),
        levels=draw(st.sampled_from([0, 0, 3])),
        ruled_out=draw(st.sampled_from([0.0, 0.4])),
        discounts=discounts,
    )
    return table, players


options = st.fixed_dictionaries(
    {
        "normalize": st.sampled_from(["node", "tree", None]),
        "discount": st.sampled_from([1.0, 0.997, 0.5, 0.0]),
        "pb_c_init": st.sampled_from([0.0, 1.25, 4.0]),
        "pb_c_base": st.sampled_from([1.0, 19652, 1e300]),
        "in_flight": st.sampled_from([1, 2, 8]),
        "seed": st.integers(0, 2**64 - 1),
    }
)


def legal_in(table: Tabular, number: int) -> list[int]:
    """A subset of the actions in random order, with action 0, whose logit is finite."""
    order = np.argsort(np.random.PCG64(number).random_raw(table.actions), kind="stable").tolist()
    return [0, *[action for action in order if action][: number % table.actions]]


# --- Invariants -------------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(models(), options, st.integers(0, 10**6), st.integers(0, 60), st.booleans(), st.sampled_from([0.0, 1e-9, 1.0]))
def test_muzero_invariants_hold_in_random_models(
    world: tuple[Tabular, int], chosen: dict[str, Any], number: int, simulations: int, noise: bool, temperature: float
) -> None:
    table, players = world
    search = MCTS(table, num_players=players, **chosen)
    legal = legal_in(table, number)
    tree = search.tree(observation=[number % table.states], legal_actions=legal, to_play=players - 1, trace=True)
    search.simulate(tree, simulations, noise)
    result = search.result(tree, temperature)
    check_tree(result, legal)
    assert result.root.to_play == players - 1
    assert sum(result.visits.values()) == result.simulations == simulations
    assert all(math.isfinite(score) for row in tree.trace or [] for step in row["scores"] for _, score in step or [])


@settings(max_examples=40)
@given(models(), options, st.integers(1, 60), st.integers(0, 59))
def test_same_seed_gives_same_tree_in_split_simulations(
    world: tuple[Tabular, int], chosen: dict[str, Any], simulations: int, cut: int
) -> None:
    table, players = world
    traces = []
    # A call ends its last batch early, so with several leaves in flight split calls have other batches.
    for pieces in ([simulations], [min(cut, simulations), simulations - min(cut, simulations)]):
        search = MCTS(table, num_players=players, **chosen | {"in_flight": 1})
        tree = search.tree(None, 3, 4, observation=[0], trace=True)
        for place, piece in enumerate(pieces):
            search.simulate(tree, piece, True if place == 0 and piece else None)
        traces.append(tree.trace or [])
    if 0 < cut < simulations:
        assert first_difference(*traces) is None


@settings(max_examples=60)
@given(
    models(),
    options,
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 10**6), st.booleans(), st.sampled_from([True, False, None])),
        max_size=4,
    ),
)
def test_advance_keeps_statistics_of_subtree(
    world: tuple[Tabular, int], chosen: dict[str, Any], moves: list[tuple[int, int, bool, bool | None]]
) -> None:
    table, players = world
    search = MCTS(table, num_players=players, **chosen)
    tree = search.tree(observation=[1])
    legal = list(range(table.actions))
    for simulations, number, seen, noise in moves:
        search.simulate(tree, simulations, noise)
        check_tree(search.result(tree), legal)
        action = legal[number % len(legal)]
        known = {a: (c.visit_count, c.returns) for a, c in tree.root.children[action].children.items() if c.is_visited}
        turn = tree.root.children[action].to_play if known else None
        legal = legal_in(table, number) if seen else list(range(table.actions))
        root: dict[str, Any] = {"observation": [number % table.states], "legal_actions": legal} if seen else {}
        search.advance(tree, action, **root)
        check_tree(search.result(tree), legal)
        retained = {a: (c.visit_count, c.returns) for a, c in tree.root.children.items() if c.is_visited}
        assert retained == {a: numbers for a, numbers in known.items() if a in legal}
        assert list(retained) == [a for a in known if a in legal], "in the order they were tried"
        assert turn in (None, tree.root.to_play), "whose turn it is, the model has said"
        assert (tree.low, tree.high) == (math.inf, -math.inf), "the bounds are those of the new root"
        assert tree.root.raw_value == (table.value[number % table.states] if seen else tree.root.raw_value)  # type: ignore[attr-defined]
        assert all(child.prior == child.clean_prior for child in tree.root.children.values())


def test_advance_discards_subtree_with_wrong_player_to_move() -> None:
    """The model predicts alternating players, but the same player moves again."""
    search = MCTS(Tabular(5, 20, 3), num_players=2)
    for turn, visits in ((None, 30), (1, 30), (0, 1)):
        tree = search.tree(observation=[0], legal_actions=[2])
        search.simulate(tree, 30)
        search.advance(tree, 2, observation=[4], to_play=turn)
        assert (tree.root.visit_count, tree.root.to_play) == (visits, 1 if turn is None else turn)


def test_tree_of_states_advances_by_game_rules() -> None:
    state = TicTacToe()
    search = MCTS(ExactModel(state), discount=1.0)
    tree = search.tree(state)
    assert (tree.root.players, tree.root.to_play, tree.root.legal_actions()) == (2, 0, state.legal_actions())
    search.simulate(tree, 30)
    search.advance(tree, 4)
    assert tree.root.to_play == 1
    assert tree.root.legal_actions() == state.play(4).legal_actions()
    with pytest.raises(ValueError, match="legal"):
        search.advance(tree, 4)
    with pytest.raises(ValueError, match="num_players"):
        MCTS(ExactModel(state), num_players=2).tree(SimpleNamespace(num_players=1, is_terminal=False))


# --- Names and defaults -----------------------------------------------------------------------------------------------


def test_names_and_defaults_match_specification() -> None:
    config = MCTSConfig()
    assert (config.num_simulations, config.root_dirichlet_alpha, config.root_exploration_fraction) == (50, 0.3, 0.25)
    assert (config.pb_c_base, config.pb_c_init, config.discount, config.num_players) == (19652, 1.25, 0.997, 1)
    assert MuZeroConfig is MCTSConfig
    node = Node(prior=0.5)
    assert (node.prior, node.value_sum, node.visit_count, node.children) == (0.5, 0, 0, {})
    assert (node.hidden_state, node.reward, node.expanded(), node.value()) == (None, 0, False, 0)
    node.value_sum, node.visit_count = 3.0, 4
    assert node.value() == 0.75
    root = RootNode(0, "hidden")
    assert (root.prior, root.hidden_state, root.to_play) == (0, "hidden", 0)


def test_run_accepts_new_and_expanded_roots() -> None:
    """A root expanded by the caller, as in the specification's `select_action`, and an empty one."""
    table = Tabular(3, states=20, actions=5, reward_scale=1.0)
    legal = [4, 0, 2]
    bare = RootNode()
    actions, probabilities = MCTS(table, MCTSConfig()).run(bare, [7], legal)
    assert actions == (4, 0, 2)
    assert sum(probabilities) == pytest.approx(1.0)
    assert [round(50 * p) for p in probabilities] == [bare.children[a].visit_count for a in legal]
    hidden_state, policy, _ = table.initial_inference([[7]])
    masked = np.exp(mask_policy(policy[0], legal))
    prepared = RootNode(0, hidden_state)
    for action in legal:
        prepared.children[action] = Node(prior=float32(float(masked[action] / masked.sum())))
    assert MCTS(table, MCTSConfig()).run(prepared, [7], legal)[0] == actions
    assert prepared.visit_count == bare.visit_count == 51
    search = MCTS(table)
    shares = {tuple(search.run(RootNode(), [7], legal)[1]) for _ in range(5)}
    assert len(shares) > 1, "the calls of an object are numbered"


def test_config_may_be_any_object_with_the_fields() -> None:
    """The specification's class has six fields, without players."""
    own = SimpleNamespace(num_simulations=7, discount=0.5)
    search = MCTS(Tabular(1, states=5, actions=2), own, pb_c_init=2.0)  # type: ignore[arg-type]
    assert (search.config.num_simulations, search.config.discount, search.config.pb_c_init) == (7, 0.5, 2.0)
    assert (search.config.num_players, search.config.pb_c_base) == (1, 19652)


@pytest.mark.parametrize("players", [1, 2])
def test_batched_and_specification_models_give_same_tree(players: int) -> None:
    table = Tabular(8, states=30, actions=4, reward_scale=1.0)
    results = []
    for form in (table, SpecificationForm(table)):
        search = MCTS(form, num_players=players, seed=5)
        tree = search.tree(observation=np.array([9]), legal_actions=[3, 1, 0], trace=True)
        search.simulate(tree, 60, True)
        results.append(tree.trace or [])
    assert first_difference(*results) is None


# --- Invalid input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_simulations", -1),
        ("pb_c_base", 0.0),
        ("pb_c_base", math.nan),
        ("pb_c_init", -0.1),
        ("discount", 1.01),
        ("discount", -0.1),
        ("discount", math.nan),
        ("num_players", 3),
        ("root_dirichlet_alpha", 0.0),
        ("root_exploration_fraction", 1.5),
        ("normalize", "leaf"),
        ("in_flight", 0),
    ],
)
def test_invalid_parameters_raise(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        MCTS(Tabular(0, 5, 2), **{name: value})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (([0], [0.0], [[math.nan, 0.0]], [0.0]), "finite"),
        (([0], [0.0], [[math.inf, 0.0]], [0.0]), "finite"),
        (([0], [0.0], [[-math.inf, -math.inf]], [0.0]), "-inf on every"),
        (([0], [0.0], [[0.0, 0.0, 0.0]], [0.0]), "3 numbers"),
        (([0], [0.0], [0.0], [[0.0, 0.0]]), "value must be one number"),
        (([0], [0.0, 0.0], [[0.0, 0.0]], [0.0]), "reward must be one number"),
        (([0], [math.nan], [[0.0, 0.0]], [0.0]), "reward is nan"),
        (([0], [0.0], [[0.0, 0.0]], [math.inf]), "value is inf"),
        (([0], [0.0], [[0.0, 0.0]], [0.0], [1.5]), "discount is 1.5"),
        (([0], [0.0], [[0.0, 0.0]], [0.0], [-0.5]), "num_players is 1"),
        (([0], [0.0]), "must return"),
        (([0], [0.0], 1.0, [0.0]), "policy_logits"),
    ],
)
def test_invalid_model_output_raises(answer: Any, message: str) -> None:
    network = SimpleNamespace(
        initial_inference=lambda observations: ([0], [[0.0, 0.0]], [0.0]),
        recurrent_inference=lambda hidden_states, actions: answer,
    )
    search = MCTS(network)
    tree = search.tree(observation=[0])
    with pytest.raises(ValueError, match=message):
        search.simulate(tree, 1)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"legal_actions": []}, "empty"),
        ({"legal_actions": [2]}, "from 0 to 1"),
        ({"legal_actions": [1, 1]}, "twice"),
        ({"to_play": 1}, "to_play"),
    ],
)
def test_invalid_root_raises(root: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MCTS(Fixed([0.0, 0.0])).tree(observation=[0], **root)


def test_mask_policy_accepts_boolean_mask() -> None:
    logits = np.array([1.0, 2.0, 3.0])
    assert mask_policy(logits, [True, False, True]).tolist() == [1.0, -math.inf, 3.0]
    assert mask_policy(logits, np.array([False, True, False])).tolist() == [-math.inf, 2.0, -math.inf]
    with pytest.raises(ValueError, match="a mask of 2"):
        mask_policy(logits, [True, False])
    with pytest.raises(TypeError):
        mask_policy(logits, [1.9])


def test_select_action_without_seed_is_random() -> None:
    def select(seed: int | None) -> int:
        return select_action(Bandits(), MCTSConfig(4, num_players=1), np.zeros(1), range(8), 1.0, seed=seed)

    assert len({select(None) for _ in range(40)}) > 1
    assert len({select(3) for _ in range(5)}) == 1


class Bandits:
    """Eight equal actions."""

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        return np.zeros((len(observations), 1)), np.zeros((len(observations), 8)), np.zeros(len(observations))

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, Any, Any, Any]:
        rows = len(hidden_states)
        return hidden_states, np.zeros(rows), np.zeros((rows, 8)), np.zeros(rows)
