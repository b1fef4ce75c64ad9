"""Move categories, and the configuration of the engine's chess knowledge and of the residual network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pondertree import validation
from pondertree._core import MoveWeights, PestoWeights
from pondertree.config import bounded_int, option

#: Prior multiplier per move category, for `priority="prior"`. Tuned by matches (benches/RESULTS.md).
CATEGORY_WEIGHTS = (32.0, 12.0, 8.0, 4.0, 3.0, 3.0, 2.0, 1.5, 1.0, 0.5)

#: Node budget of a mate search inside the tree: most mates by checks take few. Tuned by matches.
MATE_BUDGET = 20

#: Maximum depth of a mate search, in moves.
MAX_MATE_DEPTH = 64

#: Node budget of the root's mate search per second of the time limit, about a twentieth of it; and its maximum.
ROOT_BUDGET_PER_SECOND = 50_000
MAX_ROOT_BUDGET = 1_000_000


class MoveCategory(IntEnum):
    """A move category under the hybrid specification's name; lower numbers are tried first."""

    ForcedMate = 0
    """Mates at once, or is the first move of a known mate."""
    PromotionToQueen = 1
    """A promotion to a queen, with or without capture."""
    WinningCapture = 2
    """A capture with SEE above the threshold."""
    KillerMove1 = 3
    """The first killer move."""
    KillerMove2 = 4
    """The second killer move."""
    EqualCapture = 5
    """A capture with |SEE| within the threshold."""
    Check = 6
    """A quiet move that gives check."""
    HistoryHeuristic = 7
    """A quiet move with a high history score."""
    OtherQuiet = 8
    """Any other quiet move."""
    LosingCapture = 9
    """A capture with SEE below the negated threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessConfig:
    """Chess knowledge of a search: evaluation, mate search, endgame tables, move ordering."""

    pesto: PestoWeights
    """The weights of the evaluation."""
    quiescence: bool = True
    """Whether leaf values are those of a quiescence search."""
    endings: bool = False
    """Whether positions with three pieces are looked up in the endgame tables."""
    mate_depth: int = 0
    """Depth of the mate search at every new node, in moves; 0 disables it."""
    mate_budget: int = MATE_BUDGET
    """Node budget of that mate search."""
    root_depth: int = 0
    """Depth of the full-width mate search at the root, in moves."""
    root_budget: int = 10_000
    """Node budget of the mate search at the root."""
    see_threshold: int = 0
    """Captures with |SEE| at most this are even, in centipawns."""
    priority: str | None = None
    """The use of move categories: "strict", "tactical", "prior", or None."""
    weights: tuple[float, ...] = CATEGORY_WEIGHTS
    """Prior multiplier per category, for `priority="prior"`."""
    move_scores: MoveWeights | None = None
    """Learned move scores, which also multiply the priors then; None disables them."""
    killer_visits: int = 4
    """Visits after which a quiet move better than its position becomes a killer move."""

    @property
    def move_categories(self) -> type[IntEnum]:
        """The enumeration of move categories."""
        return MoveCategory

    def to_data(self) -> dict[str, Any]:
        """Returns the fields by name, as the engine reads them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def root_depth(mate_search_depth: int) -> int:
    """Depth of the root's mate search: one move deeper than inside the tree, since it runs once."""
    return min(mate_search_depth + 1, MAX_MATE_DEPTH) if mate_search_depth else 0


def root_budget(num_simulations: int | Sequence[int] | None, time_limit: float | None) -> int:
    """Node budget of the mate search at a root: about a twentieth of the time, or two nodes per simulation.

    Short searches find few mates by simulation and get up to 40 nodes each, so that a mate in four is seldom missed.
    The budget depends on the limits given, not on the clock: searches stay reproducible.
    """
    if num_simulations is None:
        return int(min(max(ROOT_BUDGET_PER_SECOND * (time_limit or 1.0), 200), MAX_ROOT_BUDGET))
    most = num_simulations if isinstance(num_simulations, int) else max(num_simulations, default=0)
    return min(max(2 * most, min(40 * most, 80_000), 4_000), MAX_ROOT_BUDGET)


#: Input planes of an observation [119, 8, 8], as in AlphaZero.
PLANES = 119
#: Move planes per origin square; the index of a move is `square * 73 + plane`.
POLICY_PLANES = 73
NUM_MOVES = 64 * POLICY_PLANES

_width = bounded_int(1, 4096)


@dataclass(frozen=True, slots=True)
class ChessNetworkConfig:
    """Depth and width of the residual network."""

    blocks: int = option(6, bounded_int(0, 256))
    """Residual blocks of two convolutions each."""
    channels: int = option(64, _width)
    """Channels of every convolution in the trunk."""
    value_channels: int = option(8, _width)
    """Channels per square of the value head."""
    value_hidden: int = option(64, _width)
    """Width of the value head's hidden layer."""

    def __post_init__(self) -> None:
        validation.check_fields(self)
