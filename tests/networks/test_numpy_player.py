"""NumPy players match PyTorch and refuse damaged files alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import random_position

import pondertree
from pondertree.errors import EvaluationError, StorageError
from pondertree.games import Chess, ConnectFour
from pondertree.networks import numpy_player
from pondertree.networks.loading import SHIPPED, load_for_one_tree
from pondertree.networks.numpy_player import NumpyPlayer, load_numpy_player, openblas_threads
from pondertree.networks.weights_file import read_weights

BUNDLED = SHIPPED / "connect4.safetensors"

#: Preamble that hides all packages but NumPy and rich.
BARE = "import sys\nfor name in ('torch', 'safetensors', 'onnxruntime', 'onnx'): sys.modules[name] = None\n"


def bare(code: str, given: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BARE + code], input=given, capture_output=True, text=True, timeout=120, **options
    )


def boards(kind: Any, count: int) -> Any:
    return np.stack([random_position(kind, seed % 20, seed).observation() for seed in range(count)])


def bundled() -> NumpyPlayer:
    player = load_numpy_player(BUNDLED)
    assert player is not None
    return player


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a small tic-tac-toe network."""
    pytest.importorskip("torch")
    return written((3, 3, 3), 9, 0, {"blocks": 1, "channels": 4})


def written(shape: tuple[int, ...], actions: int, planes: int, size: dict[str, int], game: str = "some") -> bytes:
    """Returns the file of a network with random weights."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from pondertree.networks.architecture import Architecture, NetworkConfig
    from pondertree.networks.policy_value import PolicyValueNetwork
    from pondertree.networks.weights_file import player_bytes

    torch.manual_seed(1)
    network = PolicyValueNetwork(Architecture(shape, actions, planes, NetworkConfig(**size)), folded=True)
    return player_bytes(network, {"game": game, "step": 3, "games": 5})


def parts_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Splits a file into (header, data)."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header: Any, numbers: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


@pytest.mark.parametrize("rows", [0, 1, 8, numpy_player.ROWS, numpy_player.ROWS + 1, 100])
def test_bundled_player_matches_torch(rows: int) -> None:
    pytest.importorskip("torch")
    observations = boards(ConnectFour, 100)[:rows]
    expected = pondertree.load("connect4").evaluate(observations)
    found = bundled().evaluate(observations)
    for one, two in zip(found, expected, strict=True):
        assert one.shape == two.shape
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, two, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "actions", "planes", "size"),
    [
        ((3, 3, 3), 9, 0, {"blocks": 0, "channels": 5}),
        ((2, 5, 4), 11, 0, {"blocks": 2, "channels": 6, "policy_channels": 3, "value_channels": 2}),
        ((7,), 4, 0, {"blocks": 2, "channels": 8}),
        ((2, 3), 5, 0, {"blocks": 1, "channels": 8, "value_hidden": 3}),
        (tuple(Chess().observation().shape), 4672, 73, {"blocks": 1, "channels": 8}),
    ],
)
def test_numpy_networks_of_every_kind_match_torch(
    tmp_path: Path, shape: tuple[int, ...], actions: int, planes: int, size: dict[str, int]
) -> None:
    path = tmp_path / "player.safetensors"
    path.write_bytes(written(shape, actions, planes, size))
    observations = np.random.default_rng(0).normal(size=(5, *shape)).astype(np.float32)
    expected = pondertree.load(path).evaluate(observations)
    player = load_for_one_tree(path)
    assert isinstance(player, NumpyPlayer)
    for one, two in zip(player.evaluate(observations), expected, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)
    assert player.about == pondertree.load(path).about
    assert repr(player) == "NumpyPlayer(some, step=3)"


def test_search_with_numpy_player_matches_torch() -> None:
    pytest.importorskip("torch")
    states = [ConnectFour(), random_position(ConnectFour, 7, 3), random_position(ConnectFour, 12, 4)]
    moves = [
        [result.action for result in pondertree.AlphaZero(player, 40, seed=1).run(states)]
        for player in (bundled(), pondertree.load("connect4"))
    ]
    assert moves[0] == moves[1]


def test_numpy_player_refuses_observations_of_another_game() -> None:
    with pytest.raises(EvaluationError, match=r"a player of connect4, which takes .*\(3, 6, 7\), not \(2, 8, 8\)"):
        bundled().evaluate(np.zeros((1, 2, 8, 8), dtype=np.float32))


def changed(content: bytes, **fields: Any) -> bytes:
    """Returns the file with changed network metadata."""
    header, numbers = parts_of(content)
    about = json.loads(header["__metadata__"]["pondertree"])
    about["network"] |= fields
    header["__metadata__"]["pondertree"] = json.dumps(about)
    return joined(header, numbers)


def entry(content: bytes, **fields: Any) -> bytes:
    """Returns the file with a changed tensor entry."""
    header, numbers = parts_of(content)
    header["stem.weight"] |= fields
    return joined(header, numbers)


def without(content: bytes, name: str) -> bytes:
    header, numbers = parts_of(content)
    del header[name]
    return joined(header, numbers)


def overlapping(content: bytes) -> bytes:
    header, numbers = parts_of(content)
    header["stem.bias"]["data_offsets"] = header["policy_layer.bias"]["data_offsets"] = [0, 16]
    header["policy_layer.bias"]["shape"] = header["stem.bias"]["shape"] = [4]
    return joined(header, numbers)


def infinite(content: bytes) -> bytes:
    header, numbers = parts_of(content)
    about = json.loads(header["__metadata__"]["pondertree"])
    del about["sha256"]
    header["__metadata__"]["pondertree"] = json.dumps(about)
    return joined(header, np.full(len(numbers) // 4, np.inf, "<f4").tobytes())


def renamed(content: bytes) -> bytes:
    header, numbers = parts_of(content)
    header["other.weight"] = header.pop("stem.weight")
    about = json.loads(header["__metadata__"]["pondertree"])
    del about["sha256"]
    header["__metadata__"]["pondertree"] = json.dumps(about)
    return joined(header, numbers)


DAMAGES: dict[str, tuple[Any, str]] = {
    "empty": (lambda content: b"", "not a player file"),
    "pickle": (lambda content: b"\x80\x04" + content, "looks like a pickle"),
    "header beyond the end": (lambda content: b"\xff" * 8 + content[8:], "not a player file"),
    "header is a list": (lambda content: joined([1], b""), "not a player file"),
    "deep header": (lambda content: joined(b"[" * 100_000, b""), "not a player file"),
    "no metadata": (lambda content: without(content, "__metadata__"), "not a player file"),
    "metadata is a number": (
        lambda content: joined({**parts_of(content)[0], "__metadata__": 3}, parts_of(content)[1]),
        "not a player file",
    ),
    "a name twice": (
        lambda content: joined(
            json.dumps(parts_of(content)[0]).encode().replace(b'"stem.bias"', b'"stem.weight"'), parts_of(content)[1]
        ),
        "not a player file",
    ),
    "cut": (lambda content: content[:-4], "too short or too long"),
    "longer": (lambda content: content + bytes(4), "too short or too long"),
    "other numbers": (lambda content: content[:-4] + b"\0\0\x80\x3f", "checksum differs"),
    "infinite": (infinite, "not all finite"),
    "another type": (lambda content: entry(content, dtype="F16"), "must be float32"),
    "type is a list": (lambda content: entry(content, dtype=["F32"]), "must be float32"),
    "negative shape": (lambda content: entry(content, shape=[-4, -3, 3, 3]), "has no valid shape or offsets"),
    "huge shape": (lambda content: entry(content, shape=[1 << 47, 1 << 47]), "another size than its shape"),
    "shape of truths": (lambda content: entry(content, shape=[True]), "has no valid shape or offsets"),
    "many axes": (lambda content: entry(content, shape=[1] * 9), "has no valid shape or offsets"),
    "offsets out of order": (lambda content: entry(content, data_offsets=[8, 4]), "another size than its shape"),
    "offsets beyond": (lambda content: entry(content, data_offsets=[1 << 40, (1 << 40) + 432]), "a gap or overlap"),
    "three offsets": (lambda content: entry(content, data_offsets=[0, 4, 8]), "has no valid shape or offsets"),
    "one more field": (lambda content: entry(content, code="x"), "needs a dtype, a shape and data_offsets"),
    "overlap": (overlapping, "a gap or overlap|another size"),
    "gap": (lambda content: without(content, "stem.weight"), "a gap or overlap|too short"),
    "another tensor": (renamed, "do not fit the network it describes: 'stem.weight' has shape None"),
    "more actions": (lambda content: changed(content, num_actions=10), "do not fit the network it describes"),
    "negative actions": (lambda content: changed(content, num_actions=-1), "not a network description"),
    "huge shape of the game": (lambda content: changed(content, shape=[1 << 27, 9, 9]), "not a network description"),
    "no shape of the game": (lambda content: changed(content, shape=None), "not a network description"),
    "no actions": (
        lambda content: changed(content, num_actions=0),
        "network description: num_actions must be at least 1",
    ),
    "other planes than actions": (lambda content: changed(content, policy_planes=2), "policy_planes must be 0, or"),
    "planes of a vector": (lambda content: changed(content, shape=[27], policy_planes=3), "not a network description"),
    "many blocks": (lambda content: changed(content, size={"blocks": 1 << 40}), "not a network description"),
    "unknown size": (lambda content: changed(content, size={"depth": 1}), "not a network description"),
    "another format": (
        lambda content: content.replace(b"pondertree-player", b"pondertree-prayer"),
        "a pondertree-prayer of version 1; this version reads pondertree-player 1",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_player_file_is_refused_by_name(tmp_path: Path, small: bytes, name: str) -> None:
    change, message = DAMAGES[name]
    path = tmp_path / "player.safetensors"
    path.write_bytes(small)
    assert load_numpy_player(path) is not None
    path.write_bytes(change(small))
    with pytest.raises(StorageError, match=message) as raised:
        load_numpy_player(path)
    assert str(path) in str(raised.value)
    assert len(str(raised.value)) < 400 + len(str(path))


def test_read_weights_matches_safetensors() -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    content = BUNDLED.read_bytes()
    expected, (about, found) = safetensors.load(content), read_weights(content)
    assert set(found) == set(expected)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert about["game"] == "connect4"


def test_evaluation_limits_blas_to_one_thread_and_restores_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = openblas_threads()
    if functions is None:
        pytest.skip("NumPy has another library than OpenBLAS")
    get, change = functions
    before = get()
    change(2)
    try:
        player, seen = bundled(), []
        forward = player._forward
        monkeypatch.setattr(player, "_forward", lambda x: (seen.append(get()), forward(x))[1])
        threads = [threading.Thread(target=player.evaluate, args=(boards(ConnectFour, 8),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [1] * 4
        assert get() == 2
        with pytest.raises(EvaluationError):
            player.evaluate(np.zeros((1, 1), dtype=np.float32))
        assert get() == 2
    finally:
        change(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_child_forked_during_evaluation_evaluates_and_restores_blas_limit() -> None:
    if openblas_threads() is None:
        pytest.skip("NumPy has another library than OpenBLAS")
    code = """
import os, pondertree, numpy as np
from pondertree.networks import numpy_player
player = pondertree.load("connect4")
get, change = numpy_player.openblas_threads()
change(3)
with numpy_player._SINGLE_THREADED.region(), numpy_player._SINGLE_THREADED._lock:
    child = os.fork()
    if child == 0:
        before = get()
        player.evaluate(np.zeros((1, 3, 6, 7), dtype=np.float32))
        os._exit(10 * before + get())
    print(get())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), get())
"""
    done = bare(code)
    assert done.stdout == "1\n33 3\n", done.stderr


def test_bundled_player_loads_without_torch() -> None:
    done = bare("import pondertree; player = pondertree.load('connect4'); print(player, player.about['game'])")
    assert done.stdout == "NumpyPlayer(connect4, step=34948) connect4\n", done.stderr


def test_commands_use_bundled_player_without_torch() -> None:
    main = "from pondertree.cli import main\nsys.exit(main(sys.argv[1:] or {}))"
    search = ["search", "connect4", "--player", "connect4", "--simulations", "20", "--json", "--seed", "1"]
    done = bare(main.format(search))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["algorithm"] == "alphazero"
    done = bare(main.format(["play", "connect4", "--player", "connect4", "--simulations", "8"]), "4\nquit\n")
    assert done.returncode == 0, done.stderr
    assert "O plays" in done.stdout
    players = ["alphazero:evaluator=player:connect4,num_simulations=8", "uct:num_simulations=20"]
    rest = ["--game", "connect4", "--games", "2", "--concurrency", "1", "--json"]
    done = bare(main.format(["match", *players, *rest]))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["games"] == 2


def test_search_and_play_do_not_import_torch() -> None:
    code = (
        "import sys; from pondertree.cli import main; "
        "main(['search', 'connect4', '--player', 'connect4', '--simulations', '4', '--json']); "
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stderr == "False\n"


def test_other_devices_require_torch() -> None:
    done = bare("import pondertree; pondertree.load('connect4', device='cuda')")
    assert "MissingExtraError: a player on the device cuda needs torch: " in done.stderr
    assert "pip install" in done.stderr


def test_runs_load_without_torch_and_models_name_install_command(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from tests.support.learning import small as config

    from pondertree.learn import train

    train(config(tmp_path / "run", steps=3, evaluation={"games": 0, "positions": 0}))
    train(config(tmp_path / "model", steps=3, algorithm="muzero", evaluation={"games": 0, "positions": 0}))
    code = "import pondertree; print(pondertree.load(sys.argv[1]))"
    done = bare(code.replace("sys.argv[1]", repr(str(tmp_path / "run"))))
    assert done.stdout == "NumpyPlayer(tic-tac-toe, step=3)\n", done.stderr
    done = bare(code.replace("sys.argv[1]", repr(str(tmp_path / "model"))))
    assert "MissingExtraError: a player of MuZero, which is a model, needs torch: " in done.stderr
    assert "pip install" in done.stderr
