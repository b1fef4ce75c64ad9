"""Generators that no library knows are found or refused: a copy that repeats their numbers would know the future."""

from __future__ import annotations

import importlib.util
import random
import weakref
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from tests.support import hidden_generators as hidden  # noqa: E402 (after the packages it needs)

from pondertree.envs import from_gymnasium  # noqa: E402
from pondertree.envs.copying import Copier, listed_generators  # noqa: E402
from pondertree.envs.probe import same  # noqa: E402
from pondertree.envs.randomness import fingerprint, own_generators, watched_generators  # noqa: E402
from pondertree.errors import GameContractError, SnapshotError  # noqa: E402


def started(kind: Any) -> Any:
    env = kind()
    env.reset(seed=5)
    return env


@pytest.mark.parametrize(
    ("kind", "attribute"),
    [
        (hidden.LcgNoise, "number changes irregularly"),
        (hidden.VisibleLcgNoise, "number changes irregularly"),
        (hidden.KeyNoise, "key depends on the seed"),
        (hidden.BytesNoise, r"parts\['chain'\]\[0\] changes irregularly"),
    ],
)
def test_hand_written_generator_is_refused_by_name(kind: Any, attribute: str) -> None:
    with pytest.raises(SnapshotError, match=f"{attribute}.*random=False"):
        from_gymnasium(started(kind))


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
def test_key_of_jax_is_refused() -> None:
    with pytest.raises(SnapshotError, match="key changes irregularly"):
        from_gymnasium(started(hidden.JaxNoise))


def test_generator_of_torch_is_reseeded() -> None:
    pytest.importorskip("torch")
    env = started(hidden.TorchNoise)
    before = fingerprint([env.generator])
    state = from_gymnasium(env, seed=1)
    assert state.is_random
    sampled = [state.play(1).play(outcome).rewards()[0] for outcome in range(16)]
    assert sampled == [state.play(1).play(outcome).rewards()[0] for outcome in range(16)]
    assert len(set(sampled)) == 16
    assert fingerprint([env.generator]) == before
    assert env.step(1)[1] not in sampled


@pytest.mark.parametrize("kind", [hidden.HiddenLayout, hidden.Board])
def test_layouts_and_boards_are_no_generators(kind: Any) -> None:
    assert not from_gymnasium(started(kind)).is_random


def test_hidden_layout_like_a_key_is_accepted_on_demand() -> None:
    state = from_gymnasium(started(hidden.HiddenKeyLayout), random=False)
    env = started(hidden.HiddenKeyLayout)
    assert state.play(1).rewards()[0] == env.step(1)[1]


def test_every_copied_generator_is_listed() -> None:
    class Part:
        __slots__ = ("__generator", "__weakref__")

        def __init__(self) -> None:
            self.__generator = np.random.default_rng(3)

    class Own:
        def __init__(self) -> None:
            self.generator = random.Random(2)

        def __deepcopy__(self, memo: Any) -> Any:
            return Own()

    class Holder:
        pass

    held: Any = Holder()
    held.part, held.own = Part(), Own()
    held.reference = weakref.ref(held.part)
    held.list = [np.random.RandomState(1)]
    copied = Copier().copy(held)
    listed = listed_generators(copied)
    assert listed is not None
    assert len(listed) == 3
    assert {id(each) for each in listed} == {id(each) for each in own_generators(copied)}
    again = listed_generators(Copier().copy(copied))
    assert again is not None
    assert len(again) == 3
    assert not {id(each) for each in listed} & {id(each) for each in again}


def test_generator_in_a_private_slot_is_reseeded() -> None:
    state = from_gymnasium(started(hidden.PrivateSlotNoise), seed=1)
    assert state.is_random
    assert len({state.play(1).play(outcome).rewards()[0] for outcome in range(8)}) == 8


def test_generators_of_two_live_copies_are_reseeded_apart() -> None:
    copier = Copier()
    env = started(hidden.PrivateSlotNoise)
    one, other = copier.copy(env), copier.copy(env)
    lists = listed_generators(one), listed_generators(other)
    for copied, listed in zip((one, other), lists, strict=True):
        assert {id(each) for each in own_generators(copied)} == {id(each) for each in listed or ()}


def test_late_draw_from_a_shared_generator_is_an_error_and_is_undone() -> None:
    env = started(hidden.LateGlobalNoise)
    state = from_gymnasium(env)
    assert not state.is_random
    for _ in range(9):
        state = state.play(1)
    before = np.random.get_state()[1].tolist()
    with pytest.raises(GameContractError, match="drew a random number"):
        state.play(1)
    assert np.random.get_state()[1].tolist() == before


def test_global_generators_are_watched_only_where_code_names_them() -> None:
    generators = [random._inst, np.random.mtrand._rand]  # type: ignore[attr-defined]
    assert watched_generators(gymnasium.make("CartPole-v1"), generators) == []
    assert watched_generators(hidden.Walk(), generators) == generators


def test_one_array_updated_in_place_is_copied() -> None:
    state = from_gymnasium(started(hidden.OneArray))
    assert [state.play(action).observation().tolist() for action in (0, 1)] == [[-1, 1], [1, 1]]


def test_equal_text_is_not_equal_values() -> None:
    class Shown:
        def __init__(self, number: int) -> None:
            self.number = number

        def __repr__(self) -> str:
            return "shown"

    assert same(Shown(1), Shown(1))
    assert not same(Shown(1), Shown(2))
    assert same(float("nan"), float("nan"))
