"""A player as ONNX, for ONNX Runtime and whatever else reads it."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path

from ponderosa.extras import require
from ponderosa.files import check_writable, write_bytes
from ponderosa.learn.load import find_player


def export_onnx(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Writes the player of a training (or of a file) to an ONNX file, for `ponderosa.evaluators.Onnx`."""
    torch = require("torch", "train", "exporting a player")
    require("onnx", "train", "exporting a player")
    from ponderosa.learn.player_file import read_player

    target = Path(out)
    check_writable(target, "onnx")
    network, _ = read_player(find_player(path))
    example = torch.zeros(2, *network.architecture.shape)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own, about itself
        torch.onnx.export(
            network.to(memory_format=torch.contiguous_format),
            (example,),
            file,
            input_names=["observations"],
            output_names=["policy_logits", "values"],
            dynamic_axes={name: {0: "batch"} for name in ("observations", "policy_logits", "values")},
            dynamo=False,
        )
    write_bytes(target, file.getvalue(), "onnx")
    return target
