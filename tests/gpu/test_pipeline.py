"""Groups of trees that take turns with a network: the same trees as one batch after another, whatever happens."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.inference import TableBackend, TableLatentBackend
from tests.support.models import TableModel
from tests.support.networks import table
from tests.support.trees import fingerprint, random_position

import pondertree
from pondertree.errors import EvaluationError
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

# Most models here do not say how many players there are: with one it does not matter.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

GAMES = [TicTacToe, ConnectFour, Othello, Chess]


def positions(start: Any, count: int) -> list[Any]:
    return [random_position(start, plies, plies) for plies in range(count)]


def says(start: Any) -> Any:
    return lambda observations: table(observations, start().num_actions)


def trees(search: Any, states: list[Any], **settings: Any) -> list[Any]:
    return [fingerprint(result) for result in search.run(states, **settings)]


@pytest.mark.parametrize("start", GAMES)
@pytest.mark.parametrize("in_flight", [1, 3])
@pytest.mark.parametrize("solve", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_trees_as_batch_by_batch(start: Any, in_flight: int, solve: bool, threads: int) -> None:
    states = positions(start, 7)
    settings: dict[str, Any] = {"seed": 5, "solve": solve, "in_flight": in_flight}
    buffers = TableBackend(says(start))
    for kind in (pondertree.AlphaZero, pondertree.Gumbel):
        plain = kind(says(start), 40, **settings)
        in_turns = kind(buffers, 40, threads=threads, **settings)
        assert trees(plain, states) == trees(in_turns, states)
    assert buffers.calls
    assert max(buffers.calls) <= 4
    assert buffers.open == 0


@given(st.lists(st.integers(0, 25), min_size=1, max_size=9), st.integers(1, 6), st.integers(1, 4))
def test_any_limits_and_groups(counts: list[int], rows: int, in_flight: int) -> None:
    """Trees that are done at different times leave holes in their groups."""
    states = positions(ConnectFour, len(counts))
    both = []
    for evaluator in (says(ConnectFour), TableBackend(says(ConnectFour), rows)):
        forest = pondertree.AlphaZero(evaluator, 1, seed=2, in_flight=in_flight).forest(states)
        forest.simulate(counts).simulate([count // 2 for count in counts])
        forest.advance(0, int(forest.actions()[0]))
        forest.simulate(7)
        both.append([fingerprint(result) for result in forest.results()])
    assert both[0] == both[1]


def test_noise_and_probabilities() -> None:
    def probabilities(observations: Any) -> Any:
        logits, values = table(observations)
        return np.exp(logits), values

    buffers, plain = TableBackend(probabilities), pondertree.evaluators.Function(probabilities, policy="probabilities")
    buffers.policy = "probabilities"
    states = positions(ConnectFour, 5)
    found = [trees(pondertree.AlphaZero(each, 30, seed=1), states, add_noise=True) for each in (plain, buffers)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda logits, values: (logits, np.full_like(values, np.nan)), "values of row 0"),
        (lambda logits, values: (logits, values + 5), "values are from -1 to 1"),
        (lambda logits, values: (np.full_like(logits, np.nan), values), "row 0.*NaN"),
        (lambda logits, values: (np.full_like(logits, np.inf), values), "row 0.*inf"),
        (lambda logits, values: (np.full_like(logits, -np.inf), values), "row 0.*-inf on every legal move"),
    ],
)
def test_nonsense_is_told_in_words_and_loses_nothing(spoil: Any, message: str) -> None:
    broken = False

    def function(observations: Any) -> Any:
        return spoil(*table(observations)) if broken else table(observations)

    buffers = TableBackend(function)
    states = positions(ConnectFour, 6)
    forest = pondertree.AlphaZero(buffers, 20, seed=3).forest(states)
    forest.simulate(20)
    before = [fingerprint(result) for result in forest.results()]
    broken = True
    with pytest.raises(EvaluationError, match=message):
        forest.simulate(20)
    broken = False
    # Batches that were applied before the bad one came may stay; here the first one is bad.
    assert [fingerprint(result) for result in forest.results()] == before
    assert buffers.open == 0
    forest.simulate(20)
    whole = pondertree.AlphaZero(says(ConnectFour), 20, seed=3).forest(states).simulate(20).simulate(20)
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in whole.results()]


def test_values_that_networks_round_beyond_one_are_clipped() -> None:
    def rounded(observations: Any) -> Any:
        logits, values = table(observations)
        return logits, np.sign(values) * np.float32(1.0005)

    states = positions(ConnectFour, 5)
    found = [trees(pondertree.AlphaZero(each, 30, seed=1), states) for each in (rounded, TableBackend(rounded))]
    assert found[0] == found[1]


def test_a_network_that_raises_is_named_and_rolled_back() -> None:
    def function(observations: Any) -> Any:
        if len(buffers.calls) > 9:
            raise RuntimeError("it fell over")
        return table(observations)

    buffers = TableBackend(function)
    forest = pondertree.AlphaZero(buffers, 20, seed=3).forest(positions(ConnectFour, 8))
    with pytest.raises(EvaluationError, match="RuntimeError: it fell over"):
        forest.simulate(20)
    buffers.calls.clear()
    buffers.function = table
    forest.simulate([20 - result.simulations for result in forest.results()])
    whole = pondertree.AlphaZero(says(ConnectFour), 20, seed=3).run(positions(ConnectFour, 8))
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in whole]


def test_stop_and_progress_and_time() -> None:
    seen: list[tuple[int, int]] = []
    buffers = TableBackend(says(ConnectFour))
    forest = pondertree.AlphaZero(buffers, 50, seed=3).forest(positions(ConnectFour, 8))

    def stop_soon(done: int, wanted: int) -> None:
        seen.append((done, wanted))
        if done > 100:
            forest.stop()

    forest.simulate(50, progress=stop_soon)
    done = sum(result.simulations for result in forest.results())
    assert 100 < done < 400
    assert seen[0][0] < seen[-1][0] <= done
    forest.simulate([50 - result.simulations for result in forest.results()])
    whole = pondertree.AlphaZero(says(ConnectFour), 50, seed=3).run(positions(ConnectFour, 8))
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in whole]
    timed = pondertree.AlphaZero(buffers, time_limit=1e-9, seed=3).run(positions(ConnectFour, 8))
    assert all(result.simulations >= 1 for result in timed)


def test_what_does_not_fit_into_lanes_is_asked_batch_by_batch() -> None:
    states = positions(ConnectFour, 5)
    found = [
        trees(pondertree.AlphaZero(each, 30, seed=1), states)
        for each in (says(ConnectFour), TableBackend(says(ConnectFour), refuses=True))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("temperature", [None, 1.0])
@pytest.mark.parametrize("minimax_depth", [0, 2])
def test_a_forest_answers_in_arrays(temperature: float | None, minimax_depth: int) -> None:
    states = positions(ConnectFour, 6)
    forest = pondertree.UCT(50, seed=1, threads=2, minimax_depth=minimax_depth).forest(states)
    forest.simulate()
    results = forest.results(temperature=temperature)
    assert forest.actions(temperature=temperature).tolist() == [result.action for result in results]
    assert np.array_equal(forest.visits(), [result.visits for result in results])
    assert np.array_equal(forest.policies(), [result.policy for result in results])
    counts, actions, shares = forest.root_policies()
    assert counts.tolist() == [len(state.legal_actions()) for state in states]
    for state, part in zip(states, np.split(actions, np.cumsum(counts)[:-1]), strict=True):
        assert sorted(part.tolist()) == state.legal_actions()
    assert np.array_equal(shares, forest.policies()[np.repeat(np.arange(len(states)), counts), actions])
    assert np.array_equal(forest.values(), [result.value for result in results])


@pytest.mark.parametrize("kind", [pondertree.MuZero, pondertree.Gumbel])
@pytest.mark.parametrize("discounts", [(), (-1.0, 1.0, 0.0)])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_latent_pipeline_matches_batched_search(kind: Any, discounts: tuple[float, ...], in_flight: int) -> None:
    model = TableModel(num_actions=6, discounts=discounts, largest_reward=0.5)
    # As 32 bits, as lanes have them.
    rounded = _Rounded(model)
    seen = [np.array([number], dtype=np.float32) for number in range(8)]
    found = []
    for each, threads in ((rounded, 1), (TableLatentBackend(rounded), 1), (TableLatentBackend(rounded), 3)):
        search = kind(
            model=each, num_simulations=40, seed=2, num_players=2, in_flight=in_flight, threads=threads, discount=0.9
        )
        forest = search.forest(observation=seen).simulate().simulate([10, 0, 3, 1, 8, 9, 2, 5])
        found.append([fingerprint(result) for result in forest.results()])
    assert found[0] == found[1] == found[2]


def test_the_likeliest_actions_are_enough() -> None:
    model = _Rounded(TableModel(num_actions=600, largest_reward=0.5))
    seen = [np.array([number], dtype=np.float32) for number in range(5)]
    visits = []
    for each in (model, TableLatentBackend(model, likeliest=64)):
        forest = pondertree.MuZero(model=each, num_simulations=50, seed=2).forest(observation=seen).simulate()
        visits.append(forest.visits())
    assert np.array_equal(visits[0], visits[1])


def test_a_model_that_says_nonsense_is_told_so_in_words() -> None:
    class Broken(TableModel):
        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            hidden, reward, logits, value = super().recurrent_inference(hidden_states, actions)
            return hidden, reward, logits, np.where(hidden[:, 0] % 7 == 0, np.nan, value)

    seen = [np.array([number], dtype=np.float32) for number in range(8)]
    forest = pondertree.MuZero(model=TableLatentBackend(Broken()), num_simulations=40, seed=2).forest(observation=seen)
    with pytest.raises(EvaluationError, match=r"value of row \d+ is nan"):
        forest.simulate()


def test_device_context_released_with_forest() -> None:
    model = TableLatentBackend(TableModel())
    seen = [np.array([number], dtype=np.float32) for number in range(3)]
    results = pondertree.MuZero(model=model, num_simulations=5, seed=2).run(observation=seen)
    gc.collect()
    assert (model.acquired, model.released) == (1, 1)
    assert all(result.simulations == 5 for result in results)


class _Rounded:
    """A model whose numbers have 32 bits."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        answer: tuple[Any, ...] = self.model.initial_inference(observations)
        return answer

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        hidden, *rest = self.model.recurrent_inference(hidden_states, actions)
        return hidden, *(np.asarray(each, dtype=np.float32) for each in rest)
