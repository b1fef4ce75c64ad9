"""Cases of games with chance nodes, and of planning with rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from exact import HashGame, TableEvaluator, mix

from fingerprint_cases.case import Case, Cases, Options, named, run, traced
from fingerprint_cases.transcript import Transcript
from pondertree import UCT, AlphaZero, Gumbel, evaluators, games

#: The player to move at a chance node.
CHANCE = -1


@dataclass(frozen=True)
class ChanceGame(HashGame):
    """A hash game in which one ply of three is a chance node: two to five outcomes of unequal probabilities."""

    @property
    def to_play(self) -> int:
        """The player to move, or chance."""
        return CHANCE if mix(self.key ^ 55) % 3 == 0 and self.ply else self.ply % self.num_players

    def legal_actions(self) -> list[int]:
        """The legal actions, or the outcomes."""
        if self.to_play == CHANCE:
            return [outcome for outcome, _ in self.chance_outcomes()]
        return super().legal_actions()

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcomes with their probabilities."""
        weights = [1 + mix(self.key ^ outcome) % 7 for outcome in range(2 + self.key % 4)]
        return [(3 * outcome, weight / sum(weights)) for outcome, weight in enumerate(weights)]


class ChanceRewardGame(ChanceGame):
    """A game of chance with a reward for every move and outcome."""

    def rewards(self) -> list[float]:
        """Rewards of the move that led here, from -5 to 5."""
        return [mix(self.key ^ (100 + player)) % 9 / 0.8 - 5.0 for player in range(self.num_players)]


STARTS: dict[str, Callable[[], Any]] = {
    "pig": partial(games.Pig, 40),
    "backgammon": games.Backgammon,
    "2048": games.TwentyFortyEight,
    "chance": ChanceGame,
    "chance_three": partial(ChanceGame, num_players=3),
    "chance_rewards": partial(ChanceRewardGame, num_players=1),
}
REWARDS = ("2048", "chance_rewards")
#: Games of one player, whose returns have no bound.
PLANNING: Options = {"normalize": "tree", "discount": 0.875}
UCT_OPTIONS: tuple[Options, ...] = (
    {},
    {"chance": "sample"},
    {"chance_width": 4},
    {"in_flight": 4},
    {"in_flight": 16, "threads": 2},
    {"max_nodes": 100},
    {"max_depth": 4},
    {"solve": False},
)


def drawn(state: Any, draws: int) -> Any:
    """Returns the state after the outcomes of chance, up to a decision."""
    while not state.is_terminal and state.to_play == CHANCE:
        outcomes = state.chance_outcomes()
        state, draws = state.play(outcomes[mix(draws) % len(outcomes)][0]), draws + 1
    return state


def position(game: str, plies: int) -> Any:
    """Returns an unfinished decision after `plies` random moves."""
    state = drawn(STARTS[game](), plies)
    for ply in range(plies):
        legal = state.legal_actions()
        after = drawn(state.play(legal[mix(plies * 100 + ply) % len(legal)]), ply)
        if after.is_terminal:
            break
        state = after
    return state


def reused_over_outcomes(search: Callable[[], Any], root: Callable[[], Any], moves: int) -> Case:
    """A tree reused between moves, over the outcomes after them."""

    def case(transcript: Transcript) -> None:
        tree = search().tree(root())
        for move in range(moves):
            result = tree.simulate().result()
            transcript.result(result)
            after = result.root.state.play(result.action)
            end = drawn(after, move)
            if end.is_terminal:
                break
            tree.advance(result.action)
            draws = move
            while tree.waits_for_outcome():
                outcomes = tree.state.chance_outcomes()
                tree.advance(outcomes[mix(draws) % len(outcomes)][0])
                draws += 1
        transcript.result(tree.simulate(20).result())

    return case


def with_evaluator(preset: Callable[..., Any], kind: str, game: str, **options: Any) -> Any:
    """Returns a search with an evaluator of the game: uniform, or a table of values per player."""
    state = STARTS[game]()
    evaluator = (
        evaluators.Uniform()
        if kind == "uniform"
        else TableEvaluator(state.num_actions, num_values=1 if state.num_players < 3 else state.num_players)
    )
    return preset(evaluator=evaluator, **options)


def chance_cases() -> Cases:
    """Compiled and Python games."""
    for game in STARTS:
        has_rewards = game in REWARDS
        planning = (PLANNING, {**PLANNING, "backup": "max"}) if has_rewards else ()
        for options in (*UCT_OPTIONS, *planning):
            for plies in (0, 9):
                search = partial(UCT, 150, seed=31, **options)
                yield named(f"chance UCT {game} {plies}", options), run(search, partial(position, game, plies))
        scaled: Options = {"normalize": "tree"} if has_rewards else {}
        yield (
            f"chance reused UCT {game}",
            reused_over_outcomes(partial(UCT, 120, seed=32, **scaled), partial(position, game, 0), 5),
        )
        yield f"chance trace UCT {game}", traced(partial(UCT, 20, seed=33, trace=True), partial(position, game, 0))
        for kind in ("uniform", "table"):
            for options in ({}, {"in_flight": 8}, {"chance": "sample"}):
                limits: dict[str, Any] = {"num_simulations": 100, "seed": 34, **scaled, **options}
                search = partial(with_evaluator, AlphaZero, kind, game, **limits)
                yield named(f"chance AlphaZero {game} {kind}", options), run(search, partial(position, game, 3))
            search = partial(with_evaluator, Gumbel, kind, game, num_simulations=40, seed=35)
            yield f"chance Gumbel {game} {kind}", run(search, partial(position, game, 3))
