"""JAX models: functions of parameters, hidden states as JAX arrays, pool and helpers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.models import HiddenPool, Inference, JaxModel, SpecificationModel, Support, min_max

jax = pytest.importorskip("jax")
jnp = jax.numpy

SIZE, ACTIONS = 6, 5
OBSERVATIONS = np.random.default_rng(0).normal(size=(3, 2, 3)).astype(np.float32)
CHOSEN = np.array([4, 0, 1])


def params(seed: int = 1) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(seed)
    shapes = {"body": (6, SIZE), "step": (SIZE + ACTIONS, SIZE + 1), "head": (SIZE, ACTIONS + 1)}
    return {name: numbers.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def initial(params: Any, observations: Any) -> tuple[Any, ...]:
    hidden = jnp.tanh(observations.reshape(len(observations), -1) @ params["body"])
    return ((hidden, {"count": jnp.zeros(len(hidden), jnp.int32)}), *see(params, hidden))


def recurrent(params: Any, hidden: Any, actions: Any) -> tuple[Any, ...]:
    state, more = hidden
    out = jnp.concatenate([state, jax.nn.one_hot(actions, ACTIONS)], axis=1) @ params["step"]
    after = jnp.tanh(out[:, :SIZE])
    return ((after, {"count": more["count"] + 1}), out[:, SIZE], *see(params, after))


def see(params: Any, hidden: Any) -> tuple[Any, Any]:
    out = hidden @ params["head"]
    return out[:, :ACTIONS], out[:, ACTIONS]


def play(model: Any) -> list[np.ndarray]:
    inference, pool = Inference(model), HiddenPool(2)
    root = inference.initial(OBSERVATIONS)
    pool.scatter(np.arange(3, dtype=np.uint32), root.hidden)
    one = inference.recurrent(pool.gather(np.arange(3)), CHOSEN)
    pool.scatter(np.arange(3, 6, dtype=np.uint32), one.hidden)
    two = inference.recurrent(pool.gather(np.array([5, 0, 5, 3, 4])), np.array([0, 1, 2, 3, 4]))
    assert np.asarray(two.hidden[1]["count"]).tolist() == [2, 1, 2, 2, 2]
    assert isinstance(two.hidden[0], jax.Array)
    return [root.logits, root.values, one.rewards, one.logits, one.values, two.rewards, two.logits, two.values]


def plain() -> list[np.ndarray]:
    own = params()
    (state, more), logits, value = initial(own, OBSERVATIONS)
    (after, _), reward, policy, worth = recurrent(own, (state, more), CHOSEN)
    rows = jnp.stack([after[2], state[0], after[2], after[0], after[1]])
    last = recurrent(own, (rows, {"count": jnp.zeros(5, jnp.int32)}), jnp.arange(5))
    return [np.asarray(each) for each in (logits, value, reward, policy, worth, *last[1:])]


@pytest.mark.parametrize("jit", [True, False])
def test_jax_model_matches_functions(jit: bool) -> None:
    found = play(JaxModel(initial, recurrent, params(), jit=jit))
    for one, other in zip(found, plain(), strict=True):
        assert np.allclose(one, other, atol=1e-5)


def test_batches_are_padded_to_powers_of_two() -> None:
    shapes: list[int] = []

    def traced(own: Any, hidden: Any, actions: Any) -> tuple[Any, ...]:
        shapes.append(len(actions))  # runs once per compilation
        return recurrent(own, hidden, actions)

    inference = Inference(JaxModel(initial, traced, params()))
    root = inference.initial(np.repeat(OBSERVATIONS, 3, axis=0))
    for rows in (1, 2, 3, 4, 5, 6, 7, 8, 3, 5):
        hidden = jax.tree_util.tree_map(lambda array, rows=rows: array[:rows], root.hidden)
        step = inference.recurrent(hidden, np.zeros(rows, np.int64))
        assert step.logits.shape == (rows, ACTIONS)
        assert step.hidden[0].shape == (rows, SIZE)
    assert shapes == [1, 2, 4, 8]


def test_params_can_be_replaced() -> None:
    model = JaxModel(initial, recurrent, params())
    before = model.initial_inference(OBSERVATIONS)[1]
    model.params = {**params(), "head": params()["head"] * 2}
    assert np.allclose(model.initial_inference(OBSERVATIONS)[1], before * 2, atol=1e-5)


def test_bfloat16_outputs_are_read() -> None:
    half = jax.tree_util.tree_map(lambda array: jnp.asarray(array, jnp.bfloat16), params())
    root = Inference(JaxModel(initial, recurrent, half)).initial(OBSERVATIONS.astype(jnp.bfloat16))
    assert root.hidden[0].dtype == jnp.bfloat16
    assert np.allclose(root.logits, plain()[0], atol=0.1)


def spoiled(place: int, change: Any) -> Any:
    def answer(own: Any, hidden: Any, actions: Any) -> tuple[Any, ...]:
        parts = list(recurrent(own, hidden, actions))
        parts[place] = change(parts[place])
        return tuple(parts)

    return answer


def fail(array: Any) -> Any:
    raise RuntimeError("fell over")


WRONG = {
    "nan reward": (1, lambda array: array.at[1].set(jnp.nan), "reward of row 1 is nan"),
    "nan logits": (2, lambda array: array.at[0, 2].set(jnp.nan), "policy_logits of row 0, action 2 is nan"),
    "a reward per batch": (1, lambda array: array.mean(), "reward has shape \\(\\)|whole batch"),
    "too few values": (3, lambda array: array[:1], "value has shape \\(1,\\)|whole batch"),
    "longer rows": (0, lambda hidden: (jnp.tile(hidden[0], 2), hidden[1]), "expected jax float32 \\[6\\].*\\[12\\]"),
    "too few rows": (0, lambda hidden: (hidden[0][:1], hidden[1]), "hidden_state has shape \\(1, 6\\)"),
    "no dict": (0, lambda hidden: hidden[0], "expected a tuple of 2, given an array"),
    "raises": (0, fail, "RuntimeError in recurrent_inference: fell over"),
}


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize(("place", "change", "words"), WRONG.values(), ids=WRONG)
def test_invalid_outputs_raise_named_errors(place: int, change: Any, words: str, rows: int) -> None:
    inference = Inference(JaxModel(initial, spoiled(place, change), params()))
    root = inference.initial(OBSERVATIONS[:rows])
    with pytest.raises(EvaluationError, match=words):
        inference.recurrent(root.hidden, CHOSEN[:rows])


def test_invalid_arguments_raise() -> None:
    with pytest.raises(InvalidArgumentError, match="recurrent must be a function"):
        JaxModel(initial, 3, params())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="jit"):
        JaxModel(initial, recurrent, params(), jit=2)  # type: ignore[arg-type]
    assert repr(JaxModel(initial, recurrent, params())) == "JaxModel(recurrent, jit=True)"


def test_specification_model_in_jax() -> None:
    own = params()

    class Single:
        def initial_inference(self, observation: Any) -> tuple[Any, ...]:
            hidden = jnp.tanh(jnp.asarray(observation).reshape(6) @ own["body"])
            return (hidden, *self.prediction(hidden))

        def recurrent_inference(self, hidden: Any, action: int) -> tuple[Any, Any]:
            out = jnp.concatenate([hidden, jax.nn.one_hot(action, ACTIONS)]) @ own["step"]
            return jnp.tanh(out[:SIZE]), out[SIZE]

        def prediction(self, hidden: Any) -> tuple[Any, Any]:
            out = hidden @ own["head"]
            return out[:ACTIONS], out[ACTIONS]

    inference = Inference(SpecificationModel(Single()))
    root = inference.initial(OBSERVATIONS)
    step = inference.recurrent(root.hidden, CHOSEN)
    assert isinstance(step.hidden, jax.Array)
    for one, other in zip([root.logits, root.values, step.rewards, step.logits, step.values], plain(), strict=False):
        assert np.allclose(one, other, atol=1e-2)  # reduced-precision matrix products on accelerators


# --- the pool and the helpers -------------------------------------------------------------------------------------


def test_pool_writes_in_place() -> None:
    pool = HiddenPool(64)
    pool.scatter(np.arange(4), jnp.ones((4, 3)))
    address = pool._rows[0].unsafe_buffer_pointer()
    pool.scatter(np.array([2, 9]), jnp.zeros((2, 3)))
    assert pool._rows[0].unsafe_buffer_pointer() == address
    assert np.asarray(pool.gather(np.array([1, 2, 9])))[:, 0].tolist() == [1, 0, 0]
    pool.scatter(np.array([200]), jnp.full((1, 3), 7.0))
    assert (pool.capacity, pool.nbytes // pool.capacity) == (256, 12)
    assert np.asarray(pool.gather(np.array([1, 200, 9], dtype=np.uint32)))[:, 0].tolist() == [1, 7, 0]


def test_pool_keeps_pytrees() -> None:
    """Any pytree, such as Flax and Equinox register."""

    @jax.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, one: Any, other: Any) -> None:
            self.one, self.other = one, other

        def tree_flatten(self) -> Any:
            return (self.one, self.other), None

        @classmethod
        def tree_unflatten(cls, nothing: Any, parts: Any) -> Any:
            return cls(*parts)

    pool = HiddenPool(4)
    pool.scatter(np.arange(2), Pair(jnp.arange(2), jnp.ones((2, 3))))
    read = pool.gather(np.array([1, 0, 1]))
    assert isinstance(read, Pair)
    assert np.asarray(read.one).tolist() == [1, 0, 1]
    with pytest.raises(EvaluationError, match="several devices or libraries"):
        HiddenPool().scatter(np.arange(2), (jnp.arange(2), np.arange(2)))


def test_support_and_min_max_on_jax_arrays() -> None:
    support, numbers = Support(40), np.linspace(-900, 900, 37).astype(np.float32)
    shares = jax.jit(support.to_categorical)(numbers)
    assert np.allclose(shares, support.to_categorical(numbers), atol=1e-5)
    assert np.allclose(jax.jit(support.to_scalar)(jnp.log(shares)), numbers, rtol=1e-4)
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    assert np.allclose(min_max(jnp.asarray(rows)), min_max(rows), atol=1e-6)
