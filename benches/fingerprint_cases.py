"""The searches of `fingerprints.py`: every preset, compiled and Python games, evaluators and models, and their options.

Each case is a function that writes what it computes to a `Transcript`. Only public names are used, so that the same
file runs against other versions of the package.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import tic_tac_toe
from exact import (
    GeneralSumGame,
    HashGame,
    RewardGame,
    TableEvaluator,
    TableModel,
    TablePackedEvaluator,
    TablePolicyNetwork,
    TableStateEvaluator,
    mix,
)

import pondertree
from pondertree import UCT, AlphaZero, Gumbel, Hybrid, MuZero, chess, evaluators, games

Options = Mapping[str, Any]
#: Clean priors of more moves are recorded only where the moves were visited: each is a lookup among all of them.
MOST_CLEAN_PRIORS = 100


@dataclass
class Transcript:
    """What a case computed, as lines of text; floats in their shortest exact form."""

    answers: list[str] = field(default_factory=list)
    """What callers act on: simulations, visits, actions."""
    lines: list[str] = field(default_factory=list)
    """Everything, the answers included."""
    failed: bool = False
    """The case raised an exception."""

    def write(self, *values: Any) -> None:
        """Adds a line."""
        self.lines.append(" ".join(map(plain, values)))

    def answer(self, *values: Any) -> None:
        """Adds a line that belongs to the answers."""
        self.write(*values)
        self.answers.append(self.lines[-1])

    def result(self, result: Any) -> None:
        """Adds a search result with its whole tree."""
        self.answer("simulations", result.simulations, "action", result.action, "move", result.move)
        self.answer("visits", sparse(result.visits))
        self.write("value", result.value, "values", result.values, "proven", result.proven, "seed", result.seed)
        self.write("q", sparse(result.q))
        self.write("policy", sparse(result.policy), "at 0.5", sparse(result.policy_at(0.5)))
        self.write("pv", result.pv)
        for row in result.moves[:8]:
            statistics = (row.share, row.prior, row.q, row.proven, row.distance, row.pv)
            self.write("move", row.action, row.move, row.visits, *statistics)
        self.tree(result.root)

    def tree(self, root: Any) -> None:
        """Adds every node in the order of the engine's edges; moves never tried as pairs of action and prior."""
        stack = [(root, 0)]
        while stack:
            node, depth = stack.pop()
            children = node.children
            tried = [child for child in children.values() if child.visit_count]
            untried = [(action, child.prior) for action, child in children.items() if not child.visit_count]
            self.write(
                "node",
                depth,
                node.action,
                node.to_play,
                node.visit_count,
                node.total_value,
                node.q_value,
                node.prior,
                node.raw_value,
                node.nn_value,
                node.reward,
                node.proven,
                node.distance,
                node.is_terminal,
                node.terminal_or_mate_value,
                node.in_flight,
                node.forced_depth_left,
                None if node.category is None else int(node.category),
                untried,
            )
            if node.parent is None:
                shown = children.values() if len(children) <= MOST_CLEAN_PRIORS else tried
                self.write("clean priors", [child.clean_prior for child in shown])
            stack.extend((child, depth + 1) for child in reversed(tried))

    def digests(self) -> str:
        """Hashes of the answers and of everything."""
        return f"{_digest(self.answers, 4)} {_digest(self.lines, 6)}"


def _digest(lines: Sequence[str], size: int) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=size).hexdigest()


def plain(value: Any) -> str:
    """Text that does not depend on NumPy's formatting of scalars."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(plain, value))}]"
    return str(value) if isinstance(value, str) else repr(value)


def sparse(array: Any) -> list[tuple[int, Any]]:
    """The entries that are neither 0 nor NaN, with their places."""
    entries = enumerate(np.asarray(array).tolist())
    return [(place, entry) for place, entry in entries if not (entry == 0 or math.isnan(entry))]


Case = Callable[[Transcript], None]
STARTS: dict[str, Callable[[], Any]] = {
    "tic_tac_toe": games.TicTacToe,
    "connect_four": games.ConnectFour,
    "othello": games.Othello,
    "chess": games.Chess,
    "python_tic_tac_toe": tic_tac_toe.State,
    "one_player": partial(HashGame, num_players=1, width=5),
    "two_players": partial(HashGame, width=6, length=20),
    "two_players_irregular": partial(HashGame, irregular=True),
    "three_players": partial(HashGame, num_players=3),
    "general_sum": GeneralSumGame,
    "rewards_1": partial(RewardGame, num_players=1),
    "rewards_2": RewardGame,
    "rewards_3": partial(RewardGame, num_players=3, irregular=True),
}
COMPILED = ("tic_tac_toe", "connect_four", "othello", "chess")
PYTHON = tuple(name for name in STARTS if name not in COMPILED)
#: Plies after which wins and losses are near.
LATE = {"tic_tac_toe": 3, "connect_four": 22, "othello": 52, "chess": 1}
ACTIONS = {"tic_tac_toe": 9, "connect_four": 7, "othello": 65, "chess": 4672}

FENS = {
    "middlegame": "r1bq1rk1/pp2bppp/2n1pn2/3p4/2PP4/2N2N2/PP2BPPP/R1BQ1RK1 w - - 0 9",
    "tactics": "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "promotion": "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "pawns": "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "queen_ending": "8/8/8/4k3/8/8/2Q5/4K3 w - - 0 1",
    "pawn_ending": "8/8/8/8/4k3/8/4P3/4K3 w - - 0 1",
    "fifty_moves": "8/8/4k3/8/8/3RK3/8/8 w - - 97 120",
    "mate_in_1": "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1",
    "mate_in_2": "1N6/p6R/5k2/3p4/1p1PP3/1P4P1/1BP1Q3/RN3K2 w - - 0 1",
    "mate_in_2_black": "3K4/k7/8/8/8/2q5/2r5/8 b - - 0 1",
    "mate_in_2_rooks": "2K5/8/k7/5R1R/8/8/2p5/8 w - - 0 1",
}


def position(game: str, plies: int) -> Any:
    """A position after `plies` drawn moves, before an end of the game."""
    state = STARTS[game]()
    for ply in range(plies):
        legal = state.legal_actions()
        after = state.play(legal[mix(plies * 100 + ply) % len(legal)])
        if after.is_terminal:
            break
        state = after
    return state


def board(name: str) -> Any:
    """A chess position by its name."""
    return games.Chess(FENS[name])


def sims(game: str, full: int) -> int:
    """Chess has larger nodes and slower playouts: fewer simulations."""
    return full // 4 if game == "chess" else full


def table(game: str, kind: Callable[..., Any] = TableEvaluator, **options: Any) -> Any:
    """An evaluator for a game."""
    state = STARTS[game]()
    alternating = state.num_players < 3 and game not in ("general_sum", "rewards_2")
    return kind(state.num_actions, num_values=1 if alternating else state.num_players, **options)


def run(search: Callable[[], Any], root: Callable[[], Any], **options: Any) -> Case:
    """One call of `run`."""

    def case(transcript: Transcript) -> None:
        given = root()
        found = search().run(**given, **options) if isinstance(given, dict) else search().run(given, **options)
        for result in found if isinstance(found, list) else [found]:
            transcript.result(result)

    return case


def kept(search: Callable[[], Any], root: Callable[[], Any], moves: int, add_noise: bool | None = None) -> Case:
    """A tree that is kept from move to move: advanced by the best move, the second best and the last in turn."""

    def case(transcript: Transcript) -> None:
        given = root()
        tree = search().tree(**given) if isinstance(given, dict) else search().tree(given)
        for move in range(moves):
            result = tree.simulate(add_noise=add_noise).result()
            transcript.result(result)
            known = list(result.root.children)
            by_visits = sorted(known, key=lambda action: -result.visits[action])
            try:
                tree.advance((result.action, by_visits[:2][-1], known[-1])[move % 3])
            except pondertree.GameOverError:
                break
        transcript.result(tree.simulate(20).result())

    return case


def forest(search: Callable[[], Any], states: Callable[[], Sequence[Any]], **options: Any) -> Case:
    """Trees grown together; some are advanced, one is reset, and all are searched again."""

    def case(transcript: Transcript) -> None:
        roots = states()
        given = {name: options[name] for name in ("seeds", "root_actions") if name in options}
        trees = search().forest(roots, **given)
        noise = options.get("add_noise")
        for _ in range(2):
            trees.simulate(options.get("n"), add_noise=noise)
            transcript.answer("actions", trees.actions(), trees.visits().sum(axis=1))
            transcript.write("values", trees.values(), "policies", [sparse(row) for row in trees.policies()])
            transcript.write("root policies", *trees.root_policies())
            actions = trees.actions().tolist()
            for row, action in enumerate(actions):
                if row % 3 == 1:
                    trees.reset(row, roots[0])
                elif not trees.state(row).play(action).is_terminal:
                    trees.advance(row, action)
        trees.simulate(options.get("n"), add_noise=noise)
        for result in trees.results(temperature=options.get("temperature")):
            transcript.result(result)

    return case


def traced(search: Callable[[], Any], root: Callable[[], Any]) -> Case:
    """Every descent with the scores of all moves."""

    def case(transcript: Transcript) -> None:
        given = root()
        trees = search().forest(**given) if isinstance(given, dict) else search().forest([given])
        trees.simulate()
        for row in trees.trace(0):
            transcript.write("simulation", row["simulation"], row["path"], row["values"], row["scores"])
        transcript.result(trees.result(0))

    return case


def cases() -> dict[str, Case]:
    """All cases by name."""
    found: dict[str, Case] = {}
    groups = (_uct, _alphazero, _gumbel, _muzero, _large, _hybrid, _kept, _forests, _torch, _traces, _entry_points)
    for name, case in (pair for group in groups for pair in group()):
        if name in found:
            raise ValueError(f"two cases are called {name!r}")
        found[name] = case
    return found


def named(prefix: str, options: Options) -> str:
    """A case's name: the options that are not evident from the prefix, objects by their class."""
    shown = (f"{name}={_shown(value)}" for name, value in options.items())
    return " ".join((prefix, *shown))


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | tuple | list | None):
        return str(value).replace(" ", "").replace("'", "")
    return value.__name__ if callable(value) and hasattr(value, "__name__") else type(value).__name__


Cases = Iterator[tuple[str, Case]]

UCT_OPTIONS: tuple[Options, ...] = (
    {},
    {"solve": False},
    {"c_param": 0.4},
    {"in_flight": 4},
    {"in_flight": 16, "threads": 4},
    {"in_flight": 4, "threads": 2, "solve": False},
    {"max_depth": 6},
    {"playout_policy": "decisive"},
    {"minimax_depth": 3, "num_simulations": 12, "solve": False},
    {"forced_depth": 4},
    {"forced_depth": 2, "minimax_depth": 2, "in_flight": 4},
    {"max_nodes": 100},
    {"early_stop": True},
)
#: Positions in which the minimax guard overrules few visits at this depth, and not at one less.
GUARDED = (
    ("tic_tac_toe", 4, 1),
    ("tic_tac_toe", 5, 3),
    ("connect_four", 9, 2),
    ("connect_four", 19, 4),
    ("connect_four", 23, 1),
    ("connect_four", 26, 3),
    ("connect_four", 39, 5),
    ("python_tic_tac_toe", 5, 3),
    ("python_tic_tac_toe", 10, 1),
)
UCT_EVALUATORS: tuple[tuple[str, Options], ...] = (
    ("table", {}),
    ("table", {"max_depth": 3}),
    ("table", {"in_flight": 16, "threads": 2}),
    ("states", {"in_flight": 4}),
    ("uniform", {}),
    ("rollout", {"max_depth": 4}),
)


def _evaluator(kind: str, game: str) -> Any:
    """An evaluator for a game by a short name."""
    makers: dict[str, Callable[[], Any]] = {
        "uniform": evaluators.Uniform,
        "rollout": partial(evaluators.Rollout, 3),
        "table": partial(table, game),
        "ties": partial(table, game, levels=3),
        "probabilities": partial(table, game, policy="probabilities"),
        "states": partial(table, game, TableStateEvaluator),
        "packed": partial(table, game, TablePackedEvaluator),
        "function": lambda: table(game).evaluate,
        "cached": lambda: evaluators.Cached(table(game)),
        "symmetric": lambda: evaluators.Symmetric(table(game), evaluators.symmetries_of(game)),
        "symmetric sample": lambda: evaluators.Symmetric(table(game), evaluators.symmetries_of(game), "sample"),
        "pesto": chess.Pesto,
    }
    return makers[kind]()


def _uct() -> Cases:
    for game in COMPILED:
        for plies in (0, LATE[game]):
            root = partial(board, "mate_in_2") if game == "chess" and plies else partial(position, game, plies)
            for options in UCT_OPTIONS:
                search = partial(UCT, **{"num_simulations": sims(game, 1200), "seed": plies + 1, **options})
                yield named(f"UCT {game} {plies}", options), run(search, root)
        for kind, options in UCT_EVALUATORS:
            # Made anew for each search, because evaluators may hold state.
            search = partial(_with_evaluator, UCT, kind, game, num_simulations=sims(game, 400), seed=3, **options)
            yield named(f"UCT {game} {kind}", options), run(search, partial(position, game, 3))
        search = partial(UCT, sims(game, 120), seed=9)
        some = partial(_first_actions, game, 4, 3)
        yield f"UCT {game} root_actions", run(search, partial(position, game, 4), root_actions=some())
        yield f"UCT {game} temperature", run(search, partial(position, game, 2), temperature=0.7, seeds=5)
    for game, plies, depth in GUARDED:
        guarded = partial(UCT, 4, seed=plies, minimax_depth=depth, solve=False)
        yield f"UCT {game} {plies} minimax guard", run(guarded, partial(position, game, plies))
    for game in PYTHON:
        root = partial(position, game, 1)
        for options in (UCT_OPTIONS[place] for place in (0, 1, 4, 6, 11)):
            yield named(f"UCT {game}", options), run(partial(UCT, 150, seed=2, **options), root)
        if game != "python_tic_tac_toe":
            search = partial(_with_evaluator, UCT, "table", game, num_simulations=100, seed=3, in_flight=4)
            yield f"UCT {game} table", run(search, root)
    for options in (UCT_OPTIONS[place] for place in (7, 8, 9, 10)):
        search = partial(UCT, **{"num_simulations": 200, "seed": 4, **options})
        yield named("UCT python_tic_tac_toe", options), run(search, partial(position, "python_tic_tac_toe", 2))
    weights = partial(UCT, 100, seed=4, playout_policy=_weights)
    yield "UCT two_players playout weights", run(weights, partial(position, "two_players", 0))
    yield "UCT connect_four playout weights", run(weights, partial(position, "connect_four", 4))


def _weights(state: Any) -> list[float]:
    """A playout policy: even actions are three times as likely."""
    return [1.0 if action % 2 else 3.0 for action in state.legal_actions()]


def _first_actions(game: str, plies: int, count: int) -> list[int]:
    legal: list[int] = list(position(game, plies).legal_actions())
    return legal[:count]


def _with_evaluator(preset: Callable[..., Any], kind: str, game: str, **options: Any) -> Any:
    return preset(evaluator=_evaluator(kind, game), **options)


ALPHAZERO_OPTIONS: tuple[tuple[str, Options], ...] = (
    ("uniform", {}),
    ("uniform", {"c_puct": 2.5, "solve": False, "in_flight": 16}),
    ("rollout", {}),
    ("rollout", {"in_flight": 4, "threads": 2}),
    ("table", {}),
    ("table", {"solve": False}),
    ("table", {"in_flight": 4}),
    ("table", {"in_flight": 16, "threads": 4}),
    ("table", {"fpu": ("parent", 0.25)}),
    ("table", {"fpu": -1.0, "parent_visits": "edges"}),
    ("table", {"max_nodes": 50, "in_flight": 4}),
    ("table", {"early_stop": True}),
    ("ties", {}),
    ("ties", {"in_flight": 16, "parent_visits": "edges", "solve": False}),
    ("probabilities", {}),
    ("states", {"in_flight": 4}),
    ("packed", {}),
    ("packed", {"in_flight": 16}),
    ("function", {}),
    ("cached", {"in_flight": 4}),
    ("symmetric", {}),
    ("symmetric sample", {}),
)


def _alphazero() -> Cases:
    for game in COMPILED:
        for place, (kind, options) in enumerate(ALPHAZERO_OPTIONS):
            search = partial(_with_evaluator, AlphaZero, kind, game, num_simulations=sims(game, 600), seed=5, **options)
            yield (
                named(f"AlphaZero {game} {kind}", options),
                run(search, partial(position, game, 3 * place % LATE[game] if game != "chess" else place)),
            )
        search = partial(_with_evaluator, AlphaZero, "table", game, num_simulations=sims(game, 200), seed=6)
        for options in ({}, {"forced_playouts": 2.0}, {"dirichlet_alpha": ("total", 10.0), "dirichlet_epsilon": 0.5}):
            noisy = run(partial(search, **options), partial(position, game, 1), add_noise=True, temperature=1.0)
            yield named(f"AlphaZero {game} noise", options), noisy
        forced = partial(_with_evaluator, AlphaZero, "ties", game, num_simulations=150, seed=6, forced_playouts=3.0)
        yield f"AlphaZero {game} ties forced_playouts", run(forced, partial(position, game, 1))
        some = _first_actions(game, 4, 2)
        yield f"AlphaZero {game} root_actions", run(search, partial(position, game, 4), root_actions=some)
    for kind, options in (("pesto", {}), ("pesto", {"in_flight": 4, "fpu": ("parent", 0.1)})):
        search = partial(_with_evaluator, AlphaZero, kind, "chess", num_simulations=80, seed=5, **options)
        yield named("AlphaZero chess pesto", options), run(search, partial(board, "tactics"))
    yield (
        "AlphaZero.connect_four",
        run(lambda: AlphaZero.connect_four(table("connect_four"), 200, seed=1), partial(position, "connect_four", 0)),
    )
    for game in PYTHON:
        for kind, options in (
            ("uniform", {}),
            ("rollout", {"in_flight": 4}),
            ("table", {"in_flight": 16, "threads": 2}),
            ("ties", {"solve": False, "fpu": ("parent", 0.2)}),
        ):
            if game == "python_tic_tac_toe" and kind in ("table", "ties"):
                continue
            search = partial(_with_evaluator, AlphaZero, kind, game, num_simulations=120, seed=7, **options)
            yield named(f"AlphaZero {game} {kind}", options), run(search, partial(position, game, 0))


GUMBEL_OPTIONS: tuple[Options, ...] = (
    {},
    {"in_flight": 4},
    {"gumbel_scale": 0.0},
    {"max_num_considered_actions": 4, "use_mixed_value": False},
    {"rescale_values": False, "value_scale": 0.5, "maxvisit_init": 20},
    {"solve": False, "in_flight": 16, "threads": 2},
)


def _gumbel() -> Cases:
    for game in COMPILED:
        for place, options in enumerate(GUMBEL_OPTIONS):
            kind = ("table", "packed", "uniform", "table", "rollout", "ties")[place]
            search = partial(_with_evaluator, Gumbel, kind, game, num_simulations=32 + 30 * place, seed=8, **options)
            yield named(f"Gumbel {game} {kind}", options), run(search, partial(position, game, place))
        few = partial(_with_evaluator, Gumbel, "table", game, num_simulations=3, seed=8)
        yield f"Gumbel {game} 3 simulations", run(few, partial(position, game, 2), add_noise=False)
    for game in ("one_player", "two_players", "two_players_irregular", "rewards_1", "rewards_2"):
        search = partial(_with_evaluator, Gumbel, "table", game, num_simulations=50, seed=8)
        yield f"Gumbel {game} table", run(search, partial(position, game, 0))
    given = [mix(action) % 65 / 16 - 2.0 for action in range(7)]
    search = partial(_with_evaluator, Gumbel, "table", "connect_four", num_simulations=40, gumbel=given, seed=1)
    yield "Gumbel connect_four gumbel", run(search, partial(position, "connect_four", 1))
    for place, (model, options) in enumerate(MODELS):
        made = {name: value for name, value in options.items() if name not in MUZERO_ONLY}
        some = {"num_simulations": 24 + 8 * place, "seed": 9, **made}
        yield named(f"Gumbel model {place}", options), run(partial(_gumbel_model, model, some), _observation)


def _gumbel_model(model: Options, options: Options) -> Any:
    return Gumbel(model=TableModel(**model), **options)


MODELS: tuple[tuple[Options, Options], ...] = (
    ({"num_actions": 5}, {}),
    ({"num_actions": 5, "rewards": 0.5}, {"discount": 0.9}),
    ({"num_actions": 18, "rewards": 2.0, "shape": (2, 3)}, {"normalize": "tree"}),
    ({"num_actions": 18, "levels": 3}, {"normalize": None, "discount": 1.0}),
    ({"num_actions": 7}, {"num_players": 2, "discount": 1.0}),
    ({"num_actions": 7, "rewards": 0.25}, {"num_players": 2, "discount": 0.95, "normalize": "tree"}),
    ({"num_actions": 6, "discounts": (0.9, 0.0, 1.0), "rewards": 1.0}, {}),
    ({"num_actions": 6, "discounts": (-1.0, 1.0, -0.5, 0.0), "rewards": 0.25}, {"num_players": 2, "discount": 1.0}),
    ({"num_actions": 40, "excluded": 3}, {"in_flight": 4}),
    ({"num_actions": 40, "excluded": 2, "levels": 5}, {"in_flight": 16, "threads": 2}),
    ({"num_actions": 200, "rewards": 0.1}, {"pb_c_init": 2.0, "pb_c_base": 500}),
    ({"num_actions": 4672}, {}),
    ({"num_actions": 4672, "excluded": 40, "rewards": 0.5}, {"in_flight": 4}),
    ({"num_actions": 9, "levels": 3}, {"early_stop": True, "max_nodes": 40}),
)


MUZERO_ONLY = ("normalize", "pb_c_init", "pb_c_base", "early_stop")


def _observation(row: int = 0) -> dict[str, Any]:
    return {"observation": np.array([row, 3, 5], dtype=np.float32)}


def _masked(**options: Any) -> dict[str, Any]:
    return {**_observation(4), **options}


def _muzero_model(model: Options, options: Options) -> Any:
    return MuZero(TableModel(**model), **{"num_simulations": 50, "seed": 11, **options})


def _muzero() -> Cases:
    for place, (model, options) in enumerate(MODELS):
        full = {"num_simulations": 20 if model["num_actions"] > 1000 else 100, **options}
        search = partial(_muzero_model, model, full)
        yield named(f"MuZero {place}", options), run(search, _observation)
        yield named(f"MuZero {place} noise", options), run(search, _observation, add_noise=True, temperature=1.0)
        if model["num_actions"] < 1000:
            rows = {"observation": [_observation(row)["observation"] for row in range(5)]}
            batch = partial(_muzero_model, model, {**options, "threads": 2, "solve": False})
            yield named(f"MuZero {place} batch", options), run(batch, rows.copy, seeds=[4, 1, 9, 9, 2])
    alike = partial(_muzero_model, {"num_actions": 7}, {"num_players": 2, "discount": 1.0})
    yield "MuZero legal_actions", run(alike, partial(_masked, legal_actions=[1, 4, 6], to_play=1), add_noise=True)
    yield "MuZero root_actions", run(alike, partial(_masked, legal_actions=[1, 4, 6], to_play=0), root_actions=[6, 1])
    for game in COMPILED:
        search = partial(_muzero_model, {"num_actions": ACTIONS[game]}, {"num_simulations": sims(game, 80)})
        yield f"MuZero {game}", run(search, partial(position, game, 2), temperature=1.0)
    for game in ("one_player", "two_players", "rewards_2"):
        width = STARTS[game]().num_actions
        yield f"MuZero {game}", run(partial(_muzero_model, {"num_actions": width}, {}), partial(position, game, 0))


def _large() -> Cases:
    """Trees that outgrow the first allocations."""
    for game, full in (("tic_tac_toe", 20_000), ("connect_four", 20_000), ("othello", 5_000), ("chess", 2_000)):
        yield f"large UCT {game}", run(partial(UCT, full, seed=25), partial(position, game, 0))
        for kind, options in (("uniform", {}), ("packed", {"in_flight": 16})):
            search = partial(_with_evaluator, AlphaZero, kind, game, num_simulations=full // 4, seed=25, **options)
            yield named(f"large AlphaZero {game} {kind}", options), run(search, partial(position, game, 0))
    for actions, full in ((6, 5_000), (300, 1_000)):
        muzero = partial(_muzero_model, {"num_actions": actions, "rewards": 0.5}, {"num_simulations": full})
        yield f"large MuZero {actions}", run(muzero, _observation)
    for name in ("middlegame", "tactics"):
        yield f"large Hybrid {name}", run(partial(Hybrid, num_simulations=1_000, seed=25), partial(board, name))
    yield "large kept UCT", kept(partial(UCT, 5_000, seed=25), partial(position, "connect_four", 0), 6)
    yield "large kept Hybrid", kept(partial(Hybrid, num_simulations=400, seed=25), partial(board, "pawns"), 6)


HYBRID_OPTIONS: tuple[Options, ...] = (
    {},
    {"priority": "strict"},
    {"priority": "tactical"},
    {"priority": None},
    {"priority": "strict", "in_flight": 4, "see_threshold": 100},
    {"in_flight": 16, "threads": 2, "mate_search_depth": 2},
    {"quiescence": False, "move_scores": None, "endings": False},
    {"mate_search_depth": 0, "solve": False, "fpu": 0.0, "exploration_constant": 2.5},
)


def _hybrid() -> Cases:
    for options in HYBRID_OPTIONS:
        search = partial(Hybrid, num_simulations=150, seed=12, **options)
        for name in FENS:
            # The root's mate search answers the others whatever the options are.
            if "mate" not in name or options in HYBRID_OPTIONS[:2] or "solve" in options:
                yield named(f"Hybrid {name}", options), run(search, partial(board, name))
        for plies in (15, 30, 45):
            yield named(f"Hybrid {plies}", options), run(search, partial(position, "chess", plies))
    for priority in ("strict", "tactical", "prior", None):
        options = {"num_simulations": 40, "priority": priority, "seed": 13}
        outside = partial(_with_evaluator, Hybrid, "table", "chess", in_flight=4, **options)
        yield f"Hybrid evaluator {priority}", run(outside, partial(board, "tactics"))
        network = partial(_hybrid_network, options)
        yield f"Hybrid policy_network {priority}", run(network, partial(board, "middlegame"), temperature=1.0)
    classical = partial(_hybrid_network, {"num_simulations": 60, "seed": 13}, chess.PestoPolicy)
    yield "Hybrid PestoPolicy", run(classical, partial(board, "tactics"))
    weights = partial(Hybrid, num_simulations=60, seed=13, category_weights=[1.0 + place for place in range(10)])
    yield "Hybrid category_weights", run(weights, partial(board, "tactics"))


def _hybrid_network(options: Options, network: Callable[[], Any] = TablePolicyNetwork) -> Any:
    return Hybrid(policy_network=network(), **options)


def _kept() -> Cases:
    for game in (*COMPILED, *PYTHON):
        for options in ({}, {"in_flight": 4, "solve": False}):
            search = partial(UCT, sims(game, 120), seed=14, **options)
            yield named(f"kept UCT {game}", options), kept(search, partial(position, game, 0), 5)
        if game != "python_tic_tac_toe":
            search = partial(_with_evaluator, AlphaZero, "table", game, num_simulations=sims(game, 100), seed=15)
            yield f"kept AlphaZero {game}", kept(search, partial(position, game, 1), 5, add_noise=True)
    for game in COMPILED:
        small = partial(UCT, sims(game, 120), seed=14, max_nodes=50)
        yield f"kept UCT {game} max_nodes", kept(small, partial(position, game, 0), 4)
        search = partial(_with_evaluator, AlphaZero, "uniform", game, num_simulations=sims(game, 150), seed=15)
        yield f"kept AlphaZero {game} uniform", kept(search, partial(position, game, 1), 6)
        gumbel = partial(_with_evaluator, Gumbel, "table", game, num_simulations=30, seed=16)
        yield f"kept Gumbel {game}", kept(gumbel, partial(position, game, 1), 4)
    for priority in ("strict", "prior"):
        for name in ("tactics", "mate_in_2", "pawn_ending"):
            hybrid = partial(Hybrid, num_simulations=50, priority=priority, seed=17)
            yield f"kept Hybrid {name} {priority}", kept(hybrid, partial(board, name), 4)
    for place, (model, options) in enumerate(MODELS):
        if model["num_actions"] < 1000:
            yield named(f"kept MuZero {place}", options), kept(partial(_muzero_model, model, options), _observation, 4)
            yield named(f"observed MuZero {place}", options), _observed(model, options)


def _observed(model: Options, options: Options) -> Case:
    """A tree of bare observations that is told what follows each of its actions, and is then reset."""

    def case(transcript: Transcript) -> None:
        tree = _muzero_model(model, options).tree(**_observation())
        actions = list(range(model["num_actions"]))
        for move in range(4):
            result = tree.simulate(add_noise=move == 2).result()
            transcript.result(result)
            known: dict[str, Any] = {"to_play": (move + 1) % options.get("num_players", 1)}
            if move % 2 == 0:
                known["legal_actions"] = actions[move::2]
            if move:
                known["observation"] = _observation(move)["observation"]
            tree.advance(result.action, **known)
        transcript.result(tree.simulate().result())
        tree.reset(observation=_observation(9)["observation"], legal_actions=[0, 2], to_play=0)
        transcript.result(tree.simulate().result())

    return case


def _forests() -> Cases:
    for game in COMPILED:
        rows = partial(_rows, game, 7)
        for threads in (1, 2, 4):
            search = partial(UCT, sims(game, 80), seed=18, threads=threads)
            yield f"forest UCT {game} threads={threads}", forest(search, rows)
            search = partial(_with_evaluator, AlphaZero, "uniform", game, num_simulations=40, seed=19, threads=threads)
            yield f"forest AlphaZero {game} uniform threads={threads}", forest(search, rows)
            options = {"num_simulations": 32, "seed": 19, "threads": threads, "in_flight": 4}
            search = partial(_with_evaluator, AlphaZero, "packed", game, **options)
            noise = [row % 2 == 0 for row in range(7)]
            yield f"forest AlphaZero {game} packed threads={threads}", forest(search, rows, add_noise=noise)
        counts = [10 + 13 * row for row in range(7)]
        search = partial(_with_evaluator, AlphaZero, "table", game, num_simulations=counts, seed=20)
        yield f"forest AlphaZero {game} counts", forest(search, rows, seeds=[1, 2, 3, 3, 5, 8, 13])
        search = partial(_with_evaluator, Gumbel, "table", game, num_simulations=20, seed=20)
        yield f"forest Gumbel {game}", forest(search, rows, temperature=[0.0, 1.0, 0.5, 0.0, 2.0, 1.0, 0.0])
    for game in PYTHON:
        search = partial(UCT, 40, seed=21, threads=2, in_flight=4)
        yield f"forest UCT {game}", forest(search, partial(_rows, game, 4), n=[30, 20, 10, 40])
    some = [_first_actions("connect_four", row, 1 + row) for row in range(7)]
    search = partial(_with_evaluator, AlphaZero, "table", "connect_four", num_simulations=40, seed=20)
    yield "forest AlphaZero root_actions", forest(search, partial(_rows, "connect_four", 7), root_actions=some)
    search = partial(Hybrid, num_simulations=30, seed=22, threads=2)
    yield "forest Hybrid", forest(search, lambda: [board(name) for name in ("middlegame", "tactics", "pawns")])


def _rows(game: str, count: int) -> list[Any]:
    return [position(game, row) for row in range(count)]


def _torch() -> Cases:
    """The adapters of PyTorch on the CPU, with modules whose arithmetic is exact."""
    if importlib.util.find_spec("torch") is None:
        return
    for game in ("connect_four", "chess"):
        for preset in (AlphaZero, Gumbel):
            for options in ({}, {"in_flight": 16}, {"threads": 2, "solve": False}):
                full = {"num_simulations": 48, "seed": 26, **options}
                search = partial(_with_torch, preset, game, full)
                yield named(f"torch {preset.__name__} {game}", options), run(search, partial(_rows, game, 5), seeds=3)
        search = partial(_with_torch, AlphaZero, game, {"num_simulations": 48, "seed": 26})
        yield f"torch kept {game}", kept(search, partial(position, game, 0), 4, add_noise=True)
        yield f"torch forest {game}", forest(search, partial(_rows, game, 7))
    for actions in (18, 4672):
        rows = {"observation": [np.array([row], dtype=np.float32) for row in range(4)]}
        for preset in (MuZero, Gumbel):
            search = partial(_with_torch_model, preset, actions, {"num_simulations": 20, "seed": 26})
            yield f"torch {preset.__name__} {actions}", run(search, rows.copy, seeds=2)
    yield "torch kept MuZero", kept(partial(_with_torch_model, MuZero, 18, {"seed": 26}), _observation, 4)


def _with_torch(preset: Callable[..., Any], game: str, options: Options) -> Any:
    import torch
    from gpu_networks import Table

    torch.set_num_threads(1)
    module = Table({"connect_four": 3 * 6 * 7, "chess": 119 * 8 * 8}[game], ACTIONS[game])
    return preset(evaluators.Torch(module, "cpu"), **options)


def _with_torch_model(preset: Callable[..., Any], actions: int, options: Options) -> Any:
    import torch
    from gpu_agreement import LatentTable

    from pondertree.models import TorchModel

    torch.set_num_threads(1)
    return preset(model=TorchModel(LatentTable(actions), "cpu"), **options)


def _traces() -> Cases:
    for game in COMPILED:
        yield f"trace UCT {game}", traced(partial(UCT, 60, seed=23, trace=True), partial(position, game, 2))
        for preset in (AlphaZero, Gumbel):
            search = partial(_with_evaluator, preset, "table", game, num_simulations=40, seed=23, trace=True)
            yield f"trace {preset.__name__} {game}", traced(search, partial(position, game, 2))
    for priority in ("strict", "tactical", "prior", None):
        hybrid = partial(Hybrid, num_simulations=40, priority=priority, seed=23, trace=True)
        yield f"trace Hybrid {priority}", traced(hybrid, partial(board, "tactics"))
    muzero = partial(_muzero_model, {"num_actions": 6, "rewards": 0.5}, {"trace": True})
    yield "trace MuZero", traced(muzero, lambda: {"observation": [_observation()["observation"]]})
    yield (
        "trace UCT three_players",
        traced(partial(UCT, 60, seed=23, trace=True), partial(position, "three_players", 0)),
    )


def _entry_points() -> Cases:
    def playouts(transcript: Transcript) -> None:
        for game in (*COMPILED, "two_players", "three_players", "rewards_2"):
            for seed in range(6):
                depth = None if seed % 2 else 5
                value = pondertree.playout(position(game, seed), seed % 2, depth, seed=seed)
                transcript.answer(game, seed, value)

    def choices(transcript: Transcript) -> None:
        for game in COMPILED:
            search = UCT(60, seed=24)
            transcript.answer(game, [search.search(position(game, plies), 1.0) for plies in range(5)])
            transcript.answer(*search.get_policy(position(game, 2)))
        network = chess.MCTS(table("chess"), num_simulations=40, seed=24)
        transcript.answer(network.search(board("middlegame")), *network.get_policy(board("tactics"), add_noise=True))
        for name in FENS:
            transcript.answer(name, chess.mcts_search(board(name), iterations=40, seed=24))
        for seed in range(5):
            config = pondertree.MCTSConfig(num_simulations=20, num_players=1)
            seen = _observation(seed)["observation"]
            action = pondertree.select_action(TableModel(6), config, seen, [0, 2, 3, 5], seed=seed)
            transcript.answer("select_action", action)

    def knowledge(transcript: Transcript) -> None:
        for name in FENS:
            state = board(name)
            found = chess.mate_search(state, 3)
            transcript.answer(name, found.kind, found.n, found.move, found.line, found.nodes)
            kinds = chess.categorize(state)
            transcript.answer([(action, int(kind)) for action, kind in kinds.items()])
            transcript.answer([chess.see(state, action) for action in state.legal_actions()])
            transcript.answer(chess.perft(state, 3))

    yield "playout", playouts
    yield "search, get_policy and the specifications' entry points", choices
    yield "chess knowledge", knowledge
