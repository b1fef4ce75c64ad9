"""`pondertree train`: trains a player by self-play."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pondertree import games
from pondertree.cli.arguments import Commands, add_parser, count, minutes, resume_command, seed, shell_line
from pondertree.cli.searcher import EXIT_INTERRUPTED
from pondertree.errors import InvalidArgumentError
from pondertree.files import check_path
from pondertree.game import describe
from pondertree.learn.config import ALGORITHMS

if TYPE_CHECKING:
    from pondertree.learn import Config, Executor, TrainingResult

SUMMARY = "Train a player by self-play, from the rules of a game alone."
EXAMPLES = """\
  pondertree train connect4 --out runs/connect4 --minutes 30
  pondertree train connect4 --out runs/connect4 --minutes 60 --resume
  pondertree train chess --out runs/chess --minutes 10 --device cuda
  pondertree train examples.games.nim:Nim --out runs/nim --steps 500
  pondertree train gym:CartPole-v1 --out runs/cartpole --minutes 15
  pondertree train connect4 --out runs/connect4 --minutes 30 --actors 4
  pondertree train connect4 --out runs/connect4 --minutes 30 --ray auto --actors 16
  pondertree train othello --print-config > othello.toml
  pondertree train othello --out runs/othello --config othello.toml --games 20k

GAME is a compiled game, module:Class of a Python game with observations, or gym:NAME, a Gymnasium environment with
discrete actions, which is learned by MuZero. Ctrl-C saves and stops; a stopped or killed training run is resumed with
--resume. The folder of --out holds checkpoints, all games, metrics.jsonl, config.toml, and at the end report.html; the
last line printed is the command to play against the result. pondertree.load(DIR) loads the player for any search, as
does evaluator=player:DIR in a match."""


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree train`."""
    parser = add_parser(commands, "train", SUMMARY, EXAMPLES, run)
    parser.add_argument("game", metavar="GAME", help=f"the game: {games.KNOWN}, module:Class, or gym:NAME")
    parser.add_argument("--out", metavar="DIR", help="the output folder")
    parser.add_argument(
        "--algorithm",
        choices=sorted(ALGORITHMS),
        help="the search of self-play; muzero also learns a model of the game (default: gumbel)",
    )
    parser.add_argument("--minutes", metavar="M", type=minutes, help="stop after M minutes")
    parser.add_argument("--games", metavar="N", type=count, help="stop after N games")
    parser.add_argument("--steps", metavar="N", type=count, help="stop after N optimiser steps")
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda, or auto: a GPU if available (default)")
    parser.add_argument("--config", metavar="FILE", help="a TOML file with settings (see --print-config)")
    parser.add_argument("--seed", metavar="N", type=seed, help="random seed (default: 0)")
    parser.add_argument("--resume", action="store_true", help="resume the training run in the folder of --out")
    actors = parser.add_argument_group("self-play in other processes (docs/cluster.md)")
    actors.add_argument("--actors", metavar="N", type=count, help="number of self-play actors, each a process")
    actors.add_argument(
        "--executor",
        choices=("in-process", "processes", "ray"),
        help="where self-play runs (default: in-process; ray with --ray, processes with another --actor option)",
    )
    actors.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="on a Ray cluster: local starts one, auto joins that of this machine, HOST:PORT",
    )
    actors.add_argument("--actor-cpus", metavar="N", type=float, help="CPUs of an actor: its threads (default: 1)")
    actors.add_argument(
        "--actor-gpus",
        metavar="SHARE",
        type=float,
        help="share of a GPU for each actor, such as 0.25; 0: actors on CPUs (default: as the learner)",
    )
    actors.add_argument(
        "--actor-timeout",
        metavar="SECONDS",
        type=float,
        help="least seconds of silence after which an actor is replaced (default: 120)",
    )
    actors.add_argument(
        "--exclude-driver-node", action="store_true", help="keep actors off the node of the learner (Ray)"
    )
    parser.add_argument("--tensorboard", action="store_true", help="also write metrics for TensorBoard")
    parser.add_argument("--print-config", action="store_true", help="print the configuration as TOML and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end, without progress output")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit status."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        # At the start, while saving or in the report: the stored files are consistent and can be resumed.
        if not arguments.out:
            raise
        print(f"interrupted; to go on: {shell_line(resume_command(arguments.typed))}", file=sys.stderr)
        return EXIT_INTERRUPTED


def _run(arguments: argparse.Namespace) -> int:
    # Spinning OpenMP threads of PyTorch would compete with the search threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Modules are also found in the working directory, as with `python -m`.
    sys.path.insert(0, os.getcwd())
    config = make_config(arguments)
    if arguments.print_config:
        from pondertree.learn import text_of_config

        print(text_of_config(config), end="")
        return 0
    if not arguments.out:
        raise InvalidArgumentError("--out is missing: the output folder")
    from pondertree.learn.report import write_report

    resume = resume_command(arguments.typed)
    result = _trained(config, arguments)
    if not result.finished:
        print(f"interrupted and saved; to go on: {shell_line(resume)}", file=sys.stderr, flush=True)
    factory = None if config.game.startswith("gym:") else games.find(config.game)
    report, complaint = write_report(result.out, factory)
    if complaint:
        print(complaint, file=sys.stderr)
    play, python = next_step(config, str(result.out), factory)
    if arguments.json:
        summary = {"out": str(result.out), "finished": result.finished, "steps": result.steps, "games": result.games}
        then = {"report": str(report), "play": play, "python": python, "resume": None if result.finished else resume}
        json.dump({**summary, "elapsed": result.elapsed, "evaluations": result.evaluations, **then}, sys.stdout)
        print()
    else:
        print(f"{result.games:,} games, {result.positions:,} positions, {result.steps:,} steps in {result.out}")
        if result.finished and not result.games:
            print("no game was finished before the limit, so nothing was learned: give more --minutes and --resume")
        print(f"report: {report}")
        label = "watch it play" if play is not None and "--side" in play else "play against it"
        print(f"in Python: {python}" if play is None else f"{label}: {shell_line(play)}")
    return 0 if result.finished else EXIT_INTERRUPTED


def _trained(config: Config, arguments: argparse.Namespace) -> TrainingResult:
    from pondertree.learn import train

    # SIGTERM saves and stops, like Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return train(
            config,
            resume=arguments.resume,
            watcher=watcher(arguments),
            tensorboard=arguments.tensorboard,
            executor=make_executor(arguments),
        )
    finally:
        signal.signal(signal.SIGTERM, before)


def make_executor(arguments: argparse.Namespace) -> Executor | None:
    """Returns the executor that the arguments describe; None for self-play in this process."""
    from pondertree.learn import ProcessExecutor, RayExecutor

    names = {"actors": "actors", "cpus": "actor_cpus", "gpus": "actor_gpus", "timeout": "actor_timeout"}
    given = {name: getattr(arguments, typed) for name, typed in names.items() if getattr(arguments, typed) is not None}
    kind = arguments.executor or ("ray" if arguments.ray is not None else "processes" if given else "in-process")
    if arguments.ray is not None and kind != "ray":
        raise InvalidArgumentError(f"--ray: the executor is {kind}, not ray")
    if arguments.exclude_driver_node and kind != "ray":
        raise InvalidArgumentError("--exclude-driver-node needs --ray: other executors have only this machine")
    if kind == "in-process":
        if given:
            raise InvalidArgumentError("--actors and --actor-... need --executor processes or ray")
        return None
    if kind == "processes":
        return ProcessExecutor(**given)
    address = "local" if arguments.ray is None else arguments.ray
    return RayExecutor(address=address, exclude_driver_node=arguments.exclude_driver_node, **given)


def next_step(config: Config, out: str, factory: Any) -> tuple[list[str] | None, str]:
    """Returns (the command to play against the trained player, a Python expression for its moves).

    Single-player games are watched instead. `factory` creates initial states; it is None for environments, which
    have no command.
    """
    loaded = f"pondertree.load({out!r})"
    if factory is None:
        return None, f"pondertree.MuZero({loaded}, num_simulations=50).run(observation=observation).action"
    search = "MuZero" if config.learns_model else "AlphaZero"
    python = f"pondertree.{search}({loaded}, num_simulations=400).run(state).action"
    # Joined by =, a folder that begins with a hyphen is not parsed as an option.
    player = [f"--player={out}"] if out.startswith("-") else ["--player", out]
    watched = ["--side", "none"] if describe(factory()).num_players == 1 else []
    return ["pondertree", "play", config.game, *player, *watched], python


def make_config(arguments: argparse.Namespace) -> Config:
    """Merges the defaults of the game (or the resumed configuration), the file, and the arguments, in this order."""
    from pondertree.learn import Config
    from pondertree.learn.config import config_file, game_spec, usual_algorithm, with_defaults
    from pondertree.learn.data import stored_config

    given_file = None if arguments.config is None else config_file(Path(arguments.config))
    if given_file is not None:
        configured = given_file(Config(game=arguments.game)).game
        if (games.known(configured) or configured) != (games.known(arguments.game) or arguments.game):
            raise InvalidArgumentError(f"config {arguments.config!r} is for {configured}, not for {arguments.game}")
    stored = (
        stored_config(check_path(arguments.out, "--out", "checkpoints")) if arguments.resume and arguments.out else None
    )
    stored_file = None if stored is None else config_file(stored)
    base = Config(game=arguments.game, algorithm=arguments.algorithm or usual_algorithm(arguments.game))
    for file in (stored_file, given_file):
        if file is not None and arguments.algorithm is None:
            base = base.with_values(algorithm=file(base).algorithm)
    spec = game_spec(arguments.game, model=base.learns_model)
    config = with_defaults(base, spec, on_gpu(arguments.device)) if stored_file is None else stored_file(base)
    config = config if given_file is None else given_file(config)
    given: dict[str, Any] = {
        name: getattr(arguments, name) for name in ("out", "algorithm", "minutes", "games", "steps", "device", "seed")
    }
    return config.with_values(**{name: value for name, value in given.items() if value is not None}, game=spec.name)


def on_gpu(device: str | None) -> bool:
    """Whether training on `device` uses a GPU."""
    if device is not None and device != "auto":
        return device.startswith("cuda")
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def watcher(arguments: argparse.Namespace) -> Any:
    """Returns a panel on a terminal, else occasional lines; nothing with --json."""
    from pondertree.learn.report import LineWatcher, PanelWatcher, Watcher

    if arguments.json:
        return Watcher()
    try:
        from rich.console import Console
    except ImportError:
        return LineWatcher()
    console = Console(stderr=True)
    return PanelWatcher(f"learning {arguments.game}", console) if console.is_terminal else LineWatcher()
