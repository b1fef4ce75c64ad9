"""The classes of the compiled games, from the engine's registry. `compiled.pyi` declares them for type checkers."""

from pondertree._core import GAMES as _GAMES

globals().update((entry["state"].__name__, entry["state"]) for entry in _GAMES)
