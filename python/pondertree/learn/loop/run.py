"""`train`: a complete run, from a configuration to a player."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pondertree._core import usable_cpus
from pondertree.errors import InvalidArgumentError, PondertreeError, TrainingError
from pondertree.learn.actors import ActorSetup, RemoteEvaluation, setup_for
from pondertree.learn.config import Config, game_spec
from pondertree.learn.data import GameRecord, RunFolder
from pondertree.learn.evaluation import AsyncEvaluation, Metrics, PlayerEvaluator, check_opponents, opponents_of
from pondertree.learn.executors import EVALUATION, Executor, InProcessExecutor, Pool, executor_named
from pondertree.learn.loop.actor_learner import run_concurrently, run_synchronously
from pondertree.learn.loop.session import Limits, Session
from pondertree.learn.loop.signals import remembered_interrupts
from pondertree.learn.report import Status, Watcher
from pondertree.learn.trainer import check_memory, choose_device
from pondertree.validation import shown

#: Seconds between measurements of actors in the metrics.
ACTOR_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The result of a run."""

    out: Path
    """The run folder, for `pondertree.load`."""
    steps: int
    games: int
    positions: int
    elapsed: float
    """Seconds of training over all sessions."""
    evaluations: list[dict[str, Any]]
    """Metrics of the evaluations, in order."""
    finished: bool
    """Whether a limit was reached; False if interrupted."""


def train(
    config: Config,
    *,
    resume: bool = False,
    factory: Callable[[], Any] | None = None,
    watcher: Watcher | None = None,
    tensorboard: bool = False,
    executor: Executor | str | None = None,
) -> TrainingResult:
    """Trains by self-play until a limit of `config` is reached; everything is written to the folder `config.out`.

    `resume` continues the run in that folder. `factory` gives the starting states of a game in Python that
    `config.game` cannot import. Ctrl-C saves and ends; a kill at any instant loses no stored game.

    `executor` runs self-play and evaluations in other processes: `ProcessExecutor(actors=4)` on this machine,
    `RayExecutor(address="auto", actors=4)` on a Ray cluster, or "processes" or "ray" for their defaults. Each actor has
    `self_play.games_at_once` games. A run may be resumed with another executor and number of actors.
    """
    if not isinstance(config, Config):
        raise InvalidArgumentError(
            f"config must be a Config, such as default_config('connect4') gives, not {shown(config)}"
        )
    if not config.out:
        raise InvalidArgumentError("out must be the run folder")
    if config.minutes is None and config.games is None and config.steps is None:
        raise InvalidArgumentError("minutes, games or steps must be given: a run needs a limit")
    spec = game_spec(config.game, factory, model=config.learns_model)
    if config.learns_model and spec.info.has_rewards and not config.muzero.support:
        raise InvalidArgumentError(
            f"muzero.support must be above 0 for {spec.name}: rewards may exceed [-1, 1] (30 represents up to 1,000)"
        )
    if spec.info.is_two_player_zero_sum:
        check_opponents(opponents_of(config), spec.info)
    device = choose_device(config.device)
    chosen = executor_named(executor)
    config = config.with_values(game=spec.name, device=str(device))
    if config.self_play.workers == 0:
        config = config.with_values(self_play={"workers": usable_cpus() if device.type == "cpu" else 1})
    check_memory(spec, config, device)
    watcher = Watcher() if watcher is None else watcher
    concurrent = config.side_by_side
    if concurrent is None:
        concurrent = device.type == "cuda" or (chosen is not None and chosen.is_remote)
    if chosen is None:
        chosen = InProcessExecutor()
    if isinstance(chosen, InProcessExecutor) and chosen.threaded is None:
        chosen = replace(chosen, threaded=concurrent)
    with RunFolder(config.out) as folder, folder.explained_errors(), ExitStack() as stack:
        resumed = folder.begin(config, resume)
        session = Session(config, spec, device, folder)
        stack.callback(session.journal.close)
        if chosen.opening:
            watcher.note(chosen.opening)
        pool = stack.enter_context(chosen.open(folder.scratch))
        session.begin(chosen, pool, factory, resume=resumed, exact=not concurrent)
        folder.write_header(config)
        if resume and not resumed:
            session.notes.append(f"there is no run to resume in {config.out!r}: starting anew")
        evaluation_pool = stack.enter_context(chosen.open(folder.scratch)) if chosen.is_remote else None
        training = TrainingRun(session, folder, watcher, resumed, tensorboard, concurrent)
        stack.callback(training.close)
        if evaluation_pool is not None:
            setup = ActorSetup(config, factory, str(device), paths=tuple(sys.path))
            training.evaluate_remotely(chosen, evaluation_pool, setup_for(chosen, setup, EVALUATION))
        return training.run(run_concurrently if concurrent else run_synchronously)


class TrainingRun:
    """A run in its folder: metrics, checkpoints, evaluations and progress around the rounds."""

    def __init__(
        self, session: Session, folder: RunFolder, watcher: Watcher, resumed: bool, tensorboard: bool, concurrent: bool
    ) -> None:
        self._session = session
        self._config = session.config
        self._folder = folder
        self._watcher = watcher
        # Minutes are those of self-play: not of processes that start, or of a cluster without room.
        self._limits = Limits(
            self._config, session.counters, lambda: session.actors.ready_at, session.scheduled_elapsed
        )
        last = session.counters.round if resumed else None
        self._metrics = Metrics(folder.metrics, last, tensorboard=tensorboard)
        evaluator = PlayerEvaluator(session.spec, self._config, folder, self._metrics.lines)
        self._async_evaluation: AsyncEvaluation | RemoteEvaluation = AsyncEvaluation(evaluator, concurrent=concurrent)
        self._measured_at = 0.0
        self._saved_at = self._evaluated_at = self._reported_at = time.monotonic()
        self._since = (session.counters.games, session.counters.positions)
        self._losses: dict[str, float] = {}

    def evaluate_remotely(self, executor: Executor, pool: Pool, setup: ActorSetup) -> None:
        """Evaluates players in an actor of `pool` from now on."""
        self._async_evaluation.close()
        self._async_evaluation = RemoteEvaluation(
            executor, pool, setup, self._folder, self._metrics.lines, lambda text: self._session.report(text)
        )

    def run(self, rounds: Callable[..., None]) -> TrainingResult:
        """Runs to a limit or an interruption, and saves."""
        finished = True
        with self._watcher:
            for note in self._session.notes:
                self._watcher.note(note)
            self._session.report = _warn if type(self._watcher) is Watcher else self._watcher.note
            if self._limits.reached:
                self._watcher.note("the limit of this run is already reached: raise it to continue")
            try:
                with remembered_interrupts() as self._session.check_interrupts:
                    rounds(self._session, self._limits, self._after_round)
            except KeyboardInterrupt:
                finished = False
                self._watcher.note("interrupted: saving")
            except TrainingError as error:
                if error is self._session.actors.failure and self._session.counters.games:
                    # The learner is intact. An error of saving would hide this one.
                    self._session.pause_self_play = nullcontext
                    with suppress(PondertreeError, OSError):
                        self._save()
                raise
            self._session.pause_self_play = nullcontext
            if self._session.is_remote:
                self._measure_actors()
            self._save()
            if finished:
                # The last evaluation may need the CPUs of the actors.
                self._session.actors.end_self_play()
                self._report_evaluation(wait=True)
                self._begin_evaluation()
                self._report_evaluation(wait=True)
        counters = self._session.counters
        evaluations = [line for line in self._metrics.lines if line["kind"] == "evaluation"]
        return TrainingResult(
            self._folder.path,
            counters.step,
            counters.games,
            counters.positions,
            counters.elapsed,
            evaluations,
            finished,
        )

    def close(self) -> None:
        """Ends evaluations and closes the files."""
        self._async_evaluation.close()
        self._metrics.close()

    def _after_round(self, games: list[GameRecord], losses: dict[str, torch.Tensor]) -> None:
        numbers = self._losses = self._session.learner.checked_losses(losses)
        self._session.counters.elapsed = self._limits.elapsed
        self._metrics.add(self._round_line(games, numbers))
        now = time.monotonic()
        if self._session.is_remote and now - self._measured_at >= ACTOR_SECONDS:
            self._measure_actors()
        if now - self._saved_at >= 60.0 * self._config.checkpoint_minutes:
            self._save()
        every = 60.0 * self._config.evaluation.every_minutes
        self._report_evaluation(wait=False)
        if every and now - self._evaluated_at >= every and not (self._limits.reached or self._async_evaluation.is_busy):
            self._begin_evaluation()
            self._report_evaluation(wait=False)
        self._watcher.show(self._status())

    def _round_line(self, games: list[GameRecord], losses: dict[str, float]) -> dict[str, Any]:
        counters, now = self._session.counters, time.monotonic()
        passed = max(now - self._reported_at, 1e-9)
        line: dict[str, Any] = {
            "kind": "round",
            "round": counters.round,
            "step": counters.step,
            "games": counters.games,
            "positions": counters.positions,
            "elapsed": round(counters.elapsed, 3),
            "games_per_second": round((counters.games - self._since[0]) / passed, 2),
            "positions_per_second": round((counters.positions - self._since[1]) / passed, 1),
            **{name: round(number, 5) for name, number in losses.items()},
        }
        self._reported_at, self._since = now, (counters.games, counters.positions)
        if games:
            line["game_length"] = round(float(np.mean([len(game.opening) + len(game.moves) for game in games])), 2)
            first = "mean_return" if self._session.spec.info.has_rewards else "first_player"
            line[first] = round(float(np.mean([game.returns[0] for game in games])), 4)
            line["cut"] = sum(game.cut for game in games)
            line["resigned"] = sum(game.resigned for game in games)
            line["resigned_wrongly"] = round(self._session.actors.false_positive_rate, 4)
        return line

    def _measure_actors(self) -> None:
        """Adds a line with measurements of each actor."""
        counters = self._session.counters
        line = {"kind": "actors", "round": counters.round, "step": counters.step}
        measured = self._session.actors.measurements(counters.step)
        self._metrics.add(
            {
                **line,
                "elapsed": round(self._limits.elapsed, 3),
                "actors": measured,
                "evaluation_pid": self._async_evaluation.pid,
            }
        )
        self._measured_at = time.monotonic()

    def _save(self) -> None:
        self._session.counters.elapsed = self._limits.elapsed
        self._session.save()
        self._saved_at = time.monotonic()

    def _begin_evaluation(self) -> None:
        counters = self._session.counters
        player = self._session.averaged_player()
        errors = self._session.prediction_errors(player)
        if errors:
            line = {"kind": "model", "round": counters.round, "step": counters.step}
            self._metrics.add({**line, "elapsed": round(self._limits.elapsed, 3), "by_depth": errors})
        self._async_evaluation.begin(player, counters, self._limits.elapsed)
        self._evaluated_at = time.monotonic()

    def _report_evaluation(self, *, wait: bool) -> None:
        completed = self._async_evaluation.finished(wait=wait)
        if completed is not None and completed.evaluation is not None:
            counters = completed.counters
            self._metrics.add(completed.evaluation.as_line(counters.round, counters.step, counters.elapsed))
            self._watcher.note(str(completed.evaluation))
            self._watcher.show(self._status())

    def _status(self) -> Status:
        def last(kind: str) -> dict[str, Any]:
            return next((line for line in reversed(self._metrics.lines) if line["kind"] == kind), {})

        return Status(
            self._session.counters,
            last("round"),
            self._losses,
            last("evaluation"),
            self._limits.progress,
            self._limits.seconds_left,
            self._session.spec.info.has_rewards,
            self._session.actors.measurements(self._session.counters.step) if self._session.is_remote else {},
            self._async_evaluation.pid,
        )


def _warn(text: str) -> None:
    """Reports a message as a warning, the default without a watcher."""
    warnings.warn(text, stacklevel=2)
