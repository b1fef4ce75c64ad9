"""Fuzzes everything that reads a file: no file, and no path, may crash, hang or raise an untyped exception.

    python scripts/fuzz_files.py --inputs 2000
    python scripts/fuzz_files.py --kind player --seed 3 --first 17 --inputs 1

Each input is a valid file that was damaged (bits flipped, cut, spliced, replaced by deep or endless text), or forged:
fields of its JSON, TOML, metadata or arrays are replaced by hostile values, and its checksums made anew. Errors about a
file must name it. A file that is read is used, too: a player searches, a checkpoint is taken up again. Kinds whose
packages are missing are left out; all need `pondertree[train]`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import io
import json
import math
import random
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing import Make, main

import pondertree
from pondertree import AlphaZero, MuZero
from pondertree.chess import ChessNN, MoveScores, Pesto
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.match.openings import make_openings
from pondertree.match.record import read_record, write_line
from pondertree.match.runner import play_match
from pondertree.tune import Positions, read_positions

#: The classes of errors that say something is wrong with a file, and so must name it.
ABOUT_FILES = (InvalidArgumentError, StorageError)
#: Values that fields of forged files get.
HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 2**15, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e-320, 1e38, 1e308, math.nan, math.inf, -math.inf),
    *("", "x", "\0", "\ud800", "ä" * 300, "../../etc/passwd", "NaN", "-1", "{" * 50),
    *([], [[]], {}, [None], [-1], [2**40] * 3, [0, 0, 0], [math.nan] * 2, {"": 0}, {"x": {"y": []}}),
]


# --- damage -----------------------------------------------------------------------------------------------------------


def damaged(numbers: random.Random, content: bytes, *others: bytes) -> bytes:
    """A file with flipped bits, cut, spliced with itself or another, or replaced by something deep or endless."""
    data = bytearray(content)
    for _ in range(numbers.choice((1, 1, 1, 2, 4, 16))):
        place = numbers.randrange(len(data) + 1)
        match numbers.randrange(8):
            case 0 | 1 if data:
                data[place % len(data)] ^= 1 << numbers.randrange(8)
            case 2 if data:
                data[place % len(data)] = numbers.choice((0, 1, 0x7F, 0x80, 0xFF, *b'[]{}",.;()-0e\n'))
            case 3:
                del data[place:]
            case 4:
                del data[place : place + numbers.randrange(64)]
            case 5:
                data[place:place] = numbers.randbytes(numbers.randrange(16))
            case 6:
                other = numbers.choice((content, *others))
                begin = numbers.randrange(len(other) + 1)
                data[place:place] = other[begin : begin + numbers.randrange(256)]
            case 7:
                data[place : place + 8] = struct.pack("<Q", numbers.choice((0, 1, 2**31, 2**40, 2**63, 2**64 - 1)))
    return bytes(data)


def endless(numbers: random.Random) -> bytes:
    """Text that is deep, or long without an end."""
    signs = (b"[", b"{", b"(", b'"', b"{(", b'{"a":', b"[[1],", b"a.", b"a=[", b"\\", b" ", b"9", b"\n", b"\0", b"e4 ")
    begin: bytes = numbers.choice((b"", b"x = ", b'{"x": ', b"1. e4 "))
    return begin + numbers.choice(signs) * numbers.choice((100, 1000, 10_000, 100_000))


def forged(numbers: random.Random, data: Any) -> Any:
    """Plain data in which one or a few values are replaced, removed, repeated or exchanged."""
    data = copy.deepcopy(data)
    for _ in range(numbers.choice((1, 1, 1, 2, 5))):
        places = list(_places(data))
        if not places:
            return copy.deepcopy(numbers.choice(HOSTILE))
        owner, key = numbers.choice(places)
        match numbers.randrange(8):
            case 0:
                del owner[key]
            case 1:
                owner[key] = [owner[key]] * numbers.choice((1, 2, 50))
            case 2 if isinstance(owner, list):
                owner.append(owner[key])
            case 3:
                other, where = numbers.choice(places)
                with contextlib.suppress(KeyError, IndexError):
                    owner[key] = copy.deepcopy(other[where])
            case 4 if isinstance(owner[key], (int, float)) and not isinstance(owner[key], bool):
                with contextlib.suppress(OverflowError):
                    owner[key] = numbers.choice((owner[key] + 1, owner[key] - 1, -owner[key], owner[key] * 1000))
            case 5 if isinstance(owner, dict):
                owner[numbers.choice(("", "x", "\0", "number", "shape"))] = copy.deepcopy(numbers.choice(HOSTILE))
            case 6:
                for _ in range(numbers.choice((10, 500, 3000))):
                    owner[key] = [owner[key]]
                return data
            case _:
                owner[key] = copy.deepcopy(numbers.choice(HOSTILE))
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value, the containers inside it included."""
    waiting = [data]
    while waiting:
        owner = waiting.pop()
        keys = owner if isinstance(owner, dict) else range(len(owner)) if isinstance(owner, list) else ()
        for key in list(keys):
            yield owner, key
            waiting.append(owner[key])


def as_json(data: Any) -> str:
    """JSON of forged data, which may be nested too deep to be written."""
    try:
        return json.dumps(data)
    except RecursionError:
        return "[" * 5000 + "]" * 5000


def forged_arrays(numbers: random.Random, arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of other types, shapes and values."""
    arrays = dict(arrays)
    for _ in range(numbers.choice((1, 1, 2))):
        name = numbers.choice(sorted(arrays))
        array = np.array(arrays[name])
        match numbers.randrange(8):
            case 0:
                del arrays[name]
            case 1:
                kind = numbers.choice(("u1", "i8", "f4", "f8", "U3", "S3", "?", ">u2", "m8[s]", "c16"))
                with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError):
                    arrays[name] = array.astype(kind)
            case 2:
                arrays[name] = array.reshape(-1, 1) if numbers.random() < 0.5 else array.ravel()[: array.size // 2]
            case 3:
                arrays[name] = np.concatenate([np.atleast_1d(array)] * 2)
            case 4:
                many = 2 * 10**7 // max(array.dtype.itemsize, 1)
                arrays[name] = np.zeros(numbers.choice(((0,), (3,), (2, 0), (), (many,))), array.dtype)
            case _ if array.size and array.dtype.kind in "iufb":
                flat = array.reshape(-1)
                with np.errstate(all="ignore"), contextlib.suppress(OverflowError, ValueError):
                    flat[numbers.randrange(flat.size)] = numbers.choice(
                        (-1, 0, 1, 2, 7, 200, 65535, 2**31, 2**62, math.nan, math.inf, -5.0, 1e30)
                    )
                arrays[name] = array
        if not arrays:
            break
    return arrays


def npz(numbers: random.Random, arrays: dict[str, Any]) -> bytes:
    """An .npz file, sometimes one whose headers or directory claim far more than there is."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", numbers.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
            content = entry.getvalue()
            if numbers.random() < 0.05:
                shape = numbers.choice(((2**40,), (2**50, 2**50), (-1,), (10**18, 0), (1,) * 70, (2**63,)))
                header = {"descr": numbers.choice(("<f8", "|O", "|V0", "<U0", "|S0")), "fortran_order": False}
                entry = io.BytesIO()
                np.lib.format.write_array_header_2_0(entry, {**header, "shape": shape})
                content = entry.getvalue()
            archive.writestr(f"{name}.npy", content)
    content = file.getvalue()
    if numbers.random() < 0.05:  # sizes in the directory
        place = content.rfind(b"PK\x01\x02") + 20
        content = content[:place] + struct.pack("<II", 2**31, 2**32 - 1) + content[place + 8 :]
    return content


def write(name: str, content: bytes) -> Path:
    """A file in the working directory."""
    path = Path(name)
    path.write_bytes(content)
    return path


def naming(path: Path, read: Callable[[], Any]) -> Any:
    """What `read` gives; an error of ours about a file must name it."""
    try:
        return read()
    except ABOUT_FILES as error:
        if path.name not in str(error):
            raise AssertionError(f"this error does not name {path.name}: {error}") from error
        raise


# --- players ----------------------------------------------------------------------------------------------------------


@functools.cache
def players() -> list[bytes]:
    """A small player of tic-tac-toe, one of Connect 4, and a model."""
    from pondertree.learn import default_config
    from pondertree.learn.config.game_spec import game_spec
    from pondertree.learn.trainer.architectures import model_architecture, policy_value_architecture
    from pondertree.networks.model_network import ModelNetwork
    from pondertree.networks.policy_value import PolicyValueNetwork, player_of
    from pondertree.networks.weights_file import player_bytes

    small = {"blocks": 1, "channels": 4, "policy_channels": 2, "value_channels": 2, "value_hidden": 4}
    found = []
    for name in ("tic-tac-toe", "connect4"):
        spec = game_spec(name)
        config = default_config(name, algorithm="muzero").with_values(network=small)
        networks: list[Any] = [PolicyValueNetwork(policy_value_architecture(spec, config.network))]
        networks.append(ModelNetwork(model_architecture(spec, config)))
        found += [player_bytes(player_of(network), spec.metadata(5, 7)) for network in networks]
    return found


def safetensors_parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    """(header, data) of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def safetensors_of(header: Any, data: bytes) -> bytes:
    """A safetensors file."""
    text = as_json(header).encode(errors="surrogatepass")
    return len(text).to_bytes(8, "little") + text + data


def make_player(numbers: random.Random) -> Callable[[], object]:
    """A player: its bytes, its header, or the metadata, with a checksum that is right."""
    content = numbers.choice(players())
    if numbers.random() < 0.3:
        content = damaged(numbers, content, *players())
    elif numbers.random() < 0.05:
        content = endless(numbers)
    else:
        header, data = safetensors_parts(content)
        about = json.loads(header["__metadata__"]["pondertree"])
        if numbers.random() < 0.7:
            about = forged(numbers, about)
        elif numbers.random() < 0.5:
            data = data[:-4] + struct.pack("<f", numbers.choice((math.nan, math.inf, 1e38, -1e38, 1e-45)))
        else:
            header = forged(numbers, header)
        if isinstance(about, dict) and "sha256" in about:
            if numbers.random() < 0.5:
                del about["sha256"]
            else:
                about["sha256"] = player_checksum(header, data)
        with contextlib.suppress(KeyError, TypeError, IndexError):
            header["__metadata__"]["pondertree"] = as_json(about)
        content = safetensors_of(header, data)

    def call() -> None:
        path = write("player.safetensors", content)
        player = naming(path, lambda: pondertree.load(path))
        state = numbers.choice((TicTacToe(), ConnectFour()))
        if hasattr(player, "initial_inference"):
            MuZero(player, num_simulations=4).run(state)
        else:
            AlphaZero(player, num_simulations=4).run(state)

    return call


def player_checksum(header: Any, data: bytes) -> str:
    """The checksum of the weights of a player, as far as the header can still be read."""
    total = hashlib.sha256()
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
        for name in sorted(header):
            if name != "__metadata__":
                begin, end = header[name]["data_offsets"]
                total.update(name.encode(errors="replace"))
                total.update(data[begin:end])
    return total.hexdigest()


# --- trainings --------------------------------------------------------------------------------------------------------


@functools.cache
def training() -> tuple[Path, Any]:
    """(folder, configuration) of a small training."""
    import torch

    from pondertree.learn import default_config, train

    torch.set_num_threads(1)
    out = Path(tempfile.mkdtemp(dir=".")) / "run"
    config = default_config("tic-tac-toe", out=str(out), steps=4, device="cpu").with_values(
        network={"blocks": 1, "channels": 4, "policy_channels": 2, "value_channels": 2, "value_hidden": 4},
        self_play={"games_at_once": 8, "simulations": 4, "workers": 1},
        replay={"window": 200, "learned_first": 20},
        learner={"batch_size": 16, "passes": 2.0},
        evaluation={"games": 2, "positions": 0, "simulations": 4, "uct_simulations": [4], "every_minutes": 0.0},
        cycle_moves=3,
        checkpoint_minutes=0.0,
        keep_checkpoints=1,
    )
    train(config)
    return out, config


def make_checkpoint(numbers: random.Random) -> Callable[[], object]:
    """A training whose checkpoint, or another file, is damaged or forged; it is taken up again."""
    source, config = training()
    folder = Path("taken-up")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    [checkpoint] = (folder / "checkpoints").iterdir()
    others = [folder / name for name in ("run.json", "config.toml", "metrics.jsonl")]
    others += (folder / "players").glob("*.json")
    path = numbers.choice([*checkpoint.iterdir(), *checkpoint.iterdir(), *others, *(folder / "games").iterdir()])
    content = path.read_bytes()
    if numbers.random() < 0.25:
        path.write_bytes(endless(numbers) if numbers.random() < 0.2 else damaged(numbers, content))
    elif path.suffix == ".json":
        data = json.loads(content)
        data.pop("own", None)
        path.write_bytes(as_json(forged(numbers, data)).encode(errors="surrogatepass"))
    elif path.suffix == ".jsonl":
        lines = [as_json(forged(numbers, json.loads(line))) for line in content.splitlines()]
        path.write_bytes("\n".join(lines).encode(errors="surrogatepass"))
    elif path.suffix == ".npz":
        with np.load(io.BytesIO(content)) as file:
            path.write_bytes(npz(numbers, forged_arrays(numbers, dict(file))))
    elif path.suffix == ".safetensors":
        header, data = safetensors_parts(content)
        path.write_bytes(safetensors_of(forged(numbers, header), data))
    else:
        path.write_bytes(damaged(numbers, content))
    if path.parent == checkpoint and numbers.random() < 0.9:
        seal(checkpoint)

    def call() -> None:
        from pondertree.learn import train
        from pondertree.learn.report.page import write_report

        with contextlib.suppress(StorageError, InvalidArgumentError):
            pondertree.load(folder)
        with contextlib.suppress(StorageError):
            naming(folder, lambda: write_report(folder)) if numbers.random() < 0.1 else None
        naming(folder, lambda: train(config.with_values(out=str(folder), steps=numbers.choice((4, 5))), resume=True))

    return call


def seal(checkpoint: Path) -> None:
    """Makes the checksums of a checkpoint anew, as far as its state can be read."""
    try:
        told = json.loads((checkpoint / "state.json").read_bytes())
        told.pop("own", None)
        for name in told["sha256"]:
            told["sha256"][name] = hashlib.sha256((checkpoint / name).read_bytes()).hexdigest()
        told["own"] = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        (checkpoint / "state.json").write_text(json.dumps(told))
    except Exception:  # it was damaged before
        return


# --- shards -----------------------------------------------------------------------------------------------------------


@functools.cache
def shard_columns() -> dict[str, Any]:
    """Columns of some games of tic-tac-toe."""
    from pondertree.learn.data.records import to_columns
    from pondertree.learn.data.shards import list_shards, read_shard

    return to_columns([game for shard in list_shards(training()[0] / "games") for game in read_shard(shard)])


def make_shard(numbers: random.Random) -> Callable[[], object]:
    """A shard as .npz or Parquet."""
    from pondertree.learn.config.game_spec import game_spec
    from pondertree.learn.data import shards

    columns = shard_columns()
    kind = numbers.choice(("npz", "parquet"))
    path = Path(f"games-000000000-{len(columns['number']):05d}.{kind}")
    wrong = numbers.random() < 0.5
    if kind == "npz":
        arrays = {"format": np.array(f"{shards.FORMAT} {shards.VERSION}"), **columns}
        content = npz(numbers, forged_arrays(numbers, arrays)) if wrong else damaged(numbers, shards._npz(columns))
    else:
        content = forged_parquet(numbers, columns) if wrong else damaged(numbers, shards._parquet(columns))
    if numbers.random() < 0.02:
        content = endless(numbers)
    shard = shards.Shard(path, 0, len(columns["number"]))

    def call() -> None:
        write(path.name, content)
        naming(path, lambda: shards.read_shard(shard, game_spec("tic-tac-toe")))

    return call


def forged_parquet(numbers: random.Random, columns: dict[str, Any]) -> bytes:
    """A Parquet file with other columns, types, values and gaps."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pondertree.learn.data import shards

    table = pq.read_table(io.BytesIO(shards._parquet(columns)))
    data = table.to_pydict()
    row, name = numbers.randrange(table.num_rows), numbers.choice(table.column_names)
    values: tuple[Any, ...] = (
        None,
        -1,
        0,
        1,
        9,
        255,
        65535,
        2**31,
        math.nan,
        math.inf,
        "x",
        [],
        [None],
        [1, 2, 3],
        [[1]],
    )
    if isinstance(data[name][row], list) and data[name][row] and numbers.random() < 0.6:
        data[name][row][numbers.randrange(len(data[name][row]))] = numbers.choice(values)
    else:
        data[name][row] = numbers.choice(values)
    if numbers.random() < 0.1:
        del data[numbers.choice(table.column_names)]
    try:
        arrays = {key: pa.array(column, table.schema.field(key).type) for key, column in data.items()}
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        try:
            arrays = {key: pa.array(column) for key, column in data.items()}
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
            arrays = {"number": pa.array([1])}
    file = io.BytesIO()
    metadata = table.schema.metadata if numbers.random() < 0.9 else {"format": "\ud800".encode(errors="surrogatepass")}
    pq.write_table(pa.table(arrays).replace_schema_metadata(metadata), file)
    return file.getvalue()


# --- records of matches and climbs ------------------------------------------------------------------------------------


@functools.cache
def records() -> dict[str, bytes]:
    """Records of a match of tic-tac-toe and of one of chess."""
    found = {}
    for game in ("tic-tac-toe", "chess"):
        path = Path(tempfile.mkdtemp(dir=".")) / "match.jsonl"
        play_match("random", "first", game, num_games=6, seed=1, plies=2, out=path, concurrency=1)
        found[game] = path.read_bytes()
    return found


def forged_lines(numbers: random.Random, content: bytes) -> bytes:
    """Lines of a record, forged, with checksums that are right."""
    lines = [json.loads(line) for line in content.splitlines()]
    for line in lines:
        del line["crc32"]
    place = numbers.randrange(len(lines))
    lines[place] = forged(numbers, lines[place])
    if numbers.random() < 0.1:
        numbers.shuffle(lines)
    written = []
    for line in lines:
        try:
            written.append(write_line(line))
        except (UnicodeEncodeError, RecursionError, TypeError, IndexError):
            body = as_json(line).encode()
            written.append(body[:-1] + b',"crc32":%d}\n' % zlib.crc32(body))
    return b"".join(written)


def make_record(numbers: random.Random) -> Callable[[], object]:
    """The record of a match: read, gone on with, or its positions taken."""
    game = numbers.choice(("tic-tac-toe", "chess"))
    content = records()[game]
    content = forged_lines(numbers, content) if numbers.random() < 0.7 else damaged(numbers, content)
    if numbers.random() < 0.02:
        content = endless(numbers)
    way = numbers.randrange(3)

    def call() -> None:
        path = write("match.jsonl", content)
        Path("match.pgn").unlink(missing_ok=True)
        if way == 0:
            naming(path, lambda: read_record(path))
        elif way == 1 and game == "chess":
            naming(path, lambda: read_positions(path))
        else:
            options: dict[str, Any] = {"num_games": 6, "seed": 1, "plies": 2, "concurrency": 1, "pgn": "match.pgn"}
            naming(path, lambda: play_match("random", "first", game, out=path, resume=True, **options))

    return call


@functools.cache
def spsa_record() -> bytes:
    """The record of an SPSA run."""
    from pondertree.tune import tune_search

    out = Path(tempfile.mkdtemp(dir="."))
    tune_search(iterations=4, out=out, compare=lambda *_: 0.75)
    return (out / "search.jsonl").read_bytes()


def make_spsa(numbers: random.Random) -> Callable[[], object]:
    """Resuming a damaged record of an SPSA run."""
    content = spsa_record()
    content = forged_lines(numbers, content) if numbers.random() < 0.7 else damaged(numbers, content)

    def call() -> None:
        from pondertree.tune import tune_search

        out = Path("spsa")
        out.mkdir(exist_ok=True)
        (out / "search.jsonl").write_bytes(content)
        naming(out, lambda: tune_search(iterations=5, out=out, resume=True, compare=lambda *_: 0.75))

    return call


# --- configurations ---------------------------------------------------------------------------------------------------


@functools.cache
def config_text() -> str:
    """The whole configuration of a training."""
    from pondertree.learn import default_config, text_of_config

    return text_of_config(default_config("connect4"))


def make_config(numbers: random.Random) -> Callable[[], object]:
    """A configuration in TOML."""
    text = config_text()
    if numbers.random() < 0.4:
        content = damaged(numbers, text.encode())
    elif numbers.random() < 0.2:
        content = endless(numbers)
    else:
        lines = text.splitlines()
        for _ in range(numbers.choice((1, 1, 3))):
            place = numbers.choice([place for place, line in enumerate(lines) if "=" in line])
            value = numbers.choice(HOSTILE)
            told = "1979-05-27T07:32:00Z" if value is None else as_json(value)
            for json_word, toml_word in (("Infinity", "inf"), ("NaN", "nan"), (": ", " = "), ("null", "0x10")):
                told = told.replace(json_word, toml_word)
            lines[place] = f"{lines[place].partition('=')[0]}= {told}"
        content = "\n".join(lines).encode(errors="surrogatepass")

    def call() -> None:
        from pondertree.learn import Config, read_config, text_of_config

        path = write("config.toml", content)
        text_of_config(naming(path, lambda: read_config(path, Config())))

    return call


# --- weights ----------------------------------------------------------------------------------------------------------


@functools.cache
def weights() -> dict[str, bytes]:
    """The files of weights that there are, by name."""
    folder = Path(tempfile.mkdtemp(dir="."))
    Pesto().to_file(folder / "pesto.json")
    MoveScores().to_file(folder / "moves.json")
    network = ChessNN(blocks=1, channels=4, value_channels=1, value_hidden=4)
    network.build()
    network.save_model(folder / "network.safetensors")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def make_weights(numbers: random.Random) -> Callable[[], object]:
    """Weights of the evaluation, scores of moves, or a chess network."""
    name = numbers.choice(sorted(weights()))
    content = weights()[name]
    if numbers.random() < 0.3:
        content = damaged(numbers, content)
    elif numbers.random() < 0.05:
        content = endless(numbers)
    elif name.endswith(".json"):
        content = as_json(forged(numbers, json.loads(content))).encode(errors="surrogatepass")
    else:
        header, data = safetensors_parts(content)
        if numbers.random() < 0.5:
            about = forged(numbers, json.loads(header["__metadata__"]["config"]))
            header["__metadata__"]["config"] = as_json(about)
        else:
            header = forged(numbers, header)
        content = safetensors_of(header, data)

    def call() -> None:
        path = write(name, content)
        if name == "pesto.json":
            naming(path, lambda: Pesto.from_file(path)).eval(Chess())
        elif name == "moves.json":
            naming(path, lambda: MoveScores.from_file(path)).factors(Chess())
        else:
            naming(path, lambda: ChessNN().load_model(path))

    return call


# --- positions, games and openings ------------------------------------------------------------------------------------

FENS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
    "8/8/4k3/8/8/3QK3/8/8 w - - 0 1",
)
EPD = "".join(f'{fen} c9 "{result}";\n' for fen, result in zip(FENS, ("1-0", "0-1", "1/2-1/2"), strict=True)).encode()
PGN = b"""[Event "?"]
[White "A \\"B\\""]
[Result "1-0"]

1. e4 e5 2. Nf3 {a comment} Nc6 (2... d6 3. d4) 3. Bb5 $1 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 ; rest
8. c3 O-O 9. h3 1-0

[FEN "8/8/4k3/8/8/3QK3/8/8 w - - 0 1"]
[SetUp "1"]
[Result "*"]

1. Qd4 Kf5 2. Qd5+ Kg4 *
"""
MOVES = {"chess": b"e4 e5\nd4 d5 # a comment\n", "connect_four": b"4 4 3\n1 2 3\n"}


@functools.cache
def position_files() -> dict[str, bytes]:
    """Positions as .npz, and a fit."""
    from pondertree.tune import FitOptions, tune

    fens: list[bytes] = []
    games: list[int] = []
    state = Chess()
    numbers = random.Random(1)
    while len(fens) < 40:
        state = state.play(numbers.choice(state.legal_actions())) if not state.is_terminal else Chess()
        fens.append(state.fen().encode())
        games.append(len(games) // 2)
    results = np.array([numbers.choice((0.0, 0.5, 1.0)) for _ in fens])
    folder = Path(tempfile.mkdtemp(dir="."))
    positions = Positions(np.array(fens), results, np.array(games, dtype=np.int64))
    positions.save(folder / "positions.npz")
    tune(positions, options=FitOptions(iterations=2), out=folder)
    return {name: (folder / name).read_bytes() for name in ("positions.npz", "checkpoint.npz")}


def make_positions(numbers: random.Random) -> Callable[[], object]:
    """Positions as .npz or EPD, or a fit that goes on."""
    name = numbers.choice(("positions.npz", "checkpoint.npz", "positions.epd"))
    if name.endswith(".epd"):
        content = endless(numbers) if numbers.random() < 0.1 else damaged(numbers, EPD)
    elif numbers.random() < 0.3:
        content = damaged(numbers, position_files()[name])
    else:
        with np.load(io.BytesIO(position_files()[name])) as file:
            arrays = dict(file)
        if numbers.random() < 0.5:
            arrays["header"] = np.array(as_json(forged(numbers, json.loads(str(arrays["header"])))))
        else:
            arrays = forged_arrays(numbers, arrays)
        content = npz(numbers, arrays)

    def call() -> None:
        from pondertree.tune import FitOptions, tune

        if name == "checkpoint.npz":
            out = Path("fit")
            out.mkdir(exist_ok=True)
            (out / name).write_bytes(content)
            source = write("positions.npz", position_files()["positions.npz"])
            naming(out, lambda: tune(read_positions(source), options=FitOptions(iterations=3), out=out, resume=True))
            return
        path = write(name, content)
        naming(path, lambda: read_positions(path)).states()

    return call


def make_pgn(numbers: random.Random) -> Callable[[], object]:
    """Games in PGN, for tuning and as openings."""
    content = endless(numbers) if numbers.random() < 0.2 else damaged(numbers, PGN, EPD)
    if numbers.random() < 0.1:
        content += endless(numbers)

    def call() -> None:
        path = write("games.pgn", content)
        naming(path, lambda: read_positions(path))
        naming(path, lambda: make_openings(path, Chess, "chess", 0, numbers.choice((None, 0, 3))))

    return call


def make_opening(numbers: random.Random) -> Callable[[], object]:
    """Openings in EPD or as moves."""
    name, game = numbers.choice((("book.epd", "chess"), ("book.txt", "chess"), ("book.txt", "connect_four")))
    content = EPD if name.endswith(".epd") else MOVES[game]
    content = endless(numbers) if numbers.random() < 0.1 else damaged(numbers, content, PGN)

    def call() -> None:
        path = write(name, content)
        factory: Any = Chess if game == "chess" else ConnectFour
        naming(path, lambda: make_openings(path, factory, game, 0, None))

    return call


# --- paths ------------------------------------------------------------------------------------------------------------


def make_path(numbers: random.Random) -> Callable[[], object]:
    """A path that is none, for every function and command that takes one."""
    long = numbers.choice((250, 255, 256, 4000, 4096, 5000))
    odd = ("", ".", "/", "..", "\0", "a\0b", "\ud800", "~", "no/no")
    stem = numbers.choice((*odd, "x" * long, "/".join("x" * (long // 2))))
    path: Any = stem + numbers.choice(("", ".npz", ".pgn", ".jsonl", ".keras", ".safetensors", ".onnx", ".toml", "/"))
    if numbers.random() < 0.05:
        path = numbers.choice((b"x", 3, None, [], 1.5))
    uses = path_uses(path)
    name = numbers.choice(sorted(uses))

    def call() -> None:
        # What one input writes must not be there for the next.
        with tempfile.TemporaryDirectory(dir=".") as folder, contextlib.chdir(folder):
            uses[name]()

    return call


def path_uses(path: Any) -> dict[str, Callable[[], object]]:
    """Everything that takes a path."""
    from pondertree import cli
    from pondertree.learn import default_config, read_config, train
    from pondertree.learn.data.run_folder import stored_config
    from pondertree.networks.loading import export_onnx
    from pondertree.tune import self_play, tune, tune_search

    def command(*arguments: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            status = cli.main(arguments)
        if status not in (0, 2) or "Traceback" in told.getvalue():
            raise AssertionError(f"{arguments} ended with {status}: {told.getvalue()[-300:]}")

    def nothing(*_: object) -> Any:
        raise InvalidArgumentError("far enough")

    text = path if isinstance(path, str) else "x"
    short = ("--game", "connect4", "--games", "2", "--concurrency", "1")
    config = default_config("tic-tac-toe", steps=1, device="cpu")
    return {
        "load": lambda: pondertree.load(path),
        "Pesto.from_file": lambda: Pesto.from_file(path),
        "Pesto.to_file": lambda: Pesto().to_file(path),
        "MoveScores.from_file": lambda: MoveScores.from_file(path),
        "MoveScores.to_file": lambda: MoveScores().to_file(path),
        "load_model": lambda: ChessNN().load_model(path),
        "read_positions": lambda: read_positions(path),
        "Positions.load": lambda: Positions.load(path),
        "read_record": lambda: read_record(path),
        "openings": lambda: make_openings(path, ConnectFour, "connect_four", 0, None),
        "play_match": lambda: play_match("random", "first", "tic-tac-toe", num_games=2, out=path, concurrency=1),
        "resume": lambda: play_match("random", "first", "tic-tac-toe", num_games=2, out=path, resume=True),
        "pgn": lambda: play_match("random", "first", "tic-tac-toe", num_games=2, pgn=path, concurrency=1),
        "self_play": lambda: self_play(2, simulations=2, record=path, resume=True, progress=nothing, concurrency=1),
        "tune": lambda: tune(Positions(np.zeros(0, "S1"), np.zeros(0), np.zeros(0, np.int64)), out=path),
        "tune_search": lambda: tune_search(out=path, compare=nothing),
        "read_config": lambda: read_config(path, config),
        "train": lambda: train(config.with_values(out=path, game="tic-tac-toe"), factory=nothing, resume=True),
        "export": lambda: export_onnx(path, "x.onnx"),
        "export to": lambda: export_onnx("missing", path),
        "stored_config": lambda: stored_config(Path(text.replace("\0", "").replace("\ud800", "")[:200] or ".")),
        "Onnx": lambda: pondertree.evaluators.Onnx(path),
        "train --out": lambda: command("train", "tic-tac-toe", "--out", text, "--resume", "--print-config"),
        "train --config": lambda: command("train", "tic-tac-toe", "--out", "x", "--config", text),
        "search --player": lambda: command("search", "tic-tac-toe", "--simulations", "2", "--player", text),
        "match --openings": lambda: command("match", "random", "first", *short, "--openings", text),
        "tune FILE": lambda: command("tune", "--out", "tuned", text),
        "tune --out": lambda: command("tune", "--out", text, "missing.pgn"),
        "export --onnx": lambda: command("export", "missing", "--onnx", text),
        "player": lambda: command("match", f"alphazero:evaluator=player:{text},num_simulations=2", "first", *short),
    }


KINDS: dict[str, Make] = {
    "player": make_player,
    "checkpoint": make_checkpoint,
    "shard": make_shard,
    "record": make_record,
    "spsa": make_spsa,
    "config": make_config,
    "weights": make_weights,
    "positions": make_positions,
    "pgn": make_pgn,
    "openings": make_opening,
    "path": make_path,
}

if __name__ == "__main__":
    raise SystemExit(main(KINDS, __doc__))
