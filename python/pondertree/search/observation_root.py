"""Roots of a learned model: states of a game, or bare observations with their legal actions and player to move."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from pondertree import validation
from pondertree.errors import EvaluationError, GameContractError, InvalidArgumentError
from pondertree.evaluators.batch import stack_observations
from pondertree.game import check_actions, check_player
from pondertree.models.arrays import library_of, namespace_of, number_array

#: Returns pinned memory for an array of a shape and dtype, or None.
AllocateMemory = Callable[[tuple[int, ...], Any], Any]

#: Matches error messages about shapes: "3-D tensor", "sizes do not match", "too many dimensions".
_ABOUT_SHAPES = re.compile(r"shape|size|dim|matrix|matrices|\d-?D\b")
#: The name of a single observation in messages.
SINGLE = "observation"


@dataclass(slots=True, eq=False)
class ObservationRoot:
    """A root known only by an observation, in place of a state.

    Treated as immutable. Not a frozen dataclass, which takes three times as long to create; batches create thousands.
    """

    observation: Any = None
    """One row of the batch that the model takes; None if the root is the model's prediction."""
    allowed: tuple[int, ...] | None = None
    """The legal actions; None if all are legal."""
    mask_size: int | None = None
    """Length of the mask of legal actions; None if they were given as a list."""
    to_play: int = 0
    name: str = field(default="this observation")
    """The name of the root in messages."""
    is_terminal = False

    def __reduce__(self) -> tuple[Any, ...]:
        return ObservationRoot, (self.observation, self.allowed, self.mask_size, self.to_play, self.name)

    def root_data(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the root as plain data, and the observation as a column if it is an array of numbers."""
        names = ("allowed", "mask_size", "to_play", "name")
        data = {"observation": False, **{name: getattr(self, name) for name in names}}
        try:
            return {**data, "observation": True}, {"observation": number_array(self.observation, SINGLE)}
        except EvaluationError:
            return data, {}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], columns: Mapping[str, Any]) -> ObservationRoot:
        """Returns the root of `root_data`; the observation is a NumPy array."""
        allowed, size = data["allowed"], data["mask_size"]
        return cls(
            columns["observation"] if data["observation"] else None,
            None
            if allowed is None
            else tuple(validation.whole_number(each, "allowed", most=65535) for each in allowed),
            None if size is None else validation.whole_number(size, "mask_size"),
            validation.whole_number(data["to_play"], "to_play", most=1),
            validation.text(data["name"], "name"),
        )

    def legal(self, num_actions: int) -> list[int]:
        """Returns the legal actions, checked against the number of actions; the engine refuses duplicates."""
        if self.allowed is None:
            return list(range(num_actions))
        if self.mask_size not in (None, num_actions):
            raise InvalidArgumentError(
                f"legal_actions of {self.name} is a mask of {self.mask_size}: there are {num_actions} actions"
            )
        wrong = next((action for action in self.allowed if not 0 <= action < num_actions), None)
        if wrong is not None:
            raise InvalidArgumentError(
                f"legal_actions of {self.name} has {wrong}: actions are from 0 to {num_actions - 1}"
            )
        return list(self.allowed)


class ObservationBatch(Sequence[ObservationRoot]):
    """Roots that are the rows of one array [B, ...] of observations, with all actions legal; created on access."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self._roots: dict[int, ObservationRoot] = {}

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> ObservationRoot: ...

    @overload
    def __getitem__(self, index: slice) -> list[ObservationRoot]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        if row not in self._roots:
            self._roots[row] = ObservationRoot(self.array[row], name=f"observation[{row}]")
        return self._roots[row]

    def __setitem__(self, index: int, root: ObservationRoot) -> None:
        self._roots[range(len(self))[index]] = root


def following_root(observation: Any, legal_actions: Any, to_play: Any, num_players: int) -> ObservationRoot:
    """Returns the root after an action; without an observation, the model predicts its hidden state."""
    name = "the new root"
    return ObservationRoot(observation, *_legal(legal_actions, name), _player(to_play, name, num_players), name)


def roots_of(states: Sequence[Any]) -> Sequence[ObservationRoot]:
    """Returns the roots of states; an error names the row of the state that breaks the contract."""
    if isinstance(states, ObservationBatch):
        return states
    if len(states) == 1:
        return [root_of(states[0])]
    return [
        state if type(state) is ObservationRoot else root_of(state, f"states[{row}]: ")
        for row, state in enumerate(states)
    ]


def root_of(state: Any, row: str = "") -> ObservationRoot:
    """Returns the root of a state: its observation, legal actions and player to move."""
    if isinstance(state, ObservationRoot):
        return state
    name = row + type(state).__name__
    try:
        legal = tuple(operator.index(action) for action in state.legal_actions())
        to_play, players = operator.index(state.to_play), operator.index(state.num_players)
        num_actions = operator.index(state.num_actions)
    except Exception as error:
        raise GameContractError(f"{name} raised {type(error).__name__} while reading its state: {error}") from error
    check_player(to_play, players, name)
    check_actions(legal, num_actions, name)
    if not legal:
        raise GameContractError(f"{name}.legal_actions() is empty although the game is not over")
    if len(set(legal)) < len(legal):
        raise GameContractError(f"{name}.legal_actions() has {_repeated(legal)} twice")
    return ObservationRoot(state, legal, None, to_play, name)


def observation_root(
    observation: Any, legal_actions: Any, to_play: Any, name: str, num_players: int
) -> ObservationRoot:
    """Returns a root from arguments of the API, checked as far as possible without the model."""
    if observation is None:
        raise InvalidArgumentError(f"{name} is None: give one row of the batch that initial_inference takes")
    if legal_actions is None and to_play is None:  # the usual case
        return ObservationRoot(observation, None, None, 0, name)
    return ObservationRoot(observation, *_legal(legal_actions, name), _player(to_play, name, num_players), name)


def batch_hint(roots: Sequence[ObservationRoot], message: str) -> str | None:
    """Returns a hint for a model's error about shapes: one observation was read as several, or several as one."""
    shape = tuple(getattr(roots[0].observation, "shape", ()))
    if isinstance(roots, ObservationBatch) and _ABOUT_SHAPES.search(message):
        return f"observation was read as {len(roots)} observations of shape {shape}; for one of them use tree()"
    if len(roots) > 1 or roots[0].name != SINGLE or len(shape) < 2 or not _ABOUT_SHAPES.search(message):
        return None
    return f"one observation was given, of shape {shape}; give a list for several"


def _player(to_play: Any, name: str, num_players: int) -> int:
    try:
        if isinstance(to_play, bool):
            raise TypeError
        player = 0 if to_play is None else operator.index(to_play)
    except TypeError:
        raise InvalidArgumentError(
            f"to_play of {name} is {validation.shown(to_play)}: it must be a whole number"
        ) from None
    if not 0 <= player < num_players:
        raise InvalidArgumentError(
            f"to_play of {name} is {player}: it must be from 0 to {num_players - 1} (num_players is {num_players})"
        )
    return player


def _legal(given: Any, name: str) -> tuple[tuple[int, ...] | None, int | None]:
    """Returns (legal actions, length of the mask) from a list of actions or a mask of booleans."""
    if given is None:
        return None, None
    try:
        actions = np.asarray(given)
    except ValueError:  # rows of different lengths
        actions = np.empty(())
    size = None
    if actions.dtype == bool and actions.ndim == 1:
        size = len(actions)
        actions = np.flatnonzero(actions)
    if actions.ndim != 1 or (actions.size and actions.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            f"legal_actions of {name} must be whole numbers, or True and False for every action, "
            f"not {validation.shown(given)}"
        )
    legal = tuple(actions.tolist())
    if size is None and actions.dtype.itemsize == 1 and len(legal) > 1 and set(legal) <= {0, 1}:
        # Gymnasium's masks are int8; an int8 array [0, 1] of actions is refused, too.
        raise InvalidArgumentError(
            f"legal_actions of {name} is a mask of {actions.dtype}: a mask has True and False, mask.astype(bool)"
        )
    if not legal:
        raise InvalidArgumentError(f"legal_actions of {name} is empty: at least one action must be legal")
    if len(set(legal)) < len(legal):
        hint = " (a mask has True and False, not 1 and 0)" if set(legal) <= {0, 1} else ""
        raise InvalidArgumentError(f"legal_actions of {name} has {_repeated(legal)} twice{hint}")
    return legal, size


def _repeated(legal: tuple[int, ...]) -> int:
    return next(action for place, action in enumerate(legal) if action in legal[:place])


def stack(roots: Sequence[ObservationRoot], allocate: AllocateMemory | None = None) -> Any:
    """Returns the observations of roots as one batch, a copy in the same library; `allocate` is for NumPy arrays."""
    if isinstance(roots, ObservationBatch):
        return _copy(roots.array, allocate)
    first = roots[0].observation
    if hasattr(first, "legal_actions") and hasattr(first, "play"):
        if not hasattr(first, "observation"):
            raise GameContractError(f"{roots[0].name} has no observation(): a model needs the observation of a state")
        return stack_observations([root.observation for root in roots])
    observations = [root.observation for root in roots]
    library = library_of(first)
    try:
        if library in ("torch", "jax"):
            return namespace_of(first).stack(observations)
        arrays = observations
        if set(map(type, observations)) != {np.ndarray}:
            arrays = [each if isinstance(each, np.ndarray) else _read(each) for each in observations]
        shape = arrays[0].shape
        if not shape or set(map(len, arrays)) != {shape[0]}:
            return np.stack(arrays)
        # Equal to `np.stack` without its checks of each array; `concatenate` rejects unequal shapes.
        memory = (
            None
            if allocate is None
            else allocate((len(arrays), *shape), np.result_type(*{each.dtype for each in arrays}))
        )
        if memory is None:
            return np.concatenate(arrays).reshape(len(arrays), *shape)
        np.concatenate(arrays, out=memory.reshape(-1, *shape[1:]))
        return memory
    except Exception as error:
        raise InvalidArgumentError(f"the observations cannot be stacked into one batch: {error}") from error


def _copy(array: Any, allocate: AllocateMemory | None) -> Any:
    """Returns a copy in C order and native byte order."""
    if library_of(array) == "torch":
        return array.clone(memory_format=namespace_of(array).contiguous_format)
    if library_of(array) == "jax":
        return array.copy()
    dtype = array.dtype.newbyteorder("=")
    memory = None if allocate is None else allocate(array.shape, dtype)
    if memory is None:
        return np.array(array, dtype, order="C")
    np.copyto(memory, array)
    return memory


def _read(listed: Any) -> Any:
    array = np.asarray(listed)
    return array.astype(np.float32) if array.dtype == np.float64 else array
