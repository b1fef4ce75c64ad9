"""Training positions: files, splits by game, subsampling, quiet positions."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from pondertree.chess import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess
from pondertree.tune import Positions, join
from pondertree.tune.positions import Skipped, collect, is_quiet, split, thin

START = Chess().fen()


def sample(games: int = 20, each: int = 5) -> Positions:
    return collect([([START] * each, (number % 3) / 2) for number in range(games)])


def test_files_round_trip(tmp_path: Path) -> None:
    positions = sample()
    positions.skipped.add("a line that was wrong")
    path = tmp_path / "positions.npz"
    positions.save(path)
    back = Positions.load(path)
    assert back.fens.tolist() == positions.fens.tolist()
    assert back.results.tolist() == positions.results.tolist()
    assert back.games.tolist() == positions.games.tolist()
    assert back.skipped == positions.skipped
    assert [entry.name for entry in tmp_path.iterdir()] == ["positions.npz"]


def test_damaged_files_raise(tmp_path: Path) -> None:
    path = tmp_path / "positions.npz"
    sample().save(path)
    content = path.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"not this"):
        path.write_bytes(broken)
        with pytest.raises(InvalidArgumentError, match=r"positions\.npz") as caught:
            Positions.load(path)
        assert "pickle" not in str(caught.value)
    # A pickle is not loaded.
    np.savez(path, allow_pickle=True, header=np.array([print], dtype=object))
    with pytest.raises(InvalidArgumentError, match=r"positions\.npz"):
        Positions.load(path)
    np.savez(path, header=np.array('{"format": "pondertree-positions", "version": 9, "about": null}'))
    with pytest.raises(InvalidArgumentError, match="version must be 1, not 9"):
        Positions.load(path)
    np.savez(path, header=np.array('{"format": "other"}'))
    with pytest.raises(InvalidArgumentError, match="format must be 'pondertree-positions'"):
        Positions.load(path)
    wrong = sample()
    wrong.results[3] = np.nan
    wrong.save(path)
    with pytest.raises(InvalidArgumentError, match=r"results must be 0, 0\.5 or 1"):
        Positions.load(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("other.txt", "nothing")
    with pytest.raises(InvalidArgumentError, match=r"positions\.npz"):
        Positions.load(path)


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        sample().save(tmp_path / "none" / "positions.npz")


def test_split_keeps_games_whole() -> None:
    positions = sample(40)
    retained, aside = split(positions, 0.25, seed=3)
    assert sorted([*retained, *aside]) == list(range(200))
    assert len(aside) == 50
    assert not set(positions.games[retained]) & set(positions.games[aside])
    assert [part.tolist() for part in split(positions, 0.25, seed=3)] == [retained.tolist(), aside.tolist()]
    assert split(positions, 0.25, seed=4)[1].tolist() != aside.tolist()
    # At least one game in each set.
    assert [len(part) for part in split(sample(2), 0.01, seed=0)] == [5, 5]
    with pytest.raises(InvalidArgumentError, match=r"held_back must be above 0: .* when to stop"):
        split(positions, 0.0, seed=0)
    with pytest.raises(InvalidArgumentError, match="at least two games"):
        split(sample(1), 0.5, seed=0)
    with pytest.raises(InvalidArgumentError, match="held_back must be"):
        split(positions, 1.0, seed=0)


def test_long_games_are_subsampled() -> None:
    positions = collect([([START] * length, 1.0) for length in (3, 50, 1, 20)])
    found = thin(positions, 10, seed=1)
    assert np.bincount(found.games).tolist() == [3, 10, 1, 10]
    assert thin(positions, 10, seed=1).games.tolist() == found.games.tolist()
    assert len(thin(positions, 100, seed=1)) == len(positions)


def test_sources_are_concatenated() -> None:
    one, two = sample(3), sample(2)
    one.skipped.add("first")
    two.skipped.add("second")
    both = join([one, two])
    assert both.num_games == 5
    assert len(both) == 25
    assert both.skipped == Skipped(2, ["first", "second"])
    assert len(join([])) == 0


def test_only_quiet_positions_are_kept() -> None:
    pesto = Pesto()
    assert is_quiet(Chess(), pesto)
    assert not is_quiet(Chess("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1"), pesto)
    assert not is_quiet(Chess("4k3/8/8/8/8/8/4r3/4K3 w - - 0 1"), pesto)
    assert not is_quiet(Chess("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"), pesto)
