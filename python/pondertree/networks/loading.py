"""`pondertree.load`: trained players as evaluators or models, and their export to ONNX.

Players run in PyTorch where it is installed, otherwise in NumPy; .onnx files in ONNX Runtime.
"""

from __future__ import annotations

import importlib.util
import io
import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.files import check_path, check_writable, reading, write_bytes
from pondertree.networks.numpy_player import load_numpy_player
from pondertree.networks.run_files import PLAYER, is_intact, list_checkpoints, read_about
from pondertree.optional import require

#: The bundled players, named after their games.
SHIPPED = Path(__file__).parent / "pretrained"
#: The longest relative path of a player in a run folder.
PLAYER_PLACE = "checkpoints/round-00000000/player.safetensors"


def load(path: str | os.PathLike[str], *, device: Any = "cpu") -> Any:
    """Loads the newest player of a run folder, a player file, or a bundled player.

    Returns an evaluator; for a MuZero run a model, for `MuZero`, `Gumbel` and `select_action`. A file is a
    player.safetensors, or an .onnx file written by `pondertree export` (needs ONNX Runtime). The model of an
    environment takes observations as the environment gives them; `about["environment"]["first_action"]` is the
    environment's number of action 0. `load("connect4")` is a bundled player; a run folder of that name takes
    precedence. Files hold weights and JSON: loading executes nothing.

    Evaluators run in PyTorch where it is installed, otherwise in NumPy; models and other devices need PyTorch.
    """
    named = device if isinstance(device, str) else validation.shown(device)
    is_cpu = named in ("cpu", "device(type='cpu')")
    if is_onnx(path):
        if not is_cpu:
            raise InvalidArgumentError(
                f"device must be cpu for an ONNX file, not {validation.shown(device)}: "
                "evaluators.Onnx(file, providers=...) has others"
            )
        return load_onnx(path)
    needing = f"a player on the device {named}"
    if is_cpu:
        needing = "a player of MuZero, which is a model,"
        if importlib.util.find_spec("torch") is None:
            player = load_numpy_player(find_player(path))
            if player is not None:
                return player
    require("torch", "torch", needing)
    from pondertree.evaluators.torch_module import Torch
    from pondertree.networks.player_model import PlayerModel, view_of
    from pondertree.networks.weights_file import read_player

    file = find_player(path)
    network, about = read_player(file)
    if hasattr(network, "initial_inference"):
        with reading(file, "a player", StorageError):
            view = view_of(network, about)
        return PlayerModel(network, device, about, view)
    evaluator: Any = Torch(network, device)
    evaluator.about = about
    return evaluator


def load_for_one_tree(path: str | os.PathLike[str]) -> Any:
    """Loads like `load`, but evaluators in NumPy: for searches that evaluate one position at a time.

    Such a search gains nothing from PyTorch, whose import takes longer than a move.
    """
    player = None if is_onnx(path) else load_numpy_player(find_player(path))
    return load(path) if player is None else player


def is_onnx(path: str | os.PathLike[str]) -> bool:
    """Whether a path names an ONNX file, existing or not."""
    return isinstance(path, (str, os.PathLike)) and str(path).lower().endswith(".onnx") and not os.path.isdir(path)


def load_onnx(path: str | os.PathLike[str], threads: int = 1) -> Any:
    """Returns the evaluator of an ONNX file; its `about` is what `pondertree export` wrote, otherwise its shapes."""
    from pondertree.evaluators.onnx_session import Onnx

    with reading(path, "an ONNX file") as file:
        file.stat()  # report a missing file before a missing package
    evaluator: Any = Onnx(path, threads=threads)
    try:
        about = json.loads(evaluator.session.get_modelmeta().custom_metadata_map["pondertree"])
    except (KeyError, ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or not isinstance(about.get("network"), dict):
        inputs = {entry.name: entry.shape for entry in evaluator.session.get_inputs()}
        outputs = {entry.name: entry.shape for entry in evaluator.session.get_outputs()}
        seen, policy = inputs[evaluator.input][1:], outputs[evaluator.outputs[0]][1:]
        network: dict[str, Any] = {}
        if seen and all(isinstance(length, int) for length in seen):
            network["shape"] = seen
        if policy and all(isinstance(length, int) for length in policy):
            network["num_actions"] = math.prod(policy)
        about = {"network": network}
    evaluator.about = about
    return evaluator


def find_player(path: str | os.PathLike[str]) -> Path:
    """Returns the path of the player file that an argument of `load` names."""
    given = check_path(path, "path", PLAYER_PLACE)
    if not str(path):
        raise InvalidArgumentError("path is empty: name the folder of a training, a file, or a player of the package")
    if given.is_file():
        return given
    shipped = {file.stem: file for file in SHIPPED.glob("*.safetensors")}
    # A folder that merely has the name of a bundled player does not hide it.
    is_run = any((given / name).exists() for name in ("run.json", "state.json"))
    if given.is_dir() and (is_run or str(path) not in shipped):
        return newest_player(given)
    if str(path) in shipped:
        return shipped[str(path)]
    bundled = f" nor a bundled player ({', '.join(sorted(shipped))})" if shipped else ""
    raise InvalidArgumentError(f"{str(path)!r} is neither a run folder nor a player file{bundled}")


def newest_player(folder: Path) -> Path:
    """Returns the player file of the newest intact checkpoint of a run; `folder` may also be a checkpoint."""
    if (folder / PLAYER).is_file():
        return folder / PLAYER
    read_about(folder)
    checkpoints = list_checkpoints(folder / "checkpoints")
    if not checkpoints:
        raise InvalidArgumentError(f"{str(folder)!r} has no checkpoint yet: train longer")
    for place, checkpoint in reversed(list(enumerate(checkpoints))):
        if is_intact(checkpoint, PLAYER):
            return checkpoint / PLAYER
        if place:
            warnings.warn(f"{str(checkpoint / PLAYER)!r} is damaged: using the previous checkpoint", stacklevel=4)
    raise StorageError(f"no player in {str(folder / 'checkpoints')!r} is intact")


def export_onnx(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[Path]:
    """Exports the player of a run or a file to ONNX, for `pondertree.evaluators.Onnx`; returns the files written.

    A model becomes two files: `NAME.onnx` for `initial_inference`, `NAME.step.onnx` for `recurrent_inference`.
    """
    if is_onnx(path):
        raise StorageError(f"{os.fspath(path)!r} is an ONNX file already")
    target = check_writable(out, "onnx")
    file = find_player(path)
    torch = require("torch", "train", "exporting a player")
    require("onnx", "train", "exporting a player")
    from pondertree.networks.weights_file import read_player

    network, about = read_player(file)
    network = network.to(memory_format=torch.contiguous_format)
    seen = torch.zeros(2, *network.architecture.shape)
    if not hasattr(network, "initial_inference"):
        content = _onnx(network, {"observations": seen}, ("policy_logits", "values"), about)
        write_bytes(target, content, "onnx")
        return [target]
    from pondertree.networks.model_network import Method

    names = ("hidden_states", "policy_logits", "values")
    first = _onnx(Method(network, "initial_inference"), {"observations": seen}, names, about)
    hidden = torch.zeros(2, *network.architecture.hidden_shape)
    given = {"hidden_states": hidden, "actions": torch.zeros(2, dtype=torch.int64)}
    step_names = ("next_hidden_states", "rewards", "policy_logits", "values", "discounts")
    step = target.with_name(f"{target.stem}.step{target.suffix}")
    check_writable(step, "onnx")
    write_bytes(target, first, "onnx")
    write_bytes(step, _onnx(Method(network, "recurrent_inference"), given, step_names, about), "onnx")
    return [target, step]


def _onnx(module: Any, inputs: dict[str, Any], outputs: tuple[str, ...], about: dict[str, Any]) -> bytes:
    """Returns a module as ONNX with a dynamic batch axis; `about` becomes metadata, for `pondertree.load`."""
    torch = require("torch", "train", "exporting a player")
    onnx = require("onnx", "train", "exporting a player")
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings of the exporter
        torch.onnx.export(
            module,
            tuple(inputs.values()),
            file,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: {0: "batch"} for name in (*inputs, *outputs)},
            dynamo=False,
        )
    model = onnx.load_model_from_string(file.getvalue())
    onnx.helper.set_model_props(model, {"pondertree": json.dumps(about)})
    content: bytes = model.SerializeToString()
    return content
