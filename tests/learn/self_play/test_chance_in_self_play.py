"""Self-play of games of chance: discounts of outcomes' rewards, checks, starts by chance, undone openings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.learning import SMALL

import pondertree
from pondertree.errors import GameContractError
from pondertree.evaluators import Uniform
from pondertree.game import CHANCE
from pondertree.learn import Config, default_config
from pondertree.learn.config import game_spec
from pondertree.learn.data import GameRecord, ReplayBuffer, check_games
from pondertree.learn.self_play import SelfPlay
from pondertree.learn.self_play.episode import Episode


def small(**values: Any) -> Config:
    return default_config("tests.support.learning:Dice", **{**SMALL, "out": ""}).with_values(**values)


def play_on(games: SelfPlay, moves: int) -> list[GameRecord]:
    return [game for version in range(moves) for game in games.move(version)]


class Interest:
    """Each of three moves pays 4 and each outcome after it 8 or 16, evenly; nothing else matters."""

    num_actions, num_players = 2, 1
    turn_pays, outcome_pays = 4.0, (8.0, 16.0)

    def __init__(self, turn: int = 0, waits: bool = False, paid: float = 0.0) -> None:
        self.turn, self.waits, self.paid = turn, waits, paid
        self.to_play = CHANCE if waits else 0
        self.is_terminal = turn >= 3 and not waits

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [0, 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.5), (1, 0.5)]

    def play(self, action: int) -> Interest:
        if self.waits:
            return type(self)(self.turn, False, self.outcome_pays[action])
        return type(self)(self.turn + 1, True, self.turn_pays)

    def rewards(self) -> list[float]:
        return [self.paid]

    def returns(self) -> list[float]:
        return [0.0]

    def observation(self) -> Any:
        return np.array([self.turn], np.float32)


def games_of(factory: Any, **values: Any) -> SelfPlay:
    """Returns self-play of a game that is not importable by name, begun."""
    spec = game_spec("", factory)
    found = SelfPlay(spec, small(**values), Uniform())
    found.begin()
    return found


def rewards_of_move(records: list[GameRecord], move: int) -> Any:
    """Returns what a move of `Interest` and its outcome pay, with discount 0.5."""
    return np.array([4.0 + 0.5 * Interest.outcome_pays[game.outcomes[move]] for game in records])


def test_value_targets_discount_outcomes_like_the_search() -> None:
    """A reward after a move is worth g = r + discount * g: that of an outcome is discounted once, as in the search."""
    discount = 0.5
    play = {"simulations": 4, "opening_plies": 0, "games_at_once": 64}
    games = games_of(Interest, returns={"discount": discount}, self_play=play)
    records = play_on(games, 3)
    assert len(records) == 64
    replay = ReplayBuffer(games._spec, games._config)
    replay.add(records)
    targets = replay.gather(np.arange(192)).results.reshape(64, 3)
    # The last move: 4 + 0.5 * 8 or 4 + 0.5 * 16, half of the games each; each move before it as much and half of that.
    assert set(targets[:, 2].tolist()) == {8.0, 12.0}
    np.testing.assert_allclose(targets[:, 1], rewards_of_move(records, 1) + discount * targets[:, 2])
    np.testing.assert_allclose(targets[:, 0], rewards_of_move(records, 0) + discount * targets[:, 1])
    exact = 10.0 * (1 + discount + discount**2)
    assert abs(targets[:, 0].mean() - exact) < 1.0
    assert pondertree.UCT(4000, discount=discount, seed=1).run(Interest()).value == pytest.approx(exact, rel=0.01)
    # Scores are not discounted.
    assert {float(game.returns[0]) for game in records} <= {12.0 + 8.0 * count for count in (3, 4, 5, 6)}


@pytest.mark.parametrize("reward", [float("inf"), float("nan"), 1e39])
@pytest.mark.parametrize("of_outcome", [True, False])
def test_rewards_out_of_range_are_refused(reward: float, of_outcome: bool) -> None:
    class Broken(Interest):
        turn_pays, outcome_pays = (4.0, (reward, reward)) if of_outcome else (reward, (8.0, 16.0))

    game = Episode(0, 1, Broken())
    spec = game_spec("", Broken)
    with pytest.raises(GameContractError, match=r"Broken\.rewards\(\) gave, after [01], the reward (inf|nan|1e\+39)"):
        game.play_opening(0, spec.info)


class Deal(Interest):
    """A deal that ends the game with probability 3/4 before the first move."""

    def __init__(self, turn: int = 0, waits: bool = True, paid: float = 0.0, over: bool = False) -> None:
        super().__init__(turn, waits, paid)
        self.is_terminal = over or self.is_terminal

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.75), (1, 0.25)] if self.turn == 0 else super().chance_outcomes()

    def play(self, action: int) -> Deal:
        if self.waits:
            return Deal(self.turn, False, 0.0, over=self.turn == 0 and action == 0)
        return Deal(self.turn + 1, True, 4.0)

    def observation(self) -> Any:
        assert self.to_play != CHANCE
        assert not self.is_terminal
        return super().observation()

    def symmetries(self) -> list[Any]:
        assert self.to_play != CHANCE
        assert not self.is_terminal
        return [([0], [0, 1]), ([0], [1, 0])]


def test_games_over_before_the_first_decision_are_dealt_again() -> None:
    games = games_of(Deal, self_play={"simulations": 4, "games_at_once": 64, "opening_plies": 0})
    assert all(not game.state.is_terminal and game.outcomes == [1] for game in games.games)
    records = play_on(games, 7)
    assert len(records) == 128
    assert all(game.outcomes[0] == 1 and game.drawn[0] == 1 for game in records)
    check_games(records, games._spec)


def test_shape_and_symmetries_are_read_at_a_decision() -> None:
    spec = game_spec("", Deal)
    assert spec.shape == (1,)
    assert len(spec.symmetries) == 2


def test_games_without_a_decision_cannot_be_trained() -> None:
    class Lottery(Deal):
        def chance_outcomes(self) -> list[tuple[int, float]]:
            return [(0, 1.0)]

    with pytest.raises(GameContractError, match="Lottery ends by chance before the first decision"):
        game_spec("", Lottery)


class Coin(Interest):
    """Throws a coin after each move; heads ends the game."""

    def __init__(self, turn: int = 0, waits: bool = False, paid: float = 0.0, over: bool = False) -> None:
        super().__init__(turn, waits, paid)
        self.is_terminal = over or self.is_terminal

    def play(self, action: int) -> Coin:
        if self.waits:
            return Coin(self.turn, False, 0.0, over=action == 0)
        return Coin(self.turn + 1, True, 0.0)


def test_moves_after_an_undone_opening_draw_other_outcomes() -> None:
    """An undone move of the opening ended the game; the same numbers would end it again."""
    info = game_spec("", Coin).info
    survived = undone = 0
    for key in range(40):
        game = Episode(0, key, Coin())
        if not game.play_opening(0, info):
            undone += 1
            game.moves.append(0)
            game.state = game.state.play(0)
            game.draw_until_decision(info)
            survived += not game.state.is_terminal
    assert undone > 8
    assert 0 < survived < undone


@pytest.mark.parametrize("at_start", [True, False])
def test_endless_chance_is_refused(at_start: bool) -> None:
    class Endless(Interest):
        def __init__(self, turn: int = 0, waits: bool = at_start, paid: float = 0.0) -> None:
            super().__init__(turn, waits, paid)

        def play(self, action: int) -> Endless:
            return Endless(self.turn, True)

    with pytest.raises(GameContractError, match="Endless: 1000 chance nodes follow each other"):
        Episode(0, 1, Endless()).play_opening(0, game_spec("", Endless).info)
