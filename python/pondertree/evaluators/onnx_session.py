"""ONNX networks, run by ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import InvalidArgumentError, MissingFileError
from pondertree.evaluators.outputs import as_float32, flat_policy, pad_rows
from pondertree.evaluators.protocol import check_policy_kind
from pondertree.files import naming, reading
from pondertree.optional import require

POLICY_NAMES = ("policy", "policy_logits", "logits")
VALUE_NAMES = ("value", "values")
INPUT_TYPES: dict[str, type[np.floating[Any]]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}


class Onnx:
    """An ONNX model: a path, the file's bytes, or an `onnxruntime.InferenceSession`.

    Observations go into `input` (default: the first). `outputs` names policy and value; by default they are found by
    name ("policy", "policy_logits" or "logits"; "value" or "values"), else they are the first and the second. For
    chess a policy may also be its 73 planes of 8 x 8 squares. For a model with a fixed batch size, batches are split
    and padded to it.

    One thread by default: with small networks, parallel searches gain more than threads within an operator, and results
    of one thread are deterministic. `providers` are ONNX Runtime's (default: the CPU).

    Thread-safe.
    """

    def __init__(
        self,
        model: Any,
        *,
        policy: str = "logits",
        threads: int = 1,
        providers: Sequence[Any] | None = None,
        input: str | None = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        runtime = require("onnxruntime", "onnx", "this evaluator")
        self.policy = check_policy_kind(policy)
        self.version = 0
        """Change it whenever outputs change: it invalidates the entries of a `Cached` wrapper."""
        threads = validation.useful_threads(validation.threads(threads))
        if isinstance(model, runtime.InferenceSession):
            self.session: Any = model
        else:
            self.session = _open(runtime, model, threads, providers)
        is_path = isinstance(model, (str, os.PathLike))
        with naming(model, InvalidArgumentError) if is_path else nullcontext():
            self._read_interface(input, outputs)

    def _read_interface(self, input: str | None, outputs: Sequence[str] | None) -> None:
        """Finds the input and the outputs of the session."""
        inputs = {entry.name: entry for entry in self.session.get_inputs()}
        self.input = next(iter(inputs)) if input is None else input
        if self.input not in inputs:
            raise InvalidArgumentError(
                f"input {validation.shown(input)} is none of the model's inputs: {', '.join(inputs)}"
            )
        if len(inputs) != 1:
            raise InvalidArgumentError(f"the model has {len(inputs)} inputs ({', '.join(inputs)}): it must have one")
        kind = inputs[self.input].type
        if kind not in INPUT_TYPES:
            raise InvalidArgumentError(
                f"input {validation.shown(self.input)} is a {kind}: it must be one of {', '.join(INPUT_TYPES)}"
            )
        self._dtype = INPUT_TYPES[kind]
        rows = inputs[self.input].shape[0] if inputs[self.input].shape else None
        self._fixed_rows = rows if isinstance(rows, int) else None
        self.outputs = _outputs([entry.name for entry in self.session.get_outputs()], outputs)

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(policy [B, num_actions], values [B, ...])."""
        batch = np.ascontiguousarray(observations, dtype=self._dtype)
        size = self._fixed_rows or len(batch)
        if size == len(batch):
            policy, values = self.session.run(list(self.outputs), {self.input: batch})
        else:
            pieces = [pad_rows(batch[first : first + size], size) for first in range(0, len(batch), size)]
            outputs = [self.session.run(list(self.outputs), {self.input: piece}) for piece in pieces]
            policy, values = (np.concatenate(parts)[: len(batch)] for parts in zip(*outputs, strict=True))
        return as_float32(flat_policy(policy), "policy_logits"), as_float32(values, "values")

    def __repr__(self) -> str:
        return f"Onnx(input={self.input!r}, outputs={self.outputs!r}, policy={self.policy!r})"


def _open(runtime: Any, model: Any, threads: int, providers: Sequence[Any] | None) -> Any:
    is_path = isinstance(model, (str, os.PathLike))
    if is_path:
        with reading(model, "an ONNX model") as path:
            if not path.is_file():
                raise MissingFileError(f"there is no file {str(path)!r}")
            model = str(path)
    elif not isinstance(model, bytes):
        raise InvalidArgumentError(
            f"model must be a path, bytes or an onnxruntime.InferenceSession, not a {type(model).__name__}"
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    if not (providers is None or validation.is_listed(providers)):
        raise InvalidArgumentError(f"providers must be a list of names, not {validation.shown(providers)}")
    wanted = ["CPUExecutionProvider"] if providers is None or len(providers) == 0 else list(providers)
    names: list[Any] = [entry[0] if isinstance(entry, tuple) and entry else entry for entry in wanted]
    # For a missing provider, ONNX Runtime would print a warning and use the CPU.
    _refuse_missing(names, runtime.get_available_providers())
    with reading(model, "an ONNX model") if is_path else nullcontext():
        try:
            session = runtime.InferenceSession(model, options, providers=wanted)
        except Exception as error:
            raise InvalidArgumentError(f"ONNX Runtime cannot load this model: {error}") from error
    _refuse_missing(names, session.get_providers())
    return session


def _refuse_missing(names: list[Any], available: list[str]) -> None:
    missing = [name for name in names if not validation.is_one_of(name, available)]
    if missing:
        raise InvalidArgumentError(
            f"providers: there is no {validation.shown(missing[0])} here, only {', '.join(available)}"
        )


def _outputs(names: list[str], wanted: Sequence[str] | None) -> tuple[str, str]:
    """Finds the names of policy and value."""
    if wanted is not None:
        chosen: list[Any] = list(wanted) if validation.is_listed(wanted) else [wanted]
        if len(chosen) != 2 or not all(validation.is_one_of(name, names) for name in chosen):
            raise InvalidArgumentError(
                f"outputs must be two of the model's outputs {names}, not {validation.shown(wanted)}"
            )
        return chosen[0], chosen[1]
    if len(names) < 2:
        raise InvalidArgumentError(
            f"the model has only the output {', '.join(names)}: it must have a policy and a value"
        )
    policy = next((name for name in names if name.lower() in POLICY_NAMES), None)
    value = next((name for name in names if name.lower() in VALUE_NAMES), None)
    return (policy, value) if policy is not None and value is not None else (names[0], names[1])
