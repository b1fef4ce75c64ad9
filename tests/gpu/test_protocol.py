"""The capability query: what backends support, and the reason if they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pondertree.config import GumbelRule, LogPuct, Puct
from pondertree.evaluators import Function, Torch
from pondertree.gpu import tree_shape
from pondertree.gpu.protocol import Job, Mode, query
from pondertree.gpu.tree_shape import TreeShape
from pondertree.models import TorchModel

torch = pytest.importorskip("torch")

from tests.support.torch_models import OBSERVATIONS, net  # noqa: E402 (after the package it needs)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SHAPE = TreeShape(64, 100, 7, Puct(1.0), is_game=True)


class UnknownRule(Puct):
    """A rule without a kernel, whose base class has one."""

    name = "unknown"


def test_plain_evaluators_support_no_mode() -> None:
    for mode in Mode:
        support = query(Function(lambda observations: None), Job(8), mode)
        assert (support.ok, support.reason) == (False, "Function computes batch by batch")


def test_torch_supports_pipeline_and_refuses_device_trees_with_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    module = torch.nn.Linear(2, 2)
    assert query(Torch(module), Job(8), Mode.PIPELINED).ok
    job = Job(64, shapes=[SHAPE])
    assert "cannot search these trees on cpu" in query(Torch(module), job, Mode.DEVICE).reason
    monkeypatch.setattr(TreeShape, "runs_on", lambda shape, device: True)
    assert query(Torch(module), job, Mode.DEVICE).ok
    assert "reads logits" in query(Torch(module, policy="probabilities"), job, Mode.DEVICE).reason
    assert "float64" in query(Torch(module.double()), job, Mode.DEVICE).reason


def test_torch_model_supports_pipeline_for_tensors_on_its_device() -> None:
    model = TorchModel(net())
    hidden = model.initial_inference(OBSERVATIONS)[0]
    assert query(model, Job(4, hidden=hidden), Mode.PIPELINED).ok
    assert "does not compute with tensors" in query(model, Job(4, hidden=np.zeros((4, 6))), Mode.PIPELINED).reason
    assert "are not on cpu" in query(model, Job(4, hidden=hidden.to("meta")), Mode.PIPELINED).reason
    assert not query(model, Job(4, shapes=[SHAPE]), Mode.DEVICE).ok


@pytest.mark.parametrize(
    "change",
    [
        {"trees": tree_shape.MIN_TREES - 1},
        {"actions": tree_shape.MAX_ACTIONS + 1},
        {"simulations": tree_shape.MAX_SIMULATIONS + 1},
        {"trees": 1 << 20},
        {"rule": LogPuct()},
        {"rule": UnknownRule(1.0)},
        {"rule": Puct(1.0, forced_playouts=2.0)},
        {"is_game": False},
    ],
    ids=str,
)
def test_kernel_limits_of_tree_shapes(change: dict[str, Any]) -> None:
    assert SHAPE.runs_on(CUDA)
    assert not SHAPE.runs_on(CPU)
    assert not replace(SHAPE, **change).runs_on(CUDA)
    assert replace(SHAPE, rule=GumbelRule()).runs_on(CUDA)
