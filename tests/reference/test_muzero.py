"""The twin of MuZero: what a search in a model must always satisfy, and the traps of its specification one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.tabular import Tabular
from tests.support.perfect import Guess, Perfect
from tests.support.trees import random_position

from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.reference import alphazero, model
from pondertree.reference.model import top_k_priors
from pondertree.reference.muzero import (
    MCTS,
    MCTSConfig,
    MuZeroConfig,
    Node,
    Result,
    RootNode,
    mask_policy,
    select_action,
)
from pondertree.reference.priors import float32
from pondertree.reference.trace import first_difference

# Most models here are of one player, and do not say so.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


@dataclass
class Fixed:
    """Every action is worth what `rewards` and `values` say, from anywhere."""

    logits: Any
    rewards: Any = (0.0, 0.0)
    values: Any = (0.0, 0.0)
    root_value: float = 0.0

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        return np.zeros(1), [self.logits], [self.root_value]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        action = int(actions[0])
        return np.zeros(1), [self.rewards[action]], [self.logits], [self.values[action]]


@dataclass
class SpecificationForm:
    """A tabular model as the specification asks it: one observation, one hidden state, one action."""

    inside: Tabular

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        hidden, logits, value = self.inside.initial_inference([observation])
        return int(hidden[0]), logits[0], value[0]

    def recurrent_inference(self, hidden_state: int, action: int) -> tuple[int, Any]:
        assert isinstance(action, int)
        hidden, reward, *_ = self.inside.recurrent_inference([hidden_state], [action])
        return int(hidden[0]), reward[0]

    def prediction(self, hidden_state: int) -> tuple[Any, Any]:
        _, logits, value = self.inside.initial_inference([hidden_state])
        return logits[0], value[0]


def nodes_of(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found.extend(child for child in node.children.values() if child.visit_count)
    return found


def check_tree(result: Result, legal: list[int]) -> None:
    """The invariants of every search."""
    root = result.root
    assert result.action in legal
    assert result.proven is None
    assert list(result.visits) == list(result.policy) == list(result.q) == legal
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert sorted(root.children) == sorted(legal)
    for node in nodes_of(root):
        assert node.in_flight == 0
        below = [child for child in node.children.values() if child.visit_count]
        assert node.visit_count == 1 + sum(child.visit_count for child in below)
        assert node.value() == pytest.approx(node.mean_value, rel=1e-9, abs=1e-9)
        assert sum(child.clean_prior for child in node.children.values()) + node.tail_prior == pytest.approx(
            1.0, abs=1e-5
        )
        assert [child.is_visited for child in node.children.values()] == [True] * len(below) + [False] * (
            len(node.children) - len(below)
        )
        for child in below:
            sign = 1.0 if child.to_play == node.to_play else -1.0
            expected = child.visit_count * child.reward + child.discount * sign * child.value_sum
            assert child.returns == pytest.approx(expected, rel=1e-9, abs=1e-9)


@st.composite
def models(draw: Any) -> tuple[Tabular, int]:
    """A model and how many play."""
    players = draw(st.sampled_from([1, 2]))
    discounts = draw(st.sampled_from([None, None, (0.997, 0.5, 0.0), (1.0,)] + [(-1.0, 0.9, 0.0)] * (players - 1)))
    table = Tabular(
        seed=draw(st.integers(0, 10**6)),
        states=draw(st.sampled_from([3, 40])),
        actions=draw(st.sampled_from([1, 2, 5, 12])),
        reward_scale=draw(st.sampled_from([0.0, 1.0, 50.0])),
        value_scale=draw(st.sampled_from([1.0, 20.0])),
        levels=draw(st.sampled_from([0, 0, 3])),
        ruled_out=draw(st.sampled_from([0.0, 0.4])),
        discounts=discounts,
    )
    return table, players


options = st.fixed_dictionaries(
    {
        "normalize": st.sampled_from(["node", "tree", None]),
        "discount": st.sampled_from([1.0, 0.997, 0.5, 0.0]),
        "pb_c_init": st.sampled_from([0.0, 1.25, 4.0]),
        "pb_c_base": st.sampled_from([1.0, 19652, 1e300]),
        "in_flight": st.sampled_from([1, 2, 8]),
        "seed": st.integers(0, 2**64 - 1),
    }
)


def legal_in(table: Tabular, number: int) -> list[int]:
    """Some of the actions, in some order; the first is one of them, as its logit is never minus infinity."""
    order = np.argsort(np.random.PCG64(number).random_raw(table.actions), kind="stable").tolist()
    return [0, *[action for action in order if action][: number % table.actions]]


# --- Invariants -------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(models(), options, st.integers(0, 10**6), st.integers(0, 60), st.booleans(), st.sampled_from([0.0, 1e-9, 1.0]))
def test_muzero_invariants_hold_in_random_models(
    world: tuple[Tabular, int], chosen: dict[str, Any], number: int, simulations: int, noise: bool, temperature: float
) -> None:
    table, players = world
    search = MCTS(table, num_players=players, **chosen)
    legal = legal_in(table, number)
    tree = search.tree(observation=[number % table.states], legal_actions=legal, to_play=players - 1, trace=True)
    search.simulate(tree, simulations, noise)
    result = search.result(tree, temperature)
    check_tree(result, legal)
    assert result.root.to_play == players - 1
    assert sum(result.visits.values()) == result.simulations == simulations
    assert all(math.isfinite(score) for row in tree.trace or [] for step in row["scores"] for _, score in step or [])


@settings(max_examples=40)
@given(models(), options, st.integers(1, 60), st.integers(0, 59))
def test_same_seed_gives_same_tree_in_split_simulations(
    world: tuple[Tabular, int], chosen: dict[str, Any], simulations: int, cut: int
) -> None:
    table, players = world
    traces = []
    # A batch ends where its simulations end: with several leaves in flight, pieces are batches of another size.
    for pieces in ([simulations], [min(cut, simulations), simulations - min(cut, simulations)]):
        search = MCTS(table, num_players=players, **chosen | {"in_flight": 1})
        tree = search.tree(None, 3, 4, observation=[0], trace=True)
        for place, piece in enumerate(pieces):
            search.simulate(tree, piece, True if place == 0 and piece else None)
        traces.append(tree.trace or [])
    if 0 < cut < simulations:
        assert first_difference(*traces) is None


@settings(max_examples=60)
@given(
    models(),
    options,
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 10**6), st.booleans(), st.sampled_from([True, False, None])),
        max_size=4,
    ),
)
def test_advance_keeps_statistics_of_subtree(
    world: tuple[Tabular, int], chosen: dict[str, Any], moves: list[tuple[int, int, bool, bool | None]]
) -> None:
    table, players = world
    search = MCTS(table, num_players=players, **chosen)
    tree = search.tree(observation=[1])
    legal = list(range(table.actions))
    for simulations, number, seen, noise in moves:
        search.simulate(tree, simulations, noise)
        check_tree(search.result(tree), legal)
        action = legal[number % len(legal)]
        known = {a: (c.visit_count, c.returns) for a, c in tree.root.children[action].children.items() if c.is_visited}
        turn = tree.root.children[action].to_play if known else None
        legal = legal_in(table, number) if seen else list(range(table.actions))
        told: dict[str, Any] = {"observation": [number % table.states], "legal_actions": legal} if seen else {}
        search.advance(tree, action, **told)
        check_tree(search.result(tree), legal)
        kept = {a: (c.visit_count, c.returns) for a, c in tree.root.children.items() if c.is_visited}
        assert kept == {a: numbers for a, numbers in known.items() if a in legal}
        assert list(kept) == [a for a in known if a in legal], "in the order they were tried"
        assert turn in (None, tree.root.to_play), "whose turn it is, the model has said"
        assert (tree.low, tree.high) == (math.inf, -math.inf), "the bounds are those of the new root"
        assert tree.root.raw_value == (table.value[number % table.states] if seen else tree.root.raw_value)  # type: ignore[attr-defined]
        assert all(child.prior == child.clean_prior for child in tree.root.children.values())


def test_advance_discards_subtree_with_wrong_player_to_move() -> None:
    """The model thought that players alternate; in fact the same one moves again."""
    search = MCTS(Tabular(5, 20, 3), num_players=2)
    for turn, visits in ((None, 30), (1, 30), (0, 1)):
        tree = search.tree(observation=[0], legal_actions=[2])
        search.simulate(tree, 30)
        search.advance(tree, 2, observation=[4], to_play=turn)
        assert (tree.root.visit_count, tree.root.to_play) == (visits, 1 if turn is None else turn)


def test_tree_of_states_advances_by_game_rules() -> None:
    state = TicTacToe()
    search = MCTS(Perfect(state), discount=1.0)
    tree = search.tree(state)
    assert (tree.root.players, tree.root.to_play, tree.root.legal_actions()) == (2, 0, state.legal_actions())
    search.simulate(tree, 30)
    search.advance(tree, 4)
    assert tree.root.to_play == 1
    assert tree.root.legal_actions() == state.play(4).legal_actions()
    with pytest.raises(ValueError, match="legal"):
        search.advance(tree, 4)
    with pytest.raises(ValueError, match="num_players"):
        MCTS(Perfect(state), num_players=2).tree(SimpleNamespace(num_players=1, is_terminal=False))


# --- The specification's names and numbers ----------------------------------------------------------------------


def test_names_and_defaults_match_specification() -> None:
    config = MCTSConfig()
    assert (config.num_simulations, config.root_dirichlet_alpha, config.root_exploration_fraction) == (50, 0.3, 0.25)
    assert (config.pb_c_base, config.pb_c_init, config.discount, config.num_players) == (19652, 1.25, 0.997, 1)
    assert MuZeroConfig is MCTSConfig
    node = Node(prior=0.5)
    assert (node.prior, node.value_sum, node.visit_count, node.children) == (0.5, 0, 0, {})
    assert (node.hidden_state, node.reward, node.expanded(), node.value()) == (None, 0, False, 0)
    node.value_sum, node.visit_count = 3.0, 4
    assert node.value() == 0.75
    root = RootNode(0, "hidden")
    assert (root.prior, root.hidden_state, root.to_play) == (0, "hidden", 0)


def test_run_accepts_new_and_expanded_roots() -> None:
    """As the specification's `select_action` prepares it, and with nothing prepared at all."""
    table = Tabular(3, states=20, actions=5, reward_scale=1.0)
    legal = [4, 0, 2]
    bare = RootNode()
    actions, probabilities = MCTS(table, MCTSConfig()).run(bare, [7], legal)
    assert actions == (4, 0, 2)
    assert sum(probabilities) == pytest.approx(1.0)
    assert [round(50 * p) for p in probabilities] == [bare.children[a].visit_count for a in legal]
    hidden_state, policy, _ = table.initial_inference([[7]])
    masked = np.exp(mask_policy(policy[0], legal))
    prepared = RootNode(0, hidden_state)
    for action in legal:
        prepared.children[action] = Node(prior=float32(float(masked[action] / masked.sum())))
    assert MCTS(table, MCTSConfig()).run(prepared, [7], legal)[0] == actions
    assert prepared.visit_count == bare.visit_count == 51
    search = MCTS(table)
    shares = {tuple(search.run(RootNode(), [7], legal)[1]) for _ in range(5)}
    assert len(shares) > 1, "the calls of an object are numbered"


def test_config_may_be_any_object_with_the_fields() -> None:
    """The specification's class has six fields and no players."""
    own = SimpleNamespace(num_simulations=7, discount=0.5)
    search = MCTS(Tabular(1, states=5, actions=2), own, pb_c_init=2.0)  # type: ignore[arg-type]
    assert (search.config.num_simulations, search.config.discount, search.config.pb_c_init) == (7, 0.5, 2.0)
    assert (search.config.num_players, search.config.pb_c_base) == (1, 19652)


@pytest.mark.parametrize("players", [1, 2])
def test_batched_and_specification_models_give_same_tree(players: int) -> None:
    table = Tabular(8, states=30, actions=4, reward_scale=1.0)
    results = []
    for form in (table, SpecificationForm(table)):
        search = MCTS(form, num_players=players, seed=5)
        tree = search.tree(observation=np.array([9]), legal_actions=[3, 1, 0], trace=True)
        search.simulate(tree, 60, True)
        results.append(tree.trace or [])
    assert first_difference(*results) is None


# --- Selection --------------------------------------------------------------------------------------------------


def test_puct_scores_match_hand_computed_values() -> None:
    """Two actions with priors 3/4 and 1/4, tried three times and once, worth 1 and 4; one never tried, with prior 0."""
    tree = MCTS(Fixed(np.log([0.75, 0.25]))).tree(observation=[0])
    root = tree.root
    root.expand({0: 0.75, 1: 0.25, 2: 0.0}, 3)
    root.visit_count, root.raw_value = 5, 8.0
    for action, visits, total in ((0, 3, 3.0), (1, 1, 4.0)):
        root.children[action].visit_count, root.children[action].returns = visits, total
    tree.low, tree.high = -1.0, 7.0
    explore = (math.log((5 + 19653) / 19652) + 1.25) * math.sqrt(5)

    def scores(normalize: str | None) -> list[float]:
        return list(MCTS(Fixed([0.0]), normalize=normalize)._ucb_scores(tree, root).values())

    shares = [explore * 0.75 / 4, explore * 0.25 / 2]
    assert scores(None) == pytest.approx([1.0 + shares[0], 4.0 + shares[1], 0.0])
    assert scores("tree") == pytest.approx([2 / 8 + shares[0], 5 / 8 + shares[1], 0.0])
    # The node itself is worth (8 + 3 + 4) / 5 = 3: its actions are the lowest and the highest.
    assert scores("node") == pytest.approx([shares[0], 1.0 + shares[1], 0.0])
    root.raw_value = 38.0  # Now it is worth 9 itself.
    assert scores("node") == pytest.approx([shares[0], 3 / 8 + shares[1], 0.0])
    tree.low = tree.high = 5.0
    assert scores("tree") == scores(None), "nothing to scale by yet"


def test_leaf_in_flight_counts_as_visit_without_loss() -> None:
    search = MCTS(Fixed([0.0, 0.0]), normalize=None)
    tree = search.tree(observation=[0])
    search.simulate(tree, 1)
    child = next(iter(tree.root.children.values()))
    child.returns = 0.75
    before = search._ucb_scores(tree, tree.root)
    tree.root.in_flight = child.in_flight = 2
    after = search._ucb_scores(tree, tree.root)
    explore = (math.log((4 + 19653) / 19652) + 1.25) * math.sqrt(4)
    assert child.action is not None
    assert after[child.action] == pytest.approx(0.75 + explore * 0.5 / 4)
    assert after[child.action] < before[child.action]


def test_ties_are_broken_at_random() -> None:
    tried = []
    for seed in range(200):
        search = MCTS(Fixed([0.0] * 4, [0.0] * 4, [0.0] * 4), seed=seed)
        tree = search.tree(observation=[0])
        search.simulate(tree, 1)
        tried.append(next(iter(tree.root.children)))
    assert all(30 < tried.count(action) < 70 for action in range(4)), "each of four about 50 times"


# --- Traps ------------------------------------------------------------------------------------------------------


def visits_after(network: Any, simulations: int = 100, **chosen: Any) -> dict[int, int]:
    search = MCTS(network, **chosen)
    tree = search.tree(observation=[0])
    search.simulate(tree, simulations)
    return search.result(tree).visits


@pytest.mark.parametrize(("players", "sign"), [(1, 1.0), (2, -1.0)])
def test_sign_depends_on_player_to_move(players: int, sign: float) -> None:
    """A position that is good for who moves there is good for one player, and bad for who hands it to the other."""
    network = Fixed([0.0, 0.0], values=(0.75, -0.5))
    search = MCTS(network, num_players=players, discount=0.5)
    for action, value in enumerate(network.values):
        tree = search.tree(observation=[0], legal_actions=[action])
        search.simulate(tree, 1)
        child = tree.root.children[action]
        assert (child.value(), child.returns, child.to_play) == (value, sign * 0.5 * value, players - 1)
        assert tree.root.value_sum == sign * 0.5 * value
        grown = nodes_of(tree.root)
        search.simulate(tree, 1)
        (grandchild,) = [node for node in nodes_of(tree.root) if node not in grown]
        assert grandchild.to_play == 0
        assert child.returns == pytest.approx(sign * 0.5 * value + 0.25 * grandchild.raw_value)


def test_reward_counts_in_selection() -> None:
    """In the specification it went into the parent's sum only."""
    visits = visits_after(Fixed([0.0, 0.0], rewards=(0.0, 1.0)), discount=0.5)
    assert visits[1] > 2 * visits[0]


@pytest.mark.parametrize("normalize", ["node", "tree"])
def test_normalisation_keeps_priors_relevant_for_large_rewards(normalize: str) -> None:
    """The same search in cents and in millions: on a scale of their own they are the same tree."""
    cents, millions = (
        visits_after(Tabular(4, 20, 4, reward_scale=size, value_scale=size), normalize=normalize)
        for size in (2.0**-7, 2.0**20)
    )
    assert cents == millions
    assert sum(n > 0 for n in millions.values()) > 1


def test_normalisation_of_equal_values_is_finite() -> None:
    for normalize in ("node", "tree", None):
        visits = visits_after(Fixed([0.0, 0.0]), normalize=normalize)
        assert visits == {0: 50, 1: 50}


def test_first_selection_follows_priors() -> None:
    """With N = 0 at the root all scores would be 0, and the first action in the dictionary would win."""
    for best in range(3):
        logits = [0.0] * 3
        logits[best] = 1.0
        assert visits_after(Fixed(logits, [0.0] * 3, [0.0] * 3), 1)[best] == 1


def test_only_root_is_masked() -> None:
    search = MCTS(Tabular(2, 30, 6))
    tree = search.tree(observation=[0], legal_actions=[5, 2])
    search.simulate(tree, 60)
    root, *below = nodes_of(tree.root)
    assert set(root.children) == {2, 5}
    assert all(sorted(node.children) == list(range(6)) for node in below)
    assert {child for node in below for child, each in node.children.items() if each.visit_count} > {2, 5}


def test_root_noise_is_optional_and_on_legal_actions() -> None:
    table = Tabular(2, 30, 6)
    search = MCTS(table, seed=3)
    tree = search.tree(observation=[0], legal_actions=[5, 2, 3])
    search.simulate(tree, 5, True)
    children = tree.root.children.values()
    assert sum(abs(child.prior - 0.75 * child.clean_prior) for child in children) == pytest.approx(0.25, abs=1e-6)
    search.simulate(tree, 5, False)
    assert all(child.prior == child.clean_prior for child in children)
    quiet = RootNode()
    MCTS(table).run(quiet, [0], [0, 1], add_noise=False)
    assert all(child.prior == child.clean_prior for child in quiet.children.values())


def test_mask_policy_sets_illegal_logits_to_minus_infinity() -> None:
    masked = mask_policy(np.array([1.0, 2.0, 3.0], dtype=np.float16), [2, 0])
    assert masked.dtype == np.float16
    assert masked.tolist() == [1.0, -math.inf, 3.0]
    assert mask_policy([1, 2], [1]).tolist() == [-math.inf, 2.0]
    for wrong, words in (([], "empty"), ([3], "from 0 to 2"), ([0, 0], "twice"), ([-1], "from 0 to 2")):
        with pytest.raises(ValueError, match=words):
            mask_policy([1.0, 2.0, 3.0], wrong)


@pytest.mark.parametrize("temperature", [0, 1e-300, 1e-9, 0.5, 1.0, 1e9])
def test_select_action_is_finite_at_any_temperature(temperature: float) -> None:
    network = Fixed([1.0, 0.0, 0.0], rewards=(0.2, 0.0, 0.1), values=(0.0, 0.0, 0.0))
    actions = {select_action(network, MCTSConfig(), [0], [1, 0, 2], temperature, seed=seed) for seed in range(30)}
    assert actions == ({0} if temperature < 1e-8 else actions)
    assert actions <= {0, 1, 2}
    assert temperature < 1.0 or len(actions) > 1
    again = [select_action(network, MCTSConfig(), [0], [1, 0, 2], temperature, seed=7) for _ in range(2)]
    assert again[0] == again[1]


def test_select_action_plays_legal_chess_moves() -> None:
    state = Chess()

    class Small:
        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            assert observations.shape == (1, 119, 8, 8)
            return self.predict(observations.sum(axis=(1, 2, 3), keepdims=False)[:, None])

        def predict(self, hidden: Any) -> tuple[Any, Any, Any]:
            return hidden, np.sin(hidden * np.arange(4672)), np.tanh(hidden[:, 0])

        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            hidden, logits, value = self.predict(np.cos(hidden_states + actions[:, None]))
            return hidden, np.zeros(1), logits, value

    config = MCTSConfig(num_simulations=25, num_players=2, discount=1.0)
    for temperature in (1.0, 0):
        actions = [
            select_action(Small(), config, state.observation(), state.legal_actions(), temperature, seed=2)
            for _ in range(2)
        ]
        assert actions[0] == actions[1]
        assert actions[0] in state.legal_actions()


# --- Right, where the right answer is known ---------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1001, 3])
@pytest.mark.parametrize(("start", "plies"), [(TicTacToe, 0), (TicTacToe, 3), (ConnectFour, 0), (ConnectFour, 12)])
def test_perfect_model_gives_same_tree_as_game(start: Any, plies: int, levels: int) -> None:
    """With all parts set alike, MuZero in its model and AlphaZero in the game choose the same, tie for tie."""
    for seed in range(3):
        state, guess = random_position(start, plies, seed), Guess(seed, levels)
        real = alphazero.MCTS(guess, 120, c_puct=1.25, seed=seed, solve=False).run(state)
        search = MCTS(Perfect(state, guess), pb_c_base=1e300, discount=1.0, num_players=2, normalize=None, seed=seed)
        tree = search.tree(state)
        search.simulate(tree, 120)
        imagined = search.result(tree)
        assert imagined.visits == real.visits
        assert imagined.values == real.values
        assert imagined.value == pytest.approx(real.value)
        pairs = [(real.root, imagined.root)]
        for game_node, node in pairs:
            assert game_node.visit_count == node.visit_count
            tried = {action: child for action, child in game_node.children.items() if child.visit_count}
            if game_node.end is None:
                assert list(tried) == [action for action, child in node.children.items() if child.visit_count]
                pairs.extend((child, node.children[action]) for action, child in tried.items())


@dataclass
class Decisions:
    """A decision problem of some moves: each pays a reward, the last is the end. The model knows it exactly."""

    seed: int
    length: int = 3
    actions: int = 2
    gamma: float = 0.9

    def __post_init__(self) -> None:
        self.rewards = np.random.default_rng(self.seed).uniform(-1.0, 1.0, self.actions ** (self.length + 1))

    def worth(self, path: int = 1, depth: int = 0) -> float:
        """The exact value of a position: the best that can be earned from it."""
        if depth == self.length:
            return 0.0
        after = [path * self.actions + action for action in range(self.actions)]
        return max(self.reward(each) + self.gamma * self.worth(each, depth + 1) for each in after)

    def reward(self, path: int) -> float:
        return float(self.rewards[path % len(self.rewards)])

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        return (1, 0), [[0.0] * self.actions], [0.0]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        path, depth = hidden_states
        after = path * self.actions + int(actions[0])
        over, beyond = depth + 1 >= self.length, depth >= self.length
        reward = 0.0 if beyond else self.reward(after)
        return (after, depth + 1), [reward], [[0.0] * self.actions], [0.0], [0.0 if over else self.gamma]


@pytest.mark.parametrize("normalize", ["node", "tree", None])
@pytest.mark.parametrize("seed", range(4))
def test_single_player_values_converge_to_exact_values(seed: int, normalize: str | None) -> None:
    problem = Decisions(seed)
    search = MCTS(problem, normalize=normalize, seed=seed)
    tree = search.tree(observation=[0])
    off = []
    for simulations in (30, 1170):
        search.simulate(tree, simulations)
        result = search.result(tree)
        off.append(abs(result.value - problem.worth()))
    assert off[1] < min(0.15, off[0] / 2)
    best = problem.reward(2 + result.action) + problem.gamma * problem.worth(2 + result.action, 1)
    assert best == problem.worth(), "and the action is a best one"


# --- Very many actions ------------------------------------------------------------------------------------------


def test_top_k_priors_keep_highest_and_total_of_rest() -> None:
    assert top_k_priors([0.0, -math.inf, 0.0], 1) == ({0: 0.5, 2: 0.5}, 0.0)
    logits = [math.log(1.0 + action % 100) for action in range(300)]
    kept, tail = top_k_priors(logits, 5)
    assert list(kept) == [98, 99, 198, 199, 299], "the likeliest, the lower of equals, in ascending order"
    assert sum(kept.values()) + tail == pytest.approx(1.0, abs=1e-5)
    assert top_k_priors(logits, 300)[1] == 0.0
    assert len(top_k_priors([-1e9] * 200 + [0.0] * 100, 200)[0]) == 100


@pytest.mark.parametrize("normalize", ["node", "tree"])
def test_top_k_expansion_does_not_change_results(normalize: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    for wide in (256, 10**9):
        monkeypatch.setattr(model, "TOP_K_THRESHOLD", wide)
        search = MCTS(Tabular(6, 200, 300, reward_scale=1.0, logit_scale=4.0), normalize=normalize, num_players=2)
        tree = search.tree(observation=[0], trace=True)
        search.simulate(tree, 90)
        traces.append([(row["path"], row["values"]) for row in tree.trace or []])
        sizes = [len(node.children) for node in nodes_of(tree.root)]
        assert sizes[0] == 300
        if wide == 256:
            first = tree.root.children[(tree.trace or [])[0]["path"][0]]
            assert len(first.children) == 89, "so many simulations were left"
            assert min(sizes) == 64
            assert first.tail_prior > 0.0
    assert traces[0] == traces[1]


# --- Nonsense ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_simulations", -1),
        ("pb_c_base", 0.0),
        ("pb_c_base", math.nan),
        ("pb_c_init", -0.1),
        ("discount", 1.01),
        ("discount", -0.1),
        ("discount", math.nan),
        ("num_players", 3),
        ("root_dirichlet_alpha", 0.0),
        ("root_exploration_fraction", 1.5),
        ("normalize", "leaf"),
        ("in_flight", 0),
    ],
)
def test_invalid_parameters_raise(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        MCTS(Tabular(0, 5, 2), **{name: value})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (([0], [0.0], [[math.nan, 0.0]], [0.0]), "finite"),
        (([0], [0.0], [[math.inf, 0.0]], [0.0]), "finite"),
        (([0], [0.0], [[-math.inf, -math.inf]], [0.0]), "-inf on every"),
        (([0], [0.0], [[0.0, 0.0, 0.0]], [0.0]), "3 numbers"),
        (([0], [0.0], [0.0], [[0.0, 0.0]]), "value must be one number"),
        (([0], [0.0, 0.0], [[0.0, 0.0]], [0.0]), "reward must be one number"),
        (([0], [math.nan], [[0.0, 0.0]], [0.0]), "reward is nan"),
        (([0], [0.0], [[0.0, 0.0]], [math.inf]), "value is inf"),
        (([0], [0.0], [[0.0, 0.0]], [0.0], [1.5]), "discount is 1.5"),
        (([0], [0.0], [[0.0, 0.0]], [0.0], [-0.5]), "num_players is 1"),
        (([0], [0.0]), "must return"),
        (([0], [0.0], 1.0, [0.0]), "policy_logits"),
    ],
)
def test_invalid_model_output_raises(answer: Any, words: str) -> None:
    network = SimpleNamespace(
        initial_inference=lambda observations: ([0], [[0.0, 0.0]], [0.0]),
        recurrent_inference=lambda hidden_states, actions: answer,
    )
    search = MCTS(network)
    tree = search.tree(observation=[0])
    with pytest.raises(ValueError, match=words):
        search.simulate(tree, 1)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"legal_actions": []}, "empty"),
        ({"legal_actions": [2]}, "from 0 to 1"),
        ({"legal_actions": [1, 1]}, "twice"),
        ({"to_play": 1}, "to_play"),
    ],
)
def test_invalid_root_raises(told: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MCTS(Fixed([0.0, 0.0])).tree(observation=[0], **told)


def test_mask_policy_accepts_boolean_mask() -> None:
    logits = np.array([1.0, 2.0, 3.0])
    assert mask_policy(logits, [True, False, True]).tolist() == [1.0, -math.inf, 3.0]
    assert mask_policy(logits, np.array([False, True, False])).tolist() == [-math.inf, 2.0, -math.inf]
    with pytest.raises(ValueError, match="a mask of 2"):
        mask_policy(logits, [True, False])
    with pytest.raises(TypeError):
        mask_policy(logits, [1.9])


def test_select_action_without_seed_is_random() -> None:
    def select(seed: int | None) -> int:
        return select_action(Bandits(), MCTSConfig(4, num_players=1), np.zeros(1), range(8), 1.0, seed=seed)

    assert len({select(None) for _ in range(40)}) > 1
    assert len({select(3) for _ in range(5)}) == 1


class Bandits:
    """Eight actions that are all alike."""

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        return np.zeros((len(observations), 1)), np.zeros((len(observations), 8)), np.zeros(len(observations))

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, Any, Any, Any]:
        rows = len(hidden_states)
        return hidden_states, np.zeros(rows), np.zeros((rows, 8)), np.zeros(rows)
