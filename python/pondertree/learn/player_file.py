"""A player as a file: the weights of a network that plays, and what it takes to build it. Nothing in it is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from pondertree.check import brief
from pondertree.errors import StorageError
from pondertree.files import reading
from pondertree.learn.architecture import Architecture
from pondertree.learn.model_architecture import ModelArchitecture
from pondertree.learn.model_networks import ModelNetwork
from pondertree.learn.networks import PolicyValueNetwork
from pondertree.learn.player_weights import FORMAT, VERSION, checksum, read_weights


def player_bytes(player: Any, about: dict[str, Any]) -> bytes:
    """The content of the file of a folded network; `about` is plain data of its making, such as game and step."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().float().cpu().contiguous() for name, tensor in player.state_dict().items()}
    told = {"format": FORMAT, "version": VERSION, "network": player.architecture.as_data(), **about}
    told["sha256"] = checksum({name: tensor.numpy() for name, tensor in tensors.items()})
    content: bytes = save(tensors, metadata={"pondertree": json.dumps(told)})
    return content


def read_player(path: Path) -> tuple[Any, dict[str, Any]]:
    """(the network, plain data of its making) of a file that `player_bytes` made."""
    with reading(path, "a player", StorageError) as file:
        return player_of_bytes(file.read_bytes())


def player_of_bytes(content: bytes) -> tuple[Any, dict[str, Any]]:
    """The same from the content of a file."""
    about, weights = read_weights(content)
    with torch.device("meta"):  # whatever the file claims, nothing is set aside but what it brings along
        network = _described(about.get("network"))
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    try:
        network.load_state_dict(tensors, strict=True, assign=True)
    except RuntimeError as error:
        raise StorageError(f"its weights do not fit the network it describes: {brief(str(error))}") from None
    network.eval().requires_grad_(False)
    network.game = str(about.get("game", ""))
    return network.to(memory_format=torch.channels_last), about


def _described(data: Any) -> Any:
    """The network that a file describes: one of a model, or a policy-value network."""
    if isinstance(data, dict) and data.get("kind") == "model":
        return ModelNetwork(ModelArchitecture.of_data(data), folded=True)
    return PolicyValueNetwork(Architecture.of_data(data), folded=True)
