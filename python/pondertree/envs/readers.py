"""The present observation and mask of an environment, which its interface returns from `reset` and `step` alone.

Environments have a method or an attribute for it under some usual name. A candidate is used only if it gives, after
each of some random steps of a copy, what the step returned.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np

from pondertree.envs.methods import layers_of
from pondertree.envs.probe import PROBE, same
from pondertree.envs.snapshots import Snapshots
from pondertree.errors import InvalidArgumentError
from pondertree.random import Random, fold

#: Usual names of methods that return the present observation.
METHODS = ("_get_obs", "_get_ob", "get_obs", "_get_observation", "get_observation", "gen_obs", "_obs", "_observe")
#: Usual names of attributes that are the present observation.
ATTRIBUTES = ("state", "s", "_state", "observation", "obs", "last_obs")
#: Usual names of methods or attributes that are the present mask.
MASKS = ("action_mask", "action_masks", "get_action_mask", "valid_action_mask")
#: Steps after which a candidate is compared.
COMPARED_STEPS = 12

Reader = Callable[[Any], Any]


class Steps(Protocol):
    """How environments are stepped for a comparison."""

    def sample_action(self, env: Any, result: Any, random: Random) -> Any:
        """Returns an action for (environment, last result, random numbers); None at the end of an episode."""
        ...


def read_first(snapshots: Snapshots, token: Any, steps: Steps, name: str, *, needs_mask: bool) -> tuple[Any, Any]:
    """Returns the present (observation, mask), each None if it is unknown.

    Raises `InvalidArgumentError` if the environment gives masks and the present one is unknown.
    """
    layers = layers_of(snapshots.restore(token))
    observations = dict(enumerate(_observation_readers(layers)))
    masks = dict(enumerate(_mask_readers()))
    has_masks, result, env, seen = False, None, None, None
    random = Random(0, PROBE)
    for step in range(COMPARED_STEPS):
        action = None if env is None else steps.sample_action(env, result, random)
        if action is None:
            env, result = snapshots.restore(token), None
            action = steps.sample_action(env, result, random)
        try:
            result = snapshots.perform(env, action, fold(PROBE, step))
        except Exception:  # an action that is not allowed in the present state, whose mask is unknown
            env = None
            continue
        seen = copy.deepcopy(result[0])
        has_masks = has_masks or result[4] is not None
        for readers, expected in ((observations, seen), (masks, result[4])):
            for index, reader in list(readers.items()):
                if not _gives(reader, env, expected):
                    del readers[index]
    observation = next((_like(reader(snapshots.restore(token)), seen) for reader in observations.values()), None)
    if not has_masks or not needs_mask:
        return observation, None
    if not masks:
        raise InvalidArgumentError(
            f"{name} gives masks in info['action_mask'], and the present one is unknown, since an environment does not "
            "keep it: pass info=, or use env = pondertree.envs.record(env) before env.reset()"
        )
    return observation, next(reader(snapshots.restore(token)) for reader in masks.values())


def _like(value: Any, expected: Any) -> Any:
    """Returns a value in the type of arrays that steps return: some environments compute in another."""
    return np.asarray(value, expected.dtype) if isinstance(expected, np.ndarray) else value


def _gives(reader: Reader, env: Any, expected: Any) -> bool:
    try:
        return same(_like(reader(env), expected), expected)
    except Exception:
        return False


def _observation_readers(layers: list[Any]) -> Iterator[Reader]:
    """Yields readers of the inner environment's observation, as its wrappers convert it."""
    inner = layers[-1]
    for name in (*METHODS, *ATTRIBUTES):
        if hasattr(inner, name):
            yield partial(_observation, name)


def _observation(name: str, env: Any) -> Any:
    """Returns the observation of the inner environment under a name, converted by the wrappers."""
    observation = _value(name, env)
    for layer in reversed(layers_of(env)[:-1]):
        convert = getattr(type(layer), "observation", None)
        if callable(convert):
            observation = convert(layer, observation)
    return observation


def _mask_readers() -> Iterator[Reader]:
    yield lambda env: layers_of(env)[-1]._get_info()["action_mask"]
    for name in MASKS:
        yield partial(_value, name)
    yield lambda env: layers_of(env)[-1].action_mask(layers_of(env)[-1].s)


def _value(name: str, env: Any) -> Any:
    value = getattr(layers_of(env)[-1], name)
    return value() if callable(value) else value
