"""AlphaZero chess: class interface, method specifications, defaults, implementation notes and examples."""

from __future__ import annotations

import inspect
import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.specifications.examples import (
    POLICY_CONSTRUCTION,
    SELF_PLAY,
    USAGE_PLAY,
    USAGE_SETUP,
    USAGE_TRAINING,
)
from tests.specifications.support import ChessNetwork, Network

from pondertree.chess import MCTS, ChessGame, ChessNN
from pondertree.errors import UsageError
from pondertree.games import Chess
from pondertree.reference import alphazero

chess = pytest.importorskip("chess")

DEFAULTS = {"num_simulations": 100, "c_puct": 1.0, "dirichlet_alpha": 0.3, "dirichlet_epsilon": 0.25}
MIDDLEGAME = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"
FOOLS_MATE = ("f3", "e5", "g4", "Qh4")


def small(**options: Any) -> MCTS:
    return MCTS(neural_network=ChessNetwork(), num_simulations=24, seed=1, **options)


# --- Class Interface ----------------------------------------------------------------------------------------------


def test_init_takes_the_network_first_and_by_name() -> None:
    network = ChessNetwork()
    assert MCTS(network).neural_network is MCTS(neural_network=network).neural_network is network
    assert list(inspect.signature(MCTS).parameters)[:5] == ["neural_network", *DEFAULTS]


@pytest.mark.parametrize("parameter", DEFAULTS)
def test_init_parameter_has_its_default(parameter: str) -> None:
    for make in (MCTS, alphazero.MCTS):
        assert getattr(make(neural_network=ChessNetwork()), parameter) == DEFAULTS[parameter]
        options: dict[str, Any] = {parameter: 1}
        given = make(neural_network=ChessNetwork(), **options)
        assert getattr(given, parameter) == 1


METHODS = ("search", "get_policy")


@pytest.mark.parametrize("method", METHODS)
def test_method_takes_the_game_by_position_and_by_name(method: str) -> None:
    for search in (MCTS(ChessNetwork(), 4, seed=1), alphazero.MCTS(ChessNetwork(), 4)):
        call = getattr(search, method)
        assert next(iter(inspect.signature(call).parameters)) == "game"
        call(ChessGame())
        call(game=ChessGame())
        call(game=ChessGame(), temperature=0.5, add_noise=True)


@pytest.mark.parametrize("method", METHODS)
def test_method_has_temperature_one_by_default(method: str) -> None:
    for make in (MCTS, alphazero.MCTS):
        assert inspect.signature(getattr(make, method)).parameters["temperature"].default == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_method_adds_no_noise_by_default(method: str) -> None:
    for make in (MCTS, alphazero.MCTS):
        assert inspect.signature(getattr(make, method)).parameters["add_noise"].default is False


def test_search_returns_a_move() -> None:
    game = ChessGame()
    move = small().search(game)
    assert isinstance(move, chess.Move)
    assert move in game.legal_moves


def test_get_policy_returns_a_move_and_an_array() -> None:
    answer = small().get_policy(ChessGame())
    assert isinstance(answer, tuple)
    assert [type(part) for part in answer] == [chess.Move, np.ndarray]


# --- Method Specifications ----------------------------------------------------------------------------------------


def test_init_stores_the_configuration_and_builds_no_tree() -> None:
    network = ChessNetwork()
    search = MCTS(network, 7, 2.0, 0.5, 0.125)
    assert [getattr(search, name) for name in DEFAULTS] == [7, 2.0, 0.5, 0.125]
    assert network.batches == []


def test_search_runs_num_simulations_and_returns_the_selected_move() -> None:
    network = ChessNetwork()
    move = MCTS(network, 24, seed=1).search(ChessGame(), temperature=0)
    assert sum(network.batches) == 25, "the root and one new leaf per simulation"
    assert move == ChessGame().get_move(MCTS(network, 24, seed=1).run(ChessGame()).action)


def test_search_starts_from_the_position_of_the_game() -> None:
    game = ChessGame()
    for move in ("e4", "e5", "Bc4", "Nc6", "Qh5", "Nf6"):
        game.make_move(move)
    assert MCTS(ChessNetwork(), 200, seed=1).search(game, temperature=0).uci() == "h5f7"


def test_temperature_zero_is_greedy_and_one_is_proportional() -> None:
    search = small()
    visits = search.run(ChessGame()).visits
    assert {search.search(ChessGame(), temperature=0) for _ in range(5)} == {ChessGame().get_move(int(visits.argmax()))}
    drawn = [search.search(ChessGame(), temperature=1.0) for _ in range(40)]
    assert len(set(drawn)) > 3


def test_add_noise_changes_the_search() -> None:
    plain, again = (small().get_policy(ChessGame())[1] for _ in range(2))
    assert np.array_equal(plain, again)
    assert not np.array_equal(plain, small().get_policy(ChessGame(), add_noise=True)[1])


def test_search_returns_a_legal_move_for_both_sides() -> None:
    game = ChessGame()
    for _ in range(6):
        move = small().search(game)
        assert isinstance(move, chess.Move)
        game.make_move(move)


@pytest.mark.parametrize("method", METHODS)
def test_finished_game_raises_value_error(method: str) -> None:
    game = ChessGame()
    for move in FOOLS_MATE:
        game.make_move(move)
    with pytest.raises(ValueError, match="over"):
        getattr(small(), method)(game)


def test_get_policy_selects_the_move_that_search_selects() -> None:
    for temperature in (0, 1.0):
        assert small().get_policy(ChessGame(), temperature)[0] == small().search(ChessGame(), temperature)


def test_get_policy_has_the_parameters_of_search() -> None:
    names = ["game", "temperature", "add_noise"]
    for method in METHODS:
        assert [name for name in inspect.signature(getattr(MCTS, method)).parameters if name != "self"][:3] == names


def test_get_policy_move_is_among_the_visited_ones() -> None:
    move, policy = small().get_policy(ChessGame())
    assert isinstance(move, chess.Move)
    assert policy[ChessGame().get_move_index(move)] > 0


def test_policy_has_one_entry_for_each_of_4672_moves() -> None:
    policy = small().get_policy(ChessGame())[1]
    assert policy.shape == (4672,)
    assert policy.sum() == pytest.approx(1.0)
    legal = {ChessGame().get_move_index(move) for move in ChessGame().legal_moves}
    assert set(np.flatnonzero(policy)) <= legal


def test_policy_is_better_than_the_networks() -> None:
    """The network has all moves alike; after the search most of the weight lies on the mate."""
    search = MCTS(Network([1.0] * 4672), 100, seed=1)
    game = ChessGame(MATE_IN_ONE)
    policy = search.get_policy(game)[1]
    mate = game.get_move_index("a1a8")
    assert policy[mate] > 0.5 > 2 / len(game.legal_moves)
    assert policy[mate] < 1.0, "the share of visits, not of proofs"


def test_policy_construction_runs_as_written() -> None:
    game = ChessGame()
    for search in (small(), alphazero.MCTS(ChessNetwork(), 24, seed=1)):
        result = search.run(game)
        names: dict[str, Any] = {"np": np, "root": result.root, "game": game}
        exec(POLICY_CONSTRUCTION.text, names)
        assert names["policy"] == pytest.approx(small().get_policy(game)[1])


# --- Configuration Defaults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", DEFAULTS)
def test_table_default_takes_effect(parameter: str) -> None:
    """A search with the default written out is the search without it; another value is another search."""
    other = {"num_simulations": 60, "c_puct": 3.0, "dirichlet_alpha": 5.0, "dirichlet_epsilon": 0.75}[parameter]

    def policy(**options: Any) -> Any:
        return MCTS(ChessNetwork(), seed=3, **options).get_policy(ChessGame(MIDDLEGAME), add_noise=True)[1]

    assert np.array_equal(policy(), policy(**{parameter: DEFAULTS[parameter]}))
    assert not np.array_equal(policy(), policy(**{parameter: other}))


def test_table_default_temperature_is_one() -> None:
    def moves(*temperature: Any) -> list[Any]:
        search = MCTS(ChessNetwork(), 30, seed=2)
        return [search.search(ChessGame(), *temperature) for _ in range(8)]

    assert moves() == moves(1.0) != moves(0.0)


# --- Implementation Notes -----------------------------------------------------------------------------------------


def test_root_prior_is_one_by_convention() -> None:
    assert small().run(ChessGame()).root.prior == 1.0
    assert alphazero.MCTS(ChessNetwork(), 2).run(Chess()).root.prior == 1.0


def test_root_starts_without_visits_and_gets_one_by_the_first_backup() -> None:
    search = alphazero.MCTS(ChessNetwork(), 2)
    tree = search.tree(Chess())
    assert tree.root.visit_count == 0
    search._evaluate_root(tree)
    assert tree.root.visit_count == 1
    tree_of_engine = small().tree(ChessGame())
    assert tree_of_engine.result().root.visit_count == 0
    tree_of_engine.simulate(1)
    assert tree_of_engine.result().root.visit_count == 2


def test_terminal_positions_have_no_children_and_their_result() -> None:
    for result in (small().run(ChessGame(MATE_IN_ONE)), alphazero.MCTS(ChessNetwork(), 24).run(Chess(MATE_IN_ONE))):
        mated = result.root.children[Chess(MATE_IN_ONE).parse_action("a1a8")]
        assert not mated.children
        assert (mated.q_value, mated.visit_count > 0) == (-1.0, True)


def test_network_must_be_built_before_search() -> None:
    with pytest.raises(UsageError, match=r"call build\(\) or load_model\(\) first"):
        MCTS(ChessNN(), 10).search(ChessGame())


def test_game_is_unchanged_by_a_search() -> None:
    game = ChessGame()
    for move in ("e4", "c5"):
        game.make_move(move)
    before = game.clone()
    small().get_policy(game, add_noise=True)
    assert game == before
    assert game.board.move_stack == before.board.move_stack


# --- Usage Example, Self-Play Temperature Schedule ----------------------------------------------------------------


@pytest.fixture
def trained_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder with `trained_model.safetensors`, of a small network, as the current one."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    ChessNN(blocks=1, channels=8).build(seed=1).save_model("trained_model.safetensors")
    yield tmp_path
    torch.set_num_threads(threads)


def run_examples(*texts: str) -> dict[str, Any]:
    names: dict[str, Any] = {"ChessGame": ChessGame, "ChessNN": ChessNN, "MCTS": MCTS}
    for text in texts:
        exec(text, names)
    return names


SETUP = USAGE_SETUP.text.replace(".keras", ".safetensors")


@pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras")
@pytest.mark.usefixtures("trained_model")
def test_usage_loads_a_keras_file() -> None:
    ChessNN(blocks=1, channels=8).build(seed=1).save_model("trained_model.keras")
    names = run_examples(USAGE_SETUP.text, USAGE_PLAY.text, USAGE_TRAINING.text)
    assert names["move"] in ChessGame().legal_moves


@pytest.mark.usefixtures("trained_model")
def test_usage_creates_a_search_from_a_loaded_network() -> None:
    names = run_examples(SETUP)
    assert names["mcts"].num_simulations == 100
    assert names["mcts"].neural_network is names["nn"]
    assert names["nn"].is_built


@pytest.mark.usefixtures("trained_model")
def test_usage_plays_a_move() -> None:
    names = run_examples(SETUP, USAGE_PLAY.text)
    assert names["game"].board.move_stack == [names["move"]]


@pytest.mark.usefixtures("trained_model")
def test_usage_gives_training_data() -> None:
    names = run_examples(SETUP, USAGE_TRAINING.text)
    assert names["move"] in ChessGame().legal_moves
    assert names["policy"].shape == (4672,)
    assert names["policy"].sum() == pytest.approx(1.0)


def test_search_has_no_temperature_schedule_of_its_own() -> None:
    """The same temperature holds at every move unless the caller gives another."""
    search, game = small(), ChessGame()
    assert not any("schedule" in name or "move_number" in name for name in inspect.signature(MCTS).parameters)
    numbers = random.Random(3)
    for _ in range(40):
        game.make_move(numbers.choice(game.legal_moves))
    assert len({search.search(game, temperature=1.0) for _ in range(20)}) > 1


def test_self_play_loop_runs_as_written() -> None:
    names: dict[str, Any] = {"mcts": MCTS(ChessNetwork(), 8, seed=2), "game": ChessGame(), "max_moves": 33}
    exec(SELF_PLAY.text, names)
    assert len(names["game"].board.move_stack) == 33
    assert names["temp"] == 0.0
