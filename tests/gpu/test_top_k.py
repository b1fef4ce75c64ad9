"""The top-k kernel selects what a sort selects, lowest action first among equals. It runs as C, and on a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.kernels import COMPILER, compile_for_cpu

torch = pytest.importorskip("torch")

from pondertree.gpu.kernels import top_k  # noqa: E402 (after the package they need)
from pondertree.gpu.kernels.nvrtc import CompilationError, compile_source  # noqa: E402
from pondertree.gpu.kernels.top_k import (  # noqa: E402
    MAX_ACTIONS_PER_THREAD,
    MAX_THREADS,
    SOURCE,
    ModelOutput,
    compile_top_k,
    threads_for,
    top_k_responses,
)

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no compiler for C")


def on_cpu(actions: int) -> Any:
    library = compile_for_cpu(SOURCE, (f"-DACTIONS={actions}",))

    def launch(output: ModelOutput) -> None:
        library.top_k(ctypes.byref(output))

    return launch


def policies(rows: int, actions: int, spread: int, seed: int, dtype: Any) -> Any:
    """Logits with few different values, so that many are equal; some are -inf."""
    random = np.random.default_rng(seed)
    logits = random.integers(-spread, spread + 1, size=(rows, actions)) / 4.0
    logits[random.random((rows, actions)) < 0.2] = -np.inf
    logits[:, random.integers(actions)] = 1.5
    return torch.from_numpy(logits.astype(np.float32)).to(dtype)


def expected(logits: Any, k: int) -> tuple[Any, Any, Any]:
    """Actions, their logits and log-sum-exp, by NumPy."""
    numbers = logits.float().cpu().numpy()
    actions = np.sort(np.argsort(-numbers, axis=1, kind="stable")[:, :k], axis=1)
    sums = np.log(np.exp(numbers.astype(np.float64)).sum(axis=1))
    return actions, np.take_along_axis(numbers, actions, axis=1), sums


def check(launch: Any, logits: Any, k: int, discounts: bool) -> None:
    rows = len(logits)
    columns = [torch.arange(rows * 2, dtype=torch.float32)[::2], torch.linspace(-1, 1, rows).reshape(rows, 1)]
    columns += [torch.full((rows,), 0.5, dtype=torch.float16)] if discounts else []
    columns = [column.to(logits.device) for column in columns]
    responses = top_k_responses(launch, columns, logits, k).cpu().numpy()
    actions, numbers, sums = expected(logits, k)
    first = len(columns) + 2
    assert responses.shape == (rows, first + 2 * k)
    np.testing.assert_array_equal(responses[:, first + k :], actions)
    np.testing.assert_array_equal(responses[:, first : first + k], numbers)
    parts = responses[:, first - 2 : first].astype(np.float64)
    np.testing.assert_allclose(parts.sum(axis=1), sums, rtol=1e-13, atol=1e-13)
    for place, column in enumerate(columns):
        np.testing.assert_array_equal(responses[:, place], column.float().reshape(rows).cpu().numpy())


@needs_compiler
@settings(max_examples=60, deadline=None)
@given(
    actions=st.sampled_from((257, 300, 1000)),
    k=st.integers(1, 128),
    spread=st.sampled_from((0, 1, 8, 1000)),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from((torch.float32, torch.bfloat16)),
    discounts=st.booleans(),
)
def test_top_k_matches_sort(actions: int, k: int, spread: int, seed: int, dtype: Any, discounts: bool) -> None:
    check(on_cpu(actions), policies(5, actions, spread, seed, dtype), k, discounts)


@needs_compiler
def test_nan_and_infinity_reach_responses() -> None:
    for wrong in (np.nan, -np.nan, np.inf):
        logits = policies(3, 300, 8, 0, torch.float32)
        logits[1, 250] = wrong
        responses = top_k_responses(on_cpu(300), [logits[:, 0], logits[:, 1]], logits, 64).numpy()
        assert not np.isfinite(responses[1, 2:68]).all(), "the engine refuses it"
        assert np.isfinite(responses[0, 2]), "of this row alone"
    ruled_out = torch.full((1, 300), -torch.inf)
    responses = top_k_responses(on_cpu(300), [torch.zeros(1)] * 2, ruled_out, 64).numpy()
    assert not np.isfinite(responses[0, 2])


@pytest.mark.parametrize("actions", [257, 4672, MAX_THREADS * MAX_ACTIONS_PER_THREAD])
def test_top_k_compiles_for_gpu(actions: int) -> None:
    options = (f"-DACTIONS={actions}", f"-DTHREADS={threads_for(actions)}", "--gpu-architecture=sm_80")
    try:
        assert compile_source(SOURCE, options)
    except CompilationError as error:
        if "not found" in str(error) or "without CUDA" in str(error):
            pytest.skip(str(error))
        raise


def test_top_k_is_unavailable_on_cpu_or_for_too_many_actions() -> None:
    assert compile_top_k(torch.device("cpu"), 4672) is None
    assert compile_top_k(torch.device("cuda"), MAX_THREADS * MAX_ACTIONS_PER_THREAD + 1) is None


def test_failed_compilation_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later calls may come during a capture."""
    compilations: list[Any] = []

    def refuse(*arguments: Any) -> Any:
        compilations.append(arguments)
        raise CompilationError("no such compiler")

    monkeypatch.setattr(top_k, "kernel", refuse)
    top_k._compiled.cache_clear()
    device = torch.device("cuda", 0)
    with pytest.warns(RuntimeWarning, match="large action spaces are slower on this GPU: no such compiler"):
        assert compile_top_k(device, 4672) is None
    assert compile_top_k(device, 4672) is None
    assert len(compilations) == 1
    top_k._compiled.cache_clear()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("actions", "k"), [(257, 64), (4672, 64), (4672, 2000), (20000, 512), (32768, 1)])
def test_top_k_on_gpu_matches_sort(actions: int, k: int, dtype: Any) -> None:
    device = torch.device("cuda")
    launch = compile_top_k(device, actions)
    assert launch is not None
    for spread in (0, 2, 1000):
        check(launch, policies(40, actions, spread, spread, dtype).to(device), k, discounts=spread == 2)
