"""Games of OpenSpiel as games: random games compared, refusals, searches."""

from __future__ import annotations

import copy
import pickle
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
import pytest
from tests.support.openspiel import games_to_compare
from tests.support.openspiel_games import GAMES, compare_random_games, load
from tests.support.traces import first_difference

import pondertree
from pondertree.envs import from_openspiel
from pondertree.envs.openspiel import load as loading
from pondertree.envs.openspiel.states import OpenSpielState
from pondertree.errors import (
    GameContractError,
    GameOverError,
    InvalidActionError,
    InvalidArgumentError,
    MissingExtraError,
)
from pondertree.games.playout import decisive_policy
from pondertree.reference.uct import MCTS
from pondertree.testing import check_game

pytestmark = pytest.mark.oracle


def own(name: str, **options: Any) -> Any:
    """A starting state in OpenSpiel's own rules; chance nodes are passed by their first outcome."""
    state = from_openspiel(load(name), compiled=False, **options)
    while state.to_play == pondertree.CHANCE:
        state = state.play(state.legal_actions()[0])
    return state


@pytest.mark.parametrize("name", GAMES)
def test_random_games_match_openspiel(name: str) -> None:
    assert compare_random_games(name, 3) > 6


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_many_random_games_match_openspiel(name: str) -> None:
    compare_random_games(name, games_to_compare(100))


def test_forty_games_are_compared() -> None:
    assert len({load(name).get_type().short_name for name in GAMES}) >= 40


@pytest.mark.parametrize(
    "name", ["catch", "cliff_walking", "go(board_size=5)", "nim", "pig(players=3,winscore=10)", "python_tic_tac_toe"]
)
def test_states_keep_the_contract(name: str) -> None:
    report = check_game(lambda: from_openspiel(load(name), compiled=False), games=5)
    assert report.plies > 10


REFUSALS = [
    ("goofspiel", "simultaneous moves.*convert_to_turn_based"),
    ("matrix_pd", "simultaneous moves"),
    ("turn_based_simultaneous_game(game=goofspiel())", "imperfect information"),
    ("kuhn_poker", "imperfect information"),
    ("hanabi", "imperfect information"),
    ("mfg_garnet", "mean-field"),
    ("stones_and_gems", "sampled chance"),
    ("morpion_solitaire", "copy of a state"),
    ("python_hangman", "word list"),
]


@pytest.mark.parametrize(("name", "reason"), REFUSALS)
@pytest.mark.parametrize("form", ["name", "game"])
def test_other_games_are_refused(name: str, reason: str, form: str) -> None:
    game = load(name)
    with pytest.raises(InvalidArgumentError, match=rf"OpenSpiel game {name.partition('(')[0]}.*{reason}"):
        from_openspiel(name if form == "name" else game)


def test_state_of_other_game_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="kuhn_poker"):
        from_openspiel(load("kuhn_poker").new_initial_state())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tic_tac_to", "no game 'tic_tac_to'; did you mean tic_tac_toe"),
        ("xyzzy", "no game 'xyzzy'$"),
        ("hex(board_size=three)", "load_game.*raised SpielError"),
        (3, "game_or_state must be a game or a state of pyspiel"),
        (pyspiel.State, "game_or_state must be"),
    ],
)
def test_bad_argument_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        from_openspiel(given)


@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), "2"])
def test_bad_scale_is_refused(scale: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="scale"):
        from_openspiel("nim", scale=scale)


def test_missing_openspiel_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    loading.openspiel.cache_clear()
    with pytest.raises(MissingExtraError, match=r"game of OpenSpiel needs pyspiel.*\[envs\]"):
        from_openspiel("nim")


def test_later_moves_of_the_original_do_not_count() -> None:
    theirs = load("oware").new_initial_state()
    state = from_openspiel(theirs)
    text = str(state)
    theirs.apply_action(0)
    state.to_openspiel().apply_action(1)
    assert str(state) == text
    assert str(from_openspiel(theirs)) == str(theirs) != text


def test_illegal_actions_are_refused() -> None:
    state = own("tic_tac_toe").play(4)
    for action in (4, 9, -1, "a1"):
        with pytest.raises(InvalidActionError, match=r"openspiel:tic_tac_toe\(\) after \[4\]"):
            state.play(action)
    for action in (0, 1, 2, 7):
        state = state.play(action)
    assert state.returns() == [1.0, -1.0]
    with pytest.raises(GameOverError, match="finished game of openspiel:tic_tac_toe"):
        state.play(8)


@pytest.mark.parametrize("name", ["2048", "chess", "python_tic_tac_toe", "yacht(num_dice=2)"])
def test_states_are_restored_from_pickle(name: str) -> None:
    state = own(name)
    for _ in range(4):
        state = state.play(state.legal_actions()[-1])
    restored = pickle.loads(pickle.dumps(state))
    assert restored == state
    assert type(restored) is type(state)
    assert hash(restored) == hash(state)
    assert str(restored) == str(state)
    assert restored != own(name)
    assert restored.legal_actions() == state.legal_actions()
    assert copy.copy(state) is copy.deepcopy(state) is state
    if name == "2048":
        assert restored.rewards() == state.rewards()


def test_states_of_other_starts_differ() -> None:
    game = load("chess")
    pawn = game.new_initial_state("8/8/8/8/4k3/8/4P3/4K3 w - - 0 1")
    state = from_openspiel(pawn, compiled=False)
    assert state != from_openspiel(game, compiled=False)
    assert pickle.loads(pickle.dumps(state)) == state
    assert str(pickle.loads(pickle.dumps(state.play(state.legal_actions()[0])))) != str(state)


def test_states_of_several_games_are_refused_by_forests() -> None:
    with pytest.raises(InvalidArgumentError, match=r"all states of a forest must be of one game"):
        pondertree.UCT(10).run([own("nim"), own("nim(pile_sizes=2;2)")])


@pytest.mark.parametrize("name", ["chess", "clobber", "backgammon", "pig"])
def test_observations_are_those_of_the_player_to_move(name: str) -> None:
    state = own(name)
    for _ in range(3):
        tensor = state.to_openspiel().observation_tensor(state.to_play)
        observation = state.observation()
        assert observation.dtype == np.float32
        assert observation.shape == tuple(load(name).observation_tensor_shape())
        np.testing.assert_array_equal(observation.ravel(), np.array(tensor, dtype=np.float32))
        state = state.play(state.legal_actions()[0])
        while state.to_play == pondertree.CHANCE:
            state = state.play(state.legal_actions()[0])


def test_returns_are_scaled_to_their_bounds() -> None:
    game = load("backgammon(scoring_type=full_scoring)")
    assert game.max_utility() == 3.0
    state = from_openspiel(game)
    assert state.scale == 3.0
    assert state.zero_sum
    assert from_openspiel(game, scale=6).scale == 6.0
    assert own("2048").scale == 1.0
    noisy = own("add_noise(epsilon=1.,seed=1,game=tic_tac_toe())")
    assert noisy.scale == 2.0
    while not noisy.is_terminal:
        noisy = noisy.play(noisy.legal_actions()[0])
    assert noisy.returns()[0] == noisy.to_openspiel().returns()[0] / 2.0 != 0.0


def test_returns_beyond_one_are_refused_by_searches() -> None:
    state = own("add_noise(epsilon=1.,seed=1,game=tic_tac_toe())", scale=0.01)
    with pytest.raises(GameContractError, match=r"openspiel:add_noise.*random_playout|returns"):
        pondertree.UCT(1000, seed=1).run(state)


def test_rewards_are_scaled() -> None:
    plain, scaled = own("2048"), own("2048", scale=4.0)
    while not any(plain.rewards()):
        action = plain.legal_actions()[0]
        plain, scaled = plain.play(action), scaled.play(action)
    assert scaled.rewards() == [plain.rewards()[0] / 4.0]
    assert scaled.returns() == [plain.returns()[0] / 4.0]


def assert_equal_searches(state: Any, simulations: int, **options: Any) -> None:
    """Compares every simulation and the result of engine and reference."""
    search = MCTS(simulations, seed=3, **options)
    theirs = search.tree(state, trace=True)
    search.simulate(theirs, simulations)
    ours = pondertree.UCT(simulations, seed=3, trace=True, **options).tree(state).simulate()
    difference = first_difference(ours.trace(), theirs.trace or [])
    assert difference is None, f"{difference} (a: engine, b: reference)"
    result, reference = ours.result(), search.result(theirs)
    assert {action: int(result.visits[action]) for action in reference.visits} == reference.visits
    assert (result.action, result.value, result.proven) == (reference.action, reference.value, reference.proven)


@pytest.mark.parametrize("name", ["nim", "pig(players=3,winscore=8)", "cliff_walking", "catch", "2048"])
def test_uct_matches_reference(name: str) -> None:
    state = own(name)
    normalize = "tree" if hasattr(state, "rewards") else None
    assert_equal_searches(state, 60, normalize=normalize)


@pytest.mark.parametrize("options", [{"max_depth": 4}, {"discount": 0.9}, {"playout_policy": decisive_policy}])
def test_uct_matches_reference_where_playouts_are_played_by_moves(options: Any) -> None:
    assert_equal_searches(own("nim"), 100, **options)


def test_same_seed_gives_the_same_tree() -> None:
    def visits(seed: int) -> list[int]:
        result: list[int] = pondertree.UCT(200, seed=seed).run(own("einstein_wurfelt_nicht")).visits.tolist()
        return result

    assert visits(1) == visits(1) != visits(2)


def test_proven_results_are_found() -> None:
    assert pondertree.UCT(20_000, seed=1).run(own("nim(pile_sizes=1;2;3,is_misere=false)")).proven == -1
    assert pondertree.UCT(20_000, seed=1).run(own("nim(pile_sizes=1;2;4,is_misere=false)")).proven == 1


def test_random_playouts_are_uniform_and_depend_on_the_seed_alone() -> None:
    state = own("tic_tac_toe")
    games = [state.random_playout(seed) for seed in range(4000)]
    assert games == [state.random_playout(seed) for seed in range(4000)]
    # The share of wins of X and of O with random moves.
    assert statistics.mean(first == 1.0 for first, _ in games) == pytest.approx(0.585, abs=0.03)
    assert statistics.mean(second == 1.0 for _, second in games) == pytest.approx(0.288, abs=0.03)
    assert all(first == -second for first, second in games)
    assert str(state) == str(own("tic_tac_toe"))


def test_random_playouts_sum_later_rewards() -> None:
    state = own("2048")
    for _ in range(30):
        state = state.play(state.legal_actions()[0])
    earned = state.returns()[0]
    assert earned > 0
    scores = [state.random_playout(seed)[0] for seed in range(50)]
    assert 400 < statistics.mean(scores) < 1600
    assert min(scores) >= 0.0


def test_networks_value_states() -> None:
    def network(observations: Any) -> Any:
        return np.zeros((len(observations), 81 + 1)), observations[:, 0].mean(axis=(1, 2)) - 0.5

    result = pondertree.AlphaZero(network, 50, seed=1).run(own("go(board_size=9)"))
    assert result.visits.sum() == 50
    result = pondertree.Gumbel(network, 32, seed=1).run(own("go(board_size=9)"))
    assert result.visits.sum() == 32


def test_trees_are_saved_and_continued(tmp_path: Path) -> None:
    search = pondertree.UCT(300, seed=5)
    tree = search.tree(own("oware")).simulate()
    tree.save(tmp_path / "tree.npz")
    continued = pondertree.load_tree(tmp_path / "tree.npz", state=own("oware")).simulate(200)
    assert continued.result().visits.tolist() == tree.simulate(200).result().visits.tolist()


class Raises:
    """A state of OpenSpiel, some of whose methods raise."""

    def __init__(self, spiel: Any, *methods: str) -> None:
        self.spiel, self.methods = spiel, methods

    def __getattr__(self, name: str) -> Any:
        if name in self.methods:
            raise RuntimeError(f"no {name} today")
        return getattr(self.spiel, name)


def test_exceptions_of_openspiel_name_game_and_call() -> None:
    healthy = own("oware")
    broken: OpenSpielState = type(healthy)(Raises(healthy.to_openspiel(), "child"))
    with pytest.raises(GameContractError, match=r"openspiel:oware\(\).*apply_action\(0\) raised RuntimeError"):
        broken.play(0)
    unplayable = type(healthy)(Raises(healthy.to_openspiel(), "clone"))
    with pytest.raises(GameContractError, match=r"openspiel:oware\(\).*random game raised RuntimeError: no clone"):
        unplayable.random_playout(1)


def test_tree_is_usable_after_an_exception_of_openspiel(monkeypatch: pytest.MonkeyPatch) -> None:
    state = own("oware")
    tree = pondertree.UCT(100, seed=1).tree(state).simulate()
    before = tree.result().visits.tolist()
    with monkeypatch.context() as patch:
        patch.setattr(OpenSpielState, "_child", lambda self, action: Raises(self._spiel, "child").child(action))
        with pytest.raises(GameContractError, match=r"openspiel:oware\(\).play\(\d\) raised RuntimeError.*no child"):
            tree.simulate(50)
    assert tree.result().visits.tolist() == before
    assert tree.simulate(50).result().visits.sum() == 150
