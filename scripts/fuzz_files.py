"""Fuzzes all file readers: no file and no path may crash, hang or raise an untyped exception.

    python scripts/fuzz_files.py --inputs 2000
    python scripts/fuzz_files.py --kind player --seed 3 --first 17 --inputs 1

Each input is a valid file after random damage (bit flips, truncation, splicing, deeply nested or very long text) or
structured mutation: fields of its JSON, TOML, metadata or arrays are replaced by hostile values, and checksums are
recomputed. Errors about a file must name it. A file that is accepted is also used: a player searches, a training
resumes from a checkpoint. All kinds require `pondertree[train]`.
"""

from __future__ import annotations

import contextlib
import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_match_files import (
    make_opening,
    make_pgn,
    make_positions,
    make_record,
    make_spsa,
    make_weights,
)
from fuzz_training_files import (
    make_checkpoint,
    make_config,
    make_player,
    make_shard,
)
from fuzz_tree_files import make_tree
from fuzzing import Make, main

import pondertree
from pondertree.chess import ChessNN, MoveScores, Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.games import ConnectFour
from pondertree.match.openings import make_openings
from pondertree.match.record import read_record
from pondertree.match.runner import play_match
from pondertree.tune import Positions, read_positions

# --- paths ------------------------------------------------------------------------------------------------------------


def make_path(numbers: random.Random) -> Callable[[], object]:
    """Passes a hostile path to a function or command that takes one."""
    long = numbers.choice((250, 255, 256, 4000, 4096, 5000))
    odd = ("", ".", "/", "..", "\0", "a\0b", "\ud800", "~", "no/no")
    stem = numbers.choice((*odd, "x" * long, "/".join("x" * (long // 2))))
    path: Any = stem + numbers.choice(("", ".npz", ".pgn", ".jsonl", ".keras", ".safetensors", ".onnx", ".toml", "/"))
    if numbers.random() < 0.05:
        path = numbers.choice((b"x", 3, None, [], 1.5))
    uses = path_uses(path)
    name = numbers.choice(sorted(uses))

    def call() -> None:
        # Inputs must not see files of earlier ones.
        with tempfile.TemporaryDirectory(dir=".") as folder, contextlib.chdir(folder):
            uses[name]()

    return call


def path_uses(path: Any) -> dict[str, Callable[[], object]]:
    """Returns a call of every function and command that takes a path."""
    from pondertree import cli
    from pondertree.learn import default_config, read_config, train
    from pondertree.learn.data.run_folder import stored_config
    from pondertree.networks.loading import export_onnx
    from pondertree.tune import self_play, tune, tune_search

    def command(*arguments: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as stderr:
            status = cli.main(arguments)
        if status not in (0, 2) or "Traceback" in stderr.getvalue():
            raise AssertionError(f"{arguments} ended with {status}: {stderr.getvalue()[-300:]}")

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
        "load_tree": lambda: pondertree.load_tree(path),
        "Tree.save": lambda: pondertree.UCT(2, seed=1).tree(ConnectFour()).save(path),
        "SearchResult.save": lambda: pondertree.UCT(2, seed=1).run(ConnectFour()).save(path),
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
    "tree": make_tree,
    "path": make_path,
}

if __name__ == "__main__":
    raise SystemExit(main(KINDS, __doc__))
