"""The sections of a configuration: frozen dataclasses with validated, documented fields."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pondertree import validation
from pondertree.errors import InvalidArgumentError

ROOTS = ("gumbel", "puct")
OPTIMISERS = ("adamw", "sgd")
#: Names of anchor opponents: a preset and its simulations per move.
OPPONENT = re.compile(r"(UCT|Hybrid) ([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPlayConfig:
    """Self-play."""

    games_at_once: int = 128
    """Concurrent games, which share the batches of the network."""
    simulations: int = 32
    """Simulations of a full search, which yields a policy target."""
    fast_simulations: int = 8
    """Simulations of a fast search, which only advances the game (playout-cap randomisation)."""
    full_share: float = 1.0
    """Fraction of moves with a full search; 1 for all."""
    considered_actions: int = 16
    """Actions that Gumbel search considers at the root."""
    value_scale: float = 0.1
    """Weight of action values against the policy in Gumbel search."""
    rescale_values: bool = True
    """Rescale action values to [0, 1] in Gumbel search, however little they differ."""
    c_puct: float = 1.5
    """Exploration constant of PUCT (`algorithm = "alphazero"`)."""
    dirichlet_alpha: float = 10.0
    """Total concentration of the root's Dirichlet noise (`algorithm = "alphazero"`)."""
    dirichlet_epsilon: float = 0.25
    """Weight of the root's Dirichlet noise (`algorithm = "alphazero"`)."""
    forced_playouts: float = 2.0
    """Forced playouts: at least sqrt(this * prior * visits) per root move, pruned from the policy target."""
    temperature: float = 1.0
    """Sampling temperature of the first moves of a game."""
    temperature_moves: int = 10
    """Plies, the random opening included, sampled at `temperature`; afterwards the best move is played."""
    opening_plies: int = 0
    """Maximum length of a random opening, for more diverse positions."""
    opening_share: float = 0.5
    """Fraction of games with a random opening."""
    max_moves: int = 512
    """Longer games are truncated as draws."""
    resign_below: float = -1.0
    """Resignation threshold: a player resigns after two root values in a row below it; -1 never."""
    resign_check: float = 0.1
    """Fraction of resignations played on to measure the false-positive rate."""
    resign_wrong: float = 0.05
    """Largest false-positive rate at which resignation stays enabled."""
    solve: bool = False
    """Keep proven results in self-play searches."""
    threads: int = 1
    """Engine threads per search."""
    workers: int = 0
    """Threads that each search a part of the games; 0: one per core on a CPU, one on a GPU."""

    def __post_init__(self) -> None:
        for name in ("games_at_once", "simulations", "fast_simulations", "considered_actions", "max_moves", "threads"):
            validation.whole_number(getattr(self, name), f"self_play.{name}", least=1, most=1 << 24)
        for name in ("temperature_moves", "opening_plies", "workers"):
            validation.whole_number(getattr(self, name), f"self_play.{name}", most=1 << 24)
        for name in ("full_share", "opening_share", "dirichlet_epsilon", "resign_check", "resign_wrong"):
            validation.number(getattr(self, name), f"self_play.{name}", least=0.0, most=1.0)
        for name in ("c_puct", "temperature", "forced_playouts", "value_scale"):
            validation.number(getattr(self, name), f"self_play.{name}", least=0.0)
        validation.positive_number(self.dirichlet_alpha, "self_play.dirichlet_alpha")
        validation.number(self.resign_below, "self_play.resign_below", least=-1.0, most=0.0)
        validation.flag(self.solve, "self_play.solve")
        validation.flag(self.rescale_values, "self_play.rescale_values")
        if self.full_share == 0.0:
            raise InvalidArgumentError("self_play.full_share must be above 0: there would be no policy targets")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """Replay buffer."""

    window: int = 100_000
    """Capacity in positions, the newest ones; all games stay on disk."""
    fresh: float = 0.5
    """Recency weighting: 0 samples uniformly, 1 with a density that is 0 at the oldest position."""
    learned_first: int = 4_000
    """Positions required before optimisation starts."""

    def __post_init__(self) -> None:
        window = validation.count(self.window, "replay.window")
        validation.number(self.fresh, "replay.fresh", least=0.0, most=1.0)
        if validation.count(self.learned_first, "replay.learned_first") > window:
            raise InvalidArgumentError(
                f"replay.learned_first must be at most replay.window, {self.window}, not {self.learned_first}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerConfig:
    """Optimisation."""

    batch_size: int = 256
    """Batch size in positions."""
    passes: float = 6.0
    """Average number of times that a position is sampled."""
    optimiser: str = "adamw"
    """ "adamw" or "sgd" (with momentum 0.9)."""
    learning_rate: float = 2e-3
    """Peak learning rate."""
    warm_up: int = 100
    """Steps of linear learning-rate warm-up."""
    decay_from: float = 0.6
    """Fraction of the run after which the learning rate decays."""
    final_rate: float = 0.05
    """Final learning rate as a fraction of the peak."""
    weight_decay: float = 1e-4
    """Weight decay of weights, not of biases and norms."""
    clip: float = 5.0
    """Gradient clipping: maximum gradient norm."""
    value_weight: float = 1.0
    """Weight of the value loss relative to the policy loss."""
    root_value_share: float = 0.3
    """Fraction of the root value in the value target; the rest is the game result."""
    averaged: float = 0.99
    """Decay of the weight averaging (EMA); averaged weights play."""
    symmetries: bool = True
    """Augment positions with random symmetries of the game."""
    reduced_precision: bool = True
    """Use bfloat16 on a GPU."""

    def __post_init__(self) -> None:
        validation.count(self.batch_size, "learner.batch_size")
        for name in ("passes", "learning_rate", "clip"):
            validation.positive_number(getattr(self, name), f"learner.{name}")
        if not validation.is_one_of(self.optimiser, OPTIMISERS):
            raise InvalidArgumentError(
                f"learner.optimiser must be {' or '.join(OPTIMISERS)}, not {validation.shown(self.optimiser)}"
            )
        validation.whole_number(self.warm_up, "learner.warm_up")
        for name in ("decay_from", "final_rate", "root_value_share"):
            validation.number(getattr(self, name), f"learner.{name}", least=0.0, most=1.0)
        for name in ("weight_decay", "value_weight"):
            validation.number(getattr(self, name), f"learner.{name}", least=0.0)
        if not 0.0 <= validation.number(self.averaged, "learner.averaged") < 1.0:
            raise InvalidArgumentError(f"learner.averaged must be at least 0 and below 1, not {self.averaged}")
        for name in ("symmetries", "reduced_precision"):
            validation.flag(getattr(self, name), f"learner.{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentModelConfig:
    """Learned model (`algorithm = "muzero"`)."""

    root: str = "gumbel"
    """Root search: "gumbel", or "puct" with Dirichlet noise."""
    discount: float = 1.0
    """Discount per step."""
    unroll: int = 5
    """Unroll steps of the training loss."""
    td_steps: int = 0
    """Length of n-step returns, which bootstrap from the root value; 0 sums all rewards. Games without rewards use
    their result."""
    support: int = 0
    """Categorical support of values and rewards, the integers from -this to this, after a square-root-like transform;
    0: they lie in [-1, 1] and are learned as win, draw and loss probabilities."""
    dynamics_blocks: int = 1
    """Residual blocks of the dynamics network."""
    reward_weight: float = 1.0
    """Weight of the reward loss."""
    consistency: float = 0.0
    """Weight of the consistency loss between predicted and observed hidden states (EfficientZero); 0 disables it."""
    priority: float = 0.0
    """Exponent of prioritised replay, by value error; 0 samples by recency alone."""
    priority_correction: float = 1.0
    """Importance-sampling exponent of prioritised replay, from 0 to 1."""
    fresh_values: bool = False
    """Recompute bootstrap values with the current weights at each sampling (with rewards)."""
    reanalyse: float = 0.0
    """Reanalyse: fraction of each batch searched again with the current weights for fresh targets."""
    reanalyse_simulations: int = 8
    """Simulations of a reanalysis search."""

    def __post_init__(self) -> None:
        if not validation.is_one_of(self.root, ROOTS):
            raise InvalidArgumentError(f"muzero.root must be {' or '.join(ROOTS)}, not {validation.shown(self.root)}")
        for name in ("discount", "priority_correction", "reanalyse"):
            validation.number(getattr(self, name), f"muzero.{name}", least=0.0, most=1.0)
        validation.whole_number(self.unroll, "muzero.unroll", least=1, most=100)
        validation.whole_number(self.td_steps, "muzero.td_steps", most=1 << 24)
        validation.whole_number(self.support, "muzero.support", most=10_000)
        validation.whole_number(self.dynamics_blocks, "muzero.dynamics_blocks", most=256)
        validation.count(self.reanalyse_simulations, "muzero.reanalyse_simulations")
        validation.flag(self.fresh_values, "muzero.fresh_values")
        for name in ("reward_weight", "consistency", "priority"):
            validation.number(getattr(self, name), f"muzero.{name}", least=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """Strength evaluation, without noise and random moves."""

    every_minutes: float = 3.0
    """Minutes between evaluations; 0 evaluates only at the end."""
    games: int = 20
    """Games per opponent, even: each opening is played with both sides."""
    simulations: int = 100
    """Simulations per move of the evaluated player and of its predecessor."""
    ladder: tuple[str, ...] = ("UCT 100", "UCT 400", "UCT 1600")
    """Anchor opponents, weakest first, as search and simulations per move ("Hybrid 32" in chess): the player meets the
    next one when it beats one. The first defines Elo 0."""
    ladder_score: float = 0.8
    """Score, above 0.5, that counts as beating an opponent; at 1 minus this, the player meets the one below."""
    uct_simulations: tuple[int, ...] | None = None
    """Fixed UCT opponents by simulations, met in every evaluation instead of the ladder."""
    positions: int = 200
    """Positions for the comparison with exact play, where there is an exact solver (Connect 4)."""
    solve: bool = False
    """Keep proven results in evaluation searches."""

    def __post_init__(self) -> None:
        validation.number(self.every_minutes, "evaluation.every_minutes", least=0.0)
        if validation.whole_number(self.games, "evaluation.games", most=1 << 20) % 2:
            raise InvalidArgumentError(f"evaluation.games must be even, not {self.games}")
        validation.count(self.simulations, "evaluation.simulations")
        validation.whole_number(self.positions, "evaluation.positions")
        validation.flag(self.solve, "evaluation.solve")
        if validation.number(self.ladder_score, "evaluation.ladder_score", most=1.0) <= 0.5:
            raise InvalidArgumentError(f"evaluation.ladder_score must be above 0.5, not {self.ladder_score}")
        self._check_ladder()
        if self.uct_simulations is None:
            return
        if not validation.is_listed(self.uct_simulations):
            raise InvalidArgumentError(
                f"evaluation.uct_simulations must be a list, not {validation.shown(self.uct_simulations)}"
            )
        for place, budget in enumerate(self.uct_simulations):
            validation.count(budget, f"evaluation.uct_simulations[{place}]")
        object.__setattr__(self, "uct_simulations", tuple(self.uct_simulations))

    def _check_ladder(self) -> None:
        if not validation.is_listed(self.ladder):
            raise InvalidArgumentError(f"evaluation.ladder must be a list, not {validation.shown(self.ladder)}")
        for place, name in enumerate(self.ladder):
            if not isinstance(name, str) or OPPONENT.fullmatch(name) is None:
                raise InvalidArgumentError(
                    f"evaluation.ladder[{place}] must be a search and its simulations per move, such as 'UCT 400' "
                    f"or, in chess, 'Hybrid 32', not {validation.shown(name)}"
                )
        if len(set(self.ladder)) < len(self.ladder):
            raise InvalidArgumentError("evaluation.ladder must name each opponent once")
        object.__setattr__(self, "ladder", tuple(self.ladder))
