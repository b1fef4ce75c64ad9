"""Reanalyse: fresh policy and value targets by searching old positions with the current weights.

See Schrittwieser et al. 2021. Targets are computed when a batch is sampled and never stored, so that a resumed run
needs the weights alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pondertree.gpu.buffer import unpacked
from pondertree.learn.config import Config, GameSpec
from pondertree.learn.data import TrajectoryBuffer, UnrolledBatch
from pondertree.models.torch_model import TorchModel
from pondertree.networks import player_of, update_player
from pondertree.presets import Gumbel
from pondertree.random import fold

#: Offset of the random seed of its searches.
SEED = 4_000_000


class Reanalysis:
    """Refreshes the targets of a batch, or of a fraction of it."""

    def __init__(self, spec: GameSpec, config: Config, network: Any) -> None:
        self._share = config.muzero.reanalyse
        self._fresh_values = config.muzero.fresh_values and spec.info.has_rewards
        self._shape = spec.shape
        self._num_actions = spec.info.num_actions
        self._discount = config.muzero.discount
        self._key = fold(SEED, config.seed)
        self._network = network
        self._player: Any = None
        self._model: Any = None
        self._search: Any = None
        self._search_options: dict[str, Any] = {
            "num_simulations": config.muzero.reanalyse_simulations,
            "max_num_considered_actions": config.self_play.considered_actions,
            "discount": config.muzero.discount,
            "num_players": spec.info.num_players,
            "seed": config.seed,
            "threads": config.self_play.threads,
        }

    def refresh_targets(
        self, batch: UnrolledBatch, replay: TrajectoryBuffer, weights: dict[str, torch.Tensor], step: int
    ) -> None:
        """Recomputes targets with these weights: bootstrap values of all rows, or all targets of the first rows.

        Rows are sampled independently, so the first ones are a random subset.
        """
        self._update_player(weights)
        every = batch.actions[:, :, 0] < self._num_actions
        if self._fresh_values:
            rows = (batch.places[:, None] + np.arange(every.shape[1]))[every]
            batch.values[every] = replay.mixed(self._returns(replay, rows), replay.root_values(rows))
        count = min(round(self._share * len(batch.places)), len(batch.places))
        if count == 0:
            return
        inside = every[:count]
        rows = (batch.places[:count, None] + np.arange(every.shape[1]))[inside]
        listed = batch.actions[:count][inside]
        legal = [one[one < self._num_actions] for one in listed]
        seeds = [fold(fold(self._key, step), number) for number in range(len(rows))]
        forest = self._search.forest(
            observation=list(self._seen(replay, rows)), legal_actions=legal, to_play=[0] * len(rows), seeds=seeds
        )
        forest.simulate(self._search_options["num_simulations"])
        fresh = np.zeros((len(rows), batch.actions.shape[2]), dtype=np.float32)
        for row, (policy, one) in enumerate(zip(forest.policies(), legal, strict=True)):
            fresh[row, : len(one)] = policy[one] / policy[one].sum()
        found = np.asarray(forest.values(), dtype=np.float32)
        batch.policy[:count][inside] = fresh
        batch.searched[:count][inside] = 1.0
        batch.values[:count][inside] = replay.mixed(self._returns(replay, rows), found)

    def _returns(self, replay: TrajectoryBuffer, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the returns of positions, bootstrapped from the values of the current weights."""
        returns = replay.returns(rows)
        later = np.zeros(len(rows), dtype=np.float32)
        some = returns.bootstrap_offset >= 0
        if some.any():
            # Many positions bootstrap from the same few.
            places, where = np.unique((rows + returns.bootstrap_offset)[some], return_inverse=True)
            later[some] = self._values(self._seen(replay, places))[where]
        return returns.values_with(later, self._discount)

    def _update_player(self, weights: dict[str, torch.Tensor]) -> None:
        if self._player is None:
            self._player = player_of(self._network)
            self._model = TorchModel(self._player)
            self._search = Gumbel(model=self._model, **self._search_options)
        update_player(self._player, weights)
        if self._model.device.type == "cuda":
            # Searches run on other streams, which do not wait for this one.
            torch.cuda.current_stream(self._model.device).synchronize()

    def _seen(self, replay: TrajectoryBuffer, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        seen = replay.observations_at(rows)
        planes, numbers = torch.from_numpy(seen.planes.view(np.int64)), torch.from_numpy(seen.numbers)
        found: NDArray[np.float32] = unpacked(planes, numbers, self._shape).numpy()
        return found

    def _values(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        values: NDArray[np.float32] = np.asarray(self._model.initial_inference(observations)[2], dtype=np.float32)
        return values
