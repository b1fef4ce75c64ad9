"""Kinds of input for `fuzz_inputs.py`: games, evaluators and models that return invalid data, raise or mutate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from hostile import Call, Paid, Random, Row, Three, a_model, even, hostile, show

import pondertree
from pondertree import evaluators, models
from pondertree.errors import PondertreeError
from pondertree.games import ConnectFour, TicTacToe

# --- Games ---


ANSWERS: dict[str, list[Any]] = {
    "legal_actions": [[], [0, 0], [-1], [3], [0, 65536], [10**30], [1.0], ["0"], [None], [True, False], None, 3, "012"],
    "is_terminal": [None, 1, "no", [], np.array([True, False]), np.array(True), lambda: False],
    "returns": [
        [],
        [1.0],
        [1.0, 1.0],
        [2.0, -2.0],
        [float("nan")] * 2,
        [1e308, -1e308],
        ["x", "y"],
        None,
        0.5,
        [0] * 3,
    ],
    "rewards": [[], [1.0, 2.0], [1e308], [-1e308], [float("nan")], [float("inf")], ["x"], None, 1.0, [10**400], [1e12]],
    "to_play": [-1, 2, 3, 10**30, 0.0, "0", None, True, np.int64(1), np.array(1)],
    "play": [None, 5, "state", (), Row],
    "observation": [None, [], np.zeros(6), np.zeros((2, 3)), "x", np.full(6, np.nan, np.float32), [[1], [1, 2]], 1j],
    "num_actions": [0, -1, 1, 2, 10**30, 65536, 3.0, "3", None],
    "num_players": [0, -1, 1, 3, 256, "2", None, 2.0],
    "action_to_string": [None, 3, b"x", "\0"],
    "zero_sum": [None, 1, "yes", True, False],
    "simulateRandomPlayout": [None, float("nan"), 1e308, "x", [1.0], 5.0, 10**400],
}
PROPERTIES = ("is_terminal", "to_play", "num_actions", "num_players", "zero_sum")


def hostile_game(rng: Random) -> type[Row]:
    """A game with invalid methods: from a ply on, sometimes, or always."""
    base = rng.choice([Row, Row, Paid, Three])
    calls = [0]
    replaced: dict[str, Any] = {}
    optional = {"rewards", "observation", "action_to_string", "zero_sum", "simulateRandomPlayout"}
    for name in rng.sample(list(ANSWERS), rng.choice([1, 1, 2])):
        if name in optional and not hasattr(base, name) and rng.random() < 0.5:
            continue
        bad, when, raises = (
            rng.choice(ANSWERS[name]),
            rng.choice(["ply", "calls", "always"]),
            rng.random() < 0.2,
        )
        if rng.random() < 0.2:
            bad = hostile(rng)
        from_ply, every = rng.randrange(6), rng.randrange(2, 9)

        def answer(
            self: Any, *given: Any, name: Any = name, bad: Any = bad, when: Any = when, raises: Any = raises,
            from_ply: int = from_ply, every: int = every,
        ) -> Any:  # fmt: skip
            calls[0] += 1
            lies = {"ply": len(self.moves) >= from_ply, "calls": calls[0] % every == 0, "always": True}[when]
            if lies and raises:
                raise ZeroDivisionError("the game raised")
            if lies:
                return bad
            found = getattr(super(kind, self), name, 0.0)
            return found(*given) if callable(found) else found

        replaced[name] = property(answer) if name in PROPERTIES else answer
    if rng.random() < 0.1:
        # Mutates its argument.
        def change(self: Any, action: Any) -> Any:
            self.moves = Row.play(self, action).moves
            return self

        replaced["play"] = change
    kind = type("Hostile", (base,), replaced)
    return kind


def a_search(rng: Random, actions: int = 3) -> Any:
    """Returns a search with valid parameters."""
    shared: dict[str, Any] = {
        "seed": rng.randrange(9),
        "in_flight": rng.choice([1, 1, 4]),
        "threads": rng.choice([1, 2]),
        "solve": rng.random() < 0.7,
        "early_stop": rng.random() < 0.2,
    }
    kind = rng.randrange(6)
    if kind == 0:
        return pondertree.AlphaZero(even(actions), 30, **shared)
    if kind == 1:
        return pondertree.Gumbel(even(actions), 30, **shared)
    if kind == 2:
        return pondertree.UCT(30, evaluator=even(actions), max_depth=rng.choice([None, 0, 2]), **shared)
    if kind == 3:
        policy = rng.choice([None, "random", "decisive", lambda state: [1.0] * len(state.legal_actions())])
        return pondertree.UCT(30, playout_policy=policy, **shared)
    if kind == 4:
        return pondertree.UCT(30, minimax_depth=rng.choice([0, 3]), forced_depth=rng.choice([0, 3]), **shared)
    return rng.choice([pondertree.MuZero, pondertree.Gumbel])(model=a_model(actions), num_simulations=20, **shared)


def a_game(rng: Random) -> Call:
    """Searches a hostile game, then a valid one with the same search."""
    game, search, what = hostile_game(rng), a_search(rng), rng.randrange(6)

    def call() -> None:
        from pondertree.testing import check_game

        try:
            if what == 0:
                check_game(game, games=2)
            elif what == 1:
                pondertree.playout(game(), 0, rng.choice([None, 3]), seed=1)
            elif what == 2:
                forest = search.forest([game(), game()])
                for _ in range(3):
                    with contextlib.suppress(PondertreeError):
                        forest.simulate(8)
                    for result in forest.results():
                        show(result)
                forest.advance(0, forest.result(0).action)
                forest.simulate(8)
                forest.reset(1, game())
                forest.simulate(8)
            else:
                show(search.run(game()))
        finally:
            show(search.run(Row()))

    return call


# --- Evaluators and models ---


def bent(rng: Random, rows: Any) -> Any:
    """Returns an invalid variant of an output array."""
    array = np.array(rows, dtype=np.float64)
    bad = [float("nan"), float("inf"), -float("inf"), 1e300, -1e13, 2.0, 1e40]
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: array[:-1],
        lambda: np.concatenate([array, array]),
        lambda: array[..., None],
        lambda: array.reshape(-1),
        lambda: array.astype(complex),
        lambda: array.astype(object),
        lambda: array.astype(str),
        lambda: array.astype(np.float16),
        lambda: array.astype(bool),
        lambda: array.tolist(),
        lambda: np.where(np.arange(array.size).reshape(array.shape) % 2, array, rng.choice(bad)),
        lambda: np.full_like(array, rng.choice(bad)),
        lambda: (row for row in array),
        lambda: [list(np.atleast_1d(row))[: place % 2 + 1] for place, row in enumerate(array)],
        lambda: float(array.sum()),
        lambda: hostile(rng),
        lambda: np.ma.masked_array(array, mask=True),
        lambda: array.astype(">f8"),
        lambda: np.broadcast_to(array[:1], array.shape),
        lambda: array.astype(np.longdouble) * np.longdouble("1e400"),
        lambda: array[::-1],
    ]
    return rng.choice(changes)()


def raise_one(rng: Random) -> Any:
    """Raises one of the exceptions that an evaluator may raise."""
    raise rng.choice([ZeroDivisionError, KeyError, MemoryError, RecursionError, StopIteration, OSError, TypeError])("x")


class HostileEvaluator:
    """An evaluator with a random interface that fails from a call on, once or always."""

    def __init__(self, rng: Random, actions: int) -> None:
        self._chance, self._actions = rng, actions
        self._calls, self._from, self._once = 0, rng.randrange(1, 5), rng.random() < 0.4
        self._kept: list[Any] = []
        form = rng.choice(["evaluate", "evaluate_states", "evaluate_packed", "both"])
        if form in ("evaluate", "both", "evaluate_packed"):
            self.evaluate = lambda seen: self._answer(seen, (len(seen), actions), len(seen))
        if form in ("evaluate_states", "both"):
            self.evaluate_states = lambda states: self._answer(states, (len(states), actions), len(states))
        if form == "evaluate_packed":
            self.evaluate_packed = lambda packed: self._answer(
                packed, (len(packed.legal_actions),), len(packed.legal_offsets) - 1
            )
        if rng.random() < 0.15:
            self.policy = rng.choice(["probabilities", "logits", None, 3, "x"])
        if rng.random() < 0.1:
            self.version = hostile(rng)
        if rng.random() < 0.1:
            self.device = hostile(rng)

    def _answer(self, given: Any, shape: tuple[int, ...], rows: int) -> Any:
        self._calls += 1
        policy: Any = np.zeros(shape, np.float32)
        values: Any = np.zeros(rows)
        if getattr(self, "policy", "logits") == "probabilities":
            policy = policy + 1.0
        wrong = self._calls == self._from or (self._calls > self._from and not self._once)
        if not wrong:
            return policy, values
        rng = self._chance
        kind = rng.randrange(10)
        if kind == 0:
            raise_one(rng)
        if kind == 1:
            return hostile(rng)
        if kind == 2:
            return rng.choice([(policy,), (policy, values, values), [policy, values], {"policy": policy}, policy])
        if kind == 3:
            # Retains its inputs and mutates them later.
            self._kept.append(given)
            for earlier in self._kept:
                with contextlib.suppress(Exception):
                    earlier[...] = np.nan
            return policy, values
        if kind < 7:
            return policy, bent(rng, values)
        return bent(rng, policy), values


def an_evaluator(rng: Random) -> Call:
    """Searches with a hostile evaluator, then again after it has become valid."""
    state, actions = rng.choice([(TicTacToe(), 9), (ConnectFour(), 7), (Row(), 3), (Paid(), 3), (Three(), 3)])
    evaluator: Any = HostileEvaluator(rng, actions)
    wrapped = rng.randrange(6)
    shared: dict[str, Any] = {"seed": 1, "in_flight": rng.choice([1, 5]), "threads": rng.choice([1, 2])}
    depth = rng.choice([None, 0, 3])

    def call() -> None:
        given = evaluator
        if wrapped == 0:
            given = evaluators.Cached(evaluator)
        elif wrapped == 1:
            given = evaluators.Function(evaluator)
        elif wrapped == 2 and actions in (9, 7):
            name = "tic-tac-toe" if actions == 9 else "connect4"
            given = evaluators.Symmetric(evaluator, evaluators.symmetries_of(name))
        search = [
            lambda: pondertree.AlphaZero(given, 30, **shared),
            lambda: pondertree.Gumbel(given, 30, **shared),
            lambda: pondertree.UCT(30, evaluator=given, max_depth=depth, **shared),
        ][rng.randrange(3)]()
        forest = search.forest([state, state])
        failed: list[PondertreeError] = []
        for _ in range(4):
            try:
                forest.simulate(6)
            except PondertreeError as error:
                failed.append(error)
            for result in forest.results():
                show(result)
        forest.advance(0, forest.result(0).action)
        if failed:
            raise failed[0]

    return call


def a_hostile_model(rng: Random) -> Any:
    """A model that fails from a call on."""
    calls, from_call, once = [0], rng.randrange(1, 6), rng.random() < 0.4

    def is_wrong() -> bool:
        calls[0] += 1
        return calls[0] == from_call or (calls[0] > from_call and not once)

    def spoil(answer: list[Any]) -> Any:
        kind = rng.randrange(8)
        if kind == 0:
            raise_one(rng)
        if kind == 1:
            return hostile(rng)
        if kind == 2:
            return tuple(answer[: rng.randrange(len(answer))])
        place = rng.randrange(len(answer))
        rows = len(answer[-1])
        if place == 0 and rng.random() < 0.7:
            shapes = [
                np.zeros((rows, 3)),
                np.zeros((rows + 1, 2)),
                np.zeros((rows, 2), np.int64),
                np.zeros(0),
                {},
                None,
            ]
            answer[0] = rng.choice([*shapes, (np.zeros((rows, 2)),), {"a": np.zeros((rows, 2))}, [[0.0] * 2] * rows])
        else:
            answer[place] = bent(rng, answer[place])
        return tuple(answer)

    def initial(seen: Any) -> Any:
        rows = len(seen)
        answer = [np.zeros((rows, 2), np.float32), np.zeros((rows, 3), np.float32), np.zeros(rows)]
        return spoil(answer) if is_wrong() else tuple(answer)

    def recurrent(hidden: Any, taken: Any) -> Any:
        rows = len(taken)
        answer = [hidden + 1, np.ones(rows), np.zeros((rows, 3)), np.zeros(rows)]
        if with_discount:
            answer.append(np.full(rows, discount))
        return spoil(answer) if is_wrong() else tuple(answer)

    with_discount, discount = rng.random() < 0.4, rng.choice([1.0, 0.0, -1.0, 0.5, 1.5, float("nan"), 1e300])
    return models.FunctionModel(initial, recurrent)


def a_model_search(rng: Random) -> Call:
    """Searches in a hostile model, from states and from observations."""
    model = a_hostile_model(rng)
    state: Any = rng.choice([Row(), Paid(), np.zeros(4, np.float32), np.zeros((2, 2)), TicTacToe()])
    shared: dict[str, Any] = {"seed": 1, "in_flight": rng.choice([1, 4]), "num_simulations": 16}
    players, discount = rng.choice([None, 1, 2]), rng.choice([0.997, 1.0, 0.0])
    kind = rng.choice([pondertree.MuZero, pondertree.Gumbel])

    def call() -> None:
        search = kind(model=model, discount=discount, num_players=players, **shared)
        failed: list[PondertreeError] = []
        for _ in range(2):
            try:
                tree = search.tree(state)
                for _ in range(4):
                    with contextlib.suppress(PondertreeError):
                        tree.simulate(5)
                    show(tree.result())
                tree.advance(tree.result().action)
            except PondertreeError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    return call
