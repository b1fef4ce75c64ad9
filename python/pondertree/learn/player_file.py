"""A player as a file: the weights of a network that plays, and what it takes to build it. Nothing in it is executed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from pondertree.check import brief
from pondertree.errors import StorageError
from pondertree.extras import require
from pondertree.files import current_format, player_metadata, reading
from pondertree.learn.model_architecture import ModelArchitecture
from pondertree.learn.model_networks import ModelNetwork
from pondertree.learn.networks import Architecture, PolicyValueNetwork
from pondertree.learn.player_weights import FORMAT, VERSION, what_it_seems


def player_bytes(player: Any, about: dict[str, Any]) -> bytes:
    """The content of the file of a folded network; `about` is plain data of its making, such as game and step."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().float().cpu().contiguous() for name, tensor in player.state_dict().items()}
    told = {"format": FORMAT, "version": VERSION, "network": player.architecture.as_data(), **about}
    told["sha256"] = _sum_of(tensors)
    content: bytes = save(tensors, metadata={"pondertree": json.dumps(told)})
    return content


def read_player(path: Path) -> tuple[Any, dict[str, Any]]:
    """(the network, plain data of its making) of a file that `player_bytes` made."""
    if path.suffix.lower() == ".onnx":
        raise StorageError(
            f"{str(path)!r} is an ONNX file, no player: pondertree.evaluators.Onnx reads it (onnx:FILE in a match)"
        )
    with reading(path, "a player", StorageError) as file:
        return player_of_bytes(file.read_bytes())


def player_of_bytes(content: bytes) -> tuple[Any, dict[str, Any]]:
    """The same from the content of a file."""
    require("safetensors", "torch", "loading a player")
    from safetensors.torch import load

    try:
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length])["__metadata__"]
        about: dict[str, Any] = json.loads(player_metadata(metadata))
        if not isinstance(about, dict):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):  # what they say may quote the whole file
        raise StorageError(f"this is no file of a player, or it is damaged{what_it_seems(content)}") from None
    if current_format(about.get("format")) != FORMAT or about.get("version") != VERSION:
        told = brief(f"a {about.get('format')} of version {about.get('version')}")
        raise StorageError(f"it is {told}; this version reads {FORMAT} {VERSION}")
    with torch.device("meta"):  # whatever the file claims, nothing is set aside but what it brings along
        network = _described(about.get("network"))
    tensors = load(content)
    wrong = next((name for name, tensor in tensors.items() if tensor.dtype != torch.float32), None)
    if wrong is not None:
        raise StorageError(f"its weights must be float32: {brief(repr(wrong))} is {tensors[wrong].dtype}")
    if "sha256" in about and about.pop("sha256") != _sum_of(tensors):
        raise StorageError("its weights are damaged: their checksum differs")
    try:
        network.load_state_dict(tensors, strict=True, assign=True)
    except RuntimeError as error:
        raise StorageError(f"its weights do not fit the network it describes: {brief(str(error))}") from None
    if not all(bool(torch.isfinite(tensor).all()) for tensor in network.state_dict().values()):
        raise StorageError("its weights are not all finite")
    network.eval().requires_grad_(False)
    network.game = str(about.get("game", ""))
    return network.to(memory_format=torch.channels_last), about


def _sum_of(tensors: dict[str, torch.Tensor]) -> str:
    """A checksum of weights, and of which is which."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        total.update(name.encode())
        total.update(tensors[name].contiguous().numpy().tobytes())
    return total.hexdigest()


def _described(data: Any) -> Any:
    """The network that a file describes: one of a model, or a policy-value network."""
    if isinstance(data, dict) and data.get("kind") == "model":
        return ModelNetwork(ModelArchitecture.of_data(data), folded=True)
    return PolicyValueNetwork(Architecture.of_data(data), folded=True)
