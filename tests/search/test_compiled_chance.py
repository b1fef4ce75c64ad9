"""Compiled games with chance: pickles, forests whose trees wait for outcomes, and children of a fork."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from typing import Any

import pytest
from tests.support.forks import wait_for

from pondertree import CHANCE, UCT, AlphaZero
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout
from pondertree.games import Backgammon, Pig, TwentyFortyEight

GAMES = (Pig, Backgammon, TwentyFortyEight)


def search_of(game: Any, **options: Any) -> UCT:
    """Returns a search on the scale of the game's returns."""
    return UCT(100, seed=1, normalize="tree" if game is TwentyFortyEight else None, **options)


def at_chance(game: Any) -> Any:
    """Returns the first chance node of a game after its first moves."""
    state = game()
    while state.to_play != CHANCE:
        state = state.play(state.legal_actions()[0])
    return state


@pytest.mark.parametrize("game", GAMES)
def test_states_at_chance_nodes_are_pickled_and_copied(game: Any) -> None:
    state = at_chance(game)
    for again in (pickle.loads(pickle.dumps(state)), copy.copy(state), copy.deepcopy(state)):
        assert again == state
        assert hash(again) == hash(state)
        assert again.to_play == CHANCE
        assert again.chance_outcomes() == state.chance_outcomes()
        outcome = state.legal_actions()[-1]
        assert again.play(outcome) == state.play(outcome)


@pytest.mark.parametrize("game", GAMES)
def test_tree_is_pickled_after_the_outcome(game: Any) -> None:
    tree = search_of(game).tree(game()).simulate(100)
    action = next(action for action in tree.state.legal_actions() if tree.state.play(action).to_play == CHANCE)
    tree.advance(action)
    with pytest.raises(InvalidArgumentError, match="chance node"):
        pickle.dumps(tree)
    tree.advance(tree.state.legal_actions()[0])
    again = pickle.loads(pickle.dumps(tree))
    one, two = (each.simulate(100).result() for each in (tree, again))
    assert one.visits.tolist() == two.visits.tolist()
    assert one.value == two.value


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_forest_advances_over_outcomes(game: Any, threads: int) -> None:
    with pytest.raises(InvalidArgumentError, match=r"states\[1\] is a chance node"):
        search_of(game).forest([game(), at_chance(game)])
    forest = search_of(game, in_flight=4, threads=threads).forest([game()] * 3).simulate()
    for _ in range(3):
        for index, action in enumerate(forest.actions().tolist()):
            forest.advance(index, action)
        for index in range(3):
            while forest.waits_for_outcome(index):
                with pytest.raises(InvalidArgumentError, match=rf"tree {index} is a chance node"):
                    forest.simulate()
                outcomes = forest.state(index).legal_actions()
                forest.advance(index, outcomes[index % len(outcomes)])
        forest.simulate()
    for index, result in enumerate(forest.results()):
        assert forest.state(index).to_play >= 0
        assert sorted(result.edges.actions.tolist()) == sorted(forest.state(index).legal_actions())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_child_of_a_fork_searches_during_searches_of_other_threads() -> None:
    wanted = [search_of(game, in_flight=4, threads=2).run(game()).visits.tolist() for game in GAMES]
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            search_of(Backgammon, in_flight=4, threads=2).run(Backgammon())

    others = threading.Thread(target=work)
    others.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                found = [search_of(game, in_flight=4, threads=2).run(game()).visits.tolist() for game in GAMES]
                os._exit(int(found != wanted))
            assert wait_for(child) == ""
    finally:
        stopped.set()
        others.join()


def test_rewards_of_compiled_games_are_scaled_by_the_tree() -> None:
    """Threads and leaves in flight change nothing about which tree a seed gives."""
    state = TwentyFortyEight()
    for options in ({}, {"discount": 0.9}, {"backup": "max"}, {"in_flight": 8}, {"chance": "sample"}):
        one, two = (
            UCT(400, seed=1, normalize="tree", threads=threads, **options).run(state)  # type: ignore[arg-type]
            for threads in (1, 2)
        )
        assert one.visits.tolist() == two.visits.tolist()
        assert one.value == two.value
        assert one.visits.sum() == pytest.approx(400, abs=1)
    scaled = AlphaZero(Rollout(), num_simulations=100, normalize="tree", seed=1)
    assert scaled.run(state).simulations == 100
