"""Fuzzes all inputs besides files: arguments, games, evaluators, models, FENs, UCI streams and the command line.

    python scripts/fuzz_inputs.py --inputs 5000 --seed 1
    python scripts/fuzz_inputs.py --kind fens --seed 1 --first 17 --inputs 1

`fuzzing.py` has the harness and defines the outcomes. Here a TypeError that names a hostile argument also counts as
typed, as documented in docs/results.md. After a failure the search must remain usable.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import inspect
import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import fuzzing
import numpy as np
from fuzz_chess import fens, uci, uci_program
from fuzz_worlds import a_game, a_model_search, an_evaluator
from hostile import NUMBERS, TEXTS, Call, Random, Row, a_model, even, hostile, named, show

import pondertree
from pondertree import chess, evaluators, games, match, models, validation
from pondertree.config import SearchOptions
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe, connect_four

# --- Arguments ---


Made = tuple[Callable[..., Any], dict[str, Any], Callable[[Any], object]]
SHARED = tuple(each.name for each in fields(SearchOptions))


def nothing(_: Any) -> None:
    """Ignores a result."""


def search_on(state: Any) -> Callable[[Any], object]:
    """Runs a constructed search with small limits."""

    def use(search: Any) -> object:
        tree = search.tree(state)
        tree.simulate(6)
        return show(tree.result())

    return use


def a_forest() -> Any:
    """Returns a small forest of two trees."""
    return pondertree.UCT(20, seed=1).forest([ConnectFour()] * 2).simulate(20)


def still_works(forest: Any) -> Callable[[Any], object]:
    """Simulates further, also after failures."""
    return lambda _: forest.simulate(2)


def methods() -> dict[str, Made]:
    """Returns methods of searches, trees, results and nodes."""
    search, forest = pondertree.UCT(10, seed=1), a_forest()
    tree = pondertree.AlphaZero(even(7), 20, seed=1).tree(ConnectFour()).simulate(20)
    result = tree.result()
    rooted = pondertree.MuZero(a_model(), 8, seed=1).tree(np.zeros(4))
    alone = still_works(tree._forest)
    return {
        "run": (search.run, {"state": TicTacToe()}, nothing),
        "search": (search.search, {"state": TicTacToe()}, nothing),
        "get_policy": (search.get_policy, {"state": TicTacToe()}, nothing),
        "tree": (search.tree, {"state": TicTacToe()}, nothing),
        "forest": (search.forest, {"states": [TicTacToe()]}, nothing),
        "Forest.simulate": (forest.simulate, {"n": 3}, still_works(forest)),
        "Forest.step": (forest.step, {"of": 3}, still_works(forest)),
        "Forest.result": (forest.result, {}, still_works(forest)),
        "Forest.results": (forest.results, {}, still_works(forest)),
        "Forest.actions": (forest.actions, {}, still_works(forest)),
        "Forest.advance": (forest.advance, {"index": 0, "action": 3}, still_works(forest)),
        "Forest.reset": (forest.reset, {"index": 1, "state": ConnectFour()}, still_works(forest)),
        "Forest.state": (forest.state, {"index": 1}, still_works(forest)),
        "Forest.trace": (forest.trace, {}, still_works(forest)),
        "Tree.simulate": (tree.simulate, {"n": 3}, alone),
        "Tree.step": (tree.step, {"of": 3}, alone),
        "Tree.result": (tree.result, {}, alone),
        "Tree.advance": (tree.advance, {"action": 3}, alone),
        "Tree.reset": (tree.reset, {"state": ConnectFour()}, alone),
        "observed advance": (rooted.advance, {"action": 1, "observation": np.zeros(4)}, still_works(rooted._forest)),
        "observed reset": (rooted.reset, {"observation": np.zeros(4)}, still_works(rooted._forest)),
        "policy_at": (result.policy_at, {"tau": 1.0}, nothing),
        "to_text": (result.root.to_text, {}, nothing),
        "to_dot": (result.root.to_dot, {}, nothing),
        "to_svg": (result.root.to_svg, {}, nothing),
        "to_json": (result.root.to_json, {}, nothing),
    }


def presets() -> dict[str, Made]:
    """Returns search constructors; a constructed search is run."""
    return {
        "UCT": (pondertree.UCT, {"num_simulations": 8}, search_on(TicTacToe())),
        "UCT in Python": (pondertree.UCT, {"num_simulations": 8}, search_on(Row())),
        "AlphaZero": (pondertree.AlphaZero, {"evaluator": even(9), "num_simulations": 8}, search_on(TicTacToe())),
        "Gumbel": (pondertree.Gumbel, {"evaluator": even(3), "num_simulations": 8}, search_on(Row())),
        "Gumbel model": (pondertree.Gumbel, {"model": a_model(), "num_simulations": 8}, search_on(Row())),
        "MuZero": (pondertree.MuZero, {"model": a_model(), "num_simulations": 8}, search_on(Row())),
        "Hybrid": (pondertree.Hybrid, {"num_simulations": 8, "mate_search_budget": 50}, search_on(Chess())),
        "chess.MCTS": (chess.MCTS, {"neural_network": even(4672), "num_simulations": 8}, search_on(Chess())),
        "Temperature": (pondertree.Temperature, {}, lambda made: made(3)),
        "Temperature()": (pondertree.Temperature(), {"move_number": 3}, nothing),
        "MCTSConfig": (pondertree.MCTSConfig, {"num_simulations": 8}, nothing),
        "MuZeroConfig": (pondertree.MuZeroConfig, {"num_simulations": 8}, nothing),
    }


def functions() -> dict[str, Made]:
    """Returns functions on games, chess, evaluators and models."""
    board, four = Chess(), ConnectFour()
    pesto, pool = chess.Pesto(), models.HiddenPool(4)
    late = four.play(3).play(3).play(3).play(3).play(3).play(3).play(0).play(0).play(0).play(0).play(0).play(0)
    some = {"states": [late], "max_nodes": 2000, "max_memory": 1}
    return {
        "playout": (pondertree.playout, {"state": Row(), "perspective_player": 0}, nothing),
        "by_name": (games.by_name, {"name": "connect4"}, nothing),
        "find": (games.find, {"name": "connect4"}, nothing),
        "Chess": (Chess, {"fen": board.fen()}, nothing),
        "play": (board.play, {"action": board.legal_actions()[0]}, nothing),
        "action_to_string": (board.action_to_string, {"action": board.legal_actions()[0]}, nothing),
        "parse_action": (board.parse_action, {"text": "e2e4"}, nothing),
        "san": (board.san, {"action": board.legal_actions()[0]}, nothing),
        "is_capture": (board.is_capture, {"action": board.legal_actions()[0]}, nothing),
        "gives_check": (board.gives_check, {"action": board.legal_actions()[0]}, nothing),
        "Othello.play": (Othello().play, {"action": 19}, nothing),
        "Othello.parse": (Othello().parse_action, {"text": "d3"}, nothing),
        "solve": (connect_four.solve, {"state": late, "max_nodes": 2000, "max_memory": 1}, nothing),
        "solve_many": (connect_four.solve_many, some, nothing),
        "see": (chess.see, {"state": board, "action": board.legal_actions()[0]}, nothing),
        "categorize": (chess.categorize, {"state": board}, nothing),
        "mate_search": (chess.mate_search, {"state": board, "depth": 2, "budget": 500}, nothing),
        "mcts_search": (chess.mcts_search, {"root_state": board, "iterations": 8}, nothing),
        "Pesto": (chess.Pesto, {}, lambda made: made.value(board)),
        "Pesto.eval": (pesto.eval, {"state": board}, nothing),
        "Pesto.value": (pesto.value, {"state": board}, nothing),
        "MoveScores": (chess.MoveScores, {}, nothing),
        "PestoPolicy": (chess.PestoPolicy, {}, lambda made: made.evaluate(board)),
        "ChessGame": (chess.ChessGame, {}, nothing),
        "Uniform": (evaluators.Uniform, {}, nothing),
        "Rollout": (evaluators.Rollout, {}, nothing),
        "Cached": (evaluators.Cached, {"evaluator": even(9)}, lambda made: evaluate_with(made)),
        "Function": (evaluators.Function, {"function": even(9)}, lambda made: evaluate_with(made)),
        "Symmetric": (
            evaluators.Symmetric,
            {"evaluator": even(9), "symmetries": evaluators.symmetries_of("tic-tac-toe")},
            lambda made: evaluate_with(made),
        ),
        "symmetries_of": (evaluators.symmetries_of, {"game": "connect4"}, nothing),
        "Onnx": (evaluators.Onnx, {"model": b"nothing"}, nothing),
        "FunctionModel": (models.FunctionModel, {"initial": even(3), "recurrent": even(3)}, nothing),
        "ComposedModel": (models.ComposedModel, {"representation": len, "dynamics": len, "prediction": len}, nothing),
        "as_model": (models.as_model, {"given": a_model()}, nothing),
        "check_model": (models.check_model, {"model": a_model()}, nothing),
        "Support": (models.Support, {}, lambda made: made.to_scalar(np.zeros((2, made.num_atoms)))),
        "HiddenPool": (models.HiddenPool, {"capacity": 8}, nothing),
        "perft": (chess.perft, {"state": board, "depth": 1}, nothing),
        "pool.reserve": (pool.reserve, {"capacity": 8}, nothing),
    }


def evaluate_with(evaluator: Any) -> object:
    """Runs a small search with an evaluator."""
    return pondertree.AlphaZero(evaluator, 6, seed=1).run(TicTacToe())


def programs() -> dict[str, Made]:
    """Returns functions of matches, tuning and training configuration, with short runs."""
    from pondertree import learn, tune
    from pondertree.testing import check_game

    config = learn.default_config("connect4", out="runs/fuzz", minutes=1.0)
    one, other = "uct:num_simulations=2", "random"
    played: dict[str, Any] = {"player1": one, "player2": other, "game": "tic-tac-toe", "num_games": 2, "concurrency": 1}
    epd = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1 [1.0]\n" * 3
    made: dict[str, Made] = {
        "play_match": (match.play_match, played, nothing),
        "read_player": (match.read_player, {"given": one}, nothing),
        "Sprt": (match.Sprt, {"elo0": 0.0, "elo1": 5.0}, nothing),
        "Adjudication": (match.Adjudication, {}, nothing),
        "elo_of": (match.elo_of, {"score": 0.5}, nothing),
        "score_of": (match.score_of, {"elo": 10.0}, nothing),
        "FitOptions": (tune.FitOptions, {}, nothing),
        "from_epd": (tune.from_epd, {"text": epd}, nothing),
        "from_pgn": (tune.from_pgn, {"text": '[Event "x"]\n\n1. e4 e5 1-0\n'}, nothing),
        "join": (tune.join, {"parts": [tune.from_epd(epd)]}, nothing),
        "self_play": (tune.self_play, {"num_games": 2, "simulations": 2, "concurrency": 1}, nothing),
        "default_config": (learn.default_config, {"game": "connect4", "out": "runs/fuzz"}, nothing),
        "with_values": (config.with_values, {name: getattr(config, name) for name in ("seed", "minutes")}, nothing),
        "text_of_config": (learn.text_of_config, {"config": config}, nothing),
        "load": (pondertree.load, {"path": "nowhere"}, nothing),
        "check_game": (check_game, {"factory": Row, "games": 2}, nothing),
    }
    for name in ("Network", "SelfPlay", "Replay", "Learner", "LatentModel", "Evaluation"):
        made[f"{name}Config"] = (getattr(learn, f"{name}Config"), {}, nothing)
    return made


TARGETS: dict[str, Callable[[], dict[str, Made]]] = {
    "methods": methods,
    "presets": presets,
    "functions": functions,
    "programs": programs,
}
#: Output paths are fuzzed by `fuzz_files.py`.
PATHS = {"path", "out", "pgn", "record", "openings"}
#: Parameters whose large values are valid but slow.
LONG = {
    "budget",
    "mate_search_budget",
    "num_games",
    "games",
    "max_nodes",
    "most",
    "seconds",
    "time_limit",
    "concurrency",
}
LONG |= {"num_simulations", "n", "depth", "max_memory", "capacity", "minimax_depth", "size", "simulations", "bins"}


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Returns the names of the parameters, including those that all searches share."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    names = [each.name for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return names + [name for each in found if each.kind is each.VAR_KEYWORD for name in SHARED]


@functools.cache
def warm_up() -> None:
    """Imports slow modules before the time of an input starts."""
    with contextlib.suppress(ImportError):
        importlib.import_module("torch")
    programs()


def arguments(rng: Random) -> Call:
    """Calls a function of the package with one or two hostile arguments."""
    warm_up()

    def call() -> object:
        targets = TARGETS[rng.choice(list(TARGETS))]()
        function, right, use = targets[rng.choice(list(targets))]
        names = list(dict.fromkeys([*right, *parameters_of(function)]))
        wrong = rng.sample(names, min(len(names), rng.choice([1, 1, 2])))
        given = {**right, **{name: hostile(rng) for name in wrong}}
        for name in PATHS & set(wrong):
            if isinstance(given[name], (str, bytes, bytearray, Path)):
                given[name] = [given[name]]
        for name in LONG & set(wrong):
            if _is_large(given[name]):
                given[name] = -1
        try:
            made = named(lambda: function(**given), wrong)
            return named(lambda: use(made), wrong)
        finally:
            if use is not nothing and "simulate" not in str(function) and inspect.ismethod(function):
                use(None)

    return call


def _is_large(value: Any) -> bool:
    try:
        return bool(float(value) > 50)
    except Exception:
        return isinstance(value, (list, tuple, np.ndarray, dict))


# --- The command line ---


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of the commands."""
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(commands.choices)


#: Valid command lines; `POSITIONS` is a file that is written before the call.
POSITIONS = "positions.epd"
COMMAND_LINES = {
    "search": ["connect4", "--simulations", "5"],
    "play": ["tic-tac-toe", "--simulations", "5"],
    "match": ["random", "random", "--game", "tic-tac-toe", "--games", "2", "--concurrency", "1"],
    "tune": [POSITIONS, "--out", "tuned", "--iterations", "1", "--plots", "none"],
    "train": ["connect4", "--minutes", "0.001"],
    "export": ["nowhere", "--onnx", "out.onnx"],
}


def a_value(rng: Random) -> str:
    """Returns an option value, small or hostile."""
    if rng.random() < 0.3:
        return rng.choice(["1", "2", "0.5", "first", "connect4"])
    if rng.random() < 0.5:
        return validation.shown(rng.choice(NUMBERS))
    return str(rng.choice(TEXTS)).replace("\ud800", "\udc80")


def command_line(rng: Random) -> Call:
    """Runs a command with mostly invalid arguments: one line on stderr and exit status 1 or 2."""
    from pondertree.cli import main, parser
    from pondertree.cli.arguments import MAX_MESSAGE_LENGTH

    parsers = options_of(parser())
    command = rng.choice([name for name in parsers if name in COMMAND_LINES])
    words = list(COMMAND_LINES[command])
    for _ in range(rng.choice([0, 1, 1, 2])):
        value = a_value(rng)
        if len(value) > 1 and value[:2].isdigit():  # valid but slow
            value = "-" + value
        if rng.randrange(3) == 0:
            words[rng.randrange(len(words))] = value
        else:
            action = rng.choice([action for action in parsers[command]._actions if action.option_strings])
            words += [action.option_strings[0], *([] if action.nargs == 0 else [value])]
    if command == "train":
        # The last one wins and cannot be created, since a valid training would be slow.
        words += ["--out", "/dev/null/x"]

    def call() -> None:
        out, err = io.StringIO(), io.StringIO()
        keyboard = io.TextIOWrapper(io.BytesIO(b"1\n2\nq\n" * 30))
        shutil.rmtree("tuned", ignore_errors=True)
        Path(POSITIONS).write_text("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1 [1.0]\n4k3/8/8/8/8/8/8/4K2R w - - 0 1 [0.5]\n")
        before, sys.stdin = sys.stdin, keyboard
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main([command, *words])
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 2
        finally:
            sys.stdin = before
        said = err.getvalue()
        assert status in (0, 1, 2), status
        assert "Traceback" not in said, said[-MAX_MESSAGE_LENGTH:]
        if status:
            assert len(said.splitlines()) == 1, said[:MAX_MESSAGE_LENGTH]
            assert len(said) <= MAX_MESSAGE_LENGTH + 80, said[:200]  # including the name of the command
            raise InvalidArgumentError(said)

    return call


KINDS: dict[str, fuzzing.Make] = {
    "arguments": arguments,
    "games": a_game,
    "evaluators": an_evaluator,
    "models": a_model_search,
    "fens": fens,
    "uci": uci,
    "uci_program": uci_program,
    "command_line": command_line,
}

if __name__ == "__main__":
    sys.exit(fuzzing.main(KINDS, __doc__))
