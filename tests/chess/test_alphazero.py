"""`MCTS` of the AlphaZero chess specification, and its usage example."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest
from numpy.typing import NDArray

from pondertree import AlphaZero, Temperature
from pondertree.chess import MCTS, ChessGame, ChessNN
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.evaluators import Uniform
from pondertree.reference import alphazero as reference

# Verbatim from the specification, after the imports.
USAGE = """
# Setup
nn = ChessNN()
nn.load_model("trained_model.keras")
mcts = MCTS(neural_network=nn, num_simulations=100)

# Play a move (greedy)
game = ChessGame()
move = mcts.search(game, temperature=0)
game.make_move(move)

# For training data (with exploration)
game = ChessGame()
move, policy = mcts.get_policy(game, temperature=1.0, add_noise=True)
# policy is the MCTS-improved target for training
"""

POLICY_CONSTRUCTION = """
policy = np.zeros(4672)
for move, child in root.children.items():
    policy[game.get_move_index(move)] = child.visit_count
policy = policy / policy.sum()  # Normalize
"""

SELF_PLAY = """
for move_number in range(max_moves):
    temp = 1.0 if move_number < 30 else 0.0
    move, policy = mcts.get_policy(game, temperature=temp, add_noise=True)
    # Store (position, policy, result) for training
    game.make_move(move)
"""


class Tiny:
    """A minimal network: fixed random weights on the material."""

    def __init__(self) -> None:
        numbers = np.random.default_rng(0)
        self.logits = numbers.normal(size=4672).astype(np.float32)
        self.calls = 0

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.calls += 1
        assert observations.shape[1:] == (119, 8, 8)
        worth = np.array([1, 3, 3, 5, 9], dtype=np.float32)
        pieces = observations[:, :12].sum(axis=(2, 3))
        material = pieces[:, :5] @ worth - pieces[:, 6:11] @ worth
        return np.tile(self.logits, (len(observations), 1)), np.tanh(material / 10)


def test_mcts_defaults_match_specification() -> None:
    network = Tiny()
    mcts = MCTS(network)
    assert isinstance(mcts, AlphaZero)
    assert mcts.neural_network is network
    assert (mcts.num_simulations, mcts.c_puct) == (100, 1.0)
    assert (mcts.dirichlet_alpha, mcts.dirichlet_epsilon) == (0.3, 0.25)
    assert mcts.default_temperature == 1.0
    assert network.calls == 0, "nothing is searched before it is asked for"
    assert repr(mcts).startswith("MCTS(")
    with pytest.raises(InvalidArgumentError, match="neural_network"):
        MCTS(None)


def test_search_returns_move_of_best_policy_entry() -> None:
    mcts = MCTS(neural_network=Tiny(), num_simulations=64, c_puct=2.0, seed=1)
    game = ChessGame()
    for _ in range(6):
        before = game.clone()
        move = mcts.search(game, temperature=0)
        assert isinstance(move, chess.Move)
        move, policy = mcts.get_policy(game, temperature=1.0, add_noise=True)
        assert game == before
        assert policy.shape == (4672,)
        assert policy.sum() == pytest.approx(1)
        assert {game.get_move(int(index)) for index in np.flatnonzero(policy)} <= set(game.legal_moves)
        assert policy[game.get_move_index(move)] > 0
        game.make_move(move)


def test_policy_vector_built_from_children_matches_get_policy() -> None:
    mcts = MCTS(Tiny(), 50, seed=4, solve=False)
    game = ChessGame()
    result = mcts.run(game)
    policy = np.zeros(4672)
    for action, child in result.root.children.items():
        policy[game.get_move_index(game.get_move(action))] = child.visit_count
    policy = policy / policy.sum()
    assert np.allclose(result.policy, policy, rtol=1e-12, atol=0)
    assert result.visits.sum() == 50
    assert result.root.visit_count == 51


@pytest.mark.parametrize("moves", [(), ("e4",)])
@pytest.mark.parametrize("engine", [True, False])
def test_specification_policy_code_runs_on_root_node(moves: tuple[str, ...], engine: bool) -> None:
    """At the root of the engine and of the reference implementation, for both sides to move."""
    game = ChessGame()
    for move in moves:
        game.make_move(move)
    expected: Any
    if engine:
        found = MCTS(Tiny(), 50, seed=4).run(game)
        root, expected = found.root, found.policy
    else:
        reference_result = reference.MCTS(Tiny(), 50, seed=4, solve=False).run(game)
        root = reference_result.root
        expected = [reference_result.policy.get(action, 0.0) for action in range(4672)]
    names: dict[str, Any] = {"np": np, "game": game, "root": root}
    exec(POLICY_CONSTRUCTION, names)
    assert np.allclose(names["policy"], expected, rtol=1e-12, atol=0)
    assert np.count_nonzero(names["policy"]) > 5


def test_search_and_get_policy_accept_game_by_keyword() -> None:
    game = ChessGame()
    for search in (MCTS(Tiny(), 20, seed=1), reference.MCTS(Tiny(), 20, seed=1)):
        move = search.search(game=game, temperature=0, add_noise=False)
        assert move in game.legal_moves
        move, policy = search.get_policy(game=game, temperature=1.0, add_noise=True)
        assert (move in game.legal_moves, len(policy)) == (True, 4672)
    mcts = MCTS(Tiny(), 20, seed=1)
    assert mcts.search(state=game, temperature=0) == MCTS(Tiny(), 20, seed=1).search(game=game, temperature=0)
    for arguments in ({}, {"game": game, "state": game}):
        with pytest.raises(InvalidArgumentError, match="game="):
            mcts.search(**arguments)
        with pytest.raises(InvalidArgumentError, match="game="):
            mcts.get_policy(**arguments)


def test_signatures_and_defaults_match_specification() -> None:
    for method in (MCTS.search, MCTS.get_policy, reference.MCTS.search, reference.MCTS.get_policy):
        parameters = list(inspect.signature(method).parameters.values())[1:4]
        assert [each.name for each in parameters] == ["game", "temperature", "add_noise"]
        assert [each.default for each in parameters[1:]] == [1.0, False]


def test_reference_matches_engine_on_chess_games() -> None:
    network, game = Tiny(), ChessGame()
    game.make_move("d4")
    move, policy = MCTS(network, 40, seed=3).get_policy(game, temperature=0)
    expected_move, expected = reference.MCTS(network, 40, seed=3, solve=False).get_policy(game, temperature=0)
    assert isinstance(expected_move, chess.Move)
    assert move == expected_move
    assert policy == pytest.approx(np.array(expected), rel=1e-12, abs=0)
    action = reference.MCTS(network, 40, seed=3, solve=False).search(game.state, temperature=0)
    assert action == game.get_move_index(move)


def test_policy_is_visit_distribution_unless_solve_is_set() -> None:
    """With a mate in one, the default policy is the visit distribution; with solve=True all weight is on the mate."""
    game = ChessGame("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1")
    mate = game.get_move_index("a1a8")
    plain = MCTS(Uniform(), 60, seed=1)
    assert not plain.solve
    result = plain.run(game)
    assert result.policy == pytest.approx(result.visits / 60)
    assert 0.2 < result.policy[mate] < 1.0
    solved = MCTS(Uniform(), 60, seed=1, solve=True).run(game)
    assert (solved.proven, solved.policy[mate]) == (1, 1.0)


def test_get_move_index_accepts_only_legal_actions() -> None:
    game = ChessGame()
    index = game.get_move_index("e2e4")
    for same in (index, np.int64(index), chess.Move.from_uci("e2e4"), "e4"):
        assert game.get_move_index(same) == index
    illegal = next(action for action in range(4672) if action not in game.state.legal_actions())
    for wrong in (illegal, -1, 4672, True, None, 1.5):
        with pytest.raises(ValueError, match="move"):
            game.get_move_index(wrong)


@pytest.mark.parametrize(
    ("fen", "mate"),
    [("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "a1a8"), ("r3k3/8/8/8/8/8/5PPP/6K1 b - - 0 1", "a8a1")],
)
@pytest.mark.parametrize("solve", [True, False])
def test_mate_in_one_found_for_both_sides(fen: str, mate: str, solve: bool) -> None:
    mcts = MCTS(Tiny(), 200, seed=1, solve=solve)
    assert mcts.search(ChessGame(fen), temperature=0).uci() == mate
    move, policy = mcts.get_policy(chess.Board(fen), temperature=0)
    assert policy.argmax() == ChessGame(fen).get_move_index(move)


def test_noise_and_temperature_follow_arguments() -> None:
    game = ChessGame()
    quiet = [MCTS(Tiny(), 30, seed=seed).search(game, temperature=0) for seed in range(4)]
    assert len(set(quiet)) == 1
    noisy = [MCTS(Tiny(), 30, seed=seed).get_policy(game, temperature=0, add_noise=True)[1] for seed in range(4)]
    assert any(not np.array_equal(noisy[0], other) for other in noisy[1:])
    sampled = {MCTS(Tiny(), 30, seed=seed).search(game) for seed in range(12)}
    assert len(sampled) > 1, "the default temperature is 1"


def test_equal_seeds_play_equal_games() -> None:
    def play() -> list[chess.Move]:
        mcts, game, schedule = MCTS(Tiny(), 16, seed=9), ChessGame(), Temperature(1.0, until=4)
        for move_number in range(8):
            move, _ = mcts.get_policy(game, temperature=schedule(move_number), add_noise=True)
            game.make_move(move)
        return game.board.move_stack

    assert play() == play()


def test_search_of_finished_game_raises_value_error() -> None:
    game = ChessGame()
    for move in ("f3", "e5", "g4", "Qh4"):
        game.make_move(move)
    network = Tiny()
    mcts = MCTS(network, 10)
    with pytest.raises(ValueError, match="over"):
        mcts.search(game)
    with pytest.raises(ValueError, match="over"):
        mcts.get_policy(game)
    assert network.calls == 0


def test_search_with_unbuilt_network_raises_usage_error() -> None:
    mcts = MCTS(ChessNN(), 10)
    for call in (mcts.search, mcts.get_policy, mcts.run, mcts.tree):
        with pytest.raises(UsageError, match=r"call build\(\) or load_model\(\) first"):
            call(ChessGame())
    with pytest.raises(UsageError, match=r"call build\(\) or load_model\(\) first"):
        AlphaZero(ChessNN(), 10).search(ChessGame())


def test_specification_self_play_loop_runs() -> None:
    names: dict[str, Any] = {"mcts": MCTS(Tiny(), 8, seed=2), "game": ChessGame(), "max_moves": 33}
    exec(SELF_PLAY, names)
    assert len(names["game"].board.move_stack) == 33
    assert names["temp"] == 0.0


@pytest.fixture
def one_thread() -> Any:
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small networks
    yield
    torch.set_num_threads(threads)


def check_usage(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[ChessNN], None]) -> None:
    monkeypatch.chdir(folder)
    save(ChessNN(blocks=2, channels=16).build(seed=1))
    names: dict[str, Any] = {"ChessGame": ChessGame, "ChessNN": ChessNN, "MCTS": MCTS}
    exec(text, names)
    game, move, policy = names["game"], names["move"], names["policy"]
    assert game == ChessGame()
    assert move in game.legal_moves
    assert policy.shape == (4672,)
    assert policy.sum() == pytest.approx(1)
    assert names["nn"].config.blocks == 2


@pytest.mark.usefixtures("one_thread")
@pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras")
def test_usage_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_usage(USAGE, tmp_path, monkeypatch, lambda nn: nn.save_model("trained_model.keras"))


@pytest.mark.usefixtures("one_thread")
def test_usage_example_runs_with_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("safetensors")
    text = USAGE.replace("trained_model.keras", "trained_model.safetensors")
    check_usage(text, tmp_path, monkeypatch, lambda nn: nn.save_model("trained_model.safetensors"))
