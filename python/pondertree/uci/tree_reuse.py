"""The tree that is kept from one `go` to the next."""

from __future__ import annotations

import time
from typing import Any

from pondertree.search.base import Search
from pondertree.search.tree import Tree
from pondertree.uci.options import Options, build
from pondertree.uci.position import Game


class Kept:
    """A search and its tree. Used by one thread at a time."""

    def __init__(self) -> None:
        self._search: Search | None = None
        self._key: tuple[Any, ...] | None = None
        self._tree: Tree | None = None
        self._game: Game | None = None
        #: The moves that are searched at the root, where `searchmoves` named some.
        self._among: frozenset[int] | None = None

    def renewed(self) -> Kept:
        """Without a tree, as for a new game: the search draws its random numbers from the beginning."""
        fresh = Kept()
        if self._search is not None:
            fresh._search, fresh._key = self._search.with_seed(self._search.drawn_seed), self._key
        return fresh

    def forget(self) -> None:
        """Drops the tree."""
        self._tree = self._game = self._among = None

    def prepare(self, options: Options) -> Search:
        """The search that the options ask for: made, if it is another one than before, which can take a while."""
        if self._search is None or self._key != options.search_key:
            self.forget()
            self._search, self._key = None, None
            self._search, self._key = build(options), options.search_key
        return self._search

    def expected(self, options: Options, game: Game) -> str | None:
        """What the kept tree would play now, read off where it stands: to move a large tree takes time."""
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

    def tree(self, options: Options, game: Game, among: frozenset[int] | None) -> Tree:
        """The tree of a game that is not over; what is known of it from the last search is kept."""
        search = self.prepare(options)
        tree = self._advanced(game, among) or _restricted(search.tree(game.state), among)
        self._tree, self._game, self._among = tree, game, among
        return tree

    def other_tree(self, options: Options, game: Game, among: frozenset[int]) -> Tree:
        """A tree of some moves alone, beside the one that is kept."""
        return _restricted(self.prepare(options).tree(game.state), among)

    def _advanced(self, game: Game, among: frozenset[int] | None) -> Tree | None:
        """The kept tree, moved on to the present position; None if it is of no use."""
        tree, before, among_before = self._tree, self._game, self._among
        # Should anything go wrong on the way, nothing half done stays behind.
        self.forget()
        moves = None if before is None else game.moves_since(before)
        if tree is None or moves is None:
            return None
        for move in moves:
            action = tree.state.parse_action(move)
            if tree.state.play(action).is_terminal:
                return None
            tree.advance(action)
            among_before = None
        if among_before == among:
            return tree
        # A root that is decided has no priors, and whatever decided it may rest on moves that are not to be searched.
        if among_before is not None or tree.result().proven is not None:
            return None
        return _restricted(tree, among)


def _restricted(tree: Tree, among: frozenset[int] | None) -> Tree:
    """The tree with only some of its root's moves, if some were named."""
    if among is not None:
        tree.restrict(sorted(among))
    return tree


#: Walks may take this part of the time.
PART = 0.02
#: A walk that takes as many seconds is not made between `stop` and its answer.
LONG = 0.01


class Depth:
    """The depth of a tree, as it was last measured: the mean of its simulations, rounded, and the deepest position."""

    def __init__(self, arrived: float) -> None:
        self.mean = self.most = 1
        self._arrived = arrived
        self._together = self._last = 0.0

    def measure(self, tree: Tree, at_the_end: bool = False) -> int:
        """The mean depth; measured anew, unless that would cost too much."""
        begun = time.perf_counter()
        worth_it = self._last < LONG if at_the_end else begun - self._arrived >= self._together / PART
        if worth_it:
            mean, most = tree.depths()
            self.mean, self.most = max(round(mean), 1), max(most, 1)
            self._last = time.perf_counter() - begun
            self._together += self._last
        return self.mean
