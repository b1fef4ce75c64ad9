"""SPSA tuning of the hybrid search's settings by self-play matches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from pondertree import validation
from pondertree._core import Chess
from pondertree.chess.config import CATEGORY_WEIGHTS
from pondertree.chess.hybrid import Hybrid
from pondertree.errors import InvalidArgumentError
from pondertree.files import check_path, make_folder, write_json
from pondertree.match.runner import play_match
from pondertree.tune.readers import ADJUDICATION
from pondertree.tune.spsa import Compare, Parameter, Step, best_values, run_spsa

#: File names in the output folder.
RECORD, SETTINGS = "search.jsonl", "settings.json"

#: The tuned parameters. Category weights also determine the order of the categories; only their ratios matter.
PARAMETERS = (
    Parameter(name="mate_search_depth", start=3.0, step=1.0, low=0.0, high=6.0),
    Parameter(name="exploration_constant", start=1.5, step=1.2, low=0.1, high=10.0, log=True),
    Parameter(name="see_threshold", start=0.0, step=30.0, low=0.0, high=300.0),
    *(
        Parameter(name=f"category_weights[{place}]", start=weight, step=1.3, low=0.02, high=500.0, log=True)
        for place, weight in enumerate(CATEGORY_WEIGHTS)
    ),
)
#: Index of the first category weight.
_FIRST_WEIGHT = 3


def settings_of(values: Sequence[float]) -> dict[str, Any]:
    """Returns the arguments of `Hybrid(**settings)`."""
    return {
        "mate_search_depth": round(values[0]),
        "exploration_constant": round(values[1], 4),
        "see_threshold": round(values[2]),
        "category_weights": [round(value, 4) for value in values[_FIRST_WEIGHT:]],
    }


def compare_by_matches(simulations: int, games: int, concurrency: int | None = None) -> Compare:
    """Returns a comparison of settings by `games` games (an even number) at fixed simulations."""
    simulations, games = validation.count(simulations, "simulations"), validation.count(games, "games")
    if games % 2:
        raise InvalidArgumentError(f"games must be even, since openings are played with both sides; not {games}")

    def compare(one: Sequence[float], other: Sequence[float], seed: int) -> float:
        first, second = (Hybrid(num_simulations=simulations, **settings_of(values)) for values in (one, other))
        result = play_match(
            first, second, Chess, num_games=games, seed=seed, adjudication=ADJUDICATION, concurrency=concurrency
        )
        return float(result.elo.score)

    return compare


def tune_search(
    *,
    iterations: int = 100,
    games: int = 16,
    simulations: int = 100,
    gain: float = 1.0,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    concurrency: int | None = None,
    compare: Compare | None = None,
    progress: Callable[[list[Step]], object] | None = None,
) -> dict[str, Any]:
    """Returns settings for `Hybrid(**settings)`, found by SPSA: each step is a match of `games` games.

    With the folder `out`, every step is recorded and the settings are written after it; with `resume` an interrupted
    run continues. `compare` replaces the matches.
    """
    folder = None if out is None else check_path(out, "out")
    if folder is not None:
        make_folder(folder, "out")
    elif resume:
        raise InvalidArgumentError("resume requires out, the folder to continue")
    compare = compare or compare_by_matches(simulations, games, concurrency)

    def after_step(steps: list[Step]) -> None:
        if folder is not None:
            write_json(folder / SETTINGS, settings_of(best_values(PARAMETERS, steps)), "out")
        if progress is not None:
            progress(steps)

    values, _ = run_spsa(
        PARAMETERS,
        compare,
        iterations=iterations,
        gain=gain,
        seed=seed,
        record=None if folder is None else folder / RECORD,
        resume=resume,
        about={"games": games, "simulations": simulations},
        progress=after_step,
    )
    settings = settings_of(values)
    if folder is not None:
        write_json(folder / SETTINGS, settings, "out")
    return settings
