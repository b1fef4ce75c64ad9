"""Networks of a model: representation, dynamics and prediction (MuZero, appendix F), in one module that searches ask.

Boards and images have convolutions with batch norms, which are folded away for playing; vectors have dense layers with
layer norms. Hidden states are brought to [0, 1]. What plays gives a discount with each step, below 0 where players take
turns, so that a search needs to be told nothing about the game.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ponderosa.errors import InvalidArgumentError
from ponderosa.learn.categories import Categories
from ponderosa.learn.config import Config, NetworkConfig
from ponderosa.learn.game_spec import GameSpec
from ponderosa.learn.networks import CHESS_PLANES, Architecture, Block, Normed, PolicyValueNetwork
from ponderosa.models.normalise import min_max

#: Images are halved until no side is longer than this.
LONGEST_SIDE = 12
#: More actions than this get a picture that is learned for each; fewer a plane of their own.
MOST_ACTION_PLANES = 32
#: Width of the vectors that hidden states are compared as.
COMPARED = 128


@dataclass(frozen=True, slots=True)
class ModelArchitecture:
    """Everything that must be known to build the networks of a model, in plain data."""

    shape: tuple[int, ...]
    """The shape of an observation."""
    num_actions: int
    policy_planes: int
    """Planes of moves from each square, as in chess; 0 where the policy is read by a dense layer."""
    action_planes: str
    """How a hidden state is told an action: "cells", "columns", "squares" (chess), "constant", "learned", "vector"."""
    halvings: int
    """How often an image is halved."""
    support: int
    """Whole numbers on each side that values are spread over; 0: chances of winning, drawing and losing."""
    discount: float
    """What comes with each step; below 0 players take turns."""
    dynamics_blocks: int
    compares: bool
    """Whether there are layers that compare hidden states, to learn by."""
    size: NetworkConfig

    @classmethod
    def of(cls, spec: GameSpec, config: Config) -> ModelArchitecture:
        """The networks of a game."""
        is_chess = spec.info.compiled and spec.info.name == "chess"
        halvings = 0
        if spec.pixels and len(spec.shape) == 3:
            while max(spec.shape[1:]) > LONGEST_SIDE << halvings:
                halvings += 1
        discount = config.muzero.discount
        return cls(
            spec.shape,
            spec.info.num_actions,
            CHESS_PLANES if is_chess else 0,
            "squares" if is_chess else _action_planes(spec),
            halvings,
            config.muzero.support,
            -discount if spec.info.num_players == 2 else discount,
            config.muzero.dynamics_blocks,
            config.muzero.consistency > 0.0,
            config.network,
        )

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """The shape of a hidden state."""
        if len(self.shape) != 3:
            return (self.size.channels,)
        sides: tuple[int, ...] = self.shape[1:]
        for _ in range(self.halvings):
            sides = tuple((side + 1) // 2 for side in sides)
        return (self.size.channels, *sides)

    def as_data(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "model", **asdict(self), "shape": list(self.shape)}

    @classmethod
    def of_data(cls, data: Any) -> ModelArchitecture:
        """From plain data that `as_data` gave."""
        try:
            told = {name: value for name, value in data.items() if name != "kind"}
            told["shape"] = tuple(int(length) for length in told["shape"])
            told["size"] = NetworkConfig(**told["size"])
            return cls(**told)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(f"this describes no model: {error}") from None


def _action_planes(spec: GameSpec) -> str:
    if len(spec.shape) != 3:
        return "vector"
    actions, (_, height, width) = spec.info.num_actions, spec.shape
    if spec.is_environment:
        return "constant" if actions <= MOST_ACTION_PLANES else "learned"
    if actions in (height * width, height * width + 1):
        return "cells"  # one more is a pass, which marks none
    if actions == width:
        return "columns"
    return "learned"


class ActionPlanes(nn.Module):
    """Actions [B] as planes [B, planes, height, width], or as vectors [B, num_actions]."""

    def __init__(self, architecture: ModelArchitecture) -> None:
        super().__init__()
        self.kind = architecture.action_planes
        self.num_actions = architecture.num_actions
        self.sides = architecture.hidden_shape[1:]
        sizes = {"vector": self.num_actions, "squares": 1 + CHESS_PLANES, "constant": self.num_actions}
        self.planes = sizes.get(self.kind, 1)
        if self.kind == "learned":
            self.pictures = nn.Embedding(self.num_actions, self.sides[0] * self.sides[1])

    def forward(self, actions: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """As numbers of this type."""
        if self.kind == "learned":
            return self.pictures(actions).reshape(-1, 1, *self.sides).to(dtype)
        if self.kind == "vector":
            return _marks(actions, self.num_actions, dtype)
        if self.kind == "constant":
            marks = _marks(actions, self.num_actions, dtype)
            return marks[:, :, None, None].expand(-1, -1, *self.sides)
        height, width = self.sides
        if self.kind == "columns":
            return _marks(actions, width, dtype)[:, None, None, :].expand(-1, 1, height, -1)
        if self.kind == "cells":
            cells = height * width
            return _marks(actions, cells, dtype).reshape(-1, 1, height, width)
        # The number of a move in chess is square * 73 + plane.
        squares = _marks(actions // CHESS_PLANES, height * width, dtype).reshape(-1, 1, height, width)
        kinds = _marks(actions % CHESS_PLANES, CHESS_PLANES, dtype)
        return torch.cat([squares, kinds[:, :, None, None].expand(-1, -1, height, width)], dim=1)


def _marks(numbers: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor:
    """[B, count]: 1 in the place of each number, if it has one; never waits for the device, as `one_hot` may."""
    return (numbers[:, None] == torch.arange(count, device=numbers.device)).to(dtype)


class Prediction(PolicyValueNetwork):
    """Hidden states to policies and values: a small policy-value network of its own."""

    def __init__(self, architecture: ModelArchitecture, categories: Categories, folded: bool) -> None:
        size = architecture.size
        inner = NetworkConfig(**{**asdict(size), "blocks": 0})
        shape = architecture.hidden_shape
        super().__init__(
            Architecture(shape, architecture.num_actions, architecture.policy_planes, inner), folded=folded
        )
        self.value_out = nn.Linear(size.value_hidden, categories.count)

    def _layer(self, inputs: int, outputs: int, reach: int = 3) -> nn.Module:
        return make_layer(inputs, outputs, reach, is_board=self.is_board, folded=self.is_folded)


def make_layer(
    inputs: int, outputs: int, reach: int = 3, *, is_board: bool, folded: bool, stride: int = 1
) -> nn.Module:
    """A convolution and its norm, or a dense layer and its norm."""
    if not is_board:
        return nn.Sequential(nn.Linear(inputs, outputs), nn.LayerNorm(outputs))
    layer = nn.Conv2d(inputs, outputs, reach, stride=stride, padding=reach // 2, bias=folded)
    return layer if folded else Normed(layer, nn.BatchNorm2d(outputs))


class ModelNetwork(nn.Module):
    """A model: `initial_inference` and `recurrent_inference`, as every search of a model asks them."""

    def __init__(self, architecture: ModelArchitecture, *, folded: bool = False) -> None:
        super().__init__()
        self.architecture = architecture
        self.is_folded = folded
        self.is_board = len(architecture.shape) == 3
        self.categories = Categories(architecture.support)
        size, channels = architecture.size, architecture.size.channels
        planes = architecture.shape[0] if self.is_board else 1
        for length in () if self.is_board else architecture.shape:
            planes *= length
        self.stem = self._layer(planes, channels)
        self.halve = nn.ModuleList(self._layer(channels, channels, stride=2) for _ in range(architecture.halvings))
        self.blocks = nn.ModuleList(self._block(channels) for _ in range(size.blocks))
        self.action_planes = ActionPlanes(architecture)
        self.step_in = self._layer(channels + self.action_planes.planes, channels)
        self.step_blocks = nn.ModuleList(self._block(channels) for _ in range(architecture.dynamics_blocks))
        self.reward_layer = self._layer(channels, size.value_channels, 1)
        cells = 1
        for length in architecture.hidden_shape[1:]:
            cells *= length
        self.reward_hidden = nn.Linear(size.value_channels * cells, size.value_hidden)
        self.reward_out = nn.Linear(size.value_hidden, self.categories.count)
        self.predictor = Prediction(architecture, self.categories, folded)
        if architecture.compares and not folded:
            self.projector = nn.Sequential(
                nn.Linear(channels * cells, COMPARED),
                nn.LayerNorm(COMPARED),
                nn.ReLU(),
                nn.Linear(COMPARED, COMPARED),
            )
            self.guesser = nn.Sequential(
                nn.Linear(COMPARED, COMPARED), nn.LayerNorm(COMPARED), nn.ReLU(), nn.Linear(COMPARED, COMPARED)
            )

    def _layer(self, inputs: int, outputs: int, reach: int = 3, stride: int = 1) -> nn.Module:
        return make_layer(inputs, outputs, reach, is_board=self.is_board, folded=self.is_folded, stride=stride)

    def _block(self, channels: int) -> Block:
        return Block(self._layer(channels, channels), self._layer(channels, channels))

    def represent(self, observations: torch.Tensor) -> torch.Tensor:
        """Hidden states of what is seen."""
        x = torch.relu(self.stem(observations if self.is_board else observations.flatten(1)))
        for halve in self.halve:
            x = torch.relu(halve(x))
        for block in self.blocks:
            x = block(x)
        return self._scaled(x)

    def step(self, hidden: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Hidden states after actions."""
        told = torch.cat([hidden, self.action_planes(actions, hidden.dtype)], dim=1)
        # A move changes little of a position: what it changes is added.
        x = torch.relu(hidden + self.step_in(told))
        for block in self.step_blocks:
            x = block(x)
        return self._scaled(x)

    def reward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits of the rewards that came with the step to these hidden states."""
        x = torch.relu(self.reward_hidden(torch.relu(self.reward_layer(hidden)).flatten(1)))
        return self.reward_out(x)

    def heads(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(policy logits, logits of the value)."""
        policy, value = self.predictor.heads(hidden)
        return policy, value

    def compared(self, hidden: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """How unlike hidden states after steps [B, ...] are those of what was seen then [B], from -1, the same, to 1.

        Only the former learn from it (EfficientZero, section 4.1).
        """
        guess = self.guesser(self.projector(hidden.flatten(1)))
        with torch.no_grad():
            goal = self.projector(seen.flatten(1))
        return -functional.cosine_similarity(guess.float(), goal.float(), dim=1)

    def initial_inference(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(hidden_state, policy_logits, value)."""
        hidden = self.represent(observations)
        policy, value = self.heads(hidden)
        return hidden, policy, self.categories.to_numbers(value)

    def recurrent_inference(self, hidden_states: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(hidden_state, reward, policy_logits, value, discount)."""
        hidden = self.step(hidden_states, actions)
        policy, logits = self.heads(hidden)
        value = self.categories.to_numbers(logits)
        discount = torch.full_like(value, self.architecture.discount)
        return hidden, self.categories.to_numbers(self.reward(hidden)), policy, value, discount

    @staticmethod
    def _scaled(hidden: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = min_max(hidden)
        return scaled


class Initial(nn.Module):
    """The `initial_inference` of a model as a module of its own."""

    def __init__(self, network: ModelNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(hidden_state, policy_logits, value)."""
        return self.network.initial_inference(observations)


class Recurrent(nn.Module):
    """The `recurrent_inference` of a model as a module of its own."""

    def __init__(self, network: ModelNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, hidden_states: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(hidden_state, reward, policy_logits, value, discount)."""
        return self.network.recurrent_inference(hidden_states, actions)


def fresh_model(architecture: ModelArchitecture, seed: int) -> ModelNetwork:
    """A model that knows nothing: policies, values and rewards begin flat. Random numbers of others are left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ModelNetwork(architecture)
    for layer in (network.predictor.policy_out, network.predictor.value_out, network.reward_out):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    for block in (*network.blocks, *network.step_blocks):
        norm = block.second.norm if isinstance(block.second, Normed) else block.second[1]
        nn.init.zeros_(norm.weight)
    return network
