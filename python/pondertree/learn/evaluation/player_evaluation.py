"""Evaluation of a player: deterministic matches against anchor opponents and its predecessor, and exact play."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from pondertree.errors import StorageError
from pondertree.files import naming
from pondertree.learn.config import Config, GameSpec
from pondertree.learn.data import Counters
from pondertree.learn.evaluation.arena import (
    REFERENCE_PLAYERS,
    ArenaGame,
    BatchPlayer,
    EvaluationGame,
    bare_policy,
    count_pairs,
    games_bytes,
    games_path,
    play_episodes,
    play_games,
    search_player,
)
from pondertree.learn.evaluation.exact_play import KeptPosition, known_positions, share_of_kept_values
from pondertree.learn.evaluation.ladder import first_opponent, opponents_of, play_ladder, reference_search, uncalibrated
from pondertree.learn.evaluation.ratings import Interval, games_of, interval, mean_interval, mean_score
from pondertree.learn.self_play import searches_of
from pondertree.learn.trainer import algorithm_of
from pondertree.networks import player_bytes, player_of_bytes
from pondertree.search.base import Search

#: Offset of the random seed of openings and searches, distinct from self-play's.
SEED = 7_000_000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an evaluation."""

    name: str
    """Name of the player: its number of optimiser steps."""
    matches: dict[str, list[int]]
    """By opponent: numbers of game pairs with 0, 1/2, 1, 3/2 and 2 points."""
    references: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """The same for calibration matches between anchor opponents."""
    rating: Interval | None = None
    """Elo above the weakest anchor opponent, fitted jointly to all games of the run's evaluations."""
    exact: dict[str, float] = field(default_factory=dict)
    """Fractions of moves that preserve the game value, with a search and by the bare policy."""
    returns: dict[str, float] = field(default_factory=dict)
    """Mean with 95 % interval, minimum and maximum return of episodes, where there are rewards; means of random and of
    greedy play in episodes of the same seeds."""

    def as_line(self, round_number: int, step: int, elapsed: float) -> dict[str, Any]:
        """Returns the evaluation as a line of metrics."""
        return {
            "kind": "evaluation",
            "round": round_number,
            "step": step,
            "elapsed": round(elapsed, 3),
            "name": self.name,
            "matches": self.matches,
            "scores": {other: round(mean_score(counts), 4) for other, counts in self.matches.items()},
            "references": self.references,
            "elo": None if self.rating is None else round(self.rating.elo, 1),
            "elo_error": None if self.rating is None else round(self.rating.error, 1),
            "elo_low": None if self.rating is None else round(self.rating.low, 1),
            "elo_high": None if self.rating is None else round(self.rating.high, 1),
            **self.exact,
            **self.returns,
        }

    def __str__(self) -> str:
        parts = [f"{mean_score(counts):.0%} against {other}" for other, counts in self.matches.items()]
        if self.rating is not None:
            parts.append(f"Elo {self.rating}")
        parts += [f"{name.replace('_', ' ')} {share:.1%}" for name, share in self.exact.items()]
        parts += [f"{name.replace('_', ' ')} {number:.3g}" for name, number in self.returns.items()]
        return f"{self.name}: {', '.join(parts)}"


class PlayerFiles(Protocol):
    """The files of the players in a run folder."""

    def read(self, name: str) -> bytes | None:
        """Returns the content of a file; None if it does not exist."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a file."""


def player_name(step: int) -> str:
    """Returns the name of an evaluated player's file in the run folder."""
    return f"players/step-{step:09d}.safetensors"


def earlier_player(files: PlayerFiles, lines: list[dict[str, Any]]) -> tuple[str, str, bytes] | None:
    """Returns (name, file name, content) of the previously evaluated player."""
    for evaluated in reversed([line["name"] for line in lines if line["kind"] == "evaluation"]):
        name = player_name(int(evaluated.partition(" ")[2]))
        if (content := files.read(name)) is not None:
            return evaluated, name, content
    return None


class PlayerEvaluator:
    """Evaluates the players of one run, one after another."""

    def __init__(self, spec: GameSpec, config: Config, folder: PlayerFiles, lines: list[dict[str, Any]]) -> None:
        """`lines` are the metrics so far: ratings include earlier evaluations."""
        self._spec = spec
        self._config = config
        self._folder = folder
        self._lines = lines
        self._algorithm = algorithm_of(config)
        self._positions: list[KeptPosition] | None = None
        self._opponents = opponents_of(config)
        self._references: dict[str, float] | None = None

    def evaluate(self, player: Any, counters: Counters) -> Evaluation | None:
        """Evaluates a player; None if it was evaluated before, or if there is nothing to measure."""
        config = self._config.evaluation
        name = f"step {counters.step}"
        if any(line["kind"] == "evaluation" and line["name"] == name for line in self._lines):
            return None
        evaluator = self._algorithm.evaluator(player)
        search = self._search(evaluator)
        matches: dict[str, list[int]] = {}
        references: dict[str, dict[str, list[int]]] = {}
        games: list[EvaluationGame] = []
        if config.games and self._spec.info.is_two_player_zero_sum:

            def play_opponent(other: str, opponent: Search | None = None) -> float:
                found = self._play(search, opponent or reference_search(other, self._config))
                games.extend(EvaluationGame(other, game) for game in found)
                matches[other] = count_pairs(found)
                return mean_score(matches[other])

            references = self._play_anchors(play_opponent)
            earlier = self._earlier()
            if earlier is not None:
                before, network = earlier
                play_opponent(before, self._search(self._algorithm.evaluator(network.to(evaluator.device))))
        exact = self._exact(search, evaluator)
        returns = self._returns(search)
        if not matches and not exact and not returns:
            return None
        about = self._spec.metadata(counters.step, counters.games)
        self._folder.write(player_name(counters.step), player_bytes(player, about))
        if games:
            self._folder.write(games_path(counters.step), games_bytes(games))
        return Evaluation(name, matches, references, self._rated(name, matches, references), exact, returns)

    def _play_anchors(self, play_opponent: Callable[[str], float]) -> dict[str, dict[str, list[int]]]:
        """Plays fixed opponents or the ladder; returns new calibration matches between anchors."""
        names, config = self._opponents, self._config.evaluation
        if config.uct_simulations is not None:
            for name in names:
                play_opponent(name)
            return {}
        if not names:
            return {}
        met = play_ladder(names, first_opponent(names, self._lines), config.ladder_score, play_opponent)
        return {
            above: {
                below: count_pairs(
                    self._play(reference_search(above, self._config), reference_search(below, self._config))
                )
            }
            for above, below in uncalibrated(names, met, self._lines)
        }

    def _play(self, one: Search, other: Search) -> list[ArenaGame]:
        """Plays a match between two searches, with the same openings in every evaluation."""
        return play_games(
            search_player(one),
            search_player(other),
            self._spec,
            self._config.evaluation.games // 2,
            SEED + self._config.seed,
        )

    def _search(self, evaluator: Any) -> Search:
        """Returns the algorithm's search for evaluations."""
        config, info = self._config.evaluation, self._spec.info
        search = searches_of(self._config).evaluation_search
        return search(self._config, info, evaluator, config.simulations, config.solve)

    def _earlier(self) -> tuple[str, Any] | None:
        """Returns (name, network) of the previously evaluated player."""
        found = earlier_player(self._folder, self._lines)
        if found is None:
            return None
        evaluated, name, content = found
        with naming(name, StorageError):
            return evaluated, player_of_bytes(content)[0]

    def _rated(
        self, name: str, matches: dict[str, list[int]], references: dict[str, dict[str, list[int]]]
    ) -> Interval | None:
        """Returns the Elo above the weakest opponent, from all games so far."""
        if not matches or not self._opponents:
            return None
        now = {"kind": "evaluation", "name": name, "matches": matches, "references": references}
        return interval(games_of([*self._lines, now]), self._opponents[0], name)

    def _returns(self, search: Search) -> dict[str, float]:
        """Returns statistics of episodes with fixed seeds, and the mean returns of the reference players."""
        count = self._config.evaluation.games
        if not count or not self._spec.info.has_rewards:
            return {}
        found = self._episodes(search_player(search))
        low, high = mean_interval(found)
        numbers = {"mean_return": sum(found) / count, "return_low": low, "return_high": high}
        numbers |= {"least_return": min(found), "most_return": max(found)}
        if self._references is None:
            # Environments cannot be copied, and a greedy player tries every move.
            players = {} if self._spec.is_environment else REFERENCE_PLAYERS
            self._references = {name: sum(self._episodes(player)) / count for name, player in players.items()}
        numbers |= {f"{name}_return": mean for name, mean in self._references.items()}
        return {name: round(number, 4) for name, number in numbers.items()}

    def _episodes(self, player: BatchPlayer) -> list[float]:
        return play_episodes(player, self._spec, self._config.evaluation.games, SEED + self._config.seed)

    def _exact(self, search: Search, evaluator: Any) -> dict[str, float]:
        if self._positions is None:
            self._positions = known_positions(self._spec, self._config.evaluation.positions)
        if not self._positions:
            return {}
        return {
            "keeps_value": round(share_of_kept_values(search_player(search), self._positions), 4),
            "policy_keeps_value": round(share_of_kept_values(bare_policy(evaluator), self._positions), 4),
        }


class CompletedEvaluation(NamedTuple):
    """An evaluation, and the counters when its player was taken."""

    evaluation: Evaluation | None
    counters: Counters


class AsyncEvaluation:
    """Runs at most one evaluation at a time."""

    pid: int | None = None
    """Its process; None: this one."""

    def __init__(self, evaluator: PlayerEvaluator, *, concurrent: bool) -> None:
        """`concurrent` runs evaluations in a worker thread: their small batches leave a GPU mostly idle."""
        self._evaluator = evaluator
        self._worker = ThreadPoolExecutor(1, "evaluation") if concurrent else None
        self._pending: Future[CompletedEvaluation] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an evaluation was started whose result has not been fetched."""
        return self._pending is not None

    def begin(self, player: Any, counters: Counters, elapsed: float) -> None:
        """Starts an evaluation; the player must not change from now on."""
        snapshot = replace(counters, elapsed=elapsed)

        def evaluate() -> CompletedEvaluation:
            return CompletedEvaluation(self._evaluator.evaluate(player, snapshot), snapshot)

        self._pending = _completed(evaluate) if self._worker is None else self._worker.submit(evaluate)

    def finished(self, *, wait: bool) -> CompletedEvaluation | None:
        """Returns the evaluation if it is done, or once it is with `wait`; re-raises its exception."""
        if self._pending is None or not (wait or self._pending.done()):
            return None
        pending, self._pending = self._pending, None
        return pending.result()

    def close(self) -> None:
        """Waits for a running evaluation and discards it."""
        self._pending = None
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)


def _completed(function: Callable[[], CompletedEvaluation]) -> Future[CompletedEvaluation]:
    future: Future[CompletedEvaluation] = Future()
    future.set_result(function())
    return future
