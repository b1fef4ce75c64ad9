"""Random games for tests: whole game trees from a seed, computed on demand.

Every property of a position (legal actions, player to move, end, result) is drawn from the counter-based generator,
keyed by the path of actions. Games of any size cost nothing to create, equal seeds give equal games, and small games
are solved exactly.

The games are adversarial: action numbers have gaps, legal actions are unordered, and players need not alternate.
Searches that sort actions or flip signs by depth fail on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pondertree.game import CHANCE
from pondertree.random import Random, add_up, fold

TurnOrder = Literal["alternate", "random", "double"]

# Purposes of the streams of a position, distinct from those of a search.
_ACTIONS, _TURN, _END, _RETURNS, _REWARDS, _CHANCE, _OUTCOMES = 101, 102, 103, 104, 105, 106, 107

#: Outcomes of chance are numbered below this, beyond any action space.
_OUTCOME_SPACE = 60_000


@dataclass(frozen=True, slots=True)
class TabularGame:
    """The rules of a random game; `start()` returns its starting state.

    `branching` is the least and greatest number of legal actions, `depth` the earliest and latest ply at which the
    game may end; between them each position is an end with probability `end_chance`. `turn_order`: players alternate,
    are drawn at every position, or move twice in a row. With `rewards` the states have `rewards()`, by which alone the
    game is scored. Two players with `zero_sum` get results of -1, 0 or +1 that cancel; all other results are
    independent numbers in [-1, 1]. With `chance` each position below the start is a chance node with that
    probability, also two or more in a row; `outcomes` is the least and greatest number of their outcomes, which differ
    in probability.
    """

    seed: int
    players: int = 2
    branching: tuple[int, int] = (1, 4)
    depth: tuple[int, int] = (2, 6)
    turn_order: TurnOrder = "alternate"
    rewards: bool = False
    zero_sum: bool = True
    end_chance: float = 0.25
    action_space: int | None = None
    chance: float = 0.0
    outcomes: tuple[int, int] = (1, 4)

    def __post_init__(self) -> None:
        least, most = self.branching
        earliest, latest = self.depth
        if self.players < 1:
            raise ValueError(f"players must be at least 1, not {self.players}")
        if not 1 <= least <= most:
            raise ValueError(f"branching must be (least, most) with 1 <= least <= most, not {self.branching}")
        if not 1 <= earliest <= latest:
            raise ValueError(f"depth must be (earliest, latest) with 1 <= earliest <= latest, not {self.depth}")
        if self.turn_order not in ("alternate", "random", "double"):
            raise ValueError(f"turn_order must be 'alternate', 'random' or 'double', not {self.turn_order!r}")
        if self.num_actions < most:
            raise ValueError(f"action_space must hold at least {most} actions, not {self.num_actions}")

    @property
    def num_actions(self) -> int:
        """Size of the action space: by default more than twice the branching factor, so that numbers have gaps."""
        return 2 * self.branching[1] + 1 if self.action_space is None else self.action_space

    @property
    def is_zero_sum(self) -> bool:
        """Whether states are zero-sum: two players, and results instead of rewards."""
        return self.zero_sum and self.players == 2 and not self.rewards

    def start(self) -> TabularState:
        """Returns the starting state."""
        return self._state((), fold(fold(0, self.seed), 0x7AB1E))

    def _state(self, path: tuple[int, ...], key: int) -> TabularState:
        """Returns the state at `path`, whose key is carried along instead of folding the whole path again."""
        ply = len(path)
        earliest, latest = self.depth
        over = ply >= latest or (ply >= earliest and Random(key, _END).uniform() < self.end_chance)
        if self.turn_order == "alternate":
            player = ply % self.players
        elif self.turn_order == "double":
            player = ply // 2 % self.players
        else:
            player = Random(key, _TURN).choose(self.players)
        with_chance = self.chance > 0.0
        kinds: dict[tuple[bool, bool], type[TabularState]] = {
            (False, False): TabularState,
            (False, True): RewardState,
            (True, False): StochasticState,
            (True, True): StochasticRewardState,
        }
        kind = kinds[with_chance, self.rewards]
        if ply > 0 and not over and with_chance and Random(key, _CHANCE).uniform() < self.chance:
            return kind(self, path, key, CHANCE, over, self._outcomes(key))
        return kind(self, path, key, player, over, () if over else self._legal(key))

    def _outcomes(self, key: int) -> tuple[int, ...]:
        """Returns the outcomes of a chance node, unordered and with gaps."""
        random = Random(key, _OUTCOMES)
        least, most = self.outcomes
        count = least + random.choose(most - least + 1)
        found: list[int] = []
        while len(found) < count:
            outcome = random.choose(_OUTCOME_SPACE)
            if outcome not in found:
                found.append(outcome)
        return tuple(found)

    def _probabilities(self, key: int, count: int) -> list[float]:
        """Returns the probabilities of `count` outcomes: some equal, some of another size."""
        random = Random(fold(key, count), _OUTCOMES)
        weights = [float(1 + random.choose(3)) * (0.01 if random.choose(4) == 0 else 1.0) for _ in range(count)]
        total = add_up(weights)
        return [weight / total for weight in weights]

    def _legal(self, key: int) -> tuple[int, ...]:
        random = Random(key, _ACTIONS)
        least, most = self.branching
        count = least + random.choose(most - least + 1)
        # A partial Fisher-Yates shuffle: a random subset in random order.
        actions = list(range(self.num_actions))
        for i in range(count):
            j = i + random.choose(len(actions) - i)
            actions[i], actions[j] = actions[j], actions[i]
        return tuple(actions[:count])

    def _returns(self, key: int) -> list[float]:
        random = Random(key, _RETURNS)
        if self.is_zero_sum:
            value = float(random.below(3) - 1)
            return [value, 0.0 - value]
        return [2.0 * random.uniform() - 1.0 for _ in range(self.players)]

    def _rewards(self, key: int) -> list[float]:
        random = Random(key, _REWARDS)
        return [2.0 * random.uniform() - 1.0 for _ in range(self.players)]


@dataclass(frozen=True, slots=True)
class TabularState:
    """A position of a `TabularGame`; positions are equal if game and path are."""

    game: TabularGame
    path: tuple[int, ...]
    # The fields below are functions of the two above.
    key: int = field(compare=False, repr=False)
    to_play: int = field(compare=False)
    is_terminal: bool = field(compare=False)
    _legal: tuple[int, ...] = field(compare=False, repr=False)

    @property
    def num_actions(self) -> int:
        """Size of the action space."""
        return self.game.num_actions

    @property
    def num_players(self) -> int:
        """Number of players."""
        return self.game.players

    @property
    def zero_sum(self) -> bool:
        """Whether the results of the players cancel."""
        return self.game.is_zero_sum

    def legal_actions(self) -> list[int]:
        """Returns the legal actions, in a fixed arbitrary order; none at an end."""
        return list(self._legal)

    def play(self, action: int) -> TabularState:
        """Returns the state after `action`."""
        if action not in self._legal:
            raise ValueError(f"action {action} is not legal here; legal are {list(self._legal)}")
        return self.game._state((*self.path, action), fold(self.key, action))

    def returns(self) -> list[float]:
        """Returns the result for each player; 0 before the end."""
        return self.game._returns(self.key) if self.is_terminal else [0.0] * self.game.players

    def observation(self) -> tuple[float, ...]:
        """Returns numbers unique to the state: player, ply, and the key in pieces exact in float32."""
        pieces = [(self.key >> shift & 0xFFFF) / 65536.0 for shift in (0, 16, 32, 48)]
        return (float(self.to_play), float(len(self.path)), *pieces)


@dataclass(frozen=True, slots=True)
class RewardState(TabularState):
    """A position of a game with rewards; a class of its own, since a `rewards` method changes how a game is scored."""

    def rewards(self) -> list[float]:
        """Returns each player's reward for the last move; 0 at the start."""
        return self.game._rewards(self.key) if self.path else [0.0] * self.game.players

    def returns(self) -> list[float]:
        """Returns the sums of all rewards so far, which a search must not count again."""
        totals = [0.0] * self.game.players
        state: TabularState = self.game.start()
        for action in self.path:
            state = state.play(action)
            totals = [total + reward for total, reward in zip(totals, self.game._rewards(state.key), strict=True)]
        return totals


@dataclass(frozen=True, slots=True)
class StochasticState(TabularState):
    """A position of a game with chance; a class of its own, since games without have no `chance_outcomes`."""

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Returns the outcomes of a chance node with their probabilities."""
        return list(zip(self._legal, self.game._probabilities(self.key, len(self._legal)), strict=True))


@dataclass(frozen=True, slots=True)
class StochasticRewardState(StochasticState, RewardState):
    """A position of a game with chance and rewards, also for outcomes of chance."""
