"""Double-buffered batches grow the same trees as single batches, also after errors, stops and time limits."""

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
from tests.support.search_helpers import fingerprint, random_position

import pondertree
from pondertree.errors import EvaluationError
from pondertree.game import COMPILED
from pondertree.games import ConnectFour

# Models without num_players are searched for one player, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

GAMES = list(COMPILED)


def positions(start: Any, count: int) -> list[Any]:
    return [random_position(start, plies, plies) for plies in range(count)]


def table_of(start: Any) -> Any:
    return lambda observations: table(observations, start().num_actions)


def trees(search: Any, states: list[Any], **settings: Any) -> list[Any]:
    return [fingerprint(result) for result in search.run(states, **settings)]


@pytest.mark.parametrize("start", GAMES)
@pytest.mark.parametrize("in_flight", [1, 3])
@pytest.mark.parametrize("solve", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_pipeline_matches_batched_search(start: Any, in_flight: int, solve: bool, threads: int) -> None:
    states = positions(start, 7)
    settings: dict[str, Any] = {"seed": 5, "solve": solve, "in_flight": in_flight}
    backend = TableBackend(table_of(start))
    for preset in (pondertree.AlphaZero, pondertree.Gumbel):
        batched = preset(table_of(start), 40, **settings)
        pipelined = preset(backend, 40, threads=threads, **settings)
        assert trees(batched, states) == trees(pipelined, states)
    assert backend.calls
    assert max(backend.calls) <= 4
    assert backend.leased == 0


@given(st.lists(st.integers(0, 25), min_size=1, max_size=9), st.integers(1, 6), st.integers(1, 4))
def test_pipeline_matches_batched_search_for_any_limits_and_groups(
    counts: list[int], rows: int, in_flight: int
) -> None:
    """Trees finish at different times, which leaves gaps in their groups."""
    states = positions(ConnectFour, len(counts))
    both = []
    for evaluator in (table_of(ConnectFour), TableBackend(table_of(ConnectFour), rows)):
        forest = pondertree.AlphaZero(evaluator, 1, seed=2, in_flight=in_flight).forest(states)
        forest.simulate(counts).simulate([count // 2 for count in counts])
        forest.advance(0, int(forest.actions()[0]))
        forest.simulate(7)
        both.append([fingerprint(result) for result in forest.results()])
    assert both[0] == both[1]


def test_pipeline_matches_batched_search_with_noise_and_probabilities() -> None:
    def probabilities(observations: Any) -> Any:
        logits, values = table(observations)
        return np.exp(logits), values

    backend, plain = TableBackend(probabilities), pondertree.evaluators.Function(probabilities, policy="probabilities")
    backend.policy = "probabilities"
    states = positions(ConnectFour, 5)
    found = [trees(pondertree.AlphaZero(each, 30, seed=1), states, add_noise=True) for each in (plain, backend)]
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
def test_invalid_output_raises_detailed_error_and_keeps_trees(spoil: Any, message: str) -> None:
    broken = False

    def function(observations: Any) -> Any:
        return spoil(*table(observations)) if broken else table(observations)

    backend = TableBackend(function)
    states = positions(ConnectFour, 6)
    forest = pondertree.AlphaZero(backend, 20, seed=3).forest(states)
    forest.simulate(20)
    before = [fingerprint(result) for result in forest.results()]
    broken = True
    with pytest.raises(EvaluationError, match=message):
        forest.simulate(20)
    broken = False
    # Batches before an invalid one may have been applied; here the first one is invalid.
    assert [fingerprint(result) for result in forest.results()] == before
    assert backend.leased == 0
    forest.simulate(20)
    whole = pondertree.AlphaZero(table_of(ConnectFour), 20, seed=3).forest(states).simulate(20).simulate(20)
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in whole.results()]


def test_values_slightly_beyond_one_are_clipped() -> None:
    def rounded(observations: Any) -> Any:
        logits, values = table(observations)
        return logits, np.sign(values) * np.float32(1.0005)

    states = positions(ConnectFour, 5)
    found = [trees(pondertree.AlphaZero(each, 30, seed=1), states) for each in (rounded, TableBackend(rounded))]
    assert found[0] == found[1]


def test_raising_network_is_reported_and_rolled_back() -> None:
    def function(observations: Any) -> Any:
        if len(backend.calls) > 9:
            raise RuntimeError("it fell over")
        return table(observations)

    backend = TableBackend(function)
    forest = pondertree.AlphaZero(backend, 20, seed=3).forest(positions(ConnectFour, 8))
    with pytest.raises(EvaluationError, match="RuntimeError: it fell over"):
        forest.simulate(20)
    backend.calls.clear()
    backend.function = table
    forest.simulate([20 - result.simulations for result in forest.results()])
    whole = pondertree.AlphaZero(table_of(ConnectFour), 20, seed=3).run(positions(ConnectFour, 8))
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in whole]


def test_stop_progress_and_time_limit() -> None:
    seen: list[tuple[int, int]] = []
    backend = TableBackend(table_of(ConnectFour))
    forest = pondertree.AlphaZero(backend, 50, seed=3).forest(positions(ConnectFour, 8))

    def stop_soon(done: int, wanted: int) -> None:
        seen.append((done, wanted))
        if done > 100:
            forest.stop()

    forest.simulate(50, progress=stop_soon)
    done = sum(result.simulations for result in forest.results())
    assert 100 < done < 400
    assert seen[0][0] < seen[-1][0] <= done
    forest.simulate([50 - result.simulations for result in forest.results()])
    whole = pondertree.AlphaZero(table_of(ConnectFour), 50, seed=3).run(positions(ConnectFour, 8))
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in whole]
    timed = pondertree.AlphaZero(backend, time_limit=1e-9, seed=3).run(positions(ConnectFour, 8))
    assert all(result.simulations >= 1 for result in timed)


@pytest.mark.parametrize("refusal", ["refuses", "refuses_output"])
def test_refused_pipeline_falls_back_to_batched_search(refusal: str) -> None:
    states, backend = positions(ConnectFour, 5), TableBackend(table_of(ConnectFour), **{refusal: True})
    batched, fallen_back = (pondertree.AlphaZero(each, 30, seed=1) for each in (table_of(ConnectFour), backend))
    forest = fallen_back.forest(states).simulate(10)
    leases = backend.leased
    forest.simulate(20)
    assert [fingerprint(result) for result in forest.results()] == trees(batched, states)
    assert (leases, backend.leased, backend.calls) == (0, 0, [])


@pytest.mark.parametrize("temperature", [None, 1.0])
@pytest.mark.parametrize("minimax_depth", [0, 2])
def test_forest_arrays_match_results(temperature: float | None, minimax_depth: int) -> None:
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
    # Buffers hold float32.
    rounded = _Rounded(model)
    observations = [np.array([number], dtype=np.float32) for number in range(8)]
    found = []
    for each, threads in ((rounded, 1), (TableLatentBackend(rounded), 1), (TableLatentBackend(rounded), 3)):
        search = kind(
            model=each, num_simulations=40, seed=2, num_players=2, in_flight=in_flight, threads=threads, discount=0.9
        )
        forest = search.forest(observation=observations).simulate().simulate([10, 0, 3, 1, 8, 9, 2, 5])
        found.append([fingerprint(result) for result in forest.results()])
    assert found[0] == found[1] == found[2]


def test_top_k_policy_matches_full_policy() -> None:
    model = _Rounded(TableModel(num_actions=600, largest_reward=0.5))
    observations = [np.array([number], dtype=np.float32) for number in range(5)]
    visits = []
    for each in (model, TableLatentBackend(model, top_k=64)):
        forest = pondertree.MuZero(model=each, num_simulations=50, seed=2).forest(observation=observations).simulate()
        visits.append(forest.visits())
    assert np.array_equal(visits[0], visits[1])


def test_invalid_model_output_raises_detailed_error() -> None:
    class Broken(TableModel):
        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            hidden, reward, logits, value = super().recurrent_inference(hidden_states, actions)
            return hidden, reward, logits, np.where(hidden[:, 0] % 7 == 0, np.nan, value)

    observations = [np.array([number], dtype=np.float32) for number in range(8)]
    forest = pondertree.MuZero(model=TableLatentBackend(Broken()), num_simulations=40, seed=2).forest(
        observation=observations
    )
    with pytest.raises(EvaluationError, match=r"value of row \d+ is nan"):
        forest.simulate()


def test_device_context_released_with_forest() -> None:
    model = TableLatentBackend(TableModel())
    observations = [np.array([number], dtype=np.float32) for number in range(3)]
    results = pondertree.MuZero(model=model, num_simulations=5, seed=2).run(observation=observations)
    gc.collect()
    assert (model.acquired, model.released) == (1, 1)
    assert all(result.simulations == 5 for result in results)


class _Rounded:
    """Rounds the outputs of a model to float32."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        answer: tuple[Any, ...] = self.model.initial_inference(observations)
        return answer

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        hidden, *rest = self.model.recurrent_inference(hidden_states, actions)
        return hidden, *(np.asarray(each, dtype=np.float32) for each in rest)
