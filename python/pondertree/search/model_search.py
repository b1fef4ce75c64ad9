"""The base of searches that can plan in a learned model, from states or from bare observations."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.config import SearchConfig
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo, describe
from pondertree.models import as_model
from pondertree.models.arrays import library_of, number_array
from pondertree.models.observation_shape import ObservationShape
from pondertree.models.players import AssumedPlayers, players_of, warn_of_unknown_players
from pondertree.search.arguments import Progress
from pondertree.search.base import Search
from pondertree.search.forest import Forest
from pondertree.search.latent_world import LatentWorld, latent_game
from pondertree.search.observation_root import SINGLE, ObservationBatch, ObservationRoot, observation_root
from pondertree.search.tree import Tree
from pondertree.search.world import World


class ModelSearch(Search):
    """A search that plans in its learned model, if it has one."""

    model: Any
    discount: float | None
    num_players: int | None

    def __post_init__(self) -> None:
        # Trained players declare the number of players of their game.
        self._model_players = players_of(self.model)
        if isinstance(self.num_players, AssumedPlayers):
            self.num_players = None
        super().__post_init__()
        self.model = None if self.model is None else as_model(self.model)
        self._observation_shape = ObservationShape(self.model)
        is_stated = self.num_players is not None
        self._players_are_assumed = not is_stated and self._model_players is None
        self._players = self.num_players or self._model_players or 1
        # Keeps the `AssumedPlayers` marker, so that `dataclasses.replace` does not treat it as given.
        self.num_players = self._players if is_stated else AssumedPlayers(self._players)

    def describe(self, state: Any) -> GameInfo:
        """Returns the game of a root."""
        is_observed = isinstance(state, ObservationRoot)
        if self.model is None:
            if is_observed:
                raise InvalidArgumentError("observation= needs a model: an evaluator requires the state of a game")
            return describe(state)
        if is_observed and self._model_players not in (None, self._players):
            raise InvalidArgumentError(
                f"num_players is {self.num_players}, but the model is of a game of {self._model_players}: "
                f"give num_players={self._model_players}, or leave it out"
            )
        return latent_game(state, self._players)

    def world(self, info: GameInfo, config: SearchConfig) -> World:
        """Returns the world of the model; that of the game for an evaluator."""
        if self.model is None:
            return super().world(info, config)
        return LatentWorld(self.model, self._players, info, config)

    def run(
        self,
        state: Any = None,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: Any = None,
        temperature: Any = None,
        add_noise: Any = None,
        seeds: Any = None,
        root_actions: Any = None,
        progress: Progress | None = None,
    ) -> Any:
        """Searches a state or a list of them, or `observation`: one, or a list of them.

        An observation is one row of the batch that `initial_inference` takes. `legal_actions` (actions or a boolean
        mask; by default all) and `to_play` (by default 0) describe the root, one of each per observation. The other
        arguments are those of every search.

        An array with one axis is one observation. Any other array is one observation or a batch of them, determined by
        the shape that the model declares (`observation_shape`) or accepts. An ambiguous array is one observation if
        `legal_actions` of one are given; otherwise an InvalidArgumentError is raised.
        """
        roots = self._roots(state, observation, legal_actions, to_play)
        return super().run(
            roots,
            temperature=temperature,
            add_noise=add_noise,
            seeds=seeds,
            root_actions=root_actions,
            progress=progress,
        )

    def search(
        self,
        state: Any = None,
        temperature: float | None = None,
        add_noise: bool | None = None,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: Any = None,
    ) -> Any:
        """Returns the action to play; the root is given as in `run`."""
        root = self._root(state, observation, legal_actions, to_play)
        return super().search(root, temperature, add_noise)

    def get_policy(
        self,
        state: Any = None,
        temperature: float | None = None,
        add_noise: bool | None = None,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: Any = None,
    ) -> tuple[Any, NDArray[np.float64]]:
        """Returns the action to play and the policy, whatever the temperature; the root is given as in `run`."""
        root = self._root(state, observation, legal_actions, to_play)
        return super().get_policy(root, temperature, add_noise)

    def tree(
        self,
        state: Any = None,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: Any = None,
        seeds: int | None = None,
        root_actions: Collection[Any] | None = None,
    ) -> Tree:
        """Plants a tree, as `Search.tree` does; the root is given as in `run`."""
        root = self._root(state, observation, legal_actions, to_play)
        return super().tree(root, seeds=seeds, root_actions=root_actions)

    def forest(
        self,
        states: Any = None,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: Any = None,
        seeds: int | Sequence[int] | None = None,
        root_actions: Collection[Any] | None = None,
    ) -> Forest:
        """Plants many trees, as `Search.forest` does; roots are given as in `run`, or as one array of observations."""
        if states is None and _are_rows(observation):
            self._warn_of_assumed_players()
            if legal_actions is None and to_play is None and len(observation) and not _holds_objects(observation):
                return self._plant(ObservationBatch(observation), seeds, root_actions)
            observation = list(observation)
        roots = self._roots(states, observation, legal_actions, to_play)
        if observation is not None and isinstance(roots, list) and not roots:
            raise InvalidArgumentError("observation is empty: give at least one observation")
        if isinstance(roots, ObservationRoot):
            raise InvalidArgumentError(
                "observation must be a list of observations, or an array of them, whose first axis is that of the "
                "batch; an array with one axis is one of them: use tree()"
            )
        if observation is None:
            return super().forest(roots, seeds=seeds, root_actions=root_actions)
        return self._plant(roots, seeds, root_actions)

    def _are_many(self, observation: Any, legal_actions: Any, to_play: Any, expects_one: bool) -> bool:
        """Whether there are several observations: a list of arrays, an array with lists of the other arguments, or an
        array that the model takes as a batch.
        """
        if isinstance(observation, (list, tuple)):
            many = len(observation) == 0 or np.ndim(observation[0]) > 0
            if many and len(observation):
                self._observation_shape.note(tuple(np.shape(observation[0])))
            return many
        if validation.is_listed(to_play):
            return True
        if validation.is_listed(legal_actions) and any(_has_entries(each) for each in legal_actions):
            return True
        if self.model is None or library_of(observation) is None or _holds_objects(observation):
            return False
        if expects_one:
            # The model is not called: only a declared shape identifies a batch.
            return bool(self._observation_shape.known(observation))
        # Legal actions of one observation decide if the model accepts the array in both forms.
        return self._observation_shape.is_batch(observation, either_is_one=legal_actions is not None)

    def _warn_of_assumed_players(self) -> None:
        """Issues a `PlayerCountWarning`, once per search, if the number of players is assumed."""
        if self._players_are_assumed and self.model is not None:
            self._players_are_assumed = False
            warn_of_unknown_players()

    def _root(self, state: Any, observation: Any, legal_actions: Any, to_play: Any) -> Any:
        """Returns the single root to search."""
        root = self._roots(state, observation, legal_actions, to_play, expects_one=True)
        if observation is not None and isinstance(root, list):
            raise InvalidArgumentError(
                "observation is a list, but this method takes one observation: run() and forest() take lists"
            )
        return root

    def _roots(self, state: Any, observation: Any, legal_actions: Any, to_play: Any, expects_one: bool = False) -> Any:
        """Returns the root or roots to search."""
        if (state is None) == (observation is None):
            raise InvalidArgumentError("give a state, or observation=, and not both")
        if observation is None:
            if not (legal_actions is None and to_play is None):
                raise InvalidArgumentError("legal_actions and to_play require observation=: a state defines its own")
            return state
        validation.no_iterator(observation, "observation", "observations")
        self._warn_of_assumed_players()
        legal_actions, to_play = _as_numpy(legal_actions, "legal_actions"), _as_numpy(to_play, "to_play")
        if not self._are_many(observation, legal_actions, to_play, expects_one):
            return observation_root(observation, legal_actions, to_play, SINGLE, self._players)
        if legal_actions is None and to_play is None and not any(map(operator.is_, observation, repeat(None))):
            # Fast path for thousands of rows.
            return list(map(ObservationRoot, observation))
        try:
            rows = len(observation)
            masks = [None] * rows if legal_actions is None else list(legal_actions)
        except TypeError:
            raise InvalidArgumentError(
                "observation, legal_actions and to_play do not match: give one of each, or lists of equal length"
            ) from None
        if len(masks) != rows:
            raise InvalidArgumentError(f"legal_actions has {len(masks)} entries for {rows} observations: give one each")
        if not all(each is None or _has_entries(each) for each in masks):
            raise InvalidArgumentError("legal_actions is one list for several observations: give one for each of them")
        players = validation.per_row(to_play, rows, "to_play")
        return [
            observation_root(each, masks[row], players[row], f"observation[{row}]", self._players)
            for row, each in enumerate(observation)
        ]


def _are_rows(observation: Any) -> bool:
    """Whether it is an array with a batch axis."""
    return library_of(observation) is not None and observation.ndim >= 2


def _holds_objects(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.hasobject


def _as_numpy(given: Any, name: str) -> Any:
    """Returns arrays of PyTorch and JAX as NumPy arrays, and anything else unchanged."""
    return number_array(given, name) if library_of(given) in ("torch", "jax") else given


def _has_entries(given: Any) -> bool:
    """Whether it is a list, or an array of any library."""
    return validation.is_listed(given) or getattr(given, "ndim", 0) > 0
