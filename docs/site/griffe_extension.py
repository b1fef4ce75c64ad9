"""Griffe extension of the API pages: adds what the Python sources do not show.

Docstrings of compiled objects exist in the compiled module only, and two decorators change what they decorate:
`preset` adds the options of every search to signature and docstring, `lazy` makes a property.
"""

import importlib
import inspect
from typing import Any

import griffe

#: Modules whose objects are compiled. The stub of the games declares a base class that the engine does not have.
COMPILED = ("pondertree._core", "pondertree.games.compiled")
STUB_BASE, EXAMPLE = "CompiledState", "ConnectFour"


class Compiled(griffe.Extension):
    """Completes compiled objects, presets and lazy properties."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Documents a compiled object."""
        for module in COMPILED:
            if obj.path.startswith(f"{module}."):
                value: Any = importlib.import_module(module)
                for name in obj.path.removeprefix(f"{module}.").split("."):
                    value = getattr(value, EXAMPLE if name == STUB_BASE else name, None)
                document(obj, value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Completes a preset."""
        if is_decorated(cls, "preset"):
            preset = getattr(importlib.import_module(cls.module.path), cls.name)
            document(cls, preset)
            parameters = (
                griffe.Parameter(
                    parameter.name,
                    annotation=str(parameter.annotation),
                    kind=griffe.ParameterKind(parameter.kind.description),
                    default=None if parameter.default is parameter.empty else repr(parameter.default),
                )
                for parameter in inspect.signature(preset).parameters.values()
            )
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters)))

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Turns a lazy method into a property."""
        if is_decorated(func, "lazy"):
            attribute = griffe.Attribute(func.name, annotation=func.returns, docstring=func.docstring)
            attribute.labels.add("property")
            func.parent.set_member(func.name, attribute)


def is_decorated(obj: griffe.Class | griffe.Function, name: str) -> bool:
    """Returns whether the decorator `name` is applied to an object."""
    return any(str(decorator.value) == name for decorator in obj.decorators)


def document(obj: griffe.Object, value: Any) -> None:
    """Gives an object the docstring of its value."""
    if text := inspect.getdoc(value):
        obj.docstring = griffe.Docstring(text, parent=obj)
