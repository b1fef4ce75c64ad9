"""The sections of a configuration: frozen dataclasses with validated, documented fields."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pondertree import validation
from pondertree.config import bounded_float, bounded_int, discount_factor, one_of, option
from pondertree.errors import InvalidArgumentError
from pondertree.networks import MAX_SUPPORT

#: Names of anchor opponents: a preset and its simulations per move.
OPPONENT = re.compile(r"(UCT|Hybrid) ([1-9][0-9]{0,8})")
#: Largest number of games, moves or threads.
LARGE = 1 << 24

not_negative = bounded_float(0.0)
share = bounded_float(0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPlayConfig:
    """Self-play."""

    games_at_once: int = option(128, bounded_int(1, LARGE))
    """Concurrent games, which share the batches of the network."""
    simulations: int = option(32, bounded_int(1, LARGE))
    """Simulations of a full search, which yields a policy target."""
    fast_simulations: int = option(8, bounded_int(1, LARGE))
    """Simulations of a fast search, which only advances the game (playout-cap randomisation)."""
    full_share: float = option(1.0, share)
    """Fraction of moves with a full search; 1 for all."""
    considered_actions: int = option(16, bounded_int(1, LARGE))
    """Actions that Gumbel search considers at the root."""
    value_scale: float = option(0.1, not_negative)
    """Weight of action values against the policy in Gumbel search."""
    rescale_values: bool = option(True, validation.flag)
    """Rescale action values to [0, 1] in Gumbel search, however little they differ."""
    c_puct: float = option(1.5, not_negative)
    """Exploration constant of PUCT (`algorithm = "alphazero"`)."""
    dirichlet_alpha: float = option(10.0, validation.positive_number)
    """Total concentration of the root's Dirichlet noise (`algorithm = "alphazero"`)."""
    dirichlet_epsilon: float = option(0.25, share)
    """Weight of the root's Dirichlet noise (`algorithm = "alphazero"`)."""
    forced_playouts: float = option(2.0, not_negative)
    """Forced playouts: at least sqrt(this * prior * visits) per root move, pruned from the policy target."""
    temperature: float = option(1.0, not_negative)
    """Sampling temperature of the first moves of a game."""
    temperature_moves: int = option(10, bounded_int(0, LARGE))
    """Plies, the random opening included, sampled at `temperature`; afterwards the best move is played."""
    opening_plies: int = option(0, bounded_int(0, LARGE))
    """Maximum length of a random opening, for more diverse positions."""
    opening_share: float = option(0.5, share)
    """Fraction of games with a random opening."""
    max_moves: int = option(512, bounded_int(1, LARGE))
    """Longer games are truncated: as draws, or with rewards to come."""
    resign_below: float = option(-1.0, bounded_float(-1.0, 0.0))
    """Resignation threshold: a player resigns after two root values in a row below it; -1 never."""
    resign_check: float = option(0.1, share)
    """Fraction of resignations played on to measure the false-positive rate."""
    resign_wrong: float = option(0.05, share)
    """Largest false-positive rate at which resignation stays enabled."""
    solve: bool = option(False, validation.flag)
    """Keep proven results in self-play searches."""
    chance: str = option("sample", one_of("balanced", "sample"))
    """Outcomes of chance nodes in searches: "sample" draws them, which is unbiased with few simulations; "balanced"
    visits them in proportion to their probabilities, the first ones first."""
    threads: int = option(1, bounded_int(1, LARGE))
    """Engine threads per search."""
    workers: int = option(0, bounded_int(0, LARGE))
    """Threads that each search a part of the games; 0: one per core on a CPU, one on a GPU."""

    def __post_init__(self) -> None:
        validation.check_fields(self, "self_play.")
        if self.full_share == 0.0:
            raise InvalidArgumentError("self_play.full_share must be above 0: there would be no policy targets")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """Replay buffer."""

    window: int = option(100_000, validation.count)
    """Capacity in positions, the newest ones; all games stay on disk."""
    fresh: float = option(0.5, share)
    """Recency weighting: 0 samples uniformly, 1 with a density that is 0 at the oldest position."""
    learned_first: int = option(4_000, validation.count)
    """Positions required before optimisation starts."""

    def __post_init__(self) -> None:
        validation.check_fields(self, "replay.")
        if self.learned_first > self.window:
            raise InvalidArgumentError(
                f"replay.learned_first must be at most replay.window, {self.window}, not {self.learned_first}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerConfig:
    """Optimisation."""

    batch_size: int = option(256, validation.count)
    """Batch size in positions."""
    passes: float = option(6.0, validation.positive_number)
    """Average number of times that a position is sampled."""
    optimiser: str = option("adamw", one_of("adamw", "sgd"))
    """ "adamw" or "sgd" (with momentum 0.9)."""
    learning_rate: float = option(2e-3, validation.positive_number)
    """Peak learning rate."""
    warm_up: int = option(100, validation.whole_number)
    """Steps of linear learning-rate warm-up."""
    decay_from: float = option(0.6, share)
    """Fraction of the run after which the learning rate decays."""
    final_rate: float = option(0.05, share)
    """Final learning rate as a fraction of the peak."""
    weight_decay: float = option(1e-4, not_negative)
    """Weight decay of weights, not of biases and norms."""
    clip: float = option(5.0, validation.positive_number)
    """Gradient clipping: maximum gradient norm."""
    value_weight: float = option(1.0, not_negative)
    """Weight of the value loss relative to the policy loss."""
    root_value_share: float = option(0.3, share)
    """Fraction of the root value in the value target; the rest is the game result, or the return."""
    averaged: float = option(0.99, validation.number)
    """Decay of the weight averaging (EMA); averaged weights play."""
    symmetries: bool = option(True, validation.flag)
    """Augment positions with random symmetries of the game."""
    reduced_precision: bool = option(True, validation.flag)
    """Use bfloat16 on a GPU."""

    def __post_init__(self) -> None:
        validation.check_fields(self, "learner.")
        if not 0.0 <= self.averaged < 1.0:
            raise InvalidArgumentError(f"learner.averaged must be at least 0 and below 1, not {self.averaged}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnsConfig:
    """Returns in games with rewards (`algorithm = "gumbel"` or "alphazero"; learned models have their own)."""

    discount: float = option(0.997, discount_factor)
    """Discount per move, in value targets and in searches."""
    td_steps: int = option(0, bounded_int(0, LARGE))
    """Length of n-step returns, which bootstrap from the root value; 0 sums all rewards."""
    support: int = option(300, bounded_int(1, MAX_SUPPORT))
    """Categorical support of the value head, the integers from -this to this, after a square-root-like transform: 300
    represents up to 58,705."""

    def __post_init__(self) -> None:
        validation.check_fields(self, "returns.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentModelConfig:
    """Learned model (`algorithm = "muzero"`)."""

    root: str = option("gumbel", one_of("gumbel", "puct"))
    """Root search: "gumbel", or "puct" with Dirichlet noise."""
    discount: float = option(1.0, share)
    """Discount per step."""
    unroll: int = option(5, bounded_int(1, 100))
    """Unroll steps of the training loss."""
    td_steps: int = option(0, bounded_int(0, LARGE))
    """Length of n-step returns, which bootstrap from the root value; 0 sums all rewards. Games without rewards use
    their result."""
    support: int = option(0, bounded_int(0, MAX_SUPPORT))
    """Categorical support of values and rewards, the integers from -this to this, after a square-root-like transform;
    0: they lie in [-1, 1] and are learned as win, draw and loss probabilities."""
    dynamics_blocks: int = option(1, bounded_int(0, 256))
    """Residual blocks of the dynamics network."""
    reward_weight: float = option(1.0, not_negative)
    """Weight of the reward loss."""
    consistency: float = option(0.0, not_negative)
    """Weight of the consistency loss between predicted and observed hidden states (EfficientZero); 0 disables it."""
    priority: float = option(0.0, not_negative)
    """Exponent of prioritised replay, by value error; 0 samples by recency alone."""
    priority_correction: float = option(1.0, share)
    """Importance-sampling exponent of prioritised replay, from 0 to 1."""
    fresh_values: bool = option(False, validation.flag)
    """Recompute bootstrap values with the current weights at each sampling (with rewards)."""
    reanalyse: float = option(0.0, share)
    """Reanalyse: fraction of each batch searched again with the current weights for fresh targets."""
    reanalyse_simulations: int = option(8, validation.count)
    """Simulations of a reanalysis search."""

    def __post_init__(self) -> None:
        validation.check_fields(self, "muzero.")


def _listed(value: Any, name: str, check: Callable[[Any, str], Any]) -> tuple[Any, ...]:
    if not validation.is_listed(value):
        raise InvalidArgumentError(f"{name} must be a list, not {validation.shown(value)}")
    return tuple(check(entry, f"{name}[{place}]") for place, entry in enumerate(value))


def _counts(value: Any, name: str) -> tuple[int, ...]:
    return _listed(value, name, validation.count)


def _opponent(value: Any, name: str) -> str:
    if not isinstance(value, str) or OPPONENT.fullmatch(value) is None:
        raise InvalidArgumentError(
            f"{name} must be a search and its simulations per move, such as 'UCT 400' or, in chess, 'Hybrid 32', "
            f"not {validation.shown(value)}"
        )
    return value


def _ladder(value: Any, name: str) -> tuple[str, ...]:
    names = _listed(value, name, _opponent)
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"{name} must name each opponent once")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """Strength evaluation, without noise and random moves."""

    every_minutes: float = option(3.0, not_negative)
    """Minutes between evaluations; 0 evaluates only at the end."""
    games: int = option(20, bounded_int(0, 1 << 20))
    """Games per opponent, even: each opening is played with both sides. With rewards, episodes per evaluation."""
    simulations: int = option(100, validation.count)
    """Simulations per move of the evaluated player and of its predecessor."""
    ladder: tuple[str, ...] = option(("UCT 100", "UCT 400", "UCT 1600"), _ladder)
    """Anchor opponents, weakest first, as search and simulations per move ("Hybrid 32" in chess): the player meets the
    next one when it beats one. The first defines Elo 0."""
    ladder_score: float = option(0.8, bounded_float(-math.inf, 1.0))
    """Score, above 0.5, that counts as beating an opponent; at 1 minus this, the player meets the one below."""
    uct_simulations: tuple[int, ...] | None = option(None, _counts, optional=True)
    """Fixed UCT opponents by simulations, met in every evaluation instead of the ladder."""
    positions: int = option(200, validation.whole_number)
    """Positions for the comparison with exact play, where there is an exact solver (Connect 4)."""
    solve: bool = option(False, validation.flag)
    """Keep proven results in evaluation searches."""

    def __post_init__(self) -> None:
        validation.check_fields(self, "evaluation.")
        if self.games % 2:
            raise InvalidArgumentError(f"evaluation.games must be even, not {self.games}")
        if self.ladder_score <= 0.5:
            raise InvalidArgumentError(f"evaluation.ladder_score must be above 0.5, not {self.ladder_score}")
