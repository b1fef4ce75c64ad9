"""How good a model is: the errors of its rewards, values and policies by how many steps it imagined."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pondertree.learn.model_learner import policy_losses
from pondertree.learn.trajectories import Trajectories
from pondertree.learn.unpack import unpacked

#: Positions that are looked at, spread over the newest share of those in memory.
POSITIONS = 512
NEWEST = 0.1


def errors_by_depth(player: Any, replay: Trajectories) -> dict[str, list[float | None]]:
    """Means over recent positions and the moves that were played from there, by depth from 0, the position itself.

    `value` and `reward` are absolute errors, `policy` is how far the policy is from the search's (Kullback-Leibler),
    `legal` is the share of the policy that lies on legal moves. A reward comes with a step, so it begins at depth 1.
    Behind the end of a game there is nothing to be wrong about; None where no game went on so long.
    """
    length = len(replay)
    if not length:
        return {}
    first = int((1.0 - NEWEST) * length)
    chosen = np.unique(np.linspace(first, length - 1, POSITIONS).astype(np.int64))
    batch = replay.take(chosen, np.random.default_rng(0))
    device = next(player.parameters()).device

    def send(array: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    searched, actions, policy = (send(array) for array in (batch.searched, batch.actions, batch.policy))
    values, rewards, moves = send(batch.values), send(batch.rewards), send(batch.moves)
    inside = (actions[:, :, 0] < player.architecture.num_actions).float()
    found: dict[str, list[float | None]] = {"value": [], "reward": [], "policy": [], "legal": []}
    with torch.inference_mode():
        hidden = player.represent(
            unpacked(send(batch.seen.planes.view(np.int64)), send(batch.seen.numbers), player.architecture.shape)
        )
        for depth in range(actions.shape[1]):
            if depth:
                hidden = player.step(hidden, moves[:, depth - 1])
                off = (player.categories.to_numbers(player.reward(hidden)) - rewards[:, depth - 1]).abs()
                # The last move of a game brings its reward, although the position after it is behind the end.
                found["reward"].append(_mean(off, inside[:, depth - 1]))
            logits, value = player.heads(hidden)
            off = (player.categories.to_numbers(value) - values[:, depth]).abs()
            found["value"].append(_mean(off, inside[:, depth]))
            goal = policy[:, depth]
            entropy = torch.special.entr(goal).sum(dim=1)
            gap = policy_losses(logits, actions[:, depth], goal) - entropy
            found["policy"].append(_mean(gap, searched[:, depth]))
            shares = torch.nn.functional.pad(torch.softmax(logits.float(), dim=1), (0, 1))
            found["legal"].append(_mean(shares.gather(1, actions[:, depth]).sum(dim=1), inside[:, depth]))
    return found


def _mean(numbers: torch.Tensor, counts: torch.Tensor) -> float | None:
    total = float(counts.sum())
    return round(float((numbers * counts).sum()) / total, 5) if total else None
