"""Symmetries match the rules of the games; `Symmetric` makes evaluators symmetric."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.support.networks import NONSENSE, ObservationsOnly, Switch, assert_refused, assert_same_search, table
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.evaluators import Cached, Function, Packed, Rollout, Symmetric, Symmetry, symmetries_of
from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

BOARDS = [TicTacToe, ConnectFour, Othello]
NUMBER = {TicTacToe: 8, ConnectFour: 2, Othello: 8, Chess: 1}
#: Symmetries that leave the starting position as it is.
OF_THE_START = NUMBER | {Othello: 4}


def turned(observation: np.ndarray, symmetry: Symmetry) -> np.ndarray:
    return observation.reshape(len(observation), -1)[:, symmetry.cells].reshape(observation.shape)


class Net:
    """An asymmetric network: random weights with few bits, so that sums are exact."""

    policy = "logits"

    def __init__(self, state: Any, seed: int = 0) -> None:
        numbers = np.random.default_rng(seed)
        inputs = min(state.observation().size, 192)
        self.weights = numbers.integers(-8, 8, (inputs, state.num_actions)).astype(np.float32) / 8
        self.value_weights = numbers.integers(-8, 8, inputs).astype(np.float32) / 512
        self.rows = 0

    def evaluate(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.rows += len(observations)
        flat = observations.reshape(len(observations), -1)[:, : len(self.value_weights)]
        return flat @ self.weights, flat @ self.value_weights


class PackedNet(Net):
    """The same network, also in packed form."""

    def evaluate_packed(self, packed: Packed) -> tuple[np.ndarray, np.ndarray]:
        logits, values = self.evaluate(packed.unpack())
        return logits[packed.rows(), packed.legal_actions], values


# --- The symmetries themselves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", COMPILED)
def test_number_of_symmetries(start: Any) -> None:
    symmetries = symmetries_of(start)
    assert len(symmetries) == NUMBER.get(start, len(symmetries))
    assert len({symmetry.cells.tobytes() for symmetry in symmetries}) == len(symmetries)
    cells = start().observation()[0].size
    for part, size in zip(symmetries[0], (cells, start().num_actions), strict=True):
        assert part.tolist() == list(range(size))


def test_symmetries_by_name_class_and_state() -> None:
    for game in ("connect4", "connect_four", ConnectFour, ConnectFour()):
        assert symmetries_of(game)[1].actions.tolist() == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("start", COMPILED)
def test_symmetries_form_a_group(start: Any) -> None:
    symmetries = symmetries_of(start)
    known = {(s.cells.tobytes(), s.actions.tobytes()) for s in symmetries}
    for one in symmetries:
        for other in symmetries:
            both = (one.cells[other.cells].tobytes(), other.actions[one.actions].tobytes())
            assert both in known


def start_stays(start: Any, symmetry: Symmetry) -> bool:
    return np.array_equal(turned(start().observation(), symmetry), start().observation())


@pytest.mark.parametrize("start", [start for start, game in COMPILED.items() if not game.has_chance])
@pytest.mark.parametrize("seed", range(5))
def test_play_commutes_with_symmetry(start: Any, seed: int) -> None:
    """A game and its transformed game agree in boards, legal moves, ends and results."""
    numbers = random.Random(seed)
    symmetries = [symmetry for symmetry in symmetries_of(start) if start_stays(start, symmetry)]
    assert len(symmetries) == OF_THE_START.get(start, len(symmetries))
    state, mirrors = start(), [start() for _ in symmetries]
    while True:
        for symmetry, mirror in zip(symmetries, mirrors, strict=True):
            assert np.array_equal(mirror.observation(), turned(state.observation(), symmetry))
            assert sorted(mirror.legal_actions()) == sorted(symmetry.actions[state.legal_actions()].tolist())
            assert (mirror.is_terminal, mirror.to_play) == (state.is_terminal, state.to_play)
        if state.is_terminal:
            assert all(mirror.returns() == state.returns() for mirror in mirrors)
            return
        action = numbers.choice(state.legal_actions())
        state = state.play(action)
        mirrors = [mirror.play(int(s.actions[action])) for s, mirror in zip(symmetries, mirrors, strict=True)]


def othello_moves(own: set[int], other: set[int]) -> dict[int, set[int]]:
    """Othello's rules: each legal move with the discs it flips; 64 is a pass."""
    moves = {}
    for square in set(range(64)) - own - other:
        flips: set[int] = set()
        for down, right in [(d, r) for d in (-1, 0, 1) for r in (-1, 0, 1) if d or r]:
            line, row, column = set(), square // 8 + down, square % 8 + right
            while 0 <= row < 8 and 0 <= column < 8 and row * 8 + column in other:
                line.add(row * 8 + column)
                row, column = row + down, column + right
            if 0 <= row < 8 and 0 <= column < 8 and row * 8 + column in own:
                flips |= line
        if flips:
            moves[square] = flips
    return moves or {64: set()}


def discs(observation: np.ndarray) -> tuple[set[int], set[int]]:
    own, other = (set(np.flatnonzero(plane).tolist()) for plane in observation[:2])
    return own, other


def test_othello_symmetry_that_changes_the_start() -> None:
    """Four symmetries swap the discs of the start, so such boards are unreachable: the rules are compared instead."""
    numbers = random.Random(0)
    symmetries = symmetries_of("othello")
    passes = 0
    while passes == 0:
        state = Othello()
        while not state.is_terminal:
            moves = othello_moves(*discs(state.observation()))
            assert sorted(moves) == sorted(state.legal_actions())
            for symmetry in symmetries:
                other_cells = othello_moves(*discs(turned(state.observation(), symmetry)))
                place = symmetry.actions.tolist()
                assert other_cells == {place[move]: {place[disc] for disc in flips} for move, flips in moves.items()}
            passes += 64 in moves
            state = state.play(numbers.choice(state.legal_actions()))


# --- The evaluator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", BOARDS)
@pytest.mark.parametrize("kind", [Net, PackedNet])
def test_average_is_symmetric_bit_for_bit(start: Any, kind: type[Net]) -> None:
    symmetries = symmetries_of(start)
    evaluator = Symmetric(kind(start()), symmetries)
    boards = np.stack([random_position(start, plies, 7).observation() for plies in range(8)])
    logits, values = evaluator.evaluate(boards)
    plain = kind(start()).evaluate(boards)
    assert not np.array_equal(logits, plain[0])
    for symmetry in symmetries[1:]:
        other_logits, other_values = evaluator.evaluate(np.stack([turned(board, symmetry) for board in boards]))
        assert np.array_equal(other_values, values)
        assert np.array_equal(other_logits[:, symmetry.actions], logits)  # type: ignore[index]


def test_connect_four_average_matches_hand_computation() -> None:
    net = Net(ConnectFour())
    board = random_position(ConnectFour, 5, 1).observation()[None]
    mirrored = board[..., ::-1]
    logits, values = Symmetric(net, symmetries_of("connect4")).evaluate(board)
    assert np.allclose(logits, (net.evaluate(board)[0] + net.evaluate(mirrored)[0][:, ::-1]) / 2)
    assert np.allclose(values, (net.evaluate(board)[1] + net.evaluate(mirrored)[1]) / 2)


@pytest.mark.parametrize("start", [*BOARDS, Chess])
@pytest.mark.parametrize("mode", ["average", "sample"])
def test_packed_form_matches_observations(start: Any, mode: str) -> None:
    """For inner evaluators with and without packed form."""
    state, symmetries = start(), symmetries_of(start)
    plain, packed = (Symmetric(kind(state), symmetries, mode, seed=3) for kind in (Net, PackedNet))
    assert_same_search(plain, packed, state, 30)
    assert_same_search(packed, ObservationsOnly(packed), state, 30)


def test_symmetric_position_has_symmetric_policy() -> None:
    result = pondertree.AlphaZero(Symmetric(Net(ConnectFour()), symmetries_of("connect4")), 1, seed=1).run(
        ConnectFour()
    )
    priors = [result.root.children[action].prior for action in range(7)]
    assert priors == priors[::-1]
    assert len(set(priors)) == 4


def test_sample_is_deterministic_and_one_of_the_transformed_outputs() -> None:
    symmetries = symmetries_of("tic-tac-toe")
    net = Net(TicTacToe())
    boards = np.stack([random_position(TicTacToe, 3, seed).observation() for seed in range(40)])
    logits, values = Symmetric(net, symmetries, "sample", seed=1).evaluate(boards)
    assert logits is not None
    drawn = set()
    for row, board in enumerate(boards):
        outputs = [net.evaluate(turned(board, symmetry)[None]) for symmetry in symmetries]
        turned_back = [answer[0][0, s.actions] for answer, s in zip(outputs, symmetries, strict=True)]
        fits = [number for number in range(8) if np.array_equal(turned_back[number], logits[row])]
        assert any(outputs[number][1][0] == values[row] for number in fits)
        drawn.add(fits[0])
    assert len(drawn) >= 6
    backwards, _ = Symmetric(net, symmetries, "sample", seed=1).evaluate(boards[::-1])
    assert np.array_equal(backwards[::-1], logits)  # type: ignore[index]
    other, _ = Symmetric(net, symmetries, "sample", seed=2).evaluate(boards)
    assert not np.array_equal(other, logits)


def test_evaluations_per_position() -> None:
    boards = TicTacToe().observation()[None]
    for mode, rows in (("sample", 1), ("average", 8)):
        net = Net(TicTacToe())
        Symmetric(net, symmetries_of("tic-tac-toe"), mode).evaluate(boards)
        assert net.rows == rows


def test_probabilities_are_averaged_as_probabilities() -> None:
    net = Net(ConnectFour())
    inner = Function(lambda o: (np.exp(net.evaluate(o)[0]), net.evaluate(o)[1]))
    evaluator = Symmetric(inner, symmetries_of("connect4"))
    assert evaluator.policy == "probabilities"
    board = random_position(ConnectFour, 5, 1).observation()[None]
    both = np.exp(net.evaluate(board)[0]) + np.exp(net.evaluate(board[..., ::-1])[0][:, ::-1])
    assert np.allclose(evaluator.evaluate(board)[0], both / 2)


def test_nested_wrappers() -> None:
    symmetries = symmetries_of("connect4")
    plain = Symmetric(PackedNet(ConnectFour()), symmetries, "sample", seed=5)
    assert_same_search(plain, Cached(plain), ConnectFour())
    assert_same_search(plain, Symmetric(Cached(PackedNet(ConnectFour())), symmetries, "sample", seed=5), ConnectFour())
    average = Symmetric(Cached(PackedNet(ConnectFour())), symmetries)
    assert_same_search(Symmetric(Net(ConnectFour()), symmetries), average, ConnectFour())


def test_uniform_policy_stays_uniform() -> None:
    inner = Function(lambda o: (None, table(o)[1]))
    assert Symmetric(inner, symmetries_of("connect4")).evaluate(ConnectFour().observation()[None])[0] is None
    assert pondertree.AlphaZero(Symmetric(inner, symmetries_of("connect4")), 20).run(ConnectFour()).simulations == 20


def test_python_games() -> None:
    class Mirrored(PythonGame):
        def symmetries(self) -> list[tuple[np.ndarray, np.ndarray]]:
            """Permutations of whole observations, as of a game without a board."""
            mirror = np.arange(126).reshape(3, 6, 7)[:, :, ::-1].ravel()
            return [(np.arange(126), np.arange(7)), (mirror, np.arange(7)[::-1])]

    symmetries = symmetries_of(Mirrored(ConnectFour()))
    assert_same_search(
        Symmetric(Net(ConnectFour()), symmetries),
        Symmetric(Net(ConnectFour()), symmetries_of("connect4")),
        Mirrored(ConnectFour()),
    )
    assert_same_search(
        Symmetric(Net(ConnectFour()), symmetries),
        Symmetric(Net(ConnectFour()), symmetries_of("connect4")),
        ConnectFour(),
    )


@pytest.mark.parametrize("name", NONSENSE)
def test_invalid_outputs_are_refused(name: str) -> None:
    switch = Switch()
    broken, message = NONSENSE[name]
    assert_refused(Symmetric(switch, symmetries_of("connect4")[:1]), switch, broken, message)


WRONG: list[tuple[tuple[Any, ...], str]] = [
    ((Rollout(), symmetries_of("connect4")), "only evaluate_states"),
    ((3, symmetries_of("connect4")), "evaluator"),
    ((table, []), "empty"),
    ((table, 3), "symmetries"),
    ((table, [(1, 2, 3)]), "symmetries"),
    ((table, [([0, 1], [0.5, 1.0])]), "symmetries"),
    ((table, [([0, 1], [0, 0])]), r"symmetries\[0\].actions"),
    ((table, [([0, 1], [0, 1]), ([0, 2], [0, 1])]), r"symmetries\[1\].cells"),
    ((table, [([0, 1], [0, 1]), ([0, 1, 2], [0, 1])]), r"symmetries\[1\].cells"),
    ((table, symmetries_of("connect4"), "both"), "mode"),
    ((table, symmetries_of("connect4"), "sample", -1), "seed"),
    ((table, symmetries_of("connect4"), "sample", 1.5), "seed"),
]


@pytest.mark.parametrize(("arguments", "match"), WRONG)
def test_invalid_arguments_raise(arguments: tuple[Any, ...], match: str) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=match):
        Symmetric(*arguments)


def test_symmetries_of_another_game_raise() -> None:
    for state in (Othello(), PythonGame(Othello()), TicTacToe(), PythonGame(TicTacToe())):
        with pytest.raises(pondertree.EvaluationError, match="symmetries are those of"):
            pondertree.AlphaZero(Symmetric(Net(state), symmetries_of("connect4")), 5).run(state)


@pytest.mark.parametrize("game", [PythonGame(ConnectFour()), PythonGame, 3, None])
def test_games_without_symmetries_raise(game: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="no compiled game"):
        symmetries_of(game)
