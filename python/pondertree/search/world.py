"""World: how a forest stores, steps and evaluates positions (engine, Python table, learned model)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree.config import SearchConfig
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo, as_contract_error, describe, play, refuse_finished
from pondertree.games.lookahead import minimax
from pondertree.gpu.protocol import ShouldStop
from pondertree.search.arguments import RootActions

#: Seed, call number and row: the key of a tree's random numbers.
Key = tuple[int, int, int]
#: One key per tree, or the seed and call number that all trees share; rows are then numbered from 0.
Keys = tuple[int, int] | list[Key]


class World(ABC):
    """The positions of one forest, and the evaluation of its leaves in batches."""

    core: EngineForest
    """The engine's forest, from `create_engine` on."""

    def __init__(self, game: GameInfo, config: SearchConfig) -> None:
        self.game = game
        """The game of the roots, as returned by `describe`."""
        categories = None if config.analysis is None else config.analysis.move_categories
        self.info = game if categories is None else replace(game, move_categories=categories)
        """The game, completed by move categories, and by a model's number of actions."""
        self.config = config
        self.deadline: float | None = None
        """End of the run, in the time of `time.perf_counter`."""

    @property
    def runs_in_engine(self) -> bool:
        """Whether whole simulations run inside the engine, without batches."""
        return False

    def describe(self, state: Any) -> GameInfo:
        """Returns the game that a root belongs to."""
        return describe(state)

    @abstractmethod
    def create_engine(self, states: Sequence[Any]) -> Any:
        """Creates the engine's forest; returns the roots for `plant`, evaluated if there is a learned model."""

    @abstractmethod
    def plant(self, roots: Any, keys: Keys, root_actions: RootActions | None = None) -> None:
        """Plants a tree for each root of `create_engine`; with `root_actions`, only these are searched at the roots."""

    def saved(self) -> tuple[dict[str, NDArray[Any]], Any]:
        """Returns the only tree as columns, and plain data about its hidden states (None without)."""
        self.synchronize()
        return self.core.columns(), None

    @abstractmethod
    def restore(self, state: Any, columns: dict[str, NDArray[Any]], hidden: Any) -> None:
        """Creates the engine's forest with the tree of `saved`, whose root is `state`."""

    @abstractmethod
    def reset(self, index: int, state: Any, key: Key) -> None:
        """Replaces tree `index` by a new one from `state`."""

    @abstractmethod
    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`, whose state is `before`; returns the state after it."""

    def advance_observed(
        self, index: int, before: Any, action: int, observation: Any, legal_actions: Any, to_play: Any
    ) -> Any:
        """Plays an action at a root that is a bare observation; returns the root after it."""
        raise NotImplementedError("only a learned model has roots that are bare observations")

    @abstractmethod
    def batch(self) -> None:
        """Gathers leaves, evaluates them and backs their values up."""

    def run(self, should_stop: ShouldStop | None) -> None:
        """Runs batches until every tree has its simulations, the search is stopped, or `should_stop()` is True."""
        while self.core.wants_more() and not self.core.stopped:
            self.batch()
            if should_stop is not None and should_stop():
                return

    def minimax_verdicts(self, index: int, root: Any, depth: int) -> list[tuple[int, int]]:
        """Returns the plies of each proven win among the actions of tree `index`'s root, -1 for a proven loss."""
        if self.info.compiled:
            return self.core.minimax(index, depth)
        with as_contract_error(self.info, "in the minimax guard"):
            outcomes = minimax(root, depth)
        return [(action, plies if sign > 0 else -1) for action, (sign, plies) in outcomes.items() if sign]

    def synchronize(self) -> None:  # noqa: B027 (nothing to do without device-resident trees)
        """Copies the nodes of device-resident trees into the engine, which has only their roots."""

    def legal_actions(self, state: Any) -> Sequence[int]:
        """Returns the legal actions of a root."""
        with as_contract_error(self.info, "in legal_actions()"):
            return list(state.legal_actions())

    def prepare_run(self, simulations: Sequence[int], is_exact: bool) -> None:  # noqa: B027 (nothing to reserve)
        """Prepares for a run of at most `simulations` per tree; `is_exact` if no other limit may end it earlier."""

    def is_searched(self, before: Any, action: int, root_actions: list[int] | None) -> bool:
        """Whether a legal action of a root is searched, so that its subtree can be reused."""
        return root_actions is None or action in root_actions

    def release(self, slots: Sequence[int]) -> None:  # noqa: B027 (compiled games have no slots)
        """Drops the positions of slots that the engine no longer uses."""

    def roll_back(self) -> None:
        """Rolls back the open batch."""
        self.release(self.core.roll_back())

    def state_after(self, before: Any, action: int) -> Any:
        """Returns the state after a legal action; raises `GameOverError` if the game is over there."""
        state = before.play(action) if self.info.compiled else play(before, action, self.info.name)
        refuse_finished(state)
        return state

    def check_noise(self) -> None:
        """Raises `InvalidArgumentError` if the search has no priors to mix noise into."""
        if not self.config.rule.has_priors:
            raise InvalidArgumentError("add_noise=True: this search has no priors to add noise to")

    def set_noise(self, index: int | None, enabled: bool) -> None:
        """Draws fresh noise for the root of tree `index`, or of all trees; restores clean priors unless `enabled`."""
        rule, noise = self.config.rule, self.config.noise
        if rule.has_dirichlet_noise:
            self.core.set_noise(index, *noise.concentration, noise.epsilon if enabled else 0.0)
        elif rule.has_priors:
            for each in range(len(self.core)) if index is None else (index,):
                self.set_gumbel(each, enabled)

    def set_gumbel(self, index: int, enabled: bool = True) -> None:
        """Sets the Gumbel numbers of tree `index`: those of the configuration, else drawn; 0 unless `enabled`."""
        given = self.config.gumbel
        if not enabled:
            self.core.set_gumbel(index, [0.0] * self.core.num_actions)
        elif given is None:
            self.core.set_gumbel(index, None)
        else:
            trees = len(self.core)
            if given.ndim == 2 and len(given) != trees:
                raise InvalidArgumentError(f"gumbel has {len(given)} rows for {trees} states: give one each")
            self.core.set_gumbel(index, (given if given.ndim == 1 else given[index]).tolist())
