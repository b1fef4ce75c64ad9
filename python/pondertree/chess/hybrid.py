"""`Hybrid`: PUCT for chess with mate search, endgame tables, classical evaluation and move categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, fields
from datetime import timedelta
from typing import Any

from pondertree import validation
from pondertree.chess.config import (
    CATEGORY_WEIGHTS,
    MATE_BUDGET,
    MAX_MATE_DEPTH,
    ChessConfig,
    root_budget,
    root_depth,
)
from pondertree.chess.move_ordering import MoveScores
from pondertree.chess.pesto import Pesto
from pondertree.chess.policy import PestoPolicy, PolicyEvaluator, is_evaluator
from pondertree.config import Puct, SearchConfig, bounded_int, one_of, option, option_of
from pondertree.errors import InvalidArgumentError, UnknownOptionError
from pondertree.evaluators.dispatch import as_evaluator
from pondertree.evaluators.protocol import compiled_leaf
from pondertree.game import GameInfo
from pondertree.games.chess_interop import adapt_chess_state
from pondertree.search.base import Search
from pondertree.search.preset import preset, simulations, unknown_option

PRIORITIES = ("strict", "tactical", "prior", None)


def read_move_scores(given: Any, name: str = "move_scores") -> Any:
    """Validates the option `move_scores`; "auto" is resolved by `Hybrid.settings`."""
    if isinstance(given, MoveScores) or validation.is_one_of(given, (None, "auto")):
        return given
    if validation.is_one_of(given, ("learned",)):
        return MoveScores()
    raise InvalidArgumentError(f'{name} must be a MoveScores, "learned", "auto" or None, not {validation.shown(given)}')


def _evaluator(given: Any, name: str) -> Any:
    if isinstance(given, (PestoPolicy, PolicyEvaluator)):
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
    """PUCT for chess with mate search, classical evaluation and move categories (the hybrid chess specification).

    Order of checks at every new node: end of the game, repetition, with `endings` the endgame tables (king and queen,
    rook or pawn against king), a checks-only mate search (`mate_search_depth` moves and `mate_search_budget` nodes,
    where the king is in danger), evaluation. Table results and mates are exact and end the node. The root gets a
    full-width mate search; a mate found by it or by a table is played at once, the shortest one. Leaves are valued by
    `evaluator` (default `Pesto()`, with `quiescence` after a quiescence search), or by a `policy_network` with the
    specification's interface, `evaluate(state) -> ({move: prior}, value in [0, 1])`.

    Moves have categories (`MoveCategory`); captures with |SEE| within `see_threshold` centipawns are even. `priority`:
    "strict" tries every move once, in category order, before PUCT applies; "tactical" does so with tactical moves only;
    "prior" multiplies priors by `category_weights` and by the factors of `move_scores`; None ignores categories. PUCT
    is `Q + exploration_constant * P * sqrt(N) / (1 + n)`; unvisited moves have the value `fpu`, as in AlphaZero.

    `move_scores` is a `MoveScores`, "learned" or None; "auto" is "learned" with a `Pesto`, and None with an evaluator
    outside the engine, which may have its own priors.
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
            raise InvalidArgumentError("evaluator and policy_network exclude each other: give one of them")
        if is_evaluator(self.policy_network):
            self.evaluator, self.policy_network = self.policy_network, None
        super().__post_init__()

    def config(self, info: GameInfo) -> SearchConfig:
        """Returns PUCT with a `ChessConfig`; a `Pesto` is evaluated inside the engine."""
        if not (info.compiled and info.name == "chess"):
            raise InvalidArgumentError(
                f"Hybrid searches only chess, not {info.name}: give it a pondertree.games.Chess or a chess.Board"
            )
        evaluator: Any = Pesto() if self.evaluator is None else self.evaluator
        if type(self.policy_network) is PestoPolicy:
            evaluator = self.policy_network.pesto
            uses_quiescence = self.policy_network.quiescence
        elif self.policy_network is not None:
            evaluator, uses_quiescence = PolicyEvaluator(self.policy_network), False
        else:
            uses_quiescence = self.quiescence and getattr(evaluator, "quiescence", True)
        compiled = compiled_leaf(evaluator, info)
        scores: Any = self.move_scores
        if scores == "auto":
            # An evaluator outside the engine may have its own priors.
            scores = None if compiled is None else MoveScores()
        return SearchConfig(
            rule=Puct(self.exploration_constant, self.fpu),
            options=self.snapshot(),
            leaf="external" if compiled is None else "static",
            evaluator=evaluator if compiled is None else None,
            analysis=ChessConfig(
                pesto=Pesto().compiled if compiled is None else compiled.pesto,
                quiescence=uses_quiescence,
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
    """Returns the move to play: an action, or a `chess.Move` for a board or a `ChessGame`; None without legal moves.

    Needs at least one limit: `iterations` (simulations) or `time_limit` (seconds, or a `timedelta`); the first reached
    ends the search. `policy_network` has the specification's interface, or is an evaluator such as `ChessNN`.

    `priority` defaults to the specification's "strict" here and in `pondertree.reference.hybrid`; `Hybrid` has "prior".
    Further settings are those of `Hybrid`.
    """
    known = ["iterations", *(each.name for each in fields(Hybrid) if each.name != "num_simulations")]
    for name in settings:
        if name not in known:
            raise UnknownOptionError(unknown_option(mcts_search, name, known))
    if iterations is None and time_limit is None:
        raise InvalidArgumentError("mcts_search needs a limit: give iterations, time_limit, or both")
    iterations = None if iterations is None else validation.count(iterations, "iterations")
    state, answer = adapt_chess_state(root_state, "root_state")
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
