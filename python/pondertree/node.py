"""Read-only views of the nodes of a tree."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from pondertree._core import TreeView
from pondertree.game import GameInfo, game_mistakes, play_on, tried_text

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:  # noqa: N801 (it stands where `cached_property` would)
        """A method that is called once; what it gave is from then on an attribute of the object."""

        def __init__(self, make):
            self.make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, thing, owner=None):
            if thing is None:
                return self
            made = thing.__dict__[self.name] = self.make(thing)
            return made


__all__ = ["lazy"]


class ReadOnly:
    """What was found does not change: an attribute is neither set nor deleted from outside."""

    # What is `lazy` writes into `__dict__`, past this, and so does `__init__`: looking costs nothing more.

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name!r} cannot be set: a {type(self).__name__} is read-only")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name!r} cannot be deleted: a {type(self).__name__} is read-only")


class Node(ReadOnly):
    """A position in the tree. `total_value` and `q_value` are for the player to move **at this node**."""

    _view: TreeView
    _info: GameInfo
    _root_state: Any
    _parent: Node | None
    _action: int | None
    _edge: dict[str, Any]
    _index: int

    def __init__(
        self,
        view: TreeView,
        info: GameInfo,
        state: Any,
        parent: Node | None,
        action: int | None,
        edge: dict[str, Any],
    ) -> None:
        self.__dict__.update(
            _view=view,
            _info=info,
            _root_state=state,
            _parent=parent,
            _action=action,
            _edge=edge,
            _index=edge["child"],
        )

    @classmethod
    def of_root(cls, view: TreeView, state: Any, info: GameInfo) -> Node:
        """The root of a tree."""
        return cls(view, info, state, None, None, {"child": 0, "visits": int(view.root_visits), "prior": 1.0})

    @classmethod
    def at(cls, view: TreeView, state: Any, info: GameInfo, path: Sequence[int]) -> Node:
        """The node that a path of actions from the root leads to."""
        node = cls.of_root(view, state, info)
        for action in path:
            node = node.children[action]
        return node

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the whole tree, as columns, and the path from its root to this node."""
        path: list[int] = []
        node = self
        while node.parent is not None:
            assert node.action is not None
            path.append(node.action)
            node = node.parent
        return type(self).at, (self._view, node._root_state, self._info, tuple(reversed(path)))

    @property
    def parent(self) -> Node | None:
        """The node above; None at the root."""
        return self._parent

    @property
    def action(self) -> int | None:
        """The action that leads here; None at the root."""
        return self._action

    @lazy
    def _header(self) -> tuple[Any, ...] | None:
        """The engine's node; None for a leaf visited once, which UCT keeps no node for."""
        return None if self._index < 0 else self._view.node(self._index)

    @property
    def visit_count(self) -> int:
        """N."""
        return int(self._edge["visits"])

    @property
    def prior(self) -> float:
        """P, as selection used it; the root's is 1. UCT's moves share it evenly."""
        return float(self._edge["prior"])

    @property
    def clean_prior(self) -> float:
        """P without noise."""
        if self.parent is None or self.parent.parent is not None:
            return self.prior
        return float(dict(self._view.clean_priors).get(self.action or 0, self.prior))

    @lazy
    def to_play(self) -> int:
        """Who moves here."""
        if self._header is not None:
            return int(self._header[1])
        assert self.parent is not None
        # A move never tried, or in compiled games, whose players alternate, a leaf visited once.
        with game_mistakes(self._info, "when asked for to_play"):
            known = None if self._info.compiled else getattr(self.state, "to_play", None)
            return self._info.num_players - 1 - self.parent.to_play if known is None else operator.index(known)

    @property
    def raw_value(self) -> float:
        """The value this position was given when it was evaluated, for the player to move here."""
        return self.total_value if self._header is None else float(self._header[0])

    @lazy
    def total_value(self) -> float:
        """W: the sum of all values backed up to here, for the player to move here."""
        if self.parent is not None and self._info.is_plain:
            chosen = float(self._edge["sum"])
            return chosen if self.to_play == self.parent.to_play else -chosen
        if self._header is None:
            return 0.0
        if self.is_terminal:
            return self.raw_value * self.visit_count
        sums = float(self._view.edges(self._index)[2].sum())
        return self.raw_value + sums

    @property
    def q_value(self) -> float:
        """W / N; 0 if unvisited."""
        return self.total_value / self.visit_count if self.visit_count else 0.0

    @property
    def proven(self) -> int | None:
        """The proven result for the player to move here."""
        return None if self._header is None else self._header[3]

    @property
    def distance(self) -> int | None:
        """Plies to the end, where a result is proven."""
        return None if self._header is None or self._header[3] is None else int(self._header[4])

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over here."""
        return self._header is not None and bool(self._header[2])

    @property
    def terminal_or_mate_value(self) -> float | None:
        """The exact value for the player to move here, by the end of the game, a mate or a proof; None if not known."""
        if self.is_terminal:
            return self.raw_value
        return None if self.proven is None else float(self.proven)

    @property
    def nn_value(self) -> float | None:
        """What the evaluator said of this position, for the player to move here; None if it was not asked."""
        header = self._header
        asked = header is not None and header[5] > 0 and self.visit_count > 0 and not self.is_terminal
        if asked and self.parent is None and not self._view.edges(0)[3].any():
            # Without priors the root is not evaluated.
            return None
        return self.raw_value if asked else None

    @property
    def category(self) -> IntEnum | None:
        """`MoveCategory` of the move that leads here (Hybrid); None at the root and in searches without categories."""
        categories = self._info.move_categories
        if self.parent is None or categories is None or not self._view.has_categories:
            return None
        # Moves get their kinds when their position is evaluated. Mate search may decide a root before that.
        if self.parent.nn_value is None and self.terminal_or_mate_value != -1.0:
            return None
        return categories(self._edge["category"])

    @property
    def forced_depth_left(self) -> int:
        """For how many more plies forced moves are looked for (the UCT specification)."""
        if self._header is not None:
            return int(self._header[7])
        return 0 if self.parent is None else max(self.parent.forced_depth_left - 1, 0)

    @property
    def reward(self) -> float:
        """The reward of the move that led here, for the player who made it; 0 in games without rewards."""
        if self._header is None or self.parent is None or not self._header[9]:
            return 0.0
        rewards = self._header[9]
        # A learned model pays the player who made the move alone.
        return float(rewards[self.parent.to_play] if len(rewards) > 1 else rewards[0])

    @property
    def slot(self) -> int | None:
        """Where a game written in Python or a model keeps this position."""
        return None if self._header is None else self._header[8]

    @lazy
    def state(self) -> Any:
        """The position itself; below the root of a learned model, as far as the rules lead there."""
        # Up to the nearest position that is known, then down again: a tree may be deeper than Python's stack.
        line: list[Node] = []
        node: Node = self
        while node.parent is not None and "state" not in node.__dict__:
            line.append(node)
            node = node.parent
        state = node._root_state if node.parent is None else node.state
        for below in reversed(line):
            assert below.action is not None
            state = play_on(state, below.action, self._info)
            if below is not self:
                below.__dict__["state"] = state
        return state

    @property
    def move(self) -> str:
        """How people write the action that leads here."""
        if self.parent is None or self.action is None:
            return ""
        return tried_text(self.parent.state, self.action, self._info)

    @lazy
    def children(self) -> Mapping[int, Node]:
        """The moves by action: those that have been tried, in that order, and then those that only have a prior."""
        if self._header is None:
            return MappingProxyType({})
        actions, visits, sums, priors, indices, _, in_flight, categories = self._view.edges(self._index)
        has_priors = bool(priors.any())
        shown = len(actions) if has_priors else int(self._header[6])
        share = 1.0 / max(len(actions), 1)
        children = {
            int(actions[place]): Node(
                self._view,
                self._info,
                None,
                self,
                int(actions[place]),
                {
                    "child": int(indices[place]),
                    "visits": int(visits[place]),
                    "sum": float(sums[place]),
                    "prior": float(priors[place]) if has_priors else share,
                    "in_flight": int(in_flight[place]),
                    "category": int(categories[place]),
                },
            )
            for place in range(shown)
        }
        return MappingProxyType(children)

    @property
    def in_flight(self) -> int:
        """Leaves under way through the move that leads here; 0 after every search."""
        return int(self._edge.get("in_flight", 0))

    def to_text(self, depth: int = 2, width: int = 5) -> str:
        """The top of the tree, drawn with lines."""
        from pondertree.drawing import to_text

        return to_text(self, depth, width)

    def to_dot(self, depth: int = 2, width: int = 4) -> str:
        """The top of the tree in Graphviz's language."""
        from pondertree.drawing import to_dot

        return to_dot(self, depth, width)

    def to_svg(self, depth: int = 2, width: int = 4) -> str:
        """The top of the tree as a picture."""
        from pondertree.drawing import to_svg

        return to_svg(self, depth, width)

    def to_json(self, depth: int | None = None, width: int | None = None) -> str:
        """The tree, or its top, as JSON."""
        from pondertree.drawing import to_json

        return to_json(self, depth, width)

    def __repr__(self) -> str:
        name = self.move or "root"
        return f"<Node {name}: visits {self.visit_count}, value {self.q_value:+.3f}>"
