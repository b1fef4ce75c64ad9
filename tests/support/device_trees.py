"""Device-resident trees for tests: networks of exact values, and the kernel compiled for the CPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch
from tests.support.kernels import compile_for_cpu

import pondertree
from pondertree.games import ConnectFour
from pondertree.gpu import device_trees
from pondertree.gpu.device_trees import DeviceTrees
from pondertree.gpu.kernels.launch import SOURCE, options_of
from pondertree.gpu.tree_layout import TreeArrays
from pondertree.gpu.tree_shape import MAX_ACTIONS, TreeShape

TREES = 5


class HashModel(torch.nn.Module):  # type: ignore[misc]
    """A model of hash functions, with few different values so that many scores are equal."""

    def __init__(
        self,
        actions: int,
        *,
        discounts: bool = False,
        ruled_out: bool = False,
        even: bool = False,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.actions, self.discounts, self.ruled_out, self.even = actions, discounts, ruled_out, even
        self.dtype = getattr(torch, dtype)

    def draw(self, hidden: Any, salt: int, count: int) -> Any:
        """Integers from 0 to 8, [rows, count]."""
        mixed = (hidden[:, None] * 48271 + torch.arange(count, device=hidden.device) * 40692 + salt * 9973) % 2147483647
        return (mixed * 16807 % 2147483647) // 127 % 9

    def see(self, hidden: Any) -> tuple[Any, Any]:
        """Logits and values."""
        logits = self.draw(hidden, 1, self.actions).float() * (0.0 if self.even else 0.5)
        if self.ruled_out:
            keep = self.draw(hidden, 2, self.actions) > 3
            keep[:, 0] = True
            logits = logits.masked_fill(~keep, -torch.inf)
        return logits.to(self.dtype), (self.draw(hidden, 3, 1).to(self.dtype) - 4.0) / 4.0

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden = observations.reshape(len(observations), -1)[:, 0].long() + 7
        return (hidden, *self.see(hidden))

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        after = (hidden * 31 + actions + 1) % 1000003
        reward = (self.draw(after, 4, 1)[:, 0].float() - 4.0) / 8.0
        discount = torch.where(self.draw(after, 5, 1)[:, 0] > 3, -0.75, 0.5)
        return (after, reward, *self.see(after), *([discount] if self.discounts else []))


class BoardNet(torch.nn.Module):  # type: ignore[misc]
    """A hash of a Connect 4 position, with few different values so that many scores are equal."""

    def __init__(self, invalid: str = "", batch_sizes: list[int] | None = None) -> None:
        super().__init__()
        self.invalid, self.batch_sizes = invalid, batch_sizes
        self.weights = torch.nn.Parameter((torch.arange(3 * 42).reshape(3, 6, 7) * 48271 % 97).float())

    def forward(self, positions: Any) -> tuple[Any, Any]:
        if self.batch_sizes is not None:
            self.batch_sizes.append(len(positions))
        sums = (positions.float() * self.weights.float()).sum(dim=(1, 2, 3)).long()
        logits = ((sums[:, None] * 31 + torch.arange(7, device=sums.device) * 17) % 5).float() * 0.5
        values = ((sums * 7) % 9 - 4).float() / 4.0
        if self.invalid:
            wrong = sums % 3 != 1
            values = torch.where(wrong, 7.0, values) if self.invalid == "value" else values
            logits = torch.where(wrong[:, None], torch.nan, logits) if self.invalid == "logits" else logits
        return logits.to(self.weights.dtype), values.to(self.weights.dtype)


def positions(count: int) -> list[Any]:
    """Positions of Connect 4, some of them one move from the end."""
    numbers, results = np.random.default_rng(5), []
    while len(results) < count:
        state = ConnectFour()
        for _ in range(int(numbers.integers(0, 36))):
            after = state.play(int(numbers.choice(state.legal_actions())))
            if after.is_terminal:
                break
            state = after
        results.append(state)
    return results


def grow_on_cpu(monkeypatch: pytest.MonkeyPatch) -> list[DeviceTrees]:
    """Runs device-resident search on the CPU, the kernel compiled as C; returns the groups of trees made."""
    groups: list[DeviceTrees] = []
    made = DeviceTrees.__init__

    def note(trees: DeviceTrees, *arguments: Any, **options: Any) -> None:
        made(trees, *arguments, **options)
        groups.append(trees)

    def compile_step(device: Any, shape: TreeShape) -> Any:
        library = compile_for_cpu(SOURCE, options_of(shape, 1))

        def launch(struct: TreeArrays, wants_request: bool) -> None:
            library.step(ctypes.byref(struct), ctypes.c_int(int(wants_request)))

        return launch

    monkeypatch.setattr(DeviceTrees, "__init__", note)
    monkeypatch.setattr(device_trees, "compile_step", compile_step)
    monkeypatch.setattr(TreeShape, "runs_on", lambda shape, device: shape.actions <= MAX_ACTIONS)
    return groups


def forest_of(search: Any, actions: int, *, two_players: bool, restricted: bool) -> Any:
    """A forest of observations; if `restricted`, with some legal actions alone."""
    observations = [np.array([row], dtype=np.float32) for row in range(TREES)]
    options: dict[str, Any] = {}
    if restricted:
        options["legal_actions"] = [
            [action for action in range(actions) if (action * 7 + row) % 3 or action == row % actions]
            for row in range(TREES)
        ]
    if two_players:
        options["to_play"] = [row % 2 for row in range(TREES)]
    return search.forest(observation=observations, **options)


def node_data(node: Any) -> Any:
    """A subtree as nested tuples."""
    own = (node.visit_count, node.total_value, node.prior, node.clean_prior, node.to_play)
    if node.visit_count == 0:
        return own
    observations = (node.raw_value, node.reward)
    return (*own, *observations, [(action, node_data(child)) for action, child in node.children.items()])


def forest_data(forest: Any) -> list[Any]:
    """Everything that a forest shows: first what needs the roots alone."""
    shown = [forest.actions().tolist(), forest.visits().tolist(), forest.values().tolist(), forest.policies().tolist()]
    return [*shown, [node_data(result.root) for result in forest.results()]]


SEARCHES: dict[str, Any] = {
    "node": (pondertree.MuZero, {}),
    "tree": (pondertree.MuZero, {"normalize": "tree"}),
    "as they are": (pondertree.MuZero, {"normalize": None}),
    "gumbel": (pondertree.Gumbel, {}),
    "own value": (pondertree.Gumbel, {"use_mixed_value": False, "rescale_values": False, "value_scale": 1.0}),
    "few": (pondertree.Gumbel, {"max_num_considered_actions": 3}),
}
MODELS: dict[str, dict[str, Any]] = {
    "dice": {},
    "discounts": {"discounts": True},
    "ruled out": {"ruled_out": True},
    "even": {"even": True},
    "bfloat16": {"dtype": "bfloat16", "discounts": True},
    "float16": {"dtype": "float16"},
}


GAMES: dict[str, Any] = {
    "puct": (pondertree.AlphaZero, {}),
    "parent": (pondertree.AlphaZero, {"fpu": ("parent", 0.2), "parent_visits": "edges"}),
    "gumbel": (pondertree.Gumbel, {}),
    "few": (pondertree.Gumbel, {"max_num_considered_actions": 2, "rescale_values": False, "value_scale": 1.0}),
}
