"""Fuzzes the files of trainings for `fuzz_files.py`: players, checkpoints, shards and configurations."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import math
import random
import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import (
    HOSTILE,
    as_json,
    damaged,
    endless,
    forged,
    forged_arrays,
    naming,
    npz,
    write,
)

import pondertree
from pondertree import AlphaZero, MuZero
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.games import ConnectFour, TicTacToe

# --- players ----------------------------------------------------------------------------------------------------------


@functools.cache
def players() -> list[bytes]:
    """Returns small players of tic-tac-toe and Connect 4, and a learned model."""
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
        networks: list[Any] = [PolicyValueNetwork(policy_value_architecture(spec, config))]
        networks.append(ModelNetwork(model_architecture(spec, config)))
        found += [player_bytes(player_of(network), spec.metadata(5, 7)) for network in networks]
    return found


def safetensors_parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Returns (header, data) of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def safetensors_of(header: Any, data: bytes) -> bytes:
    """Returns a safetensors file."""
    text = as_json(header).encode(errors="surrogatepass")
    return len(text).to_bytes(8, "little") + text + data


def make_player(numbers: random.Random) -> Callable[[], object]:
    """Loads a player with mutated bytes, header or metadata, the latter with a valid checksum."""
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
    """Returns the checksum of a player's weights, as far as its header is readable."""
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
    """Returns (folder, configuration) of a small training."""
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
    """Resumes a training with a mutated checkpoint or other file."""
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
    """Recomputes the checksums of a checkpoint, as far as its state is readable."""
    try:
        state = json.loads((checkpoint / "state.json").read_bytes())
        state.pop("own", None)
        for name in state["sha256"]:
            state["sha256"][name] = hashlib.sha256((checkpoint / name).read_bytes()).hexdigest()
        state["own"] = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
        (checkpoint / "state.json").write_text(json.dumps(state))
    except Exception:  # already damaged
        return


# --- shards -----------------------------------------------------------------------------------------------------------


@functools.cache
def shard_columns() -> dict[str, Any]:
    """Returns the columns of some games of tic-tac-toe."""
    from pondertree.learn.data.records import to_columns
    from pondertree.learn.data.shards import list_shards, read_shard

    return to_columns([game for shard in list_shards(training()[0] / "games") for game in read_shard(shard)])


def make_shard(numbers: random.Random) -> Callable[[], object]:
    """Reads a mutated shard in .npz or Parquet."""
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
    shard = shards.ShardFile(path, 0, len(columns["number"]))

    def call() -> None:
        write(path.name, content)
        naming(path, lambda: shards.read_shard(shard, game_spec("tic-tac-toe")))

    return call


def forged_parquet(numbers: random.Random, columns: dict[str, Any]) -> bytes:
    """Returns a Parquet file with other columns, types, values and nulls."""
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


# --- configurations ---------------------------------------------------------------------------------------------------


@functools.cache
def config_text() -> str:
    """Returns the complete configuration of a training."""
    from pondertree.learn import default_config, text_of_config

    return text_of_config(default_config("connect4"))


def make_config(numbers: random.Random) -> Callable[[], object]:
    """Reads a mutated configuration in TOML."""
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
            text = "1979-05-27T07:32:00Z" if value is None else as_json(value)
            for json_word, toml_word in (("Infinity", "inf"), ("NaN", "nan"), (": ", " = "), ("null", "0x10")):
                text = text.replace(json_word, toml_word)
            lines[place] = f"{lines[place].partition('=')[0]}= {text}"
        content = "\n".join(lines).encode(errors="surrogatepass")

    def call() -> None:
        from pondertree.learn import Config, read_config, text_of_config

        path = write("config.toml", content)
        text_of_config(naming(path, lambda: read_config(path, Config())))

    return call
