"""Loading games of OpenSpiel, and the refusal of those that cannot be searched."""

from __future__ import annotations

import difflib
import functools
from typing import Any

from pondertree.errors import InvalidArgumentError
from pondertree.optional import require
from pondertree.validation import shown

#: Games whose states cannot be copied (as of OpenSpiel 2.0.2), which a search does for every move, and why.
_UNCOPIED = {
    "morpion_solitaire": "a move in a copy of a state accesses memory of the original, and may end the process",
    "python_hangman": "copies of a state have lost the word list",
}
#: The engine numbers actions by 16 bits, and players by 8.
MAX_ACTIONS = 65_535
MAX_PLAYERS = 255


@functools.cache
def openspiel() -> Any:
    """Returns the module `pyspiel`."""
    return require("pyspiel", "envs", "a game of OpenSpiel")


def state_of(given: Any) -> Any:
    """Returns a state of OpenSpiel, the starting state of a game."""
    pyspiel = openspiel()
    if isinstance(given, pyspiel.State):
        _check_type(given.get_game())
        return given
    if isinstance(given, str):
        given = _loaded(pyspiel, given)
    if not isinstance(given, pyspiel.Game):
        raise InvalidArgumentError(
            f"game_or_state must be a game or a state of pyspiel, or the name of a game, not {shown(given)}"
        )
    _check_type(given)
    return given.new_initial_state()


def _loaded(pyspiel: Any, name: str) -> Any:
    """Returns the game of a name with parameters; an error suggests the nearest name."""
    short = name.partition("(")[0].strip()
    if short not in pyspiel.registered_names() and short.startswith("python_"):
        require("open_spiel.python.games", "envs", f"the game {name!r}")  # registers the games in Python
    if short not in pyspiel.registered_names():
        near = difflib.get_close_matches(short, pyspiel.registered_names(), n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InvalidArgumentError(f"OpenSpiel has no game {short!r}{hint}")
    try:
        return pyspiel.load_game(name)
    except Exception as error:
        raise InvalidArgumentError(f"load_game({name!r}) raised {type(error).__name__}: {error}") from error


def _check_type(game: Any) -> None:
    """Raises `InvalidArgumentError` for a game that cannot be searched."""
    kinds = openspiel().GameType
    kind, name = game.get_type(), f"the OpenSpiel game {game}"
    if kind.dynamics == kinds.Dynamics.SIMULTANEOUS:
        raise InvalidArgumentError(
            f"{name} has simultaneous moves, which cannot be searched; pyspiel.convert_to_turn_based makes a game of "
            "turns of it, but one with imperfect information, which no preset searches yet"
        )
    if kind.dynamics != kinds.Dynamics.SEQUENTIAL:
        raise InvalidArgumentError(f"{name} is a mean-field game: only sequential games can be searched")
    if kind.information != kinds.Information.PERFECT_INFORMATION:
        raise InvalidArgumentError(
            f"{name} has imperfect information: a search would see what is hidden from the players, and no preset "
            "searches such games yet"
        )
    if kind.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        raise InvalidArgumentError(
            f"{name} has sampled chance: it draws outcomes itself and does not list them (chance_outcomes), so that "
            "a search cannot repeat a move; only explicit chance can be searched"
        )
    if kind.short_name in _UNCOPIED:
        raise InvalidArgumentError(f"{name} cannot be searched: {_UNCOPIED[kind.short_name]}")
    if game.num_distinct_actions() > MAX_ACTIONS:
        raise InvalidArgumentError(
            f"{name} has {game.num_distinct_actions():,} actions: at most {MAX_ACTIONS:,} can be searched"
        )
    if game.num_players() > MAX_PLAYERS:
        raise InvalidArgumentError(f"{name} has {game.num_players():,} players: at most {MAX_PLAYERS} can be searched")
