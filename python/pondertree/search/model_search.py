"""What searches offer that can plan in a learned model: roots that are states, or bare observations."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.config import Settings
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo, describe
from pondertree.models import as_model
from pondertree.models.arrays import library_of, number_array
from pondertree.models.observation_shape import ObservationShape
from pondertree.models.players import AssumedPlayers, players_of, warn_of_unknown_players
from pondertree.search.base import Search
from pondertree.search.forest import Forest, Progress, Tree
from pondertree.search.latent_world import ModelWorld
from pondertree.search.observation_root import ONE, Observed, ObservedRows, observed
from pondertree.search.world import World

#: What is known of bare observations with one player, and with two: how many actions there are, the model will say.
_OBSERVED = [GameInfo("the model", False, 0, players, False, True, imagined=True) for players in (1, 2)]


class ModelSearch(Search):
    """A search whose world may be a learned model."""

    model: Any
    discount: float
    num_players: int | None

    def __post_init__(self) -> None:
        # A player that was trained knows how many its game has.
        self._told_players = players_of(self.model)
        if isinstance(self.num_players, AssumedPlayers):
            self.num_players = None
        super().__post_init__()
        self.model = None if self.model is None else as_model(self.model)
        self._observation_shape = ObservationShape(self.model)
        is_stated = self.num_players is not None
        self._players_are_assumed = not is_stated and self._told_players is None
        self._players = self.num_players or self._told_players or 1
        # A number that was not given stays marked as such, for `dataclasses.replace`.
        self.num_players = self._players if is_stated else AssumedPlayers(self._players)

    def describe(self, state: Any) -> GameInfo:
        """What a root belongs to: a game that says how many players it has, or what the settings say."""
        if isinstance(state, Observed):
            if self.model is None:
                raise InvalidArgumentError("observation= needs a model: an evaluator wants the state of a game")
            if self._told_players not in (None, self._players):
                raise InvalidArgumentError(
                    f"num_players is {self.num_players}, but the model is of a game of {self._told_players}: "
                    f"give num_players={self._told_players}, or leave it out"
                )
            return _OBSERVED[self._players - 1]
        info = describe(state)
        if self.model is None:
            return info
        if info.num_players > 2:
            raise InvalidArgumentError(f"{info.name} has {info.num_players} players: models are for one or two")
        if self._players not in (1, info.num_players):
            raise InvalidArgumentError(f"num_players is {self.num_players}, but {info.name} has {info.num_players}")
        return GameInfo(info.name, False, info.num_actions, info.num_players, False, True, imagined=True)

    def world(self, info: GameInfo, settings: Settings, states: Sequence[Any]) -> World:
        """The model's hidden states, or the states of a game."""
        if self.model is None:
            return super().world(info, settings, states)
        return ModelWorld(self.model, info, settings, states)

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

        An observation comes without the axis of the batch, as `initial_inference` takes its rows. `legal_actions` (the
        actions, or a mask; all where it is not given) and `to_play` (0) are known at the root alone: one for each
        observation. The rest is as in every search.

        An array with one axis is one observation. Any other is one, or a batch whose first axis is that of its rows, by
        the shape that the model declares (`observation_shape`) or that it can take. An array that could be either is
        one if `legal_actions` of one are given, else an InvalidArgumentError.
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
        """The action to play; a root is given as in `run`."""
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
        """The action to play and the policy, whatever the temperature; a root is given as in `run`."""
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
        """A tree to be grown step by step; its root is given as in `run`."""
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
        """Many trees, grown together; their roots are given as in `run`.

        Observations may be one array, too, whose first axis is that of the batch.
        """
        if states is None and _are_rows(observation):
            self._notice_players()
            if legal_actions is None and to_play is None and len(observation) and not _holds_objects(observation):
                return Forest(self, ObservedRows(observation), seeds, root_actions)
            observation = list(observation)
        roots = self._roots(states, observation, legal_actions, to_play)
        if observation is not None and isinstance(roots, list) and not roots:
            raise InvalidArgumentError("observation is empty: give at least one observation")
        if isinstance(roots, Observed):
            raise InvalidArgumentError(
                "observation must be a list of observations, or an array of them, whose first axis is that of the "
                "batch; an array with one axis is one of them: use tree()"
            )
        if observation is None:
            return super().forest(roots, seeds=seeds, root_actions=root_actions)
        return Forest(self, roots, seeds, root_actions)

    def _are_many(self, observation: Any, legal_actions: Any, to_play: Any, one_is_wanted: bool) -> bool:
        """Whether there are several observations: a list of arrays, an array with a list of the others beside it, or an
        array that the model takes for several.
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
        if one_is_wanted:
            # The method takes one: the model is not asked whether it could be several.
            return bool(self._observation_shape.known(observation))
        # Legal actions beside it are those of one: they decide where the model takes the array either way.
        return self._observation_shape.is_batch(observation, either_is_one=legal_actions is not None)

    def _notice_players(self) -> None:
        """Warns, once for each search, if nobody has said how many players there are."""
        if self._players_are_assumed and self.model is not None:
            self._players_are_assumed = False
            warn_of_unknown_players()

    def _root(self, state: Any, observation: Any, legal_actions: Any, to_play: Any) -> Any:
        """The one state to search."""
        root = self._roots(state, observation, legal_actions, to_play, one_is_wanted=True)
        if observation is not None and isinstance(root, list):
            raise InvalidArgumentError("observation is a list of them, and one is wanted: run() and forest() take many")
        return root

    def _roots(
        self, state: Any, observation: Any, legal_actions: Any, to_play: Any, one_is_wanted: bool = False
    ) -> Any:
        """The state or states to search."""
        if (state is None) == (observation is None):
            raise InvalidArgumentError("give a state, or observation=, and not both")
        if observation is None:
            if not (legal_actions is None and to_play is None):
                raise InvalidArgumentError("legal_actions and to_play come with observation=: a state says them itself")
            return state
        validation.no_iterator(observation, "observation", "observations")
        self._notice_players()
        legal_actions, to_play = _as_numpy(legal_actions, "legal_actions"), _as_numpy(to_play, "to_play")
        if not self._are_many(observation, legal_actions, to_play, one_is_wanted):
            return observed(observation, legal_actions, to_play, ONE, self._players)
        if legal_actions is None and to_play is None and not any(map(operator.is_, observation, repeat(None))):
            # The usual case, and there may be thousands.
            return list(map(Observed, observation))
        try:
            rows = len(observation)
            masks = [None] * rows if legal_actions is None else list(legal_actions)
        except TypeError:
            raise InvalidArgumentError(
                "observation, legal_actions and to_play do not go together: give one of each, or lists of them"
            ) from None
        if len(masks) != rows:
            raise InvalidArgumentError(f"legal_actions has {len(masks)} entries for {rows} observations: give one each")
        if not all(each is None or _has_entries(each) for each in masks):
            raise InvalidArgumentError("legal_actions is one list for several observations: give one for each of them")
        turns = validation.per_row(to_play, rows, "to_play")
        return [
            observed(each, masks[row], turns[row], f"observation[{row}]", self._players)
            for row, each in enumerate(observation)
        ]


def _are_rows(observation: Any) -> bool:
    """Whether it is an array of several observations; one axis alone is that of one of them."""
    return library_of(observation) is not None and observation.ndim >= 2


def _holds_objects(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.hasobject


def _as_numpy(given: Any, name: str) -> Any:
    """Arrays of PyTorch and JAX as NumPy's; anything else as it is."""
    return number_array(given, name) if library_of(given) in ("torch", "jax") else given


def _has_entries(given: Any) -> bool:
    """Whether it is a list or an array, of any library."""
    return validation.is_listed(given) or getattr(given, "ndim", 0) > 0
