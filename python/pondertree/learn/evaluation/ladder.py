"""The ladder of anchor opponents: a player that beats one meets the next.

Matches that a player always wins or always loses do not determine its rating. An evaluation therefore starts with
the last opponent of the previous one, moves up while the player scores at least `evaluation.ladder_score`, and down
while it scores at most the mirror image. Each anchor also plays the one below it once (calibration), so that all
ratings share one scale. The start follows from the metrics alone, which a resumed run keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pondertree.chess.hybrid import Hybrid
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.learn.config import Config
from pondertree.presets import UCT
from pondertree.search.base import Search


def uct_name(simulations: int) -> str:
    """Returns the name of a UCT opponent."""
    return f"UCT {simulations}"


def check_opponents(names: Sequence[str], info: GameInfo) -> None:
    """Raises `InvalidArgumentError` for anchors that cannot play the game."""
    for place, name in enumerate(names):
        if name.startswith("Hybrid") and info.name != "chess":
            raise InvalidArgumentError(
                f"evaluation.ladder[{place}]: Hybrid plays chess and not {info.name}; UCT plays every game"
            )


def reference_search(name: str, config: Config) -> Search:
    """Returns the search of an anchor: UCT with random playouts, or Hybrid with PeSTO."""
    preset, simulations = name.split()
    # Results do not depend on threads, and an alternating run leaves its workers idle during evaluations.
    threads = max(config.self_play.workers, 1)
    if preset == "Hybrid":
        return Hybrid(evaluator=Pesto(), num_simulations=int(simulations), seed=config.seed, threads=threads)
    return UCT(num_simulations=int(simulations), seed=config.seed, solve=config.evaluation.solve, threads=threads)


def opponents_of(config: Config) -> tuple[str, ...]:
    """Returns the anchor opponents of a run, weakest first: fixed ones or a ladder."""
    fixed = config.evaluation.uct_simulations
    return config.evaluation.ladder if fixed is None else tuple(uct_name(budget) for budget in sorted(set(fixed)))


def first_opponent(names: Sequence[str], lines: Iterable[dict[str, Any]]) -> int:
    """Returns the index of the next evaluation's first opponent: the last one met, initially the weakest."""
    place = 0
    for line in lines:
        met = [other for other in line["matches"] if other in names] if line["kind"] == "evaluation" else []
        if met:
            place = names.index(met[-1])
    return place


def play_ladder(names: Sequence[str], place: int, score: float, play: Callable[[str], float]) -> list[str]:
    """Plays opponents from `place` on, up or down the ladder, until a score is between the thresholds; returns them.

    `play(name)` plays a match and returns the player's score in [0, 1].
    """
    met = [names[place]]
    found = play(names[place])
    step = 1 if found >= score else -1
    while ((found if step > 0 else 1.0 - found) >= score) and 0 <= place + step < len(names):
        place += step
        met.append(names[place])
        found = play(names[place])
    return met


def uncalibrated(names: Sequence[str], met: Iterable[str], lines: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Returns the adjacent anchor pairs (stronger, weaker), up to the strongest one met, that have not played yet."""
    known = {
        (one, other)
        for line in lines
        if line["kind"] == "evaluation"
        for one, others in line.get("references", {}).items()
        for other in others
    }
    highest = max(names.index(name) for name in met)
    pairs = [(names[place], names[place - 1]) for place in range(1, highest + 1)]
    return [pair for pair in pairs if pair not in known]
