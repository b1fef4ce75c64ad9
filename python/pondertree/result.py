"""The result of a search: the chosen action, statistics of the root, and the tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import Chess, TreeView
from pondertree.errors import UnsearchedWarning, warn_caller
from pondertree.files import write_columns
from pondertree.game import CHANCE, GameInfo, move_text, perspective
from pondertree.games.chess_interop import chess_move
from pondertree.games.saved_root import game_data, root_data
from pondertree.node import Node, ReadOnly, is_beyond_rules, lazy, predicted_successor, searched_action_text

if TYPE_CHECKING:
    import chess

Numbers = TypeVar("Numbers", bound=np.generic)
#: Marks an edge without a proven result in columns of proven results.
UNPROVEN = 2


@dataclass(frozen=True, slots=True)
class MoveStatistics:
    """Statistics of one move at the root; `q` and `proven` are for the player who would make it."""

    action: int
    move: str
    visits: int
    share: float
    """Share of all visits."""
    prior: float
    q: float
    """Mean value, exact where proven; NaN if unvisited."""
    proven: int | None
    distance: int | None
    """Plies to the end of the game, this move included, if the result is proven."""
    pv: tuple[str, ...]
    """The principal variation from this move."""


class NodeEdges(NamedTuple):
    """The edges of a node as columns, one row per legal action in the engine's order.

    `sums`, `q` and `proven` are for the player to move at the node.
    """

    actions: NDArray[np.intp]
    visits: NDArray[np.int64]
    sums: NDArray[np.float64]
    """Backed-up values, added up."""
    priors: NDArray[np.float32]
    q: NDArray[np.float64]
    """Mean value, exact where proven; NaN if unvisited."""
    proven: NDArray[np.int8]
    """-1, 0, +1, or `UNPROVEN`."""
    children: NDArray[np.int64]
    """Numbers of the nodes below; -1 for none."""


class SearchResult(ReadOnly):
    """The result of one search. Arrays run over `num_actions`; values are for the player to move at the root.

    Results and their arrays are read-only.
    """

    _view: TreeView
    _state: Any
    _info: GameInfo
    _tau: float
    _verdicts: list[tuple[int, int]]
    simulations: int
    """Simulations since this root was set; `visits` also counts those of a reused tree."""
    elapsed: float
    """Seconds of search since this root was set."""
    seed: int
    """The seed of the search: a new one with this seed repeats its calls in order; `seeds=` repeats a single call."""

    def __init__(
        self,
        view: TreeView,
        state: Any,
        info: GameInfo,
        temperature: float,
        verdicts: list[tuple[int, int]],
        seed: int,
        elapsed: float,
        simulations: int,
    ) -> None:
        # One update past `__setattr__`: batches have thousands of results.
        self.__dict__.update(
            _view=view,
            _state=state,
            _info=info,
            _tau=temperature,
            _verdicts=verdicts,
            seed=seed,
            elapsed=elapsed,
            simulations=simulations,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments for pickle and copy, the tree as columns, without derived attributes."""
        made_of = self._view, self._state, self._info, self._tau, self._verdicts
        return type(self), (*made_of, self.seed, self.elapsed, self.simulations)

    def _saved_data(self) -> dict[str, Any]:
        """Returns what a file holds beside state, game and tree, as plain data."""
        return {
            "temperature": self._tau,
            "verdicts": self._verdicts,
            "seed": self.seed,
            "elapsed": self.elapsed,
            "simulations": self.simulations,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result with its whole tree to a file, which `load_tree` reads (docs/trees.md)."""
        root, columns = root_data(self._state)
        about = {"kind": "result", "game": game_data(self._info), "root": root, **self._saved_data()}
        write_columns(path, about, {**self._view.columns(), **columns})

    # Everything below is computed on first access: self-play that reads only moves pays for nothing else.

    @lazy
    def _best(self) -> tuple[int, int]:
        """(Index of the edge, action) of the best move."""
        return self._view.choose(0.0, self._verdicts)

    @lazy
    def _chosen(self) -> tuple[int, int]:
        """(Index of the edge, action) of the move to play."""
        return self._best if self._tau == 0.0 else self._view.choose(self._tau, self._verdicts)

    @lazy
    def action(self) -> int:
        """The action to play; a tree without simulations gives an `UnsearchedWarning`."""
        self._warn_if_unsearched()
        return self._chosen[1]

    @property
    def _is_unsearched(self) -> bool:
        """Whether no move has a visit although there are several and nothing is proven."""
        view = self._view
        return view.positions == 1 and view.proven is None and len(self.edges.actions) > 1 and not self.visits.any()

    def _warn_if_unsearched(self) -> None:
        """Issues one `UnsearchedWarning` per result."""
        if "_warned" not in self.__dict__ and self._is_unsearched:
            self.__dict__["_warned"] = True
            warn_caller(
                "no simulation was done from this root, so that its result has no visits behind it: simulate first, "
                "or check time_limit, max_nodes and max_memory",
                UnsearchedWarning,
            )

    @lazy
    def value(self) -> float:
        """Value of the root for the player to move there."""
        return self._view.value

    @lazy
    def values(self) -> tuple[float, ...]:
        """Value of the root for each player; that of the player to move is `value`.

        In two-player zero-sum games, one is the negative of the other. In other games, the mean return of each player,
        summed over the whole tree on first access.
        """
        return tuple(self._view.values)

    @lazy
    def proven(self) -> int | None:
        """The proven result for the player to move: -1, 0, +1, or None."""
        return self._view.proven

    @lazy
    def edges(self) -> NodeEdges:
        """The edges of the root as columns."""
        return self.edges_of(0)

    def edges_of(self, node: int) -> NodeEdges:
        """Returns the edges of a node as columns; nodes have the numbers of `window`."""
        actions, visits, sums, priors, children, proven, *_ = self._view.edges(node)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(proven == UNPROVEN, sums / visits, proven.astype(np.float64))
        q = np.where((visits == 0) & (proven == UNPROVEN), np.nan, means)
        return NodeEdges(actions.astype(np.intp), visits.astype(np.int64), sums, priors, q, proven, children)

    def visits_of(self, node: int) -> int:
        """Returns N of a node: the visits of its edges, plus 1 if the node was evaluated before them."""
        is_evaluated = not self.is_chance(node)
        visits = self._view.root_visits if node == 0 else self._view.edges(node)[1].sum() + is_evaluated
        return int(visits)

    def is_chance(self, node: int) -> bool:
        """Whether a node is a chance node."""
        return bool(self._view.node(node)[1] == CHANCE)

    def evaluation_of(self, node: int, child: int) -> tuple[float | None, int]:
        """Returns (the evaluation of the position after a move, plies to the end if the move is proven).

        `child` is a number of `edges_of(node)`; the evaluation is for the player to move at `node`, None if there is
        none. Playouts are evaluations, too. At a chance node it is for player 0.
        """
        if child < 0:
            return None, 1
        to_play = perspective(self._view.node(node)[1])
        value, player, _, _, plies, num_edges, *_ = self._view.node(child)
        is_evaluated = num_edges > 0 and player != CHANCE
        is_known = is_evaluated and (player == to_play or (self._info.num_players <= 2 and self._info.zero_sum))
        return (value if player == to_play else -value) if is_known else None, plies + 1

    @property
    def best_row(self) -> int:
        """The row of the best action in `edges`, whatever the temperature."""
        return self._best[0]

    @lazy
    def move(self) -> str:
        """The move to play in the game's notation."""
        return move_text(self._state, self.action)

    @property
    def chess_move(self) -> chess.Move:
        """`action` as a `chess.Move` of python-chess, in searches of chess."""
        if not isinstance(self._state, Chess):
            raise AttributeError(
                f"chess_move is for results of chess, and this one is of {self._info.name}: use `action` or `move`"
            )
        return chess_move(self._state, self.action)

    @lazy
    def visits(self) -> NDArray[np.int64]:
        """Visits of each action."""
        return _fixed(self._view.visits(self._info.num_actions))

    @lazy
    def q(self) -> NDArray[np.float64]:
        """Mean value of each action, exact where proven; NaN if unvisited."""
        q = np.full(self._info.num_actions, np.nan)
        q[self.edges.actions] = self.edges.q
        return _fixed(q)

    def policy_at(self, tau: float) -> NDArray[np.float64]:
        """Returns `policy` (Gumbel: the improved one) to the power 1/tau, normalised; 0 is one-hot on the best move."""
        tau = validation.temperature(tau, "tau")
        self._warn_if_unsearched()
        return self._view.policy(tau, self._best[0], self._info.num_actions)

    @lazy
    def policy(self) -> NDArray[np.float64]:
        """Share of visits of each action, whatever the temperature, corrected by proven results."""
        self._warn_if_unsearched()
        return _fixed(self._view.policy(1.0, self._best[0], self._info.num_actions))

    @property
    def pv(self) -> list[str]:
        """The principal variation from `move`, in the game's notation.

        It ends at the first chance node, where nothing is chosen, and where a predicted move is illegal.
        """
        return list(self._pv)

    @lazy
    def _pv(self) -> tuple[str, ...]:
        return tuple(self.line(self._chosen[0]))

    def line(self, row: int, most: int | None = None, write: Callable[[Any, int], str] | None = None) -> list[str]:
        """The principal variation through the root's edge in this row of `edges`, as move texts; at most `most` moves.

        `write(state, action)` returns the text of a move; by default it is in the game's notation.
        """
        texts = []
        state = self._state
        for action in self._view.principal_variation(row)[:most]:
            if is_beyond_rules(state, action, self._info):
                break  # the model's line continues past the rules of the game
            texts.append((write or self._write)(state, action))
            state = predicted_successor(state, action, self._info)
        return texts

    def _write(self, state: Any, action: int) -> str:
        return searched_action_text(state, action, self._info)

    @property
    def clean_priors(self) -> dict[int, float]:
        """The priors of the root's actions without noise; empty if there is no noise."""
        return dict(self._view.clean_priors)

    def distance(self, row: int) -> int:
        """Plies to the end through the root's edge in this row of `edges`; meaningful where it is proven."""
        child = int(self._view.edges(0)[4][row])
        return 1 + (int(self._view.node(child)[4]) if child >= 0 else 0)

    def most_visited(self, path: Sequence[int]) -> int | None:
        """The most visited action, proven losses left out, of the node at the end of `path`, actions from the
        root; None if the tree does not contain it. No `Node` is created.
        """
        node = 0
        for action in path:
            edges = self._view.edges(node)
            children = edges[4][edges[0] == action]
            node = int(children[0]) if len(children) else -1
            if node < 0:
                return None
        actions, visits, _, _, _, proven, *_ = self._view.edges(node)
        counts = np.where(proven == -1, 0, visits)
        most, best = max(zip(counts.tolist(), actions.tolist(), strict=True), default=(0, 0))
        return int(best) if most > 0 else None

    def window(
        self,
        max_rows: int,
        min_visits: int = 1,
        opened: Collection[int] = (),
        closed: Collection[int] = (),
        *,
        follow: bool,
    ) -> dict[str, NDArray[Any]]:
        """The most visited positions as columns, parents before children, without creating a `Node`.

        Row 0 is the root; the others are edges, with the statistics of their players. `opened` and `closed` are numbers
        of nodes (column `node`) whose children are shown before all others, or not at all; with `follow`, the principal
        variation is always shown. `proven` is `UNPROVEN` without a result.
        """
        line = self._view.principal_variation(self._best[0])
        return self._view.window(max_rows, min_visits, list(opened), list(closed), line, follow)

    def depths(self) -> tuple[float, int]:
        """The mean depth of the simulations and the largest depth, in plies; walks the whole tree."""
        return self._view.depths()

    @property
    def moves(self) -> list[MoveStatistics]:
        """Statistics of every move at the root, the most visited first."""
        return list(self._moves)

    @lazy
    def _moves(self) -> tuple[MoveStatistics, ...]:
        root = self.root
        total = max(int(self.visits.sum()), 1)
        rows = []
        for place, action in enumerate(self.edges.actions.tolist()):
            child = root.children.get(action)
            flip = -1 if child is not None and perspective(child.to_play) != root.to_play else 1
            proven = None if child is None or child.proven is None else flip * child.proven
            rows.append(
                MoveStatistics(
                    action=action,
                    move=move_text(self._state, action),
                    visits=int(self.visits[action]),
                    share=int(self.visits[action]) / total,
                    prior=1.0 / len(self.edges.actions) if child is None else child.prior,
                    q=float(self.q[action]),
                    proven=proven,
                    distance=None if child is None or child.distance is None else child.distance + 1,
                    pv=tuple(self.line(place)),
                )
            )
        return tuple(sorted(rows, key=lambda row: -row.visits))

    @lazy
    def root(self) -> Node:
        """The root of the tree: a snapshot, which does not change when the search continues."""
        return Node.of_root(self._view, self._state, self._info)

    @property
    def num_positions(self) -> int:
        """Number of positions in the tree: the root and every move that was searched at least once."""
        return int(self._view.positions)

    @property
    def memory(self) -> int:
        """Allocated bytes of the tree."""
        return int(self._view.bytes)

    def _repr_html_(self) -> str:
        from pondertree.drawing import to_html

        action = None if self._is_unsearched else self._chosen[1]
        summary = f"{self.simulations:,} simulations in {self.elapsed:.2f} s, seed {self.seed}"
        return to_html(self.root, self.moves, action, summary)

    def __repr__(self) -> str:
        # Not `action`, which warns of a tree without simulations.
        action = self._chosen[1]
        visits = int(self.visits.sum())
        share = self.visits[action] / max(visits, 1)
        proven = "" if self.proven is None else f", proven {self.proven:+d}"
        return (
            f"SearchResult(move={move_text(self._state, action)!r}, value={self.value:+.3f}{proven}, "
            f"visits={share:.0%} of {visits}, pv={' '.join(self.pv[:6])!r})"
        )


def _fixed(array: NDArray[Numbers]) -> NDArray[Numbers]:
    """Returns the array, made read-only."""
    array.flags.writeable = False
    return array
