"""A valid game, and games that each violate one rule of the contract of states."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from examples.games.connect_four_arrays import ConnectFourArrays

from pondertree.games import BatchState


class Pile:
    """Nim with one heap of seven stones: a valid game; each class below changes one thing."""

    num_actions = 3
    num_players = 2

    def __init__(self, stones: tuple[int, ...] = (7,), to_play: Any = 0) -> None:
        self.stones = list(stones)
        self.to_play = to_play

    @property
    def is_terminal(self) -> Any:
        return self.stones[0] == 0

    def legal_actions(self) -> Any:
        return [take for take in (1, 2) if take <= self.stones[0]]

    def play(self, action: int) -> Any:
        if action not in Pile.legal_actions(self):
            raise ValueError(action)
        return type(self)((self.stones[0] - action,), 1 - self.to_play)

    def returns(self) -> Any:
        won = -1.0 if self.to_play == 0 else 1.0
        return [won, -won] if self.is_terminal else [0.0, 0.0]

    def observation(self) -> Any:
        return np.array([self.stones[0], self.to_play], dtype=np.float32)

    def action_to_string(self, action: int) -> Any:
        return f"take {action}"

    def parse_action(self, text: str) -> Any:
        return int(text.removeprefix("take "))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pile) and (self.stones, self.to_play) == (other.stones, other.to_play)

    def __hash__(self) -> int:
        return hash((self.stones[0], self.to_play))


class PlaysInPlace(Pile):
    def play(self, action: int) -> Any:
        if action not in self.legal_actions():
            raise ValueError(action)
        self.stones[0] -= action
        self.to_play = 1 - self.to_play
        return self


class SharesItsList(Pile):
    def play(self, action: int) -> Any:
        after = super().play(action)
        self.stones[0] = after.stones[0]
        return after


class ChangesWhatNobodyAsks(Pile):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.log: list[int] = []

    def play(self, action: int) -> Any:
        after = super().play(action)
        self.log.append(action)
        return after


class ChangesASlot(Pile):
    __slots__ = ("count",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.count = 0

    def play(self, action: int) -> Any:
        self.count += 1
        return super().play(action)


class ChangesAnArray(Pile):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.board = np.zeros(3)

    def play(self, action: int) -> Any:
        self.board[action] += 1
        return super().play(action)


class Clock:
    def __init__(self) -> None:
        self.ticks = {"all": 0}


class ChangesAPart(Pile):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.clock = Clock()

    def play(self, action: int) -> Any:
        self.clock.ticks["all"] += 1
        return super().play(action)


class ChangesItsGrandparent(Pile):
    before: Any = None

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.before = self
        if self.before is not None:
            self.before.stones[0] = 1
        return after


class RefusalChangesIt(Pile):
    def play(self, action: int) -> Any:
        if action == -1:
            self.to_play = 1 - self.to_play
        return super().play(action)


class Duplicates(Pile):
    def legal_actions(self) -> Any:
        return super().legal_actions() * 2


class OutOfRange(Pile):
    num_actions = 2


class NegativeAction(Pile):
    def legal_actions(self) -> Any:
        return [*super().legal_actions(), -1] if self.stones[0] else []


class Mask(Pile):
    def legal_actions(self) -> Any:
        return [0 < take <= self.stones[0] < 3 for take in range(3)]


class FloatActions(Pile):
    def legal_actions(self) -> Any:
        return [float(action) for action in super().legal_actions()]


class SetOfActions(Pile):
    def legal_actions(self) -> Any:
        return set(super().legal_actions())


class GeneratedActions(Pile):
    def legal_actions(self) -> Any:
        return iter(super().legal_actions())


class LegalProperty(Pile):
    legal_actions = property(Pile.legal_actions)  # type: ignore[assignment]


class NothingToDo(Pile):
    def legal_actions(self) -> Any:
        return [] if self.stones[0] == 3 else super().legal_actions()


class LegalAfterTheEnd(Pile):
    def legal_actions(self) -> Any:
        return super().legal_actions() or [1]


class OrderChanges(Pile):
    calls = itertools.count()

    def legal_actions(self) -> Any:
        return super().legal_actions()[:: 1 if next(self.calls) % 2 else -1]


class PlaysOn(Pile):
    def play(self, action: int) -> Any:
        return self if self.is_terminal else super().play(action)


class PlaysAnything(Pile):
    def play(self, action: int) -> Any:
        return super().play(action if action in self.legal_actions() or self.is_terminal else 1)


class TakesMinusOne(Pile):
    def play(self, action: int) -> Any:
        return super().play(1 if action == -1 and not self.is_terminal else action)


class EveryoneWins(Pile):
    def returns(self) -> Any:
        return [1.0, 1.0]


class WinsNaN(Pile):
    def returns(self) -> Any:
        return [float("nan"), float("nan")]


class WinsTooMuch(Pile):
    def returns(self) -> Any:
        return [7.0, -7.0]


class OneReturn(Pile):
    def returns(self) -> Any:
        return [1.0]


class NoSequence(Pile):
    def returns(self) -> Any:
        return 1.0


class ReturnsADict(Pile):
    def returns(self) -> Any:
        return {0: 1.0, 1: -1.0}


class ReturnsText(Pile):
    zero_sum = False

    def returns(self) -> Any:
        return "01"


class RewardsADict(Pile):
    def rewards(self) -> Any:
        return {0: 1.0, 1: -1.0}


class PlayerMethod(Pile):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.to_play = lambda: 0


class Illegible(Pile):
    def parse_action(self, text: str) -> Any:
        return 1


class CannotRead(Pile):
    def parse_action(self, text: str) -> Any:
        return {"take 1": 1}[text]


class SameText(Pile):
    parse_action: Any = None  # it writes only

    def action_to_string(self, action: int) -> Any:
        return "take"


class NoText(Pile):
    def action_to_string(self, action: int) -> Any:
        return action


class GrowingObservation(Pile):
    def observation(self) -> Any:
        return np.zeros(self.stones[0], dtype=np.float32)


class DoubleObservation(Pile):
    def observation(self) -> Any:
        return np.zeros(3)


class ListObservation(Pile):
    def observation(self) -> Any:
        return [0.0, 1.0]


class InfiniteObservation(Pile):
    def observation(self) -> Any:
        return np.array([1.0 / self.stones[0] if self.stones[0] else np.inf], dtype=np.float32)


class ReusesItsObservation(Pile):
    buffer = np.zeros(2, dtype=np.float32)

    def observation(self) -> Any:
        self.buffer[:] = self.stones[0], self.to_play
        return self.buffer


class ThirdPlayer(Pile):
    def play(self, action: int) -> Any:
        after = super().play(action)
        after.to_play = 2 if self.to_play == 1 else 1 - self.to_play
        return after


class PlayerByName(Pile):
    def __init__(self, stones: tuple[int, ...] = (7,), to_play: Any = "white") -> None:
        super().__init__(stones, to_play)


class ReturnsNone(Pile):
    def play(self, action: int) -> Any:
        super().play(action)


class ReturnsAnInt(Pile):
    def play(self, action: int) -> Any:
        return super().play(action).stones[0]


class PlayFails(Pile):
    def play(self, action: int) -> Any:
        if self.stones[0] == 3:
            raise KeyError("three")
        return super().play(action)


class AsksFail(Pile):
    def legal_actions(self) -> Any:
        return super().legal_actions()[: 14 // self.stones[0]]


class TerminalMethod(Pile):
    def is_terminal(self) -> Any:  # type: ignore[override]
        return self.stones[0] == 0


class TerminalNumber(Pile):
    @property
    def is_terminal(self) -> Any:
        return 1 - self.stones[0]


class MorePlayers(Pile):
    @property
    def num_players(self) -> Any:  # type: ignore[override]
        return 2 if self.stones[0] > 3 else 3


class ShrinkingActions(Pile):
    @property
    def num_actions(self) -> Any:  # type: ignore[override]
        return self.stones[0] + 3


class NeverEqual(Pile):
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Pile.__hash__


class EqualIsAnArray(Pile):
    def __eq__(self, other: object) -> Any:
        return np.array([True, True])

    __hash__ = Pile.__hash__


class HashByAddress(Pile):
    __eq__ = Pile.__eq__

    def __hash__(self) -> int:
        return id(self)


class Endless(Pile):
    def play(self, action: int) -> Any:
        super().play(action)
        return type(self)(tuple(self.stones), 1 - self.to_play)


class PlaysOutTooHigh(Pile):
    def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> Any:  # noqa: N802
        return 5.0


class PlaysOutNothing(Pile):
    def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> Any:  # noqa: N802
        return None


class PlaysOutWithoutDepth(Pile):
    def simulateRandomPlayout(self, perspective_player: int) -> Any:  # noqa: N802
        return 0.0


class PlaysOutWithALimitAlone(Pile):
    def simulateRandomPlayout(self, perspective_player: int, max_depth: Any) -> Any:  # noqa: N802
        return 0.0 * range(max_depth)[0]


class PlaysOutInPlace(Pile):
    def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> Any:  # noqa: N802
        self.stones[0] = 0
        return 0.0


class RewardsMissing(Pile):
    def rewards(self) -> Any:
        return [0.0]


class RewardsInfinite(Pile):
    def rewards(self) -> Any:
        return [float("inf"), 0.0]


class RewardsNotZeroSum(Pile):
    zero_sum = True

    def rewards(self) -> Any:
        return [1.0, 1.0]


class Incomplete:
    to_play = 0


class RepeatsACell(Pile):
    def symmetries(self) -> Any:
        return [([0, 0], [0, 1, 2])]


class FewActionsTogether(ConnectFourArrays):
    def legal_mask(self, states: Any) -> Any:
        return super().legal_mask(states) & (np.arange(7) < 8 - len(states))


class DependentRows:
    def __new__(cls) -> Any:
        game = FewActionsTogether()
        return BatchState(game, game.start()[0])
