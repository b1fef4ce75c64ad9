"""Pig, backgammon and 2048 near the end: values of searches against exact ones; more in benches/chance_accuracy.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.support.near_ends import Position, bear_off, errors, full_boards, pig

from pondertree import UCT, AlphaZero
from pondertree.evaluators import Rollout

GAMES: dict[str, Callable[[int], list[Position]]] = {"pig": pig, "backgammon": bear_off, "2048": full_boards}
SEARCHES: dict[str, Callable[..., Any]] = {
    "UCT": UCT,
    "AlphaZero": lambda simulations, **options: AlphaZero(Rollout(), simulations, **options),
}


@cache
def positions(game: str) -> list[Position]:
    return GAMES[game](6)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("game", GAMES)
def test_values_near_the_end_are_nearly_exact(game: str, search: str) -> None:
    options = {"normalize": "tree"} if game == "2048" else {}
    few, many = (errors(SEARCHES[search](count, **options), positions(game)) for count in (1_000, 100_000))
    assert many.of_value < 0.02
    assert many.of_value < few.of_value


@pytest.mark.parametrize("game", GAMES)
def test_positions_differ_and_are_decisions(game: str) -> None:
    states = [position.state for position in positions(game)]
    assert len({str(state) for state in states}) == len(states)
    assert all(state.to_play >= 0 and len(state.legal_actions()) > 1 for state in states)
    assert len({round(position.value / position.scale, 3) for position in positions(game)}) > 2
