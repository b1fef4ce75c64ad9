"""A player as ONNX, for ONNX Runtime and whatever else reads it."""

from __future__ import annotations

import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

from pondertree.errors import StorageError
from pondertree.extras import require
from pondertree.files import check_writable, write_bytes
from pondertree.learn.load import find_player, is_onnx


def export_onnx(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[Path]:
    """Writes the player of a training (or of a file) to an ONNX file, for `pondertree.evaluators.Onnx`; what it wrote.

    A model becomes two files: `NAME.onnx`, its `initial_inference`, and `NAME.step.onnx`, its `recurrent_inference`.
    """
    if is_onnx(path):
        raise StorageError(f"{os.fspath(path)!r} is an ONNX file already")
    target = check_writable(out, "onnx")
    file = find_player(path)
    torch = require("torch", "train", "exporting a player")
    require("onnx", "train", "exporting a player")
    from pondertree.learn.player_file import read_player

    network, about = read_player(file)
    network = network.to(memory_format=torch.contiguous_format)
    seen = torch.zeros(2, *network.architecture.shape)
    if not hasattr(network, "initial_inference"):
        content = _onnx(network, {"observations": seen}, ("policy_logits", "values"), about)
        write_bytes(target, content, "onnx")
        return [target]
    from pondertree.learn.model_networks import Initial, Recurrent

    first = _onnx(Initial(network), {"observations": seen}, ("hidden_states", "policy_logits", "values"), about)
    hidden = torch.zeros(2, *network.architecture.hidden_shape)
    given = {"hidden_states": hidden, "actions": torch.zeros(2, dtype=torch.int64)}
    names = ("next_hidden_states", "rewards", "policy_logits", "values", "discounts")
    step = target.with_name(f"{target.stem}.step{target.suffix}")
    check_writable(step, "onnx")
    write_bytes(target, first, "onnx")
    write_bytes(step, _onnx(Recurrent(network), given, names, about), "onnx")
    return [target, step]


def _onnx(module: Any, inputs: dict[str, Any], outputs: tuple[str, ...], about: dict[str, Any]) -> bytes:
    """The file of a module, for batches of any size; `about` goes along as metadata, for `pondertree.load`."""
    torch = require("torch", "train", "exporting a player")
    onnx = require("onnx", "train", "exporting a player")
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own, about itself
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
