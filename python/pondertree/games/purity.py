"""Checks that `play` of a Python game is a pure function, on a sample of the moves of a search.

A search assumes one successor per action. If `play` draws random numbers or mutates its state, values and proofs are
meaningless.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from pondertree._core import PlayoutRandom
from pondertree.errors import GameContractError, RandomGeneratorInStateWarning, warn_caller
from pondertree.game import CHANCE, GameInfo, action_list, play
from pondertree.games.chance import check_same_outcomes
from pondertree.games.position import Position, read_position
from pondertree.games.state_attributes import drawn_from, generator_states, generators, hold_the_same
from pondertree.validation import shown

#: The first moves of a search are all replayed: k fair coin tosses agree by chance with probability 2^-k.
FIRST_CHECKS = 24
#: One of this many later moves is replayed.
CHECK_INTERVAL = 128
#: Maximum length of the random continuation of a move and its replay.
MAX_LINE_LENGTH = 512
#: Maximum number of continuations after early replays that differed in attributes.
MAX_SUSPICIONS = 8
#: Number of times a state is read again before the error names `play`.
READINGS = 20

#: The alternative to random numbers in `play`.
ADVICE = (
    "Dice and shuffled cards in play() are not supported: let the state before each roll be a chance node, with "
    "to_play = pondertree.CHANCE and chance_outcomes() (docs/chance.md)"
)

#: Classes of states that a warning was issued for.
_warned: weakref.WeakSet[type] = weakref.WeakSet()


class PlayCheck:
    """Replays some moves of one search and compares the states.

    Compares the properties that the search reads, and `observation()` if it has an evaluator. Since random events may
    show only later, both states are continued with equal moves after the 1st, 8th, 128th, 1024th ... move of a search
    with playouts, and at most `MAX_SUSPICIONS` times after the replay of an early move differed in attributes, which
    alone is no violation: counters and caches differ.
    """

    def __init__(
        self, info: GameInfo, expired: Callable[[], bool], longest_playout: int, compares_observations: bool
    ) -> None:
        self._info = info
        self._expired = expired
        self._longest_playout = longest_playout
        self._compares_observations = compares_observations
        self._has_generators: bool | None = None
        self.moves = 0
        """Moves of the search so far."""
        self.next_check = 1
        """The number of the next move to replay."""
        self.comparisons = 0
        self._next_line = 1
        self._suspicions = 0

    def replay_step(
        self, before: Any, action: int, after: Any, position: Position, path: Callable[[], list[int]]
    ) -> None:
        """Replays `action` in `before` and compares the state with `after`, the result of move number `moves`."""
        is_early = self.moves < FIRST_CHECKS
        self.next_check = self.moves + 1 if is_early else (self.moves // CHECK_INTERVAL + 1) * CHECK_INTERVAL
        self._check_generators(before, after)
        again = play(before, action, self._info.name)
        self._compare(after, position, again, lambda: [*path(), action])
        length = 0
        if self.moves >= self._next_line:
            self._next_line = 8 * self.moves
            length = 0 if hasattr(after, "simulateRandomPlayout") else min(self._longest_playout, MAX_LINE_LENGTH)
        if is_early and self._suspicions < MAX_SUSPICIONS and not hold_the_same(after, again):
            self._suspicions += 1
            length = MAX_LINE_LENGTH
        if length > 0:
            self._play_on(after, position, again, length, lambda: [*path(), action])

    def replay_line(self, root: Any, line: Sequence[tuple[int, Any]]) -> None:
        """Replays the principal variation of a proof, given as actions and their states.

        Repeats it until there are `FIRST_CHECKS` comparisons, at least once.
        """
        known = [(action, state, read_position(state, self._info)) for action, state in line]
        while known:
            state, played = root, list[int]()
            for action, after, position in known:
                state = play(state, action, self._info.name)
                played.append(action)
                self._compare(after, position, state, played.copy)
            if self.comparisons >= FIRST_CHECKS or self._expired():
                return

    def _play_on(self, one: Any, position: Position, other: Any, length: int, path: Callable[[], list[int]]) -> None:
        """Plays the same random moves from both states, at most `length`, and compares them."""
        choose = PlayoutRandom(self.moves).choose
        line: list[int] = []
        while not position.terminal and position.legal and len(line) < length and not self._expired():
            action = position.legal[choose(len(position.legal))]  # an outcome of chance, too: any line will do
            line.append(action)
            one, other = play(one, action, self._info.name), play(other, action, self._info.name)
            position = read_position(one, self._info)
            self._compare(one, position, other, lambda: [*path(), *line])

    def _compare(self, one: Any, position: Position, other: Any, path: Callable[[], list[int]]) -> None:
        """Compares two states that are results of the same actions."""
        self.comparisons += 1
        again = read_position(other, self._info)
        if position.to_play == CHANCE:
            check_same_outcomes(one, position.legal, action_list(one.legal_actions(), self._info))
        if again != position:
            found = _difference(position, again)
            if found is not None:
                self._check_stable(one, position, path)
                self._refuse(*found, path)
        # Evaluators never see a chance node, so that its observation is unspecified.
        if self._compares_observations and position.to_play != CHANCE:
            seen = _observation(one)
            differs = seen is not None and seen != _observation(other)
            # An observation that is itself random, such as a random symmetry, is no evidence against play().
            if differs and all(seen == _observation(one) for _ in range(READINGS)):
                self._refuse("observation()", "one array", "another", path)

    def _check_stable(self, state: Any, position: Position, path: Callable[[], list[int]]) -> None:
        """Raises the error for a state whose properties change between readings."""
        for _ in range(READINGS):
            found = _difference(position, read_position(state, self._info))
            if found is not None:
                what, was, now = found
                raise GameContractError(
                    f"{self._info.name}.{what} of the state after the actions {shown(path())} was {shown(was)}, and "
                    f"{shown(now)} when read again: a state's properties must be deterministic and unaffected by `play`"
                )

    def _refuse(self, what: str, was: Any, now: Any, path: Callable[[], list[int]]) -> NoReturn:
        """Raises the error for states that differ after the same actions."""
        actions, game = path(), self._info.name
        raise GameContractError(
            f"{game}.play({actions[-1]}) is not a pure function: {what} after the actions {shown(actions)} from the "
            f"root was {shown(was)}, and {shown(now)} when they were replayed. It must return equal states for equal "
            f"actions and mutate nothing. {ADVICE}"
        )

    def _check_generators(self, before: Any, after: Any) -> None:
        """Warns, once per class, of a random generator that is copied with the state and drawn from by `play`."""
        if self._has_generators is None:
            self._has_generators = bool(generators(before))
        if not self._has_generators or type(before) in _warned:
            return
        moved = drawn_from(generator_states(before), generator_states(after))
        if moved:
            _warned.add(type(before))
            warn_caller(
                f"states of {self._info.name} carry a random generator ({moved[0]!r}) that play() draws from: a copy "
                f"of a state repeats its numbers, so that the search knows them in advance. {ADVICE}",
                RandomGeneratorInStateWarning,
            )


def _difference(one: Position, other: Position) -> tuple[str, Any, Any] | None:
    """Returns the name and both values of the first difference; the order of actions does not count."""
    pairs = [
        ("is_terminal", one.terminal, other.terminal),
        ("to_play", one.to_play, other.to_play),
        ("legal_actions()", sorted(one.legal), sorted(other.legal)),
        ("returns()", one.returns, other.returns),
        ("rewards()", one.rewards, other.rewards),
        ("chance_outcomes()", _chances(one), _chances(other)),
    ]
    # Compared as text, where NaN equals itself.
    return next((pair for pair in pairs if pair[1] != pair[2] and repr(pair[1]) != repr(pair[2])), None)


def _chances(position: Position) -> list[tuple[int, float]]:
    """Returns the outcomes of a chance node with their probabilities, sorted."""
    return sorted(zip(position.legal, position.probabilities, strict=True)) if position.probabilities else []


def _observation(state: Any) -> bytes | None:
    """Returns the observation as bytes; None if evaluators could not read it."""
    try:
        array = np.asarray(state.observation())
    except Exception:
        return None
    return None if array.dtype.hasobject else array.tobytes()
