"""The MuZero document's own code, word for word after its import lines, on the reference's names."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.specifications.examples import RUN, SELECT_ACTION
from tests.support.search_helpers import after

import pondertree
from pondertree.games import TicTacToe
from pondertree.reference import muzero
from pondertree.reference.muzero import MCTS, MCTSConfig, Node, RootNode, mask_policy

torch = pytest.importorskip("torch")

CONFIG = """
class MCTSConfig:
    def __init__(self):
        self.num_simulations = 50  # Number of MCTS simulations per move
        self.root_dirichlet_alpha = 0.3  # Dirichlet noise parameter
        self.root_exploration_fraction = 0.25  # Fraction of noise to apply
        self.pb_c_base = 19652  # PUCT constant
        self.pb_c_init = 1.25  # PUCT constant
        self.discount = 0.997  # Discount factor
"""

LINES = torch.tensor([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)])


class ExactTicTacToe(torch.nn.Module):  # type: ignore[misc, name-defined]
    """An exact model of tic-tac-toe in the document's form: tensors without a batch axis.

    The hidden state is the board from the perspective of the player to move, and whether the game is over; ends are
    absorbing, with reward 0.
    """

    def __init__(self, num_players: int | None = None, dtype: Any = torch.float32) -> None:
        super().__init__()
        self.num_players = num_players
        self.preference = torch.nn.Parameter(torch.zeros(9, dtype=dtype))

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        seen = torch.as_tensor(observation)
        hidden = torch.cat([(seen[0] - seen[1]).reshape(9), torch.zeros(1)])
        return hidden, *self.prediction(hidden)

    def recurrent_inference(self, hidden_state: Any, action: Any) -> tuple[Any, Any]:
        if hidden_state[9] or hidden_state[action] != 0:
            return torch.cat([hidden_state[:9], torch.ones(1)]), torch.tensor(0.0)
        board = hidden_state[:9].clone()
        board[action] = 1.0
        won = bool((board[LINES].sum(dim=1) == 3).any())
        over = won or bool((board != 0).all())
        return torch.cat([-board, torch.tensor([float(over)])]), torch.tensor(float(won))

    def prediction(self, hidden_state: Any) -> tuple[Any, Any]:
        taken = (hidden_state[:9] != 0).to(self.preference.dtype)
        return self.preference - 30.0 * taken, torch.tensor(0.0)


MUST_BLOCK = [([0, 4, 1], 2), ([0, 8, 3], 6), ([4, 0, 2], 6), ([8, 4, 5], 2), ([4, 8, 1], 7), ([0, 4, 8, 2, 3], 6)]


# --- select_action ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_select_action_of_the_document_runs_unchanged(dtype: Any) -> None:
    names: dict[str, Any] = {}
    exec(CONFIG, names)
    space = {"torch": torch, "np": np, "RootNode": RootNode, "Node": Node, "MCTS": MCTS, "mask_policy": mask_policy}
    exec(SELECT_ACTION.text, space)
    select_action, network = space["select_action"], ExactTicTacToe(2, dtype)
    state = after(TicTacToe(), [0, 3, 1, 4])
    for config in (names["MCTSConfig"](), MCTSConfig()):
        chosen = select_action(network, config, state.observation(), state.legal_actions(), temperature=0)
        assert chosen == 2
        np.random.seed(1)
        drawn = [select_action(network, config, state.observation(), state.legal_actions()) for _ in range(3)]
        assert set(drawn) <= set(state.legal_actions())


def test_run_of_the_document_runs_on_the_steps_of_the_reference() -> None:
    """Its loop, with `_select_child`, `_expand_node`, `_backup` and the others as the reference has them."""
    space: dict[str, Any] = {}
    exec(textwrap.dedent(RUN.text), space)
    network = ExactTicTacToe(2)
    state = after(TicTacToe(), [0, 3, 1, 4])
    mcts = MCTS(network, MCTSConfig(num_simulations=60, discount=1.0), seed=1)
    root = RootNode(0, network.initial_inference(state.observation())[0])
    mcts._expand_node(root, network.prediction(root.hidden_state)[0], state.legal_actions())
    root.players = 2
    actions, probabilities = space["run"](mcts, root, state.observation(), state.legal_actions())
    assert list(actions) == state.legal_actions()
    assert sum(probabilities) == pytest.approx(1.0)
    assert actions[int(np.argmax(probabilities))] == 2
    assert root.visit_count == 60 == sum(child.visit_count for child in root.children.values())
    child = root.children[2]
    assert (child.to_play, child.reward.item(), child.discount) == (1, 1.0, 1.0)


# --- Its steps, by hand -------------------------------------------------------------------------------------------


class Constant:
    """A model of one player: every action has the same prior."""

    num_players = 1

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        return np.zeros(1), [[0.0, 0.0, 0.0]], [0.0]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        return np.zeros(1), [0.0], [[0.0, 0.0, 0.0]], [0.0]


def document_score(config: Any, parent: Node, child: Node) -> float:
    """`_ucb_score` of the document, word for word."""
    pb_c = math.log((parent.visit_count + config.pb_c_base + 1) / config.pb_c_base) + config.pb_c_init
    pb_c *= math.sqrt(parent.visit_count) / (child.visit_count + 1)

    prior_score = pb_c * child.prior
    value_score = child.value()

    return prior_score + value_score


def grown(rewards: Sequence[float], discount: float, players: int) -> tuple[MCTS, Node]:
    class Pays(Constant):
        num_players = players

        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            action = int(actions[0])
            return np.zeros(1), [rewards[action]], [[0.5 * action, 0.0, -0.5]], [0.25 * action - 0.25]

    mcts = MCTS(Pays(), MCTSConfig(discount=discount), normalize=None, seed=2)
    tree = mcts.tree(observation=[0.0])
    mcts.simulate(tree, 80)
    return mcts, tree.root


def visited_edges(root: Node) -> list[tuple[Node, Node]]:
    found, nodes = [], [root]
    for node in nodes:
        below = [child for child in node.children.values() if child.visit_count]
        found += [(node, child) for child in below]
        nodes += below
    return found


def test_normalize_none_scores_as_the_document_with_one_player_and_no_rewards() -> None:
    mcts, root = grown([0.0, 0.0, 0.0], 1.0, 1)
    edges = visited_edges(root)
    assert len(edges) == 80
    for parent, child in edges:
        assert mcts._ucb_score(parent, child) == pytest.approx(document_score(mcts.config, parent, child), abs=1e-12)


@pytest.mark.parametrize(("discount", "players"), [(0.997, 1), (0.5, 1), (1.0, 2), (0.9, 2)])
def test_normalize_none_differs_from_the_document_by_reward_discount_and_player(discount: float, players: int) -> None:
    """What it chooses by is reward + discount * value for the chooser; the document's is the value of the child."""
    mcts, root = grown([0.0, 0.5, -1.0], discount, players)
    sign = 1.0 if players == 1 else -1.0
    for parent, child in visited_edges(root):
        difference = mcts._ucb_score(parent, child) - document_score(mcts.config, parent, child)
        expected = child.reward + discount * sign * child.value() - child.value()
        assert difference == pytest.approx(expected, abs=1e-12)
        if child.visit_count == 1 and child.reward == 0.5:
            assert abs(difference) > 0.1


def test_select_child_takes_the_highest_score() -> None:
    mcts = MCTS(Constant(), normalize=None, pb_c_init=2.0)
    root = RootNode()
    mcts._expand_node(root, [1.0, 0.0, 2.0], [2, 0])
    root.visit_count = 4
    assert list(root.children) == [2, 0]
    assert mcts._select_child(root) == (2, root.children[2])
    root.children[2].visit_count, root.children[2].returns = 3, -6.0
    exploration = (math.log((4 + 19653) / 19652) + 2.0) * 2.0
    prior = root.children[0].prior
    assert mcts._ucb_score(root, root.children[0]) == pytest.approx(exploration * prior)
    assert mcts._ucb_score(root, root.children[2]) == pytest.approx(-2.0 + exploration * root.children[2].prior / 4)
    assert mcts._select_child(root) == (0, root.children[0])


def test_expand_node_masks_and_softmaxes_tensors() -> None:
    mcts, node = MCTS(Constant()), Node(1.0)
    mcts._expand_node(node, torch.tensor([0.0, math.log(3.0), 5.0], requires_grad=True), [0, 1])
    assert {action: child.prior for action, child in node.children.items()} == pytest.approx({0: 0.25, 1: 0.75})
    with pytest.raises(ValueError, match="legal_actions"):
        mcts._expand_node(Node(1.0), [0.0, 1.0], [2])


def test_backup_adds_rewards_and_discounts_on_the_way() -> None:
    """Two actions that pay 1 and 3, a leaf worth 8, discount 1/2: 8, then 3 + 4 = 7, then 1 + 3.5 = 4.5."""
    mcts = MCTS(Constant(), discount=0.5)
    root = RootNode()
    mcts._expand_node(root, [0.0], [0])
    child = root.children[0]
    mcts._expand_node(child, [0.0], [0])
    leaf = child.children[0]
    mcts._expand_node(leaf, [0.0], [0])
    child.reward, leaf.reward = 1.0, torch.tensor(3.0)
    mcts._backup([root, child, leaf], torch.tensor([8.0]))
    assert [node.value_sum for node in (leaf, child, root)] == [8.0, 7.0, 4.5]
    assert [node.visit_count for node in (leaf, child, root)] == [1, 1, 1]
    assert (leaf.returns, child.returns) == (7.0, 4.5)


def test_backup_negates_values_where_the_turn_passes() -> None:
    mcts = MCTS(Constant(), MCTSConfig(discount=1.0, num_players=2))
    root = RootNode()
    root.players = 2
    mcts._expand_node(root, [0.0], [0])
    child = root.children[0]
    mcts._expand_node(child, [0.0], [0])
    mcts._backup([root, child], 0.75)
    assert (child.to_play, child.value(), root.value(), child.returns) == (1, 0.75, -0.75, -0.75)


def test_exploration_noise_and_distributions() -> None:
    mcts, root = MCTS(Constant(), root_exploration_fraction=0.25, seed=4), RootNode()
    mcts._expand_node(root, [0.0, 0.0, 0.0], [2, 0])
    mcts._add_exploration_noise(root)
    priors = {action: child.prior for action, child in root.children.items()}
    assert sum(priors.values()) == pytest.approx(1.0)
    assert all(prior >= 0.75 * 0.5 - 1e-6 for prior in priors.values())
    mcts._add_exploration_noise(root)
    assert priors != {action: child.prior for action, child in root.children.items()}, "drawn anew"
    assert all(child.clean_prior == 0.5 for child in root.children.values())
    root.children[2].visit_count, root.children[0].visit_count = 3, 1
    assert mcts._get_distributions(root) == ((2, 0), [0.75, 0.25])


# --- mask_policy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_mask_policy_keeps_gradient_type_and_device(dtype: Any) -> None:
    policy = torch.tensor([0.5, 2.0, -1.0, 3.0], dtype=dtype, requires_grad=True)
    masked = mask_policy(policy, [3, 0])
    assert (masked.dtype, masked.device, masked.shape) == (dtype, policy.device, policy.shape)
    assert masked.tolist() == [0.5, -math.inf, -math.inf, 3.0]
    torch.softmax(masked, dim=0)[3].backward()
    assert policy.grad is not None
    assert policy.grad[0] < 0 < policy.grad[3]
    assert policy.grad[1] == policy.grad[2] == 0
    assert policy.tolist() == [0.5, 2.0, -1.0, 3.0], "the caller's own stays as it is"


def test_mask_policy_takes_rows_and_integers() -> None:
    assert mask_policy(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), [1]).tolist() == [[-math.inf, 2.0], [-math.inf, 4.0]]
    assert mask_policy(torch.tensor([1, 2]), [1]).tolist() == [-math.inf, 2.0]
    masked = mask_policy(np.array([[1.0, 2.0]], dtype=np.float16), [0])
    assert isinstance(masked, np.ndarray)
    assert (masked.dtype, masked.tolist()) == (np.float16, [[1.0, -math.inf]])
    for legal, words in (([], "empty"), ([2], "from 0 to 1"), ([0, 0], "twice")):
        with pytest.raises(ValueError, match=words):
            mask_policy(torch.tensor([1.0, 2.0]), legal)
    assert MCTS(Constant())._mask_policy([1.0, 2.0], [1]).tolist() == [-math.inf, 2.0]


# --- How many players ---------------------------------------------------------------------------------------------


each_door = pytest.mark.parametrize(
    "select_action", [pondertree.select_action, muzero.select_action], ids=["engine", "reference"]
)


@each_door
@pytest.mark.parametrize(("moves", "block"), MUST_BLOCK)
def test_must_blocks_are_found_when_the_model_says_two_players(
    select_action: Any, moves: list[int], block: int
) -> None:
    """With the default configuration: an exact model alone decides."""
    state = after(TicTacToe(), moves)
    config = MCTSConfig()
    config.num_simulations = 200
    chosen = select_action(ExactTicTacToe(2), config, state.observation(), state.legal_actions(), 0, False, seed=1)
    assert chosen == block


@each_door
def test_unknown_number_of_players_warns_once_and_assumes_one(select_action: Any) -> None:
    state = after(TicTacToe(), MUST_BLOCK[0][0])
    with pytest.warns(pondertree.PlayerCountWarning, match="num_players") as caught:
        select_action(ExactTicTacToe(), MCTSConfig(), state.observation(), state.legal_actions(), 0)
    assert [warning.filename for warning in caught] == [__file__]
    for config in (MCTSConfig(num_players=1), MCTSConfig(num_players=2)):
        select_action(ExactTicTacToe(), config, state.observation(), state.legal_actions(), 0)


def test_configuration_keeps_one_player_as_its_default() -> None:
    config = MCTSConfig()
    assert config.num_players == 1
    assert isinstance(config.num_players, int)
    assert repr(config).endswith("num_players=1)")
    assert config == MCTSConfig(num_players=1)


def test_state_root_sets_num_players() -> None:
    for moves, block in MUST_BLOCK:
        state = after(TicTacToe(), moves)
        config = MCTSConfig(num_simulations=200)
        assert (
            pondertree.select_action(ExactTicTacToe(), config, state, state.legal_actions(), 0, False, seed=1) == block
        )


@pytest.mark.parametrize("preset", [pondertree.MuZero, pondertree.Gumbel])
def test_presets_warn_once_of_bare_observations_without_a_number_of_players(preset: Any) -> None:
    state = after(TicTacToe(), MUST_BLOCK[0][0])
    told = {"observation": state.observation(), "legal_actions": state.legal_actions()}
    search = preset(ExactTicTacToe(), num_simulations=8, seed=1)
    with pytest.warns(pondertree.PlayerCountWarning, match="num_players=2") as caught:
        search.run(**told)
    assert [warning.filename for warning in caught] == [__file__]
    search.run(**told)
    for silent in (
        preset(ExactTicTacToe(), num_simulations=8, num_players=1),
        preset(ExactTicTacToe(2), num_simulations=8),
    ):
        silent.run(**told)
        silent.tree(**told)
    preset(ExactTicTacToe(), num_simulations=8).run(state)  # a state says it itself


def test_number_of_players_is_found_in_adapters_and_checked() -> None:
    from pondertree.models import TorchModel

    assert pondertree.MuZero(TorchModel(ExactTicTacToe(2), "cpu")).num_players == 2
    for wrong in (0, 3, "two"):
        with pytest.raises(pondertree.InvalidArgumentError, match="num_players of the model"):
            pondertree.MuZero(ExactTicTacToe(wrong))  # type: ignore[arg-type]
