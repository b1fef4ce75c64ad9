"""Hybrid: a tree search of chess that leans on classical knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pondertree import validation
from pondertree.chess.config import (
    CATEGORY_WEIGHTS,
    MATE_BUDGET,
    MAX_MATE_DEPTH,
    ChessConfig,
    root_budget,
    root_depth,
)
from pondertree.config import Puct, SearchConfig, bounded_int, one_of, option, option_of
from pondertree.errors import InvalidArgumentError, UnknownOptionError
from pondertree.evaluators.protocol import as_evaluator, compiled_leaf
from pondertree.game import GameInfo
from pondertree.games.chess_interop import to_chess_and_answer
from pondertree.search.base import Search
from pondertree.search.options import preset, simulations, unknown_option

if TYPE_CHECKING:
    from pondertree.chess.move_ordering import MoveScores

PRIORITIES = ("strict", "tactical", "prior", None)


def read_move_scores(given: Any, name: str = "move_scores") -> Any:
    """Scores of moves, given as such, by name or not at all; "auto" is for the evaluator to decide."""
    from pondertree.chess.move_ordering import MoveScores

    if isinstance(given, MoveScores) or validation.is_one_of(given, (None, "auto")):
        return given
    if validation.is_one_of(given, ("learned",)):
        return MoveScores()
    raise InvalidArgumentError(f'{name} must be a MoveScores, "learned", "auto" or None, not {validation.shown(given)}')


def _evaluator(given: Any, name: str) -> Any:
    if type(given).__module__ == "pondertree.chess.policy":
        raise InvalidArgumentError(
            f"{type(given).__name__} is a policy network: give it as policy_network, not as {name}"
        )
    return as_evaluator(given, name)


def _policy_network(given: Any, name: str) -> Any:
    if isinstance(given, type) or not callable(getattr(given, "evaluate", None)):
        kind = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise InvalidArgumentError(
            f"{name} is {kind}: it must be an object with evaluate(state) -> ({{move: prior}}, value from 0 to 1)"
        )
    return given


def _category_weights(given: Any, name: str) -> tuple[float, ...]:
    weights = CATEGORY_WEIGHTS if given is None else given
    if not validation.is_listed(weights) or len(weights) != len(CATEGORY_WEIGHTS):
        raise InvalidArgumentError(f"{name} must be {len(CATEGORY_WEIGHTS)} numbers, not {validation.shown(weights)}")
    return tuple(validation.positive_number(weight, f"{name}[{place}]") for place, weight in enumerate(weights))


@preset
class Hybrid(Search):
    """Chess by PUCT with mates first, PeSTO's values and moves by kind (the hybrid specification).

    At every new position, in this order: the end of the game, repetition, with `endings` the tables of a king and a
    queen, rook or pawn against a king, a search for a mate by checks (`mate_search_depth` moves and
    `mate_search_budget` positions, where the king is in danger), and the evaluation; tables and mates are exact, and
    nothing below them is looked at. The root is searched for mates at full width; one that is found is played at once,
    and so is the shortest mate of a table. A leaf is worth what `evaluator` says: by default `Pesto()`, with
    `quiescence` after the captures; or any other evaluator, or a `policy_network` of the hybrid specification's form,
    `evaluate(state) -> ({move: prior}, value in [0, 1])`.

    Moves are told apart by kind (`MoveCategory`), exchanges within `see_threshold` centipawns being even. `priority`
    says what that is for: "strict" tries every move once, kind after kind, before any is scored; "tactical" does so
    with those that promise something, and then scores all; "prior" multiplies priors by `category_weights`, one for
    each kind, and by what `move_scores` say of each move; None does without. An edge scores
    `Q + exploration_constant * P * sqrt(N) / (1 + n)`; a move never tried is worth `fpu`, as in AlphaZero.

    `move_scores` are a `MoveScores`, "learned" or None; "auto" is "learned" with a `Pesto`, and None with an evaluator
    or a network outside the engine, which may have its own opinion of moves.
    """

    default_temperature = 0.0

    evaluator: Any = option(None, _evaluator, optional=True)
    policy_network: Any = option(None, _policy_network, optional=True)
    num_simulations: int | Sequence[int] | None = simulations(1000)
    mate_search_depth: int = option(3, bounded_int(0, MAX_MATE_DEPTH))
    exploration_constant: float = option_of(Puct, "c_puct", 1.5)
    priority: str | None = option("prior", one_of(*PRIORITIES))
    see_threshold: int = option(0, bounded_int(0, 20_000))
    quiescence: bool = option(True, validation.flag)
    _: KW_ONLY
    fpu: float | tuple[str, float] = option_of(Puct, "fpu", ("parent", 0.0))
    category_weights: Sequence[float] | None = option(None, _category_weights)
    move_scores: MoveScores | str | None = option("auto", read_move_scores)
    mate_search_budget: int = option(MATE_BUDGET, bounded_int(1, 10**9))
    endings: bool = option(True, validation.flag)

    def __post_init__(self) -> None:
        if self.evaluator is not None and self.policy_network is not None:
            raise InvalidArgumentError("evaluator and policy_network both value positions: give one of them")
        from pondertree.chess.policy import is_evaluator

        if is_evaluator(self.policy_network):
            self.evaluator, self.policy_network = self.policy_network, None
        super().__post_init__()

    def config(self, info: GameInfo) -> SearchConfig:
        """PUCT with knowledge; PeSTO's values inside the engine."""
        if not (info.compiled and info.name == "chess"):
            raise InvalidArgumentError(
                f"Hybrid searches chess alone, not {info.name}: give it a pondertree.games.Chess or a chess.Board"
            )
        from pondertree.chess.move_ordering import MoveScores
        from pondertree.chess.pesto import Pesto
        from pondertree.chess.policy import PestoPolicy, PolicyEvaluator

        evaluator: Any = Pesto() if self.evaluator is None else self.evaluator
        if type(self.policy_network) is PestoPolicy:
            evaluator = self.policy_network.pesto
            values_after_captures = self.policy_network.quiescence
        elif self.policy_network is not None:
            evaluator, values_after_captures = PolicyEvaluator(self.policy_network), False
        else:
            values_after_captures = self.quiescence and getattr(evaluator, "quiescence", True)
        inside = compiled_leaf(evaluator, info)
        scores: Any = self.move_scores
        if scores == "auto":
            # Whoever values positions outside the engine may have its own opinion of moves.
            scores = None if inside is None else MoveScores()
        return SearchConfig(
            rule=Puct(self.exploration_constant, self.fpu),
            options=self.snapshot(),
            leaf="outside" if inside is None else "classical",
            evaluator=evaluator if inside is None else None,
            domain=ChessConfig(
                pesto=Pesto().compiled if inside is None else inside.pesto,
                quiescence=values_after_captures,
                endings=self.endings,
                mate_depth=self.mate_search_depth,
                mate_budget=self.mate_search_budget,
                root_depth=root_depth(self.mate_search_depth),
                root_budget=root_budget(self.num_simulations, self.seconds),
                see_threshold=self.see_threshold,
                priority=self.priority,
                weights=tuple(self.category_weights or CATEGORY_WEIGHTS),
                move_scores=None if scores is None else scores.compiled,
            ),
        )

    def __repr__(self) -> str:
        by = self.evaluator if self.policy_network is None else self.policy_network
        return (
            f"Hybrid({validation.shown(by)}, {self.limit_text}, mate_search_depth={self.mate_search_depth}, "
            f"priority={validation.shown(self.priority)}, seed={self.seed})"
        )


def mcts_search(
    root_state: Any,
    policy_network: Any = None,
    mate_search_depth: int = 3,
    iterations: int | None = None,
    time_limit: float | timedelta | None = None,
    *,
    priority: str | None = "strict",
    **settings: Any,
) -> Any:
    """The move to play: an action, or a `chess.Move` for a board or a `ChessGame`; None where there is no legal move.

    At least one limit must be given: `iterations` (simulations) or `time_limit` (seconds, or a `timedelta`); what is
    reached first ends the search. `policy_network` has the specification's form, or is an evaluator, as `ChessNN` is.

    `priority` is the specification's "strict" here, and in `pondertree.reference.hybrid`; that of `Hybrid` is "prior".
    Further settings are those of `Hybrid`.
    """
    known = ["iterations", *(each.name for each in fields(Hybrid) if each.name != "num_simulations")]
    for name in settings:
        if name not in known:
            raise UnknownOptionError(unknown_option(mcts_search, name, known))
    if iterations is None and time_limit is None:
        raise InvalidArgumentError("mcts_search needs a limit: give iterations, time_limit, or both")
    iterations = None if iterations is None else validation.count(iterations, "iterations")
    state, answer = to_chess_and_answer(root_state, "root_state")
    search = Hybrid(
        policy_network=policy_network,
        num_simulations=iterations,
        mate_search_depth=mate_search_depth,
        time_limit=time_limit,
        priority=priority,
        **settings,
    )
    if state.is_terminal or not state.legal_actions():
        return None
    return answer(search.run(state).action)
