"""JAX: functions of parameters and observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.networks import NONSENSE, Switch, assert_no_entry, assert_refused, assert_same_search, table
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.evaluators import Cached, Jax, Symmetric, symmetries_of
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

jax = pytest.importorskip("jax")
numpy = jax.numpy


def params_of(state: Any, seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights with few bits, so that all sums are exact."""
    numbers = np.random.default_rng(seed)
    inputs = state.observation().size
    return {
        "policy": (numbers.integers(-8, 8, (inputs, state.num_actions)) / 8).astype(np.float32),
        "value": (numbers.integers(-8, 8, inputs) / 1024).astype(np.float32),
    }


def linear(params: Any, observations: Any) -> tuple[Any, Any]:
    flat = observations.reshape(len(observations), -1)
    return flat @ params["policy"], flat @ params["value"]


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello])
@pytest.mark.parametrize("jit", [True, False])
def test_search_matches_same_network_in_numpy(start: Any, jit: bool) -> None:
    params = params_of(start())
    evaluator = Jax(linear, params, jit=jit)
    assert_same_search(evaluator, lambda observations: linear(params, observations), start(), in_flight=2)


def test_python_games_and_wrappers() -> None:
    params = params_of(ConnectFour())
    evaluator = Jax(linear, params)
    assert_same_search(evaluator, lambda o: linear(params, o), PythonGame(ConnectFour()))
    assert_same_search(evaluator, Cached(evaluator), ConnectFour())
    symmetries = symmetries_of("connect4")
    assert_same_search(
        Symmetric(evaluator, symmetries), Symmetric(lambda o: linear(params, o), symmetries), ConnectFour()
    )


def test_batches_are_padded_to_powers_of_two() -> None:
    shapes = []

    def traced(params: Any, observations: Any) -> tuple[Any, Any]:
        shapes.append(len(observations))  # runs once per compilation
        return linear(params, observations)

    params = params_of(ConnectFour())
    evaluator = Jax(traced, params)
    boards = np.stack([random_position(ConnectFour, plies, 1).observation() for plies in range(17)])
    for rows in range(1, 18):
        logits, values = evaluator.evaluate(boards[:rows])
        assert np.array_equal(logits, linear(params, boards[:rows])[0])
        assert values.shape == (rows,)
    assert shapes == [1, 2, 4, 8, 16, 32]


def test_params_can_be_replaced() -> None:
    evaluator = Jax(linear, params_of(ConnectFour()))
    board = random_position(ConnectFour, 5, 1).observation()[None]
    evaluator.evaluate(board)
    evaluator.params = params_of(ConnectFour(), seed=1)
    assert np.array_equal(evaluator.evaluate(board)[0], linear(evaluator.params, board)[0])


def test_bfloat16_outputs_are_read() -> None:
    def half(params: Any, observations: Any) -> tuple[Any, Any]:
        logits, values = linear(params, observations)
        return logits.astype(numpy.bfloat16), values.astype(numpy.bfloat16)

    evaluator = Jax(half, params_of(ConnectFour()))
    board = random_position(ConnectFour, 5, 1).observation()[None]
    logits, values = evaluator.evaluate(board)
    assert logits.dtype == values.dtype == np.float32
    assert pondertree.AlphaZero(evaluator, 20).run(ConnectFour()).simulations == 20


def test_flax_module() -> None:
    linen = pytest.importorskip("flax.linen")

    class Net(linen.Module):  # type: ignore[misc,name-defined]
        @linen.compact  # type: ignore[untyped-decorator]
        def __call__(self, observations: Any) -> tuple[Any, Any]:
            flat = observations.reshape(len(observations), -1)
            hidden = linen.relu(linen.Dense(16)(flat))
            return linen.Dense(7)(hidden), numpy.tanh(linen.Dense(1)(hidden))

    net = Net()
    variables = net.init(jax.random.key(0), ConnectFour().observation()[None])
    one, other = (pondertree.AlphaZero(Jax(net.apply, variables), 40, seed=1).run(ConnectFour()) for _ in range(2))
    assert one.visits.tolist() == other.visits.tolist()


def test_probabilities_match_logits() -> None:
    params = params_of(ConnectFour())
    both = [
        Jax(linear, params),
        Jax(lambda p, o: (numpy.exp(linear(p, o)[0]), linear(p, o)[1]), params, policy="probabilities"),
    ]
    one, other = (pondertree.AlphaZero(evaluator, 80, seed=1).run(ConnectFour()) for evaluator in both)
    assert one.visits.tolist() == other.visits.tolist()


def in_python(function: Any) -> Any:
    """NumPy code as an uncompiled JAX function."""

    def apply(params: Any, observations: Any) -> Any:
        answer = function(np.array(observations))
        return tuple(map(numpy.asarray, answer)) if isinstance(answer, tuple) else answer

    return apply


@pytest.mark.parametrize("name", NONSENSE)
def test_invalid_outputs_are_refused(name: str) -> None:
    switch = Switch()
    assert_refused(Jax(in_python(switch), None, jit=False), switch, *NONSENSE[name])


def test_invalid_outputs_of_compiled_function_are_refused() -> None:
    broken = Jax(lambda params, o: (numpy.full((len(o), 7), numpy.nan), numpy.zeros(len(o))), None)
    with pytest.raises(pondertree.EvaluationError, match="row 0"):
        pondertree.AlphaZero(broken, 5).run(ConnectFour())
    broken = Jax(lambda params, o: {"policy": o}, None)
    with pytest.raises(pondertree.EvaluationError, match="a dict with the keys 'policy'"):
        pondertree.AlphaZero(broken, 5).run(ConnectFour())
    broken = Jax(lambda params, o: (numpy.zeros((len(o), 7), dtype=complex), numpy.zeros(len(o))), None)
    with pytest.raises(pondertree.EvaluationError, match="complex"):
        pondertree.AlphaZero(broken, 5).run(ConnectFour())


def test_reentrant_search_is_refused() -> None:
    switch = Switch()
    assert_no_entry(Jax(in_python(switch), None, jit=False), switch)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="apply"):
        Jax(3, None)  # type: ignore[arg-type]
    with pytest.raises(pondertree.InvalidArgumentError, match="policy"):
        Jax(table, None, policy="odds")
    with pytest.raises(pondertree.InvalidArgumentError, match="jit"):
        Jax(table, None, jit=1)  # type: ignore[arg-type]
    assert repr(Jax(linear, None)) == "Jax(linear, policy='logits')"


def test_jax_flattens_policy_planes() -> None:
    """AlphaZero's head, 73 planes of 8 x 8: the order of the moves is square * 73 + plane."""

    def planes(params: Any, observations: Any) -> tuple[Any, Any]:
        squares = numpy.arange(4672.0).reshape(1, 8, 8, 73) % 97
        return numpy.broadcast_to(squares, (len(observations), 8, 8, 73)).transpose(0, 3, 1, 2), observations[
            :, 0, 0, 0
        ]

    logits, _ = Jax(planes, None).evaluate(np.stack([Chess().observation()] * 3))
    assert logits.tolist() == [(np.arange(4672.0) % 97).tolist()] * 3
    with pytest.raises(pondertree.EvaluationError, match=r"shape \(4, 9, 3, 3\).*num_actions"):
        Jax(lambda params, o: (numpy.zeros((len(o), 9, 3, 3)), o[:, 0, 0, 0]), None).evaluate(
            np.stack([TicTacToe().observation()] * 3)
        )
