"""The MuZero reference in exact models and in large action spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.golden.tabular import Tabular
from tests.support.exact_models import ExactModel, HashedOutputs
from tests.support.muzero import nodes_of
from tests.support.search_helpers import random_position

from pondertree.games import ConnectFour, TicTacToe
from pondertree.reference import alphazero, model
from pondertree.reference.model import top_k_priors
from pondertree.reference.muzero import (
    MCTS,
)

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


# --- Exact models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1001, 3])
@pytest.mark.parametrize(("start", "plies"), [(TicTacToe, 0), (TicTacToe, 3), (ConnectFour, 0), (ConnectFour, 12)])
def test_perfect_model_gives_same_tree_as_game(start: Any, plies: int, levels: int) -> None:
    """With equal parameters, MuZero in a perfect model and AlphaZero in the game give the same tree."""
    for seed in range(3):
        state, guess = random_position(start, plies, seed), HashedOutputs(seed, levels)
        real = alphazero.MCTS(guess, 120, c_puct=1.25, seed=seed, solve=False).run(state)
        search = MCTS(ExactModel(state, guess), pb_c_base=1e300, discount=1.0, num_players=2, normalize=None, seed=seed)
        tree = search.tree(state)
        search.simulate(tree, 120)
        imagined = search.result(tree)
        assert imagined.visits == real.visits
        assert imagined.values == real.values
        assert imagined.value == pytest.approx(real.value)
        pairs = [(real.root, imagined.root)]
        for game_node, node in pairs:
            assert game_node.visit_count == node.visit_count
            tried = {action: child for action, child in game_node.children.items() if child.visit_count}
            if game_node.end is None:
                assert list(tried) == [action for action, child in node.children.items() if child.visit_count]
                pairs.extend((child, node.children[action]) for action, child in tried.items())


@dataclass
class Decisions:
    """A finite-horizon decision problem with a reward per move, and its exact model."""

    seed: int
    length: int = 3
    actions: int = 2
    gamma: float = 0.9

    def __post_init__(self) -> None:
        self.rewards = np.random.default_rng(self.seed).uniform(-1.0, 1.0, self.actions ** (self.length + 1))

    def worth(self, path: int = 1, depth: int = 0) -> float:
        """Returns the exact value of a position: the maximum return."""
        if depth == self.length:
            return 0.0
        after = [path * self.actions + action for action in range(self.actions)]
        return max(self.reward(each) + self.gamma * self.worth(each, depth + 1) for each in after)

    def reward(self, path: int) -> float:
        return float(self.rewards[path % len(self.rewards)])

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        return (1, 0), [[0.0] * self.actions], [0.0]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        path, depth = hidden_states
        after = path * self.actions + int(actions[0])
        over, beyond = depth + 1 >= self.length, depth >= self.length
        reward = 0.0 if beyond else self.reward(after)
        return (after, depth + 1), [reward], [[0.0] * self.actions], [0.0], [0.0 if over else self.gamma]


@pytest.mark.parametrize("normalize", ["node", "tree", None])
@pytest.mark.parametrize("seed", range(4))
def test_single_player_values_converge_to_exact_values(seed: int, normalize: str | None) -> None:
    problem = Decisions(seed)
    search = MCTS(problem, normalize=normalize, seed=seed)
    tree = search.tree(observation=[0])
    off = []
    for simulations in (30, 1170):
        search.simulate(tree, simulations)
        result = search.result(tree)
        off.append(abs(result.value - problem.worth()))
    assert off[1] < min(0.15, off[0] / 2)
    best = problem.reward(2 + result.action) + problem.gamma * problem.worth(2 + result.action, 1)
    assert best == problem.worth(), "and the action is a best one"


# --- Large action spaces ----------------------------------------------------------------------------------------------


def test_top_k_priors_keep_highest_and_total_of_rest() -> None:
    assert top_k_priors([0.0, -math.inf, 0.0], 1) == ({0: 0.5, 2: 0.5}, 0.0)
    logits = [math.log(1.0 + action % 100) for action in range(300)]
    retained, tail = top_k_priors(logits, 5)
    assert list(retained) == [98, 99, 198, 199, 299], "the likeliest, the lower of equals, in ascending order"
    assert sum(retained.values()) + tail == pytest.approx(1.0, abs=1e-5)
    assert top_k_priors(logits, 300)[1] == 0.0
    assert len(top_k_priors([-1e9] * 200 + [0.0] * 100, 200)[0]) == 100


@pytest.mark.parametrize("normalize", ["node", "tree"])
def test_top_k_expansion_does_not_change_results(normalize: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    for wide_model in (256, 10**9):
        monkeypatch.setattr(model, "TOP_K_THRESHOLD", wide_model)
        search = MCTS(Tabular(6, 200, 300, reward_scale=1.0, logit_scale=4.0), normalize=normalize, num_players=2)
        tree = search.tree(observation=[0], trace=True)
        search.simulate(tree, 90)
        traces.append([(row["path"], row["values"]) for row in tree.trace or []])
        sizes = [len(node.children) for node in nodes_of(tree.root)]
        assert sizes[0] == 300
        if wide_model == 256:
            first = tree.root.children[(tree.trace or [])[0]["path"][0]]
            assert len(first.children) == 89, "the remaining simulations"
            assert min(sizes) == 64
            assert first.tail_prior > 0.0
    assert traces[0] == traces[1]
