"""Player files in safetensors format: metadata and float32 weights, validated before use. Reading needs NumPy alone.

The format: eight bytes with the length of a JSON header, the header, then the data of all tensors without gaps. Nothing
in a file is executed.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import StorageError
from pondertree.files import current_format, player_metadata, reading, unique_names
from pondertree.validation import brief

FORMAT = "pondertree-player"
VERSION = 1
#: Largest number of axes of a tensor, and of bytes of a header.
MAX_AXES, MAX_HEADER_LENGTH = 8, 1 << 24


def read_weights(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """Returns (metadata, weights by name) of a player file; all checked except that they fit the network."""
    try:
        header, start = _header(content)
        about = json.loads(player_metadata(header.pop("__metadata__")))
        if not isinstance(about, dict):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):  # their messages may quote the whole file
        raise StorageError(f"not a player file, or a damaged one{_hint(content)}") from None
    if current_format(about.get("format")) != FORMAT or about.get("version") != VERSION:
        found = brief(f"a {about.get('format')} of version {about.get('version')}")
        raise StorageError(f"it is {found}; this version reads {FORMAT} {VERSION}")
    weights = _tensors(header, content, start)
    if "sha256" in about and about.pop("sha256") != checksum(weights):
        raise StorageError("its weights are damaged: their checksum differs")
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise StorageError("its weights are not all finite")
    return about, weights


def _hint(content: bytes) -> str:
    """Returns what else the file seems to be, by its first bytes, or where player files are."""
    if b"-checkpoint" in content[:4096]:
        return ": it holds the training state of a checkpoint, whose player.safetensors is beside it"
    if content.startswith((b"PK", b"\x80")):
        return ": it looks like a pickle, or an archive of pickles, which are never opened"
    return ": player files are player.safetensors in checkpoints/ and in players/, or end in .onnx"


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    """Returns (header, offset of the data)."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, MAX_HEADER_LENGTH):
        raise ValueError
    header = json.loads(content[8 : 8 + length], object_pairs_hook=unique_names)
    if not isinstance(header, dict):
        raise TypeError
    return header, 8 + length


def _tensors(header: dict[str, Any], content: bytes, start: int) -> dict[str, NDArray[np.float32]]:
    """Returns the arrays that a header describes, which must cover the data without gaps."""
    places: list[tuple[int, int, str, tuple[int, ...]]] = []
    for name, entry in header.items():
        shown = repr(name)[:80]
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise StorageError(f"its weights are damaged: tensor {shown} needs a dtype, a shape and data_offsets")
        if entry["dtype"] != "F32":
            raise StorageError(f"its weights must be float32 (F32): {shown} is {repr(entry['dtype'])[:40]}")
        shape, offsets = _whole(entry["shape"]), _whole(entry["data_offsets"])
        if shape is None or len(shape) > MAX_AXES or offsets is None or len(offsets) != 2:
            raise StorageError(f"its weights are damaged: tensor {shown} has no valid shape or offsets")
        begin, end = offsets
        if begin > end or end - begin != 4 * math.prod(shape):
            raise StorageError(f"its weights are damaged: tensor {shown} has another size than its shape")
        places.append((begin, end, name, shape))
    places.sort(key=lambda place: place[:2])
    reached = 0
    for begin, end, name, _ in places:
        if begin != reached:
            raise StorageError(f"its weights are damaged: there is a gap or overlap before tensor {repr(name)[:80]}")
        reached = end
    if reached != len(content) - start:
        raise StorageError("its weights are damaged: the file is too short or too long")
    return {
        name: np.frombuffer(content, "<f4", math.prod(shape), start + begin).astype(np.float32).reshape(shape)
        for begin, _, name, shape in places
    }


def _whole(numbers: Any) -> tuple[int, ...] | None:
    """Returns a list of non-negative integers as a tuple; None for anything else."""
    if not isinstance(numbers, list) or any(type(number) is not int or not 0 <= number < 1 << 48 for number in numbers):
        return None
    return tuple(numbers)


def checksum(weights: dict[str, NDArray[np.float32]]) -> str:
    """Returns a SHA-256 of the names and data of all weights."""
    total = hashlib.sha256()
    for name in sorted(weights):
        total.update(name.encode())
        total.update(weights[name].astype("<f4").tobytes())
    return total.hexdigest()


def player_bytes(player: Any, about: dict[str, Any]) -> bytes:
    """Returns the file content of a folded network; `about` is JSON-compatible metadata such as game and step."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().float().cpu().contiguous() for name, tensor in player.state_dict().items()}
    metadata = {"format": FORMAT, "version": VERSION, "network": player.architecture.as_data(), **about}
    metadata["sha256"] = checksum({name: tensor.numpy() for name, tensor in tensors.items()})
    content: bytes = save(tensors, metadata={"pondertree": json.dumps(metadata)})
    return content


def read_player(path: Path) -> tuple[Any, dict[str, Any]]:
    """Reads a player file: (network, metadata)."""
    with reading(path, "a player", StorageError) as file:
        return player_of_bytes(file.read_bytes())


def player_of_bytes(content: bytes) -> tuple[Any, dict[str, Any]]:
    """Parses the content of a player file: (network, metadata)."""
    import torch

    about, weights = read_weights(content)
    with torch.device("meta"):  # a false claim in the file allocates nothing
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
    """Returns the network that the metadata describe: a model or a policy-value network."""
    from pondertree.networks.architecture import Architecture
    from pondertree.networks.model_architecture import ModelArchitecture
    from pondertree.networks.model_network import ModelNetwork
    from pondertree.networks.policy_value import PolicyValueNetwork

    if isinstance(data, dict) and data.get("kind") == "model":
        return ModelNetwork(ModelArchitecture.of_data(data), folded=True)
    return PolicyValueNetwork(Architecture.of_data(data), folded=True)
