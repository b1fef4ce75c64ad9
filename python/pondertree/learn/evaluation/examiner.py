"""Evaluation on the way: matches without noise, against reference opponents and earlier players, and moves against
exact play."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.schema import Config
from pondertree.learn.data.checkpoint import Counters
from pondertree.learn.data.run_folder import RunFolder
from pondertree.learn.evaluation.arena import ArenaGame, bare_policy, count_pairs, play_episodes, play_games, searching
from pondertree.learn.evaluation.exact_play import Exam, exam_of
from pondertree.learn.evaluation.games_file import EvaluationGame, games_bytes, games_path
from pondertree.learn.evaluation.ladder import climb, first_rung, opponents_of, reference, uncalibrated
from pondertree.learn.evaluation.ratings import Interval, games_of, interval, score_of
from pondertree.learn.self_play.searches import searches_of
from pondertree.learn.trainer.algorithms import variant_of
from pondertree.networks.weights_file import player_bytes, read_player
from pondertree.search.base import Search

#: The seed of openings and searches is this and the training's, never that of self-play.
SEED = 7_000_000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation found."""

    name: str
    """The player, by its steps."""
    matches: dict[str, list[int]]
    """By opponent: pairs of games that brought 0, 1/2, 1, 3/2 and 2 points."""
    references: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """The same of reference opponents that met each other for the first time."""
    rating: Interval | None = None
    """Elo above the weakest reference opponent, fitted jointly to all games of the training's evaluations."""
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
            "references": self.references,
            "elo": None if self.rating is None else round(self.rating.elo, 1),
            "elo_error": None if self.rating is None else round(self.rating.error, 1),
            "elo_low": None if self.rating is None else round(self.rating.low, 1),
            "elo_high": None if self.rating is None else round(self.rating.high, 1),
            **self.exact,
            **self.returns,
        }

    def __str__(self) -> str:
        parts = [f"{score_of(counts):.0%} against {other}" for other, counts in self.matches.items()]
        if self.rating is not None:
            parts.append(f"Elo {self.rating}")
        parts += [f"{name.replace('_', ' ')} {share:.1%}" for name, share in self.exact.items()]
        parts += [f"{name.replace('_', ' ')} {number:.3g}" for name, number in self.returns.items()]
        return f"{self.name}: {', '.join(parts)}"


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
        self._opponents = opponents_of(config)

    def examine(self, player: Any, counters: Counters) -> Evaluation | None:
        """Plays its matches; None where there is nothing to be evaluated by."""
        config = self._config.evaluation
        name = f"step {counters.step}"
        if any(line["kind"] == "evaluation" and line["name"] == name for line in self._lines):
            return None
        evaluator = self._variant.asked(player)
        search = self._searching(evaluator)
        matches: dict[str, list[int]] = {}
        references: dict[str, dict[str, list[int]]] = {}
        games: list[EvaluationGame] = []
        if config.games and self._spec.info.is_plain:

            def meet(other: str, opponent: Search | None = None) -> float:
                found = self._play(search, opponent or reference(other, self._config))
                games.extend(EvaluationGame(other, game) for game in found)
                matches[other] = count_pairs(found)
                return score_of(matches[other])

            references = self._meet_references(meet)
            earlier = self._earlier()
            if earlier is not None:
                before, network = earlier
                meet(before, self._searching(self._variant.asked(network.to(evaluator.device))))
        exact = self._exact(search, evaluator)
        returns = self._returns(search)
        if not matches and not exact and not returns:
            return None
        about = self._spec.about(counters.step, counters.games)
        self._folder.write(f"players/step-{counters.step:09d}.safetensors", player_bytes(player, about))
        if games:
            self._folder.write(games_path(counters.step), games_bytes(games))
        return Evaluation(name, matches, references, self._rated(name, matches, references), exact, returns)

    def _meet_references(self, meet: Callable[[str], float]) -> dict[str, dict[str, list[int]]]:
        """Meets fixed opponents, or the ladder; counts of the matches between opponents that have not met before."""
        names, config = self._opponents, self._config.evaluation
        if config.uct_simulations is not None:
            for name in names:
                meet(name)
            return {}
        if not names:
            return {}
        met = climb(names, first_rung(names, self._lines), config.ladder_score, meet)
        return {
            above: {below: count_pairs(self._play(reference(above, self._config), reference(below, self._config)))}
            for above, below in uncalibrated(names, met, self._lines)
        }

    def _play(self, one: Search, other: Search) -> list[ArenaGame]:
        """A match between two searches, with the same openings in every evaluation."""
        return play_games(
            searching(one),
            searching(other),
            self._spec.factory,
            self._spec.info.name,
            self._config.evaluation.games // 2,
            SEED + self._config.seed,
        )

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

    def _rated(
        self, name: str, matches: dict[str, list[int]], references: dict[str, dict[str, list[int]]]
    ) -> Interval | None:
        """Elo above the weakest opponent, from all games so far."""
        if not matches or not self._opponents:
            return None
        now = {"kind": "evaluation", "name": name, "matches": matches, "references": references}
        return interval(games_of([*self._lines, now]), self._opponents[0], name)

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
            "policy_keeps_value": round(self._exam.share(bare_policy(evaluator)), 4),
        }


class Examined(NamedTuple):
    """What an evaluation found, and when the player was taken."""

    evaluation: Evaluation | None
    counters: Counters


class Examining:
    """At most one evaluation at a time."""

    def __init__(self, examiner: Examiner, *, beside: bool) -> None:
        """`beside` lets the training go on meanwhile: games that wait for one answer at a time leave a device idle."""
        self._examiner = examiner
        self._worker = ThreadPoolExecutor(1, "evaluation") if beside else None
        self._pending: Future[Examined] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an evaluation has begun and was not yet asked for."""
        return self._pending is not None

    def begin(self, player: Any, counters: Counters, elapsed: float) -> None:
        """Begins an evaluation of a player, which nobody changes from now on."""
        then = replace(counters, elapsed=elapsed)

        def examine() -> Examined:
            return Examined(self._examiner.examine(player, then), then)

        self._pending = _done(examine) if self._worker is None else self._worker.submit(examine)

    def finished(self, *, wait: bool) -> Examined | None:
        """What the evaluation has found, if it is over, or once it is; what went wrong in it goes wrong here."""
        if self._pending is None or not (wait or self._pending.done()):
            return None
        pending, self._pending = self._pending, None
        return pending.result()

    def close(self) -> None:
        """Waits for what is under way, and forgets it."""
        self._pending = None
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)


def _done(work: Callable[[], Examined]) -> Future[Examined]:
    future: Future[Examined] = Future()
    future.set_result(work())
    return future
