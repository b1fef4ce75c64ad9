"""`Pesto`: the classical evaluation of chess, whose every weight is a field; and an evaluator for any search."""

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
from pondertree.chess.weights import DEFAULT_SCALE, DEFAULTS, USUAL, check_field, flat, nested, read_file, write_file
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.games.chess_interop import to_chess

#: Middlegame, endgame.
Pair = tuple[int, int]
#: Numbers for squares (a8 first, h1 last, as White sees them) or ranks: middlegame, endgame.
Table = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, repr=False)
class Pesto:
    """Piece values and piece-square tables as PeSTO has them, and bonuses, tapered from middlegame to endgame.

    The defaults were tuned (docs/tuning.md); `Pesto.published()` has the weights that PeSTO made public.
    Weights are centipawns, pairs of (middlegame, endgame), for the side that has what they name. They are given by name
    (`Pesto(two_bishops_bonus=(30, 50))`), kept in files (`to_file`, `from_file`), and handed to the engine once.
    Scores are for the side to move; with colours changed and the board turned they are the same.

    Any search on chess takes a `Pesto` as its evaluator: values are `2 * sigmoid(score / scale) - 1`, by default after
    a quiescence search, and all moves are alike.
    """

    pawn_value: Pair = USUAL["pawn_value"]
    knight_value: Pair = USUAL["knight_value"]
    bishop_value: Pair = USUAL["bishop_value"]
    rook_value: Pair = USUAL["rook_value"]
    queen_value: Pair = USUAL["queen_value"]
    pawn_squares: Table = USUAL["pawn_squares"]
    """64 numbers for the middlegame, 64 for the endgame; so for the other pieces."""
    knight_squares: Table = USUAL["knight_squares"]
    bishop_squares: Table = USUAL["bishop_squares"]
    rook_squares: Table = USUAL["rook_squares"]
    queen_squares: Table = USUAL["queen_squares"]
    king_squares: Table = USUAL["king_squares"]
    phase_weights: tuple[int, int, int, int, int] = USUAL["phase_weights"]
    """What a pawn, knight, bishop, rook, queen counts for the middlegame."""
    two_bishops_bonus: Pair = USUAL["two_bishops_bonus"]
    tempo_bonus: Pair = USUAL["tempo_bonus"]
    """The right to move."""
    passed_pawn_bonus: Table = USUAL["passed_pawn_bonus"]
    """By the pawn's rank, its owner's first rank first."""
    isolated_pawn_bonus: Pair = USUAL["isolated_pawn_bonus"]
    doubled_pawn_bonus: Pair = USUAL["doubled_pawn_bonus"]
    rook_open_file_bonus: Pair = USUAL["rook_open_file_bonus"]
    rook_half_open_file_bonus: Pair = USUAL["rook_half_open_file_bonus"]
    knight_mobility_bonus: Pair = USUAL["knight_mobility_bonus"]
    """For each square it can go to that no enemy pawn guards; so for the other pieces."""
    bishop_mobility_bonus: Pair = USUAL["bishop_mobility_bonus"]
    rook_mobility_bonus: Pair = USUAL["rook_mobility_bonus"]
    queen_mobility_bonus: Pair = USUAL["queen_mobility_bonus"]
    guarded_pawn_bonus: Table = USUAL["guarded_pawn_bonus"]
    """A pawn that a pawn guards, by its rank."""
    passed_king_bonus: Pair = USUAL["passed_king_bonus"]
    """For each passed pawn: by how many moves its king is nearer to the square before it than the other king."""
    passed_stopped_bonus: Pair = USUAL["passed_stopped_bonus"]
    """A passed pawn before which an enemy piece stands."""
    outpost_bonus: Pair = USUAL["outpost_bonus"]
    """A knight or bishop on the fourth to the sixth rank that a pawn guards and no enemy pawn can attack."""
    pawn_threat_bonus: Pair = USUAL["pawn_threat_bonus"]
    """An enemy piece that a pawn attacks."""
    minor_threat_bonus: Pair = USUAL["minor_threat_bonus"]
    """An enemy rook or queen that a knight or bishop attacks."""
    rook_threat_bonus: Pair = USUAL["rook_threat_bonus"]
    """An enemy queen that a rook attacks."""
    hanging_threat_bonus: Pair = USUAL["hanging_threat_bonus"]
    """An enemy piece or pawn that is attacked and not guarded."""
    king_shield_bonus: Pair = USUAL["king_shield_bonus"]
    """A pawn on the two ranks before the king, on its file or one beside it."""
    king_open_file_bonus: Pair = USUAL["king_open_file_bonus"]
    """One of these files without a pawn of the king's side."""
    king_danger_bonus: Table = USUAL["king_danger_bonus"]
    """By how much of the king's surroundings is attacked, and by what: 16 levels, two for each square that a knight,
    bishop or rook attacks, three for a queen's, halved."""
    scale: float = DEFAULT_SCALE
    """Centipawns: the scale of the sigmoid. The default gives `tanh(0.326 * pawns)`."""
    quiescence: bool = field(default=True, kw_only=True)
    """Whether values (not `eval`) are those after a quiescence search."""
    compiled: PestoWeights = field(init=False, compare=False)
    """The weights as the engine holds them."""

    def __post_init__(self) -> None:
        for name in DEFAULTS:
            object.__setattr__(self, name, check_field(name, getattr(self, name)))
        object.__setattr__(self, "scale", validation.positive_number(self.scale, "scale"))
        object.__setattr__(self, "quiescence", validation.flag(self.quiescence, "quiescence"))
        numbers = {name: flat(name, getattr(self, name)) for name in DEFAULTS}
        object.__setattr__(self, "compiled", PestoWeights(numbers, self.scale))

    # --- scores -------------------------------------------------------------------------------------------------------

    def eval(self, state: Any) -> int:
        """The static score of a position in centipawns for the side to move."""
        return self.compiled.eval(to_chess(state))[0]

    def eval_plus_game_phase(self, state: Any) -> tuple[int, int]:
        """(centipawns for the side to move, phase): from 0, the endgame, to the middlegame, 24 by the usual weights."""
        return self.compiled.eval(to_chess(state))

    def eval_many(self, states: Sequence[Chess]) -> NDArray[np.int64]:
        """The static scores of many positions, each for its side to move."""
        return self.compiled.eval_many(states)

    def quiescence_search(self, state: Any, max_depth: int = 8) -> tuple[int, int]:
        """(centipawns for the side to move when captures and promotions are over, positions looked at).

        A mate scores a million less its plies. `max_depth` is in plies; 0 is the static score.
        """
        return self.compiled.quiescence(to_chess(state), validation.whole_number(max_depth, "max_depth", most=100))

    # --- values -------------------------------------------------------------------------------------------------------

    def value(self, state: Any) -> float:
        """What a position is worth for the side to move, from -1 to 1. Ends of the game are not looked at."""
        return self.compiled.value(to_chess(state), self.quiescence)

    def values(self, states: Sequence[Chess]) -> NDArray[np.float64]:
        """The values of many positions, each for its side to move."""
        return self.compiled.values(states, self.quiescence)

    def evaluate_states(self, states: Sequence[Chess]) -> tuple[None, NDArray[np.float64]]:
        """(nothing: all moves are alike, values): the form in which searches ask."""
        return None, self.values(states)

    # --- files --------------------------------------------------------------------------------------------------------

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Writes the weights and the scale as JSON."""
        write_file(path, self.scale, {name: getattr(self, name) for name in DEFAULTS})

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, quiescence: bool = True) -> Self:
        """Weights that `to_file` wrote, or somebody by hand. Every field must be there, and no other."""
        scale, weights = read_file(path)
        try:
            return cls(**weights, scale=scale, quiescence=quiescence)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{os.fspath(path)}: {error}") from None

    @classmethod
    def published(cls, *, quiescence: bool = True) -> Self:
        """PeSTO's public piece values and tables, with bonuses set by hand, of which the newer ones are 0."""
        weights, scale = PestoWeights.published()
        fields: dict[str, Any] = {name: nested(name, numbers) for name, numbers in weights}
        return cls(**fields, scale=scale, quiescence=quiescence)

    # --- as a value ---------------------------------------------------------------------------------------------------

    def _changed(self) -> dict[str, Any]:
        named = {each.name: (getattr(self, each.name), each.default) for each in fields(self) if each.init}
        return {name: value for name, (value, usual) in named.items() if value != usual}

    def compiled_leaf(self, info: GameInfo) -> ChessConfig | None:
        """The engine's own evaluation of leaves, equal to this one; None for other games and for derived classes."""
        # A derived class may value positions in a way of its own.
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
