"""The world of a learned model: hidden states are stored in a pool by slot, and the engine receives only numbers."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree.config import SearchConfig
from pondertree.errors import EVALUATOR_RAISED, EvaluationError, InvalidArgumentError
from pondertree.game import GameInfo, describe
from pondertree.gpu.offload import DeviceOffload
from pondertree.gpu.pipeline import InferencePipeline
from pondertree.gpu.protocol import (
    SUPPORTED,
    InferenceBackend,
    InferenceBuffer,
    Job,
    LatentBuffer,
    LatentContext,
    Mode,
    ShouldStop,
    Support,
    is_backend,
    query,
)
from pondertree.gpu.tree_shape import TreeShape
from pondertree.models.arrays import dtype_name, from_raw, library_of, to_raw
from pondertree.models.hidden import flatten, structure_data, structure_of, unflatten
from pondertree.models.inference import Inference
from pondertree.models.pool import HiddenPool
from pondertree.models.responses import InitialOutput, RecurrentOutput, is_numpy_tuple
from pondertree.search.arguments import RootActions
from pondertree.search.observation_root import (
    ObservationBatch,
    ObservationRoot,
    batch_hint,
    following_root,
    root_of,
    roots_of,
    stack,
)
from pondertree.search.world import Key, Keys, World

#: Initial slots per tree; a full pool doubles.
SLOTS_PER_TREE = 64
#: At most this many bytes are reserved before a run; a larger pool grows on demand.
MAX_RESERVED = 1 << 28
#: Approximate size of a node in the engine; small compared with a hidden state.
BYTES_PER_NODE = 256
#: The engine numbers actions by 16 bits.
MAX_ACTIONS = 65535


#: Gathered rows: parent slots, actions, the first new slot, and all new slots where they are not consecutive.
Rows = tuple[NDArray[np.int64], NDArray[np.int64], int, NDArray[np.int64] | None]


class EvaluatedRoots(NamedTuple):
    """Roots with the model's output for them."""

    roots: Sequence[ObservationRoot]
    output: InitialOutput


#: The game of bare observations with one player, and with two; the model gives the number of actions.
_OBSERVED = [GameInfo("the model", False, 0, players, False, True, is_learned_model=True) for players in (1, 2)]


def latent_game(state: Any, num_players: int) -> GameInfo:
    """Returns the game of a root for planning with a learned model of `num_players` players."""
    if isinstance(state, ObservationRoot):
        return _OBSERVED[num_players - 1]
    info = describe(state)
    if info.has_chance:
        raise InvalidArgumentError(
            f"{info.name} has chance nodes: learned models have none, search it with an evaluator"
        )
    if info.num_players > 2:
        raise InvalidArgumentError(
            f"{info.name} has {info.num_players} players: learned models support one or two players"
        )
    if num_players not in (1, info.num_players):
        raise InvalidArgumentError(f"num_players is {num_players}, but {info.name} has {info.num_players}")
    return GameInfo(info.name, False, info.num_actions, info.num_players, False, True, is_learned_model=True)


class LatentWorld(World):
    """Trees of a learned model, whose hidden states are kept in a pool on the model's device."""

    def __init__(self, model: Any, num_players: int, game: GameInfo, config: SearchConfig) -> None:
        super().__init__(game, config)
        self._num_players = num_players
        self._inference = Inference(model, game.num_actions or None)
        self._most_visits = 0
        """Upper bound of the visits of a node in the run."""

    def describe(self, state: Any) -> GameInfo:
        """Returns the game that a root belongs to."""
        return latent_game(state, self._num_players)

    def create_engine(self, states: Sequence[Any]) -> EvaluatedRoots:
        """Evaluates all roots in one batch, which determines the number of actions, and creates the engine's forest."""
        model: Any = self._inference.model
        roots = roots_of(states)
        allocate = getattr(model, "observation_array", None)
        try:
            output = self._inference.initial(stack(roots, allocate))
        except EvaluationError as error:
            hint = batch_hint(roots, str(error))
            if hint is None:
                raise
            raise EvaluationError(f"{error} ({hint})") from error.__cause__
        self._create_engine(output.logits.shape[1], output.hidden, len(roots))
        return EvaluatedRoots(roots, output)

    def _create_engine(self, num_actions: int, hidden: Any, trees: int) -> None:
        """Creates the engine's forest and the pool for hidden states like those of its roots."""
        model: Any = self._inference.model
        if num_actions > MAX_ACTIONS:
            raise InvalidArgumentError(f"the model has {num_actions} actions: at most {MAX_ACTIONS} are possible")
        self.info = replace(self.info, num_actions=num_actions)
        data = self.config.engine_data(self.info, trees, model)
        # A memory limit includes hidden states, the largest part of such a tree.
        self._slot_bytes = sum(int(array.nbytes) for array in flatten(hidden)[0]) // trees
        maximum = None
        if data["max_bytes"] is not None:
            most = max(int(data["max_bytes"]) // (self._slot_bytes + BYTES_PER_NODE), 1)
            data["max_nodes"] = most if data["max_nodes"] is None else min(most, data["max_nodes"])
            maximum = (data["max_nodes"] + self.config.options.in_flight) * trees
        job = Job(trees, hidden=hidden)
        supported = not maximum and query(model, job, Mode.PIPELINED).ok
        self._context: LatentContext | None = model.acquire(job) if supported else None
        if self._context is None:
            self._pool = HiddenPool(capacity=max(SLOTS_PER_TREE * trees, 1), maximum=maximum)
        else:
            self._pool = self._context.pool
            weakref.finalize(self, model.release, self._context)
        self.core = EngineForest("latent", data)
        self._offload = DeviceOffload(self.core)

    def saved(self) -> tuple[dict[str, NDArray[Any]], Any]:
        """Returns the only tree as columns, with the hidden states of its nodes, and plain data about these."""
        columns, _ = super().saved()
        arrays, structure = flatten(self._pool.gather(columns["node_slot"].astype(np.int64)))
        kinds = [[library_of(array), dtype_name(array), str(getattr(array, "device", None))] for array in arrays]
        hidden = {
            "structure": structure_data(structure),
            "arrays": kinds,
            "num_actions": self.info.num_actions,
        }
        return columns | {f"hidden_{place}": to_raw(array) for place, array in enumerate(arrays)}, hidden

    def restore(self, state: Any, columns: dict[str, NDArray[Any]], hidden: Any) -> None:
        """Creates the engine's forest with a saved tree, and the pool with its hidden states."""
        model: Any = self._inference.model
        slots, num_actions = columns["node_slot"].astype(np.int64), int(hidden["num_actions"])
        if self.info.num_actions not in (0, num_actions):
            raise InvalidArgumentError(f"the tree has {num_actions} actions, and the game {self.info.num_actions}")
        if hidden["structure"] is not None:
            structure = structure_of(hidden["structure"])
        elif getattr(state, "observation", None) is None:
            raise InvalidArgumentError(
                "hidden states of this class are made by the model, and the root has no observation"
            )
        else:
            structure = flatten(self._inference.initial(stack([root_of(state)])).hidden)[1]
        raw = [columns[f"hidden_{place}"] for place in range(len(hidden["arrays"]))]
        if not all(len(array) == len(slots) for array in raw):
            raise InvalidArgumentError("the hidden states are not one for each node")
        arrays = [
            from_raw(array, library, dtype, getattr(model, "device", device if library == "torch" else None))
            for array, (library, dtype, device) in zip(raw, hidden["arrays"], strict=True)
        ]
        every = unflatten(structure, iter(arrays))
        if len(flatten(every)[0]) != len(arrays):
            raise InvalidArgumentError("the hidden states have another structure")
        self._inference.restore(every, len(slots), num_actions)
        self._create_engine(num_actions, unflatten(structure, iter([array[:1] for array in arrays])), 1)
        self.core.restore(None, columns)
        self._pool.scatter(slots, every)

    def plant(self, evaluated: EvaluatedRoots, keys: Keys, root_actions: RootActions | None = None) -> None:
        """Plants a tree for each evaluated root."""
        roots, output = evaluated
        num_actions = self.info.num_actions
        to_play = legal = None
        if not isinstance(roots, ObservationBatch):
            legal = [None if root.allowed is None else root.legal(num_actions) for root in roots]
            to_play = [root.to_play for root in roots]
        if root_actions is not None:
            everything: RootActions = [None] * len(roots)
            legal = [searched or known for searched, known in zip(root_actions, legal or everything, strict=True)]
        slots = self.core.plant_latent(to_play, legal, output.logits, output.values, keys)
        self._pool.scatter(slots, output.hidden)

    def prepare_run(self, simulations: Sequence[int], is_exact: bool) -> None:
        """Reserves the slots of a run with an exact number of simulations."""
        self._most_visits = max(simulations)
        if not is_exact:
            return
        most = self.config.options.max_nodes
        # One slot per position, and one more: see `_search_on_device`.
        required = sum(count if most is None else min(count, most) for count in simulations) + len(simulations) + 1
        if required * max(self._slot_bytes, 1) <= MAX_RESERVED:
            self._pool.reserve(min(max(required, self._pool.capacity), self._pool.maximum or required))

    def reset(self, index: int, state: Any, key: Key) -> None:
        """Replaces tree `index` by a new one from another root."""
        self.synchronize()
        root = root_of(state)
        answer = self._inference.initial(stack([root]))
        slot, _ = self.core.reset_latent(
            index, root.to_play, root.legal(self.info.num_actions), answer.logits[0], float(answer.values[0]), *key
        )
        self._pool.scatter(_one(slot), answer.hidden)

    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`; the model evaluates the observation of the new root."""
        self.synchronize()
        state = self.state_after(before, action)
        root = root_of(state)
        answer = self._inference.initial(stack([root]))
        self._advance(index, action, root, answer.hidden, answer.logits[0], float(answer.values[0]))
        return state

    def advance_observed(
        self, index: int, before: Any, action: int, observation: Any, legal_actions: Any, to_play: Any
    ) -> ObservationRoot:
        """Plays an action at a root that is a bare observation; returns the root after it.

        Without an observation, the model's predicted hidden state is kept. `to_play` defaults to the prediction by a
        model that returns discounts; otherwise, two players alternate.
        """
        self.synchronize()
        other, predicted = self.info.num_players - 1 - before.to_play, None
        step: InitialOutput | RecurrentOutput
        if observation is None:
            parent = self._pool.gather(_one(self.core.root_slot(index)))
            step = predicted = self._inference.recurrent(parent, _one(action))
        else:
            step = self._inference.initial(stack([ObservationRoot(observation)]))
        if to_play is None:
            to_play = self.core.turn_after(index, action)
        if to_play is None:
            same = predicted is not None and predicted.discounts is not None and predicted.discounts[0] >= 0.0
            to_play = before.to_play if same else other
        root = following_root(observation, legal_actions, to_play, self.info.num_players)
        self._advance(index, action, root, step.hidden, step.logits[0], float(step.values[0]))
        return root

    def _advance(
        self, index: int, action: int, root: ObservationRoot, hidden: Any, logits: NDArray[np.float32], value: float
    ) -> None:
        legal = root.legal(self.info.num_actions)
        slot, _ = self.core.advance_latent(index, action, root.to_play, legal, logits, value)
        self._pool.scatter(_one(slot), hidden)

    def legal_actions(self, state: Any) -> Sequence[int]:
        """Returns the legal actions of a root."""
        return root_of(state).legal(self.info.num_actions)

    def batch(self) -> None:
        """Evaluates one batch of leaves."""
        self._evaluate(self.core.gather_latent(), gather=False)

    def run(self, should_stop: ShouldStop | None) -> None:
        """Runs batches; each engine call applies the responses to one batch and gathers the rows of the next.

        A pipelined model computes for one group of trees while the engine searches others, or searches on its device.
        """
        model: Any = self._inference.model
        if is_backend(model):
            model.refresh(self._context)
        if self._context is not None:
            if self._run_pipelined(model, self._context, should_stop).ok:
                return
            self.roll_back()
            self._context = None
        if should_stop is not None:
            super().run(should_stop)
            return
        is_running = self.core.wants_more() and not self.core.stopped
        rows = self.core.gather_latent() if is_running else None
        while rows is not None:
            rows = self._evaluate(rows, gather=True)

    def _run_pipelined(
        self, model: InferenceBackend, context: LatentContext, should_stop: ShouldStop | None
    ) -> Support:
        try:
            if should_stop is None and self._search_on_device(model, context):
                return SUPPORTED
            in_flight = self.config.options.in_flight
            rows = model.rows_per_batch(len(self.core) * in_flight)
            sizes = self.core.form_groups(max(rows // in_flight, 1))
            buffers = context.buffers([size * in_flight for size in sizes], self._most_visits)
            return InferencePipeline(LatentExchange(self.core, self._pool, buffers), buffers, should_stop).run()
        except EvaluationError as error:
            # The pipeline reports errors as those of an evaluator.
            if error.__cause__ is None or not str(error).startswith(EVALUATOR_RAISED):
                raise
            raise self._inference.step_failed(error.__cause__, self._pool.layout) from error.__cause__

    def _search_on_device(self, model: InferenceBackend, context: LatentContext) -> bool:
        """Searches new trees on the model's device; returns False, with no tree changed, if it does not support it."""
        config, info, trees = self.config, self.info, len(self.core)
        shape = TreeShape(trees, self._most_visits, info.num_actions, config.rule, info.num_players, config.discount)
        groups = self._offload.acquire_trees(config, model, context, Job(trees, shapes=[shape]))
        if groups is None:
            return False
        # One additional slot for rows without a tree: see `LatentTrees`.
        return self._offload.run(groups, [shape], reserve=lambda: self._pool.reserve(self.core.num_slots() + 1))

    def synchronize(self) -> None:
        """Copies the nodes of device-resident trees into the engine."""
        self._offload.synchronize()

    def _evaluate(self, rows: Rows, gather: bool) -> Rows | None:
        """Calls the model for the gathered rows, stores the hidden states, and applies the rest to the engine."""
        apply = partial(self.core.step_latent, gather=gather)
        parents, actions, first, slots = rows
        count = len(actions)
        if count == 0:
            nothing = np.zeros(0)
            return apply(nothing, np.zeros((0, self.info.num_actions), dtype=np.float32), nothing, None)
        output = self._inference.call_recurrent(self._pool.gather(parents), actions)
        if (
            slots is None
            and is_numpy_tuple(output, count, self.info.num_actions)
            and self._pool.scatter_consecutive(first, output[0], count)
        ):
            return apply(output[1], output[2], output[3], output[4] if len(output) == 5 else None)
        answer = self._inference.check(output, count)
        if slots is None:
            self._pool.scatter(np.arange(first, first + count), answer.hidden, consecutive=True)
        else:
            self._pool.scatter(slots, answer.hidden)
        return apply(answer.rewards, answer.logits, answer.values, answer.discounts)


@dataclass(frozen=True, slots=True)
class LatentExchange:
    """The pipeline's exchange for a learned model: slots and actions for rewards, values and policies."""

    core: EngineForest
    pool: HiddenPool
    buffers: Sequence[LatentBuffer]

    @property
    def stopped(self) -> bool:
        """Whether `Forest.stop` was called."""
        return self.core.stopped

    def exchange(
        self, group: int, responses: InferenceBuffer | None, requests: InferenceBuffer | None
    ) -> tuple[int, bool] | None:
        """Applies responses and gathers requests; None if the responses need validation."""
        buffer, core = self.buffers[group], self.core
        answered = None if responses is None else responses.responses
        is_full = answered is not None and not buffer.top_k
        if is_full and buffer.responses.shape[1] - 2 - buffer.has_discount != core.num_actions:
            return None
        open_rows = None if requests is None else requests.requests
        result = core.exchange_latent(group, answered, open_rows, buffer.has_discount, buffer.top_k)
        slots = core.num_slots()
        if slots > self.pool.capacity:
            # Growing reallocates the pool: no batch may be in flight.
            for each in self.buffers:
                each.wait()
            self.pool.reserve(slots)
        return result

    def revalidate(self, group: int, buffer: InferenceBuffer) -> Support:
        """Returns False: unpipelined batches validate the model's outputs in detail."""
        return Support(False, "the model's outputs need validation")


def _one(number: int) -> NDArray[np.int64]:
    return np.array([number], dtype=np.int64)
