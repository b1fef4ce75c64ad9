"""Gumbel search as users call it: both worlds, few simulations, plans and their cuts, proofs, the improved policy."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.presets.test_muzero import assert_same_tree
from tests.presets.test_uct import with_threats
from tests.support.engine_latent import Pair
from tests.support.models import TableModel
from tests.support.trees import PythonGame, after, every_node, fingerprint, random_position
from tests.support.worlds import Decisions, Guess, Rules, Wide

import pondertree
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.random import GUMBEL, Random, fold, tree_key
from pondertree.reference import gumbel
from pondertree.reference.gumbel import considered_visits
from pondertree.reference.sequential_halving import gumbel_variate

# Most models here do not say how many players there are: with one it does not matter.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

ONE = np.array([1])


class Bandit:
    """Actions that are worth what they are, for ever: exact values, and the prior's own value at the root."""

    def __init__(self, logits: Any, worth: Any) -> None:
        self.logits, self.worth = np.asarray(logits, dtype=np.float64), np.asarray(worth, dtype=np.float64)

    @property
    def prior(self) -> Any:
        weights = np.exp(self.logits - self.logits.max())
        return weights / weights.sum()

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        rows = len(observations)
        value = self.prior @ self.worth
        return np.full((rows, 1), np.nan), np.tile(self.logits, (rows, 1)), np.full(rows, value)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """The value of the first action stays."""
        value = np.where(np.isnan(hidden_states[:, 0]), self.worth[actions], hidden_states[:, 0])
        return value[:, None], np.zeros(len(value)), np.zeros((len(value), len(self.logits))), value


bandits = st.integers(1, 12).flatmap(
    lambda size: st.builds(
        Bandit,
        st.lists(st.floats(-4.0, 4.0), min_size=size, max_size=size),
        st.lists(st.floats(-1.0, 1.0), min_size=size, max_size=size),
    )
)


# --- Names ------------------------------------------------------------------------------------------------------


def test_names_and_defaults() -> None:
    promised = {
        "num_simulations": 32,
        "max_num_considered_actions": 16,
        "gumbel_scale": 1.0,
        "value_scale": 0.1,
        "maxvisit_init": 50,
        "rescale_values": True,
        "use_mixed_value": True,
        "discount": 0.997,
        "num_players": 1,
        "gumbel": None,
    }
    search = pondertree.Gumbel(Uniform())
    assert {name: getattr(search, name) for name in promised} == promised
    assert (search.in_flight, search.threads, search.solve, search.time_limit) == (1, 1, True, None)
    names = inspect.signature(pondertree.Gumbel).parameters
    assert list(names)[:11] == ["evaluator", *promised]
    assert "model" in names
    model = TableModel()
    for search in (pondertree.Gumbel(model), pondertree.Gumbel(model=model), pondertree.Gumbel(evaluator=model)):
        assert search.model is model
        assert search.evaluator is None
    assert repr(pondertree.Gumbel(Uniform(), 8, seed=2)).endswith("num_simulations=8, seed=2)")
    assert pondertree.Gumbel(Uniform(), time_limit=9.0).num_simulations == 32, "a plan has a length"


def test_an_early_stop_is_refused() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="early_stop"):
        pondertree.Gumbel(Uniform(), early_stop=True).run(ConnectFour())
    with pytest.raises(pondertree.InvalidArgumentError, match="early_stop"):
        pondertree.Gumbel(TableModel(), early_stop=True).run(observation=ONE)


# --- Both worlds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello, Chess])
@pytest.mark.parametrize("evaluator", [Uniform(), Rollout(), Guess()], ids=["uniform", "rollout", "guess"])
@pytest.mark.parametrize("wrap", [False, True])
def test_games(start: Any, evaluator: Any, wrap: bool) -> None:
    state = random_position(start, 6, 2)
    search = pondertree.Gumbel(evaluator, 16, seed=1)
    result = search.run(PythonGame(state) if wrap else state)
    assert result.action in state.legal_actions()
    assert result.visits.sum() == result.simulations <= 16
    assert result.policy.sum() == pytest.approx(1.0)
    assert not result.policy[np.setdiff1d(np.arange(state.num_actions), state.legal_actions())].any()
    action, policy = search.get_policy(state)
    assert action in state.legal_actions()
    assert policy.shape == (state.num_actions,)


def test_a_board_of_python_chess() -> None:
    chess = pytest.importorskip("chess")
    board = chess.Board()
    assert pondertree.Gumbel(Uniform(), 8, seed=1).search(board) in board.legal_moves


@pytest.mark.parametrize(("start", "plies"), [(TicTacToe, 2), (ConnectFour, 0), (ConnectFour, 20)])
def test_a_perfect_model_is_the_game_itself(start: Any, plies: int) -> None:
    """With nothing proven and nothing discounted, both worlds grow the same tree."""
    states = [random_position(start, plies, seed) for seed in range(3)]
    options: dict[str, Any] = {"num_simulations": 100, "solve": False, "seed": 3}
    games = pondertree.Gumbel(Guess(plies), **options).run(states)
    models = pondertree.Gumbel(model=Rules(states, Guess(plies)), discount=1.0, **options).run(states)
    for game, model in zip(games, models, strict=True):
        assert game.visits.tolist() == model.visits.tolist()
        assert game.policy == pytest.approx(model.policy, abs=1e-12)
        assert game.action == model.action
        assert_same_tree(game.root, model.root)


@settings(max_examples=15)
@given(st.data())
def test_a_seeded_row_depends_on_nothing_else(data: st.DataObject) -> None:
    draw = data.draw
    model = TableModel(draw(st.sampled_from([2, 6, 40])), draw(st.sampled_from([3, 1001])))
    rows = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 99)), min_size=1, max_size=5))
    in_flight = draw(st.sampled_from([1, 3]))
    batched = [
        [
            fingerprint(result)
            for result in pondertree.Gumbel(model, 20, in_flight=in_flight, threads=threads).run(
                observation=[[number] for number, _ in rows], seeds=[seed for _, seed in rows]
            )
        ]
        for threads in (1, 2, 4)
    ]
    alone = [
        fingerprint(pondertree.Gumbel(model, 20, in_flight=in_flight).run(observation=[number], seeds=seed))
        for number, seed in rows
    ]
    assert batched == [alone] * 3


def test_values_of_one_player_approach_the_exact_ones() -> None:
    """Where values are weighed by visits alone. By default they count at once, which is for models that know values."""
    errors = []
    for simulations in (16, 128, 1024):
        row = []
        for seed in range(6):
            problem = Decisions(seed)
            options: dict[str, Any] = {"maxvisit_init": 0, "value_scale": 0.3, "discount": problem.gamma, "seed": 1}
            result = pondertree.Gumbel(problem, simulations, **options).run(observation=[0])
            exact = problem.exact()[0]
            row.append(abs(np.nanmax(result.q) - exact.max()))
            assert simulations < 128 or exact[result.action] == exact.max()
        errors.append(np.mean(row))
    assert errors[0] > errors[1] > errors[2], errors
    assert errors[2] < 0.03


def test_4672_actions() -> None:
    model = TableModel(4672, levels=101)
    pair = Pair(
        gumbel.MCTS(model, num_players=2, discount=1.0, seed=3),
        [pondertree.Gumbel(model, num_players=2, discount=1.0, trace=trace, seed=3) for trace in (True, False)],
        {"observation": ONE, "legal_actions": list(range(7, 4000, 130))},
        noise=False,
    )
    pair.simulate(40)
    result = pondertree.Gumbel(Wide(4672), 200, seed=1).run(observation=ONE, legal_actions=range(0, 4672, 99))
    assert result.memory < 2**20


# --- Policy improvement -----------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(bandits, st.integers(2, 20), st.integers(0, 10**6), st.sampled_from([1, 4, 16]))
def test_the_policy_improves(bandit: Bandit, simulations: int, seed: int, considered: int) -> None:
    """With exact values the improved policy is worth at least as much as the prior, from two simulations on.

    That is a theorem where moves never tried are completed by the value of the root (Danihelka et al. 2022, section 4).
    """
    result = pondertree.Gumbel(
        bandit,
        simulations,
        max_num_considered_actions=considered,
        use_mixed_value=False,
        discount=1.0,
        seed=seed,
    ).run(observation=[0.0])
    assert result.policy @ bandit.worth >= bandit.prior @ bandit.worth - 1e-6
    tried = result.visits > 0
    assert result.q[tried] == pytest.approx(bandit.worth[tried]), "the values were exact"


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("simulations", [2, 4, 16])
def test_the_action_improves_on_average(simulations: int, mixed: bool) -> None:
    """The action to play is worth more than one drawn from the prior, where it stays clear of chance."""
    gains = []
    for seed in range(4):
        numbers = np.random.default_rng(seed)
        bandit = Bandit(numbers.normal(size=8), numbers.uniform(-1.0, 1.0, 8))
        search = pondertree.Gumbel(bandit, simulations, use_mixed_value=mixed, discount=1.0, seed=seed)
        results = search.run(observation=[[0.0]] * 300)
        prior = bandit.prior @ bandit.worth
        gains.append(np.mean([bandit.worth[result.action] for result in results]) - prior)
        assert np.mean([result.policy @ bandit.worth for result in results]) > prior
    assert min(gains) > 0.05
    assert simulations < 16 or min(gains) > 0.2


def test_the_policy_by_hand() -> None:
    """softmax(logits + sigma(completed Q)), sigma and the mixed value as mctx has them."""
    bandit = Bandit([1.0, 0.0, -0.5, 0.2], [0.1, 0.7, -0.3, 0.4])
    result = pondertree.Gumbel(bandit, 3, gumbel_scale=0.0, discount=1.0, seed=1).run(
        observation=[0.0], legal_actions=[0, 1, 3]
    )
    prior = np.exp(bandit.logits[[0, 1, 3]])
    prior /= prior.sum()
    visits, q = result.visits[[0, 1, 3]], result.q[[0, 1, 3]]
    assert visits.tolist() == [1, 1, 1]
    raw = bandit.prior @ bandit.worth
    mixed = (raw + 3 * (prior @ q) / prior.sum()) / 4
    low, high = min(*q, mixed), max(*q, mixed)  # with an action missing, the mixed value counts
    sigma = (50 + 1) * 0.1 * (q - low) / (high - low)
    expected = prior * np.exp(sigma)
    assert result.policy[[0, 1, 3]] == pytest.approx(expected / expected.sum(), abs=1e-6)
    assert result.policy[2] == 0.0
    assert result.action == [0, 1, 3][np.argmax(np.log(prior) + sigma)]
    assert result.policy_at(1.0) == pytest.approx(result.policy)
    assert result.policy_at(0.5) == pytest.approx(result.policy**2 / (result.policy**2).sum())
    assert result.policy_at(0.0).argmax() == result.action


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=100)
@given(
    st.integers(1, 40),
    st.sampled_from([0.0, 1.0, 1e12]),
    st.sampled_from([0.0, 0.1, 1e6]),
    st.sampled_from([0.0, 50.0, 1e9]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 1e9]),
    st.integers(0, 1000),
)
def test_the_policy_is_one(
    simulations: int, size: float, scale: float, init: float, rescale: bool, mixed: bool, noise: float, seed: int
) -> None:
    """Never NaN, at any size of values, logits and weights."""
    numbers = np.random.default_rng(seed)
    logits = np.where(numbers.random(6) < 0.5, numbers.normal(size=6), numbers.choice([-1e9, -1e30, 80.0], 6))
    search = pondertree.Gumbel(
        Bandit(logits, size * numbers.uniform(-1.0, 1.0, 6)),
        simulations,
        value_scale=scale,
        maxvisit_init=init,
        rescale_values=rescale,
        use_mixed_value=mixed,
        gumbel_scale=noise,
        seed=seed,
    )
    result = search.run(observation=[0.0])
    for policy in (result.policy, result.policy_at(0.01), result.policy_at(1e9), result.policy_at(0.0)):
        assert np.isfinite(policy).all()
        assert (policy >= 0.0).all()
        assert policy.sum() == pytest.approx(1.0)
    assert result.visits.sum() == simulations
    assert 0 <= search.tree(observation=[0.0]).result(temperature=1.0).action < 6, "before any simulation, too"


def test_temperature() -> None:
    search = pondertree.Gumbel(Bandit([0.0] * 3, [0.0, 0.1, 0.05]), 6, value_scale=0.02, seed=1)
    sampled = search.run(observation=[[0.0]] * 900, temperature=1.0)
    expected = np.mean([result.policy for result in sampled], axis=0)
    drawn = np.bincount([result.action for result in sampled], minlength=3) / 900
    assert np.abs(drawn - expected).max() < 0.06
    assert all(
        result.visits[result.action] == result.visits.max() for result in search.run(observation=[[0.0]] * 50)
    ), "greedy unless told otherwise"
    assert search.search(observation=[0.0], temperature=0.0) in range(3)


# --- Gumbel numbers ---------------------------------------------------------------------------------------------


def test_numbers_given_or_drawn() -> None:
    model = TableModel(9)
    for seed in range(5):
        legal = [8, 1, 4, 5, 2]
        drawn = pondertree.Gumbel(model, 20, seed=seed).run(observation=ONE, legal_actions=legal)
        random = Random(fold(tree_key(seed, 0, 0), 0), GUMBEL)
        numbers = np.zeros(9)
        for action in sorted(legal):
            numbers[action] = gumbel_variate(random)
        given_ones = pondertree.Gumbel(model, 20, gumbel=numbers, seed=99).run(observation=ONE, legal_actions=legal)
        assert fingerprint(given_ones) == fingerprint(drawn), "those drawn from the lowest action on"
    one = pondertree.Gumbel(model, 1, gumbel=np.eye(9)[4] * 100.0).run(observation=ONE)
    assert one.visits.argmax() == 4
    rows = pondertree.Gumbel(model, 1, gumbel=np.eye(9)[[7, 2]] * 100.0).run(observation=[[1], [1]])
    assert [result.visits.argmax() for result in rows] == [7, 2]
    tree = pondertree.Gumbel(model, 1, gumbel=np.eye(9)[4] * 100.0).tree(observation=ONE)
    tree.simulate()
    tree.advance(4)
    assert tree.simulate().result().action == 4, "given ones hold for every plan"
    half = pondertree.Gumbel(model, 20, gumbel=numbers, gumbel_scale=0.5).run(observation=ONE, legal_actions=legal)
    same = pondertree.Gumbel(model, 20, gumbel=numbers / 2).run(observation=ONE, legal_actions=legal)
    assert fingerprint(half) == fingerprint(same)


def test_without_numbers_there_is_no_chance() -> None:
    model, state = TableModel(9, levels=3), ConnectFour()
    for options, noise in (({"gumbel_scale": 0.0}, None), ({}, False)):
        for about, by in (({"observation": ONE}, model), ({"state": state}, Uniform())):
            prints = {
                fingerprint(pondertree.Gumbel(by, 24, seed=seed, **options).run(**about, add_noise=noise))
                for seed in range(6)
            }
            assert len(prints) == 1
    drawn = {pondertree.Gumbel(Uniform(), 24, seed=seed).run(state, add_noise=True).action for seed in range(12)}
    assert len(drawn) > 1
    search = pondertree.Gumbel(Uniform(), 8, seed=1)
    assert len({search.search(state, add_noise=False) for _ in range(5)}) == 1
    assert len({search.search(state) for _ in range(12)}) > 1


# --- Plans ------------------------------------------------------------------------------------------------------


def planned(moves: int, simulations: int) -> list[int]:
    """How often moves are tried by the table, the most tried first."""
    counts = [0] * moves
    for visits in considered_visits(moves, simulations):
        counts[counts.index(visits)] += 1
    return sorted(counts, reverse=True)


@pytest.mark.parametrize("simulations", [1, 2, 7, 16, 50, 200])
@pytest.mark.parametrize("considered", [1, 2, 5, 16])
@pytest.mark.parametrize("in_flight", [1, 3, 8])
def test_visits_are_those_of_the_table(simulations: int, considered: int, in_flight: int) -> None:
    search = pondertree.Gumbel(
        Decisions(2, states=9, actions=20), simulations, considered, in_flight=in_flight, seed=simulations
    )
    result = search.run(observation=[0])
    tried = sorted(result.visits[result.visits > 0].tolist(), reverse=True)
    assert tried == [count for count in planned(considered, simulations) if count]
    assert all(node.in_flight == 0 for node in every_node(result.root))
    assert result.visits[result.action] == result.visits.max()


def test_each_call_is_a_plan() -> None:
    tree = pondertree.Gumbel(Decisions(2, states=9, actions=20), max_num_considered_actions=4, seed=1).tree(
        observation=[0]
    )
    before = np.zeros(20, dtype=np.int64)
    for count in (16, 2, 16, 1):
        visits = tree.simulate(count).result().visits
        since = visits - before
        assert sorted(since[since > 0].tolist(), reverse=True) == [n for n in planned(4, count) if n]
        assert since[tree.result().action] == since.max(), "the answer is of the last plan"
        before = visits.copy()
    tree.advance(tree.result().action)
    kept = tree.result().visits
    since = tree.simulate(16).result().visits - kept
    assert sorted(since[since > 0].tolist(), reverse=True) == planned(4, 16)


def test_a_limit_of_time_cuts_the_plan_short() -> None:
    """The answer is the best by score of those visited most, as in a plan of that length that was cut there."""
    model = TableModel(12, seed=4)

    def slow(hidden: Any, actions: Any) -> Any:
        time.sleep(0.003)
        return model.recurrent_inference(hidden, actions)

    slowly = pondertree.models.FunctionModel(model.initial_inference, slow)
    result = pondertree.Gumbel(slowly, 500, time_limit=0.12, seed=1).run(observation=ONE)
    assert 1 <= result.simulations < 60
    reference = gumbel.MCTS(model, seed=1)
    tree = reference.tree(observation=ONE)
    reference.simulate(tree, 500, cut=result.simulations)
    theirs = reference.result(tree)
    assert dict(enumerate(result.visits.tolist())) == theirs.visits
    assert result.action == theirs.action
    assert result.visits[result.action] == result.visits.max()
    assert {action: result.policy[action] for action in theirs.policy} == pytest.approx(theirs.policy)
    whole = pondertree.Gumbel(model, 500, seed=1).run(observation=ONE)
    assert whole.simulations == 500
    assert pondertree.Gumbel(slowly, 500, time_limit=1e-6).run(observation=ONE).simulations == 1
    forest = pondertree.Gumbel(slowly, 40, seed=1).tree(observation=ONE)
    assert forest.simulate(seconds=60.0).result().simulations == 40, "time alone does not lift the number"


# --- Proven results ---------------------------------------------------------------------------------------------

MATES = [
    ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "a1a8"),
    ("r6k/8/8/8/8/8/5PPP/6K1 b - - 0 1", "a8a1"),
    ("k7/8/1K6/8/8/8/8/7R w - - 0 1", "h1h8"),
]


@pytest.mark.parametrize(("fen", "move"), MATES)
def test_a_mate_in_one_is_found(fen: str, move: str) -> None:
    for seed in range(5):
        search = pondertree.Gumbel(Uniform(), 40, max_num_considered_actions=40, seed=seed)
        result = search.run(Chess(fen))
        assert result.move == move
        assert result.proven == 1
        assert result.simulations <= 40
        assert result.policy[result.action] == 1.0
        assert search.run(Chess(fen), temperature=5.0).move == move


@pytest.mark.parametrize("mover", [0, 1])
def test_connect_four_wins_and_blocks(mover: int) -> None:
    for kind, simulations in (("win", 16), ("block", 128)):
        positions = with_threats(ConnectFour, kind, mover, 10)
        results = pondertree.Gumbel(Uniform(), simulations, seed=1).run([state for state, _ in positions])
        for (_, action), result in zip(positions, results, strict=True):
            if result.proven != -1:
                assert result.action == action
            assert kind == "block" or result.proven == 1


def test_wins_and_blocks_in_a_perfect_model() -> None:
    """Nothing is ever proven in a model, and it finds them all the same."""
    for moves, action in (("1 2 1 2 1 2", 0), ("1 2 3 2 1 2 7", 1), ("1 2 1 2 1", 0), ("7 2 7 2 6 2", 1)):
        state = after(ConnectFour(), moves)
        result = pondertree.Gumbel(Rules([state]), 200, discount=1.0, seed=1).run(state)
        assert result.action == action
        assert result.proven is None


def test_proven_losses_leave_the_candidates() -> None:
    state = after(ConnectFour(), "4 1 4 1 4")
    result = pondertree.Gumbel(Uniform(), 200, seed=3).run(state)
    lost = [action for action, child in result.root.children.items() if child.proven == 1]
    assert len(lost) == 6, "all but the block"
    assert result.policy[lost].tolist() == [0.0] * 6
    assert result.action == 3
    tree = pondertree.Gumbel(Uniform(), seed=3).tree(state).simulate(200)
    before = tree.result().visits
    after_it = tree.simulate(50).result().visits
    assert (after_it - before)[lost].tolist() == [0] * 6, "no visit more"
    assert (after_it - before).sum() == tree.result().simulations - 200
    free = pondertree.Gumbel(Uniform(), 200, solve=False, seed=3).run(state)
    assert free.proven is None
    assert all(child.proven is None for child in free.root.children.values())
    assert free.action == 3
