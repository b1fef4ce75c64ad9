"""Arrays of observations in `run`: one observation, a batch, or refused as ambiguous."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import after

import pondertree
from pondertree.errors import InvalidArgumentError
from pondertree.games import TicTacToe

each_preset = pytest.mark.parametrize("preset", [pondertree.MuZero, pondertree.Gumbel])
WEIGHTS = np.random.default_rng(3).normal(size=(12, 5)).astype(np.float32)


class Linear:
    """Takes observations [B, 3, 4] and nothing else; the hidden state is a number."""

    num_players = 1

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        self.shapes.append(tuple(observations.shape))
        seen = observations.reshape(len(observations), -1) @ WEIGHTS
        return seen[:, :1], seen, np.tanh(seen[:, 0])

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        hidden = np.sin(3.0 * hidden_states + actions.reshape(-1, 1))
        return hidden, hidden[:, 0], np.tile(WEIGHTS[0], (len(hidden), 1)), np.zeros(len(hidden))


class Anything(Linear):
    """Takes any shape: it counts rows, and looks at the first number of each."""

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        self.shapes.append(tuple(np.shape(observations)))
        hidden = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)[:, :1]
        return hidden, np.tile(WEIGHTS[0], (len(hidden), 1)), np.tanh(hidden[:, 0])


class Declared(Anything):
    observation_shape = (3, 4)


BATCH = np.random.default_rng(1).normal(size=(6, 3, 4)).astype(np.float32)


def told(results: Any) -> Any:
    return [(result.action, result.visits.tolist(), result.value) for result in results]


@each_preset
@pytest.mark.parametrize("model", [Linear, Declared])
def test_array_with_a_batch_axis_is_searched_as_a_batch(preset: Any, model: Any) -> None:
    expected = preset(model(), num_simulations=12, seed=1).run(observation=list(BATCH), seeds=list(range(6)))
    found = preset(model(), num_simulations=12, seed=1).run(observation=BATCH, seeds=list(range(6)))
    assert isinstance(found, list)
    assert told(found) == told(expected)
    assert len({result.value for result in found}) == 6


@each_preset
@pytest.mark.parametrize("model", [Linear, Declared])
def test_array_of_one_observation_is_searched_as_one(preset: Any, model: Any) -> None:
    search = preset(model(), num_simulations=12, seed=1)
    found = search.run(observation=BATCH[2], seeds=5)
    expected = preset(model(), num_simulations=12, seed=1).run(observation=[BATCH[2]], seeds=[5])
    assert told([found]) == told(expected)


@each_preset
def test_ambiguous_observation_array_is_refused(preset: Any) -> None:
    search = preset(Anything(), num_simulations=12, seed=1)
    for array in (BATCH, BATCH[0]):
        with pytest.raises(InvalidArgumentError, match="declare observation_shape"):
            search.run(observation=array)
    assert len(search.run(observation=list(BATCH))) == 6
    assert len(search.run(observation=[BATCH])) == 1


@each_preset
def test_array_with_disambiguating_arguments_is_accepted(preset: Any) -> None:
    one = preset(Anything(), num_simulations=8, seed=1).run(observation=BATCH[0], legal_actions=[0, 2])
    assert one.simulations == 8
    many = preset(Anything(), num_simulations=8, seed=1).run(observation=BATCH, to_play=[0] * 6)
    assert len(many) == 6
    many = preset(Anything(), num_simulations=8, seed=1).run(observation=BATCH, legal_actions=[[0, 2]] * 6)
    assert len(many) == 6
    search = preset(Anything(), num_simulations=8, seed=1)
    assert search.search(observation=BATCH[0]) in range(5)
    search.tree(observation=BATCH[0])
    for single in ([7.0], np.array([7.0]), np.array([7.0, 1.0])):
        assert preset(Anything(), num_simulations=8, seed=1).run(observation=single).simulations == 8


def test_legal_actions_of_one_with_a_known_batch_are_refused() -> None:
    search = pondertree.MuZero(Declared(), num_simulations=8)
    with pytest.raises(InvalidArgumentError, match="legal_actions has 2 entries for 6 observations"):
        search.run(observation=BATCH, legal_actions=[0, 2])
    for call in (search.search, search.get_policy, search.tree):
        with pytest.raises(InvalidArgumentError, match="takes one observation"):
            call(observation=BATCH)


def test_shape_of_an_earlier_observation_decides() -> None:
    search = pondertree.MuZero(Anything(), num_simulations=8, seed=1)
    search.run(observation=[BATCH[0], BATCH[1]])
    assert len(search.run(observation=BATCH)) == 6
    assert search.run(observation=BATCH[0]).simulations == 8


def test_declared_shape_refuses_others() -> None:
    search = pondertree.MuZero(Declared(), num_simulations=8)
    for wrong in (BATCH[0, 0], BATCH[:, :2], BATCH[None]):
        with pytest.raises(InvalidArgumentError, match=r"observation has shape .*\(3, 4\)"):
            search.run(observation=wrong)

    class Wrong(Anything):
        observation_shape = "image"

    with pytest.raises(InvalidArgumentError, match="observation_shape of the model"):
        pondertree.MuZero(Wrong())


def test_batch_of_scalars_needs_a_declared_shape() -> None:
    class Number(Anything):
        observation_shape = ()

    results = pondertree.MuZero(Number(), num_simulations=8, seed=1).run(observation=np.array([1, 2, 3]))
    assert [result.simulations for result in results] == [8, 8, 8]


def test_accepted_shape_is_probed_once() -> None:
    model = Linear()
    search = pondertree.MuZero(model, num_simulations=3, seed=1)
    search.run(observation=BATCH)
    assert model.shapes == [(2, 3, 4), (2, 6, 3, 4), (6, 3, 4)]
    model.shapes.clear()
    search.run(observation=BATCH[:4])
    search.run(observation=BATCH[0])
    assert model.shapes == [(4, 3, 4), (1, 3, 4)]


def test_observation_of_a_game_is_single_for_a_board_model() -> None:
    class Boards:
        num_players = 2

        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            boards = (observations[:, 0] - observations[:, 1]).reshape(-1, 9)
            return boards, np.zeros((len(boards), 9)), np.zeros(len(boards))

        def recurrent_inference(self, boards: Any, actions: Any) -> tuple[Any, ...]:
            return -boards, np.zeros(len(boards)), np.zeros((len(boards), 9)), np.zeros(len(boards))

    states = [after(TicTacToe(), moves) for moves in ([], [4], [0, 4])]
    search = pondertree.MuZero(Boards(), num_simulations=9, seed=1)
    assert search.run(observation=states[1].observation()).simulations == 9
    assert len(search.run(observation=np.stack([state.observation() for state in states]))) == 3


@pytest.mark.parametrize("batch_first", [True, False])
def test_torch_tensors_are_distinguished_by_shape(batch_first: bool) -> None:
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        num_players = 1

        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Linear(12, 5)

        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            logits = self.encoder(observations.flatten(1))
            return logits, logits, logits[:, 0]

        def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
            return torch.sin(hidden + actions[:, None]), hidden[:, 0], hidden, hidden[:, 1]

    search = pondertree.MuZero(Network(), num_simulations=6, seed=1)
    if batch_first:
        assert len(search.run(observation=torch.from_numpy(BATCH))) == 6
    assert search.run(observation=torch.from_numpy(BATCH[0])).simulations == 6
    assert len(search.run(observation=torch.from_numpy(BATCH))) == 6


class OutOfMemoryOnce(Linear):
    """Its first call runs out of memory."""

    def initial_inference(self, observations: Any) -> Any:
        if not self.shapes:
            self.shapes.append(())
            raise MemoryError("once")
        return super().initial_inference(observations)


def test_unrelated_error_does_not_decide_the_shape() -> None:
    search = pondertree.MuZero(OutOfMemoryOnce(), 4, num_players=1, seed=1)
    with pytest.raises(MemoryError):
        search.run(observation=np.zeros((6, 3, 4)))
    assert len(search.run(observation=np.zeros((6, 3, 4)))) == 6


def test_refused_shape_is_not_remembered() -> None:
    search = pondertree.MuZero(Linear(), 4, num_players=1, seed=1)
    with pytest.raises(pondertree.EvaluationError):
        search.run(observation=np.zeros((3, 5)))
    assert len(search.run(observation=np.zeros((3, 3, 4)))) == 3


def test_single_legal_actions_with_an_accepted_batch_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="legal_actions has 2 entries for 6 observations"):
        pondertree.MuZero(Linear(), 4, seed=1).run(observation=BATCH, legal_actions=[0, 1])
    assert pondertree.MuZero(Linear(), 4, seed=1).run(observation=BATCH[0], legal_actions=[0, 1]).simulations == 4
