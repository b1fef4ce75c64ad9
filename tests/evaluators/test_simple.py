"""Plain functions, both policy kinds, and lazy imports of network libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.networks import NONSENSE, Switch, assert_no_entry, assert_refused, assert_same_search, table
from tests.support.search_helpers import PythonGame

import pondertree
from pondertree import evaluators
from pondertree.evaluators import Function
from pondertree.games import ConnectFour, Othello, TicTacToe

HEAVY = ("torch", "onnxruntime", "onnx", "keras", "jax", "flax", "tensorflow")


def half_logits(observations: np.ndarray, num_actions: int, low: float) -> tuple[np.ndarray, np.ndarray]:
    """0 for half the moves, which depends on the position, and `low` for the others."""
    logits, values = table(observations, num_actions)
    return np.where(logits > 0, np.float32(0), np.float32(low)), values


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello])
@pytest.mark.parametrize("wrap", [lambda state: state, PythonGame], ids=["compiled", "python"])
def test_probabilities_match_logits(start: Any, wrap: Any) -> None:
    state = start()

    def logits(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return table(observations, state.num_actions)

    def probabilities(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        given, values = logits(observations)
        return np.exp(given) / 3, values

    first, second = (pondertree.AlphaZero(e, 80, seed=2).run(wrap(state)) for e in (logits, Function(probabilities)))
    assert first.visits.tolist() == second.visits.tolist()
    assert first.simulations == second.simulations == 80
    priors = [{action: child.prior for action, child in result.root.children.items()} for result in (first, second)]
    assert priors[0] == pytest.approx(priors[1], rel=1e-5)


def test_exact_probabilities_match_logits_bit_for_bit() -> None:
    """Uniform over half the moves, which always include column 4."""

    def logits(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        given, values = half_logits(observations, 7, -np.inf)
        given[:, 3] = 0.0
        return given, values

    def probabilities(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        given, values = logits(observations)
        return np.exp(given) / 4, values

    assert_same_search(logits, Function(probabilities), ConnectFour(), solve=False)


def test_zero_probabilities_become_uniform() -> None:
    nothing = Function(lambda observations: (np.zeros((len(observations), 7)), table(observations)[1]))
    even = Function(lambda observations: (None, table(observations)[1]))
    assert_same_search(nothing, even, ConnectFour())


def test_function_with_logits() -> None:
    assert_same_search(table, Function(table, policy="logits"), ConnectFour())


@pytest.mark.parametrize("name", NONSENSE)
def test_invalid_outputs_are_refused(name: str) -> None:
    switch = Switch()
    assert_refused(Function(switch, policy="logits"), switch, *NONSENSE[name])


def test_reentrant_search_is_refused() -> None:
    switch = Switch()
    assert_no_entry(Function(switch, policy="logits"), switch)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="policy"):
        Function(table, policy="odds")
    with pytest.raises(pondertree.InvalidArgumentError, match="function"):
        Function(3)  # type: ignore[arg-type]
    assert repr(Function(table)) == "Function(table, policy='probabilities')"


def test_import_loads_no_network_library() -> None:
    text = (
        "import sys, pondertree, pondertree.evaluators as e; from pondertree.evaluators import *; "
        f"assert Torch and Cached and 'Jax' in dir(e); print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_unknown_names_raise() -> None:
    with pytest.raises(AttributeError, match="Tensorflow"):
        evaluators.Tensorflow  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("library", "extra", "make"),
    [
        ("torch", "torch", lambda: evaluators.Torch(None)),
        ("onnxruntime", "onnx", lambda: evaluators.Onnx("network.onnx")),
        ("keras", "keras", lambda: evaluators.Keras("network.keras")),
        ("jax", "jax", lambda: evaluators.Jax(table, None)),
    ],
)
def test_missing_library_names_extra(library: str, extra: str, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(pondertree.MissingExtraError, match=rf"{library}.*pip install .*\[{extra}\]"):
        make()


def test_incomplete_library_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras without its configured backend."""
    (tmp_path / "keras.py").write_text("import no_such_backend")
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(pondertree.MissingExtraError, match=r"no_such_backend.*KERAS_BACKEND"):
        evaluators.Keras("network.keras")
