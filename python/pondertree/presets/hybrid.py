"""Hybrid: a tree search of chess that leans on classical knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pondertree import check
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.protocol import as_evaluator
from pondertree.game import GameInfo
from pondertree.knowledge import (
    CATEGORY_WEIGHTS,
    MATE_BUDGET,
    MAX_MATE_DEPTH,
    Knowledge,
    knowledge_of,
    root_budget,
    root_depth,
)
from pondertree.presets.alphazero import tagged_number
from pondertree.rules import Puct
from pondertree.search import Search, Shared
from pondertree.settings import Settings

if TYPE_CHECKING:
    from pondertree.chess.move_scores import MoveScores

PRIORITIES = ("strict", "tactical", "prior", None)


class Hybrid(Search):
    """Chess by PUCT with mates first, PeSTO's values and moves by kind (seed 4).

    At every new position, in this order: the end of the game, repetition, with `endings` the tables of a king and a
    queen, rook or pawn against a king, a search for a mate by checks (`mate_search_depth` moves and
    `mate_search_budget` positions, where the king is in danger), and the evaluation; tables and mates are exact, and
    nothing below them is looked at. The root is searched for mates at full width; one that is found is played at once,
    and so is the shortest mate of a table. A leaf is worth what `evaluator` says: by default `Pesto()`, with
    `quiescence` after the captures; or any other evaluator, or a `policy_network` of seed 4's form,
    `evaluate(state) -> ({move: prior}, value in [0, 1])`.

    Moves are told apart by kind (`MoveCategory`), exchanges within `see_threshold` centipawns being even. `priority`
    says what that is for: "strict" tries every move once, kind after kind, before any is scored; "tactical" does so
    with those that promise something, and then scores all; "prior" multiplies priors by `category_weights`, one for
    each kind, and by what `move_scores` say of each move; None does without. An edge scores
    `Q + exploration_constant * P * sqrt(N) / (1 + n)`; a move never tried is worth `fpu`, as in AlphaZero.

    `move_scores` are a `MoveScores`, "learned" or None; "auto" is "learned" with a `Pesto`, and None with an evaluator
    or a network outside the engine, which may have its own opinion of moves.
    """

    default_simulations = 1000
    default_temperature = 0.0

    def __init__(
        self,
        evaluator: Any = None,
        policy_network: Any = None,
        num_simulations: int | Sequence[int] | None = None,
        mate_search_depth: int = 3,
        exploration_constant: float = 1.5,
        priority: str | None = "prior",
        see_threshold: int = 0,
        quiescence: bool = True,
        *,
        fpu: float | tuple[str, float] = ("parent", 0.0),
        category_weights: Sequence[float] | None = None,
        move_scores: MoveScores | str | None = "auto",
        mate_search_budget: int = MATE_BUDGET,
        endings: bool = True,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(num_simulations, **shared)
        if evaluator is not None and policy_network is not None:
            raise InvalidArgumentError("evaluator and policy_network both value positions: give one of them")
        if evaluator is not None:
            if type(evaluator).__module__ == "pondertree.chess.policy":
                raise InvalidArgumentError(
                    f"{type(evaluator).__name__} is a policy network: give it as policy_network, not as evaluator"
                )
            evaluator = as_evaluator(evaluator)
        if policy_network is not None and (
            isinstance(policy_network, type) or not callable(getattr(policy_network, "evaluate", None))
        ):
            given = f"the class {policy_network.__name__}" if isinstance(policy_network, type) else ""
            raise InvalidArgumentError(
                f"policy_network is {given or type(policy_network).__name__}: it must be an object with "
                "evaluate(state) -> ({move: prior}, value from 0 to 1)"
            )
        self.evaluator = evaluator
        self.policy_network = policy_network
        self.mate_search_depth = check.whole_number(mate_search_depth, "mate_search_depth", most=MAX_MATE_DEPTH)
        self.exploration_constant = check.number(exploration_constant, "exploration_constant", least=0.0)
        if not check.is_one_of(priority, PRIORITIES):
            raise InvalidArgumentError(
                f'priority must be "strict", "tactical", "prior" or None, not {check.shown(priority)}'
            )
        self.priority = priority
        self.mate_search_budget = check.whole_number(mate_search_budget, "mate_search_budget", least=1, most=10**9)
        self.endings = check.flag(endings, "endings")
        self.see_threshold = check.whole_number(see_threshold, "see_threshold", most=20_000)
        self.quiescence = check.flag(quiescence, "quiescence")
        weights = CATEGORY_WEIGHTS if category_weights is None else category_weights
        if not check.is_listed(weights) or len(weights) != len(CATEGORY_WEIGHTS):
            raise InvalidArgumentError(
                f"category_weights must be {len(CATEGORY_WEIGHTS)} numbers, not {check.shown(weights)}"
            )
        self.category_weights = tuple(
            check.positive_number(weight, f"category_weights[{place}]") for place, weight in enumerate(weights)
        )
        self.move_scores = read_move_scores(move_scores)
        self.fpu = fpu
        self._fpu_parent, self._fpu = tagged_number(fpu, "fpu", "parent")

    def settings(self, info: GameInfo) -> Settings:
        """PUCT with knowledge; PeSTO's values inside the engine."""
        if not (info.compiled and info.name == "chess"):
            raise InvalidArgumentError(
                f"Hybrid searches chess alone, not {info.name}: give it a pondertree.games.Chess or a chess.Board"
            )
        from pondertree.chess.move_scores import MoveScores
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
        inside = knowledge_of(evaluator, info)
        scores = self.move_scores
        if scores == "auto":
            # Whoever values positions outside the engine may have its own opinion of moves.
            scores = None if inside is None else MoveScores()
        return Settings(
            score=Puct(self.exploration_constant, self._fpu, self._fpu_parent),
            leaf="outside" if inside is None else "classical",
            evaluator=evaluator if inside is None else None,
            knowledge=Knowledge(
                pesto=Pesto().compiled if inside is None else inside.pesto,
                quiescence=values_after_captures,
                endings=self.endings,
                mate_depth=self.mate_search_depth,
                mate_budget=self.mate_search_budget,
                root_depth=root_depth(self.mate_search_depth),
                root_budget=root_budget(self.num_simulations, self.time_limit),
                see_threshold=self.see_threshold,
                priority=self.priority,
                weights=self.category_weights,
                move_scores=None if scores is None else scores.compiled,
            ),
            **self.shared(),
        )

    def __repr__(self) -> str:
        by = self.evaluator if self.policy_network is None else self.policy_network
        return (
            f"Hybrid({check.shown(by)}, {self.limit}, mate_search_depth={self.mate_search_depth}, "
            f"priority={check.shown(self.priority)}, seed={self.seed})"
        )


def read_move_scores(given: Any) -> Any:
    """Scores of moves, given as such, by name or not at all; "auto" is for the evaluator to decide."""
    from pondertree.chess.move_scores import MoveScores

    if isinstance(given, MoveScores) or check.is_one_of(given, (None, "auto")):
        return given
    if check.is_one_of(given, ("learned",)):
        return MoveScores()
    raise InvalidArgumentError(f'move_scores must be a MoveScores, "learned", "auto" or None, not {check.shown(given)}')
