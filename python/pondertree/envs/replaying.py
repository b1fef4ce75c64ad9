"""Replay: an environment is brought to a state by the seed and the actions that lead to it.

A state is a node of a tree of actions, so that states share what they have in common; a few environments wait in
states of their own, and the one that is nearest continues.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from pondertree.envs.probe import Access, same
from pondertree.envs.randomness import global_generators, own_generators, preserved, reseed
from pondertree.envs.recording import Recorder, with_own_arrays
from pondertree.envs.snapshot_method import ProbeError, SnapshotMethod

#: Environments that wait in different states.
MAX_WAITING = 4


def fresh_instances(env: Any, make: Callable[[], Any] | None = None) -> Iterator[Any]:
    """Yields further environments of the same kind in any state, by every way there is to make one."""
    for way in [make] if make is not None else [lambda: _registered(env), lambda: copy.deepcopy(env)]:
        try:
            with preserved(global_generators()):
                instance = way()
        except Exception:
            continue
        if instance is not None:
            yield instance


def _registered(env: Any) -> Any:
    """Makes an environment by the specification of a registered one; None if it has none."""
    spec = getattr(env, "spec", None)
    if spec is None:
        return None
    import gymnasium

    spec = copy.copy(spec)
    spec.kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    return gymnasium.make(spec)


class Node:
    """A state: the one before it, the action, and the key of its random numbers."""

    __slots__ = ("action", "depth", "key", "parent")

    def __init__(self, parent: Node | None, action: Any, key: int | None) -> None:
        self.parent = parent
        self.action = action
        self.key = key
        self.depth: int = 0 if parent is None else parent.depth + 1


class Replay(SnapshotMethod):
    """Replays a recorded episode in instances of the environment."""

    method = "replay"
    is_exclusive = True

    def __init__(self, recorder: Recorder, instance: Any, access: Access) -> None:
        assert recorder.episode is not None, "the caller has checked it"
        self._arguments = dict(recorder.episode.arguments)
        self._past = list(recorder.episode.actions)
        self._last = recorder.episode.last
        self._step = access.step
        self._make = recorder.make
        self._root = Node(None, None, None)
        # Environments in the order of their use, with the node of the state that each is in; None for unknown states.
        self._waiting: list[tuple[Any, Node | None]] = [(instance, None)]

    def save(self, env: Any) -> Any:
        """Returns the node of an environment; that of the recorded one is the root."""
        return next((node for waiting, node in self._waiting if waiting is env), self._root)

    keep = save

    def restore(self, token: Any) -> Any:
        """Returns an environment that continues from the nearest state."""
        line: list[Node] = []
        node: Node | None = token
        places = {id(at): index for index, (_, at) in enumerate(self._waiting) if at is not None}
        while node is not None and id(node) not in places:
            line.append(node)
            node = node.parent
        if node is None:
            index = self._new()
            env = self._waiting.pop(index)[0]
            self._waiting.append((env, None))
            self._rewind(env)
            node = line.pop()
        else:
            env, at = self._waiting.pop(places[id(node)])
            self._waiting.append((env, at))
        for each in reversed(line):
            self._waiting[-1] = (env, None)
            self._perform(env, each)
        self._waiting[-1] = (env, token)
        return env

    def performed(self, env: Any, action: Any, key: int | None) -> None:
        """Moves an environment to the next node."""
        index = self._index(env)
        node = self._waiting[index][1]
        self._waiting[index] = (env, None if node is None else Node(node, action, key))

    def failed(self, env: Any) -> None:
        """Marks an environment whose step did not end: its state is unknown."""
        self._waiting[self._index(env)] = (env, None)

    def _index(self, env: Any) -> int:
        return next(index for index in reversed(range(len(self._waiting))) if self._waiting[index][0] is env)

    def forget(self) -> None:
        """Forgets the states of all environments."""
        self._waiting = [(env, None) for env, _ in self._waiting]

    def _new(self) -> int:
        """Returns the index of an environment to reset: a new one, or the one that was not used for longest."""
        if len(self._waiting) < MAX_WAITING and self._waiting[0][1] is not None:
            for instance in fresh_instances(self._waiting[0][0], self._make):
                self._waiting.insert(0, (instance, None))
                break
        return 0

    def _rewind(self, env: Any) -> None:
        """Brings an environment to the root."""
        with preserved(global_generators()):
            answer = env.reset(**copy.deepcopy(self._arguments))
        for action in self._past:
            answer = env.step(with_own_arrays(action))
        if not same(_comparable(answer), _comparable(self._last)):
            raise ProbeError(
                f"the recorded episode replayed gave {answer!r:.100} after {len(self._past)} actions, not "
                f"{self._last!r:.100}"
            )

    def _perform(self, env: Any, node: Node) -> None:
        if node.key is None:
            self._step(env, node.action)
            return
        reseed(own_generators(env), node.key)
        drawn = global_generators()
        with preserved(drawn):
            reseed(drawn, ~node.key)
            self._step(env, node.action)


def _comparable(answer: Any) -> Any:
    """Returns a result of `reset` or `step` without its `info`, which may hold times."""
    return answer[:-1] if isinstance(answer, tuple) and isinstance(answer[-1], dict) else answer
