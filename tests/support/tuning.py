"""Positions for tests of tuning."""

from __future__ import annotations

from functools import cache

import numpy as np

from pondertree.chess import Pesto
from pondertree.games import Chess
from pondertree.random import PLAYOUT, Random, fold
from pondertree.tune.features import features_of, sigmoid, weights_of
from pondertree.tune.positions import Positions, Skipped


@cache
def random_fens(count: int, seed: int = 5) -> tuple[str, ...]:
    """Positions of random games in all phases, with both sides to move."""
    found: list[str] = []
    game = 0
    while len(found) < count:
        numbers = Random(fold(seed, game), PLAYOUT)
        state, game = Chess(), game + 1
        for ply in range(200):
            legal = state.legal_actions()
            if not legal or state.is_terminal:
                break
            state = state.play(legal[numbers.choose(len(legal))])
            if ply % 7 == 6 and not state.is_terminal:
                found.append(state.fen())
    return tuple(found[:count])


def drawn_by(pesto: Pesto, count: int, seed: int = 0, per_game: int = 1) -> Positions:
    """Random positions with results sampled from the predictions of `pesto`, draws included."""
    fens = np.array([fen.encode() for fen in random_fens(count)], dtype=np.bytes_)
    blank = Positions(fens, np.zeros(count), np.arange(count) // per_game, Skipped())
    expected = sigmoid(features_of(blank, pesto).scores(weights_of(pesto)) / pesto.scale)
    black = np.array([fen.split()[1] == b"b" for fen in fens])
    for_white = np.where(black, 1.0 - expected, expected)
    numbers = np.random.default_rng(seed)
    # Two Bernoulli samples: 0, 1/2 or 1 with the expected mean.
    results = (numbers.random(count) < for_white) * 0.5 + (numbers.random(count) < for_white) * 0.5
    return Positions(fens, results, blank.games, Skipped())
