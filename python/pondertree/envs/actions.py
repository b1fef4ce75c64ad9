"""Actions of Gymnasium's spaces, numbered from 0 for a search, and the masks that allow some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.optional import require

#: The engine numbers actions by 16 bits.
MAX_ACTIONS = 65_535


class Actions:
    """The actions of a space: `counts` values in each dimension, from `starts`; the last dimension varies fastest."""

    def __init__(self, counts: Sequence[int], starts: Sequence[int], shape: tuple[int, ...], dtype: Any) -> None:
        """`shape` is that of the environment's actions; () for single numbers."""
        self.count = math.prod(counts)
        self._counts = tuple(counts)
        self.first = starts[0] if not shape else 0
        """The environment's number of the first action of a Discrete space."""
        self._starts = np.asarray(starts)
        self._shape = shape
        self._dtype = dtype
        self.all = list(range(self.count))

    def decode(self, action: int) -> Any:
        """Returns the environment's action with a number."""
        if not self._shape:
            return action + self.first
        values = np.array(np.unravel_index(action, self._counts)) + self._starts
        return values.astype(self._dtype).reshape(self._shape)

    def legal(self, info: Any, source: str) -> list[int]:
        """Returns the actions that `info["action_mask"]` allows; all without a mask.

        With several dimensions, the mask has an entry for each action, or is a sequence of one mask per dimension.
        """
        mask = info.get("action_mask") if isinstance(info, dict) else None
        return self.all if mask is None else self.allowed(mask, source)

    def allowed(self, mask: Any, source: str) -> list[int]:
        """Returns the actions that a mask allows."""
        source = f"{source}: info['action_mask']"
        flags = self._flags(mask, source)
        if not np.isin(flags, (0, 1)).all():
            wrong = next(each for each in flags.tolist() if each not in (0, 1))
            raise GameContractError(f"{source} has {wrong!r}: it must be 1 for what is allowed and 0 for the rest")
        legal: list[int] = np.flatnonzero(flags).tolist()
        if not legal:
            raise GameContractError(f"{source} allows no action, but the episode is not over")
        return legal

    def _flags(self, mask: Any, source: str) -> NDArray[Any]:
        """Returns one number for each action."""
        if len(self._counts) > 1 and isinstance(mask, (list, tuple)) and len(mask) == len(self._counts):
            parts = [np.asarray(part) for part in mask]
            if [part.shape for part in parts] == [(count,) for count in self._counts]:
                flags = parts[0]
                for part in parts[1:]:
                    flags = np.multiply.outer(flags, part).reshape(-1)
                return flags
        try:
            flags = np.asarray(mask)
        except ValueError as error:
            raise GameContractError(f"{source} is no array: {error}") from None
        if flags.shape != (self.count,):
            raise GameContractError(f"{source} has shape {flags.shape}, but there are {self.count} actions")
        return flags


def read_actions(space: Any, name: str, *, only_discrete: bool = False) -> Actions:
    """Returns the numbering of the actions of a space; raises `InvalidArgumentError` for one that has none."""
    spaces = require("gymnasium", "envs", "an environment").spaces
    advice = "choose some of them in a wrapper and number those"
    listed = "Discrete" if only_discrete else "Discrete, MultiDiscrete and MultiBinary"
    if isinstance(space, spaces.Discrete):
        counts, starts, shape, dtype = [int(space.n)], [int(space.start)], (), None
    elif isinstance(space, spaces.MultiDiscrete) and not only_discrete:
        counts, starts = (array.reshape(-1).tolist() for array in (space.nvec, space.start))
        shape, dtype = tuple(space.shape), space.dtype
    elif isinstance(space, spaces.MultiBinary) and not only_discrete:
        shape, dtype = tuple(space.shape), space.dtype
        counts, starts = [2] * math.prod(shape), [0] * math.prod(shape)
    else:
        if isinstance(space, spaces.Box):
            advice += ", as gymnasium.wrappers.DiscretizeAction does"
        raise InvalidArgumentError(
            f"environment {name!r} has actions of {space}: only {listed} actions can be searched, such as those of "
            f"CartPole-v1; {advice}"
        )
    count = math.prod(counts)
    if count > MAX_ACTIONS:
        raise InvalidArgumentError(
            f"environment {name!r} has {count:,} actions: at most {MAX_ACTIONS:,} can be searched; {advice}"
        )
    return Actions(counts, starts, shape, dtype)
