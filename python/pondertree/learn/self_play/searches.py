"""The searches of each algorithm: self-play with exploration, evaluation without, and their policy targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.config import Puct
from pondertree.game import GameInfo
from pondertree.learn.config import Config
from pondertree.learn.data import LegalActions, pruned_policy
from pondertree.presets import AlphaZero, Gumbel, MuZero
from pondertree.search.base import Search
from pondertree.search.forest import Forest

#: (configuration, game, forest, legal actions, root policies over them) -> policy targets.
Policies = Callable[[Config, GameInfo, Forest, LegalActions, NDArray[np.float64]], NDArray[np.float32]]

#: Value scale of evaluation searches, as in Go and chess in Danihelka et al. 2022: with less, a confident policy is not
#: overruled by the search.
EVALUATION_VALUE_SCALE = 1.0


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches of an algorithm."""

    self_play_search: Callable[[Config, GameInfo, Any], Search]
    """(configuration, game, evaluator or model) -> self-play search."""
    evaluation_search: Callable[[Config, GameInfo, Any, int, bool], Search]
    """(configuration, game, evaluator or model, simulations, solve) -> evaluation search."""
    policies: Policies
    add_noise: bool | None
    """`add_noise` of a full self-play search; Gumbel search has its own root randomness."""


def searches_of(config: Config) -> Searches:
    """Returns the searches of the configured algorithm."""
    if config.learns_model:
        add_noise = None if config.muzero.root == "gumbel" else True
        return Searches(_model_self_play_search, _model_evaluation_search, _improved, add_noise)
    return SEARCHES[config.algorithm]


def _options_of_game(config: Config, info: GameInfo) -> dict[str, Any]:
    """Returns the options of a search by the rules that depend on the game."""
    options: dict[str, Any] = {}
    if info.has_chance:
        options["chance"] = config.self_play.chance
    if info.has_rewards:
        options["discount"] = config.returns.discount
    return options


def _gumbel(config: Config, evaluator: Any, simulations: int, **options: Any) -> Search:
    return Gumbel(evaluator, simulations, config.self_play.considered_actions, seed=config.seed, **options)


def _gumbel_self_play_search(config: Config, info: GameInfo, evaluator: Any) -> Search:
    play = config.self_play
    scale, rescales = play.value_scale, play.rescale_values
    options = {"value_scale": scale, "rescale_values": rescales, "solve": play.solve, "threads": play.threads}
    return _gumbel(config, evaluator, play.simulations, **options, **_options_of_game(config, info))


def _gumbel_evaluation_search(config: Config, info: GameInfo, evaluator: Any, simulations: int, solve: bool) -> Search:
    # Rewards of arbitrary size have no universal scale.
    scale = config.self_play.value_scale if info.has_rewards else EVALUATION_VALUE_SCALE
    options = {"gumbel_scale": 0.0, "value_scale": scale, "solve": solve, **_options_of_game(config, info)}
    return _gumbel(config, evaluator, simulations, **options)


def _alphazero_options(config: Config, info: GameInfo) -> dict[str, Any]:
    normalised = {"normalize": "tree"} if info.has_rewards else {}
    return {"seed": config.seed, **normalised, **_options_of_game(config, info)}


def _alphazero_self_play_search(config: Config, info: GameInfo, evaluator: Any) -> Search:
    play = config.self_play
    return AlphaZero(
        evaluator,
        play.simulations,
        play.c_puct,
        ("total", play.dirichlet_alpha),
        play.dirichlet_epsilon,
        forced_playouts=_forced_playouts(config, info),
        solve=play.solve,
        threads=play.threads,
        **_alphazero_options(config, info),
    )


def _forced_playouts(config: Config, info: GameInfo) -> float:
    """Returns k of forced playouts; pruning them from targets compares values, which rewards leave without a scale."""
    return 0.0 if info.has_rewards else config.self_play.forced_playouts


def _alphazero_evaluation_search(
    config: Config, info: GameInfo, evaluator: Any, simulations: int, solve: bool
) -> Search:
    options = _alphazero_options(config, info)
    return AlphaZero(evaluator, simulations, config.self_play.c_puct, solve=solve, **options)


def _model_self_play_search(config: Config, info: GameInfo, model: Any) -> Search:
    play, muzero = config.self_play, config.muzero
    common: dict[str, Any] = {"discount": muzero.discount, "threads": play.threads}
    if muzero.root == "gumbel":
        scale, rescales = play.value_scale, play.rescale_values
        options = {"model": model, "value_scale": scale, "rescale_values": rescales, **common}
        return _gumbel(config, None, play.simulations, **options)
    fraction = play.dirichlet_epsilon
    return MuZero(model, play.simulations, root_exploration_fraction=fraction, seed=config.seed, **common)


def _model_evaluation_search(config: Config, info: GameInfo, model: Any, simulations: int, solve: bool) -> Search:
    play, discount = config.self_play, config.muzero.discount
    if config.muzero.root == "puct":
        return MuZero(model, simulations, discount=discount, seed=config.seed)
    # Rewards of arbitrary size have no universal scale.
    scale = play.value_scale if config.muzero.support else EVALUATION_VALUE_SCALE
    return _gumbel(config, None, simulations, gumbel_scale=0.0, value_scale=scale, discount=discount, model=model)


def _improved(
    config: Config, info: GameInfo, forest: Forest, legal: LegalActions, policy: NDArray[np.float64]
) -> NDArray[np.float32]:
    return legal.normalised(policy)


def _pruned(
    config: Config, info: GameInfo, forest: Forest, legal: LegalActions, policy: NDArray[np.float64]
) -> NDArray[np.float32]:
    rule = Puct(config.self_play.c_puct, forced_playouts=_forced_playouts(config, info))
    if rule.forced_playouts <= 0.0:
        return legal.normalised(policy)
    results = zip(forest.results(), legal.split(legal.actions), strict=True)
    return np.concatenate([pruned_policy(result, actions, rule) for result, actions in results])


SEARCHES = {
    "gumbel": Searches(_gumbel_self_play_search, _gumbel_evaluation_search, _improved, None),
    "alphazero": Searches(_alphazero_self_play_search, _alphazero_evaluation_search, _pruned, True),
}
