"""Random playouts, and the values of new leaves by playouts or an evaluator."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NoReturn

from pondertree import validation
from pondertree.errors import EvaluationError
from pondertree.games.chance import CHANCE, check_chance_ends, draw_outcome
from pondertree.games.game_state import LARGEST_REWARD, State, end_values, listed_actions, rewards_of
from pondertree.random import PLAYOUT, Random, draw

#: Playouts without `max_depth` are truncated after this many moves.
MAX_PLAYOUT_LENGTH = 10_000
#: A game is refused as endless if this many playouts were truncated before the first one ended.
FIRST_PLAYOUTS = 16
#: Moves of a playout between checks of the deadline.
MOVES_PER_CHECK = 256

PlayoutPolicy = Callable[[Any], Any]
"""Maps a state to one action, or to one weight per legal action."""

Leaf = tuple[State, int, int]
"""A leaf to evaluate: its state, the player who chose the move to it (0 at the root), the key of its simulation."""


class Playouts:
    """Counts the playouts of one search that ended, and those truncated after `MAX_PLAYOUT_LENGTH` moves.

    A truncated playout counts like one at `max_depth`, unless all of the first ones are truncated.
    """

    __slots__ = ("cut", "ended", "first")

    def __init__(self, first: int = FIRST_PLAYOUTS) -> None:
        self.ended = 0
        self.cut = 0
        self.first = first

    def count_cut(self, moves: int) -> None:
        """Counts a playout that was truncated after `moves` moves."""
        self.cut += 1
        if self.ended == 0 and self.cut >= self.first:
            self.refuse(moves)

    def refuse(self, moves: int) -> NoReturn:
        """Raises the error for a game that does not end."""
        raise ValueError(f"not over after {moves} moves: truncate playouts by max_depth if the game need not end")

    def check_time(self) -> None:
        """Does nothing here; searches with a deadline raise an exception. Called every `MOVES_PER_CHECK` moves."""


def random_playout(
    state: State, random: Random, max_depth: int | None = None, policy: PlayoutPolicy | None = None
) -> tuple[list[float] | None, State]:
    """Plays random moves, or those of `policy`, to the end or for `max_depth` moves; returns (values, last state).

    At chance nodes outcomes are drawn by their probabilities. They do not count as moves, and no playout is truncated
    there.

    Values are one per player, the sums of rewards in a game with rewards, and None if the playout was truncated.
    Without `max_depth`, more than `MAX_PLAYOUT_LENGTH` moves are an error.
    """
    earned, final, _ = _play(state, random, max_depth, policy, Playouts(first=1))
    if not final.is_terminal:
        return None, final
    return [e + v for e, v in zip(earned, end_values(final), strict=True)], final


def _play(
    state: State,
    random: Random,
    max_depth: int | None,
    policy: PlayoutPolicy | None,
    playouts: Playouts,
    discount: float = 1.0,
) -> tuple[list[float], State, float]:
    """Returns (discounted rewards per player during the playout, last state, discount of the last state)."""
    if policy is None and hasattr(state, "in_place"):
        state = state.in_place()
    earned, weight = [0.0] * state.num_players, 1.0
    longest = MAX_PLAYOUT_LENGTH if max_depth is None else max_depth
    depth, in_a_row = 0, 0
    while not (ended := state.is_terminal) and (depth < longest or state.to_play == CHANCE):
        if state.to_play == CHANCE:
            in_a_row += 1
            check_chance_ends(state, in_a_row)
            action = draw_outcome(state, random)
        else:
            legal = listed_actions(state)
            action = legal[random.choose(len(legal))] if policy is None else _follow(policy, state, legal, random)
            depth, in_a_row = depth + 1, 0
        is_move = state.to_play != CHANCE
        state = state.play(action)
        rewards = rewards_of(state)
        if rewards is not None:
            earned = [e + weight * r for e, r in zip(earned, rewards, strict=True)]
        if is_move:
            weight *= discount
        if policy is not None or depth % MOVES_PER_CHECK == 0:
            playouts.check_time()
    if ended:
        playouts.ended += 1
    elif max_depth is None:
        playouts.count_cut(depth)
    return earned, state, weight


def _follow(policy: PlayoutPolicy, state: State, legal: list[int], random: Random) -> int:
    """Returns the policy's action, or one drawn by its weights; raises `EvaluationError` for any other answer."""
    try:
        answer = policy(state)
    except Exception as error:
        raise EvaluationError(f"the playout policy raised {type(error).__name__}: {error}") from error
    try:
        weights = None if isinstance(answer, (str, bytes, Mapping, Set)) else _numbers(answer)
        if weights is None:
            action = operator.index(answer)
            if action in legal:
                return action
        elif len(weights) == len(legal) and all(0.0 <= weight < math.inf for weight in weights) and any(weights):
            return legal[draw(weights, random)]
    except (TypeError, ValueError):
        pass
    raise EvaluationError(
        f"the playout policy returned {validation.shown(answer)}: it must be one of the legal actions {legal}, "
        f"or {len(legal)} weights for them, finite, not below 0 and not all 0"
    )


def _numbers(answer: Any) -> list[float] | None:
    """Returns the floats of a list, tuple or array; None for a single number or a 0-d array."""
    try:
        return [float(number) for number in answer]
    except TypeError:
        return None


def simulate_leaves(
    leaves: Sequence[Leaf],
    max_depth: int | None = None,
    evaluator: Any = None,
    policy: PlayoutPolicy | None = None,
    playouts: Playouts | None = None,
    discount: float = 1.0,
) -> list[list[float]]:
    """Returns the values of new leaves, one list per leaf, one number per player.

    With an evaluator and no `max_depth`, leaves are evaluated as they are. Otherwise each is played out and counted by
    `playouts`; without `playouts` and `max_depth`, a playout must end. `discount` is that of each move of a playout; a
    game's own `simulateRandomPlayout` is taken as it is. Its `random_playout` is used if nothing is truncated or
    discounted.

    Deviation: a playout truncated at `max_depth` has no result, and the specification does not define its value. It is
    the evaluator's value of the last position, or a draw without one; rewards so far are kept.
    """
    playouts = playouts or Playouts(first=1)
    values: list[list[float]] = []
    to_evaluate: list[tuple[int, State, float]] = []
    for state, chooser, sim_key in leaves:
        if evaluator is not None and max_depth in (None, 0):
            to_evaluate.append((len(values), state, 1.0))
            values.append([0.0] * state.num_players)
        elif evaluator is None and policy is None and hasattr(state, "simulateRandomPlayout"):
            values.append(_own_playouts(state, chooser, max_depth))
        elif evaluator is None and policy is None and max_depth is None and has_random_playout(state, discount):
            values.append(seeded_playout(state, sim_key))
            playouts.ended += 1
        else:
            earned, final, weight = _play(state, Random(sim_key, PLAYOUT), max_depth, policy, playouts, discount)
            if final.is_terminal:
                earned = [e + weight * v for e, v in zip(earned, end_values(final), strict=True)]
            elif evaluator is not None:
                to_evaluate.append((len(values), final, weight))
            values.append(earned)
    outputs = evaluate(evaluator, [state for _, state, _ in to_evaluate]) if to_evaluate else []
    for (index, _, weight), answer in zip(to_evaluate, outputs, strict=True):
        values[index] = [e + weight * v for e, v in zip(values[index], answer, strict=True)]
    return values


def _own_playouts(state: Any, chooser: int, max_depth: int | None) -> list[float]:
    """Returns the values by the game's own `simulateRandomPlayout`, which takes the perspective of a player.

    Deviation: the specification leaves the perspective open, and adds the value unsigned to the expanded node. Here it
    is that of the player who chose the move to the leaf, whose statistics come first.
    """
    players = state.num_players
    if players == 1:
        return [own_playout(state, 0, max_depth)]
    if players == 2:
        value = own_playout(state, chooser, max_depth)
        return [value, -value] if chooser == 0 else [-value, value]
    return [own_playout(state, player, max_depth) for player in range(players)]


def own_playout(state: Any, player: int, max_depth: int | None) -> float:
    """Returns the game's own playout result for a player, checked: in [-1, 1], or a sum of rewards."""
    answer = state.simulateRandomPlayout(player, max_depth)
    limit = LARGEST_REWARD if hasattr(state, "rewards") else 1.0
    try:
        value = math.nan if isinstance(answer, (str, bytes)) else float(answer)
    except (TypeError, ValueError):
        value = math.nan
    if not abs(value) <= limit:  # also False for NaN
        raise ValueError(
            f"simulateRandomPlayout({player}, {max_depth}) gave {answer!r:.100}: "
            f"it must be a number from {-limit:g} to {limit:g}"
        )
    return value


def has_random_playout(state: Any, discount: float) -> bool:
    """Whether a game plays its random playouts itself; it knows no discount."""
    return discount == 1.0 and hasattr(state, "random_playout")


def seeded_playout(state: Any, key: int) -> list[float]:
    """Returns the results of the game's own `random_playout`, checked: each in [-1, 1], or a sum of rewards."""
    given = state.random_playout(key)
    values = _numbers(given)
    limit = LARGEST_REWARD if hasattr(state, "rewards") else 1.0
    if values is None or len(values) != state.num_players or not all(abs(value) <= limit for value in values):
        raise ValueError(
            f"random_playout({key}) gave {given!r:.100}: it must be {state.num_players} numbers from {-limit:g} to "
            f"{limit:g}, one for each player"
        )
    return values


def evaluate(evaluator: Any, states: Sequence[State]) -> list[list[float]]:
    """Returns the evaluator's values of `states`, one list per state, one number per player.

    An evaluator has `evaluate_states(states) -> (logits, values)`, or is a function of one state. A value is one
    number per player, or one number for the player to move (with two players the other gets its negative).
    """
    if hasattr(evaluator, "evaluate_states"):
        return per_player(states, evaluator.evaluate_states(list(states))[1])
    return per_player(states, [evaluator(state) for state in states])


def per_player(states: Sequence[State], outputs: Iterable[Any]) -> list[list[float]]:
    """Returns an evaluator's values of `states`, checked, one list per state, one number per player."""
    outputs = list(outputs)
    if len(outputs) != len(states):
        raise ValueError(f"the evaluator gave {len(outputs)} values for {len(states)} states")
    return [_values(state, answer) for state, answer in zip(states, outputs, strict=True)]


def _values(state: State, answer: Any) -> list[float]:
    players = state.num_players
    listed = _numbers(answer)
    values = [float(answer)] if listed is None else listed
    if len(values) == 1 and players == 2:
        # The negative is stored under the other player's number.
        values = [values[0], -values[0]] if state.to_play == 0 else [-values[0], values[0]]
    if len(values) != players:
        raise ValueError(f"the evaluator gave {len(values)} values for {players} players")
    if not all(abs(value) <= LARGEST_REWARD for value in values):  # also False for NaN
        raise ValueError(f"the evaluator gave values that are not finite, or above {LARGEST_REWARD:.0e}: {values}")
    return values


def decisive_policy(state: Any) -> int | list[float]:
    """Returns a move that wins at once, else equal weights (Teytaud & Teytaud 2010)."""
    legal = list(state.legal_actions())
    player = state.to_play
    for action in legal:
        after = state.play(action)
        if after.is_terminal and after.returns()[player] > 0:
            return int(action)
    # A single legal move draws no random number, as in the engine.
    return int(legal[0]) if len(legal) == 1 else [1.0] * len(legal)
