"""`pondertree.load`: the player that a training has made, as an evaluator for any search, or a model to plan in."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.extras import require
from pondertree.files import check_path, reading

#: Players that come with the package, by the name of their game.
SHIPPED = Path(__file__).parent.parent / "players"
#: Where the folder of a training has a player.
PLAYER_PLACE = "checkpoints/round-00000000/player.safetensors"


def load(path: str | os.PathLike[str], *, device: Any = "cpu") -> Any:
    """An evaluator: the newest player of a training's folder, of a file, or one that comes with the package.

    Of a training by MuZero it is a model, for `MuZero`, `Gumbel` and `select_action`; one of an environment takes
    observations as the environment gives them, and `about["environment"]["first_action"]` counts from there.
    `load("connect4")` is a player of Connect 4 that was trained before. A folder of that name, if there is one, comes
    first. What is loaded is numbers: nothing in a file is executed. Needs PyTorch (`pondertree[torch]`).
    """
    require("torch", "torch", "a player that was trained")
    require("safetensors", "torch", "a player that was trained")
    from pondertree.evaluators.torch_module import Torch
    from pondertree.learn.player_file import read_player
    from pondertree.learn.player_model import PlayerModel

    file = find_player(path)
    network, about = read_player(file)
    if hasattr(network, "initial_inference"):
        with reading(file, "a player", StorageError):
            return PlayerModel(network, device, about)
    evaluator: Any = Torch(network, device)
    evaluator.about = about
    return evaluator


def find_player(path: str | os.PathLike[str]) -> Path:
    """The file of the player that `load` was asked for."""
    if not str(path):
        raise InvalidArgumentError("path is empty: name the folder of a training, a file, or a player of the package")
    given = check_path(path, "path", PLAYER_PLACE)
    if given.is_file():
        return given
    if given.is_dir():
        return newest_player(given)
    shipped = {file.stem: file for file in SHIPPED.glob("*.safetensors")}
    if str(path) in shipped:
        return shipped[str(path)]
    with_us = f"; with the package come {', '.join(sorted(shipped))}" if shipped else ""
    raise InvalidArgumentError(f"{str(path)!r} is neither the folder of a training nor a file of a player{with_us}")


def newest_player(folder: Path) -> Path:
    """The player of the newest checkpoint of a training, or of a folder that is a checkpoint."""
    from pondertree.learn.checkpoint import PLAYER, is_whole, list_checkpoints
    from pondertree.learn.run_folder import read_about

    if (folder / PLAYER).is_file():
        return folder / PLAYER
    read_about(folder)
    checkpoints = list_checkpoints(folder / "checkpoints")
    if not checkpoints:
        raise InvalidArgumentError(f"{str(folder)!r} has no checkpoint yet: train a little longer")
    for place, checkpoint in reversed(list(enumerate(checkpoints))):
        if is_whole(checkpoint, PLAYER):
            return checkpoint / PLAYER
        if place:
            warnings.warn(f"{str(checkpoint / PLAYER)!r} is damaged: the one before it is taken", stacklevel=4)
    raise StorageError(f"no player in {str(folder / 'checkpoints')!r} is whole")
