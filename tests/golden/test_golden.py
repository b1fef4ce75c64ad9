"""Golden trees: searches of mctx are reproduced exactly, in visits and order of expansion."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.golden import trees
from tests.golden.trees import Golden, TreeSummary, build_with_engine, build_with_reference, describe_difference

TREES = trees.stored_trees()
IMPLEMENTATIONS: dict[str, Callable[[Golden], TreeSummary]] = {
    "reference": build_with_reference,
    "engine": build_with_engine,
}


def name_of(golden: Golden) -> str:
    return f"{golden.search}-{golden.model.actions}x{golden.simulations}-{golden.model.seed}"


@pytest.mark.parametrize("golden", TREES, ids=name_of)
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_search_reproduces_golden_tree(implementation: str, golden: Golden) -> None:
    difference = describe_difference(golden, IMPLEMENTATIONS[implementation](golden))
    assert difference is None, f"{implementation} in {name_of(golden)}: {difference}"


@pytest.mark.parametrize("search", ["muzero", "gumbel"])
def test_golden_trees_cover_all_options(search: str) -> None:
    some = [golden for golden in TREES if golden.search == search]
    assert len(some) >= 24
    assert {golden.model.reward_scale > 0.0 for golden in some} == {True, False}
    assert {golden.legal_actions is None for golden in some} == {True, False}
    stated = {(golden.options["num_players"], golden.options["discount"]) for golden in some}
    assert stated >= {(1, 1.0), (1, 0.997), (2, 1.0)}
    given = [golden.model.discounts for golden in some if golden.model.discounts]
    assert any(0.0 in each and min(each) >= 0.0 for each in given)
    assert any(0.0 in each and min(each) < 0.0 for each in given)
    actions, simulations = [golden.model.actions for golden in some], [golden.simulations for golden in some]
    assert (min(actions), max(actions), min(simulations), max(simulations)) == (2, 200, 1, 400)


def test_golden_files_are_small() -> None:
    assert sum(path.stat().st_size for path in Path(trees.__file__).parent.glob("*.json")) < 1_500_000


def test_changed_golden_tree_is_detected() -> None:
    golden = next(golden for golden in TREES if golden.search == "gumbel" and golden.simulations >= 50)
    right = build_with_reference(golden)
    assert describe_difference(golden, right) is None
    assert right.policy is not None
    (parent, action), *rest = right.expansions
    faults = {
        "simulation 0": {"expansions": [(parent, action + 1), *rest]},
        "expansions": {"expansions": rest[:0]},
        "visits": {"visits": [right.visits[0] + 1, *right.visits[1:]]},
        "node 0": {"values": [right.values[0] + 1e-3, *right.values[1:]]},
        "the action": {"action": -1},
        "policy": {"policy": [right.policy[0] + 1e-3, *right.policy[1:]]},
    }
    for words, fault in faults.items():
        assert words in (describe_difference(golden, dataclasses.replace(right, **fault)) or "")


def test_changed_discount_is_detected() -> None:
    """The trees are sensitive to rewards, discounts and players to move."""
    two = [golden for golden in TREES if golden.options["num_players"] == 2 and golden.simulations >= 32]
    rewarded = [golden for golden in TREES if golden.model.reward_scale > 0.0 and golden.simulations >= 32]
    for golden in [*two, *rewarded][::4]:
        model = golden.model
        if golden.options["num_players"] == 2 and model.discounts is None:
            other = dataclasses.replace(golden, options={**golden.options, "num_players": 1})
        elif model.reward_scale > 0.0:
            other = dataclasses.replace(golden, model=dataclasses.replace(model, reward_scale=0.0))
        else:
            continue
        assert describe_difference(golden, build_with_reference(other)) is not None
