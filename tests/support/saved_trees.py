"""Cases of the tests of saved trees: searches, roots, steps, and everything that a tree holds as plain data."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from examples.games.coin_row import CoinRow
from tests.search.test_root_actions import Hashed
from tests.support.exact_models import LargeActionModel, TabularDecisionModel
from tests.support.search_helpers import PythonGame, after, random_position

import pondertree
from pondertree.chess import MCTS, MoveScores, Pesto, PestoPolicy
from pondertree.errors import GameOverError
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import Breakthrough, Chess, ConnectFour, Hex, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame


class NestedModel:
    """A model whose hidden states are a dict of a tuple of arrays of two dtypes."""

    def __init__(self) -> None:
        self.inside = LargeActionModel(6)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden, *rest = self.inside.initial_inference(observations)
        return self.nest(hidden), *rest

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        hidden, *rest = self.inside.recurrent_inference(hidden["x"][1], actions)
        return self.nest(hidden), *rest

    def nest(self, hidden: Any) -> Any:
        return {"x": (hidden[:, 0].astype(np.float32) / 7, hidden), "y": None}


@dataclass
class Case:
    """A search for a seed, and the arguments of `tree`."""

    search: Callable[[int], Any]
    root: Callable[[], Any] = ConnectFour
    arguments: dict[str, Any] = field(default_factory=dict)
    noise: bool = False
    """Whether noise can be added."""

    def plant(self, seed: int, root: Any = None) -> Any:
        state = self.root() if root is None else root
        if isinstance(state, np.ndarray):
            return self.search(seed).tree(observation=state, **self.arguments)
        return self.search(seed).tree(state, **self.arguments)


def uct(**options: Any) -> Callable[[int], Any]:
    return lambda seed: pondertree.UCT(seed=seed, **options)


def alphazero(evaluator: Callable[[], Any], **options: Any) -> Callable[[int], Any]:
    return lambda seed: pondertree.AlphaZero(evaluator(), seed=seed, **options)


def gumbel(evaluator: Callable[[], Any], **options: Any) -> Callable[[int], Any]:
    return lambda seed: pondertree.Gumbel(evaluator(), seed=seed, **options)


def muzero(model: Callable[[], Any], **options: Any) -> Callable[[int], Any]:
    return lambda seed: pondertree.MuZero(model(), seed=seed, **{"num_players": 1, **options})


def hybrid(**options: Any) -> Callable[[int], Any]:
    return lambda seed: pondertree.Hybrid(seed=seed, **options)


OBSERVATION = np.array([3.0, 1.0])
ENDING = "8/8/8/8/4k3/8/3R4/4K3 w - - 0 1"
MATE = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"
#: Trees whose file holds everything.
COMPLETE = {
    **{
        f"uct {start().__class__.__name__}": Case(uct(), start)
        for start in (TicTacToe, ConnectFour, Othello, Breakthrough, lambda: Hex(5), Chess)
    },
    "uct unsolved": Case(uct(solve=False), lambda: after(ConnectFour(), "4 1 4 1")),
    "uct solved": Case(uct(), lambda: after(ConnectFour(), "4 1 4 1")),
    "uct in flight": Case(uct(in_flight=5, threads=2), Othello),
    "uct minimax": Case(uct(minimax_depth=3), lambda: after(ConnectFour(), "4 1 4 1")),
    "uct forced": Case(uct(forced_depth=3), lambda: after(ConnectFour(), "4 1 4")),
    "uct max_nodes": Case(uct(max_nodes=40)),
    "uct max_memory": Case(uct(max_memory=0.03)),
    "uct early": Case(uct(early_stop=True)),
    "uct trace": Case(uct(trace=True), TicTacToe),
    "uct cut": Case(uct(max_depth=4, playout_policy="decisive"), ConnectFour),
    "uct root_actions": Case(uct(), ConnectFour, {"root_actions": [1, 5]}),
    "uct seeds": Case(uct(), ConnectFour, {"seeds": 77}),
    "uct pesto": Case(uct(evaluator=Pesto()), Chess),
    "alphazero": Case(alphazero(Uniform), Othello, noise=True),
    "alphazero rollout": Case(alphazero(Rollout, in_flight=3, forced_playouts=2.0), noise=True),
    "alphazero trace": Case(alphazero(Uniform, trace=True, fpu=("parent", 0.2)), TicTacToe, noise=True),
    "alphazero pesto": Case(alphazero(Pesto.published, dirichlet_alpha=("total", 10.0)), Chess, noise=True),
    "mcts": Case(lambda seed: MCTS(Uniform(), seed=seed), Chess, noise=True),
    "gumbel": Case(gumbel(Rollout), Othello, noise=True),
    "gumbel given": Case(gumbel(Uniform, gumbel=np.linspace(-1.0, 2.0, 7)), ConnectFour, noise=True),
    "hybrid": Case(hybrid(), lambda: after(Chess(), "e4 e5")),
    "hybrid strict": Case(hybrid(priority="strict", num_simulations=300), Chess),
    "hybrid tactical": Case(
        hybrid(priority="tactical", in_flight=3, move_scores=MoveScores([7] * len(MoveScores().weights))), Chess
    ),
    "hybrid memory": Case(hybrid(max_memory=0.4, mate_search_budget=200), lambda: Chess(ENDING)),
    "hybrid mate": Case(hybrid(), lambda: Chess(MATE)),
    "hybrid policy": Case(hybrid(policy_network=PestoPolicy(quiescence=True), evaluator=None), Chess),
}
#: Trees whose file needs `search=`.
WITH_SEARCH = {
    "uct evaluator": Case(uct(evaluator=Hashed(), max_depth=2), ConnectFour),
    "alphazero hashed": Case(alphazero(Hashed, in_flight=4), ConnectFour, noise=True),
    "gumbel hashed": Case(gumbel(Hashed, in_flight=2), ConnectFour, noise=True),
    "muzero": Case(muzero(lambda: TabularDecisionModel(3), in_flight=2), lambda: OBSERVATION[:1], noise=True),
    "muzero tree": Case(muzero(lambda: LargeActionModel(9), normalize="tree"), lambda: OBSERVATION, noise=True),
    "muzero memory": Case(muzero(lambda: LargeActionModel(9), max_memory=0.03), lambda: OBSERVATION, noise=True),
    "muzero nested": Case(muzero(NestedModel, trace=True), lambda: OBSERVATION, noise=True),
    "gumbel model": Case(gumbel(lambda: LargeActionModel(40), num_players=2), lambda: OBSERVATION, noise=True),
    "muzero state": Case(muzero(lambda: LargeActionModel(9), num_players=2), TicTacToe, noise=True),
}
#: Trees whose file needs `state=`.
WITH_STATE = {
    "python": Case(uct(), lambda: PythonGame(ConnectFour())),
    "python forced": Case(uct(forced_depth=3), lambda: PythonGame(after(ConnectFour(), "4 1 4"))),
    "python minimax": Case(uct(minimax_depth=2), lambda: PythonGame(after(ConnectFour(), "4 1 4"))),
    "python root_actions": Case(uct(in_flight=2), lambda: PythonGame(Othello()), {"root_actions": [19, 26]}),
    "three players": Case(uct(in_flight=3), CoinRow),
    "rewards": Case(uct(max_memory=0.02), TabularGame(3, players=2, rewards=True).start),
    "python alphazero": Case(alphazero(Uniform), lambda: PythonGame(TicTacToe()), noise=True),
    "python gumbel": Case(gumbel(Uniform), lambda: PythonGame(TicTacToe()), noise=True),
}
CASES = {**COMPLETE, **WITH_SEARCH, **WITH_STATE}

Step = tuple[str, int]


def run_steps(tree: Any, steps: Sequence[Step], noise: bool) -> None:
    """Runs simulations, with noise (True, False) or without a change, some of a search of twelve, and moves."""
    for kind, number in steps:
        if kind == "advance":
            result = tree.result()
            actions, visits = result.edges.actions, result.edges.visits
            try:
                tree.advance(int(actions[np.argsort(-visits, kind="stable")[number % len(actions)]]))
            except GameOverError:
                continue
        elif kind == "reset":
            if hasattr(tree.state, "legal_actions"):
                tree.reset(tree.state)
        elif kind == "step":
            for _ in range(number % 8):
                tree.step(of=12)
        else:
            tree.simulate(number, add_noise={"noise": True, "clean": False}.get(kind) if noise else None)


def everything(tree: Any) -> dict[str, Any]:
    """Returns all that a tree holds as plain data and bytes, except its time."""
    data, columns = tree._saved()
    del data["elapsed"]
    contents = {name: (column.dtype.str, column.shape, column.tobytes()) for name, column in columns.items()}
    return {"data": data, "repr": repr(tree), "bytes": tree.result().memory, **contents}


def reload_file(case: Case, name: str, tree: Any, folder: Path, start: Any) -> Any:
    """Returns the tree, written to a file and read again."""
    path = folder / "x.tree"
    tree.save(path)
    search = case.search(98) if name in WITH_SEARCH else None
    return pondertree.load_tree(path, search, start if name in WITH_STATE else None)


RELOADS: dict[str, Callable[..., Any]] = {
    "file": reload_file,
    "pickle": lambda case, name, tree, folder, start: pickle.loads(pickle.dumps(tree)),
    "copy": lambda case, name, tree, folder, start: copy.copy(tree),
    "deepcopy": lambda case, name, tree, folder, start: copy.deepcopy(tree),
}


def random_root(case: Case, plies: int, seed: int) -> Any:
    """Returns the root of a case after random moves, if it is a game."""
    state = case.root()
    return state if isinstance(state, np.ndarray) or case.arguments else random_position(lambda: state, plies, seed)
