"""Evaluation in an actor of its own: strength is measured while self-play and optimisation continue."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pondertree.learn.actors.messages import ActorSetup, EvaluationReply, EvaluationRequest
from pondertree.learn.actors.self_play_actor import prepare_process
from pondertree.learn.config import game_spec
from pondertree.learn.data import Counters, RunFolder
from pondertree.learn.evaluation import CompletedEvaluation, PlayerEvaluator, earlier_player
from pondertree.learn.executors import Actor, Blob, Executor, Pool
from pondertree.networks import player_bytes, player_of_bytes

#: Attempts at an evaluation whose actor dies or raises.
MAX_ATTEMPTS = 3
#: Seconds after which an actor that has not started is reported.
START_TIMEOUT = 120.0


class FilesInMemory:
    """Files that are sent with a request, and those that an evaluation writes."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files
        self.written: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        """Returns the content of a given file; None if there is none."""
        return self._files.get(name)

    def write(self, name: str, content: bytes) -> None:
        """Keeps a file for the reply."""
        self.written[name] = content


class EvaluationActor:
    """Evaluates players."""

    def __init__(self, setup: ActorSetup) -> None:
        self._setup = setup
        self._spec = game_spec(setup.config.game, setup.factory, model=setup.config.learns_model)

    def evaluate(self, request: Blob) -> EvaluationReply:
        """Evaluates the player of an `EvaluationRequest`."""
        wanted: EvaluationRequest = request.get()
        files = FilesInMemory(wanted.earlier)
        player = player_of_bytes(wanted.player)[0].to(self._setup.device)
        evaluator = PlayerEvaluator(self._spec, self._setup.config, files, wanted.lines)
        return EvaluationReply(evaluator.evaluate(player, wanted.counters), files.written)


def make_evaluation_actor(setup: ActorSetup) -> EvaluationActor:
    """Makes the actor of another process."""
    prepare_process(setup)
    return EvaluationActor(setup)


class RemoteEvaluation:
    """Runs at most one evaluation at a time, in an actor; an evaluation that fails again and again is given up."""

    def __init__(
        self,
        executor: Executor,
        pool: Pool,
        setup: ActorSetup,
        folder: RunFolder,
        lines: list[dict[str, Any]],
        report: Callable[[str], None],
    ) -> None:
        self._executor = executor
        self._pool = pool
        self._setup = setup
        self._folder = folder
        self._lines = lines
        self._report = report
        self._actor: Actor | None = None
        self._counters: Counters | None = None
        self._request: Blob | None = None
        self._attempts = 0
        self._is_ready = False
        self._is_reported = False
        """Whether it was reported that the actor does not start."""
        self._began = 0.0
        """When the actor was ready or, before, launched."""

    @property
    def pid(self) -> int | None:
        """The process of the actor."""
        return None if self._actor is None else self._actor.pid

    @property
    def is_busy(self) -> bool:
        """Whether an evaluation was started whose result has not been fetched."""
        return self._counters is not None

    def begin(self, player: Any, counters: Counters, elapsed: float) -> None:
        """Starts an evaluation, if there is anything to measure."""
        config = self._setup.config.evaluation
        if not config.games and not config.positions:
            return
        self._counters = replace(counters, elapsed=elapsed)
        lines = [line for line in self._lines if line["kind"] == "evaluation"]
        earlier = earlier_player(self._folder, lines)
        content = player_bytes(player, {"game": self._setup.config.game, "step": counters.step})
        files = {} if earlier is None else {earlier[1]: earlier[2]}
        self._request = self._pool.put(EvaluationRequest(content, self._counters, lines, files))
        self._attempts = 0
        self._ask()

    def _ask(self) -> None:
        self._attempts += 1
        self._began = time.monotonic()
        if self._actor is None:
            self._is_ready = self._is_reported = False
            self._actor = self._pool.launch(make_evaluation_actor, self._setup)
        self._actor.call("evaluate", self._request)

    def finished(self, *, wait: bool) -> CompletedEvaluation | None:
        """Returns the evaluation if it is done, or once it is done or given up with `wait`."""
        while self._counters is not None:
            for reply in self._pool.poll(0.05 if wait else 0.0):
                if reply.actor is not self._actor:
                    continue
                if reply.kind == "ready":
                    self._is_ready, self._began = True, time.monotonic()
                elif reply.kind == "value":
                    return self._complete(reply.value)
                else:
                    self._fail(reply.value)
            if self._counters is not None:
                self._check_time(time.monotonic() - self._began)
            if not wait:
                break
        return None

    def _complete(self, reply: EvaluationReply) -> CompletedEvaluation:
        assert self._counters is not None
        for name, content in reply.files.items():
            self._folder.write(name, content)
        completed = CompletedEvaluation(reply.evaluation, self._counters)
        self._counters = self._request = None
        return completed

    def _check_time(self, passed: float) -> None:
        limit = self._executor.evaluation_timeout
        if not self._is_ready and passed > START_TIMEOUT and not self._is_reported:
            self._is_reported = True
            self._report(
                f"the evaluation actor has not started in {passed:.0f} s: "
                "is there a machine with the CPUs and GPUs that it needs?"
            )
        if passed > limit:
            if not self._is_ready:  # neither would another one start
                self._attempts = MAX_ATTEMPTS
            self._fail(f"it took longer than {limit:,.0f} s{'' if self._is_ready else ' to start'}")

    def _fail(self, reason: str) -> None:
        if self._actor is not None:
            self._actor.kill()
        self._actor = None
        if self._attempts < MAX_ATTEMPTS:
            self._report(f"the evaluation actor failed and is replaced: {reason}")
            self._ask()
            return
        self._report(f"the evaluation was given up after {MAX_ATTEMPTS} attempts: {reason}")
        self._counters = self._request = None

    def close(self) -> None:
        """Ends the actor, and drops a running evaluation."""
        self._counters = None
        self._pool.close()
