"""Connect 4 positions in which some moves lose value, and the measure built on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.games import ConnectFour
from pondertree.games.connect_four import solve_many
from pondertree.learn.config.game_spec import game_spec
from pondertree.learn.evaluation.arena import search_player
from pondertree.learn.evaluation.exact_play import (
    known_positions,
    read_positions,
    share_of_kept_values,
    share_of_value_keeping_moves,
    value_keeping_positions,
)
from pondertree.presets import UCT


def stones(state: ConnectFour) -> int:
    return int(state.observation()[:2].sum())


def best(states: list[ConnectFour]) -> list[int]:
    return [solution.best_actions[0] for solution in solve_many(states, weak=False)]


def worst(states: list[ConnectFour]) -> list[int]:
    return [min(s.action_values, key=s.action_values.__getitem__) for s in solve_many(states)]


def test_generated_positions_are_distinct_unfinished_and_critical() -> None:
    positions = value_keeping_positions(60, seed=3, plies=(14, 24))
    assert len({position.state for position in positions}) == len(positions) == 60
    for position, solution in zip(positions, solve_many([p.state for p in positions]), strict=True):
        assert stones(position.state) == position.ply
        assert 14 <= position.ply <= 24
        assert not position.state.is_terminal
        assert position.value == solution.value
        assert position.value in (0, 1)
        assert position.keeping == {a for a, value in solution.action_values.items() if value == solution.value}
        assert 0 < len(position.keeping) < len(position.state.legal_actions())
    # The range is used to both ends, and evenly.
    counts = np.bincount([position.ply for position in positions], minlength=25)[14:]
    assert counts[0] > 0
    assert counts[-1] > 0
    assert counts.max() < 20


def test_generated_positions_depend_on_seed_alone() -> None:
    one = value_keeping_positions(10, seed=5, plies=(16, 22))
    assert value_keeping_positions(10, seed=5, plies=(16, 22), threads=1, max_memory=1) == one
    assert value_keeping_positions(10, seed=6, plies=(16, 22)) != one


def test_share_is_one_for_best_moves_and_zero_for_worst() -> None:
    positions = value_keeping_positions(20, seed=1, plies=(16, 24))
    assert share_of_value_keeping_moves(best, positions) == 1.0
    assert share_of_value_keeping_moves(worst, positions) == 0.0

    def half(states: list[ConnectFour]) -> Sequence[int]:
        return np.array(
            [good if row % 2 else bad for row, (good, bad) in enumerate(zip(best(states), worst(states), strict=True))]
        )

    assert share_of_value_keeping_moves(half, positions) == 0.5


def test_invalid_arguments_are_reported() -> None:
    positions = value_keeping_positions(2, seed=1, plies=(20, 24))
    with pytest.raises(EvaluationError, match="choose returned 1 actions for 2 states"):
        share_of_value_keeping_moves(lambda states: [0], positions)
    with pytest.raises(EvaluationError, match=r"choose returned action 9 for states\[0\]: legal are"):
        share_of_value_keeping_moves(lambda states: [9, 9], positions)
    with pytest.raises(InvalidArgumentError, match="positions must hold"):
        share_of_value_keeping_moves(best, [])
    for plies in [(6,), (24, 6), (-1, 3), (0, 42), 6]:
        with pytest.raises(InvalidArgumentError, match="plies"):
            value_keeping_positions(2, seed=1, plies=plies)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="count"):
        value_keeping_positions(0, seed=1)
    # Few positions of ply 41 have a choice: the search for them gives up with an error.
    with pytest.raises(InvalidArgumentError, match="no new position of ply 41"):
        value_keeping_positions(1, seed=1, plies=(41, 41))


def test_exact_play_test_scores_perfect_and_weak_players() -> None:
    positions = known_positions(game_spec("connect4"), 40)
    assert len(positions) == 40
    for state, keeping in positions:
        assert keeping < set(state.legal_actions())
        assert keeping
    right = {id(state): min(keeping) for state, keeping in positions}
    assert share_of_kept_values(lambda states, seeds: [right[id(state)] for state in states], positions) == 1.0
    assert known_positions(game_spec("othello"), 40) == []
    # A search with proofs preserves the value in most positions.
    assert share_of_kept_values(search_player(UCT(3000, seed=1)), positions) > 0.8


def test_stored_exact_positions_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "positions.txt"
    path.write_text("# a comment\n44:135\n\n4:4 # another\n")
    [(first, keeping), (second, other)] = read_positions(path)
    assert first == ConnectFour().play(3).play(3)
    assert (keeping, second, other) == (frozenset({0, 2, 4}), ConnectFour().play(3), frozenset({3}))
