"""`select_action` on chess: 119 planes, 4672 actions, models in the MuZero specification's form and in ours."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.exact_models import ExactBatchModel
from tests.support.models import TableModel
from tests.support.search_helpers import after, random_position

import pondertree
from pondertree import MCTSConfig, MuZeroConfig, select_action
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.reference import muzero

ACTIONS, HIDDEN = 4672, 16
STATES = [
    Chess(),
    random_position(Chess, 21, 3),
    Chess("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 0 1"),
    Chess("7k/8/8/8/8/8/8/K6R b - - 0 1"),
]


def weights(*shape: int) -> Any:
    numbers = np.random.default_rng(list(shape))
    return numbers.normal(0.0, 1.0 / np.sqrt(shape[0]), shape).astype(np.float32)


LOOK, MOVE, POLICY, VALUE = weights(119 * 64, HIDDEN), weights(2, HIDDEN), weights(HIDDEN, ACTIONS), weights(HIDDEN, 1)


class Numbers:
    """A NumPy network in the specification's form: one observation, hidden state and action at a time."""

    num_players = 2

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        assert observation.shape == (119, 8, 8)
        hidden = np.tanh(observation.reshape(-1) @ LOOK)
        return hidden, *self.prediction(hidden)

    def recurrent_inference(self, hidden_state: Any, action: Any) -> tuple[Any, Any]:
        assert hidden_state.shape == (HIDDEN,)
        move = np.array([action % 73, action // 73], dtype=np.float32) / 73.0
        hidden = np.tanh(hidden_state + move @ MOVE)
        return hidden, hidden[0] / 10.0

    def prediction(self, hidden_state: Any) -> tuple[Any, Any]:
        return 3.0 * hidden_state @ POLICY, np.tanh(hidden_state @ VALUE)[0]


class OurForm:
    """The same network as a batched `Model`."""

    num_players = 2

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        hidden = np.tanh(observations.reshape(len(observations), -1) @ LOOK)
        return hidden, *self.heads(hidden)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        moves = np.stack([actions % 73, actions // 73], axis=1).astype(np.float32) / 73.0
        hidden = np.tanh(hidden_states + moves @ MOVE)
        return hidden, hidden[:, 0] / 10.0, *self.heads(hidden)

    def heads(self, hidden: Any) -> tuple[Any, Any]:
        return 3.0 * hidden @ POLICY, np.tanh(hidden @ VALUE)[:, 0]


def torch_network() -> Any:
    """The same network in PyTorch, in the specification's form: tensors without a batch axis."""
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        num_players = 2

        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.move, self.policy, self.value = (
                torch.nn.Parameter(torch.from_numpy(each.copy())) for each in (LOOK, MOVE, POLICY, VALUE)
            )

        def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
            assert observation.shape == (119, 8, 8)
            hidden = torch.tanh(observation.reshape(-1) @ self.encoder)
            return hidden, *self.prediction(hidden)

        def recurrent_inference(self, hidden_state: Any, action: Any) -> tuple[Any, Any]:
            assert hidden_state.shape == (HIDDEN,)
            move = torch.tensor([int(action) % 73, int(action) // 73], dtype=torch.float32) / 73.0
            hidden = torch.tanh(hidden_state + move @ self.move)
            return hidden, hidden[0] / 10.0

        def prediction(self, hidden_state: Any) -> tuple[Any, Any]:
            return 3.0 * hidden_state @ self.policy, torch.tanh(hidden_state @ self.value)[0]

    return Network()


def torch_batched() -> Any:
    """A PyTorch network in the specification's form that takes batches."""
    torch = pytest.importorskip("torch")

    class Batched(torch.nn.Module):  # type: ignore[misc, name-defined]
        num_players = 2

        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Linear(119 * 64, HIDDEN)
            self.step = torch.nn.Linear(HIDDEN + 1, HIDDEN)
            self.policy, self.value = torch.nn.Linear(HIDDEN, ACTIONS), torch.nn.Linear(HIDDEN, 1)

        def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
            hidden = torch.tanh(self.encoder(observation.flatten(1)))
            return hidden, *self.prediction(hidden)

        def recurrent_inference(self, hidden_state: Any, action: Any) -> tuple[Any, Any]:
            hidden = torch.tanh(self.step(torch.cat([hidden_state, action[:, None] / ACTIONS], dim=1)))
            return hidden, hidden[:, :1] / 10.0

        def prediction(self, hidden_state: Any) -> tuple[Any, Any]:
            return self.policy(hidden_state), torch.tanh(self.value(hidden_state))

    torch.manual_seed(1)
    return Batched()


NETWORKS = {"numpy": Numbers, "ours": OurForm, "torch": torch_network, "torch batched": torch_batched}
unknown_players = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")
each_network = pytest.mark.parametrize("name", NETWORKS)


# --- The configuration ------------------------------------------------------------------------------------------


def test_configuration_has_the_documents_fields_and_defaults() -> None:
    config = MCTSConfig()
    assert {name: getattr(config, name) for name in config.__dataclass_fields__} == {
        "num_simulations": 50,
        "root_dirichlet_alpha": 0.3,
        "root_exploration_fraction": 0.25,
        "pb_c_base": 19652,
        "pb_c_init": 1.25,
        "discount": 0.997,
        "num_players": 1,
    }
    config.num_simulations = 800
    assert config.num_simulations == 800
    assert MuZeroConfig is MCTSConfig is pondertree.MuZeroConfig is muzero.MCTSConfig
    names = inspect.signature(select_action).parameters
    assert list(names)[:6] == ["network", "config", "observation", "legal_actions", "temperature", "add_noise"]
    assert (names["temperature"].default, names["add_noise"].default) == (1.0, True)


@dataclass
class Subclass(MCTSConfig):
    num_simulations: int = 5


@unknown_players
def test_any_object_with_some_fields_is_a_configuration() -> None:
    calls = []

    class Counting(TableModel):
        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            calls.append(len(actions))
            return super().recurrent_inference(hidden_states, actions)

    for config, simulations in (
        (Subclass(), 5),
        (SimpleNamespace(num_simulations=7), 7),
        (SimpleNamespace(num_simulations=3, discount=1.0, anything="else"), 3),
        (MCTSConfig(num_simulations=2, num_players=2), 2),
    ):
        calls.clear()
        assert select_action(Counting(4), config, np.array([3]), [1, 2], seed=1) in (1, 2)
        assert sum(calls) == simulations


@unknown_players
def test_invalid_configurations_and_roots_are_refused() -> None:
    model, config = TableModel(4), MCTSConfig(num_simulations=3)
    for wrong, words in ((MCTSConfig, "call it"), (None, "MCTSConfig"), (5, "MCTSConfig"), ({}, "MCTSConfig")):
        with pytest.raises(pondertree.InvalidArgumentError, match=words):
            select_action(model, wrong, np.array([3]), [1, 2])
    with pytest.raises(pondertree.InvalidArgumentError, match="discount"):
        select_action(model, MCTSConfig(discount=-1.0), np.array([3]), [1, 2])
    for legal, words in (([], "empty"), ([1, 1], "twice"), ([4], "has 4"), ([-1], "has -1")):
        with pytest.raises(pondertree.InvalidArgumentError, match=f"legal_actions.*{words}"):
            select_action(model, config, np.array([3]), legal)
    with pytest.raises(pondertree.InvalidArgumentError, match="temperature"):
        select_action(model, config, np.array([3]), [1], temperature=-1.0)
    with pytest.raises(pondertree.InvalidArgumentError, match="model"):
        select_action(object(), config, np.array([3]), [1])


# --- On chess, as in the specification --------------------------------------------------------------------------


@each_network
@pytest.mark.parametrize("temperature", [1.0, 0])
def test_select_action_plays_chess(name: str, temperature: float) -> None:
    """The action is legal, and equal for equal seeds."""
    network, config = NETWORKS[name](), MCTSConfig()
    config.num_simulations = 20
    for place, state in enumerate(STATES):
        observation, legal_actions = state.observation(), state.legal_actions()
        assert observation.shape == (119, 8, 8)
        first = select_action(network, config, observation, legal_actions, temperature, seed=place)
        assert isinstance(first, int)
        assert first in legal_actions
        assert select_action(network, config, observation, legal_actions, temperature, seed=place) == first
        assert select_action(network, config, observation, legal_actions, temperature) in legal_actions


@each_network
def test_select_action_defaults_play_chess(name: str) -> None:
    """Fifty simulations with noise and temperature 1: the specification's defaults."""
    state = Chess()
    action = select_action(NETWORKS[name](), MCTSConfig(), state.observation(), state.legal_actions())
    assert state.play(action).to_play == 1


@pytest.mark.parametrize("name", ["ours", "torch"])
def test_both_forms_of_a_network_give_the_same_search(name: str) -> None:
    config = MCTSConfig(num_simulations=30)
    for seed in range(6):
        state = STATES[seed % len(STATES)]
        one, other = (
            select_action(network, config, state.observation(), state.legal_actions(), seed=seed)
            for network in (Numbers(), NETWORKS[name]())
        )
        assert one == other


def test_select_action_matches_the_preset() -> None:
    state, config = STATES[1], MCTSConfig(num_simulations=30, num_players=2, discount=1.0, pb_c_init=2.0)
    search = pondertree.MuZero(OurForm(), 30, num_players=2, discount=1.0, pb_c_init=2.0, seed=4)
    told = {"observation": state.observation(), "legal_actions": state.legal_actions(), "to_play": 1}
    expected = search.run(**told, temperature=0.0, add_noise=False)
    action = select_action(OurForm(), config, *list(told.values())[:2], 0.0, False, to_play=1, seed=4)
    assert action == expected.action


def test_select_action_applies_temperature_and_noise() -> None:
    class Alone(OurForm):
        num_players = 1

    state, config = Chess(), MCTSConfig(num_simulations=12)
    about = Alone(), config, state.observation(), state.legal_actions()
    greedy = Counter(select_action(*about, 0, False, seed=seed) for seed in range(10))
    assert len(greedy) == 1, "without noise and without temperature there is no chance but ties"
    assert len({select_action(*about, 1.0, False, seed=seed) for seed in range(25)}) > 1
    assert len({select_action(*about, 1e-9, False, seed=seed) for seed in range(10)}) == 1, "no overflow"
    noisy = {select_action(*about, 0, True, seed=seed) for seed in range(25)}
    assert len(noisy) > 1


def test_two_players_have_opposite_signs() -> None:
    """With an exact model of a game, `select_action` wins at once and prevents immediate losses."""
    config = MCTSConfig(num_simulations=300, num_players=2, discount=1.0)
    for start, moves, action in (
        (TicTacToe(), [0, 3, 1, 4], 2),
        (ConnectFour(), "1 2 1 2 1 2", 0),
        (ConnectFour(), "1 2 1 2 1", 0),
        (ConnectFour(), "1 2 3 2 1 2 7", 1),
    ):
        state = after(start, moves)
        told = state.observation(), state.legal_actions(), 0, False
        assert select_action(ExactBatchModel([state]), config, *told, to_play=state.to_play, seed=1) == action
