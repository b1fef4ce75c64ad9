"""Searches as bots of OpenSpiel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import evaluate_bots
from tests.support.openspiel_games import load

import pondertree
from pondertree.envs import as_openspiel_bot
from pondertree.envs.openspiel.states import OpenSpielState
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess, ConnectFour, TwentyFortyEight

pytestmark = pytest.mark.oracle


class Counted:
    """A search that counts its trees."""

    def __init__(self, simulations: int = 40, **options: Any) -> None:
        self.search = pondertree.UCT(simulations, seed=1, **options)
        self.trees = 0

    def tree(self, state: Any) -> Any:
        self.trees += 1
        return self.search.tree(state)


class Legal(pyspiel.Bot):  # type: ignore[misc]
    """Another bot, whose moves are checked."""

    def __init__(self, bot: Any, player: int) -> None:
        super().__init__()
        self.bot, self.player, self.moves = bot, player, 0

    def restart_at(self, state: Any) -> None:
        self.bot.restart_at(state)

    def inform_action(self, state: Any, player: int, action: int) -> None:
        self.bot.inform_action(state, player, action)

    def step(self, state: Any) -> int:
        action: int = self.bot.step(state)
        assert action in state.legal_actions()
        self.moves += 1
        return action


GAMES = [
    "2048(max_tile=65536)",
    "backgammon",
    "breakthrough",
    "catch",
    "chess",
    "chinese_checkers(max_moves=20,players=3)",
    "clobber",
    "connect_four",
    "einstein_wurfelt_nicht",
    "hex(board_size=5)",
    "othello",
    "pig(players=3,winscore=20)",
    "pig(winscore=20)",
    "python_tic_tac_toe",
    "tic_tac_toe",
]


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("language", ["C++", "Python"])
def test_bots_play_games(name: str, language: str) -> None:
    """Every tree is kept for a whole game, from the first move of its player on."""
    game = load(name)
    searches = [Counted(12, normalize="tree" if "2048" in name else None) for _ in range(game.num_players())]
    bots = [Legal(as_openspiel_bot(search, player), player) for player, search in enumerate(searches)]
    state = game.new_initial_state()
    if language == "C++":
        returns = pyspiel.evaluate_bots(state, bots, 3)
    else:
        returns = evaluate_bots.evaluate_bots(state, bots, np.random.RandomState(3))
    assert state.is_terminal()
    assert returns == state.returns()
    assert all(search.trees == 1 for search in searches)
    assert sum(bot.moves for bot in bots) > game.num_players()


def test_compiled_games_are_searched_in_the_engine() -> None:
    state = load("connect_four").new_initial_state()
    bot = as_openspiel_bot(pondertree.UCT(50, seed=1), 0)
    assert bot.tree is None
    assert bot.step(state) in range(7)
    assert isinstance(bot.tree.state, ConnectFour)
    own = as_openspiel_bot(pondertree.UCT(50, seed=1), 0, compiled=False)
    own.step(state)
    assert isinstance(own.tree.state, OpenSpielState)
    scaled = as_openspiel_bot(pondertree.UCT(50, seed=1), 0, scale=2.0)
    scaled.step(state)
    assert scaled.tree.state.scale == 2.0


def test_tree_is_reused_over_moves_of_both_players() -> None:
    state, search = load("connect_four").new_initial_state(), Counted(400)
    bot = as_openspiel_bot(search, 0)
    for reply in (2, 3, 4):
        action = bot.step(state)
        tree = bot.tree
        visits = tree.result().root.children[action].children[reply].visit_count
        state.apply_action(action)
        bot.inform_action(state, 1, reply)
        state.apply_action(reply)
        assert bot.tree is tree
        assert tree.result().visits.sum() == pytest.approx(visits, abs=1)
        assert str(tree.state).splitlines()[:6] == [
            " ".join(row).replace("x", "X").replace("o", "O") for row in str(state).splitlines()[:6]
        ]
    assert search.trees == 1


@pytest.mark.parametrize("name", ["clobber", "breakthrough", "backgammon"])
def test_bots_follow_states_without_being_informed(name: str) -> None:
    state, search = load(name).new_initial_state(), Counted(20)
    numbers = np.random.RandomState(1)
    bot = as_openspiel_bot(search, 0)
    moves = 0
    while not state.is_terminal() and moves < 8:
        if state.current_player() == 0:
            state.apply_action(bot.step(state))
            moves += 1
        else:
            state.apply_action(int(numbers.choice(state.legal_actions())))
    assert search.trees == 1


def test_other_states_start_new_trees() -> None:
    game, search = load("clobber"), Counted()
    bot = as_openspiel_bot(search, 0)
    state = game.new_initial_state()
    bot.step(state)
    bot.step(state)
    assert search.trees == 1
    for action in (state.legal_actions()[0], None):  # another line of the game, then one that is its start again
        other = game.new_initial_state()
        if action is not None:
            other.apply_action(action)
            other.apply_action(other.legal_actions()[-1])
        bot.step(other)
    assert search.trees == 2
    bot.step(load("clobber(rows=4,columns=4)").new_initial_state())
    assert search.trees == 3
    bot.restart_at(state)
    assert bot.tree is None
    bot.step(state)
    bot.restart()
    bot.step(state)
    assert search.trees == 5


def test_other_start_with_the_same_moves_starts_a_new_tree() -> None:
    game, search = load("chess"), Counted(5)
    bot = as_openspiel_bot(search, 1)  # White
    bot.step(game.new_initial_state())
    bot.step(game.new_initial_state("8/8/8/8/4k3/8/4P3/4K3 w - - 0 1"))
    assert search.trees == 2
    assert isinstance(bot.tree.state, Chess)


def test_other_game_with_the_same_board_starts_a_new_tree() -> None:
    search = Counted(5)
    bot = as_openspiel_bot(search, 0)
    states = [load(f"pig(winscore={target})").new_initial_state() for target in (20, 30)]
    assert str(states[0]) == str(states[1])
    for state in states:
        bot.step(state)
    assert search.trees == 2


def test_policy_is_that_of_the_temperature() -> None:
    state = load("connect_four").new_initial_state()
    bot = as_openspiel_bot(pondertree.UCT(300, seed=1), 0)
    policy, action = bot.step_with_policy(state)
    assert policy == [(each, float(each == action)) for each in range(7)]
    assert bot.provides_policy()
    shares = as_openspiel_bot(pondertree.UCT(300, seed=1), 0, temperature=1.0)
    policy = shares.get_policy(state)
    assert [action for action, _ in policy] == list(range(7))
    assert [share for _, share in policy] == pytest.approx(pondertree.UCT(300, seed=1).run(ConnectFour()).policy)
    drawn = {shares.step_with_policy(state)[1]}
    for seed in range(20):
        drawn.add(as_openspiel_bot(pondertree.UCT(30, seed=seed), 0, temperature=1.0).step(state))
    assert len(drawn) > 2


def test_policies_of_backgammon_are_of_openspiel_actions() -> None:
    state = load("backgammon").new_initial_state()
    state.apply_action(0)
    bot = as_openspiel_bot(pondertree.UCT(100, seed=1), state.current_player(), temperature=1.0)
    policy, action = bot.step_with_policy(state)
    assert [each for each, _ in policy] == state.legal_actions()
    assert sum(share for _, share in policy) == pytest.approx(1.0)
    assert dict(policy)[action] > 0.0


def test_only_actions_of_openspiel_are_searched_in_2048() -> None:
    """OpenSpiel omits mergers with a tile that merged in the last move: a state where these are all the difference."""
    game, numbers, restricted = load("2048(max_tile=65536)"), np.random.RandomState(2), 0
    bot = as_openspiel_bot(pondertree.UCT(8, normalize="tree", seed=1), 0)
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, chances = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(numbers.choice(outcomes, p=chances)))
            continue
        legal = state.legal_actions()
        if len(legal) > 1:
            assert bot.step(state) in legal
            assert isinstance(bot.tree.state, TwentyFortyEight)
            if len(legal) < len(bot.tree.state.legal_actions()):
                restricted += 1
                visited = np.flatnonzero(bot.tree.result().visits)
                assert set(visited.tolist()) <= set(legal)
        state.apply_action(int(numbers.choice(legal)))
    assert restricted > 0


def test_forced_actions_advance_the_tree() -> None:
    state, search = load("clobber").new_initial_state(), Counted()
    bot = as_openspiel_bot(search, 0)
    action = bot.step(state)
    forced = next(each for each in state.legal_actions() if each != action)
    assert bot.provides_force_action()
    bot.force_action(state, forced)
    state.apply_action(forced)
    assert str(bot.tree.state) == str(state)
    assert search.trees == 1


def test_bot_wins_against_random_moves() -> None:
    for name in ("connect_four", "clobber"):
        game = load(name)
        for number in range(4):
            player = number % 2
            bots = [pyspiel.make_uniform_random_bot(other, number) for other in range(2)]
            bots[player] = as_openspiel_bot(pondertree.UCT(200, seed=number), player)
            assert pyspiel.evaluate_bots(game.new_initial_state(), bots, number)[player] == 1.0


def test_networks_play() -> None:
    def network(observations: Any) -> Any:
        return np.zeros((len(observations), 3)), observations.mean(axis=(1, 2))

    bot = as_openspiel_bot(pondertree.AlphaZero(network, 10, seed=1), 0)
    state = load("catch").new_initial_state()
    assert len(pyspiel.evaluate_bots(state, [bot], 1)) == 1


def test_bot_of_another_player_is_refused() -> None:
    state = load("tic_tac_toe").new_initial_state()
    bot = as_openspiel_bot(pondertree.UCT(10), 1)
    with pytest.raises(InvalidArgumentError, match=r"tic_tac_toe\(\): step\(\) of the bot of player 1, but player 0"):
        bot.step(state)
    for action in (0, 3, 1, 4, 2):
        state.apply_action(action)
    with pytest.raises(InvalidArgumentError, match="the game is over"):
        bot.get_policy(state)


def test_unsearchable_game_is_refused() -> None:
    state = load("kuhn_poker").new_initial_state()
    for card in (0, 1):
        state.apply_action(card)
    with pytest.raises(InvalidArgumentError, match=r"kuhn_poker.*imperfect information"):
        as_openspiel_bot(pondertree.UCT(10), 0).step(state)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("uct", 0), "search"),
        ((pondertree.UCT(10), -1), "player"),
        ((pondertree.UCT(10), "0"), "player"),
        ((pondertree.UCT(10), 0, {"temperature": -1.0}), "temperature"),
        ((pondertree.UCT(10), 0, {"compiled": 1}), "compiled"),
        ((pondertree.UCT(10), 0, {"scale": 0.0}), "scale"),
    ],
)
def test_bad_argument_is_refused(arguments: tuple[Any, ...], name: str) -> None:
    options = arguments[2] if len(arguments) > 2 else {}
    with pytest.raises(InvalidArgumentError, match=f"^{name} must"):
        as_openspiel_bot(*arguments[:2], **options)
