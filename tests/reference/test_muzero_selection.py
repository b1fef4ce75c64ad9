"""Selection of the MuZero reference, and each trap of its specification."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.golden.tabular import Tabular
from tests.support.muzero import Fixed, nodes_of

from pondertree.games import Chess
from pondertree.reference.muzero import (
    MCTS,
    MCTSConfig,
    RootNode,
    mask_policy,
    select_action,
)

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


# --- Selection --------------------------------------------------------------------------------------------------------


def test_puct_scores_match_hand_computed_values() -> None:
    """Priors 3/4, 1/4 and 0, visits 3, 1 and 0, values 1 and 4."""
    tree = MCTS(Fixed(np.log([0.75, 0.25]))).tree(observation=[0])
    root = tree.root
    root.expand({0: 0.75, 1: 0.25, 2: 0.0}, 3)
    root.visit_count, root.raw_value = 5, 8.0
    for action, visits, total in ((0, 3, 3.0), (1, 1, 4.0)):
        root.children[action].visit_count, root.children[action].returns = visits, total
    tree.low, tree.high = -1.0, 7.0
    explore = (math.log((5 + 19653) / 19652) + 1.25) * math.sqrt(5)

    def scores(normalize: str | None) -> list[float]:
        return list(MCTS(Fixed([0.0]), normalize=normalize)._ucb_scores(tree, root).values())

    shares = [explore * 0.75 / 4, explore * 0.25 / 2]
    assert scores(None) == pytest.approx([1.0 + shares[0], 4.0 + shares[1], 0.0])
    assert scores("tree") == pytest.approx([2 / 8 + shares[0], 5 / 8 + shares[1], 0.0])
    # The value of the node is (8 + 3 + 4) / 5 = 3: its actions have the minimum and the maximum.
    assert scores("node") == pytest.approx([shares[0], 1.0 + shares[1], 0.0])
    root.raw_value = 38.0  # Now the value of the node is 9.
    assert scores("node") == pytest.approx([shares[0], 3 / 8 + shares[1], 0.0])
    tree.low = tree.high = 5.0
    assert scores("tree") == scores(None), "nothing to scale by yet"


def test_leaf_in_flight_counts_as_visit_without_loss() -> None:
    search = MCTS(Fixed([0.0, 0.0]), normalize=None)
    tree = search.tree(observation=[0])
    search.simulate(tree, 1)
    child = next(iter(tree.root.children.values()))
    child.returns = 0.75
    before = search._ucb_scores(tree, tree.root)
    tree.root.in_flight = child.in_flight = 2
    after = search._ucb_scores(tree, tree.root)
    explore = (math.log((4 + 19653) / 19652) + 1.25) * math.sqrt(4)
    assert child.action is not None
    assert after[child.action] == pytest.approx(0.75 + explore * 0.5 / 4)
    assert after[child.action] < before[child.action]


def test_ties_are_broken_at_random() -> None:
    tried = []
    for seed in range(200):
        search = MCTS(Fixed([0.0] * 4, [0.0] * 4, [0.0] * 4), seed=seed)
        tree = search.tree(observation=[0])
        search.simulate(tree, 1)
        tried.append(next(iter(tree.root.children)))
    assert all(30 < tried.count(action) < 70 for action in range(4)), "each of four about 50 times"


# --- Traps ------------------------------------------------------------------------------------------------------------


def visits_after(network: Any, simulations: int = 100, **chosen: Any) -> dict[int, int]:
    search = MCTS(network, **chosen)
    tree = search.tree(observation=[0])
    search.simulate(tree, simulations)
    return search.result(tree).visits


@pytest.mark.parametrize(("players", "sign"), [(1, 1.0), (2, -1.0)])
def test_sign_depends_on_player_to_move(players: int, sign: float) -> None:
    """A position that is good for its player to move is bad for the opponent who moved there."""
    network = Fixed([0.0, 0.0], values=(0.75, -0.5))
    search = MCTS(network, num_players=players, discount=0.5)
    for action, value in enumerate(network.values):
        tree = search.tree(observation=[0], legal_actions=[action])
        search.simulate(tree, 1)
        child = tree.root.children[action]
        assert (child.value(), child.returns, child.to_play) == (value, sign * 0.5 * value, players - 1)
        assert tree.root.value_sum == sign * 0.5 * value
        grown = nodes_of(tree.root)
        search.simulate(tree, 1)
        (grandchild,) = [node for node in nodes_of(tree.root) if node not in grown]
        assert grandchild.to_play == 0
        assert child.returns == pytest.approx(sign * 0.5 * value + 0.25 * grandchild.raw_value)


def test_reward_counts_in_selection() -> None:
    """In the MuZero specification it is added to the sum of the parent only."""
    visits = visits_after(Fixed([0.0, 0.0], rewards=(0.0, 1.0)), discount=0.5)
    assert visits[1] > 2 * visits[0]


@pytest.mark.parametrize("normalize", ["node", "tree"])
def test_normalisation_keeps_priors_relevant_for_large_rewards(normalize: str) -> None:
    """Scaling all rewards does not change the tree."""
    cents, millions = (
        visits_after(Tabular(4, 20, 4, reward_scale=size, value_scale=size), normalize=normalize)
        for size in (2.0**-7, 2.0**20)
    )
    assert cents == millions
    assert sum(n > 0 for n in millions.values()) > 1


def test_normalisation_of_equal_values_is_finite() -> None:
    for normalize in ("node", "tree", None):
        visits = visits_after(Fixed([0.0, 0.0]), normalize=normalize)
        assert visits == {0: 50, 1: 50}


def test_first_selection_follows_priors() -> None:
    """With N = 0 at the root all scores would be 0, and the first action of the dict would be selected."""
    for best in range(3):
        logits = [0.0] * 3
        logits[best] = 1.0
        assert visits_after(Fixed(logits, [0.0] * 3, [0.0] * 3), 1)[best] == 1


def test_only_root_is_masked() -> None:
    search = MCTS(Tabular(2, 30, 6))
    tree = search.tree(observation=[0], legal_actions=[5, 2])
    search.simulate(tree, 60)
    root, *below = nodes_of(tree.root)
    assert set(root.children) == {2, 5}
    assert all(sorted(node.children) == list(range(6)) for node in below)
    assert {child for node in below for child, each in node.children.items() if each.visit_count} > {2, 5}


def test_root_noise_is_optional_and_on_legal_actions() -> None:
    table = Tabular(2, 30, 6)
    search = MCTS(table, seed=3)
    tree = search.tree(observation=[0], legal_actions=[5, 2, 3])
    search.simulate(tree, 5, True)
    children = tree.root.children.values()
    assert sum(abs(child.prior - 0.75 * child.clean_prior) for child in children) == pytest.approx(0.25, abs=1e-6)
    search.simulate(tree, 5, False)
    assert all(child.prior == child.clean_prior for child in children)
    quiet = RootNode()
    MCTS(table).run(quiet, [0], [0, 1], add_noise=False)
    assert all(child.prior == child.clean_prior for child in quiet.children.values())


def test_mask_policy_sets_illegal_logits_to_minus_infinity() -> None:
    masked = mask_policy(np.array([1.0, 2.0, 3.0], dtype=np.float16), [2, 0])
    assert masked.dtype == np.float16
    assert masked.tolist() == [1.0, -math.inf, 3.0]
    assert mask_policy([1, 2], [1]).tolist() == [-math.inf, 2.0]
    for wrong, message in (([], "empty"), ([3], "from 0 to 2"), ([0, 0], "twice"), ([-1], "from 0 to 2")):
        with pytest.raises(ValueError, match=message):
            mask_policy([1.0, 2.0, 3.0], wrong)


@pytest.mark.parametrize("temperature", [0, 1e-300, 1e-9, 0.5, 1.0, 1e9])
def test_select_action_is_finite_at_any_temperature(temperature: float) -> None:
    network = Fixed([1.0, 0.0, 0.0], rewards=(0.2, 0.0, 0.1), values=(0.0, 0.0, 0.0))
    actions = {select_action(network, MCTSConfig(), [0], [1, 0, 2], temperature, seed=seed) for seed in range(30)}
    assert actions == ({0} if temperature < 1e-8 else actions)
    assert actions <= {0, 1, 2}
    assert temperature < 1.0 or len(actions) > 1
    again = [select_action(network, MCTSConfig(), [0], [1, 0, 2], temperature, seed=7) for _ in range(2)]
    assert again[0] == again[1]


def test_select_action_plays_legal_chess_moves() -> None:
    state = Chess()

    class Small:
        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            assert observations.shape == (1, 119, 8, 8)
            return self.predict(observations.sum(axis=(1, 2, 3), keepdims=False)[:, None])

        def predict(self, hidden: Any) -> tuple[Any, Any, Any]:
            return hidden, np.sin(hidden * np.arange(4672)), np.tanh(hidden[:, 0])

        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            hidden, logits, value = self.predict(np.cos(hidden_states + actions[:, None]))
            return hidden, np.zeros(1), logits, value

    config = MCTSConfig(num_simulations=25, num_players=2, discount=1.0)
    for temperature in (1.0, 0):
        actions = [
            select_action(Small(), config, state.observation(), state.legal_actions(), temperature, seed=2)
            for _ in range(2)
        ]
        assert actions[0] == actions[1]
        assert actions[0] in state.legal_actions()
