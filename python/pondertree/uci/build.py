"""From options to a search."""

from __future__ import annotations

from typing import Any

from pondertree.chess.pesto import Pesto
from pondertree.chess.weights import DEFAULT_SCALE
from pondertree.errors import InvalidArgumentError
from pondertree.game import describe
from pondertree.games import Chess
from pondertree.presets import AlphaZero, Hybrid
from pondertree.search import Search
from pondertree.uci.options import Options

#: Leaves in flight for each thread that was asked for, inside the engine and in a network's batch alike: fewer leave
#: threads without work. They do not depend on the CPUs of the machine, so that the same options search the same tree.
LEAVES_PER_THREAD = 8
#: Leaves in flight at most: a batch must be over soon after `stop`, also on two cores (some 15 ms there).
MOST_LEAVES = 256
#: The root is searched for mates within ten positions for each of these, some hundredths of a second: `stop` must
#: not wait longer for its answer, and a clock may have no more than that.
SIMULATIONS = 2000
#: PeSTO's own weights.
USUAL = Pesto()


def open_network(path: str, threads: int) -> Any:
    """The network of an ONNX file, or the player of a training."""
    from pondertree.learn.load import is_onnx, load, load_onnx
    from pondertree.learn.own_game import check_own_game

    player = load_onnx(path, threads) if is_onnx(path) else load(path)
    check_own_game(player, describe(Chess()))
    return player


def build(options: Options) -> Search:
    """The search that the options ask for. Raises a ValueError or OSError where they cannot be followed."""
    threads: int = options["Threads"]
    in_flight = 1 if threads == 1 else min(LEAVES_PER_THREAD * threads, MOST_LEAVES)
    shared: dict[str, Any] = {
        "num_simulations": SIMULATIONS,
        "seed": options["Seed"],
        "max_memory": float(options["Hash"]),
        "threads": threads,
    }
    if options["Algorithm"] == "alphazero":
        if options["NetworkFile"] is None:
            raise InvalidArgumentError("Algorithm alphazero needs a network: set the option NetworkFile")
        network = open_network(options["NetworkFile"], threads)
        return AlphaZero(
            network,
            c_puct=options["ExplorationConstant"],
            fpu=options["Fpu"],
            in_flight=max(in_flight, LEAVES_PER_THREAD),
            **shared,
        )
    return Hybrid(
        evaluation(options),
        mate_search_depth=options["MateSearchDepth"],
        endings=options["Endings"],
        exploration_constant=options["ExplorationConstant"],
        priority=None if options["Priority"] == "none" else options["Priority"],
        see_threshold=options["SeeThreshold"],
        quiescence=options["Quiescence"],
        fpu=options["Fpu"],
        category_weights=options["CategoryWeights"],
        move_scores="learned" if options["MoveScores"] else None,
        in_flight=in_flight,
        **shared,
    )


def evaluation(options: Options) -> Pesto:
    """The classical evaluation with the weights that were asked for."""
    weights: Pesto | None = options["EvalFile"]
    return USUAL if weights is None else weights


def scale(options: Options) -> float:
    """Centipawns of the sigmoid by which values came about: a network's are read on the usual scale."""
    return evaluation(options).scale if options["Algorithm"] == "hybrid" else DEFAULT_SCALE
