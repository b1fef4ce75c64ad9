"""Games in memory for a model to learn from: positions, and what came after each.

A batch begins in positions that are drawn, and follows the moves that were played from there. Behind the end of a game
nothing happens any more: rewards and values are 0 whatever is played (MuZero, appendix G). Behind the end of a record
that is no end of the game (it was too long, or a player gave up) nothing is known, and nothing is learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.schema import Config
from pondertree.learn.data.observations import Seen, seen_in, widths
from pondertree.learn.data.records import GameRecord
from pondertree.learn.data.replay import Ring
from pondertree.learn.data.targets import Returns, returns_of

#: Added to every error, so that no position is never drawn again.
LEAST_ERROR = 1e-3
#: Games that are taken in together.
AT_ONCE = 256


@dataclass(slots=True)
class Unrolled:
    """B positions and the K steps after each."""

    places: NDArray[np.int64]
    """Where each begins, 0 being the oldest position in memory [B]."""
    seen: Seen
    """What was seen there, packed."""
    moves: NDArray[np.int64]
    """What was played; behind the end, anything [B, K]."""
    rewards: NDArray[np.float32]
    """[B, K]"""
    values: NDArray[np.float32]
    """What the value should be, for the player to move [B, K + 1]."""
    actions: NDArray[np.int64]
    """The legal actions [B, K + 1, A]; behind the last one `num_actions`, which is none."""
    policy: NDArray[np.float32]
    """What the policy should be, over these [B, K + 1, A]."""
    known: NDArray[np.float32]
    """1 where values are known, and the rewards before them; 0 behind the end of a record [B, K + 1]."""
    searched: NDArray[np.float32]
    """1 where policies are known [B, K + 1]."""
    weights: NDArray[np.float32]
    """What each row counts in the loss [B]."""
    later: Seen | None = None
    """What was seen after each step, where it is asked for: B * K positions, those of a row together."""
    inside: NDArray[np.float32] | None = None
    """1 where something was seen [B, K]."""


class Trajectories:
    """A window over the positions of the games, oldest first."""

    def __init__(self, spec: GameSpec, config: Config) -> None:
        self._spec = spec
        self._muzero = config.muzero
        self._fresh = config.replay.fresh
        self._root_share = config.learner.root_value_share
        none = spec.info.num_actions
        planes, numbers = widths(spec)
        self._ring = Ring(
            config.replay.window,
            {
                "planes": np.zeros(planes, dtype=np.uint64),
                "numbers": np.zeros(numbers, dtype=np.uint8 if spec.pixels else np.float32),
                "move": np.zeros((), dtype=np.int64),
                "reward": np.zeros((), dtype=np.float32),
                "value": np.zeros((), dtype=np.float32),
                "known": np.zeros((), dtype=np.float32),
                "ahead": np.zeros((), dtype=np.int64),
                "left": np.zeros((), dtype=np.int64),
                "ends": np.zeros((), dtype=np.bool_),
                "full": np.zeros((), dtype=np.bool_),
                "actions": np.full(8, none, dtype=np.uint16),
                "policy": np.zeros(8, dtype=np.float32),
                "error": np.zeros((), dtype=np.float32),
            },
        )
        self.seen = 0
        """Positions that ever came in."""
        self.largest = 0.0
        """The largest reward or value that was to be learned, on either side of 0."""

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, games: Iterable[GameRecord]) -> int:
        """Takes in the positions of games; how many."""
        games = [game for game in games if len(game.moves)]
        added = sum(self._take_in(games[first : first + AT_ONCE]) for first in range(0, len(games), AT_ONCE))
        self.seen += added
        return added

    def _take_in(self, games: Sequence[GameRecord]) -> int:
        looked_at = [seen_in(game, self._spec) for game in games]
        discount = self._muzero.discount
        told = []
        for game, (_, players) in zip(games, looked_at, strict=True):
            self._check_turns(players)
            told.append(returns_of(game, players, discount, self._muzero.td_steps))
        lengths = [len(game.moves) for game in games]
        values = np.concatenate([game.values for game in games])
        counts = np.concatenate([game.counts for game in games])
        for name in ("actions", "policy"):
            self._ring.widen(name, -(-int(counts.max()) // 8) * 8)
        # Actions and policies lie one behind another; those of a position fill the first places of its row.
        filled = np.arange(self._ring.columns["actions"].shape[1]) < counts[:, None]
        actions = np.full(filled.shape, self._spec.info.num_actions, dtype=np.uint16)
        policy = np.zeros(filled.shape, dtype=np.float32)
        actions[filled] = np.concatenate([game.actions for game in games])
        policy[filled] = np.concatenate([game.policy for game in games])
        known = Returns(
            np.concatenate([one.rewards for one in told]),
            np.concatenate([one.known for one in told]),
            np.concatenate([one.ahead for one in told]),
            False,
        )
        worth = known.values(values, discount)
        self.largest = max(self.largest, float(np.abs(worth).max()), float(np.abs(known.rewards).max()))
        self._ring.append(
            {
                "planes": np.concatenate([seen.planes for seen, _ in looked_at]),
                "numbers": np.concatenate([seen.numbers for seen, _ in looked_at]),
                "move": np.concatenate([game.moves for game in games]).astype(np.int64),
                "reward": known.rewards,
                "value": values,
                "known": known.known,
                "ahead": known.ahead,
                "left": np.concatenate([np.arange(length, 0, -1) for length in lengths]),
                "ends": np.repeat([one.ends for one in told], lengths),
                "full": np.concatenate([game.full for game in games]),
                "actions": actions,
                "policy": policy,
                # A position ahead is one of the same game, so it lies as far ahead among all.
                "error": np.abs(worth - values) + LEAST_ERROR,
            }
        )
        return len(values)

    def _check_turns(self, players: NDArray[np.uint8]) -> None:
        if self._spec.info.num_players == 2 and (players[1:] == players[:-1]).any():
            raise GameContractError(
                f"{self._spec.name}: a player moves twice in a row; MuZero's model is for players who take turns "
                "(let the other pass in between)"
            )

    def draw(self, size: int, numbers: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """(places, what each counts in the loss): by the error of their values, or by age alone."""
        length, priority = len(self), self._muzero.priority
        share = numbers.random(size)
        if priority > 0.0:
            chances = self._ring.take("error", np.arange(length)).astype(np.float64) ** priority
            ends = np.cumsum(chances)
            chosen = np.minimum(np.searchsorted(ends, share * ends[-1], side="right"), length - 1)
            # What is drawn twice as often counts half (Schaul et al. 2016).
            weights = (ends[-1] / (length * chances[chosen])) ** self._muzero.priority_correction
            return chosen, (weights / weights.max()).astype(np.float32)
        fresh = self._fresh
        if fresh > 0.0:
            # The distribution function is (1 - fresh) x + fresh x², x from the oldest, 0, to the newest, 1.
            share = (np.sqrt((1.0 - fresh) ** 2 + 4.0 * fresh * share) - (1.0 - fresh)) / (2.0 * fresh)
        chosen = np.minimum((share * length).astype(np.int64), length - 1)
        return chosen, np.ones(size, dtype=np.float32)

    def sample(self, size: int, numbers: np.random.Generator, *, later: bool = False) -> Unrolled:
        """Draws positions and follows the games from there; `later`: with what was seen after each step."""
        chosen, weights = self.draw(size, numbers)
        batch = self.take(chosen, numbers, later=later)
        batch.weights = weights
        return batch

    def take(self, chosen: NDArray[np.int64], numbers: np.random.Generator, *, later: bool = False) -> Unrolled:
        """The positions of these places, and what came after; `numbers` choose what is played behind the end."""
        ring, steps, none = self._ring, self._muzero.unroll, self._spec.info.num_actions
        left, ends = ring.take("left", chosen)[:, None], ring.take("ends", chosen)[:, None]
        depth = np.arange(steps + 1)
        inside = depth < left
        # Rows behind the end are read somewhere and then overwritten.
        rows = np.where(inside, chosen[:, None] + depth, chosen[:, None])
        played = inside[:, :-1]
        moves = np.where(played, ring.take("move", rows[:, :-1]), numbers.integers(none, size=(len(chosen), steps)))
        actions = ring.take("actions", rows).astype(np.int64)
        batch = Unrolled(
            chosen,
            self.seen_at(chosen),
            moves,
            np.where(played, ring.take("reward", rows[:, :-1]), np.float32(0.0)),
            np.where(inside, self._targets(rows), np.float32(0.0)),
            np.where(inside[:, :, None], actions, none),
            np.where(inside[:, :, None], ring.take("policy", rows), np.float32(0.0)),
            (inside | ends).astype(np.float32),
            (inside & ring.take("full", rows)).astype(np.float32),
            np.ones(len(chosen), dtype=np.float32),
        )
        if later:
            batch.inside = inside[:, 1:].astype(np.float32)
            batch.later = self.seen_at(rows[:, 1:].reshape(-1))
        return batch

    def _targets(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """What values should be: the result or the rewards, mixed with what the search found."""
        told = self.returns(rows)
        value: NDArray[np.float32] = self._ring.take("value", rows)
        ahead = self._ring.take("value", rows + np.maximum(told.ahead, 0))
        return self.mixed(told.values_with(ahead, self._muzero.discount), value)

    def mixed(self, told: NDArray[np.float32], found: NDArray[np.float32]) -> NDArray[np.float32]:
        """What came of a position, with the share of what a search found there."""
        return (told + np.float32(self._root_share) * (found - told)).astype(np.float32)

    def found(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The values that searches found in these positions when they were played."""
        found: NDArray[np.float32] = self._ring.take("value", rows)
        return found

    def returns(self, rows: NDArray[np.int64]) -> Returns:
        """What is known of these positions from the rewards after them."""
        return Returns(
            self._ring.take("reward", rows), self._ring.take("known", rows), self._ring.take("ahead", rows), False
        )

    def seen_at(self, chosen: NDArray[np.int64]) -> Seen:
        """What was seen in these places."""
        return Seen(self._ring.take("planes", chosen), self._ring.take("numbers", chosen))

    def learn_errors(self, places: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """How wrong the values of these positions were, for drawing them again."""
        self._ring.columns["error"][self._ring.places(places)] = np.abs(errors) + LEAST_ERROR

    def saved(self) -> dict[str, NDArray[Any]]:
        """What cannot be found in the games: how wrong values were when they were last learned."""
        if self._muzero.priority == 0.0:
            return {}
        return {"error": self._ring.take("error", np.arange(len(self)))}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Goes on from what `saved` gave, when the games are in again."""
        errors = arrays.get("error")
        if errors is None or len(errors) != len(self):
            return
        if errors.ndim != 1 or errors.dtype.kind != "f" or not (np.isfinite(errors) & (errors >= 0.0)).all():
            raise InvalidArgumentError("replay.error must be a list of finite numbers from 0 up")
        self._ring.columns["error"][self._ring.places(np.arange(len(self)))] = errors
