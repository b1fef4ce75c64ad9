"""Evaluation on the way: matches without noise, against UCT and earlier players, and moves against exact play."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pondertree.learn.arena import play_episodes, play_pairs, searching
from pondertree.learn.config import Config
from pondertree.learn.exact import Exam, exam_of
from pondertree.learn.game_spec import GameSpec
from pondertree.learn.player_file import player_bytes, read_player
from pondertree.learn.ratings import Games, rate
from pondertree.learn.run_folder import RunFolder
from pondertree.learn.searches import searches_of
from pondertree.learn.session import Counters
from pondertree.learn.variants import variant_of
from pondertree.match.elo import scores_of
from pondertree.presets import UCT
from pondertree.search import Search

#: The seed of openings and searches is this and the training's, never that of self-play.
SEED = 7_000_000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation found."""

    name: str
    """The player, by its steps."""
    matches: dict[str, list[int]]
    """By opponent: pairs of games that brought 0, 1/2, 1, 3/2 and 2 points."""
    elo: float | None = None
    """Above the weakest UCT."""
    elo_error: float | None = None
    exact: dict[str, float] = field(default_factory=dict)
    """Shares of moves that keep the game's value, with a search and by the bare policy."""
    returns: dict[str, float] = field(default_factory=dict)
    """The mean, least and most that episodes brought, where there are rewards."""

    def as_line(self, round_number: int, step: int, elapsed: float) -> dict[str, Any]:
        """A line of metrics."""
        return {
            "kind": "evaluation",
            "round": round_number,
            "step": step,
            "elapsed": round(elapsed, 3),
            "name": self.name,
            "matches": self.matches,
            "scores": {other: round(score_of(counts), 4) for other, counts in self.matches.items()},
            "elo": self.elo,
            "elo_error": self.elo_error,
            **self.exact,
            **self.returns,
        }

    def __str__(self) -> str:
        parts = [f"{score_of(counts):.0%} against {other}" for other, counts in self.matches.items()]
        if self.elo is not None:
            parts.append(f"Elo {self.elo:+.0f} ± {self.elo_error:.0f}")
        parts += [f"{name.replace('_', ' ')} {share:.1%}" for name, share in self.exact.items()]
        parts += [f"{name.replace('_', ' ')} {number:.3g}" for name, number in self.returns.items()]
        return f"{self.name}: {', '.join(parts)}"


def score_of(counts: list[int]) -> float:
    """The share of points."""
    return sum(count * score for count, score in zip(counts, scores_of(counts), strict=True)) / max(sum(counts), 1)


class Examiner:
    """Evaluates players of one training, one after another."""

    def __init__(self, spec: GameSpec, config: Config, folder: RunFolder, lines: list[dict[str, Any]]) -> None:
        """`lines` are the metrics so far: earlier evaluations count in the ratings."""
        self._spec = spec
        self._config = config
        self._folder = folder
        self._lines = lines
        self._variant = variant_of(config)
        self._exam: Exam | None = None

    def examine(self, player: Any, counters: Counters) -> Evaluation | None:
        """Plays its matches; None where there is nothing to be evaluated by."""
        config = self._config.evaluation
        name = f"step {counters.step}"
        if any(line["kind"] == "evaluation" and line["name"] == name for line in self._lines):
            return None
        evaluator = self._variant.asked(player)
        search = self._searching(evaluator)
        matches: dict[str, list[int]] = {}
        two_players = self._spec.info.is_plain
        if config.games and two_players:
            opponents: dict[str, Search] = {
                f"UCT {budget}": UCT(budget, seed=self._config.seed, solve=config.solve)
                for budget in config.uct_simulations
            }
            earlier = self._earlier()
            if earlier is not None:
                before, network = earlier
                opponents[before] = self._searching(self._variant.asked(network.to(evaluator.device)))
            seed = SEED + self._config.seed
            for other, opponent in opponents.items():
                matches[other] = play_pairs(
                    searching(search),
                    searching(opponent),
                    self._spec.factory,
                    self._spec.info.name,
                    config.games // 2,
                    seed,
                )
        exact = self._exact(search, evaluator)
        returns = self._returns(search)
        if not matches and not exact and not returns:
            return None
        about = self._spec.about(counters.step, counters.games)
        self._folder.write(f"players/step-{counters.step:09d}.safetensors", player_bytes(player, about))
        elo, error = self._rated(name, matches)
        return Evaluation(name, matches, elo, error, exact, returns)

    def _searching(self, evaluator: Any) -> Search:
        """The search that a player plays with: that of its algorithm, without chance."""
        config = self._config.evaluation
        return searches_of(self._config).to_play(self._config, evaluator, config.simulations, config.solve)

    def _earlier(self) -> tuple[str, Any] | None:
        """The player of the evaluation before."""
        names = [line["name"] for line in self._lines if line["kind"] == "evaluation"]
        for name in reversed(names):
            path = self._folder.players / f"step-{int(name.partition(' ')[2]):09d}.safetensors"
            if path.exists():
                return name, read_player(path)[0]
        return None

    def _rated(self, name: str, matches: dict[str, list[int]]) -> tuple[float | None, float | None]:
        budgets = self._config.evaluation.uct_simulations
        if not matches or not budgets:
            return None, None
        games = [
            Games(line["name"], other, 2.0 * sum(counts) * score_of(counts), 2 * sum(counts))
            for line in [*self._lines, {"kind": "evaluation", "name": name, "matches": matches}]
            if line["kind"] == "evaluation"
            for other, counts in line["matches"].items()
        ]
        rating = rate(games, f"UCT {min(budgets)}")[name]
        return round(rating.elo, 1), round(rating.error, 1)

    def _returns(self, search: Search) -> dict[str, float]:
        """What episodes with fixed seeds bring."""
        count = self._config.evaluation.games
        if not count or not self._spec.info.has_rewards:
            return {}
        found = play_episodes(searching(search), self._spec.start, count, SEED + self._config.seed)
        told = {"mean_return": sum(found) / count, "least_return": min(found), "most_return": max(found)}
        return {name: round(number, 4) for name, number in told.items()}

    def _exact(self, search: Search, evaluator: Any) -> dict[str, float]:
        count = self._config.evaluation.positions
        if self._exam is None and count:
            self._exam = exam_of(self._spec, count)
        if self._exam is None:
            return {}
        return {
            "keeps_value": round(self._exam.share(searching(search)), 4),
            "policy_keeps_value": round(self._exam.share(self._variant.bare_policy(evaluator)), 4),
        }
