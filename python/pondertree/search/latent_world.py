"""The world of a learned model: hidden states stay with the model, under slots; only numbers cross to the engine."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree.config import Settings
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators.protocol import RAISED
from pondertree.game import GameInfo
from pondertree.gpu.offload import Beside
from pondertree.gpu.pipeline import ModelTurns
from pondertree.gpu.protocol import NotForLanes
from pondertree.gpu.tree_shape import TreeShape, suits
from pondertree.models.context import DeviceContext, is_pipelined
from pondertree.models.hidden import flatten
from pondertree.models.inference import Inference
from pondertree.models.pool import HiddenPool
from pondertree.models.responses import RootAnswer, StepAnswer, is_plain
from pondertree.search.observation_root import Observed, ObservedRows, follow, hint_of_many, root_of, roots_of, stack
from pondertree.search.root_actions import RootActions
from pondertree.search.world import Key, Keys, Over, World

#: Slots for each tree to begin with; the pool doubles when it is full.
SLOTS_PER_TREE = 64
#: Hidden states up to so many bytes are given room at once; beyond, the pool grows as it must.
MOST_RESERVED = 1 << 28
#: What the engine holds for a position, about; with few actions it is little beside the hidden state.
BYTES_PER_NODE = 256
#: More actions than the engine can number.
MOST_ACTIONS = 65535


#: What is asked about: slots of positions, actions, the first new slot, and all of those if they do not follow it.
Rows = tuple[NDArray[np.int64], NDArray[np.int64], int, NDArray[np.int64] | None]


class ModelWorld(World):
    """The hidden states of one forest."""

    def __init__(self, model: Any, info: GameInfo, settings: Settings, states: Sequence[Any]) -> None:
        # How many actions there are, the model says.
        self._roots = roots = roots_of(states)
        self._inference = Inference(model, info.num_actions or None)
        room = getattr(model, "room", None) if is_pipelined(model) else None
        try:
            self._first = self._inference.initial(stack(roots, room))
        except EvaluationError as error:
            hint = hint_of_many(roots, str(error))
            if hint is None:
                raise
            raise EvaluationError(f"{error} ({hint})") from error.__cause__
        num_actions = self._first.logits.shape[1]
        if num_actions > MOST_ACTIONS:
            raise InvalidArgumentError(f"the model has {num_actions} actions: at most {MOST_ACTIONS} are possible")
        info = replace(info, num_actions=num_actions)
        parts = settings.engine(info, len(roots))
        parts["threads"] = settings.engine_threads(model, len(roots))
        # A limit of memory is one of hidden states too: they are most of what such a tree holds.
        self._slot_bytes = sum(int(array.nbytes) for array in flatten(self._first.hidden)[0]) // len(roots)
        maximum = None
        if parts["max_bytes"] is not None:
            most = max(int(parts["max_bytes"]) // (self._slot_bytes + BYTES_PER_NODE), 1)
            parts["max_nodes"] = most if parts["max_nodes"] is None else min(most, parts["max_nodes"])
            maximum = (parts["max_nodes"] + settings.in_flight) * len(roots)
        self._context = model.acquire(self._first.hidden, len(roots)) if is_pipelined(model) and not maximum else None
        if self._context is None:
            self._pool = HiddenPool(capacity=max(SLOTS_PER_TREE * len(roots), 1), maximum=maximum)
        else:
            self._pool = self._context.pool
            weakref.finalize(self, model.release, self._context)
        self._most_visits = 0
        """How often the search so far may visit one node, at most."""
        super().__init__(EngineForest("latent", parts), info, settings)
        self._beside = Beside(self.core)

    def plant(self, states: Sequence[Any], keys: Keys, among: RootActions | None = None) -> None:
        """A tree for each root; the model was asked about all of them at once."""
        first, roots, num_actions = self._first, self._roots, self.info.num_actions
        del self._first, self._roots
        turns = legal = None
        if not isinstance(roots, ObservedRows):
            legal = [None if root.allowed is None else root.legal(num_actions) for root in roots]
            turns = [root.to_play for root in roots]
        if among is not None:
            everything: RootActions = [None] * len(roots)
            legal = [own or known for own, known in zip(among, legal or everything, strict=True)]
        slots = self.core.plant_latent(turns, legal, first.logits, first.values, keys)
        self._pool.scatter(slots, first.hidden)

    def expect(self, simulations: Sequence[int], at_once: bool) -> None:
        """So many more simulations in each tree. With room for them `at_once`, the pool need not grow on the way."""
        self._most_visits = max(simulations)
        if not at_once:
            return
        most = self.settings.max_nodes
        # The last one is nobody's: see `_search_beside`.
        wanted = sum(count if most is None else min(count, most) for count in simulations) + len(simulations) + 1
        # Nobody means so many: the pool then grows as it must.
        if wanted * max(self._slot_bytes, 1) <= MOST_RESERVED:
            self._pool.reserve(min(max(wanted, self._pool.capacity), self._pool.maximum or wanted))

    @property
    def hidden_bytes(self) -> int:
        """What the hidden states take, in bytes, capacity counted."""
        return self._pool.nbytes

    def reset(self, index: int, state: Any, key: Key) -> None:
        """Another root in the place of tree `index`."""
        self.settle()
        root = root_of(state)
        answer = self._inference.initial(stack([root]))
        slot, _ = self.core.reset_latent(
            index, root.to_play, root.legal(self.info.num_actions), answer.logits[0], float(answer.values[0]), *key
        )
        self._pool.scatter(_one(slot), answer.hidden)

    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`; the new root is seen through the observation after it."""
        self.settle()
        state = self.after(before, action)
        root = root_of(state)
        answer = self._inference.initial(stack([root]))
        self._advance(index, action, root, answer.hidden, answer.logits[0], float(answer.values[0]))
        return state

    def follow(
        self, index: int, before: Observed, action: int, observation: Any, legal_actions: Any, to_play: Any
    ) -> Observed:
        """The same where only a caller knows what came of the action.

        Without an observation, the model's own idea of the position stays. Whose turn it is the model may have said;
        otherwise two players alternate.
        """
        self.settle()
        other, answer = self.info.num_players - 1 - before.to_play, None
        step: RootAnswer | StepAnswer
        if observation is None:
            parent = self._pool.gather(_one(self.core.root_slot(index)))
            step = answer = self._inference.recurrent(parent, _one(action))
        else:
            step = self._inference.initial(stack([Observed(observation)]))
        if to_play is None:
            to_play = self.core.turn_after(index, action)
        if to_play is None:
            same = answer is not None and answer.discounts is not None and answer.discounts[0] >= 0.0
            to_play = before.to_play if same else other
        root = follow(observation, legal_actions, to_play, self.info.num_players)
        self._advance(index, action, root, step.hidden, step.logits[0], float(step.values[0]))
        return root

    def _advance(
        self, index: int, action: int, root: Observed, hidden: Any, logits: NDArray[np.float32], value: float
    ) -> None:
        legal = root.legal(self.info.num_actions)
        slot, _ = self.core.advance_latent(index, action, root.to_play, legal, logits, value)
        self._pool.scatter(_one(slot), hidden)

    def legal_actions(self, state: Any) -> Sequence[int]:
        """Legal actions at a root."""
        return root_of(state).legal(self.info.num_actions)

    def batch(self) -> None:
        """One call of the model for a leaf of each tree."""
        self._ask(self.core.gather_latent(), self.core.apply_latent)

    def run(self, over: Over | None) -> None:
        """Batch after batch; with each answer the engine gathers the next rows at once.

        A model that has lanes computes for some trees while others are searched, or has the trees beside it.
        """
        model: Any = self._inference.model
        if is_pipelined(model):
            model.refresh(self._context)
        if self._context is not None:
            try:
                self._run_in_context(model, self._context, over)
                return
            except NotForLanes:
                self.roll_back()
                self._context = None
        if over is not None:
            super().run(over)
            return
        wanted = self.core.wants_more() and not self.core.stopped
        rows = self.core.gather_latent() if wanted else None
        while rows is not None:
            rows = self._ask(rows, self.core.step_latent)

    def _run_in_context(self, model: Any, context: DeviceContext, over: Over | None) -> None:
        try:
            if over is None and self._search_beside(context):
                return
            ModelTurns(self.core, model, context, self.settings.in_flight, self._most_visits, over).run()
        except EvaluationError as error:
            # Lanes know evaluators alone.
            if error.__cause__ is None or not str(error).startswith(RAISED):
                raise
            raise self._inference.step_failed(error.__cause__, self._pool.layout) from error.__cause__

    def _search_beside(self, context: DeviceContext) -> bool:
        """Searches new trees where the model computes, if it can; nothing has changed if it cannot."""
        settings, info = self.settings, self.info
        if not suits(settings) or not self.core.all_new():
            return False
        players, discount = info.num_players, settings.discount
        kind = TreeShape(len(self.core), self._most_visits, info.num_actions, settings.score, players, discount)
        trees = context.open_trees(kind)
        if trees is None:
            return False
        # One more than there are positions: see `ModelTrees`.
        return self._beside.search(trees, make_room=lambda: self._pool.reserve(self.core.num_slots() + 1))

    def settle(self) -> None:
        """Brings trees home that were searched beside the model."""
        self._beside.settle()

    def _ask(self, rows: Rows, tell: Callable[..., Rows | None]) -> Rows | None:
        """Asks the model about the rows gathered, keeps the hidden states, and tells the engine the rest."""
        parents, actions, first, slots = rows
        count = len(actions)
        if count == 0:
            nothing = np.zeros(0)
            return tell(nothing, np.zeros((0, self.info.num_actions), dtype=np.float32), nothing, None)
        said = self._inference.ask(self._pool.gather(parents), actions)
        if slots is None and is_plain(said, count, self.info.num_actions) and self._pool.put(first, said[0], count):
            return tell(said[1], said[2], said[3], said[4] if len(said) == 5 else None)
        answer = self._inference.check(said, count)
        if slots is None:
            self._pool.scatter(np.arange(first, first + count), answer.hidden, in_a_row=True)
        else:
            self._pool.scatter(slots, answer.hidden)
        return tell(answer.rewards, answer.logits, answer.values, answer.discounts)


def _one(number: int) -> NDArray[np.int64]:
    return np.array([number], dtype=np.int64)
