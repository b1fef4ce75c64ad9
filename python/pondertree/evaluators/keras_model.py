"""Keras 3 networks, on any Keras backend."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import optional, validation
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators.outputs import as_float32, flat_policy, next_power_of_two, pad_rows, two_outputs
from pondertree.evaluators.protocol import check_policy_kind
from pondertree.files import check_claim, check_path, reading
from pondertree.optional import require

#: Layers that contain code, or load it.
CARRIES_CODE = ("Lambda", "__lambda__", "TFSMLayer", "TorchModuleWrapper")
INSTEAD = "build the model in your own code and give the object, after model.load_weights(...), or export it to ONNX"


class Keras:
    """A Keras model, or the path of a `.keras` file.

    The model's outputs are a pair (policy_logits [B, num_actions], values [B]), or a dict with "policy" and "value".
    For chess a policy may also be its 73 planes of 8 x 8 squares, planes first or last.
    Observations are `[B, C, H, W]`; `channels_last=True` gives `[B, H, W, C]` instead, which most Keras models expect.

    Files are loaded in safe mode only, after their configuration is inspected: files that need unsafe loading, such as
    models with a Lambda layer, are refused. There is no switch for it, because such a file executes arbitrary code.

    Threads: one at a time, unless the Keras backend guarantees more.
    """

    def __init__(self, model: Any, *, policy: str = "logits", channels_last: bool = False) -> None:
        keras = require("keras", "keras", "this evaluator")
        self.policy = check_policy_kind(policy)
        self.channels_last = validation.flag(channels_last, "channels_last")
        self.version = 0
        """Change it whenever the weights change: it invalidates the entries of a `Cached` wrapper."""
        if isinstance(model, (str, os.PathLike)):
            model = _load(keras, check_path(model, "model"))
        if not isinstance(model, keras.Model):
            raise InvalidArgumentError(
                f"model must be a keras.Model or the path of a .keras file, not a {type(model).__name__}"
            )
        self.model = model
        self._pads = keras.backend.backend() == "jax"  # compiles for every batch size

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(policy [B, num_actions], values [B, ...])."""
        rows = len(observations)
        batch = np.asarray(observations)
        if self.channels_last:
            batch = np.ascontiguousarray(np.moveaxis(batch, 1, -1))
        answer = self.model.predict_on_batch(pad_rows(batch, next_power_of_two(rows) if self._pads else rows))
        if isinstance(answer, Mapping) and {"policy", "value"} <= set(answer):
            answer = answer["policy"], answer["value"]
        policy, values = (np.asarray(part) for part in two_outputs(answer, f"model {self.model.name}"))
        if policy.ndim == 0 or values.ndim == 0:
            raise EvaluationError("the model returned single numbers: it must return one row for each position")
        policy, values = flat_policy(policy[:rows]), values[:rows]
        return as_float32(policy, "policy_logits"), as_float32(values, "values")

    def __repr__(self) -> str:
        return f"Keras({self.model.name}, policy={self.policy!r})"


def _load(keras: Any, path: Path) -> Any:
    """Loads a file, if that is possible without executing code from it."""
    if path.suffix != ".keras":
        raise InvalidArgumentError(f"{path.name} is no .keras file: other formats have no safe mode; {INSTEAD}")
    if not path.is_file():
        raise InvalidArgumentError(f"there is no file {str(path)!r}")
    optional.keras()  # raises for a version that a file could make run code even in safe mode
    with reading(path, "a .keras file"), zipfile.ZipFile(path) as archive:
        check_claim(sum(entry.file_size for entry in archive.infolist()), path.stat().st_size)
        for entry in _described(json.loads(archive.read("config.json"))):
            _refuse_code(keras, path, entry)
    try:
        with _safe_mode():
            return keras.saving.load_model(path, compile=False, safe_mode=True)
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidArgumentError(
            f"{path.name} cannot be loaded in safe mode; {INSTEAD}. Keras says: {error}"
        ) from error


def _described(config: Any) -> Iterator[Mapping[str, Any]]:
    """Yields every object of a configuration, at any depth."""
    waiting = [config]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict):
            if "class_name" in entry:
                yield entry
            waiting.extend(entry.values())
        elif isinstance(entry, list):
            waiting.extend(entry)


def _refuse_code(keras: Any, path: Path, entry: Mapping[str, Any]) -> None:
    name, module = entry["class_name"], entry.get("module") or "builtins"
    if name in CARRIES_CODE:
        raise InvalidArgumentError(
            f"{path.name} is refused: it has a {name}, which carries code, and loading it would run that code; "
            f"{INSTEAD}"
        )
    known = str(module).partition(".")[0] in ("keras", "builtins")
    if not known and keras.saving.get_registered_object(entry.get("registered_name")) is None:
        raise InvalidArgumentError(
            f"{path.name} is refused: it references {name} in module {module}, which is not Keras's and not "
            "registered; import what defines it and mark it with @keras.saving.register_keras_serializable() if you "
            "trust it"
        )


@contextlib.contextmanager
def _safe_mode() -> Iterator[None]:
    """Enforces safe mode even after `keras.config.enable_unsafe_deserialization()`, which overrides the argument."""
    try:
        scope = importlib.import_module("keras.src.saving.serialization_lib").SafeModeScope
    except (ImportError, AttributeError):  # a private name of Keras; the inspection of the file remains
        yield
        return
    with scope(True):
        yield
