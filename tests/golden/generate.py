"""Generates the golden trees with mctx (https://github.com/google-deepmind/mctx) into the folder of this file.

    python -m venv venv && venv/bin/pip install mctx
    PYTHONPATH=python:. venv/bin/python tests/golden/generate.py

Every tree is first built by the reference implementation. A tree is stored if each selection is unambiguous in single
and double precision: the best score leads by 1e-4, or is tied exactly in Gumbel search (then the lowest action wins).
An unambiguous tree that mctx builds differently is an error.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from tests.golden.tabular import Tabular
from tests.golden.trees import Golden, TreeSummary, build_with_reference, describe_difference, searcher

from pondertree.reference import gumbel, muzero
from pondertree.reference.sequential_halving import interior_scores

CLEAR = 1e-4
ATTEMPTS = 10_000
FOLDER = Path(__file__).parent


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns the searches and parameters to cover; seeds are found later."""
    plain = {"discount": 1.0}
    atari = {"discount": 0.997}
    versus = {"discount": 1.0, "num_players": 2}
    versus_997 = {"discount": 0.997, "num_players": 2}
    rows_one = {"discount": 0.997, "discounts": (0.997, 0.9, 0.5, 1.0, 0.0)}
    rows_two = {"discount": 1.0, "num_players": 2, "discounts": (-1.0, -0.9, 1.0, 0.5, 0.0, -0.0)}
    worlds = [plain, atari, versus, rows_one, rows_two, versus_997]
    sizes = [
        (2, 1), (2, 2), (3, 5), (2, 16), (4, 8), (5, 25), (7, 50), (9, 32), (3, 100), (16, 50), (6, 200), (18, 64),
        (4, 400), (25, 100), (64, 50), (100, 40), (200, 32), (200, 100),
    ]  # fmt: skip
    turn = itertools.cycle(worlds)
    for place, (actions, simulations) in enumerate(sizes):
        for search in ("muzero", "gumbel"):
            for reward_scale, masked in ((0.0, place % 2 == 0), (1.0, place % 2 == 1)):
                case = dict(next(turn), actions=actions, simulations=simulations, reward_scale=reward_scale)
                case["masked"] = masked and actions > 2
                if search == "gumbel" and simulations > 100:
                    # With many visits and a flat policy, visit shares are close everywhere.
                    case["options"] = {"value_scale": 1.0}
                case["logit_scale"] = 2.0 if actions < 20 else 5.0
                yield search, case
        next(turn)
    for search in ("muzero", "gumbel"):
        yield search, dict(atari, actions=8, simulations=80, reward_scale=30.0, value_scale=100.0, masked=True)
        yield search, dict(versus, actions=9, simulations=80, ruled_out=0.4, masked=False)
        yield search, dict(versus, actions=12, simulations=60, ruled_out=0.5, masked=True)
    yield "muzero", dict(plain, actions=6, simulations=60, masked=False, options={"pb_c_init": 0.4, "pb_c_base": 25.0})
    yield "muzero", dict(versus, actions=5, simulations=60, masked=True, options={"pb_c_init": 3.0, "pb_c_base": 500.0})
    for world, options in zip(
        itertools.cycle(worlds),
        (
            {"max_num_considered_actions": 4},
            {"max_num_considered_actions": 1},
            {"max_num_considered_actions": 5, "gumbel_scale": 0.0},
            {"max_num_considered_actions": 64},
            {"gumbel_scale": 0.5, "value_scale": 0.3},
            {"maxvisit_init": 10, "value_scale": 1.0},
            {"use_mixed_value": False},
            {"rescale_values": False},
            {"rescale_values": False, "use_mixed_value": False, "max_num_considered_actions": 3},
        ),
        strict=False,
    ):
        for levels in (0, 4):
            yield "gumbel", dict(world, actions=10, simulations=60, levels=levels, masked=levels > 0, options=options)
    # Wide trees: many actions of the root are visited.
    for world, actions, simulations, init in (
        (atari, 64, 150, 8.0),
        (versus, 200, 200, 20.0),
        (rows_two, 30, 200, 5.0),
    ):
        broad = dict(world, actions=actions, simulations=simulations, reward_scale=1.0, masked=actions == 200)
        yield "muzero", dict(broad, logit_scale=4.0, options={"pb_c_init": float(init)})
    for world, actions, considered in ((rows_one, 200, 64), (versus, 64, 32), (rows_two, 30, 16)):
        broad = dict(world, actions=actions, simulations=2 * considered, reward_scale=1.0, masked=actions == 64)
        options = {"max_num_considered_actions": considered, "value_scale": 0.5}
        yield "gumbel", dict(broad, logit_scale=4.0, options=options)


def main() -> None:
    """Writes both files."""
    found: dict[str, list[Golden]] = {"muzero": [], "gumbel": []}
    for number, (search, case) in enumerate(cases()):
        golden = find(search, number, **case)
        found[search].append(golden)
        size = f"{golden.model.actions} actions, {golden.simulations} simulations"
        print(f"{search} {len(found[search])}: {size}, attempt {golden.model.seed % ATTEMPTS + 1}", flush=True)
    for search, trees in found.items():
        text = ",\n".join(json.dumps(tree.to_json(), separators=(",", ":")) for tree in trees)
        (FOLDER / f"{search}.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


def find(search: str, number: int, *, masked: bool, actions: int, simulations: int, **case: Any) -> Golden:
    """Returns the first unambiguous tree of a kind, as built by mctx."""
    of_model = {field.name for field in dataclasses.fields(Tabular)}
    options = {"discount": case.pop("discount"), "num_players": case.pop("num_players", 1), **case.pop("options", {})}
    assert set(case) <= of_model, case
    for attempt in range(ATTEMPTS):
        seed = ATTEMPTS * number + attempt
        model = Tabular(seed, states=max(40, simulations // 2), actions=actions, **case)
        random = np.random.PCG64(seed + 10**6)
        root = int(random.random_raw() % model.states)
        legal = None
        if masked:
            order = np.argsort(random.random_raw(actions), kind="stable")
            legal = [int(action) for action in order[: max(2, actions * 2 // 3)]]
            if 0 not in legal:
                legal[0] = 0
        stated = Golden(search, model, root, legal, simulations, options)
        if search == "gumbel":
            stated = dataclasses.replace(stated, gumbel=gumbel_numbers(seed, actions))
        if not is_clear(stated):
            continue
        golden = dataclasses.replace(stated, grown=build_with_mctx(stated, seed))
        difference = describe_difference(golden, build_with_reference(golden))
        assert difference is None, f"the reference implementation differs from mctx: {difference} in {stated}"
        return golden
    raise RuntimeError(f"no clear tree of {actions} actions and {simulations} simulations: {case}")


def gumbel_numbers(seed: int, actions: int) -> list[float]:
    """Returns the Gumbel variates that mctx samples from the key of `seed`, unscaled."""
    _, key = jax.random.split(jax.random.PRNGKey(seed))
    return [short(number) for number in jax.random.gumbel(key, (1, actions), jnp.float32)[0]]


def short(number: Any) -> float:
    """Rounds a float32 to its shortest round-trip decimal."""
    return float(str(np.float32(number)))


# --- mctx -----------------------------------------------------------------------------------------------------------


def build_with_mctx(golden: Golden, seed: int) -> TreeSummary:
    """Returns the tree built by mctx."""
    model = golden.model
    following, reward, value, logits, discount = (
        jnp.asarray(getattr(model, name)) for name in ("following", "reward", "value", "logits", "discount")
    )
    if model.discounts is None:
        sign = -1.0 if golden.options["num_players"] == 2 else 1.0
        discount = jnp.full_like(discount, sign * golden.options["discount"])

    def step(params: Any, key: Any, action: Any, row: Any) -> Any:
        after = following[row, action]
        output = mctx.RecurrentFnOutput(
            reward=reward[row, action],
            discount=discount[row, action],
            prior_logits=logits[after],
            value=value[after],
        )
        return output, after

    first = jnp.array([golden.root])
    root = mctx.RootFnOutput(prior_logits=logits[first], value=value[first], embedding=first)
    legal = range(model.actions) if golden.legal_actions is None else golden.legal_actions
    invalid = jnp.array([[float(action not in legal) for action in range(model.actions)]])
    policy = jax.jit(functools.partial(policy_of(golden), recurrent_fn=step, num_simulations=golden.simulations))
    output = policy(params=(), rng_key=jax.random.PRNGKey(seed), root=root, invalid_actions=invalid)
    tree = jax.tree_util.tree_map(np.asarray, output.search_tree)
    if golden.search == "gumbel":
        given = golden.options.get("gumbel_scale", 1.0) * np.array(golden.gumbel, dtype=np.float32)
        assert np.allclose(tree.extra_data.root_gumbel[0], given, rtol=1e-6), "not the numbers that were foretold"
    nodes = range(1, golden.simulations + 1)
    return TreeSummary(
        expansions=[(int(tree.parents[0, node]), int(tree.action_from_parent[0, node])) for node in nodes],
        visits=[int(visits) for visits in tree.node_visits[0]],
        values=[short(value) for value in tree.node_values[0]],
        action=int(output.action[0]) if golden.search == "gumbel" else None,
        policy=[short(share) for share in output.action_weights[0]] if golden.search == "gumbel" else None,
    )


def policy_of(golden: Golden) -> Callable[..., Any]:
    """Returns mctx's policy function with the options of a tree."""
    options = {name: value for name, value in golden.options.items() if name not in ("discount", "num_players")}
    if golden.search == "muzero":
        return functools.partial(mctx.muzero_policy, dirichlet_fraction=0.0, **options)
    of_search = ("max_num_considered_actions", "gumbel_scale")
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        **{name: value for name, value in options.items() if name not in of_search},
    )
    chosen = {name: options[name] for name in of_search if name in options}
    return functools.partial(mctx.gumbel_muzero_policy, qtransform=qtransform, **chosen)


# --- How clear the choices are --------------------------------------------------------------------------------------


class UnclearError(Exception):
    """Raised if two scores are so close that rounding could decide."""


class Watched:
    """A search that stops at the first ambiguous selection."""

    def check(self, scores: Iterable[float]) -> None:
        """Checks that the best score leads; in Gumbel search, exact ties are allowed."""
        listed = list(scores)
        best = max(listed)
        rivals = [score for score in listed if score != best]
        tied = len(listed) - len(rivals) > 1
        if best - max(rivals, default=-math.inf) < CLEAR or (tied and isinstance(self, muzero.MCTS)):
            raise UnclearError


class WatchedMuZero(Watched, muzero.MCTS):
    """MuZero's search with checked selections."""

    def _descend(self, tree: Any, random: Any, record: Any, outcome_random: Any) -> Any:
        scores: list[Any] = []
        leaf = super()._descend(tree, random, scores, outcome_random)
        for each, _ in scores:
            self.check(score for _, score in each)
        return leaf


class WatchedGumbel(Watched, gumbel.MCTS):
    """Gumbel search with checked selections among all candidates."""

    def _descend(self, tree: Any, random: Any, record: Any, outcome_random: Any) -> Any:
        leaf = super()._descend(tree, random, record, outcome_random)
        node = leaf.parent
        while node.parent is not None:
            self.check(interior_scores(node, self.q_transform.at(node)).values())
            node = node.parent
        self.check_root(tree, tree.schedule.considered[tree.simulations - tree.schedule.first_simulation])
        return leaf

    def _best_move(self, tree: Any, root: Any, random: Any) -> Any:
        self.check_root(tree, max(child.visit_count for child in root.children.values()))
        return super()._best_move(tree, root, random)

    def check_root(self, tree: Any, visits: int) -> None:
        """Checks the selection among the moves of the root with the considered visits."""
        bonus = self.q_transform.at(tree.root)
        children = [child for child in tree.root.children.values() if child.visit_count == visits]
        self.check(tree.schedule.score(child, bonus) for child in children)


def is_clear(golden: Golden) -> bool:
    """Returns whether all selections, and the final one, are unambiguous."""
    search = searcher(golden, WatchedMuZero, WatchedGumbel)
    tree = search.tree(observation=[golden.root], legal_actions=golden.legal_actions)
    try:
        search.simulate(tree, golden.simulations)
        search.result(tree)
    except UnclearError:
        return False
    return True


if __name__ == "__main__":
    main()
