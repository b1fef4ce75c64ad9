"""Games of arrays: single states keep the contract, searches equal those of the same states in the scalar form."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from examples.games.connect_four_arrays import ConnectFourArrays

import pondertree
from pondertree.games import BatchState, ConnectFour, batch_states
from pondertree.games.batch_game import BatchRules
from pondertree.games.batch_playouts import random_actions
from pondertree.random import PLAYOUT, Random, fold_array
from pondertree.testing import check_game

GAME = ConnectFourArrays()


def start() -> BatchState:
    return batch_states(GAME, GAME.start())[0]


class Scalar:
    """A state of arrays in the scalar form, whose searches play state by state."""

    num_actions, num_players = 7, 2

    def __init__(self, state: Any) -> None:
        self.state = state
        self.to_play, self.is_terminal = state.to_play, state.is_terminal

    def legal_actions(self) -> list[int]:
        return list(self.state.legal_actions())

    def play(self, action: int) -> Scalar:
        return Scalar(self.state.play(action))

    def returns(self) -> list[float]:
        return list(self.state.returns())

    def observation(self) -> Any:
        return self.state.observation()


class Heuristic:
    """A deterministic evaluator of observations, with priors."""

    def evaluate(self, observations: Any) -> Any:
        flat = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
        weights = np.round(9 * np.sin(np.arange(flat.shape[1] * 8.0))).reshape(flat.shape[1], 8)
        numbers = flat @ weights / 512  # sums of integers: equal in every order
        return numbers[:, :7].astype(np.float32), numbers[:, 7]


SEARCHES: dict[str, Any] = {
    "uct": lambda **options: pondertree.UCT(60, seed=5, **options),
    "uct without proofs": lambda **options: pondertree.UCT(60, seed=5, solve=False, **options),
    "discount": lambda **options: pondertree.UCT(40, seed=5, discount=0.9, **options),
    "max_depth": lambda **options: pondertree.UCT(30, seed=5, max_depth=3, **options),
    "policy": lambda **options: pondertree.UCT(
        20, seed=5, playout_policy=lambda state: [1.0] * 7, max_depth=2, **options
    ),
    "forced": lambda **options: pondertree.UCT(20, seed=5, forced_depth=2, **options),
    "alphazero": lambda **options: pondertree.AlphaZero(Heuristic(), num_simulations=60, seed=5, **options),
    "gumbel": lambda **options: pondertree.Gumbel(Heuristic(), num_simulations=40, seed=5, **options),
}


def edges(node: Any) -> Any:
    return [
        (action, child.visit_count, child.total_value, child.prior, edges(child))
        for action, child in node.children.items()
    ]


@pytest.mark.parametrize("in_flight", [1, 3])
@pytest.mark.parametrize("name", SEARCHES)
def test_search_equals_scalar_form(name: str, in_flight: int) -> None:
    state, states = start(), []
    for action in (3, 3, 3, 2, 0, 3):
        states.append(state)
        state = state.play(action)
    results = SEARCHES[name](in_flight=in_flight).run(states)
    scalar = SEARCHES[name](in_flight=in_flight).run([Scalar(state) for state in states])
    for mine, theirs in zip(results, scalar, strict=True):
        assert edges(mine.root) == edges(theirs.root)
        assert (mine.action, mine.value, mine.proven) == (theirs.action, theirs.value, theirs.proven)


def test_search_equals_compiled_game() -> None:
    state, compiled, moves = start(), ConnectFour(), [3, 2, 4, 3, 3]
    for action in moves:
        state, compiled = state.play(action), compiled.play(action)
    assert [int(action) for action in compiled.legal_actions()] == state.legal_actions()
    mine = pondertree.UCT(3000, seed=1).run(state)
    theirs = pondertree.UCT(3000, seed=1).run(compiled)
    assert (mine.action, mine.proven) == (theirs.action, theirs.proven)


def test_contract_holds() -> None:
    report = check_game(start, games=3)
    assert (report.name, report.most_legal, report.observation_shape) == ("ConnectFourArrays", 7, (2, 6, 7))


@pytest.mark.parametrize(
    ("name", "message"),
    [("in place", "read-only"), ("by neighbours", "rows.*differs from its result for that state alone")],
)
def test_check_game_finds_impure_play(name: str, message: str) -> None:
    game = changed(**FAULTS[name][0])
    with pytest.raises(pondertree.GameContractError, match=message):
        check_game(lambda: BatchState(game, GAME.start()[0]), games=2)


def test_tree_is_advanced_saved_and_stopped(tmp_path: Any) -> None:
    search = pondertree.UCT(50, seed=2)
    tree, plain = search.tree(start()), pondertree.UCT(50, seed=2).tree(Scalar(start()))
    for each in (tree, plain):
        each.simulate(50).advance(3)
        each.simulate(20)
    tree.save(tmp_path / "tree")
    loaded = pondertree.load_tree(tmp_path / "tree", search=search, state=start())
    for each in (tree, plain, loaded):
        each.simulate(30)
    assert edges(tree.result().root) == edges(plain.result().root) == edges(loaded.result().root)
    assert tree.simulate(seconds=0.01).result().simulations > 0


def test_interrupted_batch_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = pondertree.UCT(50, seed=3).forest(batch_states(GAME, GAME.start(4)))
    forest.simulate(20)
    before = [edges(result.root) for result in forest.results()]
    with monkeypatch.context() as patched:
        patched.setattr(GAME, "returns", lambda states: 1 / 0, raising=False)
        with pytest.raises(
            pondertree.GameContractError, match=r"ConnectFourArrays.returns\(\) raised ZeroDivisionError"
        ):
            forest.simulate(20)
    after = [result.simulations for result in forest.results()]
    assert len(set(after)) == 1
    forest.simulate(40 - after[0])
    again = pondertree.UCT(50, seed=3).forest(batch_states(GAME, GAME.start(4))).simulate(40)
    assert [edges(result.root) for result in forest.results()] == [edges(result.root) for result in again.results()]
    assert len(before) == 4


def test_states_are_values() -> None:
    state = start().play(3)
    assert state == start().play(3) != start()
    assert hash(state) == hash(start().play(3))
    assert copy.deepcopy(state).array.tolist() == state.array.tolist()
    assert pickle.loads(pickle.dumps(state)).legal_actions() == state.legal_actions()
    assert "ConnectFourArrays" in repr(state)
    with pytest.raises(pondertree.InvalidActionError, match="not legal"):
        state.play(7)
    with pytest.raises(ValueError, match="read-only"):
        state.array[0] = 1


def changed(**methods: Any) -> Any:
    """The game with methods replaced."""
    return type("Wobbly", (ConnectFourArrays,), methods)()


def play_in_place(self: Any, states: Any, actions: Any) -> Any:
    after = ConnectFourArrays.play(self, states, actions)
    states[:, 0] += 1
    return after


def play_by_neighbours(self: Any, states: Any, actions: Any) -> Any:
    after = ConnectFourArrays.play(self, states, actions)
    after[:, 2] += len(states) > 1
    return after


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "in place": ({"play": play_in_place}, "changed states"),
    "by neighbours": ({"play": play_by_neighbours}, "not a pure function of each row: to_play"),
    "same array": ({"play": lambda self, states, actions: states}, "must return a new array"),
    "list": ({"play": lambda self, states, actions: states.tolist()}, "returned a list"),
    "dtype": ({"play": lambda self, states, actions: states.astype(np.int32)}, "returned int32"),
    "fewer rows": ({"is_terminal": lambda self, states: np.zeros(len(states) + 1, bool)}, "is_terminal.* is bool"),
    "mask of numbers": ({"legal_mask": lambda self, states: np.ones((len(states), 7))}, "legal_mask.* is float64"),
    "no actions": ({"legal_mask": lambda self, states: np.zeros((len(states), 7), bool)}, "is empty|without actions"),
    "player": ({"to_play": lambda self, states: np.full(len(states), 2)}, "to_play is 2"),
    "returns": ({"returns": lambda self, states: np.full((len(states), 2), np.nan)}, "results are from -1 to 1"),
    "sum": ({"returns": lambda self, states: np.ones((len(states), 2))}, "zero-sum"),
    "raises": ({"play": lambda self, states, actions: 1 / 0}, "raised ZeroDivisionError"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_violation_raises_typed_error(name: str) -> None:
    methods, message = FAULTS[name]
    game = changed(**methods)
    with pytest.raises(pondertree.GameContractError, match=message):
        pondertree.UCT(3000, seed=1, solve=False).run(batch_states(game, GAME.start(8)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BatchState(ConnectFourArrays, GAME.start()[0]), "is the class"),  # type: ignore[arg-type]
        (lambda: BatchState(object(), GAME.start()[0]), "has no num_actions"),  # type: ignore[arg-type]
        (lambda: BatchState(changed(rewards=None), GAME.start()[0]), "has rewards"),
        (lambda: BatchState(GAME, [object()]), "Python objects"),
        (lambda: batch_states(GAME, GAME.start(0)), "n > 0"),
        (lambda: pondertree.UCT(5).run([start(), batch_states(ConnectFourArrays(), GAME.start())[0]]), "one game"),
    ],
)
def test_wrong_argument_is_refused(make: Any, message: str) -> None:
    with pytest.raises(pondertree.PondertreeError, match=message):
        make()


def test_random_actions_are_those_of_each_stream() -> None:
    keys = [3, 5, 2**63 + 1, 7]
    streams, randoms = fold_array(keys, [PLAYOUT]), [Random(key, PLAYOUT) for key in keys]
    draw = np.random.default_rng(1)
    for _ in range(30):
        mask = draw.random((4, 7)) < 0.3
        mask[np.arange(4), draw.integers(7, size=4)] = True
        rules = BatchRules(changed(legal_mask=lambda self, states, mask=mask: mask))
        actions = random_actions(rules, GAME.start(4), streams)
        legal = [np.flatnonzero(row) for row in mask]
        assert actions.tolist() == [own[random.choose(len(own))] for own, random in zip(legal, randoms, strict=True)]
