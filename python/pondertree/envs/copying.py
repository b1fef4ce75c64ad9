"""Deep copies of environments that share nothing mutable, whatever the environment says about pickling.

`copy.deepcopy` asks an object how to be pickled, and one that inherits EzPickle answers with the arguments of its
constructor: its copy is a fresh environment. `Copier` copies attributes instead, down to the closures of functions.
Windows and surfaces are left out, and the random generators of each copy are listed, so that they can be reseeded.
"""

from __future__ import annotations

import copy
import enum
import functools
import logging
import pathlib
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pondertree.envs.generators import NO_GENERATOR, NoGenerator, PendingGenerator, copy_generator, is_generator
from pondertree.envs.traversal import (
    ATOMS,
    SHARED_CLASSES,
    GeneratorList,
    is_python_class,
    module_of,
    reached,
    slots_of,
)

Memo = dict[int, Any]
Handler = Callable[[Any, Memo], Any]

#: Base classes of further values that copies share.
SHARED_BASES: Final = (type, np.generic, np.dtype, enum.Enum, logging.Logger, pathlib.PurePath)
#: Packages whose objects draw pictures: copies have None instead.
DRAWING: Final = frozenset({"pygame", "pygame_ce", "matplotlib", "glfw", "OpenGL", "cv2", "tkinter", "pyglet", "PIL"})
#: Attributes that hold a window or a renderer.
RENDERERS: Final = frozenset({"mujoco_renderer", "viewer"})
#: Classes that describe how an environment is made; nothing changes them.
DESCRIPTIONS: Final = frozenset(
    {("gymnasium.envs.registration", "EnvSpec"), ("gymnasium.envs.registration", "WrapperSpec")}
)

#: Attributes of Gymnasium's toy-text environments that no step changes, by the module and name of the class.
CONSTANTS: Final = {
    ("gymnasium.envs.toy_text.frozen_lake", "FrozenLakeEnv"): frozenset({"P", "desc", "initial_state_distrib"}),
    ("gymnasium.envs.toy_text.taxi", "TaxiEnv"): frozenset({"P", "desc", "initial_state_distrib", "locs"}),
    ("gymnasium.envs.toy_text.cliffwalking", "CliffWalkingEnv"): frozenset({"P", "_cliff", "initial_state_distrib"}),
}
#: Key in a memo of the list of generators copied so far.
_LISTED: Final = -1
#: Attribute of a copied environment with the list of its generators.
_LIST_NAME: Final = "_pondertree_generators"


class CannotCopyError(Exception):
    """An object that has no copy; `place` lists the attributes that lead to it, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.place: list[str] = []

    def __str__(self) -> str:
        place = "".join(reversed(self.place)).lstrip(".")
        return f"{place} is {self.args[0]}" if place else f"it holds {self.args[0]}"


def listed_generators(environment: Any) -> list[Any] | None:
    """Returns the generators of an environment that `Copier` made, in a fixed order; None for others."""
    found: list[Any] | None = getattr(environment, "__dict__", {}).get(_LIST_NAME)
    return found


class Copier:
    """Copies environments. Attributes of classes, modules and descriptions of environments are shared.

    It has no state, so that several threads may use one.
    """

    def __init__(self, *, without_generators: bool = False, shared: tuple[Any, ...] = ()) -> None:
        """`without_generators` leaves out random generators: drawing raises. Copies share the objects in `shared`."""
        self.without_generators = without_generators
        self.shared = shared
        self._handlers: dict[type, Handler] = {
            list: self._list,
            dict: self._dict,
            tuple: self._tuple,
            set: self._set,
            frozenset: self._set,
            deque: self._deque,
            bytearray: self._shallow,
            np.ndarray: self._array,
            types.FunctionType: self._function,
            types.MethodType: self._method,
            types.BuiltinMethodType: self._builtin_method,
            types.CellType: self._cell,
            functools.partial: self._partial,
            weakref.ref: self._reference,
            OrderedDict: self._dict_subclass,
            NoGenerator: self._same,
            GeneratorList: self._nothing,
        }

    def copy(self, environment: Any, replaced: Memo | None = None) -> Any:
        """Returns a copy, whose generators `listed_generators` returns.

        `replaced` maps the ids of objects to those that the copy has instead.
        """
        listed = GeneratorList()
        memo: Memo = {} if replaced is None else dict(replaced)
        memo[_LISTED] = listed
        for each in self.shared:
            memo[id(each)] = each
        new = self._copy(environment, memo)
        if new is not environment and type(new) is not dict and hasattr(new, "__dict__"):
            new.__dict__[_LIST_NAME] = listed
        return new

    def check(self, environment: Any) -> None:
        """Raises `CannotCopyError` if an object has no copy, before others are copied halfway."""
        for value in reached(environment):
            if type(value) not in self._handlers and self._handler_of(value) == self._own_copy:
                self._own_copy(value, {_LISTED: []})

    def _copy(self, value: Any, memo: Memo) -> Any:
        kind = type(value)
        if kind in ATOMS:
            return value
        known = memo.get(id(value))
        if known is not None:
            return known
        handler = self._handlers.get(kind)
        if handler is None:
            handler = self._handlers[kind] = self._handler_of(value)
        return handler(value, memo)

    def _handler_of(self, value: Any) -> Handler:
        kind = type(value)
        module = module_of(kind)
        if issubclass(kind, SHARED_BASES) or (module, kind.__qualname__) in DESCRIPTIONS | SHARED_CLASSES:
            return self._same
        if is_generator(value):
            return self._generator
        if module.partition(".")[0] in DRAWING:
            return self._nothing
        if issubclass(kind, np.ndarray):
            return self._array
        if is_python_class(kind):
            if any(module_of(each) == "gymnasium.spaces.space" for each in kind.__mro__):
                return self._space
            if "__deepcopy__" in kind.__dict__:
                return self._own_copy
            is_lazy = getattr(kind, "_np_random", self) is None
            constants = _constants(kind)
            return functools.partial(self._object, slots=tuple(slots_of(kind)), is_lazy=is_lazy, constants=constants)
        if issubclass(kind, dict):
            return self._dict_subclass
        if issubclass(kind, list) and kind.__new__ is list.__new__:
            return self._list_subclass
        return self._own_copy

    def _same(self, value: Any, memo: Memo) -> Any:
        return value

    def _nothing(self, value: Any, memo: Memo) -> None:
        return None

    def _shallow(self, value: Any, memo: Memo) -> Any:
        new = memo[id(value)] = copy.copy(value)
        return new

    def _list(self, value: list[Any], memo: Memo) -> Any:
        new: list[Any] = []
        memo[id(value)] = new
        try:
            new.extend([entry if type(entry) in ATOMS else self._copy(entry, memo) for entry in value])
        except CannotCopyError as error:
            error.place.append("[...]")
            raise
        return new

    def _list_subclass(self, value: Any, memo: Memo) -> Any:
        new = list.__new__(type(value))
        memo[id(value)] = new
        new.extend([self._copy(entry, memo) for entry in value])
        self._attributes(value, new, memo)
        return new

    def _dict(self, value: dict[Any, Any], memo: Memo) -> Any:
        new: dict[Any, Any] = {}
        memo[id(value)] = new
        for key, entry in value.items():
            try:
                new[key if type(key) in ATOMS else self._copy(key, memo)] = (
                    entry if type(entry) in ATOMS else self._copy(entry, memo)
                )
            except CannotCopyError as error:
                error.place.append(f"[{key!r:.40}]")
                raise
        return new

    def _dict_subclass(self, value: Any, memo: Memo) -> Any:
        new = copy.copy(value)
        memo[id(value)] = new
        new.clear()
        for key, entry in value.items():
            new[self._copy(key, memo)] = self._copy(entry, memo)
        self._attributes(value, new, memo)
        return new

    def _tuple(self, value: tuple[Any, ...], memo: Memo) -> Any:
        entries = [entry if type(entry) in ATOMS else self._copy(entry, memo) for entry in value]
        if all(map(_is, entries, value)):
            return value
        new = memo.get(id(value)) or tuple(entries)  # a tuple may contain itself by way of a list
        memo[id(value)] = new
        return new

    def _set(self, value: Any, memo: Memo) -> Any:
        new = type(value)([entry if type(entry) in ATOMS else self._copy(entry, memo) for entry in value])
        memo[id(value)] = new
        return new

    def _deque(self, value: deque[Any], memo: Memo) -> Any:
        new: deque[Any] = deque(maxlen=value.maxlen)
        memo[id(value)] = new
        new.extend(self._copy(entry, memo) for entry in value)
        return new

    def _array(self, value: Any, memo: Memo) -> Any:
        new = memo[id(value)] = value.copy()
        if value.dtype.hasobject:
            flat, source = new.reshape(-1), value.reshape(-1)
            for index in range(flat.size):
                flat[index] = self._copy(source[index], memo)
        return new

    def _generator(self, value: Any, memo: Memo) -> Any:
        new = memo[id(value)] = NO_GENERATOR if self.without_generators else copy_generator(value)
        if not self.without_generators:
            memo[_LISTED].append(new)
        return new

    def _function(self, value: types.FunctionType, memo: Memo) -> Any:
        """Copies what a function keeps in its closure; a function without one is shared."""
        if not value.__closure__:
            return value
        cells = []
        for cell in value.__closure__:
            new_cell = memo.get(id(cell))
            if new_cell is None:
                new_cell = memo[id(cell)] = types.CellType()
            cells.append(new_cell)
        new = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, tuple(cells))
        new.__kwdefaults__ = value.__kwdefaults__
        memo[id(value)] = new
        new.__dict__.update(self._dict(value.__dict__, memo))
        for cell, new_cell in zip(value.__closure__, cells, strict=True):
            self._fill(cell, new_cell, memo)
        return new

    def _cell(self, value: Any, memo: Memo) -> Any:
        new = memo[id(value)] = types.CellType()
        self._fill(value, new, memo)
        return new

    def _fill(self, cell: Any, new: Any, memo: Memo) -> None:
        try:
            new.cell_contents  # noqa: B018 (raises if the cell is empty)
        except ValueError:
            try:
                contents = cell.cell_contents
            except ValueError:
                return
            new.cell_contents = self._copy(contents, memo)

    def _method(self, value: types.MethodType, memo: Memo) -> Any:
        return types.MethodType(self._copy(value.__func__, memo), self._copy(value.__self__, memo))

    def _builtin_method(self, value: Any, memo: Memo) -> Any:
        """Binds a method of a compiled object, such as `random.Random(1).random`, to the copy of the object."""
        owner = value.__self__
        if owner is None or isinstance(owner, (types.ModuleType, type)):
            return value
        new = self._copy(owner, memo)
        return value if new is owner else getattr(new, value.__name__)

    def _partial(self, value: functools.partial[Any], memo: Memo) -> Any:
        arguments = [self._copy(each, memo) for each in value.args]
        new = functools.partial(self._copy(value.func, memo), *arguments, **self._dict(value.keywords, memo))
        memo[id(value)] = new
        return new

    def _reference(self, value: Any, memo: Memo) -> Any:
        target = value()
        new = value if target is None else weakref.ref(self._copy(target, memo))
        memo[id(value)] = new
        return new

    def _space(self, value: Any, memo: Memo) -> Any:
        """Copies a space of Gymnasium, which may have a generator; its arrays are constants."""
        if value.__dict__.get("_np_random") is NO_GENERATOR:
            return value
        new = memo[id(value)] = object.__new__(type(value))
        constant = {name: entry for name, entry in value.__dict__.items() if type(entry) is np.ndarray}
        memo.update((id(entry), entry) for entry in constant.values())
        self._attributes(value, new, memo)
        return new

    def _object(self, value: Any, memo: Memo, slots: tuple[str, ...], is_lazy: bool, constants: frozenset[str]) -> Any:
        """`is_lazy`: instances without a generator create one at its first use. Copies share `constants`."""
        new = object.__new__(type(value))
        memo[id(value)] = new
        for name in constants:
            constant = value.__dict__.get(name)
            memo[id(constant)] = constant
        self._attributes(value, new, memo)
        if is_lazy and "_np_random" not in new.__dict__:
            new._np_random = self._later(memo)
        for name in slots:
            try:
                held = getattr(value, name)
            except AttributeError:
                continue
            object.__setattr__(new, name, self._copy(held, memo))
        return new

    def _attributes(self, value: Any, new: Any, memo: Memo) -> None:
        held = getattr(value, "__dict__", None)
        if not held:
            return
        target = new.__dict__
        for name, entry in held.items():
            if type(entry) not in ATOMS:
                try:
                    entry = None if name in RENDERERS else self._copy(entry, memo)
                except CannotCopyError as error:
                    error.place.append(f".{name}")
                    raise
            elif entry is None and name == "_np_random":
                entry = self._later(memo)
            target[name] = entry
        if "render_mode" in target:
            target["render_mode"] = None

    def _later(self, memo: Memo) -> Any:
        """Returns what takes the place of a generator that would be created from the operating system's entropy."""
        if self.without_generators:
            return NO_GENERATOR
        pending = PendingGenerator()
        memo[_LISTED].append(pending)
        return pending

    def _own_copy(self, value: Any, memo: Memo) -> Any:
        kind = type(value)
        try:
            new = copy.deepcopy(value, memo)
        except Exception as error:
            name = f"{module_of(kind)}.{kind.__qualname__}".lstrip(".")
            raise CannotCopyError(f"a {name}, which cannot be copied ({error})") from error
        memo[id(value)] = new
        if new is not value:
            known = {id(each) for each in memo[_LISTED]}
            memo[_LISTED].extend(each for each in reached(new) if is_generator(each) and id(each) not in known)
        return new


def _constants(kind: type) -> frozenset[str]:
    """Returns the names of attributes that copies of the instances of a class share."""
    return frozenset[str]().union(*(CONSTANTS.get((module_of(each), each.__qualname__), ()) for each in kind.__mro__))


def _is(one: Any, other: Any) -> bool:
    return one is other
