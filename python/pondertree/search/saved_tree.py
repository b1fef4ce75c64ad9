"""`load_tree`: live trees from files, and read-only ones where a file lacks the search or the state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import TreeView
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.files import read_columns, reading
from pondertree.game import GameInfo, play
from pondertree.games.saved_root import compiled_root, game_of
from pondertree.result import SearchResult
from pondertree.search.base import Search
from pondertree.search.observation_root import ObservationRoot
from pondertree.search.settings import check_settings, made_of, named_class
from pondertree.search.tree import Tree
from pondertree.validation import shown

#: The version of the columns (`TreeView`).
_VIEW_VERSION = 1
#: The number of move categories, the tags of chess.
_CATEGORIES = 10


class UnknownState:
    """The root of a loaded tree of a game in Python, without `state=`. Actions have numbers, but no text."""

    def __repr__(self) -> str:
        return "<unknown state: load_tree takes it as state=>"


class ReadOnlyForest:
    """The forest of a read-only tree: its state and result."""

    is_busy = False

    def __init__(self, result: SearchResult, reason: str) -> None:
        self._result = result
        self._reason = reason

    def state(self, index: int) -> Any:
        """Returns the state at the root."""
        return self._result._state

    def result(self, index: int = 0, *, temperature: float | None = None) -> SearchResult:
        """Returns the result; at the temperature of the file, if none is given."""
        if temperature is None:
            return self._result
        _, (view, state, info, _, *rest) = self._result.__reduce__()
        return SearchResult(view, state, info, validation.temperature(temperature), *rest)

    def waits_for_outcome(self, index: int = 0) -> bool:
        """Whether the root is a chance node: never."""
        return False

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(f"this tree is read-only: {self._reason}")

    simulate = step = asimulate = advance = reset = restrict = skip_root_analysis = stop = trace = _saved = _refuse


def load_tree(path: str | os.PathLike[str], search: Search | None = None, state: Any = None) -> Tree:
    """Returns the tree of a file that `Tree.save` or `SearchResult.save` wrote.

    A tree continues bit for bit: simulations before and after are those of one run. Its search is made of the settings
    in the file; where these contain Python objects (an evaluator, a model, a playout policy), it is `search`, whose
    settings must be the same except for limits. A copy of it continues with the seed and call number of the file. The
    states of a game in Python are replayed from `state`, with which the tree was planted or reset; another one is
    refused if legal moves, players or ends differ in the tree.

    Without them the tree is read-only, as always for the file of a result: `result` and the nodes can be read, and
    `simulate` raises a `UsageError`. Nothing in a file is executed; damaged files raise an `InvalidArgumentError`.
    """
    if search is not None and not isinstance(search, Search):
        raise InvalidArgumentError(f"search must be a search, such as UCT(), not {shown(search)}")
    with reading(path, "a saved tree") as file:
        about, columns = read_columns(file)
        is_tree = {"tree": True, "result": False}[about["kind"]]
        if search is not None and not is_tree:
            raise InvalidArgumentError("search is for the file of a tree: that of a result cannot be continued")
        data = _checked(about, is_tree)
        root = _root(about["root"], columns, state, data)
        info = game_of(about["game"], root)
        if not is_tree:
            return _read_only(about, columns, data, root, info, "the file is that of a result; save the tree instead")
        settings = about["settings"]
        if search is not None:
            check_settings(search, settings)
            if root is None:
                raise InvalidArgumentError("state is missing: the positions of a game in Python are replayed from it")
        elif settings["python"]:
            objects = ", ".join(map(str, settings["python"]))
            reason = f"its search has Python objects ({objects}), which a file does not hold: give load_tree a search="
            return _read_only(about, columns, data, root, info, reason)
        else:
            search = made_of(settings)
            if not isinstance(search, Search):
                raise InvalidArgumentError("its settings are not those of a search")
        if root is None:
            reason = "the file does not hold the states of a game in Python: give load_tree the first one as state="
            return _read_only(about, columns, data, root, info, reason)
        return Tree._restore(search, root, data, columns)


def _checked(about: Mapping[str, Any], is_tree: bool) -> dict[str, Any]:
    """Returns the plain data that a result, and with `is_tree` a tree, is made of."""
    number = validation.whole_number
    data = {
        "temperature": validation.temperature(about["temperature"]),
        "verdicts": [
            (number(action, "verdicts", most=65535), number(plies, "verdicts", least=-1, most=1 << 31))
            for action, plies in about["verdicts"]
        ],
        "elapsed": validation.number(about["elapsed"], "elapsed", least=0.0),
        **{name: number(about[name], name) for name in ("seed", "simulations")},
        "moves": [],
    }
    if not is_tree:
        return data
    searched = about["root_actions"]
    return {
        **data,
        **{name: number(about[name], name) for name in ("begun", "search_seed", "calls")},
        "root_actions": searched and [number(action, "root_actions", most=65535) for action in searched],
        "moves": [number(action, "moves", most=65535) for action in about["moves"]],
        "hidden": about["hidden"],
    }


def _root(saved: Any, columns: Mapping[str, NDArray[Any]], state: Any, data: Mapping[str, Any]) -> Any:
    """Returns the state at the root; None for a game in Python without `state`."""
    if saved is None:
        for action in data["moves"] if state is not None else ():
            if action not in list(state.legal_actions()):
                raise InvalidArgumentError(
                    f"state is not the one that the tree was planted with: {action} is not legal"
                )
            state = play(state, action, type(state).__name__)
        return state
    if state is not None:
        raise InvalidArgumentError("state is for games in Python: this file holds its root")
    return ObservationRoot.from_data(saved, columns) if "observation" in saved else compiled_root(saved)


def _read_only(
    about: Mapping[str, Any],
    columns: dict[str, NDArray[Any]],
    data: Mapping[str, Any],
    root: Any,
    info: GameInfo,
    reason: str,
) -> Tree:
    """Returns a read-only tree."""
    view = TreeView(_VIEW_VERSION, columns)
    if columns["edge_action"].max() >= info.num_actions or columns["shape"][1] != info.num_players:
        raise InvalidArgumentError("the tree is of another game, with other actions or players")
    if validation.flag(about["game"]["has_categories"], "has_categories"):
        if columns["edge_category"].max() >= _CATEGORIES:
            raise InvalidArgumentError(f"a move category is beyond {_CATEGORIES - 1}")
        info = replace(info, move_categories=named_class("MoveCategory", "pondertree.chess"))
    if hasattr(root, "legal_actions") and not set(view.edges(0)[0].tolist()) <= set(root.legal_actions()):
        raise InvalidArgumentError("the tree does not fit its root: it has moves that are not legal there")
    state = UnknownState() if root is None else root
    result = SearchResult(
        view, state, info, data["temperature"], data["verdicts"], data["seed"], data["elapsed"], data["simulations"]
    )
    forest: Any = ReadOnlyForest(result, reason)
    return Tree(forest, None)
