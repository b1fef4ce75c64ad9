"""What the hybrid search knows of chess beside its rules, as the engine is told it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pondertree import validation
from pondertree._core import MoveWeights, PestoWeights

#: By category: what a prior is multiplied by where categories shape the priors. Set by matches (benches/RESULTS.md).
CATEGORY_WEIGHTS = (32.0, 12.0, 8.0, 4.0, 3.0, 3.0, 2.0, 1.5, 1.0, 0.5)

#: Positions that a look for mates inside the tree may cost: most mates by checks take few. Set by matches.
MATE_BUDGET = 20

#: Mates are looked for at most so many moves deep.
MAX_MATE_DEPTH = 64

#: Positions that the mate search at a root may look at for each second of the time limit, which takes about a
#: twentieth of it; and the most that any root is worth.
POSITIONS_PER_SECOND = 50_000
MOST_AT_ROOT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessConfig:
    """Classical knowledge of chess: evaluation, mates, kinds of moves."""

    pesto: PestoWeights
    """The weights of the evaluation."""
    quiescence: bool = True
    """Whether leaves are valued after the captures."""
    endings: bool = False
    """Whether positions of three pieces are looked up in the tables of elementary endings."""
    mate_depth: int = 0
    """Moves in which mates are looked for at every new position; 0 looks for none."""
    mate_budget: int = MATE_BUDGET
    """Positions that such a look may cost inside the tree."""
    root_depth: int = 0
    """Moves in which mates are looked for at the root, at full width."""
    root_budget: int = 10_000
    """Positions that this may cost."""
    see_threshold: int = 0
    """Exchanges that win or lose no more than this are even, in centipawns."""
    priority: str | None = None
    """What categories of moves are for: "strict", "tactical", "prior"; None does without them."""
    weights: tuple[float, ...] = CATEGORY_WEIGHTS
    """By category: what a prior is multiplied by, where they shape the priors."""
    move_scores: MoveWeights | None = None
    """There, priors are also multiplied by what these say of each move; None does without."""
    killer_visits: int = 4
    """A quiet move that is better than its position becomes a killer after so many visits."""

    @property
    def move_categories(self) -> type[IntEnum]:
        """`MoveCategory`."""
        from pondertree.chess.move_ordering import MoveCategory

        return MoveCategory

    def to_data(self) -> dict[str, Any]:
        """Returns the fields as the engine reads them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def root_depth(mate_search_depth: int) -> int:
    """The root is looked at once, and so a move deeper."""
    return min(mate_search_depth + 1, MAX_MATE_DEPTH) if mate_search_depth else 0


def root_budget(num_simulations: int | Sequence[int] | None, time_limit: float | None) -> int:
    """Positions that the mate search at a root may cost: about a twentieth of the time, or two a simulation.

    Few simulations see few mates by themselves: they get up to forty each, so that a mate in four is seldom missed.

    By what the search was told, not by the clock, so that a search can be repeated.
    """
    if num_simulations is None:
        return int(min(max(POSITIONS_PER_SECOND * (time_limit or 1.0), 200), MOST_AT_ROOT))
    most = num_simulations if isinstance(num_simulations, int) else max(num_simulations, default=0)
    return min(max(2 * most, min(40 * most, 80_000), 4_000), MOST_AT_ROOT)


#: Planes of an observation: AlphaZero's 119, of 8 x 8 squares.
PLANES = 119
#: Kinds of moves from a square; the number of a move is `square * 73 + plane`.
POLICY_PLANES = 73
NUM_MOVES = 64 * POLICY_PLANES


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """How deep and wide the network is."""

    blocks: int = 6
    """Residual blocks of two convolutions each."""
    channels: int = 64
    """Features of every convolution."""
    value_channels: int = 8
    """Features of a square that the value is read from."""
    value_hidden: int = 64
    """Width of the hidden layer of the value."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", validation.whole_number(self.blocks, "blocks", most=256))
        for name in ("channels", "value_channels", "value_hidden"):
            object.__setattr__(self, name, validation.whole_number(getattr(self, name), name, least=1, most=4096))
