"""Texel tuning of the classical evaluation from games, and SPSA tuning of the hybrid search by matches.

    from pondertree.tune import positions_of, self_play, tune

    report = tune(positions_of(self_play(1000, seed=1).games), out="tuned")
    print(report)

`tuned/weights.json` is read by `Pesto.from_file`. `tune_search` returns settings for `Hybrid`.
"""

from pondertree.tune.features import Errors, material_only
from pondertree.tune.fitting import FitOptions, FitState
from pondertree.tune.positions import Positions, join
from pondertree.tune.readers import from_epd, from_pgn, positions_of, read_positions, self_play
from pondertree.tune.report import Report, draw_plots
from pondertree.tune.search_settings import tune_search
from pondertree.tune.texel import tune

__all__ = [
    "Errors",
    "FitOptions",
    "FitState",
    "Positions",
    "Report",
    "draw_plots",
    "from_epd",
    "from_pgn",
    "join",
    "material_only",
    "positions_of",
    "read_positions",
    "self_play",
    "tune",
    "tune_search",
]
