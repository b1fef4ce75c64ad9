"""`check_game`: valid games pass, and each violation is reported under its rule."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import random
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from tests.support.broken_games import (
    AsksFail,
    CannotRead,
    ChangesAnArray,
    ChangesAPart,
    ChangesASlot,
    ChangesItsGrandparent,
    ChangesWhatNobodyAsks,
    DependentRows,
    DoubleObservation,
    Duplicates,
    Endless,
    EqualIsAnArray,
    EveryoneWins,
    FloatActions,
    GeneratedActions,
    GrowingObservation,
    HashByAddress,
    Illegible,
    Incomplete,
    InfiniteObservation,
    LegalAfterTheEnd,
    LegalProperty,
    ListObservation,
    Mask,
    MorePlayers,
    NegativeAction,
    NeverEqual,
    NoSequence,
    NoText,
    NothingToDo,
    OneReturn,
    OrderChanges,
    OutOfRange,
    Pile,
    PlayerByName,
    PlayerMethod,
    PlayFails,
    PlaysAnything,
    PlaysInPlace,
    PlaysOn,
    PlaysOutInPlace,
    PlaysOutNothing,
    PlaysOutTooHigh,
    PlaysOutWithALimitAlone,
    PlaysOutWithoutDepth,
    RefusalChangesIt,
    RepeatsACell,
    ReturnsADict,
    ReturnsAnInt,
    ReturnsNone,
    ReturnsText,
    ReusesItsObservation,
    RewardsADict,
    RewardsInfinite,
    RewardsMissing,
    RewardsNotZeroSum,
    SameText,
    SetOfActions,
    SharesItsList,
    ShrinkingActions,
    TakesMinusOne,
    TerminalMethod,
    TerminalNumber,
    ThirdPlayer,
    WinsNaN,
    WinsTooMuch,
)
from tests.support.chance_games import HalfOutcomes
from tests.support.impure_games import (
    AsksTheTime,
    CopiesANumPyGenerator,
    CopiesARandomState,
    CopiesItsGenerator,
    Dice,
    FlickeringObservation,
    HidesItsDie,
    KeepsItsGeneratorInADict,
    KeepsItsGeneratorInAPart,
    RollsAGlobalDie,
    RollsANumPyDie,
    RollsASharedDie,
    SharesItsGenerator,
)

from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.testing import RULES, GameReport, check_game

VIOLATIONS: list[tuple[type, str, str]] = [
    (HalfOutcomes, "chance", "sum to 0.5"),
    (DependentRows, "rows", "of legal_mask(states) for"),
    (PlaysInPlace, "mutation", "changed"),
    (SharesItsList, "mutation", "changed"),
    (ChangesWhatNobodyAsks, "mutation", "attribute 'log'"),
    (ChangesASlot, "mutation", "attribute 'count'"),
    (ChangesAnArray, "mutation", "attribute 'board'"),
    (ChangesAPart, "mutation", "attribute 'clock'"),
    (ChangesItsGrandparent, "mutation", "later moves changed"),
    (RefusalChangesIt, "mutation", "changed to_play"),
    (Duplicates, "legal_actions", "1 more than once: [1, 2, 1, 2]"),
    (OutOfRange, "legal_actions", "has 2: actions must be from 0 to num_actions - 1 = 1"),
    (NegativeAction, "legal_actions", "has -1"),
    (Mask, "legal_actions", "like a mask"),
    (FloatActions, "legal_actions", "has 1.0: actions must be ints"),
    (SetOfActions, "legal_actions", "legal_actions() is a set: it must be a list, or another sequence"),
    (GeneratedActions, "legal_actions", "legal_actions() is a list_iterator: it must be a list"),
    (LegalProperty, "state", "LegalProperty.legal_actions is a property: make it a method"),
    (NothingToDo, "legal_actions", "empty although the game is not over"),
    (LegalAfterTheEnd, "legal_actions", "the game is over, yet legal_actions() is [1]"),
    (OrderChanges, "determinism", "[1, 2] when read again"),
    (PlaysOn, "refusal", "the game is over"),
    (PlaysAnything, "refusal", "not legal here"),
    (TakesMinusOne, "refusal", "play(-1)"),
    (EveryoneWins, "zero_sum", "sums to 2.0"),
    (WinsNaN, "returns", "must be finite"),
    (WinsTooMuch, "returns", "must be in [-1, 1]"),
    (OneReturn, "returns", "has 1 numbers: it must have one for each of the 2 players"),
    (NoSequence, "returns", "it must be one number for each of the 2 players"),
    (ReturnsADict, "returns", "must be a list of numbers, not a dict"),
    (ReturnsText, "returns", "must be a list of numbers, not a str"),
    (RewardsADict, "rewards", "must be a list of numbers, not a dict"),
    (Illegible, "notation", "parse_action('take 2') is 1"),
    (CannotRead, "notation", "parse_action('take 2') raised KeyError"),
    (SameText, "notation", "1 and 2 are both written 'take'"),
    (NoText, "notation", "not a text"),
    (GrowingObservation, "observation", "and had (7,) before"),
    (DoubleObservation, "observation", "an array of float64"),
    (ListObservation, "observation", "a list"),
    (InfiniteObservation, "observation", "not finite"),
    (ReusesItsObservation, "observation", "changed the array that it gave in another state: give a new one"),
    (Dice, "determinism", "after the same actions again"),
    (RollsASharedDie, "determinism", "Dice and shuffled cards in play() are not supported"),
    (RollsAGlobalDie, "determinism", "to_play was"),
    (RollsANumPyDie, "determinism", "to_play was"),
    (AsksTheTime, "determinism", "to_play was"),
    (SharesItsGenerator, "determinism", "to_play was"),
    (HidesItsDie, "determinism", "returns() was"),
    (CopiesItsGenerator, "randomness", "drew from the random generator in 'generator'"),
    (CopiesANumPyGenerator, "randomness", "drew from the random generator in 'generator'"),
    (CopiesARandomState, "randomness", "drew from the random generator in 'generator'"),
    (KeepsItsGeneratorInAPart, "randomness", "'cup.generator'"),
    (KeepsItsGeneratorInADict, "randomness", "\"tools['die']\""),
    (FlickeringObservation, "determinism", "when read again"),
    (ThirdPlayer, "to_play", "from 0 to 1"),
    (PlayerByName, "to_play", "'white': it must be an int from 0 to 1"),
    (PlayerMethod, "to_play", "to_play is a method: make it a property or an attribute"),
    (ReturnsNone, "play", "returned None"),
    (ReturnsAnInt, "state", "'int' object is not a game state"),
    (PlayFails, "play", "raised KeyError: 'three'"),
    (AsksFail, "answers", "legal_actions() raised ZeroDivisionError"),
    (TerminalMethod, "is_terminal", "make it a property"),
    (TerminalNumber, "is_terminal", "not True or False"),
    (MorePlayers, "constants", "num_players was 2 and is 3"),
    (ShrinkingActions, "constants", "num_actions was 10 and is"),
    (NeverEqual, "equality", "not equal"),
    (EqualIsAnArray, "equality", "raised ValueError"),
    (HashByAddress, "equality", "different hashes"),
    (Endless, "end", "none of 20 random games was over after 50 moves: if they are longer, raise max_moves"),
    (PlaysOutTooHigh, "playout", "simulateRandomPlayout(0, 50) gave 5.0: it must be a number from -1 to 1"),
    (PlaysOutNothing, "playout", "simulateRandomPlayout(0, 50) gave None"),
    (PlaysOutWithoutDepth, "playout", "simulateRandomPlayout(0, 50) raised TypeError"),
    (PlaysOutWithALimitAlone, "playout", "simulateRandomPlayout(0, None) raised TypeError"),
    (PlaysOutInPlace, "mutation", "simulateRandomPlayout changed"),
    (RewardsMissing, "rewards", "has 1 numbers: it must have one for each of the 2 players"),
    (RewardsInfinite, "rewards", "rewards are finite numbers"),
    (RewardsNotZeroSum, "zero_sum", "rewards() is (1.0, 1.0)"),
    (Incomplete, "state", "it has no legal_actions, play"),
    (RepeatsACell, "symmetries", "symmetries[0].cells must hold every number from 0 to 1 once"),
]


@pytest.mark.parametrize(("game", "rule", "text"), VIOLATIONS, ids=lambda entry: getattr(entry, "__name__", None))
def test_each_violation_is_reported_with_its_rule(game: type, rule: str, text: str) -> None:
    with pytest.raises(GameContractError) as caught:
        check_game(game, max_moves=50)
    message = str(caught.value)
    assert message.startswith(f"broken rule {rule!r} ({RULES[rule]}): "), message
    assert text in message
    assert "\n  state: " in message
    assert "\n  reached by the actions: [" in message


def test_check_game_shortens_the_actions_of_a_game_that_does_not_end() -> None:
    with pytest.raises(GameContractError, match=r"actions: \[\d(, \d){4}, \.\.\.(, \d){5}\]$") as caught:
        check_game(Endless)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("frozen", [True, False])
def test_check_game_advises_dataclasses_with_arrays_to_have_no_eq(frozen: bool) -> None:
    def fields(kind: Any, **options: Any) -> Any:
        return dataclasses.make_dataclass("Board", [("board", Any, None)], bases=(kind,), frozen=frozen, **options)

    class Squares:
        """Two squares to fill."""

        board: Any
        num_actions, num_players, zero_sum = 2, 2, False
        squares = property(lambda self: np.zeros(2) if self.board is None else self.board)
        to_play = property(lambda self: int(self.squares.sum()) % 2)
        is_terminal = property(lambda self: bool(self.squares.all()))

        def legal_actions(self) -> Any:
            return np.flatnonzero(self.squares == 0)

        def play(self, action: int) -> Any:
            if action not in self.legal_actions():
                raise ValueError(action)
            board = self.squares.copy()
            board[action] = 1
            return type(self)(board)  # type: ignore[call-arg]

        def returns(self) -> Any:
            return [0.0, 0.0]

    with pytest.raises(GameContractError, match=r"'equality'.* raised .*use @dataclass\(eq=False\)"):
        check_game(fields(Squares))
    assert check_game(fields(Squares, eq=False)).longest == 2


def test_every_rule_has_a_violating_game() -> None:
    assert {rule for _, rule, _ in VIOLATIONS} == set(RULES)


def test_message_gives_the_actions_to_the_state() -> None:
    """Playing the actions named gives the state that breaks the rule."""
    with pytest.raises(GameContractError) as caught:
        check_game(NothingToDo)
    state = NothingToDo()
    actions = str(caught.value).rsplit("actions: ", 1)[1].strip("[]").split(", ")
    for action in actions:
        state = state.play(int(action))
    assert state.legal_actions() == []
    assert not state.is_terminal


def test_valid_game_passes() -> None:
    report = check_game(Pile)
    assert report == GameReport("Pile", 20, report.plies, 4, 7, 0, 2, (2,))
    assert report.shortest * 20 <= report.plies <= report.longest * 20
    assert check_game(Pile) == report
    assert check_game(Pile, seed=1).plies != report.plies
    assert check_game(Pile, games=3).games == 3


class Caches(Pile):
    """Lazily computed attributes, in each of the usual ways."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._legal: list[int] | None = None
        self._after: dict[int, Any] = {}

    @cached_property
    def name(self) -> str:
        return f"{self.stones}"

    def legal_actions(self) -> Any:
        if self._legal is None:
            self._legal = super().legal_actions()
        return self._legal

    def play(self, action: int) -> Any:
        if action not in self._after:
            self._after[action] = super().play(action)
            assert self.name
        return self._after[action]


class Plain:
    """The least a game can be: no observation, no notation, no ==."""

    num_actions, num_players = 1, 1
    to_play = 0

    def __init__(self, left: int = 3) -> None:
        self.left = left

    is_terminal = property(lambda self: self.left == 0)

    def legal_actions(self) -> Any:
        return range(self.left > 0)

    def play(self, action: int) -> Any:
        if action != 0 or self.left == 0:
            raise IndexError
        return Plain(self.left - 1)

    def returns(self) -> Any:
        return (0.5,)


class OwnPlayouts(Pile):
    """Carries a generator for its own playouts, which `play` does not draw from."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.generator = random.Random(1)

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.generator = copy.deepcopy(self.generator)
        return after

    def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> float:  # noqa: N802
        return self.generator.choice([-1.0, 1.0])


def with_new_generator(make: Any) -> Any:
    """A class whose states each make a generator, which nothing draws from."""

    class MakesAGenerator(Pile):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.generator = make(self.stones[0])

    return MakesAGenerator


NEW_GENERATORS = {
    "Random, seeded": random.Random,
    "Random": lambda _: random.Random(),
    "Generator": np.random.default_rng,
    "Generator, MT19937": lambda seed: np.random.Generator(np.random.MT19937(seed)),
    "RandomState": np.random.RandomState,
}


@pytest.mark.parametrize("make", NEW_GENERATORS.values(), ids=NEW_GENERATORS)
def test_check_game_accepts_a_new_generator_in_every_state(make: Any) -> None:
    assert check_game(with_new_generator(make)).unfinished == 0


SEEDED_GENERATORS = {
    "Random": random.Random(3),
    "PCG64": np.random.default_rng(3),
    "Philox": np.random.Generator(np.random.Philox(3)),
    "MT19937": np.random.Generator(np.random.MT19937(3)),
    "RandomState": np.random.RandomState(3),
}
DRAWS: list[tuple[str, tuple[Any, ...]]] = [
    ("random", ()),
    ("gauss", (0, 1)),
    ("standard_normal", ()),
    ("standard_normal", (700,)),
    ("getrandbits", (1,)),
    ("randbytes", (2500,)),
    ("bytes", (1,)),
    ("integers", (2, None, None, np.uint32)),
    ("randint", (0, 2)),
]


@pytest.mark.parametrize(
    ("kind", "method", "arguments"),
    [(kind, *draw) for kind, generator in SEEDED_GENERATORS.items() for draw in DRAWS if hasattr(generator, draw[0])],
)
def test_check_game_refuses_any_draw_from_a_copied_generator(kind: str, method: str, arguments: Any) -> None:
    class Draws(CopiesItsGenerator):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.generator = copy.deepcopy(SEEDED_GENERATORS[kind])

        def play(self, action: int) -> Any:
            after = Pile.play(self, action)
            after.generator = copy.deepcopy(self.generator)
            getattr(after.generator, method)(*arguments)
            return after

    with pytest.raises(GameContractError, match="'randomness'"):
        check_game(Draws)


class AsksTheSystem(Pile):
    """A generator without a state of its own, which nothing is drawn from."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.generator = random.SystemRandom()


class CountsCalls(Pile):
    """Counters of the class change, and every state has a number of its own."""

    calls = 0
    numbers = itertools.count()

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.number = next(self.numbers)

    def play(self, action: int) -> Any:
        CountsCalls.calls += 1
        return super().play(action)


@pytest.mark.parametrize("game", [OwnPlayouts, AsksTheSystem, CountsCalls])
def test_check_game_accepts_side_effects_that_change_no_answer(game: Any) -> None:
    assert check_game(game).unfinished == 0


@pytest.mark.parametrize("seed", range(20))
def test_check_game_refuses_a_die_of_six_sides_whatever_the_seed(seed: int) -> None:
    with pytest.raises(GameContractError, match="'determinism'"):
        check_game(RollsAGlobalDie, seed=seed)


def test_cached_attributes_are_no_mutation() -> None:
    assert check_game(Caches).unfinished == 0


def test_minimal_game_passes() -> None:
    assert check_game(Plain) == GameReport("Plain", 20, 60, 3, 3, 0, 1, None)


def test_cut_games_are_counted() -> None:
    # Seven stones take four moves at least: some games are over by then, and some are not.
    report = check_game(Pile, max_moves=4, games=50)
    assert 0 < report.unfinished < 50
    assert report.longest == 4
    with pytest.raises(GameContractError, match="none of 5 random games was over after 3 moves"):
        check_game(Pile, max_moves=3, games=5)


def test_check_game_refuses_invalid_arguments() -> None:
    with pytest.raises(InvalidArgumentError, match="factory"):
        check_game(Pile())  # type: ignore[arg-type]
    for name in ("games", "max_moves"):
        with pytest.raises(InvalidArgumentError, match=name):
            check_game(Pile, **{name: 0})
    with pytest.raises(GameContractError, match=r"factory\(\) raised ZeroDivisionError"):
        check_game(lambda: 1 // 0)
