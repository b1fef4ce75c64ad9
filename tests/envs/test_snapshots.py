"""The method by which environments are copied, its probe, and the randomness it finds."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from tests.support import hidden_randomness as hidden  # noqa: E402 (after the packages it needs)

from pondertree.envs import from_gymnasium, record  # noqa: E402
from pondertree.envs.copying import Copier  # noqa: E402
from pondertree.envs.probe import same  # noqa: E402
from pondertree.envs.randomness import fingerprint, own_generators, shared_generators  # noqa: E402
from pondertree.errors import GameContractError, SnapshotError  # noqa: E402


def started(kind: Any, actions: int = 3, *, recorded: bool = False) -> Any:
    env = record(kind(), make=kind) if recorded else kind()
    env.reset(seed=5)
    for _ in range(actions):
        env.step(1)
    return env


def line(state: Any, actions: list[int]) -> list[Any]:
    """The observations and rewards of a line; at chance nodes the outcome is the number of the step modulo 4."""
    seen = []
    for index, action in enumerate(actions):
        state = state.play(action)
        if state.to_play == -1:
            state = state.play(index % 4)
        seen.append((state.observation().tolist(), state.rewards(), state.is_terminal))
        if state.is_terminal:
            break
    return seen


@pytest.mark.parametrize(
    ("kind", "is_random"),
    [
        (hidden.Walk, False),
        (hidden.LyingCopy, False),
        (hidden.OwnNoise, True),
        (hidden.SpaceNoise, True),
        (hidden.ClosureNoise, True),
        (hidden.NestedNoise, True),
        (hidden.MethodNoise, True),
        (hidden.ModuleNoise, True),
        (hidden.ClassNoise, True),
        (hidden.GlobalNoise, True),
        (hidden.PythonNoise, True),
        (hidden.LyingNoise, True),
    ],
)
def test_copy_is_faithful_and_randomness_is_found(kind: Any, is_random: bool) -> None:
    env = started(kind)
    generators = [*own_generators(env), *shared_generators(env)]
    before = fingerprint(generators), env.place, env.steps
    state = from_gymnasium(env, seed=1)
    assert (state.snapshot_method, state.is_random) == ("copy", is_random)
    assert state.snapshot_cost > 0
    actions = [1, 0, 1, 1, 0, 0, 1, 1, 1, 1]
    first = line(state, actions)
    assert first == line(state, actions)  # states are values
    assert first[0][0][1] == 4.0  # the steps of the environment itself go on
    assert (fingerprint(generators), env.place, env.steps) == before
    other = line(from_gymnasium(env, seed=2), actions)
    assert (first != other) == is_random  # the seed draws other samples


@pytest.mark.parametrize("kind", [hidden.OwnNoise, hidden.SpaceNoise])
def test_generator_that_does_not_exist_yet_is_seeded(kind: Any) -> None:
    """Gymnasium creates generators at their first use, from the operating system's entropy."""
    env = kind()
    env.reset()
    states = [from_gymnasium(env, seed=1) for _ in range(2)]
    assert states[0].is_random
    actions = [1, 0, 1, 1]
    assert line(states[0], actions) == line(states[1], actions)
    assert own_generators(env) == []


@pytest.mark.parametrize("kind", [hidden.OwnNoise, hidden.ClosureNoise, hidden.GlobalNoise, hidden.LyingNoise])
def test_samples_are_independent_of_the_environments_own_numbers(kind: Any) -> None:
    env = started(kind)
    state = from_gymnasium(env, seed=1)
    sampled = {state.play(1).play(outcome).rewards()[0] for outcome in range(16)}
    _, reward, *_ = env.step(1)
    assert len(sampled) == 16
    assert reward not in sampled  # a copy of the generator would know it


def test_foresight_is_what_a_copied_generator_gives() -> None:
    """The test above can fail: this copy knows the next reward."""
    env = started(hidden.OwnNoise)
    _, known, *_ = Copier().copy(env).step(1)
    _, reward, *_ = env.step(1)
    assert reward == known


@pytest.mark.parametrize("kind", [hidden.SystemNoise, hidden.Registered])
def test_environment_without_faithful_copies_is_refused_with_advice(kind: Any) -> None:
    with pytest.raises(SnapshotError, match=r"cannot be copied for a search \(copy: .*snapshot=\(save") as caught:
        from_gymnasium(started(kind))
    assert set(caught.value.reasons) == {"copy", "replay"}
    assert "record(env)" in str(caught.value)


def test_environment_that_a_copy_changed_is_refused_at_once() -> None:
    env = started(hidden.ClassList)
    with pytest.raises(
        SnapshotError, match=r"ClassList shares its state with its copies.*changed it: reset it"
    ) as caught:
        from_gymnasium(env)
    assert set(caught.value.reasons) == {"copy"}  # no further method is tried


def test_recorded_environment_is_replayed() -> None:
    env = started(hidden.Registered, 1, recorded=True)
    state = from_gymnasium(env, seed=1)
    assert state.snapshot_method == "replay"
    for action in (0, 0, 1):
        state = state.play(action)
        assert same(env.step(action)[0], state.observation())
    with pytest.raises(SnapshotError, match="replay: the recorded episode replayed gave"):
        from_gymnasium(started(hidden.SystemNoise, recorded=True))


def test_record_gives_a_seed_to_a_reset_without_one() -> None:
    env = record(hidden.OwnNoise())
    env.reset()
    first = [env.step(1)[0].tolist() for _ in range(3)]
    again = hidden.OwnNoise()
    again.reset(seed=env.pondertree_recorder.episode.arguments["seed"])
    assert first == [again.step(1)[0].tolist() for _ in range(3)]


def test_recorded_randomness_is_sampled_in_replays() -> None:
    class Unique(hidden.OwnNoise):
        """Cannot be copied."""

        def __init__(self) -> None:
            self.handle = open("/dev/null")  # noqa: SIM115

        def __del__(self) -> None:
            self.handle.close()

    env = record(Unique(), make=Unique)
    env.reset(seed=5)
    state = from_gymnasium(env, seed=1)
    assert (state.snapshot_method, state.is_random) == ("replay", True)
    deep = state
    for step in range(6):
        deep = deep.play(1).play(step)
    assert line(deep, [1, 0, 1]) == line(deep, [1, 0, 1])
    _, reward, *_ = env.step(1)
    assert reward not in {state.play(1).play(outcome).rewards()[0] for outcome in range(16)}


def test_replayed_states_share_their_prefixes() -> None:
    """A step of a search costs one step of the environment where a waiting environment is near."""
    steps = [0]

    class Counted(hidden.Registered):
        def step(self, action: int) -> Any:
            steps[0] += 1
            return super().step(action)

        def noise(self) -> float:
            return super().noise() / 1000

    env = record(Counted(), make=Counted)
    env.reset(seed=5)
    state = from_gymnasium(env, seed=1)
    assert state.snapshot_method == "replay"
    steps[0] = 0
    deep = state
    for _ in range(10):
        deep = deep.play(0)
    assert steps[0] == 10  # the same environment goes on
    steps[0] = 0
    siblings = [deep.play(action) for action in (0, 1, 0, 1)]
    assert steps[0] <= 4 * 11
    assert [each.returns() for each in siblings[:2]] == [each.returns() for each in siblings[2:]]
    assert siblings[0]._token.parent is deep._token is siblings[1]._token.parent  # an object per state


def test_copies_leave_the_record_out() -> None:
    env = record(hidden.Walk())
    env.reset(seed=1)
    env.step(1)
    copied = Copier().copy(env)
    assert copied.pondertree_recorder is env.pondertree_recorder
    assert copied.step(1)[0].tolist() == [2, 2]
    assert env.pondertree_recorder.episode.actions == [1]


def test_environment_that_draws_pictures_is_copied_without_its_window() -> None:
    pytest.importorskip("pygame")
    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    env.reset(seed=1)
    env.render()
    assert env.unwrapped.screen is not None
    state = from_gymnasium(env)
    assert state.snapshot_method == "copy"
    assert (state._token.unwrapped.screen, state._token.unwrapped.render_mode) == (None, None)
    state.play(1).play(0)


def test_given_pair_is_used_and_wrappers_are_restored() -> None:
    env = gymnasium.wrappers.TimeLimit(hidden.LyingCopy(), 6)
    env.reset(seed=1)
    env.step(1)
    pair = (
        lambda env: (env.unwrapped.place, env.unwrapped.steps),
        lambda env, token: vars(env.unwrapped).update(place=token[0], steps=token[1]),
    )
    state = from_gymnasium(env, snapshot=pair)
    assert state.snapshot_method == "given"
    for _ in range(5):
        assert not state.is_terminal
        state = state.play(0)
    assert (state.is_terminal, state.truncated, env._elapsed_steps) == (True, True, 1)


def test_wrong_pair_is_refused() -> None:
    pair = (lambda env: env.unwrapped.place, lambda env, token: None)
    with pytest.raises(SnapshotError, match="given: a copy and its original differ"):
        from_gymnasium(started(hidden.LyingCopy), snapshot=pair)


def test_late_randomness_is_an_error_and_not_foresight() -> None:
    env = hidden.LateNoise()
    env.reset(seed=1)
    state = from_gymnasium(env)
    assert not state.is_random
    with pytest.raises(GameContractError, match=r"LateNoise\.step\(1\) drew a random number, .*random=True"):
        line(state, [1] * 12)
    assert len(line(from_gymnasium(env, random=True), [1] * 9)) == 9


def test_deepcopy_of_an_environment_with_ezpickle_is_a_fresh_one() -> None:
    """The reason for the copier."""
    env = started(hidden.LyingCopy)
    assert (copy.deepcopy(env).place, Copier().copy(env).place) == (0.0, 3.0)


def test_copies_share_nothing_mutable() -> None:
    def counter() -> Any:
        count = [0]

        def add() -> int:
            count[0] += 1
            return count[0]

        return add

    class Holder:
        __slots__ = ("add", "array", "method", "parts", "ring")

    held = Holder()
    held.add, held.array = counter(), np.array([[1], [2]], dtype=object)
    held.parts = {"a": [1, {2}], "b": (3, [4])}
    held.ring = [held]
    generator = random.Random(3)
    held.parts["draw"] = generator.random  # type: ignore[assignment]
    held.method = held.parts["a"].append
    held.array[0, 0] = [5]
    new = Copier().copy(held)
    generator.seed(4)
    assert new.parts.pop("draw")() == random.Random(3).random()
    held.add()
    held.parts["a"][1].add(9)
    held.parts["b"][1].append(9)
    held.array[0, 0].append(9)
    assert (new.add(), new.parts, new.array.tolist()) == (1, {"a": [1, {2}], "b": (3, [4])}, [[[5]], [2]])
    assert new.ring[0] is new


def test_global_generators_keep_their_states() -> None:
    for kind in (hidden.GlobalNoise, hidden.PythonNoise):
        env = started(kind)
        before = random.getstate(), np.random.get_state()[1].tolist()
        line(from_gymnasium(env, seed=1), [1, 0, 1])
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before
