"""Gymnasium environments as positions to plan in: states, searches, errors."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from tests.support import hidden_randomness as hidden  # noqa: E402 (after the packages it needs)

import pondertree  # noqa: E402
from pondertree import UCT, AlphaZero, Gumbel  # noqa: E402
from pondertree.envs import from_gymnasium, record, wrap  # noqa: E402
from pondertree.envs.gymnasium_state import EnvironmentGame  # noqa: E402
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError  # noqa: E402
from pondertree.evaluators import Uniform  # noqa: E402
from pondertree.games.playout import random_playout  # noqa: E402
from pondertree.random import PLAYOUT, Random  # noqa: E402
from pondertree.testing import check_game  # noqa: E402


def started(kind: Any = hidden.Walk, *, recorded: bool = False) -> Any:
    env = record(kind()) if recorded else kind()
    env.reset(seed=5)
    return env


def test_state_has_the_interface_of_a_game_of_one_player() -> None:
    state = from_gymnasium(started(), discount=0.5)
    assert (state.num_players, state.num_actions, state.to_play, state.is_terminal) == (1, 2, 0, False)
    after = state.play(1).play(1)
    assert after.observation().tolist() == [2, 2]
    assert (after.rewards(), after.discount) == ([pytest.approx(0.2)], 0.5)  # the search discounts
    assert after.returns() == [pytest.approx(0.3)]
    assert state.rewards() == [0.0]
    with pytest.raises(InvalidActionError, match="action 2 is not allowed here"):
        state.play(2)


def test_discount_weighs_the_values_of_leaves() -> None:
    """Every step of CartPole gives 1, so that with the exact value 2 of its leaves all values are 2."""

    class Exact:
        def evaluate_states(self, states: Any) -> Any:
            return None, [2.0] * len(states)

    env = gymnasium.make("CartPole-v1")
    env.reset(seed=1)
    state = from_gymnasium(env, discount=0.5)
    for search in (AlphaZero(Exact(), 30, seed=1), UCT(30, evaluator=Exact(), seed=1), Gumbel(Exact(), 30, seed=1)):
        result = search.run(state)
        assert result.value == pytest.approx(2.0, abs=1e-3)  # the deepest leaves are ends


@pytest.mark.parametrize("kind", [hidden.Walk, hidden.OwnNoise, hidden.ClosureNoise, hidden.Masked])
def test_states_pass_check_game(kind: Any) -> None:
    env = started(kind, recorded=True)
    check_game(lambda: from_gymnasium(env, seed=1), games=3)


def test_time_limit_is_part_of_the_state() -> None:
    env = gymnasium.wrappers.TimeLimit(hidden.Walk(), 4)
    env.reset(seed=1)
    env.step(0)
    state = from_gymnasium(env).play(0).play(0).play(0)
    assert (state.is_terminal, state.truncated, state.legal_actions()) == (True, True, [])


def test_mask_gives_the_legal_actions() -> None:
    state = from_gymnasium(started(hidden.Masked, recorded=True))
    assert state.legal_actions() == [1]
    assert state.play(1).legal_actions() == [0, 1]
    env = hidden.Masked()
    info = env.reset(seed=1)[1]
    assert from_gymnasium(env, info=info).legal_actions() == [1]
    with pytest.raises(InvalidArgumentError, match="the present one is unknown"):
        from_gymnasium(env)


def test_mask_is_read_by_a_usual_name_if_it_agrees_with_steps() -> None:
    kind = type("Named", (hidden.Masked,), {"action_masks": hidden.Masked.mask})
    assert from_gymnasium(started(kind)).legal_actions() == [1]
    wrong = type("Wrong", (hidden.Masked,), {"action_masks": lambda self: np.array([1, 1], np.int8)})
    with pytest.raises(InvalidArgumentError, match="the present one is unknown"):
        from_gymnasium(started(wrong))


def test_observation_is_read_by_a_usual_name_or_unknown() -> None:
    with pytest.raises(InvalidArgumentError, match=r"present observation of Walk is unknown.*record"):
        from_gymnasium(started()).observation()
    named = type("Named", (hidden.Walk,), {"_get_obs": hidden.Walk.seen})
    env = started(named)
    env.step(1)
    assert from_gymnasium(env).observation().tolist() == [1, 1]
    assert from_gymnasium(started(), observation=np.zeros(2, np.float32)).observation().tolist() == [0, 0]
    lake = gymnasium.make("FrozenLake-v1")
    lake.reset(seed=1)
    assert from_gymnasium(lake).observation().tolist() == [1] + 15 * [0]


def test_actions_of_several_dimensions() -> None:
    env = started(hidden.Grid)
    state = from_gymnasium(env)
    assert state.num_actions == 6
    assert state.play(5)._token.taken == [1, 7]
    kind = type("Switches", (hidden.Grid,), {"action_space": gymnasium.spaces.MultiBinary(3), "step": _binary_step})
    state = from_gymnasium(started(kind))
    assert (state.num_actions, state.play(6)._token.taken) == (8, [1, 1, 0])


def _binary_step(env: Any, action: Any) -> Any:
    env.taken = action.tolist()
    return hidden.Walk.step(env, int(action[0]))


def test_masks_of_several_dimensions() -> None:
    kind = type("Parts", (hidden.Grid,), {"reset": _part_mask})
    assert from_gymnasium(started(kind, recorded=True)).legal_actions() == [3, 5]


def _part_mask(env: Any, *, seed: int | None = None, options: Any = None) -> Any:
    masks = (np.array([0, 1], np.int8), np.array([1, 0, 1], np.int8))
    return hidden.Walk.reset(env, seed=seed)[0], {"action_mask": masks}


@pytest.mark.parametrize(
    "search",
    [
        UCT(200, normalize="tree", seed=1),
        AlphaZero(Uniform(), 100, normalize="tree", seed=1),
        Gumbel(Uniform(), num_simulations=64, seed=1),
    ],
    ids=["uct", "alphazero", "gumbel"],
)
@pytest.mark.parametrize("kind", [hidden.Walk, hidden.OwnNoise])
def test_searches_plan(search: Any, kind: Any) -> None:
    env = started(kind, recorded=True)
    assert search.run(from_gymnasium(env, seed=1)).action == 1  # rewards grow with the place
    assert env.unwrapped.steps == 0


def test_search_of_a_random_environment_is_reproducible() -> None:
    env = started(hidden.OwnNoise)
    runs = [UCT(100, normalize="tree", seed=3).run(from_gymnasium(env, seed=s)).q.tolist() for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_playout_in_place_plays_the_same_moves() -> None:
    for kind in (hidden.Walk, hidden.OwnNoise):
        state = from_gymnasium(started(kind), seed=1)
        copied = random_playout(state, Random(7, PLAYOUT), policy=lambda state: [1.0] * len(state.legal_actions()))
        in_place = random_playout(state, Random(7, PLAYOUT))
        assert in_place[0] is not None
        assert sum(in_place[0]) != 0
        assert len(copied[0] or []) == 1
        line = state.in_place()
        follow = state
        for _ in range(4):
            line, follow = line.play(1), follow.play(1)
            if line.to_play == -1:
                line, follow = line.play(3), follow.play(3)
            assert (line.rewards(), line.total) == (follow.rewards(), follow.total)


def test_state_in_place_plays_once() -> None:
    state = from_gymnasium(started()).in_place()
    state.play(1)
    with pytest.raises(pondertree.UsageError, match="plays once"):
        state.play(1)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (hidden.Fails, r"Fails\.step\(1\) failed: RuntimeError: the walker fell over"),
        (hidden.NanReward, r"NanReward\.step\(1\) gave the reward nan"),
    ],
)
def test_error_of_the_environment_is_typed_and_the_tree_stays_usable(kind: Any, message: str) -> None:
    state = from_gymnasium(started(kind), seed=1)
    search = UCT(2000, normalize="tree", seed=1, max_depth=1)
    tree = search.tree(state)
    tree.simulate(3)
    with pytest.raises(GameContractError, match=message):
        tree.simulate(2000)
    done = tree.result().simulations
    assert 3 <= done < 2003
    assert tree.result().visits.sum() == done
    tree.advance(0)
    tree.simulate(4)
    assert tree.result().simulations == 4


def test_unsuitable_spaces_and_arguments_are_refused() -> None:
    kind = type("Continuous", (hidden.Walk,), {"action_space": gymnasium.spaces.Box(-1.0, 1.0, (1,))})
    with pytest.raises(InvalidArgumentError, match=r"'Continuous' has actions of Box.*DiscretizeAction"):
        from_gymnasium(started(kind))
    kind = type("Many", (hidden.Walk,), {"action_space": gymnasium.spaces.MultiBinary(17)})
    with pytest.raises(InvalidArgumentError, match="131,072 actions"):
        from_gymnasium(started(kind))
    kind = type("Nested", (hidden.Walk,), {"observation_space": gymnasium.spaces.Dict({})})
    state = from_gymnasium(started(kind))
    assert UCT(10, normalize="tree", seed=1).run(state).simulations == 10
    with pytest.raises(InvalidArgumentError, match="networks take Box"):
        state.observation()
    with pytest.raises(InvalidArgumentError, match="discount must be above 0"):
        from_gymnasium(started(), discount=1.5)
    with pytest.raises(InvalidArgumentError, match=r"takes one gymnasium\.Env, not int"):
        from_gymnasium(3)
    env = started(recorded=True)
    for _ in range(12):
        env.step(1)
    with pytest.raises(InvalidArgumentError, match="episode of Walk is over"):
        from_gymnasium(env)


def test_wrap_chooses_the_adapter() -> None:
    assert wrap(started(), discount=0.9).play(1).discount == 0.9
    with pytest.raises(InvalidArgumentError, match="wrap takes an environment"):
        wrap(object())
    vector = gymnasium.vector.SyncVectorEnv([hidden.Walk, hidden.Walk])
    with pytest.raises(InvalidArgumentError, match="pass one of them"):
        wrap(vector)


def test_wrap_takes_the_name_of_an_openspiel_game() -> None:
    pytest.importorskip("pyspiel")
    assert wrap("tic_tac_toe").play(4).legal_actions() == [0, 1, 2, 3, 5, 6, 7, 8]
    with pytest.raises(InvalidArgumentError, match="did you mean tic_tac_toe"):
        wrap("tictactoe")


def test_wrap_refuses_parallel_environments() -> None:
    pettingzoo = pytest.importorskip("pettingzoo")
    kind = type("Both", (pettingzoo.ParallelEnv,), {"__init__": lambda self: None})
    with pytest.raises(InvalidArgumentError, match="Both cannot be searched: its agents act at the same time"):
        wrap(kind())


def test_environment_without_a_copy_names_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    state = from_gymnasium(started())
    game: EnvironmentGame = state._game

    def fail(token: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(game.snapshots, "restore", fail)
    with pytest.raises(GameContractError, match="Walk could not be copied: MemoryError"):
        state.play(1)


@pytest.mark.slow
def test_uct_balances_a_pole() -> None:
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=3)
    search, total, over = UCT(30, normalize="tree", max_depth=20, seed=1), 0.0, False
    while not over:
        _, reward, terminated, truncated, _ = env.step(search.run(from_gymnasium(env, seed=1)).action)
        total, over = total + float(reward), terminated or truncated
    assert total >= 400


@pytest.mark.parametrize("kind", [hidden.Walk, hidden.OwnNoise])
def test_state_in_place_is_taken_by_its_play(kind: Any) -> None:
    state = from_gymnasium(started(kind), seed=1)
    line = state.in_place()
    line.play(1)
    with pytest.raises(pondertree.UsageError, match=r"a state of in_place\(\) plays once"):
        line.play(1)
    with pytest.raises(pondertree.UsageError, match=r"a state of in_place\(\) plays once"):
        line.in_place()
    state.play(1), state.play(1)  # a value


@pytest.mark.parametrize("kind", [hidden.Walk, hidden.OwnNoise, hidden.Masked])
def test_legal_actions_are_a_new_list(kind: Any) -> None:
    state = from_gymnasium(started(kind, recorded=True), seed=1)
    for each in (state, state.play(1)):
        legal = each.legal_actions()
        each.legal_actions().clear()
        assert each.legal_actions() == legal


def test_wrong_finding_is_not_kept() -> None:
    env = started(hidden.LateNoise)
    state = from_gymnasium(env)
    for _ in range(9):
        state = state.play(1)
    with pytest.raises(GameContractError, match="drew a random number"):
        state.play(1)
    for _ in range(9):
        env.step(1)
    assert from_gymnasium(env).is_random


class Saving(hidden.Walk):
    def save(self, env: Any) -> Any:
        return env.unwrapped.place, env.unwrapped.steps

    def load(self, env: Any, token: Any) -> None:
        env.unwrapped.place, env.unwrapped.steps = token


def test_given_methods_do_not_keep_the_environment() -> None:
    env = record(Saving(), make=Saving)
    env.reset(seed=1)
    held = weakref.ref(env)
    assert from_gymnasium(env, snapshot=(env.unwrapped.save, partial(Saving.load, env.unwrapped))).play(1).total == 0.1
    del env
    gc.collect()
    assert held() is None


def test_environment_must_be_in_an_episode() -> None:
    env = gymnasium.make("CartPole-v1", max_episode_steps=5)
    with pytest.raises(pondertree.UsageError, match=r"CartPole-v1 has no state yet: call env.reset\(\) first"):
        from_gymnasium(env)
    for limit in (5, 500):
        env = gymnasium.make("CartPole-v1", max_episode_steps=limit)
        env.reset(seed=1)
        over = False
        while not over:
            from_gymnasium(env)
            _, _, terminated, truncated, _ = env.step(1)
            over = terminated or truncated
        with pytest.raises(InvalidArgumentError, match="the episode of CartPole-v1 is over: reset it first"):
            from_gymnasium(env)


def test_states_are_not_pickled() -> None:
    state = from_gymnasium(started())
    for each in (state, UCT(10, normalize="tree", seed=1).run(state)):
        with pytest.raises(pondertree.UsageError, match="a state of Walk cannot be pickled"):
            pickle.dumps(each)
    assert copy.deepcopy(state) is copy.copy(state) is state


def test_drawn_seed_is_known() -> None:
    env = started(hidden.OwnNoise)
    state = from_gymnasium(env)
    assert state.play(1).play(7).total == from_gymnasium(env, seed=state.seed).play(1).play(7).total
    assert state.play(1).play(7).seed == state.seed != from_gymnasium(env).seed


def test_actions_of_the_environment() -> None:
    space = gymnasium.spaces.MultiDiscrete([3, 2], start=[5, -1])
    kind = type(
        "Two", (hidden.Walk,), {"action_space": space, "step": lambda self, a: hidden.Walk.step(self, int(a[1]))}
    )
    state = from_gymnasium(started(kind))
    assert [state.environment_action(action).tolist() for action in range(6)] == [
        [first, second] for first in (5, 6, 7) for second in (-1, 0)
    ]
    assert state.action_to_string(4) == "[ 7 -1]"
    with pytest.raises(InvalidArgumentError, match="action must be"):
        state.environment_action(6)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda seen: (seen, 0.0, False, {}), r"Faulty.step\(.\) gave .*: it must return a tuple of 5"),
        (lambda seen: None, "gave None: it must return a tuple of 5"),
        (lambda seen: (seen, 0.0, False, False, {"action_mask": [1, 1, 1]}), "Faulty.step.*has shape"),
        (lambda seen: (seen, 0.0, False, False, {"action_mask": [0, 0]}), "Faulty.step.*allows no action"),
    ],
)
def test_faulty_steps_are_no_question_of_copies(answer: Any, message: str) -> None:
    kind = type("Faulty", (hidden.Walk,), {"step": lambda self, action: answer(self.seen())})
    with pytest.raises(GameContractError, match=message):
        from_gymnasium(started(kind))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random": "yes"}, "random must be"),
        ({"info": 3}, "info must be the dict"),
        ({"snapshot": 3}, "snapshot must be two functions"),
        ({"snapshot": (len,)}, "snapshot must be two functions"),
    ],
)
def test_wrong_arguments_are_refused(options: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        from_gymnasium(started(), **options)


def test_tree_of_samples_needs_its_seed(tmp_path: Any) -> None:
    env = gymnasium.make("FrozenLake-v1")
    env.reset(seed=1)
    state = from_gymnasium(env)
    tree = UCT(200, seed=1).tree(state)
    tree.simulate()
    tree.save(tmp_path / "tree.npz")
    with pytest.raises(InvalidArgumentError, match="; its seed= is 5: give it the one of the state that was planted"):
        pondertree.load_tree(tmp_path / "tree.npz", state=from_gymnasium(env, seed=5))
    loaded = pondertree.load_tree(tmp_path / "tree.npz", state=from_gymnasium(env, seed=state.seed))
    assert loaded.result().visits.tolist() == tree.result().visits.tolist()
