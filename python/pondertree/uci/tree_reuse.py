"""Tree reuse from one `go` to the next."""

from __future__ import annotations

from typing import Any

from pondertree.search.base import Search
from pondertree.search.tree import Tree
from pondertree.uci.options import Options, build
from pondertree.uci.position import UciGame


class TreeReuse:
    """A search and its tree. Not thread-safe."""

    def __init__(self) -> None:
        self._search: Search | None = None
        self._key: tuple[Any, ...] | None = None
        self._tree: Tree | None = None
        self._game: UciGame | None = None
        #: The root actions of `searchmoves`; None for all.
        self._root_actions: frozenset[int] | None = None

    def for_new_game(self) -> TreeReuse:
        """Returns a copy without a tree, whose search restarts its random number sequence."""
        fresh = TreeReuse()
        if self._search is not None:
            fresh._search, fresh._key = self._search.with_seed(self._search.drawn_seed), self._key
        return fresh

    def clear(self) -> None:
        """Discards the tree."""
        self._tree = self._game = self._root_actions = None

    def prepare(self, options: Options) -> Search:
        """Returns the search of the options; building a new one, after a change, may take time."""
        if self._search is None or self._key != options.search_key:
            self.clear()
            self._search, self._key = None, None
            self._search, self._key = build(options), options.search_key
        return self._search

    def expected(self, options: Options, game: UciGame) -> str | None:
        """Returns the best move in `game` by the current tree, without advancing it, which takes time."""
        tree, before = self._tree, self._game
        moves = None if before is None else game.moves_since(before)
        if tree is None or moves is None or self._key != options.search_key:
            return None
        state, path = tree.state, []
        for move in moves:
            path.append(state.parse_action(move))
            state = state.play(path[-1])
            if state.is_terminal:
                return None
        best = tree.result().most_visited(path)
        return None if best is None else state.action_to_string(best)

    def tree(self, options: Options, game: UciGame, root_actions: frozenset[int] | None) -> Tree:
        """Returns the tree of an unfinished game, with the statistics of the previous search."""
        search = self.prepare(options)
        tree = self._advance(game, root_actions) or _restrict(search.tree(game.state), root_actions)
        self._tree, self._game, self._root_actions = tree, game, root_actions
        return tree

    def separate_tree(self, options: Options, game: UciGame, root_actions: frozenset[int]) -> Tree:
        """Returns an independent tree restricted to `root_actions`."""
        return _restrict(self.prepare(options).tree(game.state), root_actions)

    def _advance(self, game: UciGame, root_actions: frozenset[int] | None) -> Tree | None:
        """Returns the tree advanced to the current position; None if it cannot be reused."""
        tree, before, previous_actions = self._tree, self._game, self._root_actions
        # Cleared first, so that an error leaves no tree in between.
        self.clear()
        moves = None if before is None else game.moves_since(before)
        if tree is None or moves is None:
            return None
        for move in moves:
            action = tree.state.parse_action(move)
            if tree.state.play(action).is_terminal:
                return None
            tree.advance(action)
            previous_actions = None
        if previous_actions == root_actions:
            return tree
        # A proven root has no priors, and its proof may rest on moves outside `root_actions`.
        if previous_actions is not None or tree.result().proven is not None:
            return None
        return _restrict(tree, root_actions)


def _restrict(tree: Tree, root_actions: frozenset[int] | None) -> Tree:
    """Returns the tree, restricted to `root_actions` if given."""
    if root_actions is not None:
        tree.restrict(sorted(root_actions))
    return tree
