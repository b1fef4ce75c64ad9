"""Hidden states: an array [B, ...], or nested tuples and dicts of such arrays, and the layout that must stay the same.

Arrays may be of any library. A list is read as rows (B numbers, or B Python objects) unless it contains arrays; None is
empty. Other containers are flattened if they are JAX pytrees (Flax, Haiku and Equinox register theirs).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree.errors import EvaluationError
from pondertree.models.arrays import dtype_name, library_of, wider


@dataclass(frozen=True, slots=True)
class Structure:
    """The tree structure of arrays: the class of a container, its keys if it is a dict, and its parts."""

    kind: Any
    keys: tuple[Any, ...] = ()
    parts: tuple[Structure, ...] = ()


#: A bare array.
LEAF = Structure("array")
EMPTY = Structure(None)


def flatten(hidden: Any) -> tuple[list[Any], Structure]:
    """Returns the arrays of a hidden state in order, and their structure."""
    if type(hidden) is np.ndarray or library_of(hidden) is not None:
        return [hidden], LEAF
    leaves: list[Any] = []
    return leaves, _flatten(hidden, "hidden_state", leaves)


def _flatten(part: Any, name: str, leaves: list[Any]) -> Structure:
    if part is None:
        return EMPTY
    if isinstance(part, list) and not holds_arrays(part):
        part = _rows(part)
    if library_of(part) is not None:
        leaves.append(part)
        return LEAF
    if isinstance(part, dict):
        parts = tuple(_flatten(part[key], f"{name}[{key!r}]", leaves) for key in part)
        return Structure(dict, tuple(part), parts)
    if isinstance(part, (tuple, list)):
        parts = tuple(_flatten(each, f"{name}[{place}]", leaves) for place, each in enumerate(part))
        return Structure(type(part), (), parts)
    if "jax" in sys.modules:
        found, tree = sys.modules["jax"].tree_util.tree_flatten(part)
        if not (len(found) == 1 and found[0] is part):
            leaves.extend(found)
            return Structure(tree, (), (LEAF,) * len(found))
    raise EvaluationError(
        f"{name} is a {type(part).__name__}: it must be an array [B, ...], or a tuple or dict of them"
    )


def unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    """Rebuilds a structure from its arrays."""
    if structure is LEAF or structure == LEAF:
        return next(leaves)
    if structure.kind is None:
        return None
    parts = [unflatten(part, leaves) for part in structure.parts]
    if structure.kind is dict:
        return dict(zip(structure.keys, parts, strict=True))
    if not isinstance(structure.kind, type):
        return structure.kind.unflatten(parts)
    return structure.kind(*parts) if hasattr(structure.kind, "_fields") else structure.kind(parts)


def structure_data(structure: Structure) -> Any:
    """Returns a structure of tuples, lists and dicts with plain keys as plain data; None for any other."""
    if structure == LEAF:
        return "array"
    if structure.kind is None:
        return "empty"
    names = {tuple: "tuple", list: "list", dict: "dict"}
    parts = [structure_data(part) for part in structure.parts]
    is_plain = structure.kind in names and all(isinstance(key, (str, int)) for key in structure.keys)
    return [names[structure.kind], list(structure.keys), parts] if is_plain and None not in parts else None


def structure_of(data: Any) -> Structure:
    """Returns the structure of `structure_data`."""
    if isinstance(data, str):
        return {"array": LEAF, "empty": EMPTY}[data]
    name, keys, parts = data
    kind = {"tuple": tuple, "list": list, "dict": dict}[name]
    return Structure(kind, tuple(keys), tuple(map(structure_of, parts)))


def holds_arrays(part: Any) -> bool:
    if isinstance(part, (list, tuple)):
        return any(map(holds_arrays, part))
    return any(map(holds_arrays, part.values())) if isinstance(part, dict) else library_of(part) is not None


def _rows(listed: list[Any]) -> Any:
    """Converts a list of rows: numbers and lists of numbers to an array, anything else to an array of objects."""
    try:
        array = np.asarray(listed)
        if array.dtype.kind in "fiub":
            return array
    except ValueError:  # rows of different lengths
        pass
    objects = np.empty(len(listed), dtype=object)
    objects[:] = listed
    return objects


@dataclass(frozen=True, slots=True)
class Leaf:
    """The invariants of one array: everything but the number of rows."""

    library: str
    shape: tuple[int, ...]
    """Of one row."""
    dtype: Any
    device: Any

    def __str__(self) -> str:
        place = "" if self.device is None else f" on {self.device}"
        return f"{self.library} {str(self.dtype).removeprefix('torch.')} {list(self.shape)} a row{place}"


class Layout:
    """Structure, shapes and dtypes of a model's hidden states. A dtype may widen within its kind."""

    __slots__ = ("leaves", "structure")

    def __init__(self, structure: Structure, leaves: tuple[Leaf, ...]) -> None:
        self.structure = structure
        self.leaves = leaves

    @classmethod
    def of(cls, arrays: list[Any], structure: Structure, rows: int) -> Layout:
        """The layout of the first hidden states."""
        leaves = tuple(_leaf(array, rows, _name(place, arrays)) for place, array in enumerate(arrays))
        places = {f"{leaf.library} {'' if leaf.device is None else leaf.device}".strip() for leaf in leaves}
        if len(places) > 1:
            raise EvaluationError(
                f"hidden_state is on several devices or libraries: {', '.join(sorted(places))}: it must be in one place"
            )
        return cls(structure, leaves)

    def admit(self, arrays: list[Any], structure: Structure, rows: int) -> Layout:
        """Returns this layout, or one with wider dtypes, if the arrays fit; raises an error that names the change."""
        # Fast path: a NumPy array with the expected dtype and shape.
        if len(arrays) == 1 and type(arrays[0]) is np.ndarray and structure is self.structure:
            array, leaf = arrays[0], self.leaves[0]
            if array.shape == (rows, *leaf.shape) and array.dtype == leaf.dtype and leaf.library == "numpy":
                return self
        if structure != self.structure:
            raise EvaluationError(
                f"hidden_state has changed its structure: expected {_describe(self.structure)}, "
                f"given {_describe(structure)}"
            )
        found = tuple(
            self._fitting(place, _leaf(array, rows, _name(place, arrays)), array, _name(place, arrays))
            for place, array in enumerate(arrays)
        )
        return self if found == self.leaves else Layout(self.structure, found)

    def _fitting(self, place: int, given: Leaf, array: Any, name: str) -> Leaf:
        expected = self.leaves[place]
        if given == expected:
            return expected
        if (given.library, given.shape, given.device) == (expected.library, expected.shape, expected.device):
            both = wider(array, expected.dtype)
            if both is not None:
                return Leaf(expected.library, expected.shape, both, expected.device)
        raise EvaluationError(f"{name} has changed its shape or type: expected {expected}, given {given}")


def _leaf(array: Any, rows: int, name: str) -> Leaf:
    library = library_of(array)
    if library is None:
        raise EvaluationError(f"{name} is a {type(array).__name__}: it must be an array [B, ...]")
    shape = tuple(array.shape)
    if not shape:
        raise EvaluationError(f"{name} is one {dtype_name(array)} for the whole batch: it must have {rows} rows")
    if shape[0] != rows:
        raise EvaluationError(f"{name} has shape {shape}: it must have {rows} rows, one per requested row")
    return Leaf(library, shape[1:], array.dtype, None if library == "numpy" else array.device)


def _name(place: int, arrays: list[Any]) -> str:
    return "hidden_state" if len(arrays) == 1 else f"array {place} of hidden_state"


def _describe(structure: Structure) -> str:
    if structure == LEAF:
        return "an array"
    if structure.kind is None:
        return "nothing"
    if structure.kind is dict:
        return f"a dict with the keys {', '.join(map(repr, structure.keys))}"
    name = structure.kind.__name__ if isinstance(structure.kind, type) else str(structure.kind)
    return f"a {name} of {len(structure.parts)}"
