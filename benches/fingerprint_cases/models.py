"""Cases of `MuZero` and `Gumbel` with learned models."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from exact import TableModel

from fingerprint_cases.case import Case, Cases, Options, named, run
from fingerprint_cases.positions import (
    ACTIONS,
    COMPILED,
    STARTS,
    position,
    sims,
)
from fingerprint_cases.transcript import Transcript
from pondertree import Gumbel, MuZero

MODELS: tuple[tuple[Options, Options], ...] = (
    ({"num_actions": 5}, {}),
    ({"num_actions": 5, "rewards": 0.5}, {"discount": 0.9}),
    ({"num_actions": 18, "rewards": 2.0, "shape": (2, 3)}, {"normalize": "tree"}),
    ({"num_actions": 18, "levels": 3}, {"normalize": None, "discount": 1.0}),
    ({"num_actions": 7}, {"num_players": 2, "discount": 1.0}),
    ({"num_actions": 7, "rewards": 0.25}, {"num_players": 2, "discount": 0.95, "normalize": "tree"}),
    ({"num_actions": 6, "discounts": (0.9, 0.0, 1.0), "rewards": 1.0}, {}),
    ({"num_actions": 6, "discounts": (-1.0, 1.0, -0.5, 0.0), "rewards": 0.25}, {"num_players": 2, "discount": 1.0}),
    ({"num_actions": 40, "excluded": 3}, {"in_flight": 4}),
    ({"num_actions": 40, "excluded": 2, "levels": 5}, {"in_flight": 16, "threads": 2}),
    ({"num_actions": 200, "rewards": 0.1}, {"pb_c_init": 2.0, "pb_c_base": 500}),
    ({"num_actions": 4672}, {}),
    ({"num_actions": 4672, "excluded": 40, "rewards": 0.5}, {"in_flight": 4}),
    ({"num_actions": 9, "levels": 3}, {"early_stop": True, "max_nodes": 40}),
)


MUZERO_ONLY = ("normalize", "pb_c_init", "pb_c_base", "early_stop")


def observation(row: int = 0) -> dict[str, Any]:
    """One observation as the arguments of a search."""
    return {"observation": np.array([row, 3, 5], dtype=np.float32)}


def _masked(**options: Any) -> dict[str, Any]:
    return {**observation(4), **options}


def muzero_model(model: Options, options: Options) -> Any:
    """`MuZero` with a table model."""
    return MuZero(TableModel(**model), **{"num_simulations": 50, "seed": 11, **options})


def _gumbel_model(model: Options, options: Options) -> Any:
    return Gumbel(model=TableModel(**model), **options)


def _observed(model: Options, options: Options) -> Case:
    """A tree over observations, advanced with the observation after each action, then reset."""

    def case(transcript: Transcript) -> None:
        tree = muzero_model(model, options).tree(**observation())
        actions = list(range(model["num_actions"]))
        for move in range(4):
            result = tree.simulate(add_noise=move == 2).result()
            transcript.result(result)
            known: dict[str, Any] = {"to_play": (move + 1) % options.get("num_players", 1)}
            if move % 2 == 0:
                known["legal_actions"] = actions[move::2]
            if move:
                known["observation"] = observation(move)["observation"]
            tree.advance(result.action, **known)
        transcript.result(tree.simulate().result())
        tree.reset(observation=observation(9)["observation"], legal_actions=[0, 2], to_play=0)
        transcript.result(tree.simulate().result())

    return case


def model_cases() -> Cases:
    """Single roots, batches, masks, games, and roots advanced with new observations."""
    for place, (model, options) in enumerate(MODELS):
        made = {name: value for name, value in options.items() if name not in MUZERO_ONLY}
        some = {"num_simulations": 24 + 8 * place, "seed": 9, **made}
        yield named(f"Gumbel model {place}", options), run(partial(_gumbel_model, model, some), observation)
    for place, (model, options) in enumerate(MODELS):
        full = {"num_simulations": 20 if model["num_actions"] > 1000 else 100, **options}
        search = partial(muzero_model, model, full)
        yield named(f"MuZero {place}", options), run(search, observation)
        yield named(f"MuZero {place} noise", options), run(search, observation, add_noise=True, temperature=1.0)
        if model["num_actions"] < 1000:
            rows = {"observation": [observation(row)["observation"] for row in range(5)]}
            batch = partial(muzero_model, model, {**options, "threads": 2, "solve": False})
            yield named(f"MuZero {place} batch", options), run(batch, rows.copy, seeds=[4, 1, 9, 9, 2])
    alike = partial(muzero_model, {"num_actions": 7}, {"num_players": 2, "discount": 1.0})
    yield "MuZero legal_actions", run(alike, partial(_masked, legal_actions=[1, 4, 6], to_play=1), add_noise=True)
    yield "MuZero root_actions", run(alike, partial(_masked, legal_actions=[1, 4, 6], to_play=0), root_actions=[6, 1])
    for game in COMPILED:
        search = partial(muzero_model, {"num_actions": ACTIONS[game]}, {"num_simulations": sims(game, 80)})
        yield f"MuZero {game}", run(search, partial(position, game, 2), temperature=1.0)
    for game in ("one_player", "two_players", "rewards_2"):
        width = STARTS[game]().num_actions
        yield f"MuZero {game}", run(partial(muzero_model, {"num_actions": width}, {}), partial(position, game, 0))
    for place, (model, options) in enumerate(MODELS):
        if model["num_actions"] < 1000:
            yield named(f"observed MuZero {place}", options), _observed(model, options)
