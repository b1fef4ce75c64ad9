"""Policy networks in `Hybrid`: priors, values, category weights, faults."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.hybrid import MIDDLEGAME, PRIORITIES, TACTICS
from tests.support.policy_networks import FakeNetwork, pseudo_random
from tests.support.search_helpers import after, every_node, fingerprint

import pondertree
from pondertree.chess import categorize
from pondertree.errors import EvaluationError
from pondertree.games import Chess


def even(state: Any) -> dict[Any, float]:
    return dict.fromkeys(state.legal_actions(), 1.0)


BROKEN: list[tuple[str, Callable[[Any], Any], str]] = [
    ("raises", lambda state: 1 // 0, "ZeroDivisionError at '"),
    ("value is NaN", lambda state: (even(state), math.nan), "the value nan at '"),
    ("value above 1", lambda state: (even(state), 1.001), "the value 1.001 at '"),
    ("value below 0", lambda state: (even(state), -0.5), "the value -0.5 at '"),
    ("negative prior", lambda state: (even(state) | {state.legal_actions()[0]: -1.0}, 0.5), "the prior -1.0 for"),
    ("prior is NaN", lambda state: (even(state) | {state.legal_actions()[0]: math.nan}, 0.5), "the prior nan for"),
    ("prior is infinite", lambda state: ({state.legal_actions()[0]: math.inf}, 0.5), "the prior inf for"),
    ("prior too large for a float32", lambda state: ({state.legal_actions()[0]: 1e300}, 0.5), r"the prior 1e\+300 for"),
    ("illegal action", lambda state: (even(state) | {4671: 0.1}, 0.5), "a prior for 4671 at '.*not legal"),
    ("two priors", lambda state: ({877: 0.1, state.action_to_string(877): 0.2}, 0.5), "two priors|not legal"),
    ("a value that is a bool", lambda state: (even(state), True), "must give.*True is not a number"),
    ("a value that is a text", lambda state: (even(state), "0.5"), "must give.*'0.5' is not a number"),
    ("no action", lambda state: ({4672: 1.0}, 0.5), "not legal"),
    ("illegal text", lambda state: ({"a1a8": 1.0}, 0.5), "not legal.*a1a8"),
    ("move of no kind", lambda state: ({(0, 1): 1.0}, 0.5), "not legal"),
    ("nothing", lambda state: None, r"must give \({move: prior}, value\), not None"),
    ("a value alone", lambda state: 0.5, "must give"),
    ("three things", lambda state: (even(state), 0.5, 0.5), "must give"),
    ("priors in a list", lambda state: ([1.0], 0.5), "the priors must be a dict"),
    ("a textual value", lambda state: (even(state), "even"), "must give"),
    ("a textual prior", lambda state: (dict.fromkeys(state.legal_actions(), "much"), 0.5), "must give"),
]


@pytest.mark.parametrize("in_flight", [1, 6])
@pytest.mark.parametrize(("function", "text"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_faulty_policy_network_raises_and_tree_survives(
    function: Callable[[Any], Any], text: str, in_flight: int
) -> None:
    """Fails at the root or later, in either row: both trees are rolled back and continue like unaffected ones."""
    for simulations, row in itertools.product((0, 24), (0, 1)):
        network = FakeNetwork(pseudo_random)
        broken, whole = (
            pondertree.Hybrid(policy_network=one, in_flight=in_flight, seed=4).forest([Chess(MIDDLEGAME), Chess()])
            for one in (network, FakeNetwork(pseudo_random))
        )
        for forest in (broken, whole):
            forest.simulate(simulations)
        before = [fingerprint(result) for result in broken.results()]
        at = len(network.requests) + 1 + row

        def fails_once(state: Any, network: FakeNetwork = network, at: int = at) -> Any:
            return function(state) if len(network.requests) == at else pseudo_random(state)

        network.function = fails_once
        with pytest.raises(EvaluationError, match=f"(?s)FakeNetwork.evaluate.*{text}"):
            broken.simulate(24)
        assert [fingerprint(result) for result in broken.results()] == before
        assert all(node.in_flight == 0 for result in broken.results() for node in every_node(result.root))
        for forest in (broken, whole):
            forest.simulate(24)
        assert [fingerprint(one) for one in broken.results()] == [fingerprint(one) for one in whole.results()]


def test_policy_network_exception_is_chained() -> None:
    with pytest.raises(EvaluationError) as caught:
        pondertree.Hybrid(policy_network=FakeNetwork(lambda state: {}["missing"])).run(Chess())
    assert isinstance(caught.value.__cause__, KeyError)
    assert Chess().fen() in str(caught.value)


def test_interrupt_in_policy_network_rolls_back_batch() -> None:
    def interrupt(state: Any) -> Any:
        raise KeyboardInterrupt

    network = FakeNetwork(pseudo_random)
    tree = pondertree.Hybrid(policy_network=network, seed=2).tree(Chess(TACTICS)).simulate(20)
    before = fingerprint(tree.result())
    network.function = interrupt
    with pytest.raises(KeyboardInterrupt):
        tree.simulate(20)
    assert fingerprint(tree.result()) == before


def test_missing_prior_is_zero() -> None:
    chess = pytest.importorskip("chess")
    for fen, moves in ((None, ("e2e4", "g1f3", "a2a3")), (after(Chess(), "e2e4").fen(), ("e7e5", "g8f6", "a7a6"))):
        state = Chess(fen)
        actions = [state.parse_action(move) for move in moves]
        forms = (actions, moves, [chess.Move.from_uci(move) for move in moves])
        for form in forms:

            def evaluate(at: Any, form: Any = form, fen: str = state.fen()) -> Any:
                return (dict(zip(form, (30.0, 20.0, 10.0), strict=True)), 0.75) if at.fen() == fen else ({}, 0.5)

            search = pondertree.Hybrid(policy_network=FakeNetwork(evaluate), priority=None, num_simulations=40, seed=1)
            result = search.run(state)
            children = result.root.children
            assert sorted(children) == sorted(state.legal_actions())
            assert [children[action].prior for action in actions] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
            assert all(child.prior == 0.0 for action, child in children.items() if action not in actions)
            # All values below are equal, so that moves with prior 0 are never visited.
            assert {action for action in children if result.visits[action]} == set(actions)
            assert result.root.nn_value == 0.5, "0.75 of [0, 1] for the player to move, White or Black"
            # Without any priors they are uniform.
            below = children[actions[0]]
            shares = [child.prior for child in below.children.values()]
            assert shares == pytest.approx([1.0 / len(shares)] * len(below.state.legal_actions()))
            assert below.nn_value == 0.0


def test_category_weights_multiply_network_priors() -> None:
    weights = (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5)
    state = Chess(TACTICS)
    options: dict[str, Any] = {"mate_search_depth": 0, "num_simulations": 1, "see_threshold": 50}
    root = (
        pondertree.Hybrid(
            policy_network=FakeNetwork(pseudo_random), priority="prior", category_weights=weights, **options
        )
        .run(state)
        .root
    )
    categories, (plain, value) = categorize(state, see_threshold=50), pseudo_random(state)
    total = sum(plain[action] * weights[category] for action, category in categories.items())
    for action, child in root.children.items():
        assert child.category is categories[action]
        assert child.prior == pytest.approx(plain[action] * weights[categories[action]] / total, rel=1e-6)
    assert root.nn_value == 2.0 * value - 1.0


def test_policy_network_value_is_for_player_to_move() -> None:
    """Both sides choose the move after which the network values the opponent low."""
    for fen, good in ((None, "e2e4"), (after(Chess(), "e2e4").fen(), "e7e5")):
        state = Chess(fen)
        liked = state.play(state.parse_action(good)).fen()

        def evaluate(at: Any, liked: str = liked) -> Any:
            return {}, 0.1 if at.fen() == liked else 0.5

        for priority in PRIORITIES:
            search = pondertree.Hybrid(
                policy_network=FakeNetwork(evaluate),
                priority=priority,
                mate_search_depth=0,
                num_simulations=120,
                seed=3,
            )
            result = search.run(state)
            assert result.move == good
            assert result.q[result.action] > 0.0
