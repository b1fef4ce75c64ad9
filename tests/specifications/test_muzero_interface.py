"""MuZero chess: expansion, masking, backup, noise, `select_action`, `MCTSConfig` and the considerations."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from tests.specifications.examples import SELECT_ACTION
from tests.specifications.support import DocumentModel
from tests.support.exact_models import ExactBatchModel
from tests.support.search_helpers import after

import pondertree
from pondertree import MuZero, select_action
from pondertree.games import Chess, TicTacToe
from pondertree.reference import muzero
from pondertree.reference.latent_world import Node, RootNode
from pondertree.reference.muzero import MCTS, MCTSConfig, mask_policy

OBSERVATION = np.array([5.0])
SELECT = {"engine": select_action, "reference": muzero.select_action}
each_select = pytest.mark.parametrize("select", SELECT.values(), ids=SELECT)


def softmax(logits: Any) -> list[float]:
    weights = [math.exp(logit) for logit in logits]
    return [weight / sum(weights) for weight in weights]


# --- Expansion and masking ----------------------------------------------------------------------------------------


def test_expand_node_takes_node_policy_and_legal_actions() -> None:
    node = RootNode(0, "hidden")
    MCTS(DocumentModel(), MCTSConfig())._expand_node(node, np.zeros(4), [1, 2])
    assert node.expanded()


def test_expand_node_masks_illegal_actions() -> None:
    node = RootNode(0, "hidden")
    MCTS(DocumentModel(), MCTSConfig())._expand_node(node, np.array([9.0, 1.0, 2.0, 9.0]), [1, 2])
    assert sum(child.prior for child in node.children.values()) == pytest.approx(1.0)


def test_expand_node_priors_are_the_softmax() -> None:
    node = RootNode(0, "hidden")
    MCTS(DocumentModel(), MCTSConfig())._expand_node(node, np.array([9.0, 1.0, 2.0, 9.0]), [1, 2])
    assert [node.children[action].prior for action in (1, 2)] == pytest.approx(softmax([1.0, 2.0]))
    root = MuZero(DocumentModel(), 1).run(observation=OBSERVATION, legal_actions=[1, 2]).root
    expected = softmax(DocumentModel().policy_of(5.0)[[1, 2]])
    assert [root.children[action].prior for action in (1, 2)] == pytest.approx(expected)


def test_expand_node_creates_a_child_for_each_legal_action() -> None:
    node = RootNode(0, "hidden")
    MCTS(DocumentModel(), MCTSConfig())._expand_node(node, np.zeros(4), [3, 0])
    assert list(node.children) == [3, 0]
    assert all(type(child) is Node for child in node.children.values())


def test_mask_policy_takes_policy_and_legal_actions() -> None:
    search = MCTS(DocumentModel(), MCTSConfig())
    policy = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    assert np.array_equal(search._mask_policy(policy, [0, 2]), mask_policy(policy, [0, 2]))


def test_mask_is_minus_infinity_in_every_precision() -> None:
    """-1e32 is no number of half precision; minus infinity is, and its softmax is 0."""
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        masked = mask_policy(torch.tensor([1.0, 2.0, 3.0], dtype=dtype), [0, 2])
        assert masked.dtype == dtype
        assert masked[1] == -math.inf
        assert torch.softmax(masked, dim=0)[1] == 0.0
    with pytest.raises(ValueError, match="empty"):
        mask_policy(np.zeros(3), [])


def test_mask_keeps_legal_logits_with_their_gradient() -> None:
    torch = pytest.importorskip("torch")
    policy = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    masked = mask_policy(policy, [0, 2])
    assert masked[[0, 2]].tolist() == [1.0, 3.0]
    masked[[0, 2]].sum().backward()
    assert policy.grad.tolist() == [1.0, 0.0, 1.0]


# --- Backup -------------------------------------------------------------------------------------------------------


def path_of_nodes(rewards: list[float], players: int = 1) -> list[Any]:
    """A path from a root, with the reward of each action; players alternate if there are two."""
    path: list[Any] = [RootNode(0, "hidden")]
    for depth, reward in enumerate(rewards, start=1):
        node = Node(1.0)
        node.reward, node.parent, node.to_play, node.discount = reward, path[-1], depth % players, 0.5
        path.append(node)
    return path


def test_backup_goes_from_the_leaf_to_the_root() -> None:
    path = path_of_nodes([0.0, 0.0])
    MCTS(DocumentModel(), discount=0.5)._backup(path, 8.0)
    assert [node.value_sum for node in path] == [2.0, 4.0, 8.0]


def test_backup_adds_the_value_before_the_reward() -> None:
    """The reward of the action that leads to a node is no part of the node's own value."""
    path = path_of_nodes([0.0, 100.0])
    MCTS(DocumentModel(), discount=0.5)._backup(path, 8.0)
    assert path[2].value_sum == 8.0
    assert path[1].value_sum == 100.0 + 0.5 * 8.0


def test_backup_adds_one_visit() -> None:
    path = path_of_nodes([0.0, 0.0, 0.0])
    MCTS(DocumentModel(), discount=0.5)._backup(path, 1.0)
    assert [node.visit_count for node in path] == [1, 1, 1, 1]


def test_backup_discounts_and_turns_the_sign_with_the_player() -> None:
    """One player: reward + discount * value, as written. Two: the value is negated where the turn passes."""
    one = path_of_nodes([3.0, 1.0])
    MCTS(DocumentModel(), discount=0.5)._backup(one, 8.0)
    assert [node.value_sum for node in one] == [3.0 + 0.5 * (1.0 + 0.5 * 8.0), 1.0 + 0.5 * 8.0, 8.0]
    two = path_of_nodes([3.0, 1.0], players=2)
    MCTS(DocumentModel(), discount=0.5, num_players=2)._backup(two, 8.0)
    assert [node.value_sum for node in two] == [3.0 - 0.5 * (1.0 - 0.5 * 8.0), 1.0 - 0.5 * 8.0, 8.0]


# --- Noise and distributions --------------------------------------------------------------------------------------


def noisy_root(config: MCTSConfig, actions: int = 4) -> RootNode:
    root = RootNode(0, "hidden")
    search = MCTS(DocumentModel(), config)
    search._expand_node(root, np.zeros(actions), list(range(actions)))
    search._add_exploration_noise(root)
    return root


def test_noise_covers_the_actions_of_the_node() -> None:
    root = noisy_root(MCTSConfig())
    assert all(child.prior != child.clean_prior for child in root.children.values())
    assert sum(child.prior for child in root.children.values()) == pytest.approx(1.0)


def test_noise_is_a_dirichlet_sample_with_alpha() -> None:
    """With all of the fraction the priors are the noise: variance (1/4)(3/4) / (4 alpha + 1)."""
    for alpha in (0.3, 4.0):
        search = MCTS(DocumentModel(), root_dirichlet_alpha=alpha, root_exploration_fraction=1.0)
        drawn = []
        for _ in range(1500):
            root = RootNode(0, "hidden")
            search._expand_node(root, np.zeros(4), [0, 1, 2, 3])
            search._add_exploration_noise(root)
            drawn.append([child.prior for child in root.children.values()])
        assert np.var(drawn) == pytest.approx((1 / 4) * (3 / 4) / (4 * alpha + 1), rel=0.12)


def test_noise_has_the_exploration_fraction() -> None:
    for fraction in (0.0, 0.25, 1.0):
        root = noisy_root(MCTSConfig(root_exploration_fraction=fraction))
        assert all(child.prior >= 0.25 * (1 - fraction) - 1e-7 for child in root.children.values())
        assert (max(child.prior for child in root.children.values()) > 0.2501) == (fraction > 0)


def test_noise_is_mixed_linearly() -> None:
    """The same noise with fractions 1 and 1/4: prior * (1 - frac) + n * frac."""
    noise, mixed = (noisy_root(MCTSConfig(root_exploration_fraction=fraction)) for fraction in (1.0, 0.25))
    for action, child in mixed.children.items():
        assert child.prior == pytest.approx(0.25 * (1 - 0.25) + noise.children[action].prior * 0.25)


def visited_root() -> RootNode:
    root = RootNode(0, "hidden")
    MCTS(DocumentModel(), MCTSConfig())._expand_node(root, np.zeros(4), [3, 1, 0])
    for action, visits in ((3, 6), (1, 3), (0, 1)):
        root.children[action].visit_count = visits
    return root


def test_distributions_are_over_the_actions_of_the_root() -> None:
    actions, probabilities = MCTS(DocumentModel(), MCTSConfig())._get_distributions(visited_root())
    assert actions == (3, 1, 0)
    assert len(probabilities) == 3


def test_distributions_sum_to_one() -> None:
    assert sum(MCTS(DocumentModel(), MCTSConfig())._get_distributions(visited_root())[1]) == pytest.approx(1.0)


def test_distributions_are_shares_of_visits() -> None:
    probabilities = MCTS(DocumentModel(), MCTSConfig())._get_distributions(visited_root())[1]
    assert probabilities == pytest.approx([0.6, 0.3, 0.1])
    result = MuZero(DocumentModel(), 50, seed=1).run(observation=OBSERVATION)
    assert result.policy == pytest.approx(result.visits / 50)


def test_distributions_are_returned_as_actions_and_probabilities() -> None:
    answer = MCTS(DocumentModel(), MCTSConfig())._get_distributions(visited_root())
    assert isinstance(answer, tuple)
    assert [type(part) for part in answer] == [tuple, list]


# --- select_action ------------------------------------------------------------------------------------------------


@each_select
def test_select_action_signature(select: Any) -> None:
    parameters = inspect.signature(select).parameters
    assert list(parameters)[:5] == ["network", "config", "observation", "legal_actions", "temperature"]
    assert parameters["temperature"].default == 1.0
    assert select(DocumentModel(), MCTSConfig(), OBSERVATION, [2, 1]) in (1, 2)


class Recorded(DocumentModel):
    """A model that records the observations it is asked about."""

    seen: list[Any] = []  # noqa: RUF012

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        self.seen.append(np.asarray(observation).tolist())
        return super().initial_inference(observation)


@each_select
def test_select_action_asks_for_the_root_once(select: Any) -> None:
    Recorded.seen.clear()
    select(Recorded(), MCTSConfig(), OBSERVATION, [0, 1])
    assert Recorded.seen.count([5.0]) == 1, "beside it the engine tries once whether the model takes batches"


def test_select_action_makes_a_root_node() -> None:
    root = RootNode(0, 5.0)
    MCTS(DocumentModel(), MCTSConfig()).run(root, OBSERVATION, [0, 1])
    assert (root.prior, root.hidden_state) == (0, 5.0)


def run_document(network: Any, temperature: float, legal: Any, seed: int = 0) -> Any:
    """The document's own `select_action`, unchanged, on the names of the reference."""
    torch = pytest.importorskip("torch")
    names: dict[str, Any] = {"torch": torch, "np": np, "mask_policy": mask_policy}
    names |= {"RootNode": RootNode, "Node": Node, "MCTS": MCTS}
    exec(SELECT_ACTION.text, names)
    np.random.seed(seed)
    return names["select_action"](network, MCTSConfig(), OBSERVATION, legal, temperature)


class TorchModel(DocumentModel):
    """The model with tensors for answers."""

    def policy_of(self, hidden: float) -> Any:
        torch = pytest.importorskip("torch")
        return torch.tensor(super().policy_of(hidden))


def test_select_action_masks_illegal_actions() -> None:
    chosen = {run_document(TorchModel(), 1.0, [1, 3], seed) for seed in range(12)}
    assert chosen == {1, 3}


def test_select_action_softmax_runs_as_written() -> None:
    assert run_document(TorchModel(), 0, [0, 1, 2, 3]) in range(4)


def test_select_action_expands_the_root_with_priors() -> None:
    """A root with the children of the caller is searched with their priors."""
    root = RootNode(0, 5.0)
    for action, prior in ((0, 0.99), (1, 0.01)):
        root.children[action] = Node(prior=prior)
    MCTS(DocumentModel(value=0.0), num_simulations=20).run(root, OBSERVATION, [0, 1], add_noise=False)
    assert root.children[0].visit_count > 15


def test_select_action_runs_the_search() -> None:
    torch_free = DocumentModel()
    actions, probabilities = MCTS(torch_free, MCTSConfig()).run(RootNode(), OBSERVATION, [0, 1, 2])
    assert len(torch_free.recurrent) == 50
    assert actions == (0, 1, 2)
    assert sum(probabilities) == pytest.approx(1.0)


@each_select
def test_select_action_greedy_takes_the_most_visited(select: Any) -> None:
    policy = MuZero(DocumentModel(), seed=0).run(observation=OBSERVATION).policy
    chosen = select(DocumentModel(), MCTSConfig(), OBSERVATION, [0, 1, 2, 3], 0, False, seed=0)
    assert chosen == int(np.argmax(policy))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_select_action_draws_by_the_power_of_the_inverse_temperature(temperature: float) -> None:
    root = MuZero(DocumentModel(), seed=0).run(observation=OBSERVATION)
    powers = root.policy ** (1 / temperature)
    expected = powers / powers.sum()
    assert root.policy_at(temperature) == pytest.approx(expected)
    config = MCTSConfig()
    drawn = [
        select_action(DocumentModel(), config, OBSERVATION, [0, 1, 2, 3], temperature, False, seed=seed)
        for seed in range(120)
    ]
    assert np.bincount(drawn, minlength=4) / 120 == pytest.approx(expected, abs=0.15)


# --- MCTSConfig ---------------------------------------------------------------------------------------------------


DEFAULTS = {
    "num_simulations": 50,
    "root_dirichlet_alpha": 0.3,
    "root_exploration_fraction": 0.25,
    "pb_c_base": 19652,
    "pb_c_init": 1.25,
    "discount": 0.997,
}


def test_config_is_made_without_arguments() -> None:
    config = pondertree.MCTSConfig()
    config.num_simulations = 800
    assert config.num_simulations == 800
    assert pondertree.MCTSConfig is MCTSConfig


@pytest.mark.parametrize("field", DEFAULTS)
def test_config_field_has_its_default(field: str) -> None:
    assert getattr(MCTSConfig(), field) == DEFAULTS[field]
    assert getattr(MuZero(DocumentModel()), field) == DEFAULTS[field]


# --- Implementation Plan, Key Considerations ----------------------------------------------------------------------


@pytest.mark.parametrize(("moves", "best"), [([0, 3, 1, 4], 2), ([0, 4, 1], 2)], ids=["win", "block"])
def test_simple_scenarios_win_and_block_in_an_exact_model(moves: list[int], best: int) -> None:
    state = after(TicTacToe(), moves)
    result = MuZero(ExactBatchModel([state]), 400, discount=1.0, num_players=2, seed=1).run(state)
    assert result.action == best


def test_model_is_never_asked_twice_about_the_same_step() -> None:
    model = DocumentModel()
    MuZero(model, 200, seed=1).run(observation=OBSERVATION)
    assert len(model.recurrent) == 200


def test_search_scales_with_the_number_of_simulations() -> None:
    for simulations in (0, 1, 2, 25, 600):
        result = MuZero(DocumentModel(), simulations or 1, seed=1).run(observation=OBSERVATION)
        assert result.visits.sum() == max(simulations, 1)
        assert result.policy.sum() == pytest.approx(1.0)


def test_scores_stay_finite_when_all_values_are_equal() -> None:
    for normalize in ("node", "tree", None):
        result = MuZero(DocumentModel(value=0.0), 60, normalize=normalize, seed=1).run(observation=OBSERVATION)
        assert np.isfinite(result.q[result.visits > 0]).all()
        assert result.policy.sum() == pytest.approx(1.0)


def test_chess_state_brings_its_legal_moves() -> None:
    class ChessModel(DocumentModel):
        def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
            assert np.asarray(observation).shape == (119, 8, 8)
            return 5.0, np.zeros(4672), 0.0

        def policy_of(self, hidden: float) -> Any:
            return np.zeros(4672)

    state = Chess()
    result = MuZero(ChessModel(num_players=2), 30, seed=1).run(state)
    assert set(np.flatnonzero(result.visits)) <= set(state.legal_actions())
    assert result.action in state.legal_actions()
