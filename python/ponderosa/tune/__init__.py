"""Tuning: the weights of the classical evaluation from games (Texel's method), the hybrid search's settings by matches.

    from ponderosa.tune import positions_of, self_play, tune

    report = tune(positions_of(self_play(1000, seed=1).games), out="tuned")
    print(report)

The folder `tuned` then has `weights.json`, for `Pesto.from_file`. `tune_search` gives settings for `Hybrid`.
"""

from ponderosa.tune.features import material_only
from ponderosa.tune.fitting import FitOptions, FitState
from ponderosa.tune.objective import Errors
from ponderosa.tune.plots import draw_plots
from ponderosa.tune.positions import Positions, join
from ponderosa.tune.reading import from_epd, from_pgn, read_positions
from ponderosa.tune.report import Report
from ponderosa.tune.search_settings import tune_search
from ponderosa.tune.self_play import positions_of, self_play
from ponderosa.tune.texel import tune

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
