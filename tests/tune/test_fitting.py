"""Fits: recovery of known weights, early stopping, checkpoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.tuning import drawn_by

from pondertree import files
from pondertree.chess import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.tune import FitOptions, material_only, tune
from pondertree.tune.features import FIELD_SLICES, errors, features_of, weights_of
from pondertree.tune.fitting import FitState, begin, fit, identity, load_state, save_state, unpack
from pondertree.tune.positions import collect
from pondertree.tune.texel import prepare

TRUTH = Pesto(scale=200.0)
COUNT = 30_000


def test_fit_recovers_known_weights() -> None:
    """Starts from material alone; the results are sampled with the true weights."""
    train, validation_set = prepare(drawn_by(TRUTH, COUNT), material_only(), held_back=0.25)
    options = FitOptions(fit_scale=False)
    state, finished = fit(train, validation_set, replace(material_only(), scale=200.0), options)
    assert finished
    start, best, truth = (
        errors(validation_set, weights, 200.0).log
        for weights in (weights_of(material_only()), unpack(state.best)[0], weights_of(TRUTH))
    )
    # The fit closes most of the gap to the true weights.
    assert truth < best < start
    assert start - best > 0.7 * (start - truth)
    found, known = unpack(state.best)[0], weights_of(TRUTH)
    for name in ("queen_value", "rook_value"):
        # A constant on a table is equivalent to the piece value.
        piece = name.removesuffix("_value")
        whole = [
            one[:, FIELD_SLICES[name]].mean() + one[:, FIELD_SLICES[f"{piece}_squares"]].mean()
            for one in (found, known)
        ]
        assert whole[0] == pytest.approx(whole[1], rel=0.1)
    # In random games mobility is worth more, as in the true weights.
    assert (found[:, FIELD_SLICES["queen_mobility_bonus"]] > 0).all()


def test_validation_error_stops_fit() -> None:
    """Few positions without regularisation: the fit overfits and is stopped early."""
    train, validation_set = prepare(drawn_by(TRUTH, 1500), TRUTH, held_back=0.3)
    state, finished = fit(train, validation_set, TRUTH, FitOptions(regularisation=0.0, patience=5))
    assert finished
    assert state.iteration == state.best_iteration + 5 < 60
    assert state.history[-1][1] > state.best_error
    learned = [entry[0] for entry in state.history]
    assert learned == sorted(learned, reverse=True)
    # The best validation error never exceeds the initial one.
    assert state.best_error <= begin(train, validation_set, TRUTH, FitOptions()).best_error


def test_strong_regularization_keeps_initial_weights() -> None:
    train, validation_set = prepare(drawn_by(TRUTH, 1500), TRUTH)
    state, _ = fit(train, validation_set, TRUTH, FitOptions(regularisation=1e9))
    assert np.abs(unpack(state.parameters)[0] - weights_of(TRUTH)).max() < 0.1


class Stopped(Exception):  # noqa: N818 (it is no error)
    pass


@pytest.mark.parametrize("how", [Stopped, KeyboardInterrupt])
def test_resumed_fit_matches_uninterrupted_fit(how: type[BaseException], tmp_path: Path) -> None:
    positions = drawn_by(TRUTH, 2000, per_game=4)
    options = FitOptions(iterations=14, patience=14)
    whole = tune(positions, material_only(), options, out=tmp_path / "whole")

    def stop(state: FitState) -> None:
        if state.iteration == 6:
            raise how

    if how is KeyboardInterrupt:
        part = tune(positions, material_only(), options, out=tmp_path / "part", progress=stop)
        assert not part.finished
        assert len(part.history) == 5 or len(part.history) == 6
        assert Pesto.from_file(tmp_path / "part" / "weights.json") == part.tuned
    else:
        with pytest.raises(Stopped):
            tune(positions, material_only(), options, out=tmp_path / "part", progress=stop)
    resumed = tune(positions, material_only(), options, out=tmp_path / "part", resume=True)
    assert resumed.as_json() == whole.as_json()
    assert resumed.tuned == whole.tuned
    files = [(tmp_path / folder / "weights.json").read_bytes() for folder in ("whole", "part")]
    assert files[0] == files[1]
    # Resuming a complete fit changes nothing.
    assert tune(positions, material_only(), options, out=tmp_path / "part", resume=True).tuned == whole.tuned


def test_fit_rejects_invalid_arguments(tmp_path: Path) -> None:
    positions = drawn_by(TRUTH, 200)
    options = FitOptions(iterations=2)
    tune(positions, TRUTH, options, out=tmp_path / "one")
    with pytest.raises(InvalidArgumentError, match="has a fit already"):
        tune(positions, TRUTH, options, out=tmp_path / "one")
    with pytest.raises(InvalidArgumentError, match=r"started with regularisation = 10\.0, not 5\.0"):
        tune(positions, TRUTH, replace(options, regularisation=5.0), out=tmp_path / "one", resume=True)
    with pytest.raises(InvalidArgumentError, match="started with start = "):
        tune(positions, material_only(), options, out=tmp_path / "one", resume=True)
    with pytest.raises(InvalidArgumentError, match="started with positions = "):
        tune(drawn_by(TRUTH, 210), TRUTH, options, out=tmp_path / "one", resume=True)
    assert len(tune(positions, TRUTH, FitOptions(iterations=4), out=tmp_path / "one", resume=True).history) == 4
    with pytest.raises(InvalidArgumentError, match="resume requires out"):
        tune(positions, TRUTH, options, resume=True)
    with pytest.raises(InvalidArgumentError, match="there are no positions to learn from"):
        tune(collect([]), TRUTH, options)
    with pytest.raises(InvalidArgumentError, match="at least two games"):
        tune(collect([([positions.fens[0].decode()] * 3, 1.0)]), TRUTH, options)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match=r"the folder .* cannot be made"):
        tune(positions, TRUTH, options, out=tmp_path / "file" / "below")
    for wrong in ({"iterations": 0}, {"regularisation": -1.0}, {"regularisation": float("nan")}, {"fit_scale": 1}):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            FitOptions(**wrong)  # type: ignore[arg-type]


def test_leftover_temporary_files_are_removed(tmp_path: Path) -> None:
    positions, options = drawn_by(TRUTH, 200), FitOptions(iterations=2)
    tune(positions, TRUTH, options, out=tmp_path)
    for name in ("checkpoint.npz.0a1b2c3d.part", "weights.json.4e5f6a7b.part"):
        (tmp_path / name).write_bytes(b"half")
    # The fit is complete, so that no file is written.
    tune(positions, TRUTH, options, out=tmp_path, resume=True)
    assert not list(tmp_path.glob("*.part"))


def test_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(InvalidArgumentError, match="No space left"):
        files.write_bytes(tmp_path / "a", b"1", "out")
    assert not list(tmp_path.iterdir())


def test_damaged_checkpoint_raises(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    features = features_of(drawn_by(TRUTH, 50), TRUTH)
    belongs = identity(features, features, TRUTH, FitOptions())
    state = begin(features, features, TRUTH, FitOptions())
    save_state(path, state, belongs)
    assert load_state(path, belongs).best_error == state.best_error
    content = path.read_bytes()
    for broken in (content[:-40], content[:100], content[:200] + b"?" * 50 + content[250:], b"", b"PK\x03\x04", b"{}"):
        path.write_bytes(broken)
        with pytest.raises(InvalidArgumentError, match=r"checkpoint\.npz.*damaged") as caught:
            load_state(path, belongs)
        assert "pickle" not in str(caught.value)
    save_state(path, replace(state, best=np.full_like(state.best, np.nan)), belongs)
    with pytest.raises(InvalidArgumentError, match="best must be finite numbers"):
        load_state(path, belongs)
    save_state(path, replace(state, parameters=np.zeros(3)), belongs)
    with pytest.raises(InvalidArgumentError, match="numbers must be finite numbers, 881 per row"):
        load_state(path, belongs)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        load_state(tmp_path / "none.npz", belongs)
