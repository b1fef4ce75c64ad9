"""`Pesto`: the classical tapered evaluation of chess, also an evaluator for any search on chess."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import Chess, PestoWeights
from pondertree.chess.config import ChessConfig
from pondertree.chess.weights import (
    DEFAULT_FIELDS,
    DEFAULT_SCALE,
    DEFAULTS,
    check_field,
    flat,
    nested,
    read_file,
    write_file,
)
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.games.chess_interop import to_chess

#: Middlegame, endgame.
Pair = tuple[int, int]
#: By square (a8 to h1, from White's side) or by rank: middlegame, endgame.
Table = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, repr=False)
class Pesto:
    """PeSTO's piece values and piece-square tables, and further terms, tapered from middlegame to endgame.

    The default weights were tuned (docs/tuning.md); `Pesto.published()` has the original PeSTO weights. Weights are
    centipawns, pairs of (middlegame, endgame), for the side that has the feature; they are passed by name
    (`Pesto(two_bishops_bonus=(30, 50))`) or read from files (`to_file`, `from_file`). Scores are for the side to move
    and symmetric under exchange of colours.

    As an evaluator it returns `2 * sigmoid(score / scale) - 1`, by default after a quiescence search, and uniform
    priors.
    """

    pawn_value: Pair = DEFAULT_FIELDS["pawn_value"]
    knight_value: Pair = DEFAULT_FIELDS["knight_value"]
    bishop_value: Pair = DEFAULT_FIELDS["bishop_value"]
    rook_value: Pair = DEFAULT_FIELDS["rook_value"]
    queen_value: Pair = DEFAULT_FIELDS["queen_value"]
    pawn_squares: Table = DEFAULT_FIELDS["pawn_squares"]
    """64 weights for the middlegame, 64 for the endgame; likewise for the other pieces."""
    knight_squares: Table = DEFAULT_FIELDS["knight_squares"]
    bishop_squares: Table = DEFAULT_FIELDS["bishop_squares"]
    rook_squares: Table = DEFAULT_FIELDS["rook_squares"]
    queen_squares: Table = DEFAULT_FIELDS["queen_squares"]
    king_squares: Table = DEFAULT_FIELDS["king_squares"]
    phase_weights: tuple[int, int, int, int, int] = DEFAULT_FIELDS["phase_weights"]
    """Contributions of pawn, knight, bishop, rook and queen to the game phase."""
    two_bishops_bonus: Pair = DEFAULT_FIELDS["two_bishops_bonus"]
    tempo_bonus: Pair = DEFAULT_FIELDS["tempo_bonus"]
    """The right to move."""
    passed_pawn_bonus: Table = DEFAULT_FIELDS["passed_pawn_bonus"]
    """By rank, from its owner's first rank."""
    isolated_pawn_bonus: Pair = DEFAULT_FIELDS["isolated_pawn_bonus"]
    doubled_pawn_bonus: Pair = DEFAULT_FIELDS["doubled_pawn_bonus"]
    rook_open_file_bonus: Pair = DEFAULT_FIELDS["rook_open_file_bonus"]
    rook_half_open_file_bonus: Pair = DEFAULT_FIELDS["rook_half_open_file_bonus"]
    knight_mobility_bonus: Pair = DEFAULT_FIELDS["knight_mobility_bonus"]
    """Per reachable square not attacked by an enemy pawn; likewise for the other pieces."""
    bishop_mobility_bonus: Pair = DEFAULT_FIELDS["bishop_mobility_bonus"]
    rook_mobility_bonus: Pair = DEFAULT_FIELDS["rook_mobility_bonus"]
    queen_mobility_bonus: Pair = DEFAULT_FIELDS["queen_mobility_bonus"]
    guarded_pawn_bonus: Table = DEFAULT_FIELDS["guarded_pawn_bonus"]
    """A pawn protected by a pawn, by rank."""
    passed_king_bonus: Pair = DEFAULT_FIELDS["passed_king_bonus"]
    """Per passed pawn and move by which the own king is closer to its stop square than the enemy king."""
    passed_stopped_bonus: Pair = DEFAULT_FIELDS["passed_stopped_bonus"]
    """A passed pawn blocked by an enemy piece."""
    outpost_bonus: Pair = DEFAULT_FIELDS["outpost_bonus"]
    """A knight or bishop on ranks 4 to 6, protected by a pawn and not attackable by an enemy pawn."""
    pawn_threat_bonus: Pair = DEFAULT_FIELDS["pawn_threat_bonus"]
    """An enemy piece attacked by a pawn."""
    minor_threat_bonus: Pair = DEFAULT_FIELDS["minor_threat_bonus"]
    """An enemy rook or queen attacked by a knight or bishop."""
    rook_threat_bonus: Pair = DEFAULT_FIELDS["rook_threat_bonus"]
    """An enemy queen attacked by a rook."""
    hanging_threat_bonus: Pair = DEFAULT_FIELDS["hanging_threat_bonus"]
    """An enemy piece or pawn that is attacked and not defended."""
    king_shield_bonus: Pair = DEFAULT_FIELDS["king_shield_bonus"]
    """A pawn on the two ranks in front of the king, on its file or an adjacent one."""
    king_open_file_bonus: Pair = DEFAULT_FIELDS["king_open_file_bonus"]
    """One of these files without a pawn of the king's colour."""
    king_danger_bonus: Table = DEFAULT_FIELDS["king_danger_bonus"]
    """By attacks on the king zone, in 16 levels: half of two units per square attacked by a knight, bishop or rook, and
    three per square attacked by a queen."""
    scale: float = DEFAULT_SCALE
    """Scale of the sigmoid in centipawns. The default is equivalent to `tanh(0.326 * pawns)`."""
    quiescence: bool = field(default=True, kw_only=True)
    """Whether values (not `eval`) are those of a quiescence search."""
    compiled: PestoWeights = field(init=False, compare=False)
    """The engine's copy of the weights."""

    def __post_init__(self) -> None:
        for name in DEFAULTS:
            object.__setattr__(self, name, check_field(name, getattr(self, name)))
        object.__setattr__(self, "scale", validation.positive_number(self.scale, "scale"))
        object.__setattr__(self, "quiescence", validation.flag(self.quiescence, "quiescence"))
        numbers = {name: flat(name, getattr(self, name)) for name in DEFAULTS}
        object.__setattr__(self, "compiled", PestoWeights(numbers, self.scale))

    # --- scores -------------------------------------------------------------------------------------------------------

    def eval(self, state: Any) -> int:
        """Returns the static score in centipawns for the side to move."""
        return self.compiled.eval(to_chess(state))[0]

    def eval_plus_game_phase(self, state: Any) -> tuple[int, int]:
        """Returns (centipawns for the side to move, game phase): from 0, the endgame, to 24 by default weights."""
        return self.compiled.eval(to_chess(state))

    def eval_many(self, states: Sequence[Chess]) -> NDArray[np.int64]:
        """Returns the static scores of many positions, each for its side to move."""
        return self.compiled.eval_many(states)

    def quiescence_search(self, state: Any, max_depth: int = 8) -> tuple[int, int]:
        """Returns (quiescence score in centipawns for the side to move, nodes).

        Searches captures and promotions to at most `max_depth` plies; 0 is the static score. A mate scores 1000000
        minus its distance in plies.
        """
        return self.compiled.quiescence(to_chess(state), validation.whole_number(max_depth, "max_depth", most=100))

    # --- values -------------------------------------------------------------------------------------------------------

    def value(self, state: Any) -> float:
        """Returns the value for the side to move, in [-1, 1]; ends of the game are not detected."""
        return self.compiled.value(to_chess(state), self.quiescence)

    def values(self, states: Sequence[Chess]) -> NDArray[np.float64]:
        """Returns the values of many positions, each for its side to move."""
        return self.compiled.values(states, self.quiescence)

    def evaluate_states(self, states: Sequence[Chess]) -> tuple[None, NDArray[np.float64]]:
        """Returns (None for uniform priors, values): the evaluator interface."""
        return None, self.values(states)

    # --- files --------------------------------------------------------------------------------------------------------

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Writes the weights and the scale as JSON."""
        write_file(path, self.scale, {name: getattr(self, name) for name in DEFAULTS})

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, quiescence: bool = True) -> Self:
        """Reads a file in the format of `to_file`, with exactly the fields of this class."""
        scale, weights = read_file(path)
        try:
            return cls(**weights, scale=scale, quiescence=quiescence)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{os.fspath(path)}: {error}") from None

    @classmethod
    def published(cls, *, quiescence: bool = True) -> Self:
        """PeSTO's original piece values and tables; of the other terms some are set by hand, the rest are 0."""
        weights, scale = PestoWeights.published()
        fields: dict[str, Any] = {name: nested(name, numbers) for name, numbers in weights}
        return cls(**fields, scale=scale, quiescence=quiescence)

    # --- copy and repr ------------------------------------------------------------------------------------------------

    def _changed(self) -> dict[str, Any]:
        named = {each.name: (getattr(self, each.name), each.default) for each in fields(self) if each.init}
        return {name: value for name, (value, default) in named.items() if value != default}

    def compiled_leaf(self, info: GameInfo) -> ChessConfig | None:
        """Returns the engine's equivalent leaf evaluation; None for other games and for subclasses."""
        # A subclass may override the evaluation.
        if type(self) is not Pesto or not (info.compiled and info.name == "chess"):
            return None
        return ChessConfig(pesto=self.compiled, quiescence=self.quiescence)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._changed().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._changed())


def _restore(cls: type[Pesto], changed: dict[str, Any]) -> Pesto:
    return cls(**changed)


#: The hybrid specification's name.
PestoEval = Pesto
