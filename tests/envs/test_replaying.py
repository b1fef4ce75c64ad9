"""Recorded episodes, their replays, and methods that share one instance between searches."""

from __future__ import annotations

import copy
import random
import threading
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from tests.support import hidden_randomness as hidden  # noqa: E402 (after the packages it needs)

from pondertree.envs import from_gymnasium, record  # noqa: E402
from pondertree.envs.copying import Copier  # noqa: E402
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError  # noqa: E402


def recorded(kind: Any) -> Any:
    env = record(kind(), make=kind)
    env.reset(seed=5)
    return env


def test_wrapper_outside_the_record_is_refused() -> None:
    env = gymnasium.wrappers.TimeLimit(record(hidden.Walk()), 6)
    env.reset(seed=1)
    with pytest.raises(InvalidArgumentError, match=r"TimeLimit is outside .*record the outermost wrapper"):
        from_gymnasium(env)


class Slow(hidden.Registered):
    """Episodes of 30 steps."""

    def noise(self) -> float:
        return super().noise() / 1000


class Raising(hidden.Registered):
    """Moves, and then raises once in the second step if it is told to."""

    fault: BaseException | None = None

    def step(self, action: int) -> Any:
        answer = super().step(action)
        if Raising.fault is not None and self.steps == 2:  # not while the way there is replayed
            fault, Raising.fault = Raising.fault, None
            raise fault
        return answer


@pytest.mark.parametrize("fault", [RuntimeError("halfway"), KeyboardInterrupt()])
def test_replay_goes_on_after_a_step_that_raised_halfway(fault: BaseException) -> None:
    state = from_gymnasium(recorded(Raising), seed=1).play(1)
    assert state.snapshot_method == "replay"
    expected = state.play(1).observation().tolist()
    Raising.fault = fault
    with pytest.raises((GameContractError, KeyboardInterrupt)):
        state.play(1)
    assert state.play(1).observation().tolist() == expected


def test_recorder_keeps_copies_of_actions_options_and_results() -> None:
    class Echo(hidden.Grid):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.array = np.zeros(2, np.float32)
            return super().reset(seed=seed)

        def seen(self) -> Any:
            self.array[:] = self.place, self.steps
            return self.array

    env = record(Echo())
    action, options = np.array([1, 6]), {"goal": [1]}
    env.reset(seed=1, options=options)
    env.step(action)
    action[:], options["goal"][0] = 0, 2
    env.unwrapped.array[:] = 9
    episode = env.pondertree_recorder.episode
    assert (episode.actions[0].tolist(), episode.arguments["options"]) == ([1, 6], {"goal": [1]})
    assert episode.last[0].tolist() == [1, 1]


def test_replays_leave_global_generators_alone() -> None:
    class Seeding(hidden.Registered):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            random.seed(seed)
            np.random.seed(seed)
            return super().reset(seed=seed)

    env = recorded(Seeding)
    before = random.getstate(), np.random.get_state()[1].tolist()
    state = from_gymnasium(env, seed=1)
    for _ in range(6):  # more than the instances that wait
        state.play(1).play(0)
        state.play(0).play(1)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_copies_share_the_record_and_do_not_write_to_it() -> None:
    env = recorded(hidden.Walk)
    env.step(1)
    copied = Copier().copy(env)
    copied.step(1)
    copied.reset(seed=7)
    assert copied.pondertree_recorder is env.pondertree_recorder
    assert (env.pondertree_recorder.episode.actions, env.pondertree_recorder.episode.arguments) == ([1], {"seed": 5})
    copy.deepcopy(env).step(1)
    assert env.pondertree_recorder.episode.actions == [1]


def given_state() -> Any:
    pair = (
        lambda env: (env.unwrapped.place, env.unwrapped.steps),
        lambda env, token: vars(env.unwrapped).update(place=token[0], steps=token[1]),
    )
    env = hidden.LyingCopy()
    env.reset(seed=1)
    return from_gymnasium(env, snapshot=pair)


@pytest.mark.parametrize("make", [given_state, lambda: from_gymnasium(recorded(Slow), seed=1)])
def test_interleaved_lines_in_place_do_not_disturb_each_other(make: Any) -> None:
    state = make()
    expected = [state, state]
    lines = [state.in_place(), state.in_place()]
    for _ in range(5):
        for index in (0, 1):
            lines[index] = lines[index].play(index)
            expected[index] = expected[index].play(index)
    assert [each.returns() for each in lines] == [each.returns() for each in expected]
    old = lines[0]
    old.play(1)
    with pytest.raises(UsageError, match="plays once"):
        old.play(1)


@pytest.mark.parametrize("make", [given_state, lambda: from_gymnasium(recorded(Slow), seed=1)])
def test_threads_share_one_instance(make: Any) -> None:
    root = make()

    def line(action: int) -> list[Any]:
        state, seen = root, []
        for _ in range(8):
            state = state.play(action)
            seen.append(state.rewards())
        return seen

    expected = {action: line(action) for action in (0, 1)}
    wrong: list[int] = []

    def work(action: int) -> None:
        for _ in range(40):
            if line(action) != expected[action]:
                wrong.append(action)

    threads = [threading.Thread(target=work, args=(index % 2,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
