"""Games with endless playouts: they are cut with a warning or raise, within seconds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import pondertree
from pondertree.errors import UnfinishedPlayoutWarning


class Endless:
    """A game without end."""

    num_actions, num_players, to_play, is_terminal = 2, 2, 0, False

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Endless:
        return self

    def returns(self) -> tuple[float, float]:
        return 0.0, 0.0


class Zero:
    """Returns 0 for every position."""

    def evaluate_states(self, states: Any) -> tuple[None, Any]:
        return None, np.zeros(len(states))


class Wanders:
    """A walk from 3 to 0 or 6 in single steps with rewards: of unbounded length."""

    num_actions, num_players, to_play = 2, 1, 0

    def __init__(self, place: int = 3) -> None:
        self.place = place

    @property
    def is_terminal(self) -> bool:
        return self.place in (0, 6)

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [0, 1]

    def play(self, action: int) -> Wanders:
        return type(self)(self.place + 2 * action - 1)

    def returns(self) -> list[float]:
        return [self.place / 6]


@pytest.mark.parametrize("policy", [None, lambda state: [1.0, 1.0]])
@pytest.mark.parametrize("rewards", [False, True])
def test_long_playouts_are_cut_with_one_warning_if_others_end(
    policy: Any, rewards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pondertree.search.leaf_evaluation.MAX_PLAYOUT_LENGTH", 6)
    monkeypatch.setattr("pondertree.games.playout.MAX_PLAYOUT_LENGTH", 6)
    game = type("Paid", (Wanders,), {"rewards": lambda self: [0.125]}) if rewards else Wanders
    tree = pondertree.UCT(200, seed=1, playout_policy=policy).tree(game())
    with pytest.warns(UnfinishedPlayoutWarning, match="not over after 6 moves: it was truncated") as seen:
        tree.simulate().simulate()
    assert len(seen) == 1
    assert seen[0].filename == __file__
    result = tree.result()
    assert result.simulations == 400
    if rewards:
        # Rewards come from at most the moves of a descent and six of a playout.
        assert 0.125 <= result.value <= 0.125 * (6 + result.root._view.depths()[1])


@pytest.mark.parametrize("policy", [None, lambda state: [1.0, 1.0]])
def test_cut_playouts_have_value_zero_as_in_reference(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.reference.uct import MCTS

    monkeypatch.setattr("pondertree.search.leaf_evaluation.MAX_PLAYOUT_LENGTH", 5)
    monkeypatch.setattr("pondertree.games.playout.MAX_PLAYOUT_LENGTH", 5)
    for seed in range(5):
        with pytest.warns(UnfinishedPlayoutWarning):
            ours = pondertree.UCT(100, seed=seed, playout_policy=policy).run(Wanders())
        theirs = MCTS(100, seed=seed, playout_policy=policy).run(Wanders())
        assert {action: int(ours.visits[action]) for action in theirs.visits} == theirs.visits
        assert ours.value == theirs.value


def test_endless_game_raises_in_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.games.playout import FIRST_PLAYOUTS
    from pondertree.reference import alphazero, priors
    from pondertree.reference.uct import MCTS

    monkeypatch.setattr("pondertree.search.leaf_evaluation.MAX_PLAYOUT_LENGTH", 50)
    monkeypatch.setattr("pondertree.games.playout.MAX_PLAYOUT_LENGTH", 50)
    few = FIRST_PLAYOUTS - 1
    searches: list[Any] = [
        lambda count: MCTS(count, seed=1),
        lambda count: alphazero.MCTS(priors.Rollout(), num_simulations=count, seed=1),
    ]
    for search in searches:
        with pytest.raises(ValueError, match="not over after 50 moves"):
            search(FIRST_PLAYOUTS + 1).run(Endless())
        assert search(few - 1).run(Endless()).value == 0.0
    with pytest.raises(pondertree.GameContractError, match=f"not over after 50 .* the first {FIRST_PLAYOUTS} playouts"):
        pondertree.UCT(FIRST_PLAYOUTS, seed=1).run(Endless())
    with pytest.warns(UnfinishedPlayoutWarning):
        assert pondertree.UCT(few, seed=1).run(Endless()).simulations == few


def test_endless_game_raises_within_seconds() -> None:
    begun = time.perf_counter()
    for search in (pondertree.UCT(1000), pondertree.AlphaZero(pondertree.evaluators.Rollout(), 1000)):
        with pytest.raises(
            pondertree.GameContractError, match=r"not over after 10000 .* the first 16 playouts: .* max_depth="
        ):
            search.run(Endless())
    with pytest.raises(pondertree.GameContractError, match=r"not over after 10000 .* max_depth="):
        pondertree.playout(Endless(), 0)
    assert pondertree.playout(Endless(), 0, max_depth=20_000) == 0.0
    assert time.perf_counter() - begun < 10
    # Without playouts a game need not end.
    assert pondertree.AlphaZero(pondertree.evaluators.Uniform(), 50).run(Endless()).simulations == 50


@pytest.mark.parametrize("options", [{}, {"evaluator": Zero()}, {"playout_policy": "decisive"}])
def test_time_limit_ends_playouts_of_any_max_depth(options: Any) -> None:
    begun = time.perf_counter()
    pondertree.UCT(50, time_limit=0.1, max_depth=2**31 - 1, **options).run(Endless())
    assert time.perf_counter() - begun < 5
