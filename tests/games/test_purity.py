"""Games whose `play` is not a pure function are refused by searches; pure games are not."""

from __future__ import annotations

import copy
import itertools
import random
import warnings
from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from examples.games.double_move import DoubleMove
from examples.games.nim import Nim
from examples.games.triangle import Triangle
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.search_helpers import PythonGame

import pondertree
from pondertree.errors import GameContractError, RandomGeneratorInStateWarning
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import Chess, ConnectFour, Othello, purity
from pondertree.testing.tabular import TabularGame

SEARCHES: dict[str, Any] = {
    "uct": lambda **options: pondertree.UCT(100, **options),
    "uct, cut playouts": lambda **options: pondertree.UCT(100, max_depth=3, **options),
    "uct, a policy": lambda **options: pondertree.UCT(100, playout_policy="decisive", **options),
    "uct, an evaluator": lambda **options: pondertree.UCT(100, evaluator=Uniform(), **options),
    "uct, forced moves": lambda **options: pondertree.UCT(100, forced_depth=4, **options),
    "alphazero": lambda **options: pondertree.AlphaZero(Uniform(), 100, **options),
    "alphazero, playouts": lambda **options: pondertree.AlphaZero(Rollout(), 100, **options),
    "gumbel": lambda **options: pondertree.Gumbel(Uniform(), 100, **options),
}


class Race:
    """Two players run to 12, one or two steps at a time; who gets there first wins. The games below change `play`."""

    num_actions, num_players = 2, 2

    def __init__(self, places: tuple[int, int] = (0, 0), to_play: int = 0) -> None:
        self.places = places
        self.to_play = to_play

    @property
    def is_terminal(self) -> bool:
        return max(self.places) >= 12

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [0, 1]

    def step(self, steps: int) -> Any:
        here = list(self.places)
        here[self.to_play] += steps
        return type(self)((here[0], here[1]), 1 - self.to_play)

    def play(self, action: int) -> Any:
        if action not in self.legal_actions():
            raise ValueError(action)
        return self.step(action + 1)

    def returns(self) -> list[float]:
        won = 1.0 if self.places[0] > self.places[1] else -1.0
        return [won, -won]


class CoinTurn(Race):
    """A coin says who moves next: two outcomes, both visible at once."""

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.to_play = random.getrandbits(1)
        return after


class DieSteps(Race):
    """The die shows in who wins alone."""

    def play(self, action: int) -> Any:
        if action not in self.legal_actions():
            raise ValueError(action)
        return self.step(random.randint(1, 6))


class NumPySteps(Race):
    def play(self, action: int) -> Any:
        return self.step(int(np.random.randint(1, 7)))


class SharedGenerator(Race):
    generator = random.Random(1)

    def play(self, action: int) -> Any:
        return self.step(self.generator.randint(1, 6))


class Counter(Race):
    rolls = itertools.count()

    def play(self, action: int) -> Any:
        return self.step(next(self.rolls) % 5 + 1)


class ChangesItself(Race):
    def play(self, action: int) -> Any:
        after = super().play(action)
        self.places, self.to_play = after.places, after.to_play
        return self


class RollsInLegalActions(Race):
    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [0, 1][: random.randint(1, 2)]

    def play(self, action: int) -> Any:
        return self.step(action + 1)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("game", [CoinTurn, DieSteps, NumPySteps, SharedGenerator, Counter])
def test_search_refuses_random_numbers_in_play(game: Any, name: str) -> None:
    with pytest.raises(GameContractError, match=rf"{game.__name__}\.play\(\d\) is not a pure function") as caught:
        SEARCHES[name](seed=1).run(game())
    assert "after the actions [" in str(caught.value)
    assert "let the state before each roll be a chance node" in str(caught.value)
    assert "(docs/chance.md)" in str(caught.value)


@pytest.mark.parametrize("in_flight", [1, 8])
def test_search_names_the_path_to_the_impure_move(in_flight: int) -> None:
    """The actions named lead from the root of the tree to the state; the die is rolled in the second half alone."""

    class LateDie(Race):
        def play(self, action: int) -> Any:
            rolls = sum(self.places) >= 7
            after = super().play(action)
            after.to_play = random.getrandbits(1) if rolls else after.to_play
            return after

    with pytest.raises(GameContractError, match="is not a pure function: to_play") as caught:
        pondertree.UCT(4000, seed=1, in_flight=in_flight).run([LateDie((1, 1)), LateDie()])
    words = str(caught.value).split("after the actions [")[1].split("]")[0]
    actions = [int(action) for action in words.split(", ")]
    assert any(sum(_places(start, actions[:-1])) >= 7 for start in ((0, 0), (1, 1)))


def _places(start: tuple[int, int], actions: list[int]) -> tuple[int, int]:
    state = Race(start)
    for action in actions:
        state = state.play(action)
    return state.places


def test_search_refuses_play_that_changes_its_state() -> None:
    with pytest.raises(GameContractError, match=r"ChangesItself\..*must be deterministic and unaffected by `play`"):
        pondertree.UCT(100, seed=1).run(ChangesItself())


def test_nondeterministic_method_is_named() -> None:
    with pytest.raises(GameContractError, match=r"RollsInLegalActions\.legal_actions\(\) .* when read again"):
        pondertree.UCT(100, seed=1).run(RollsInLegalActions())


def test_random_successors_are_detected_in_100_simulations() -> None:
    """24 repetitions: 1 in 2^24 dice games goes unnoticed, if two outcomes are as likely and playouts show nothing."""
    search = pondertree.AlphaZero(Uniform(), 100, seed=1)
    for _ in range(500):
        with pytest.raises(GameContractError):
            search.run(CoinTurn())


def test_random_win_is_not_proven() -> None:
    """A coin decides the game at once: the line of a proof is repeated until there were 24 comparisons."""

    class LastCoin(Race):
        def play(self, action: int) -> Any:
            return self.step(random.choice([1, 12]))

    refused = 0
    for _ in range(500):
        try:
            assert pondertree.UCT(2).run(LastCoin((6, 6))).proven is None
        except GameContractError as error:
            assert "not a pure function" in str(error)  # noqa: PT017 (nothing may be raised either)
            refused += 1
    assert refused > 300


def test_proof_line_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purity.PlayCheck, "replay_step", lambda *_: None)

    class Lottery(Race):
        def play(self, action: int) -> Any:
            return self.step(random.choice([12, 11]))

    search = pondertree.UCT(50, seed=1)
    refused = 0
    for _ in range(50):
        try:
            assert search.run(Lottery()).proven is None
        except GameContractError as error:
            assert "is not a pure function: is_terminal" in str(error)  # noqa: PT017 (nothing may be raised either)
            refused += 1
    assert refused > 10
    assert search.run(Race((10, 0))).proven == 1


# --- Pure games ---


@pytest.fixture
def _every_move_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purity, "CHECK_INTERVAL", 1)
    original = purity.PlayCheck.replay_step

    def replay_step(self: Any, *given: Any) -> None:
        self._next_line = self.moves
        original(self, *given)

    monkeypatch.setattr(purity.PlayCheck, "replay_step", replay_step)


@pytest.mark.usefixtures("_every_move_is_repeated")
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize(
    "game", [Nim(), CoinRow(), Triangle(), DoubleMove(), Race(), PythonGame(ConnectFour()), PythonGame(Othello())]
)
def test_pure_games_are_searched(game: Any, name: str) -> None:
    if name == "uct, forced moves" and isinstance(game, (CoinRow, Triangle)):
        name = "uct"  # forced moves need two players
    result = SEARCHES[name](seed=1, solve=False).run(game)
    assert result.simulations == 100


@pytest.mark.usefixtures("_every_move_is_repeated")
@settings(max_examples=100)
@given(
    seed=st.integers(0, 10**6),
    players=st.sampled_from([1, 2, 2, 3]),
    order=st.sampled_from(["alternate", "random", "double"]),
    rewards=st.booleans(),
    name=st.sampled_from(["uct", "uct, cut playouts", "alphazero", "alphazero, playouts", "gumbel"]),
    in_flight=st.sampled_from([1, 4]),
)
def test_random_pure_games_are_searched(
    seed: int, players: int, order: Any, rewards: bool, name: str, in_flight: int
) -> None:
    state = TabularGame(seed, players=players, turn_order=order, rewards=rewards).start()
    assert SEARCHES[name](seed=seed, in_flight=in_flight).run(state).simulations <= 100


class Counts(Race):
    """Calls are counted, states are numbered, children are kept, and legal actions come in any order."""

    calls = 0
    numbers = itertools.count()

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.number = next(self.numbers)
        self.children: dict[int, Any] = {}

    def play(self, action: int) -> Any:
        Counts.calls += 1
        if self.number % 2 and action in self.children:
            return self.children[action]
        after = super().play(action)
        self.children[action] = after
        return after

    def legal_actions(self) -> list[int]:
        legal = super().legal_actions()
        random.shuffle(legal)
        return legal

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class RandomSymmetry(Race):
    """The observation is turned at random, as some do to train a network."""

    def observation(self) -> Any:
        return np.array(self.places if random.random() < 0.5 else self.places[::-1], dtype=np.float32)


def even(observations: Any) -> tuple[Any, Any]:
    return np.zeros((len(observations), 2), dtype=np.float32), np.zeros(len(observations), dtype=np.float32)


@pytest.mark.usefixtures("_every_move_is_repeated")
def test_side_effects_that_change_no_answer_are_accepted() -> None:
    for name in SEARCHES:
        assert SEARCHES[name](seed=1).run(Counts()).simulations == 100
    assert pondertree.AlphaZero(even, 60, seed=1).run(RandomSymmetry()).simulations == 60


def test_search_compares_observations_for_evaluators() -> None:
    class HiddenDie(Race):
        """Nothing but the observation knows of the die before the end."""

        die = 0

        def play(self, action: int) -> Any:
            after = super().play(action)
            after.die = random.randint(1, 6)
            return after

        def observation(self) -> Any:
            return np.array([*self.places, self.die], dtype=np.float32)

    with pytest.raises(GameContractError, match="not a pure function: observation"):
        pondertree.AlphaZero(even, 60, seed=1).run(HiddenDie())


def test_checks_draw_no_numbers_of_the_user() -> None:
    random.seed(5)
    np.random.seed(5)
    before, numpy_before = random.getstate(), np.random.random_sample()
    np.random.seed(5)
    pondertree.UCT(300, seed=1).run(Race())
    assert random.getstate() == before
    assert np.random.random_sample() == numpy_before


def test_checks_are_a_small_share_of_the_moves() -> None:
    """The first 24 moves, every 64th after them, and few lines: the share falls with the length of the search."""
    calls = [0]

    class Counted(Race):
        def play(self, action: int) -> Any:
            calls[0] += 1
            return super().play(action)

    pondertree.AlphaZero(Uniform(), 2000, seed=1, solve=False).run(Counted((-20, -20)))
    assert 1950 < calls[0] < 2000 * 1.03


def test_compiled_games_are_not_repeated() -> None:
    assert pondertree.UCT(10, seed=1).run(Chess()).simulations == 10


# --- States that carry a generator ---


def carrying(generator: Any, draws: bool = True) -> Any:
    """A new class of games whose states carry a generator, which is copied with them."""

    class Carries(Race):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.generator = copy.deepcopy(generator)

        def play(self, action: int) -> Any:
            after = super().play(action)
            after.generator = copy.deepcopy(self.generator)
            if draws:
                after.places = (after.places[0] + int(after.generator.random() < 0.5), after.places[1])
            return after

    return Carries


GENERATORS = [random.Random(1), np.random.default_rng(1), np.random.RandomState(1), [random.Random(1)]]


@pytest.mark.parametrize("generator", GENERATORS[:3], ids=lambda generator: type(generator).__name__)
@pytest.mark.parametrize("name", ["uct", "alphazero"])
def test_search_warns_once_per_class_of_a_generator_in_the_state(generator: Any, name: str) -> None:
    game = carrying(generator)
    search = SEARCHES[name](seed=1)
    with pytest.warns(RandomGeneratorInStateWarning, match=r"Carries carry a random generator \('generator'\)") as seen:
        result = search.run(game())
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert result.simulations > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.run(game())


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: type(generator).__name__)
def test_search_does_not_warn_of_a_generator_that_play_leaves_alone(generator: Any) -> None:
    assert pondertree.UCT(100, seed=1).run(carrying(generator, draws=False)()).simulations == 100


@pytest.mark.parametrize("make", [random.Random, lambda _: random.Random(), np.random.default_rng])
def test_search_does_not_warn_of_a_new_generator_in_every_state(make: Any) -> None:
    class Makes(Race):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.generator = make(sum(self.places))

    assert pondertree.UCT(100, seed=1).run(Makes()).simulations == 100


# --- What the error advises ---


class ChancePlayer:
    """A bet, or a sure 0.1: player 1 is the die, all of whose faces are worth 0 to it. Bet 1 wins on 5 and 6, bet 2 on
    3 to 6."""

    num_actions, num_players, zero_sum = 6, 2, False

    def __init__(self, bet: int | None = None, face: int | None = None) -> None:
        self.bet, self.face = bet, face

    @property
    def to_play(self) -> int:
        return 0 if self.bet is None else 1

    @property
    def is_terminal(self) -> bool:
        return self.bet == 0 or self.face is not None

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [0, 1, 2] if self.bet is None else [0, 1, 2, 3, 4, 5]

    def play(self, action: int) -> ChancePlayer:
        return ChancePlayer(action) if self.bet is None else ChancePlayer(self.bet, action)

    def returns(self) -> list[float]:
        if self.bet == 0 or self.bet is None or self.face is None:
            return [0.1, 0.0]
        return [1.0 if self.face >= (4 if self.bet == 1 else 2) else -1.0, 0.0]


def test_dice_as_an_additional_player_have_their_expected_value() -> None:
    result = pondertree.UCT(3000, seed=1).run(ChancePlayer())
    assert result.action == 2
    assert result.q[:3] == pytest.approx([0.1, -1 / 3, 1 / 3], abs=0.02)
    assert result.proven is None
