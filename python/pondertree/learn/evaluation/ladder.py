"""Reference opponents of evaluations, from weak to strong: a player that beats one meets the next.

A fixed opponent says little about a player that always wins or always loses. An evaluation therefore begins with the
opponent that the one before it ended with, goes up while the player scores `evaluation.ladder_score` or more, and down
while it scores the mirror image or less. Each opponent is also played once against the one below it, so that all
ratings are on one scale. Where an evaluation begins follows from the metrics alone, which a resumed training keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pondertree.chess.hybrid import Hybrid
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.learn.config.schema import Config
from pondertree.presets import UCT
from pondertree.search.base import Search


def uct_name(simulations: int) -> str:
    """The name of a UCT opponent."""
    return f"UCT {simulations}"


def check_opponents(names: Sequence[str], info: GameInfo) -> None:
    """Refuses a ladder that a game has no players for."""
    for place, name in enumerate(names):
        if name.startswith("Hybrid") and info.name != "chess":
            raise InvalidArgumentError(
                f"evaluation.ladder[{place}]: Hybrid plays chess and not {info.name}; UCT plays every game"
            )


def reference(name: str, config: Config) -> Search:
    """The opponent with a name: UCT with random playouts, or Hybrid with PeSTO. Its moves follow from the seeds."""
    preset, simulations = name.split()
    # Results do not depend on threads, and a training that takes turns leaves all of its workers idle meanwhile.
    threads = max(config.self_play.workers, 1)
    if preset == "Hybrid":
        return Hybrid(evaluator=Pesto(), num_simulations=int(simulations), seed=config.seed, threads=threads)
    return UCT(num_simulations=int(simulations), seed=config.seed, solve=config.evaluation.solve, threads=threads)


def opponents_of(config: Config) -> tuple[str, ...]:
    """The reference opponents of a training, the weakest first: fixed ones or a ladder."""
    fixed = config.evaluation.uct_simulations
    return config.evaluation.ladder if fixed is None else tuple(uct_name(budget) for budget in sorted(set(fixed)))


def first_rung(names: Sequence[str], lines: Iterable[dict[str, Any]]) -> int:
    """Where the next evaluation begins: with the opponent that the last one ended with, at first with the weakest."""
    place = 0
    for line in lines:
        met = [other for other in line["matches"] if other in names] if line["kind"] == "evaluation" else []
        if met:
            place = names.index(met[-1])
    return place


def climb(names: Sequence[str], place: int, score: float, meet: Callable[[str], float]) -> list[str]:
    """Meets opponents from `place` on, up or down, until one is neither too weak nor too strong; those met, in order.

    `meet(name)` plays a match and returns the player's share of points.
    """
    met = [names[place]]
    found = meet(names[place])
    step = 1 if found >= score else -1
    while ((found if step > 0 else 1.0 - found) >= score) and 0 <= place + step < len(names):
        place += step
        met.append(names[place])
        found = meet(names[place])
    return met


def uncalibrated(names: Sequence[str], met: Iterable[str], lines: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """(opponent, the one below it) for all up to the strongest that was met, where the two have not played yet."""
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
