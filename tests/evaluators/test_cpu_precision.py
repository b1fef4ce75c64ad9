"""Reduced precision on the CPU is probed in a child process, and refused with a workaround if that fails."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pondertree
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Torch, cpu_precision
from pondertree.evaluators.cpu_precision import VARIABLE, check_cpu_precision, cpu_precision_failure
from pondertree.games import TicTacToe
from pondertree.models import TorchModel

torch = pytest.importorskip("torch")

OBSERVATIONS = np.ones((2, 3, 3, 3), dtype=np.float32)


class Net(torch.nn.Module):  # type: ignore[misc]
    """A policy-value network and a model in one."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Conv2d(3, 4, 3)
        self.head = torch.nn.Linear(4, 9)

    def forward(self, observations: Any) -> tuple[Any, Any]:
        hidden = self.body(observations).flatten(1)
        return self.head(hidden), hidden[:, 0].tanh()

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        return observations, *self(observations)

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        logits, values = self(hidden)
        return hidden, values, logits, values


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Clears cached probe results before and after each test."""
    monkeypatch.delenv(VARIABLE, raising=False)
    cpu_precision._probe.cache_clear()
    yield
    cpu_precision._probe.cache_clear()


def no_child(*_: Any, **__: Any) -> Any:
    raise AssertionError("a child process was started")


@pytest.mark.parametrize("adapter", [Torch, TorchModel])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_adapters_refuse_reduced_precision_when_the_probe_fails(
    monkeypatch: pytest.MonkeyPatch, adapter: Any, dtype: str
) -> None:
    monkeypatch.setenv(VARIABLE, "fail")
    with pytest.raises(InvalidArgumentError, match=rf"{dtype} does not work on this CPU .*{VARIABLE} is set to fail"):
        adapter(Net(), dtype=dtype)
    with pytest.raises(InvalidArgumentError, match="set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE"):
        adapter(Net().to(getattr(torch, dtype)))
    later = adapter(Net())
    (later.module if adapter is Torch else later.model).to(getattr(torch, dtype))
    with pytest.raises(InvalidArgumentError, match="before Python starts"):
        (later.evaluate if adapter is Torch else later.initial_inference)(OBSERVATIONS)


def test_float32_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", no_child)
    for dtype in (None, "float32"):
        assert pondertree.AlphaZero(Torch(Net(), dtype=dtype), 4).run(TicTacToe()).simulations == 4
        TorchModel(Net(), dtype=dtype).initial_inference(OBSERVATIONS)
    Torch(Net().double()).evaluate(OBSERVATIONS)


def test_gpu_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", no_child)
    check_cpu_precision(SimpleNamespace(type="cuda"), torch.bfloat16, torch.float16)
    with pytest.raises(AssertionError, match="a child process"):
        check_cpu_precision(torch.device("cpu"), torch.bfloat16)


def test_environment_variable_replaces_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", no_child)
    monkeypatch.setenv(VARIABLE, "pass")
    assert cpu_precision_failure("bfloat16") is None
    monkeypatch.setenv(VARIABLE, "perhaps")
    with pytest.raises(InvalidArgumentError, match=f"{VARIABLE} must be fail or pass, not 'perhaps'"):
        cpu_precision_failure("bfloat16")


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("print('begun'); print('done')", None),
        ("import none_such", None),
        ("print('begun'); raise RuntimeError('could not create a primitive')", "could not create a primitive"),
        ("print('begun', flush=True); import time; time.sleep(60)", "took more than 2 s"),
        ("import time; time.sleep(60)", None),
        pytest.param(
            "import os, signal; print('begun', flush=True); os.kill(os.getpid(), signal.SIGILL)",
            "ended with SIGILL",
            marks=pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no signals of POSIX"),
        ),
    ],
)
def test_probe_maps_exit_status_to_failure(monkeypatch: pytest.MonkeyPatch, code: str, failure: str | None) -> None:
    monkeypatch.setattr(cpu_precision, "_CODE", code)
    monkeypatch.setattr(cpu_precision, "TIME_LIMIT", 2.0)
    found = cpu_precision_failure("bfloat16")
    assert found is None if failure is None else failure in str(found)


def test_probe_imports_nothing_from_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("print('begun'); raise RuntimeError('planted')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr(cpu_precision, "_CODE", "import planted")
    assert cpu_precision_failure("bfloat16") is None


def test_each_dtype_is_probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def run(command: list[str], **_: Any) -> Any:
        started.append(command[-1])
        return SimpleNamespace(stdout=b"begun\ndone\n", stderr=b"", returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    for name in ("bfloat16", "float16", "bfloat16", "float16"):
        assert cpu_precision_failure(name) is None
    assert started == ["bfloat16", "float16"]


def test_frozen_program_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", no_child)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert cpu_precision_failure("bfloat16") is None


@pytest.mark.slow
def test_probe_agrees_with_this_process() -> None:
    """If the probe succeeds, bfloat16 works in this process; float32 is unaffected."""
    failure = cpu_precision_failure("bfloat16")
    expected = Torch(Net()).evaluate(OBSERVATIONS)
    assert np.isfinite(expected[0]).all()
    if failure is None:
        assert np.isfinite(Torch(Net(), dtype="bfloat16").evaluate(OBSERVATIONS)[0]).all()
