"""Symmetries of games (rotations and reflections), and evaluators that exploit them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators.batch import Packed, plane_bits, take_rows
from pondertree.evaluators.dispatch import (
    Arrays,
    Rows,
    Wrapper,
    as_evaluator,
    call_observations,
    call_packed,
    has_observations,
    observation_keys,
)
from pondertree.games import by_name, registered


class Symmetry(NamedTuple):
    """A permutation of cells with the corresponding permutation of actions."""

    cells: NDArray[np.int64]
    """Cell i of the transformed board is cell `cells[i]` of the board (without a board: of the flat observation)."""
    actions: NDArray[np.int64]
    """Action a on the board is action `actions[a]` on the transformed one."""


def symmetries_of(game: Any) -> list[Symmetry]:
    """Returns the symmetries of a game (its name, class or a state), the identity first.

    They come from `symmetries()` of a state: pairs (cells, actions) as in `Symmetry`. Tic-tac-toe and Othello have 8,
    Connect 4, Breakthrough and Hex 2, chess only the identity.
    """
    if isinstance(game, str):
        game = by_name(game)
    if registered(game) is not None:
        game = game()
    if isinstance(game, type) or not hasattr(game, "symmetries"):
        raise InvalidArgumentError(f"{validation.shown(game)} is no compiled game and no state with symmetries()")
    return checked_symmetries(game.symmetries())


def checked_symmetries(given: Any) -> list[Symmetry]:
    """Validates pairs of permutations, all of the same two lengths."""
    try:
        symmetries = [Symmetry(*(np.asarray(part).astype(np.int64, casting="safe") for part in pair)) for pair in given]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"symmetries must be pairs (cells, actions) of whole numbers: {error}") from error
    if not symmetries:
        raise InvalidArgumentError("symmetries is empty: give at least the identity")
    for number, symmetry in enumerate(symmetries):
        for name, part, first in zip(Symmetry._fields, symmetry, symmetries[0], strict=True):
            if part.ndim != 1 or not np.array_equal(np.sort(part), np.arange(first.size)):
                raise InvalidArgumentError(
                    f"symmetries[{number}].{name} must hold every number from 0 to {first.size - 1} once"
                )
    return symmetries


class Symmetric(Wrapper):
    """An evaluator that transforms positions by symmetries, and the policies of another evaluator back.

    `mode="average"` evaluates all transformed positions and averages: outputs are exactly as symmetric as the game, at
    the cost of one evaluation per symmetry. Logits are averaged as logits (policies by the geometric mean),
    probabilities as probabilities. `mode="sample"` evaluates one, drawn by (`seed`, position), so that a position
    always has the same output; it costs nothing more and averages out over a tree.

    `symmetries` come from `symmetries_of(game)`, or are any such pairs. The inner evaluator takes observations.
    """

    def __init__(self, evaluator: Any, symmetries: Sequence[Any], mode: str = "average", seed: int = 0) -> None:
        evaluator = as_evaluator(evaluator)
        if not (has_observations(evaluator) or hasattr(evaluator, "evaluate_packed")):
            raise InvalidArgumentError(
                "evaluator has only evaluate_states: symmetries need an evaluator of observations"
            )
        if not validation.is_one_of(mode, ("average", "sample")):
            raise InvalidArgumentError(f'mode must be "average" or "sample", not {validation.shown(mode)}')
        self.evaluator = evaluator
        self.symmetries = checked_symmetries(symmetries)
        self.mode = mode
        self.seed = validation.whole_number(seed, "seed")
        self._cells = np.stack([symmetry.cells for symmetry in self.symmetries])
        self._actions = np.stack([symmetry.actions for symmetry in self.symmetries])

    def evaluate(self, observations: NDArray[np.float32]) -> Arrays:
        """(policy [B, num_actions] or None, values [B, ...])."""
        observations = np.asarray(observations)
        if observations[0].size % self._cells.shape[1]:
            raise EvaluationError(
                f"an observation of {observations[0].size} numbers has no boards of {self._cells.shape[1]} cells: "
                "the symmetries are those of another game"
            )
        rows, which = self._plan(lambda: observations, len(observations))
        boards = observations[rows].reshape(len(rows), -1, self._cells.shape[1])
        transformed = np.take_along_axis(boards, self._cells[which][:, None, :], axis=2)
        policy, values = call_observations(self.evaluator, transformed.reshape(len(rows), *observations.shape[1:]))
        if policy is not None:
            self._check_actions(policy.shape[1])
            policy = np.take_along_axis(policy, self._actions[which], axis=1)
        return self._averaged(policy, values)

    def evaluate_packed(self, packed: Packed) -> Arrays:
        """(policy of the legal actions [L] or None, values [B, ...])."""
        self._check_actions(packed.num_actions)
        if self._cells.shape[1] != packed.height * packed.width:
            policy, values = self.evaluate(packed.unpack())  # symmetries of whole observations
            return None if policy is None else policy[packed.rows(), packed.legal_actions], values
        rows, which = self._plan(packed.unpack, len(packed))
        part = take_rows(packed, rows)
        # Logits are returned in the order of the given legal actions, so that no inverse is needed.
        legal = self._actions[which[part.rows()], part.legal_actions].astype(np.uint16)
        planes = transformed_planes(part.planes, self._cells[which])
        return self._averaged(*call_packed(self.evaluator, replace(part, planes=planes, legal_actions=legal)))

    def _plan(self, observations: Callable[[], NDArray[Any]], count: int) -> tuple[Rows, Rows]:
        """The rows to evaluate, and the symmetry of each."""
        number = len(self.symmetries)
        if self.mode == "average":
            return np.tile(np.arange(count), number), np.repeat(np.arange(number), count)
        if number == 1:
            return np.arange(count), np.zeros(count, dtype=np.int64)
        # Keyed by the float32 observation, so that packed and unpacked forms draw the same symmetry.
        keys = observation_keys(observations().astype(np.float32, copy=False))
        salt = self.seed.to_bytes(8, "little")
        drawn = [int.from_bytes(blake2b(key, digest_size=8, key=salt).digest(), "little") % number for key in keys]
        return np.arange(count), np.array(drawn, dtype=np.int64)

    def _averaged(self, policy: NDArray[np.float32] | None, values: NDArray[Any]) -> Arrays:
        if self.mode == "sample":
            return policy, values
        number = len(self.symmetries)
        return None if policy is None else _mean(policy, number), _mean(values, number)

    def _check_actions(self, num_actions: int) -> None:
        if num_actions != self._actions.shape[1]:
            raise EvaluationError(
                f"the symmetries are those of a game with {self._actions.shape[1]} actions, but there are {num_actions}"
            )

    def __repr__(self) -> str:
        return f"Symmetric({self.evaluator!r}, {len(self.symmetries)} symmetries, mode={self.mode!r}, seed={self.seed})"


def transformed_planes(planes: NDArray[np.uint64], cells: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Transforms the words of bit planes [B, W] of each row by its `cells` [B, H * W]."""
    bits = plane_bits(planes, cells.shape[1])
    transformed = np.zeros((*bits.shape[:2], 64 * -(-cells.shape[1] // 64)), dtype=np.uint8)
    transformed[:, :, : cells.shape[1]] = np.take_along_axis(bits, cells[:, None, :], axis=2)
    words = np.packbits(transformed, axis=2, bitorder="little").view("<u8")
    return words.reshape(planes.shape).astype(np.uint64)


def _mean(stacked: NDArray[Any], number: int) -> NDArray[Any]:
    """The mean of `number` stacked outputs, summed in sorted order so that the order of symmetries changes no bit."""
    by_size = np.sort(stacked.reshape(number, -1, *stacked.shape[1:]), axis=0)
    return np.asarray(by_size.mean(axis=0))
