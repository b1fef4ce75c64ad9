"""The worker process of `gpu_compare.py`: runs cases of `gpu_cases.py` with one version of the package.

Only public names are used, so that the same script runs with other versions of the package.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_agreement import DEVICE, LatentTable, openings
from gpu_cases import GAMES, GameCase, LatentCase, cases
from gpu_networks import LatentModel, Residual, Table
from worker import serve

import pondertree
from pondertree.evaluators import Torch
from pondertree.models import TorchModel

DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32
#: Runs before measurements, in which libraries select kernels and graphs are captured.
WARM_UPS = 4
#: One search, from the roots to the visits of every tree.
Work = Callable[[], Any]


def _game_work(case: GameCase) -> Work:
    game = GAMES[case.game]
    torch.manual_seed(0)
    network = Residual(game.planes, game.board, game.channels, game.blocks, game.actions).to(DEVICE, DTYPE).eval()
    preset = pondertree.AlphaZero if case.search == "puct" else pondertree.Gumbel
    noise = True if case.search == "puct" else None
    search = preset(Torch(network, DEVICE, batch_size=case.batch), case.simulations, seed=1, solve=case.solve)
    states = openings(case.game, 2 * case.batch)

    def work() -> Any:
        forest = search.forest(states, seeds=1).simulate(add_noise=noise)
        if case.plays_on:
            for row, action in enumerate(forest.actions().tolist()):
                if forest.state(row).play(action).is_terminal:
                    forest.reset(row, states[row])
                else:
                    forest.advance(row, action)
            forest.simulate(add_noise=noise)
        return forest.visits()

    return work


def _latent_work(case: LatentCase) -> Work:
    torch.manual_seed(0)
    model = TorchModel(LatentModel(case.width, case.actions).to(DEVICE, DTYPE), DEVICE)
    preset = pondertree.MuZero if case.search == "puct" else pondertree.Gumbel
    noise = True if case.search == "puct" else None
    search = preset(model=model, num_simulations=case.simulations, discount=0.997, num_players=1, seed=1)
    seen = np.random.default_rng(0).normal(size=(case.batch, case.width)).astype(np.float32)
    return lambda: search.forest(observation=seen, seeds=1).simulate(add_noise=noise).visits()


_works: dict[str, Work] = {}


def prepare(name: str, *, small: bool) -> dict[str, Any]:
    """Creates the network of a case and warms up."""
    case = cases([name], small=small)[name]
    _works[name] = _game_work(case) if isinstance(case, GameCase) else _latent_work(case)
    for _ in range(1 if small else WARM_UPS):
        _works[name]()
    return {}


def measure(name: str, *, rounds: int) -> dict[str, Any]:
    """Returns the median seconds of a case's search and a hash of the visits per tree."""
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        visits = _works[name]()
        seconds.append(time.perf_counter() - begun)
    return {"seconds": statistics.median(seconds), "trees": _hashes(visits)}


def _hashes(visits: Any) -> list[str]:
    return [hashlib.blake2b(row.tobytes(), digest_size=4).hexdigest() for row in np.asarray(visits, dtype=np.int64)]


def results(*, small: bool) -> dict[str, list[str]]:
    """Returns hashes of the visits per tree, with exact networks: equal on every device."""
    trees, sims = (4, 4) if small else (500, 60)
    found = {}
    for game, settings in GAMES.items():
        module = Table(settings.planes * settings.board[0] * settings.board[1], settings.actions)
        for preset in (pondertree.AlphaZero, pondertree.Gumbel):
            for solve in (False, True):
                search = preset(Torch(module, DEVICE), num_simulations=sims, seed=1, solve=solve)
                forest = search.forest(openings(game, trees, seed=1)).simulate()
                found[f"{preset.__name__} {game}, solve={solve}"] = _hashes(forest.visits())
    seen = np.arange(trees, dtype=np.float32)[:, None]
    for actions in (18, 4672):
        for latent in (pondertree.MuZero, pondertree.Gumbel):
            search = latent(model=TorchModel(LatentTable(actions), DEVICE), num_simulations=sims, num_players=1, seed=1)
            found[f"{latent.__name__} {actions} actions"] = _hashes(search.forest(observation=seen).simulate().visits())
    return found


def environment() -> dict[str, str]:
    """Returns the measured version and the device."""
    device = torch.cuda.get_device_name(0) if DEVICE == "cuda" else "no GPU"
    return {"package": str(Path(pondertree.__file__).parent), "torch": torch.__version__, "device": device}


if __name__ == "__main__":
    serve(
        rates={},
        handlers={"prepare": prepare, "measure": measure, "results": results, "environment": environment},
    )
