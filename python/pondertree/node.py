"""Read-only views of the nodes of a tree, and of the positions that a learned model predicts."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from pondertree._core import TreeView
from pondertree.game import CHANCE, GameInfo, as_contract_error, move_text, play
from pondertree.games.chance import perspective

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:  # noqa: N801 (replaces `cached_property`)
        """A `cached_property` without a lock: the result of the method replaces it in the instance's `__dict__`."""

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
    """A base class whose attributes cannot be set or deleted from outside."""

    # `lazy` and `__init__` write to `__dict__` directly, so that reading attributes costs nothing extra.

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name!r} cannot be set: a {type(self).__name__} is read-only")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name!r} cannot be deleted: a {type(self).__name__} is read-only")


class PredictedPosition:
    """A position that only a learned model predicts, after an illegal action. Actions have numbers, but no text."""

    def __repr__(self) -> str:
        return "<position predicted by a model>"


PREDICTED_POSITION = PredictedPosition()


def predicted_successor(state: Any, action: int, info: GameInfo) -> Any:
    """Returns the position after a searched action; `PREDICTED_POSITION` if the action is illegal."""
    if not _is_legal(state, action, info):
        return PREDICTED_POSITION
    return state.play(action) if info.compiled else play(state, action, info.name)


def searched_action_text(state: Any, action: int, info: GameInfo) -> str:
    """Returns the text of a searched action; its number if it is illegal."""
    return move_text(state, action) if _is_legal(state, action, info) else str(action)


def is_beyond_rules(state: Any, action: int, info: GameInfo) -> bool:
    """Whether a predicted line leaves the rules of the game here: past its end, or by an illegal action."""
    return info.is_learned_model and hasattr(state, "legal_actions") and not _is_legal(state, action, info)


def _is_legal(state: Any, action: int, info: GameInfo) -> bool:
    """Whether a searched action is legal; below the root of a learned model it may not be."""
    if not info.is_learned_model:
        return True
    with as_contract_error(info, "while checking a searched action"):
        return hasattr(state, "legal_actions") and not state.is_terminal and action in state.legal_actions()


class Node(ReadOnly):
    """A read-only node of the tree. `total_value` and `q_value` are for the player to move **at this node**; those of a
    chance node (`is_chance`), and of its proven result, for player 0.
    """

    _view: TreeView
    _info: GameInfo
    _root_state: Any
    _parent: Node | None
    _action: int | None
    _edge: dict[str, Any]
    _index: int

    def __init__(
        self, view: TreeView, info: GameInfo, state: Any, parent: Node | None, action: int | None, edge: dict[str, Any]
    ) -> None:
        self.__dict__.update(
            _view=view, _info=info, _root_state=state, _parent=parent, _action=action, _edge=edge, _index=edge["child"]
        )

    @classmethod
    def of_root(cls, view: TreeView, state: Any, info: GameInfo) -> Node:
        """Returns the root of a tree."""
        return cls(view, info, state, None, None, {"child": 0, "visits": int(view.root_visits), "prior": 1.0})

    @classmethod
    def at(cls, view: TreeView, state: Any, info: GameInfo, path: Sequence[int]) -> Node:
        """Returns the node that a path of actions from the root leads to."""
        node = cls.of_root(view, state, info)
        for action in path:
            node = node.children[action]
        return node

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the whole tree as columns, and the path from its root to this node, for pickle and copy."""
        path: list[int] = []
        node = self
        while node.parent is not None:
            assert node.action is not None
            path.append(node.action)
            node = node.parent
        return type(self).at, (self._view, node._root_state, self._info, tuple(reversed(path)))

    @property
    def parent(self) -> Node | None:
        """The parent node; None at the root."""
        return self._parent

    @property
    def action(self) -> int | None:
        """The action that leads to this node; None at the root."""
        return self._action

    @lazy
    def _header(self) -> tuple[Any, ...] | None:
        """The engine's node; None for a leaf with one visit, for which UCT stores no node."""
        return None if self._index < 0 else self._view.node(self._index)

    @property
    def visit_count(self) -> int:
        """The number of visits, N."""
        return int(self._edge["visits"])

    @property
    def prior(self) -> float:
        """The prior P that selection used; 1 at the root. In UCT it is uniform. For an outcome its probability."""
        return float(self._edge["prior"])

    @property
    def clean_prior(self) -> float:
        """The prior P without noise."""
        if self.parent is None or self.parent.parent is not None:
            return self.prior
        return float(dict(self._view.clean_priors).get(self.action or 0, self.prior))

    @lazy
    def to_play(self) -> int:
        """The player to move at this node; `pondertree.CHANCE` (-1) at a chance node."""
        if self._header is not None:
            return int(self._header[1])
        assert self.parent is not None
        # Not stored for an unvisited move, nor for a leaf with one visit; players alternate in compiled games.
        with as_contract_error(self._info, "while reading to_play"):
            alternates = self._info.compiled and not self._info.has_chance
            known = None if alternates else getattr(self.state, "to_play", None)
            return self._info.num_players - 1 - self.parent.to_play if known is None else operator.index(known)

    @property
    def is_chance(self) -> bool:
        """Whether this is a chance node: its children are outcomes, and its values are for player 0."""
        return self._info.has_chance and not self.is_terminal and self.to_play == CHANCE

    @property
    def _owner(self) -> int:
        """The player whose values the node has: the player to move; player 0 at a chance node."""
        return perspective(self.to_play)

    @property
    def raw_value(self) -> float:
        """The value of the evaluation of this node, for the player to move here."""
        return self.total_value if self._header is None else float(self._header[0])

    @lazy
    def total_value(self) -> float:
        """W: the sum of all values backed up through this node, for the player to move here."""
        if self.parent is not None and self._info.is_two_player_zero_sum:
            chosen = float(self._edge["sum"]) / self._view.edge_discount(self.parent._index)
            return chosen if self._owner == self.parent._owner else -chosen
        if self._header is None:
            return 0.0
        if self.is_terminal:
            return self.raw_value * self.visit_count
        return float(self._view.node_sum(self._index, self.visit_count))

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
        """Plies to the end of the game, if the result is proven."""
        return None if self._header is None or self._header[3] is None else int(self._header[4])

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over at this node."""
        return self._header is not None and bool(self._header[2])

    @property
    def terminal_or_mate_value(self) -> float | None:
        """The exact value for the player to move here, from the end of the game, a mate or a proof; None if unknown."""
        if self.is_terminal:
            return self.raw_value
        return None if self.proven is None else float(self.proven)

    @property
    def nn_value(self) -> float | None:
        """The evaluator's value of this node, for the player to move here; None if it was not evaluated."""
        header = self._header
        inner = header is not None and header[5] > 0 and not self.is_terminal and not self.is_chance
        evaluated = inner and self.visit_count > 0
        if evaluated and self.parent is None and not self._view.edges(0)[3].any():
            # Searches without priors do not evaluate the root.
            return None
        return self.raw_value if evaluated else None

    @property
    def category(self) -> IntEnum | None:
        """`MoveCategory` of the move that leads here (Hybrid); None at the root and in searches without categories."""
        categories = self._info.move_categories
        if self.parent is None or categories is None or not self._view.has_categories:
            return None
        # Categories are assigned when the parent is evaluated; a mate search may decide the root before.
        if self.parent.nn_value is None and self.terminal_or_mate_value != -1.0:
            return None
        return categories(self._edge["category"])

    @property
    def forced_depth_left(self) -> int:
        """The number of further plies in which only forced moves are searched (the UCT specification)."""
        if self._header is not None:
            return int(self._header[7])
        return 0 if self.parent is None else max(self.parent.forced_depth_left - 1, 0)

    @property
    def reward(self) -> float:
        """The reward of the move to this node, for the player who made it; 0 in games without rewards."""
        if self._header is None or self.parent is None or not self._header[9]:
            return 0.0
        rewards = self._header[9]
        # A learned model gives one reward, for the player who made the move.
        return float(rewards[self.parent._owner] if len(rewards) > 1 else rewards[0])

    @property
    def slot(self) -> int | None:
        """The slot of this position in the table of a Python game, or in the pool of hidden states."""
        return None if self._header is None else self._header[8]

    @lazy
    def state(self) -> Any:
        """The state at this node; `PREDICTED_POSITION` in a learned model after an illegal action."""
        # Iterative, from the nearest ancestor with a known state: trees may be deeper than the recursion limit.
        line: list[Node] = []
        node: Node = self
        while node.parent is not None and "state" not in node.__dict__:
            line.append(node)
            node = node.parent
        state = node._root_state if node.parent is None else node.state
        for below in reversed(line):
            assert below.action is not None
            state = predicted_successor(state, below.action, self._info)
            if below is not self:
                below.__dict__["state"] = state
        return state

    @property
    def move(self) -> str:
        """The move to this node in the game's notation."""
        if self.parent is None or self.action is None:
            return ""
        return searched_action_text(self.parent.state, self.action, self._info)

    @lazy
    def children(self) -> Mapping[int, Node]:
        """The child of each action: visited ones in the order of their first visit, then those with a prior alone."""
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
        """Leaves in flight below this node; 0 when no search is running."""
        return int(self._edge.get("in_flight", 0))

    def to_text(self, depth: int = 2, width: int = 5) -> str:
        """Returns the top of the tree as text."""
        from pondertree.drawing import to_text

        return to_text(self, depth, width)

    def to_dot(self, depth: int = 2, width: int = 4) -> str:
        """Returns the top of the tree in Graphviz's DOT language."""
        from pondertree.drawing import to_dot

        return to_dot(self, depth, width)

    def to_svg(self, depth: int = 2, width: int = 4) -> str:
        """Returns the top of the tree as an SVG picture."""
        from pondertree.drawing import to_svg

        return to_svg(self, depth, width)

    def _repr_svg_(self) -> str:
        from pondertree.drawing import NOTEBOOK_DEPTH, NOTEBOOK_WIDTH

        return self.to_svg(NOTEBOOK_DEPTH, NOTEBOOK_WIDTH)

    def to_json(self, depth: int | None = None, width: int | None = None) -> str:
        """Returns the tree, or its top, as JSON."""
        from pondertree.drawing import to_json

        return to_json(self, depth, width)

    def __repr__(self) -> str:
        name = self.move or "root"
        return f"<Node {name}: visits {self.visit_count}, value {self.q_value:+.3f}>"
