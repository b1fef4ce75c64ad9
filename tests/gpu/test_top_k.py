"""The likeliest actions of a wide policy are those of a plain sort, and the first of equals. The kernel runs here as it
is, compiled for a processor; with a GPU, there too.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.processor import COMPILER, for_a_processor

torch = pytest.importorskip("torch")

from pondertree.gpu.kernels import top_k  # noqa: E402 (after the package they need)
from pondertree.gpu.kernels.nvrtc import NotCompiled, compile_source  # noqa: E402
from pondertree.gpu.kernels.top_k import MOST_OWN, MOST_THREADS, SOURCE, Said, compiled, pick_likeliest, threads_for  # noqa: E402 (after the package they need)

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no compiler for C")


def on_a_processor(actions: int) -> Any:
    library = for_a_processor(SOURCE, (f"-DACTIONS={actions}",))

    def launch(said: Said) -> None:
        library.likeliest(ctypes.byref(said))

    return launch


def policies(rows: int, actions: int, spread: int, seed: int, dtype: Any) -> Any:
    """Logits of few different sizes, so that many are level; some are ruled out."""
    random = np.random.default_rng(seed)
    logits = random.integers(-spread, spread + 1, size=(rows, actions)) / 4.0
    logits[random.random((rows, actions)) < 0.2] = -np.inf
    logits[:, random.integers(actions)] = 1.5
    return torch.from_numpy(logits.astype(np.float32)).to(dtype)


def expected(logits: Any, most: int) -> tuple[Any, Any, Any]:
    """Actions, their logits and the logarithm of the sum of all exponentials, by NumPy."""
    numbers = logits.float().cpu().numpy()
    actions = np.sort(np.argsort(-numbers, axis=1, kind="stable")[:, :most], axis=1)
    sums = np.log(np.exp(numbers.astype(np.float64)).sum(axis=1))
    return actions, np.take_along_axis(numbers, actions, axis=1), sums


def check(launch: Any, logits: Any, most: int, discounts: bool) -> None:
    rows = len(logits)
    columns = [torch.arange(rows * 2, dtype=torch.float32)[::2], torch.linspace(-1, 1, rows).reshape(rows, 1)]
    columns += [torch.full((rows,), 0.5, dtype=torch.float16)] if discounts else []
    columns = [column.to(logits.device) for column in columns]
    answers = pick_likeliest(launch, columns, logits, most).cpu().numpy()
    actions, numbers, sums = expected(logits, most)
    first = len(columns) + 2
    assert answers.shape == (rows, first + 2 * most)
    np.testing.assert_array_equal(answers[:, first + most :], actions)
    np.testing.assert_array_equal(answers[:, first : first + most], numbers)
    parts = answers[:, first - 2 : first].astype(np.float64)
    np.testing.assert_allclose(parts.sum(axis=1), sums, rtol=1e-13, atol=1e-13)
    for place, column in enumerate(columns):
        np.testing.assert_array_equal(answers[:, place], column.float().reshape(rows).cpu().numpy())


@needs_compiler
@settings(max_examples=60, deadline=None)
@given(
    actions=st.sampled_from((257, 300, 1000)),
    most=st.integers(1, 128),
    spread=st.sampled_from((0, 1, 8, 1000)),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from((torch.float32, torch.bfloat16)),
    discounts=st.booleans(),
)
def test_they_are_those_of_a_sort(actions: int, most: int, spread: int, seed: int, dtype: Any, discounts: bool) -> None:
    check(on_a_processor(actions), policies(5, actions, spread, seed, dtype), most, discounts)


@needs_compiler
def test_what_is_no_number_is_told() -> None:
    for wrong in (np.nan, -np.nan, np.inf):
        logits = policies(3, 300, 8, 0, torch.float32)
        logits[1, 250] = wrong
        answers = pick_likeliest(on_a_processor(300), [logits[:, 0], logits[:, 1]], logits, 64).numpy()
        assert not np.isfinite(answers[1, 2:68]).all(), "the engine refuses it"
        assert np.isfinite(answers[0, 2]), "of this row alone"
    ruled_out = torch.full((1, 300), -torch.inf)
    answers = pick_likeliest(on_a_processor(300), [torch.zeros(1)] * 2, ruled_out, 64).numpy()
    assert not np.isfinite(answers[0, 2])


@pytest.mark.parametrize("actions", [257, 4672, MOST_THREADS * MOST_OWN])
def test_the_kernel_compiles_for_a_gpu(actions: int) -> None:
    options = (f"-DACTIONS={actions}", f"-DTHREADS={threads_for(actions)}", "--gpu-architecture=sm_80")
    try:
        assert compile_source(SOURCE, options)
    except NotCompiled as error:
        if "not found" in str(error) or "without CUDA" in str(error):
            pytest.skip(str(error))
        raise


def test_there_is_none_without_a_gpu_or_for_too_many_actions() -> None:
    assert compiled(torch.device("cpu"), 4672) is None
    assert compiled(torch.device("cuda"), MOST_THREADS * MOST_OWN + 1) is None


def test_a_compiler_that_refuses_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be asked for while a graph is recorded."""
    asked: list[Any] = []

    def refuse(*given: Any) -> Any:
        asked.append(given)
        raise NotCompiled("no such compiler")

    monkeypatch.setattr(top_k, "kernel", refuse)
    top_k._compiled.cache_clear()
    device = torch.device("cuda", 0)
    with pytest.warns(RuntimeWarning, match="wide policies are slower on this GPU: no such compiler"):
        assert compiled(device, 4672) is None
    assert compiled(device, 4672) is None
    assert len(asked) == 1
    top_k._compiled.cache_clear()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("actions", "most"), [(257, 64), (4672, 64), (4672, 2000), (20000, 512), (32768, 1)])
def test_they_are_the_same_on_a_gpu(actions: int, most: int, dtype: Any) -> None:
    device = torch.device("cuda")
    launch = compiled(device, actions)
    assert launch is not None
    for spread in (0, 2, 1000):
        check(launch, policies(40, actions, spread, spread, dtype).to(device), most, discounts=spread == 2)
