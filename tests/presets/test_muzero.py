"""MuZero as users call it: roots, batches, kept trees, players; and right where the right answer is known."""

from __future__ import annotations

import contextlib
import inspect
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_latent import Pair
from tests.support.models import TableModel
from tests.support.trees import PythonGame, after, every_node, fingerprint, random_position
from tests.support.worlds import Decisions, Guess, Rules, Wide

import pondertree
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.reference import muzero

# Most models here do not say how many players there are: with one it does not matter.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

ONE = np.array([1])


def numbered(*numbers: int) -> list[Any]:
    """Observations of the models of `tests.support.models`, which look at the first number."""
    return [np.array([number]) for number in numbers]


@dataclass(frozen=True)
class Seeing(TableModel):
    """A table for observations of games, which notes what it was shown."""

    seen: list[Any] = field(default_factory=list)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        self.seen.append(np.array(observations))
        keys = [hash(row.tobytes()) % 1_000_003 for row in np.asarray(observations, dtype=np.float32)]
        hidden = np.array(keys, dtype=np.int64)[:, None]
        _, logits, values, _ = self.rows(hidden)
        return hidden, logits, values


# --- Names ------------------------------------------------------------------------------------------------------


def test_names_and_defaults() -> None:
    search = pondertree.MuZero(TableModel())
    promised = {
        "num_simulations": 50,
        "pb_c_base": 19652,
        "pb_c_init": 1.25,
        "discount": 0.997,
        "root_dirichlet_alpha": 0.3,
        "root_exploration_fraction": 0.25,
        "num_players": 1,
        "normalize": "node",
        "time_limit": None,
        "max_nodes": None,
        "max_memory": None,
        "in_flight": 1,
        "threads": 1,
        "solve": True,
    }
    assert {name: getattr(search, name) for name in promised} == promised
    assert isinstance(search.seed, int)
    names = list(inspect.signature(pondertree.MuZero).parameters)
    assert names[:9] == ["model", *list(promised)[:8]], "in the order of the table of presets"
    assert pondertree.MuZero.default_temperature == 1.0
    changed = pondertree.MuZero(TableModel(), 7, 5.0, 0.5, 0.9, 0.1, 0.2, 2, None, seed=3)
    assert repr(changed).endswith("num_simulations=7, discount=0.9, seed=3)")
    assert (changed.num_players, changed.normalize, changed.root_exploration_fraction) == (2, None, 0.2)


# --- Roots ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello, Chess])
@pytest.mark.parametrize("wrap", [False, True])
def test_a_state_says_everything_itself(start: Any, wrap: bool) -> None:
    """What it looks like, what is legal, whose turn it is, and that there are two players."""
    states = [random_position(start, plies, 1) for plies in (0, 3, 8)]
    model = Seeing(start().num_actions)
    search = pondertree.MuZero(model, 20, discount=1.0, seed=1)
    results = search.run([PythonGame(state) for state in states] if wrap else states)
    assert len(model.seen) == 1, "all roots in one call"
    assert np.array_equal(model.seen[0], np.stack([state.observation() for state in states]))
    for state, result in zip(states, results, strict=True):
        assert sorted(result.root.children) == sorted(state.legal_actions())
        assert result.root.to_play == state.to_play
        assert all(child.to_play == 1 - state.to_play for child in result.root.children.values())
        assert result.move == state.action_to_string(result.action)
        assert result.visits.sum() == result.simulations == 20
        assert result.visits.shape == result.policy.shape == result.q.shape == (state.num_actions,)
        [told] = pondertree.MuZero(model, 20, discount=1.0, num_players=2).run(
            observation=[state.observation()],
            legal_actions=[state.legal_actions()],
            to_play=[state.to_play],
            seeds=[7],
        )
        assert fingerprint(told) == fingerprint(pondertree.MuZero(model, 20, discount=1.0).run(state, seeds=7))


def test_a_board_of_python_chess() -> None:
    chess = pytest.importorskip("chess")
    board = chess.Board()
    board.push_san("e4")
    search = pondertree.MuZero(Seeing(4672), 20, seed=1)
    result = search.run(board)
    assert chess.Move.from_uci(result.move) in board.legal_moves
    assert result.root.to_play == 1
    assert search.search(board) in board.legal_moves
    move, policy = search.get_policy(board, temperature=0.0, add_noise=True)
    assert move in board.legal_moves
    assert policy.sum() == pytest.approx(1.0)
    tree = search.tree(board)
    tree.simulate(10)
    tree.advance(move)
    assert tree.state.to_play == 0
    assert board.fen().startswith("rnbqkbnr/pppppppp/8/8/4P3"), "the board stays as it is"


def test_observations_in_every_form() -> None:
    model = TableModel(4)
    search = pondertree.MuZero(model, 15, num_players=2)
    alone = search.run(observation=np.array([3]), legal_actions=[2, 0], to_play=1, seeds=5)
    assert isinstance(alone, pondertree.SearchResult)
    assert list(alone.root.children) in ([2, 0], [0, 2])
    assert alone.root.to_play == 1
    mask = [True, False, True, False]
    same = [
        search.run(observation=[3], legal_actions=np.array([2, 0]), to_play=np.int64(1), seeds=5),
        *search.run(observation=[[3]], legal_actions=[[2, 0]], to_play=[1], seeds=[5]),
        *search.run(observation=[np.array([3])], legal_actions=[(2, 0)], to_play=1, seeds=[5]),
        *search.run(observation=np.array([[3]]), legal_actions=[[2, 0]], to_play=[1], seeds=[5]),
    ]
    assert {fingerprint(result) for result in same} == {fingerprint(alone)}
    masked = [
        search.run(observation=[3], legal_actions=mask, to_play=1, seeds=5),
        search.run(observation=[3], legal_actions=np.array(mask), to_play=1, seeds=5),
        *search.run(observation=np.array([[3]]), legal_actions=np.array([mask]), to_play=[1], seeds=[5]),
        search.run(observation=[3], legal_actions=[0, 2], to_play=1, seeds=5),
    ]
    assert len({fingerprint(result) for result in masked}) == 1, "a mask lists actions from the lowest on"
    everything = search.run(observation=[3], seeds=5)
    assert fingerprint(everything) == fingerprint(search.run(observation=[3], legal_actions=range(4), seeds=5))
    assert search.run(observation=[]) == []
    mixed = search.run(observation=numbered(3, 4), legal_actions=[None, [1]])
    assert [len(result.root.children) for result in mixed] == [4, 1]


def test_a_forest_takes_an_array_of_observations() -> None:
    """The same as a list of its rows; what the model does with them is not seen by the caller."""

    class Careless(TableModel):
        def initial_inference(self, observations: Any) -> tuple[Any, ...]:
            answer = super().initial_inference(np.array(observations))
            observations[:] = -1
            return answer

    rows = np.array([[3], [4], [3]])
    listed = pondertree.MuZero(TableModel(4), 30, seed=2).forest(observation=list(rows)).simulate()
    search = pondertree.MuZero(Careless(4), 30, seed=2)
    forest = search.forest(observation=rows).simulate()
    assert rows.tolist() == [[3], [4], [3]]
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in listed.results()]
    assert len(forest) == 3
    assert forest.state(1).observation.tolist() == [4]
    forest.reset(1, observation=np.array([7]))
    forest.advance(0, 2, observation=np.array([8]))
    assert [forest.state(index).observation.tolist() for index in range(3)] == [[8], [7], [3]]
    assert forest.state(-1) is forest.state(2)
    assert [root.observation.tolist() for root in forest._states] == [[8], [7], [3]]
    assert [root.observation.tolist() for root in forest._states[1:]] == [[7], [3]]
    seeded = search.forest(observation=rows, seeds=[5, 6, 5]).simulate().results()
    assert fingerprint(seeded[0]) == fingerprint(seeded[2])
    assert [result.seed for result in seeded] == [5, 6, 5]


@pytest.mark.parametrize(
    ("form", "also"),
    [
        (lambda rows: rows.astype(">i4"), {}),
        (lambda rows: np.asfortranarray(np.repeat(rows, 3, axis=1))[:, ::-1], {}),
        (lambda rows: rows.astype(object), {}),
        (lambda rows: rows, {"to_play": 0}),
        (lambda rows: rows, {"to_play": [0, 0, 0]}),
        (lambda rows: rows, {"legal_actions": [None] * 3}),
        (lambda rows: rows, {"legal_actions": np.ones((3, 4), dtype=bool)}),
    ],
)
def test_an_array_is_the_list_of_its_rows(form: Any, also: Any) -> None:
    rows = form(np.array([[3], [4], [3]]))
    search = pondertree.MuZero(TableModel(4), 30)
    both = [
        search.forest(observation=given, seeds=[1, 2, 3], **also).simulate().results() for given in (rows, list(rows))
    ]
    assert [fingerprint(result) for result in both[0]] == [fingerprint(result) for result in both[1]]


def test_an_array_of_observations_that_is_none() -> None:
    search = pondertree.MuZero(TableModel(4), 30, seed=2)
    with pytest.raises(InvalidArgumentError, match=r"an array with one axis is one of them: use tree\(\)"):
        search.forest(observation=np.array([3, 4]))
    for empty in (np.zeros((0, 1)), []):
        with pytest.raises(InvalidArgumentError, match="observation is empty: give at least one"):
            search.forest(observation=empty)
    with pytest.raises(InvalidArgumentError, match="legal_actions has 2 entries for 3 observations"):
        search.forest(observation=np.array([[3], [4], [3]]), legal_actions=[0, 1])

    class Picture(TableModel):
        def initial_inference(self, observations: Any) -> tuple[Any, ...]:
            if observations.ndim != 4:
                raise ValueError(f"expected 4 dimensions, not {observations.ndim}")
            return super().initial_inference(observations[:, 0, 0])

    with pytest.raises(EvaluationError, match=r"read as 3 observations of shape \(8, 8\); for one of them use tree"):
        pondertree.MuZero(Picture(4), 30, seed=2).forest(observation=np.zeros((3, 8, 8)))


def test_search_and_get_policy_take_observations() -> None:
    search = pondertree.MuZero(TableModel(4), 30, seed=2)
    assert search.search(observation=[3], legal_actions=[1, 2]) in (1, 2)
    action, policy = search.get_policy(observation=[3], legal_actions=[1, 2], temperature=0.0)
    assert action == policy.argmax()
    assert policy[[0, 3]].tolist() == [0.0, 0.0]
    tree = search.tree(observation=[3], legal_actions=[1])
    assert tree.simulate(5).result().action == 1
    forest = search.forest(observation=numbered(3, 4), seeds=[1, 2])
    assert len(forest.simulate(5).results()) == 2


# --- Batches ----------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.data())
def test_a_seeded_row_depends_on_nothing_else(data: st.DataObject) -> None:
    """Neither on its neighbours nor on its place nor on threads."""
    draw = data.draw
    model = TableModel(draw(st.sampled_from([2, 6, 300])), draw(st.sampled_from([3, 1001])), largest_reward=1.0)
    rows = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 99)), min_size=1, max_size=6))
    options = {
        "in_flight": draw(st.sampled_from([1, 3])),
        "normalize": draw(st.sampled_from(["node", "tree", None])),
    }
    noise = draw(st.booleans())
    counts = [draw(st.sampled_from([1, 9, 30])) for _ in rows]
    batched = [
        list(
            map(
                fingerprint,
                pondertree.MuZero(model, counts, threads=threads, **options).run(
                    observation=numbered(*(number for number, _ in rows)),
                    seeds=[seed for _, seed in rows],
                    add_noise=noise,
                ),
            )
        )
        for threads in (1, 2, 4)
    ]
    alone = [
        fingerprint(pondertree.MuZero(model, count, **options).run(observation=[number], seeds=seed, add_noise=noise))
        for count, (number, seed) in zip(counts, rows, strict=True)
    ]
    assert batched == [alone] * 3


def test_the_same_seed_gives_the_same_tree() -> None:
    model = TableModel(5, levels=3)

    def trees(seed: int) -> list[Any]:
        search = pondertree.MuZero(model, 40, seed=seed)
        calls = [search.run(observation=numbered(1, 1), add_noise=True) for _ in range(2)]
        return [fingerprint(result) for results in calls for result in results]

    assert trees(3) == trees(3)
    assert trees(3) != trees(4)
    assert len(set(trees(3))) == 4, "rows and calls draw their own numbers"
    drawn = pondertree.MuZero(model, 40)
    result = drawn.run(observation=ONE)
    assert fingerprint(pondertree.MuZero(model, 40, seed=result.seed).run(observation=ONE)) == fingerprint(result)


def test_one_call_of_the_model_for_a_leaf_of_each_tree() -> None:
    model = Decisions(1)
    sizes: list[int] = []

    def noting(hidden: Any, actions: Any) -> Any:
        assert actions.dtype == np.int64
        sizes.append(len(actions))
        return model.recurrent_inference(hidden, actions)

    both = pondertree.models.FunctionModel(model.initial_inference, noting)
    pondertree.MuZero(both, 10, seed=1).run(observation=numbered(0, 1, 2, 3))
    assert sizes == [4] * 10
    sizes.clear()
    pondertree.MuZero(both, 10, in_flight=3, seed=1).run(observation=numbered(0, 1))
    assert sum(sizes) == 20
    assert 2 < max(sizes) <= 6


# --- Trees that are kept ----------------------------------------------------------------------------------------


def test_a_tree_of_states_advances_by_itself() -> None:
    model = Seeing(7)
    tree = pondertree.MuZero(model, seed=1).tree(ConnectFour())
    tree.simulate(60)
    action = tree.result().action
    kept = tree.result().root.children[action]
    state = ConnectFour().play(action)
    tree.advance(action)
    result = tree.result()
    assert tree.state == state
    assert np.array_equal(model.seen[-1], state.observation()[None]), "the new root is seen as it is"
    assert result.root.visit_count == kept.visit_count
    assert {a: child.visit_count for a, child in result.root.children.items() if child.visit_count} == {
        a: child.visit_count for a, child in kept.children.items() if child.visit_count
    }
    assert result.simulations == 0
    _, logits, values = model.initial_inference(state.observation()[None])
    assert result.root.raw_value == values[0]
    weights = np.exp(logits[0].astype(np.float64))
    assert [result.root.children[a].prior for a in range(7)] == pytest.approx(weights / weights.sum(), abs=1e-6)
    tree.simulate(10)
    assert tree.result().simulations == 10
    assert tree.result().visits.sum() == kept.visit_count - 1 + 10


def test_a_tree_of_observations_is_told_what_comes_next() -> None:
    """With an observation and without one; what is legal may change, and what is no longer legal goes."""
    model = TableModel(5, largest_reward=1.0)
    for told in (
        {},
        {"observation": np.array([77])},
        {"observation": [77], "legal_actions": [0, 3], "to_play": 1},
        {"legal_actions": [True, False, False, True, False]},
    ):
        tree = pondertree.MuZero(model, num_players=2, seed=2).tree(observation=ONE)
        tree.simulate(60)
        action = tree.result().action
        kept = tree.result().root.children[action]
        tree.advance(action, **told)
        root = tree.result().root
        legal = [0, 3] if "legal_actions" in told else list(range(5))
        assert sorted(root.children) == legal
        assert root.to_play == 1
        assert {a: root.children[a].visit_count for a in legal} == {
            a: kept.children[a].visit_count if a in kept.children else 0 for a in legal
        }
        assert root.visit_count == 1 + sum(child.visit_count for child in root.children.values())
        if "observation" in told:
            assert root.raw_value == model.row(77)[2]
        else:
            assert root.raw_value == kept.raw_value, "the model's own idea of the position"
        assert tree.simulate(20).result().visits.sum() == root.visit_count - 1 + 20


def test_whose_turn_it_is_after_a_move() -> None:
    """The model's word counts, unless the caller knows better; then what was seen from the wrong side is dropped."""
    model = TableModel(4, discounts=(1.0, -1.0), seed=2)
    to_play = set()
    for action in range(4):
        for observation in (None, [9]):
            for wrong in (False, True):
                tree = pondertree.MuZero(model, num_players=2, seed=1).tree(
                    observation=ONE, legal_actions=[action], to_play=1
                )
                kept = tree.simulate(20).result().root.children[action]
                assert kept.visit_count > 1
                to_play.add(kept.to_play)
                told = {"to_play": 1 - kept.to_play} if wrong else {}
                tree.advance(action, observation=observation, **told)
                root = tree.result().root
                assert root.to_play == (1 - kept.to_play if wrong else kept.to_play)
                assert root.visit_count == (1 if wrong else kept.visit_count)
    assert to_play == {0, 1}


def test_a_move_never_tried_begins_anew() -> None:
    """From the hidden state of what is seen; without that, of what the model imagines."""
    model = TableModel(9)
    for observation in ([5], None):
        tree = pondertree.MuZero(model, seed=1).tree(observation=ONE)
        tree.simulate(3)
        never = int(np.flatnonzero(tree.result().visits == 0)[0])
        tree.advance(never, observation=observation)
        assert tree.result().root.visit_count == 1
        result = tree.simulate(4).result()
        assert result.visits.sum() == 4
        hidden = 5 if observation else 31 + never + 7
        for action in np.flatnonzero(result.visits).tolist():
            assert result.root.children[action].raw_value == model.row(hidden * 31 + action + 7)[2]


def test_reset_puts_another_root_in_its_place() -> None:
    forest = pondertree.MuZero(TableModel(4), 20, num_players=2, seed=1).forest(observation=numbered(1, 2))
    forest.simulate()
    other = fingerprint(forest.result(1))
    forest.reset(0, observation=[9], legal_actions=[3, 1], to_play=1)
    assert forest.result(0).simulations == 0
    assert forest.result(0).root.to_play == 1
    assert sorted(forest.result(0).root.children) == [1, 3]
    assert fingerprint(forest.result(1)) == other
    forest.simulate([20, 0])
    assert forest.result(0).root.raw_value == TableModel(4).row(9)[2]
    of_states = pondertree.MuZero(Seeing(7), 20, seed=1).tree(ConnectFour())
    of_states.simulate()
    of_states.reset(ConnectFour().play(3))
    assert of_states.simulate().result().root.to_play == 1
    with pytest.raises(pondertree.InvalidArgumentError, match="give a state"):
        of_states.reset(observation=np.zeros((3, 6, 7)))


class Jackpot:
    """Action 0 of the root pays 100 and leads where rewards are small; the order there depends on the scale."""

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        hidden = np.asarray(observations).astype(np.int64)
        return hidden, *self.predict(hidden)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        depth = hidden_states[:, 0] + 1
        reward = np.where(depth == 1, np.where(actions == 0, 100.0, -100.0), np.where(actions == 2, 0.5, 0.0))
        hidden = depth[:, None]
        return hidden, reward, *self.predict(hidden)

    def predict(self, hidden: Any) -> tuple[Any, Any]:
        return np.tile([1.0, 0.5, 0.0], (len(hidden), 1)), np.zeros(len(hidden))


def test_the_bounds_of_a_tree_are_forgotten_when_it_moves_on() -> None:
    class Frozen(muzero.MCTS):
        """Keeps the bounds."""

        def advance(self, tree: Any, action: int, **about: Any) -> None:
            low, high = tree.low, tree.high
            super().advance(tree, action, **about)
            tree.low, tree.high = low, high

    visits = []
    for reference in (muzero.MCTS, Frozen):
        search = reference(Jackpot(), normalize="tree", seed=1)
        tree = search.tree(observation=[0])
        search.simulate(tree, 40)
        search.advance(tree, 0)
        search.simulate(tree, 60)
        visits.append(search.result(tree).visits)
    ours = pondertree.MuZero(Jackpot(), normalize="tree", seed=1).tree(observation=[0])
    ours.simulate(40)
    ours.advance(0)
    ours.simulate(60)
    assert dict(enumerate(ours.result().visits.tolist())) == visits[0]
    assert visits[0] != visits[1], "on the old scale it would have chosen otherwise"


# --- Nodes, slots, the pool -------------------------------------------------------------------------------------


def slots_of(forest: Any) -> list[int]:
    views = [result._view for result in forest.results()]
    return [view.node(index)[8] for view in views for index in range(view.num_nodes)]


def test_nodes_have_rewards_slots_and_values_that_add_up() -> None:
    model = TableModel(4, largest_reward=2.0, discounts=(0.0, 0.5, -0.9))
    result = pondertree.MuZero(model, 120, num_players=2, seed=4).run(observation=ONE)
    below = [node for node in every_node(result.root) if node.visit_count and node.parent is not None]
    assert len(below) == 120
    hidden = {id(result.root): 1}
    for node in below:
        assert node.parent is not None
        hidden[id(node)] = key = (hidden[id(node.parent)] * 31 + node.action + 7) % 1_000_003
        reward, _, value, discount = model.row(key)
        assert node.reward == reward
        assert node.raw_value == value
        assert node.to_play == (1 - node.parent.to_play if discount < 0 else node.parent.to_play)
        flip = 1.0 if node.to_play == node.parent.to_play else -1.0
        edge = node.visit_count * reward + flip * abs(discount) * node.total_value
        assert node._edge["sum"] == pytest.approx(edge, abs=1e-9), "W is reward + discount * value, for who chose"
        assert node.in_flight == 0
        assert not node.is_terminal
        assert node.proven is None
    for node in every_node(result.root):
        children = node.children.values()
        if node.visit_count:
            assert node.visit_count == 1 + sum(child.visit_count for child in children)
            assert sum(child.prior for child in children) == pytest.approx(1.0)
            sums = sum(child._edge["sum"] for child in children)
            assert node.total_value == pytest.approx(node.raw_value + sums)
        else:
            assert (node.total_value, node.q_value, node.reward, node.slot) == (0.0, 0.0, 0.0, None)
    assert result.value == pytest.approx(result.root.q_value)
    for action, child in result.root.children.items():
        if child.visit_count:
            assert result.q[action] == pytest.approx(child._edge["sum"] / child.visit_count)
    with pytest.raises(AttributeError):
        result.root.slot = 3  # type: ignore[misc]


def test_slots_are_unique_in_a_forest() -> None:
    forest = pondertree.MuZero(TableModel(4), seed=1, in_flight=2).forest(observation=numbered(1, 2, 3))
    for _ in range(3):
        forest.simulate(30)
        slots = slots_of(forest)
        assert len(slots) == len(set(slots)) == sum(result._view.num_nodes for result in forest.results())
        forest.advance(1, forest.result(1).action)
        forest.reset(2, observation=[8])


@pytest.mark.parametrize("kind", ["state", "told", "imagined"])
def test_the_pool_stays_small_over_two_hundred_moves(kind: str) -> None:
    """Slots are given back: the pool holds what the trees hold, and never much more."""
    states = kind == "state"
    model: Any = Rules([ConnectFour()]) if states else Decisions(1)
    search = pondertree.MuZero(model, seed=1)
    forest = search.forest([ConnectFour()] * 2) if states else search.forest(observation=numbered(1, 2))
    world = forest._world
    largest = 0
    for move in range(200):
        forest.simulate(12)
        slots = slots_of(forest)
        assert len(slots) == len(set(slots))
        assert max(slots) < world._pool.capacity
        largest = max(largest, len(slots))
        for tree in range(2):
            action = forest.result(tree).action
            if states and forest.state(tree).play(action).is_terminal:
                forest.reset(tree, ConnectFour())
            elif states:
                forest.advance(tree, action)
            elif move % 50 == 49:
                forest.reset(tree, observation=[move % 5])
            else:
                forest.advance(tree, action, **({"observation": [move % 5]} if kind == "told" else {}))
    assert world._pool.capacity <= max(128, 2 * (largest + 2 * 13))
    assert world.hidden_bytes == world._pool.capacity * 8
    for tree in range(2):
        forest.reset(tree, **({"state": ConnectFour()} if states else {"observation": [0]}))
    assert len(slots_of(forest)) == 2


@dataclass
class Faltering:
    """A table of which one call in so many fails."""

    model: Any
    every: int
    calls: int = 0

    def initial_inference(self, observations: Any) -> Any:
        return self.model.initial_inference(observations)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> Any:
        self.calls += 1
        if self.calls % self.every == 0:
            raise RuntimeError("no answer")
        return self.model.recurrent_inference(hidden_states, actions)


STEPS = st.tuples(st.sampled_from(["simulate", "see", "imagine", "reset"]), st.integers(0, 2), st.integers(0, 999))


@settings(max_examples=120)
@given(
    st.lists(STEPS, min_size=1, max_size=12),
    st.sampled_from([1, 4]),
    st.sampled_from([3, 1000]),
    st.sampled_from([pondertree.MuZero, pondertree.Gumbel]),
)
def test_the_pool_holds_what_the_trees_hold(steps: Any, in_flight: int, every: int, preset: Any) -> None:
    """Whatever was done and whatever failed: under the slot of each node lies its own hidden state."""
    model = Faltering(TableModel(4), every)
    forest = preset(model, in_flight=in_flight, seed=1).forest(observation=numbered(0, 1, 2))
    roots = [0, 1, 2]
    for what, tree, number in steps:
        with contextlib.suppress(pondertree.EvaluationError):
            if what == "simulate":
                forest.simulate([number % 13, 5, 2])
            elif what == "reset":
                forest.reset(tree, observation=[number])
                roots[tree] = number
            elif what == "see":
                forest.advance(tree, number % 4, observation=[number])
                roots[tree] = number
            else:
                forest.advance(tree, number % 4)
                roots[tree] = (roots[tree] * 31 + number % 4 + 7) % 1_000_003
        slots = slots_of(forest)
        assert len(slots) == len(set(slots))
        for result, root in zip(forest.results(), roots, strict=True):
            nodes = [(result.root, root)]
            for node, hidden in nodes:
                assert forest._world._pool.gather(np.array([node.slot])).tolist() == [[hidden]]
                tried = [child for child in node.children.values() if child.visit_count]
                for child in tried:
                    below = (hidden * 31 + (child.action or 0) + 7) % 1_000_003
                    if node is result.root:  # what is kept below it may have been imagined before it was seen
                        below = int(forest._world._pool.gather(np.array([child.slot]))[0, 0])
                        assert child.raw_value == model.model.row(below)[2]
                    nodes.append((child, below))
            assert all(node.in_flight == 0 for node, _ in nodes)


def test_a_held_result_stays_as_it_is() -> None:
    tree = pondertree.MuZero(TableModel(4), seed=1).tree(observation=ONE)
    held = tree.simulate(20).result()
    before = fingerprint(held)
    tree.simulate(20)
    tree.advance(0)
    tree.simulate(20)
    assert fingerprint(held) == before


# --- Answers ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
def test_the_policy_is_the_share_of_visits() -> None:
    result = pondertree.MuZero(TableModel(6), 90, seed=1).run(observation=ONE, legal_actions=[5, 0, 2])
    assert result.visits[[1, 3, 4]].tolist() == [0, 0, 0]
    assert result.policy == pytest.approx(result.visits / 90)
    assert result.policy_at(0.5) == pytest.approx(result.visits**2 / (result.visits**2).sum())
    assert result.action == result.visits.argmax()
    assert np.isnan(result.q).tolist() == (result.visits == 0).tolist()
    even = pondertree.MuZero(TableModel(6), seed=1).tree(observation=ONE).result()
    assert np.isfinite(even.policy).all(), "before any simulation, too"


def test_temperature_draws_actions_as_often_as_the_policy_says() -> None:
    search = pondertree.MuZero(Decisions(0), 24, seed=1)
    results = search.run(observation=numbered(*[3] * 600), temperature=1.0)
    expected = np.mean([result.policy for result in results], axis=0)
    drawn = np.bincount([result.action for result in results], minlength=3) / 600
    assert np.abs(drawn - expected).max() < 0.08
    assert (expected > 0.05).all()
    greedy = search.run(observation=numbered(*[3] * 20), temperature=[0.0] * 20)
    assert all(result.visits[result.action] == result.visits.max() for result in greedy)
    spread = search.run(observation=numbered(*[3] * 200), temperature=1e9)
    assert min(np.bincount([result.action for result in spread], minlength=3)) > 40


def test_noise_is_on_request_at_the_root_over_legal_actions() -> None:
    search = pondertree.MuZero(TableModel(8), 40, root_dirichlet_alpha=0.5, root_exploration_fraction=0.4, seed=1)
    legal = [1, 4, 6]
    calm = search.run(observation=ONE, legal_actions=legal)
    assert all(child.prior == child.clean_prior for child in calm.root.children.values())
    noisy = search.run(observation=ONE, legal_actions=legal, add_noise=True)
    assert sorted(noisy.root.children) == legal
    noise = {a: child.prior - 0.6 * child.clean_prior for a, child in noisy.root.children.items()}
    assert all(part >= -1e-6 for part in noise.values())
    assert sum(noise.values()) == pytest.approx(0.4, abs=1e-6)
    assert max(abs(child.prior - child.clean_prior) for child in noisy.root.children.values()) > 1e-3
    assert {a: child.clean_prior for a, child in noisy.root.children.items()} == {
        a: child.prior for a, child in calm.root.children.items()
    }
    for child in noisy.root.children.values():
        assert all(below.prior == below.clean_prior for below in child.children.values())
    tree = search.tree(observation=ONE)
    tree.simulate(5, add_noise=True)
    tree.simulate(5, add_noise=False)
    assert all(child.prior == child.clean_prior for child in tree.result().root.children.values())
    rows = search.run(observation=numbered(1, 1), add_noise=[True, False])
    assert [any(c.prior != c.clean_prior for c in row.root.children.values()) for row in rows] == [True, False]


# --- Limits -----------------------------------------------------------------------------------------------------


def test_a_limit_of_time_cuts_the_search_short() -> None:
    model = TableModel(3)

    def slow(hidden: Any, actions: Any) -> Any:
        time.sleep(0.004)
        return model.recurrent_inference(hidden, actions)

    slowly = pondertree.models.FunctionModel(model.initial_inference, slow)
    begun = time.perf_counter()
    [result, other] = pondertree.MuZero(slowly, time_limit=0.1, seed=1).run(observation=numbered(1, 2))
    assert time.perf_counter() - begun < 5.0
    assert 1 <= result.simulations <= 25
    assert abs(result.simulations - other.simulations) <= 1
    again = pondertree.MuZero(model, [result.simulations, other.simulations], seed=1).run(observation=numbered(1, 2))
    assert list(map(fingerprint, again)) == list(map(fingerprint, (result, other)))
    assert pondertree.MuZero(slowly, time_limit=1e-6).run(observation=ONE).simulations == 1
    tree = pondertree.MuZero(slowly, seed=1).tree(observation=ONE)
    assert 1 <= tree.simulate(seconds=0.05).result().simulations <= 20


def test_the_pool_has_room_for_what_was_asked_for() -> None:
    """For the simulations of each tree, and not for those that a limit of time will cut."""
    search = pondertree.MuZero(Decisions(1), seed=1)
    forest = search.forest(observation=numbered(*[1] * 16))
    forest.simulate([1000] + [1] * 15)
    assert forest._world._pool.capacity == 2048, "the power of two above 1000 + 15 + 16"
    hurried = search.forest(observation=numbered(1, 1))
    hurried.simulate(1_000_000, seconds=0.01)
    assert hurried._world._pool.capacity < 100_000


def test_a_full_tree_still_answers() -> None:
    tree = pondertree.MuZero(TableModel(4), max_nodes=10, seed=1).tree(observation=ONE)
    result = tree.simulate(100).result()
    assert (result.simulations, result._view.num_nodes) == (9, 10)
    assert tree._forest._world._pool.capacity <= 64
    tree.advance(result.action)
    assert tree.simulate(100).result()._view.num_nodes == 10, "after a move there is room again"
    small = pondertree.MuZero(TableModel(4), 3000, max_memory=0.2, seed=1).run(observation=ONE)
    assert small.simulations < 3000
    assert small.memory <= 0.2 * 2**20


def test_no_simulation_is_counted_twice() -> None:
    """In pieces or in one go, with progress told."""
    told: list[tuple[int, int]] = []
    search = pondertree.MuZero(TableModel(6), seed=3)
    one = search.tree(observation=ONE, seeds=5).simulate(50, progress=lambda *now: told.append(now)).result()
    many = search.tree(observation=ONE, seeds=5)
    for count in (1, 9, 40):
        many.simulate(count)
    assert fingerprint(one) == fingerprint(many.result())
    assert told[-1] == (50, 50)


# --- Players and discounts --------------------------------------------------------------------------------------


class Steps:
    """Two actions, each with a value and a discount of its own; nothing is earned."""

    def __init__(self, values: tuple[float, float], discounts: tuple[float, float] | None) -> None:
        self.values, self.discounts = np.array(values), discounts

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        rows = len(observations)
        return np.zeros((rows, 1)), np.zeros((rows, 2)), np.zeros(rows)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        answer = hidden_states, np.zeros(len(actions)), np.zeros((len(actions), 2)), self.values[actions]
        return answer if self.discounts is None else (*answer, np.array(self.discounts)[actions])


@pytest.mark.parametrize(
    ("players", "discounts", "expected"),
    [
        (1, None, (0.4, -0.15)),
        (2, None, (-0.4, 0.15)),
        (1, (1.0, 0.0), (0.8, 0.0)),
        (2, (-1.0, -0.25), (-0.8, 0.075)),
        (2, (1.0, -1.0), (0.8, 0.3)),
        (2, (0.0, 0.5), (0.0, -0.15)),
    ],
)
def test_whose_value_it_is(players: int, discounts: Any, expected: tuple[float, float]) -> None:
    """The setting's discount 0.5 and alternating players, unless the model says: 0 ends, a sign passes the turn."""
    model = Steps((0.8, -0.3), discounts)
    search = pondertree.MuZero(model, 1, discount=0.5, num_players=players, seed=1)
    for action, worth in enumerate(expected):
        for to_play in range(players):
            result = search.run(observation=[0.0], legal_actions=[action], to_play=to_play)
            assert result.q[action] == pytest.approx(worth), "whoever chooses"
            assert result.value == pytest.approx(worth / 2)
            passes = players == 2 and (discounts is None or discounts[action] < 0.0)
            assert result.root.children[action].to_play == (1 - to_play if passes else to_play)


def test_an_end_hides_what_is_imagined_beyond_it() -> None:
    class Ended(TableModel):
        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            hidden, _, logits, values, *_ = super().recurrent_inference(hidden_states, actions)
            return hidden, np.full(len(actions), 0.25), logits, values, np.zeros(len(actions))

    result = pondertree.MuZero(Ended(3), 60, seed=1).run(observation=ONE)
    assert result.q[result.visits > 0] == pytest.approx(0.25)


# --- Right, where the right answer is known ---------------------------------------------------------------------


def assert_same_tree(game: pondertree.Node, imagined: pondertree.Node) -> int:
    """The same moves, tried as often, with the same values, down to the ends; how many nodes that are."""
    count, stack = 0, [(game, imagined)]
    while stack:
        one, other = stack.pop()
        count += 1
        assert one.visit_count == other.visit_count
        if one.is_terminal:
            continue
        assert one.q_value == pytest.approx(other.q_value, abs=1e-12)
        tried = [action for action, child in one.children.items() if child.visit_count]
        assert tried == [action for action, child in other.children.items() if child.visit_count]
        stack.extend((one.children[action], other.children[action]) for action in tried)
    return count


@pytest.mark.parametrize(
    ("start", "plies"), [(TicTacToe, 0), (TicTacToe, 3), (TicTacToe, 5), (ConnectFour, 0), (ConnectFour, 20)]
)
@pytest.mark.parametrize("c", [1.0, 2.5])
def test_a_perfect_model_is_the_game_itself(start: Any, plies: int, c: float) -> None:
    """MuZero in the rules as a model grows AlphaZero's tree of the game, tie for tie, when the parts are set alike.

    A huge pb_c_base leaves pb_c_init alone as the constant; values are not scaled; nothing is proven; illegal moves get
    the prior 0 and so no edge. An end pays its result as a reward with discount 0: that is what AlphaZero backs up from
    it at every visit, whatever is imagined beyond.
    """
    states = [random_position(start, plies, seed) for seed in range(3)]
    guess = Guess(plies)
    games = pondertree.AlphaZero(guess, 200, c_puct=c, solve=False, seed=5).run(states)
    models = pondertree.MuZero(
        Rules(states, guess), 200, pb_c_base=1e18, pb_c_init=c, discount=1.0, normalize=None, solve=False, seed=5
    ).run(states)
    assert any(node.is_terminal for result in games for node in every_node(result.root)) or plies == 0
    for game, model in zip(games, models, strict=True):
        assert game.visits.tolist() == model.visits.tolist()
        assert game.action == model.action
        assert game.value == pytest.approx(model.value)
        assert assert_same_tree(game.root, model.root) > len(game.root.children)


@pytest.mark.parametrize("mover", [0, 1])
@pytest.mark.parametrize("normalize", ["node", "tree", None])
def test_wins_and_blocks_in_a_perfect_model(mover: int, normalize: Any) -> None:
    win = after(ConnectFour(), "1 2 1 2 1 2" if mover == 0 else "1 2 3 2 1 2 7")
    block = after(ConnectFour(), "1 2 1 2 1" if mover == 1 else "7 2 7 2 6 2")
    wins = 0 if mover == 0 else 1
    assert win.to_play == block.to_play == mover
    search = pondertree.MuZero(Rules([win, block]), 400, discount=1.0, normalize=normalize, seed=1)
    won, saved = search.run([win, block])
    assert won.action == wins
    assert won.q[wins] == 1.0
    assert saved.action == (0 if mover == 1 else 1)


@pytest.mark.parametrize("normalize", ["node", "tree", None])
def test_values_of_one_player_approach_the_exact_ones(normalize: Any) -> None:
    errors: list[list[float]] = []
    for simulations in (20, 200, 2000):
        row = []
        for seed in range(6):
            problem = Decisions(seed)
            search = pondertree.MuZero(problem, simulations, discount=problem.gamma, normalize=normalize, seed=1)
            result = search.run(observation=[0])
            exact = problem.exact()[0]
            row.append(abs(result.value - exact.max()))
            assert simulations < 2000 or exact[result.action] == exact.max()
        errors.append(row)
    means = np.mean(errors, axis=1)
    assert means[0] > means[1] > means[2], means
    assert means[2] < min(0.12, means[0] / 6)


# --- Very many actions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["node", "tree"])
def test_4672_actions_equal_the_reference(normalize: str) -> None:
    model = TableModel(4672, levels=101, largest_reward=1.0)
    options = {"num_players": 2, "discount": 1.0, "normalize": normalize, "seed": 3}
    legal = list(range(100, 4000, 130))
    pair = Pair(
        muzero.MCTS(model, **options),
        [pondertree.MuZero(model, trace=trace, **options) for trace in (True, False)],
        {"observation": ONE, "legal_actions": legal, "to_play": 1},
    )
    result = pair.simulate(70, True)
    pair.advance(result.action, observation=np.array([5]))
    pair.simulate(10)
    sizes = [len(node.children) for node in every_node(pair.engines[1].result().root) if node.visit_count]
    assert sizes[0] == 4672, "a root has all its legal actions"
    assert max(sizes[1:]) <= 69


def test_4672_actions_do_not_cost_dense_memory() -> None:
    """A node keeps its best moves: those that 200 simulations can come to need, 22 bytes each and not 4672 of them."""
    model = Wide(4672)
    forest = pondertree.MuZero(model, num_players=2, seed=1).forest(
        observation=numbered(*range(100, 108)), legal_actions=[list(range(0, 4672, 150))] * 8
    )
    forest.simulate(200)
    trees = sum(result.memory for result in forest.results())
    dense = 8 * 200 * 4672 * 22
    assert trees < 8 * 2**20 < dense / 15
    assert forest._world.hidden_bytes <= 2 * 8 * 256 * 8
    for result in forest.results():
        assert all(len(node.children) <= 200 for node in every_node(result.root) if node.visit_count)


# --- Words ------------------------------------------------------------------------------------------------------


def test_imagined_lines_are_written_down() -> None:
    """As far as the rules allow; in the tree, where the model imagines what they do not, by its number."""
    result = pondertree.MuZero(Seeing(9), 150, seed=1).run(TicTacToe())
    beyond = [node for node in every_node(result.root) if node.visit_count and not hasattr(node.state, "board")]
    assert result.pv[0] == result.move
    names = {TicTacToe().action_to_string(action) for action in range(9)}
    raw = [result._view.principal_variation(place) for place in range(9)]
    lines = [move.pv for move in result.moves]
    assert sum(map(len, raw)) > sum(map(len, lines)), "the model imagined more than the rules allow"
    assert all(set(line) <= names and len(set(line)) == len(line) for line in (result.pv, *lines))
    unruled = [node for node in beyond if "only the model" in repr(node.state)]
    assert unruled
    assert all(node.move.isdigit() for node in unruled)
    for text in (repr(result), result.root.to_text(3), result.root.to_dot(3), result.root.to_json(), str(result.moves)):
        assert text
    legal = pondertree.MuZero(Rules([TicTacToe()]), 150, seed=1).run(TicTacToe())
    assert all(text in names for text in legal.pv)
    bare = pondertree.MuZero(TableModel(4), 30, seed=1).run(observation=ONE)
    assert bare.pv[0] == bare.move == str(bare.action)
    assert "only the model" in repr(next(iter(bare.root.children.values())).state)
