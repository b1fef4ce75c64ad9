"""MuZero's values: players, discounts, and searches with an exact model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.engine_latent import Pair
from tests.support.exact_models import ExactBatchModel, LargeActionModel, RandomOutputs, TabularDecisionModel
from tests.support.models import TableModel
from tests.support.observed_models import assert_same_tree, numbered
from tests.support.search_helpers import after, every_node, random_position

import pondertree
from pondertree.games import ConnectFour, TicTacToe
from pondertree.reference import muzero

# Most models here have no number of players, which does not matter for one.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

ONE = np.array([1])


# --- Players and discounts ----------------------------------------------------------------------------------------


class Steps:
    """Two actions, each with a value and a discount of its own; nothing is earned."""

    def __init__(self, values: tuple[float, float], discounts: tuple[float, float] | None) -> None:
        self.values, self.discounts = np.array(values), discounts

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        rows = len(observations)
        return np.zeros((rows, 1)), np.zeros((rows, 2)), np.zeros(rows)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        answer = hidden_states, np.zeros(len(actions)), np.zeros((len(actions), 2)), self.values[actions]
        return answer if self.discounts is None else (*answer, np.array(self.discounts)[actions])


@pytest.mark.parametrize(
    ("players", "discounts", "expected"),
    [
        (1, None, (0.4, -0.15)),
        (2, None, (-0.4, 0.15)),
        (1, (1.0, 0.0), (0.8, 0.0)),
        (2, (-1.0, -0.25), (-0.8, 0.075)),
        (2, (1.0, -1.0), (0.8, 0.3)),
        (2, (0.0, 0.5), (0.0, -0.15)),
    ],
)
def test_values_are_for_the_player_to_move(players: int, discounts: Any, expected: tuple[float, float]) -> None:
    """The setting's discount 0.5 and alternating players, unless the model says: 0 ends, a sign passes the turn."""
    model = Steps((0.8, -0.3), discounts)
    search = pondertree.MuZero(model, 1, discount=0.5, num_players=players, seed=1)
    for action, worth in enumerate(expected):
        for to_play in range(players):
            result = search.run(observation=[0.0], legal_actions=[action], to_play=to_play)
            assert result.q[action] == pytest.approx(worth), "whoever chooses"
            assert result.value == pytest.approx(worth / 2)
            passes = players == 2 and (discounts is None or discounts[action] < 0.0)
            assert result.root.children[action].to_play == (1 - to_play if passes else to_play)


def test_discount_zero_ends_the_episode() -> None:
    class Ended(TableModel):
        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            hidden, _, logits, values, *_ = super().recurrent_inference(hidden_states, actions)
            return hidden, np.full(len(actions), 0.25), logits, values, np.zeros(len(actions))

    result = pondertree.MuZero(Ended(3), 60, seed=1).run(observation=ONE)
    assert result.q[result.visits > 0] == pytest.approx(0.25)


# --- Known answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "plies"), [(TicTacToe, 0), (TicTacToe, 3), (TicTacToe, 5), (ConnectFour, 0), (ConnectFour, 20)]
)
@pytest.mark.parametrize("c", [1.0, 2.5])
def test_muzero_with_an_exact_model_equals_search_of_the_game(start: Any, plies: int, c: float) -> None:
    """MuZero in the rules as a model grows AlphaZero's tree of the game, tie for tie, when the parts are set alike.

    A huge pb_c_base leaves pb_c_init alone as the constant; values are not scaled; nothing is proven; illegal moves get
    the prior 0 and so no edge. An end pays its result as a reward with discount 0: that is what AlphaZero backs up from
    it at every visit, whatever is imagined beyond.
    """
    states = [random_position(start, plies, seed) for seed in range(3)]
    guess = RandomOutputs(plies)
    games = pondertree.AlphaZero(guess, 200, c_puct=c, solve=False, seed=5).run(states)
    models = pondertree.MuZero(
        ExactBatchModel(states, guess),
        200,
        pb_c_base=1e18,
        pb_c_init=c,
        discount=1.0,
        normalize=None,
        solve=False,
        seed=5,
    ).run(states)
    assert any(node.is_terminal for result in games for node in every_node(result.root)) or plies == 0
    for game, model in zip(games, models, strict=True):
        assert game.visits.tolist() == model.visits.tolist()
        assert game.action == model.action
        assert game.value == pytest.approx(model.value)
        assert assert_same_tree(game.root, model.root) > len(game.root.children)


@pytest.mark.parametrize("mover", [0, 1])
@pytest.mark.parametrize("normalize", ["node", "tree", None])
def test_muzero_wins_and_blocks_in_an_exact_model(mover: int, normalize: Any) -> None:
    win = after(ConnectFour(), "1 2 1 2 1 2" if mover == 0 else "1 2 3 2 1 2 7")
    block = after(ConnectFour(), "1 2 1 2 1" if mover == 1 else "7 2 7 2 6 2")
    wins = 0 if mover == 0 else 1
    assert win.to_play == block.to_play == mover
    search = pondertree.MuZero(ExactBatchModel([win, block]), 400, discount=1.0, normalize=normalize, seed=1)
    won, saved = search.run([win, block])
    assert won.action == wins
    assert won.q[wins] == 1.0
    assert saved.action == (0 if mover == 1 else 1)


@pytest.mark.parametrize("normalize", ["node", "tree", None])
def test_muzero_values_converge_for_one_player(normalize: Any) -> None:
    errors: list[list[float]] = []
    for simulations in (20, 200, 2000):
        row = []
        for seed in range(6):
            problem = TabularDecisionModel(seed)
            search = pondertree.MuZero(problem, simulations, discount=problem.gamma, normalize=normalize, seed=1)
            result = search.run(observation=[0])
            exact = problem.exact()[0]
            row.append(abs(result.value - exact.max()))
            assert simulations < 2000 or exact[result.action] == exact.max()
        errors.append(row)
    means = np.mean(errors, axis=1)
    assert means[0] > means[1] > means[2], means
    assert means[2] < min(0.12, means[0] / 6)


# --- Large action spaces ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["node", "tree"])
def test_search_of_4672_actions_matches_reference(normalize: str) -> None:
    model = TableModel(4672, levels=101, largest_reward=1.0)
    options = {"num_players": 2, "discount": 1.0, "normalize": normalize, "seed": 3}
    legal = list(range(100, 4000, 130))
    pair = Pair(
        muzero.MCTS(model, **options),
        [pondertree.MuZero(model, trace=trace, **options) for trace in (True, False)],
        {"observation": ONE, "legal_actions": legal, "to_play": 1},
    )
    result = pair.simulate(70, True)
    pair.advance(result.action, observation=np.array([5]))
    pair.simulate(10)
    sizes = [len(node.children) for node in every_node(pair.engines[1].result().root) if node.visit_count]
    assert sizes[0] == 4672, "a root has all its legal actions"
    assert max(sizes[1:]) <= 69


def test_search_of_4672_actions_uses_sparse_memory() -> None:
    """A node keeps its best moves: those that 200 simulations can come to need, 22 bytes each and not 4672 of them."""
    model = LargeActionModel(4672)
    forest = pondertree.MuZero(model, num_players=2, seed=1).forest(
        observation=numbered(*range(100, 108)), legal_actions=[list(range(0, 4672, 150))] * 8
    )
    forest.simulate(200)
    trees = sum(result.memory for result in forest.results())
    dense = 8 * 200 * 4672 * 22
    assert trees < 8 * 2**20 < dense / 15
    assert forest._world._pool.nbytes <= 2 * 8 * 256 * 8
    for result in forest.results():
        assert all(len(node.children) <= 200 for node in every_node(result.root) if node.visit_count)
