"""The sections of a configuration, each frozen, with a sentence for each field, checked when it is made."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pondertree import validation
from pondertree.errors import InvalidArgumentError

ROOTS = ("gumbel", "puct")
OPTIMISERS = ("adamw", "sgd")
#: How reference opponents are named, in metrics too: a preset and its simulations a move.
OPPONENT = re.compile(r"(UCT|Hybrid) ([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPlayConfig:
    """How games are played to learn from."""

    games_at_once: int = 128
    """Games under way at a time, which share the batches of the network."""
    simulations: int = 32
    """Simulations of a full search, whose policy is learned."""
    fast_simulations: int = 8
    """Simulations of the other searches, which only bring the game forward (playout-cap randomisation)."""
    full_share: float = 1.0
    """The share of moves that get a full search; 1 searches all of them fully."""
    considered_actions: int = 16
    """Moves that Gumbel search considers at the root."""
    value_scale: float = 0.1
    """How much the values of moves count in Gumbel search beside the policy."""
    rescale_values: bool = True
    """Stretch the values of moves to the range from 0 to 1 in Gumbel search, however little they differ."""
    c_puct: float = 1.5
    """Exploration of PUCT (`algorithm = "alphazero"`)."""
    dirichlet_alpha: float = 10.0
    """Concentration of the noise at the root, for all legal moves together (`algorithm = "alphazero"`)."""
    dirichlet_epsilon: float = 0.25
    """Weight of the noise at the root (`algorithm = "alphazero"`)."""
    forced_playouts: float = 2.0
    """Moves at the root get sqrt(this * prior * visits) simulations at least, taken off the policy that is learned."""
    temperature: float = 1.0
    """Temperature of the first moves of a game."""
    temperature_moves: int = 10
    """Moves of a game, a random opening included, that are drawn at `temperature`; then the best is played."""
    opening_plies: int = 0
    """Random moves that a game may begin with, to see more of the game: from 0 to so many."""
    opening_share: float = 0.5
    """The share of games that begin with random moves."""
    max_moves: int = 512
    """Longer games are ended as draws, marked as cut."""
    resign_below: float = -1.0
    """A player resigns when the value at the root is below this twice in a row; -1 never."""
    resign_check: float = 0.1
    """The share of games that are played on after a resignation, to see whether it was wrong."""
    resign_wrong: float = 0.05
    """Resigning pauses while more than this share of the checked resignations was wrong."""
    solve: bool = False
    """Keep proven results in the searches of self-play."""
    threads: int = 1
    """Threads of the engine."""
    workers: int = 0
    """Threads that search a part of the games each; 0 is one for each core on a CPU, and one on a GPU."""

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
            raise InvalidArgumentError("self_play.full_share must be above 0: there would be no policy to learn")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """What of the games is learned from."""

    window: int = 100_000
    """Positions kept in memory to learn from, the newest ones; all games stay on the disk."""
    fresh: float = 0.5
    """How much newer positions are preferred: 0 draws all alike, 1 draws none of the oldest."""
    learned_first: int = 4_000
    """Positions there must be before learning begins."""

    def __post_init__(self) -> None:
        window = validation.count(self.window, "replay.window")
        validation.number(self.fresh, "replay.fresh", least=0.0, most=1.0)
        if validation.count(self.learned_first, "replay.learned_first") > window:
            raise InvalidArgumentError(
                f"replay.learned_first must be at most replay.window, {self.window}, not {self.learned_first}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerConfig:
    """How the network learns."""

    batch_size: int = 256
    """Positions of one step."""
    passes: float = 6.0
    """How often a position is learned from, on average."""
    optimiser: str = "adamw"
    """ "adamw" or "sgd" (with momentum 0.9)."""
    learning_rate: float = 2e-3
    """The rate after warming up."""
    warm_up: int = 100
    """Steps in which the rate rises from 0."""
    decay_from: float = 0.6
    """The share of the training after which the rate falls."""
    final_rate: float = 0.05
    """What part of the learning rate is left at the end."""
    weight_decay: float = 1e-4
    """Weight decay, of weights and not of biases and norms."""
    clip: float = 5.0
    """The longest gradient; longer ones are shortened."""
    value_weight: float = 1.0
    """Weight of the value's loss beside the policy's."""
    root_value_share: float = 0.3
    """Share of the search's own value at the root in what the value learns, beside the result of the game."""
    averaged: float = 0.99
    """The weights that play are an average: so much of it stays at each step."""
    symmetries: bool = True
    """Turn positions by a symmetry of the game, drawn anew each time."""
    reduced_precision: bool = True
    """Compute in bfloat16 on a GPU."""

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
    """How a model is learned, and planned in (`algorithm = "muzero"`)."""

    root: str = "gumbel"
    """The search: "gumbel", or "puct" with noise at the root."""
    discount: float = 1.0
    """What a reward, or a result, is worth a step earlier."""
    unroll: int = 5
    """Steps that the model is followed from a position, and learned at."""
    td_steps: int = 0
    """Rewards that a value is made of before the search's own value of what comes then; 0 is all to the end. A game
    without rewards has its result, whatever this is."""
    support: int = 0
    """Values and rewards are spread over whole numbers up to this on each side, after a root-like transform; 0: they
    are from -1 to 1, and learned as chances of winning, drawing and losing."""
    dynamics_blocks: int = 1
    """Residual blocks of the step from one hidden state to the next."""
    reward_weight: float = 1.0
    """Weight of the reward's loss."""
    consistency: float = 0.0
    """Weight of the loss that hidden states after a step should be like those of what is seen then; 0 leaves it out."""
    priority: float = 0.0
    """Positions whose value was wrong are drawn more often, by this power of the error; 0 draws by age alone."""
    priority_correction: float = 1.0
    """How much of that their weight in the loss makes good again, from 0 to 1."""
    fresh_values: bool = False
    """Ask the present weights for the values of later positions that values lean on, at each draw (with rewards)."""
    reanalyse: float = 0.0
    """The share of each batch that is searched anew, with the present weights, for fresh policies and values."""
    reanalyse_simulations: int = 8
    """Simulations of these searches."""

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
    """How strength is measured on the way; without noise and without chance in the moves."""

    every_minutes: float = 3.0
    """Minutes between two evaluations; 0 evaluates only at the end."""
    games: int = 20
    """Games against each opponent, an even number: openings are played with both sides."""
    simulations: int = 100
    """Simulations a move of the player that learns, and of its earlier self."""
    ladder: tuple[str, ...] = ("UCT 100", "UCT 400", "UCT 1600")
    """Reference opponents, the weakest first, by name and simulations a move ("Hybrid 32" in chess): it meets the next
    one when it beats one. The first one has Elo 0."""
    ladder_score: float = 0.8
    """The share of points, above 0.5, at which it meets the next opponent; at 1 minus this, the one below."""
    uct_simulations: tuple[int, ...] | None = None
    """Budgets of UCT searches that it meets in every evaluation, instead of the ladder."""
    positions: int = 200
    """Positions in which its moves are compared with exact play, where there is an exact solver (Connect 4)."""
    solve: bool = False
    """Keep proven results in the searches of evaluations."""

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
                    f"evaluation.ladder[{place}] must be a search and its simulations a move, such as 'UCT 400' or, in "
                    f"chess, 'Hybrid 32', not {validation.shown(name)}"
                )
        if len(set(self.ladder)) < len(self.ladder):
            raise InvalidArgumentError("evaluation.ladder must name each opponent once")
        object.__setattr__(self, "ladder", tuple(self.ladder))
