"""How a training searches: to learn, with noise, and to play, without; and what it learns of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.config.schema import Config
from pondertree.learn.data.targets import LegalActions, pruned_policy
from pondertree.presets import AlphaZero, Gumbel, MuZero
from pondertree.search.base import Search
from pondertree.search.forest import Forest

#: (configuration, forest, legal actions of its trees, the searches' own policies over them): what is learned.
Policies = Callable[[Config, Forest, LegalActions, NDArray[np.float64]], NDArray[np.float32]]

#: How much values count beside the policy where strength is all, as much as Danihelka et al. 2022 let them in Go and
#: chess: a policy that is sure of itself would otherwise not be overruled by what a search has found.
PLAYED_SCALE = 1.0


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches of a training."""

    to_learn: Callable[[Config, Any], Search]
    """(configuration, evaluator or model): the search of self-play."""
    to_play: Callable[[Config, Any, int, bool], Search]
    """(configuration, evaluator or model, simulations, whether proven results are kept): the search of evaluations."""
    policies: Policies
    add_noise: bool | None
    """What a full search of self-play is told; Gumbel search draws its numbers by itself."""


def searches_of(config: Config) -> Searches:
    """The searches of the algorithm of a configuration."""
    if config.algorithm == "muzero":
        return Searches(_model_to_learn, _model_to_play, _improved, None if config.muzero.root == "gumbel" else True)
    return SEARCHES[config.algorithm]


def _gumbel_to_learn(config: Config, evaluator: Any) -> Search:
    play = config.self_play
    return Gumbel(
        evaluator,
        play.simulations,
        play.considered_actions,
        value_scale=play.value_scale,
        rescale_values=play.rescale_values,
        seed=config.seed,
        solve=play.solve,
        threads=play.threads,
    )


def _gumbel_to_play(config: Config, evaluator: Any, simulations: int, solve: bool) -> Search:
    considered = config.self_play.considered_actions
    return Gumbel(
        evaluator, simulations, considered, gumbel_scale=0.0, value_scale=PLAYED_SCALE, seed=config.seed, solve=solve
    )


def _alphazero_to_learn(config: Config, evaluator: Any) -> Search:
    play = config.self_play
    return AlphaZero(
        evaluator,
        play.simulations,
        play.c_puct,
        ("total", play.dirichlet_alpha),
        play.dirichlet_epsilon,
        forced_playouts=play.forced_playouts,
        seed=config.seed,
        solve=play.solve,
        threads=play.threads,
    )


def _alphazero_to_play(config: Config, evaluator: Any, simulations: int, solve: bool) -> Search:
    return AlphaZero(evaluator, simulations, config.self_play.c_puct, seed=config.seed, solve=solve)


def _model_to_learn(config: Config, model: Any) -> Search:
    play, muzero = config.self_play, config.muzero
    if muzero.root == "gumbel":
        return Gumbel(
            None,
            play.simulations,
            play.considered_actions,
            value_scale=play.value_scale,
            rescale_values=play.rescale_values,
            discount=muzero.discount,
            model=model,
            seed=config.seed,
            threads=play.threads,
        )
    return MuZero(
        model,
        play.simulations,
        discount=muzero.discount,
        root_exploration_fraction=play.dirichlet_epsilon,
        seed=config.seed,
        threads=play.threads,
    )


def _model_to_play(config: Config, model: Any, simulations: int, solve: bool) -> Search:
    play, discount = config.self_play, config.muzero.discount
    if config.muzero.root == "puct":
        return MuZero(model, simulations, discount=discount, seed=config.seed)
    return Gumbel(
        None,
        simulations,
        play.considered_actions,
        gumbel_scale=0.0,
        # Rewards of any size have no scale that would be right for all.
        value_scale=play.value_scale if config.muzero.support else PLAYED_SCALE,
        discount=discount,
        model=model,
        seed=config.seed,
    )


def _improved(config: Config, forest: Forest, legal: LegalActions, policy: NDArray[np.float64]) -> NDArray[np.float32]:
    return legal.shares(policy)


def _pruned(config: Config, forest: Forest, legal: LegalActions, policy: NDArray[np.float64]) -> NDArray[np.float32]:
    c_puct, forced = config.self_play.c_puct, config.self_play.forced_playouts
    if forced <= 0.0:
        return legal.shares(policy)
    results = zip(forest.results(), legal.parts(legal.actions), strict=True)
    return np.concatenate([pruned_policy(result, actions, c_puct, forced) for result, actions in results])


SEARCHES = {
    "gumbel": Searches(_gumbel_to_learn, _gumbel_to_play, _improved, None),
    "alphazero": Searches(_alphazero_to_learn, _alphazero_to_play, _pruned, True),
}
