"""Planning with rewards: choices that do not depend on the scale of rewards, discounts, MaxUCT, and their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.chance_games import Wide
from tests.support.engine_alphazero import Table
from tests.support.planning import ScaledTable, Treasure, rescaled, visits_of_tree
from tests.support.search_helpers import fingerprint

import pondertree
from pondertree import UCT, AlphaZero, Gumbel, InvalidArgumentError
from pondertree.config import LogPuct, Puct
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import ConnectFour, Pig, TicTacToe
from pondertree.gpu.tree_shape import TreeShape, runs_on_device
from pondertree.match.spec import NamedSearch, read_player
from pondertree.reference import alphazero, uct
from pondertree.testing.tabular import TabularGame

GAMES = st.builds(
    TabularGame,
    seed=st.integers(0, 10**6),
    players=st.sampled_from([1, 1, 1, 3]),
    branching=st.sampled_from([(1, 4), (2, 7)]),
    depth=st.sampled_from([(2, 6), (4, 9)]),
    rewards=st.just(True),
    chance=st.sampled_from([0.0, 0.0, 0.4]),
)
BACKUPS = st.sampled_from(["mean", "max"])


def searches(backup: str, in_flight: int, seed: int, scale: float, constant: float, exact: bool) -> list[Any]:
    """Returns a search of each preset; its evaluator is on the scale of the rewards."""
    options: dict[str, Any] = {"normalize": "tree", "backup": backup, "in_flight": in_flight, "seed": seed}
    table = ScaledTable(Table(), scale, constant, exact)
    # No score of PUCT that a rational number could be equal to another way.
    return [
        UCT(150, **options),
        AlphaZero(table, 150, c_puct=1.2345678, fpu=("parent", 0.1357911), **options),
        AlphaZero(Rollout(), 150, c_puct=1.2345678, fpu=0.1357911, **options),
    ]


@settings(max_examples=60)
@given(
    game=GAMES,
    backup=BACKUPS,
    in_flight=st.sampled_from([1, 1, 4]),
    seed=st.integers(0, 2**32),
    exponent=st.integers(-30, 30),
)
def test_choices_are_equal_under_powers_of_two(
    game: TabularGame, backup: str, in_flight: int, seed: int, exponent: int
) -> None:
    backup, scale = backup if game.players == 1 else "mean", 2.0**exponent
    state = game.start()
    if state.is_terminal:
        return
    ones = searches(backup, in_flight, seed, 1.0, 0.0, False)
    others = searches(backup, in_flight, seed, scale, 0.0, False)
    for one, other in zip(ones, others, strict=True):
        ours, theirs = one.run(rescaled(state, exact=False)), other.run(rescaled(state, scale, exact=False))
        assert visits_of_tree(ours) == visits_of_tree(theirs)
        assert ours.action == theirs.action
        assert scale * ours.value == theirs.value


@settings(max_examples=60)
@given(
    game=GAMES,
    backup=BACKUPS,
    in_flight=st.sampled_from([1, 1, 4]),
    seed=st.integers(0, 2**32),
    constant=st.integers(-4096, 4096),
)
def test_choices_are_equal_under_a_constant_at_the_end(
    game: TabularGame, backup: str, in_flight: int, seed: int, constant: int
) -> None:
    backup = backup if game.players == 1 else "mean"
    state = game.start()
    if state.is_terminal:
        return
    ones = searches(backup, in_flight, seed, 1.0, 0.0, True)
    others = searches(backup, in_flight, seed, 1.0, float(constant), True)
    for one, other in zip(ones, others, strict=True):
        ours, theirs = one.run(rescaled(state)), other.run(rescaled(state, 1.0, float(constant)))
        assert visits_of_tree(ours) == visits_of_tree(theirs)
        assert ours.action == theirs.action
        assert theirs.value == pytest.approx(ours.value + constant, abs=1e-9)


@pytest.mark.parametrize("scale", [0.001, 1.0, 1000.0])
def test_normalized_uct_solves_a_puzzle_at_every_scale(scale: float) -> None:
    """Without it, the treasure is given up after one bad playout wherever rewards are large against c_param."""
    right = {
        normalize: sum(UCT(400, seed=seed, normalize=normalize).run(Treasure(3, scale)).action for seed in range(10))
        for normalize in (None, "tree")
    }
    assert right["tree"] == 10
    assert right[None] == {0.001: 10, 1.0: 4, 1000.0: 3}[scale]


def test_equal_values_leave_the_choice_to_exploration() -> None:
    """Of a tree with one value alone, all moves are worth 0, whatever that value is."""
    for constant in (0.0, 1.0, -1000.0):
        state = rescaled(TabularGame(3, players=1, rewards=True, depth=(4, 4), branching=(4, 4)).start(), 0.0)
        state = rescaled(state, 1.0, constant)
        visits = [int(n) for n in UCT(101, seed=1, normalize="tree").run(state).visits if n]
        assert max(visits) - min(visits) <= 1


# --- Discount ---------------------------------------------------------------------------------------------------------


def test_discounted_value_of_a_line_is_exact() -> None:
    """With one move to choose at every position: 20 behind three moves, g = r + discount * g."""

    class Forced(Treasure):
        def legal_actions(self) -> list[int]:
            return [1]

        def play(self, action: int) -> Treasure:
            return Forced(self.length, self.scale, self.steps + action, action == 0)

    for backup in ("mean", "max"):
        for search in (UCT(5, discount=0.5, backup=backup), AlphaZero(Rollout(), 5, discount=0.5, backup=backup)):
            result = search.run(Forced())
            assert result.q[1] == 20.0 * 0.5**2
            assert result.value == result.values[0] == 5.0


def test_discount_prefers_the_nearer_win_and_leaves_proofs_alone() -> None:
    state = TicTacToe().play(0).play(3).play(1).play(4)
    result = UCT(2000, seed=1, discount=0.5).run(state)
    assert (result.action, result.proven, result.value) == (2, 1, 1.0)
    unsolved = UCT(2000, seed=1, discount=0.5, solve=False).run(state)
    assert unsolved.action == 2
    assert unsolved.q[2] == 0.5
    assert not any(q >= 0.5 for action, q in enumerate(unsolved.q) if action != 2)


def test_nodes_of_a_discounted_search_hold_their_own_values() -> None:
    root = AlphaZero(Rollout(), 200, seed=2, discount=0.5, solve=False).run(ConnectFour()).root
    for child in root.children.values():
        assert child.total_value == -2.0 * child._edge["sum"]
        below = sum(grandchild._edge["sum"] for grandchild in child.children.values())
        assert child.total_value == pytest.approx(child.raw_value + below)


@pytest.mark.parametrize("preset", [UCT, lambda *args, **options: AlphaZero(Rollout(), *args, **options)])
def test_outcomes_are_not_discounted(preset: Any) -> None:
    """W of an edge below a chance node, and the value of a leaf recovered from it, have decisions' discounts."""
    tree = preset(600, seed=2, discount=0.5, solve=False).tree(Pig()).simulate(600)
    stack, chances = [tree.result().root], 0
    while stack:
        node = stack.pop()
        stack.extend(child for child in node.children.values() if child.visit_count)
        if node.parent is None or node.is_terminal or node.visit_count < 2:
            continue
        chances += node.parent.is_chance
        own = 0.0 if node.is_chance else node.raw_value
        children = [child for child in node.children.values() if child.visit_count]
        below = sum(child._edge["sum"] for child in children)
        assert node.total_value == pytest.approx(own + below)
        discount = 1.0 if node.parent.is_chance else 0.5
        sign = 1.0 if node._owner == node.parent._owner else -1.0
        assert node._edge["sum"] == pytest.approx(sign * discount * (own + below))
    assert chances > 10


def test_values_after_an_outcome_are_those_of_the_reference() -> None:
    options: dict[str, Any] = {"seed": 2, "discount": 0.75, "in_flight": 1}
    search = alphazero.MCTS(alphazero.Rollout(), dirichlet_epsilon=0.0, **options)
    theirs = search.tree(Pig())
    search.simulate(theirs, 100)
    ours = AlphaZero(Rollout(), 100, **options).tree(Pig()).simulate(100)
    for action in (0, 3):
        search.advance(theirs, action)
        ours.advance(action)
    search.simulate(theirs, 20)
    ours.simulate(20)
    assert ours.result().value == search.result(theirs).value


def test_values_per_player_are_discounted() -> None:
    game = TabularGame(11, players=3, rewards=True, depth=(3, 6), branching=(2, 3))
    ours = UCT(200, seed=1, discount=0.5).run(game.start())
    assert ours.values[0] == pytest.approx(ours.value)
    for player, value in enumerate(ours.values):
        assert value == pytest.approx(mean_of(ours.root, player, 0.5), abs=1e-9)


def mean_of(node: pondertree.Node, player: int, discount: float) -> float:
    """Returns the mean backed up value of a node for a player, from the states below it."""
    return total_of(node, player, discount) / node.visit_count


def total_of(node: pondertree.Node, player: int, discount: float) -> float:
    total, own = 0.0, node.visit_count
    for child in node.children.values():
        own -= child.visit_count
        total += child.visit_count * child.state.rewards()[player] + discount * total_of(child, player, discount)
    if own and node.parent is not None and not node.is_terminal:
        returns = node._view.columns()["node_values"].reshape(-1, 3)
        total += own * float(returns[node._index, player])
    return total


# --- MaxUCT -----------------------------------------------------------------------------------------------------------


def test_maximum_is_the_best_line_and_not_the_mean() -> None:
    for normalize in (None, "tree"):
        best = UCT(400, seed=1, backup="max", normalize=normalize, c_param=20.0).run(Treasure())
        assert (best.action, best.value) == (1, 20.0)
        assert best.root.q_value == 20.0
        assert best.root.children[1].q_value == 20.0
    assert UCT(400, seed=1, c_param=20.0).run(Treasure()).value < 20.0


@pytest.mark.parametrize("in_flight", [1, 4])
def test_maximum_plays_the_move_of_its_value(in_flight: int) -> None:
    """Also where another move has more visits, as a wide exploration gives it."""
    others = 0
    for seed in range(60):
        state = TabularGame(seed, players=1, rewards=True, chance=0.3, depth=(3, 7), branching=(3, 5)).start()
        result = UCT(60, seed=seed, backup="max", c_param=8.0, in_flight=in_flight).run(state)
        assert result.q[result.action] == result.value == np.nanmax(result.q)
        others += result.visits[result.action] < max(result.visits)
        reference = uct.MCTS(60, c_param=8.0, seed=seed, backup="max", in_flight=in_flight).run(state)
        assert result.action == reference.action
    assert others > 0


def test_chance_nodes_keep_the_mean() -> None:
    """W of an edge to a chance node is N times the mean of its outcomes, not their maximum."""
    game = TabularGame(8, players=1, rewards=True, chance=0.6, depth=(4, 8), branching=(2, 3))
    chances = 0
    stack = [UCT(500, seed=3, backup="max").run(game.start()).root]
    while stack:
        node = stack.pop()
        children = [child for child in node.children.values() if child.visit_count]
        stack.extend(children)
        if node.parent is None or not children or node.is_terminal:
            continue
        means = [(child._edge["sum"] / child.visit_count, child.visit_count) for child in children]
        chances += node.is_chance
        value = sum(q * n for q, n in means) / sum(n for _, n in means) if node.is_chance else max(q for q, _ in means)
        expected = node.state.rewards()[0] + value
        assert node._edge["sum"] / node.visit_count == pytest.approx(expected)
        assert node.q_value == pytest.approx(value)
    assert chances > 10


# --- Everything else that a search does -------------------------------------------------------------------------------


PRESETS: list[Any] = [
    lambda **options: UCT(300, seed=5, **options),
    lambda **options: AlphaZero(Rollout(), 300, seed=5, **options),
]
OPTIONS = [
    {"normalize": "tree"},
    {"discount": 0.75},
    {"normalize": "tree", "discount": 0.75, "backup": "max"},
]
STATE = TabularGame(21, players=1, rewards=True, depth=(6, 12), branching=(2, 4), chance=0.2).start()


@pytest.mark.parametrize("make", PRESETS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("in_flight", [1, 4])
def test_saved_tree_continues_bit_for_bit(make: Any, options: dict[str, Any], in_flight: int, tmp_path: Path) -> None:
    search = make(in_flight=in_flight, **options)
    whole = search.tree(STATE).simulate(120).simulate(180)
    tree = make(in_flight=in_flight, **options).tree(STATE).simulate(120)
    tree.save(tmp_path / "tree")
    again = pondertree.load_tree(tmp_path / "tree", search=make(in_flight=in_flight, **options), state=STATE)
    assert again.result().value == tree.result().value
    assert fingerprint(again.simulate(180).result()) == fingerprint(whole.result())
    with pytest.raises(InvalidArgumentError, match=r"discount|backup|normalize"):
        pondertree.load_tree(tmp_path / "tree", search=make(in_flight=in_flight), state=STATE)


@pytest.mark.parametrize("make", PRESETS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("in_flight", [1, 4])
def test_failed_batch_leaves_tree_and_bounds_as_they_were(make: Any, options: dict[str, Any], in_flight: int) -> None:
    class Failing:
        calls = 0

        def evaluate_states(self, states: Any) -> Any:
            self.calls += 1
            if self.calls % 3 == 0:
                raise KeyboardInterrupt
            return Table().evaluate_states(states)

    options = {"in_flight": in_flight, "seed": 5, **options}
    is_uct = isinstance(make(), UCT)
    whole: Any = UCT(300, evaluator=Table(), **options) if is_uct else AlphaZero(Table(), 300, **options)
    failing: Any = UCT(300, evaluator=Failing(), **options) if is_uct else AlphaZero(Failing(), 300, **options)
    tree, failures = failing.tree(STATE), 0
    while tree.result().simulations < 300:
        before = tree.result()
        try:
            tree.simulate(300 - tree.result().simulations)
        except KeyboardInterrupt:
            failures += 1
        else:
            continue
        after = tree.result()
        assert after.simulations >= before.simulations
    assert failures > 2
    assert fingerprint(tree.result()) == fingerprint(whole.tree(STATE).simulate(300).result())


@pytest.mark.parametrize("options", OPTIONS)
def test_threads_do_not_change_trees(options: dict[str, Any]) -> None:
    for state in (STATE, ConnectFour()):
        given = options if state is STATE else {**options, "backup": "mean"}
        one, many = (UCT(200, seed=5, in_flight=8, threads=threads, **given).run([state] * 3) for threads in (1, 4))
        assert [fingerprint(result) for result in one] == [fingerprint(result) for result in many]


def test_reused_tree_has_the_bounds_of_its_edges() -> None:
    tree = UCT(300, seed=5, normalize="tree").tree(STATE).simulate(300)
    low, high = tree.result()._view.columns()["bounds"]
    tree.advance(tree.result().action)
    bounds = tree.result()._view.columns()["bounds"].tolist()
    means: list[float] = []
    stack = [tree.result().root]
    for node in stack:
        visited = [child for child in node.children.values() if child.visit_count]
        stack.extend(visited)
        if not node.is_chance:
            means.extend(child._edge["sum"] / child.visit_count for child in visited)
    assert bounds == [min(means), max(means)]
    assert [low, high] != bounds


@pytest.mark.parametrize(("seed", "expected"), [(1, (0.25, 1.0)), (5, (0.0, 2 / 3))])
def test_bounds_are_those_of_decisions(seed: int, expected: tuple[float, float]) -> None:
    """The outcomes of the wheel are worth 0 and 1, to spin it the mean of those that came up, and to leave it 0.25.

    With one seed 1 comes up first, so that the mean is never below 1/2; with the other 0, so that it is at most 2/3.
    """
    columns = UCT(100, seed=seed, normalize="tree").tree(Wide(4)).simulate(100).result()._view.columns()
    assert tuple(columns["bounds"]) == expected
    search = uct.MCTS(100, seed=seed, normalize="tree")
    theirs = search.tree(Wide(4))
    search.simulate(theirs, 100)
    assert (theirs.low, theirs.high) == expected


def test_defaults_are_the_search_without_planning() -> None:
    for state in (ConnectFour(), STATE):
        plain = UCT(200, seed=5).run(state)
        defaults: Any = {"normalize": None, "discount": 1.0, "backup": "mean"}
        assert fingerprint(plain) == fingerprint(UCT(200, seed=5, **defaults).run(state))
        assert plain._view.columns()["bounds"].tolist() == [float("inf"), float("-inf")]


# --- Limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [UCT, lambda **options: AlphaZero(Uniform(), **options)])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalize": "node"}, 'normalize must be "tree" or None'),
        ({"normalize": True}, "normalize must be"),
        ({"backup": "min"}, 'backup must be "mean" or "max"'),
        ({"discount": 0.0}, "discount must be above 0 and at most 1"),
        ({"discount": 1.5}, "discount must be above 0 and at most 1"),
        ({"discount": float("nan")}, "discount must be a finite number"),
        ({"discount": None}, "discount must be a number"),
    ],
)
def test_bad_options_are_refused(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make(**options)


@pytest.mark.parametrize("make", [UCT, lambda **options: AlphaZero(Uniform(), **options)])
@pytest.mark.parametrize("state", [ConnectFour(), CoinRow(), TabularGame(3, players=3).start()])
def test_maximum_is_for_one_player(make: Any, state: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r'backup="max" is for games of one player.* has [23]'):
        make(backup="max").run(state)


def test_gumbel_search_of_a_game_needs_a_discount_above_0() -> None:
    with pytest.raises(InvalidArgumentError, match="discount must be above 0"):
        Gumbel(Uniform(), discount=0.0).run(ConnectFour())


def test_normalization_of_results_alone_is_allowed() -> None:
    result = UCT(3000, seed=1, normalize="tree").run(TicTacToe().play(0).play(3).play(1).play(4))
    assert result.action == 2


def test_device_kernel_is_for_searches_without_planning() -> None:
    info = pondertree.game.describe(ConnectFour())
    assert runs_on_device(AlphaZero(Uniform(), solve=False).config(info)) == runs_on_device(
        AlphaZero(Uniform(), solve=False, discount=0.5).config(info)
    )
    assert not runs_on_device(AlphaZero(Uniform(), solve=False, backup="max").config(info))
    assert TreeShape(64, 100, 7, Puct(), is_game=True).kernel == "puct.h"
    assert TreeShape(64, 100, 7, Puct(normalize="tree"), is_game=True).kernel is None
    assert TreeShape(64, 100, 7, Puct(), discount=0.5, is_game=True).kernel is None
    assert TreeShape(64, 100, 7, LogPuct(normalize="tree"), discount=0.5).kernel == "puct.h"


def test_players_of_matches_take_the_options() -> None:
    player = read_player("uct:num_simulations=9,normalize=tree,discount=0.9,backup=max")
    assert isinstance(player, NamedSearch)
    search: Any = player.search
    assert (search.normalize, search.discount, search.backup) == ("tree", 0.9, "max")
    with pytest.raises(InvalidArgumentError, match="backup must be"):
        read_player("uct:backup=most")
