"""The world of a `BatchGame`: as that of a game in Python, with states in one array, and one call for all rows."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError
from pondertree.games.batch_game import BatchRules, BatchState
from pondertree.games.batch_playouts import batch_playouts
from pondertree.games.playout import MAX_PLAYOUT_LENGTH
from pondertree.search.python_world import PythonWorld
from pondertree.validation import shown

#: The first batches are all played twice, to check that `play` is a pure function, and one of this many later ones.
FIRST_CHECKS = 4
CHECK_INTERVAL = 64


class StateTable(MutableMapping[int, Any]):
    """The states of a forest by slot, as rows of one array."""

    def __init__(self, state: BatchState) -> None:
        self.rules: BatchRules = state.rules
        self.rows: NDArray[Any] = np.empty((64, *state.array.shape), state.array.dtype)
        self._has_state = np.zeros(64, dtype=bool)

    def store(self, slots: NDArray[np.int64], states: NDArray[Any]) -> None:
        """Stores one state per slot."""
        most = int(slots.max()) + 1
        if most > len(self.rows):
            capacity = max(most, 2 * len(self.rows))
            # `np.resize` would repeat the content.
            rows, has_state = np.empty((capacity, *self.rows.shape[1:]), self.rows.dtype), np.zeros(capacity, bool)
            rows[: len(self.rows)], has_state[: len(self.rows)] = self.rows, self._has_state
            self.rows, self._has_state = rows, has_state
        self.rows[slots] = states
        self._has_state[slots] = True

    def observations(self, slots: Sequence[int]) -> NDArray[np.float32]:
        """Returns the observations of the states in `slots`."""
        return self.rules.observation(self.rows[slots])

    def __getitem__(self, slot: int) -> BatchState:
        if slot not in self:
            raise KeyError(slot)
        return BatchState.of_row(self.rules, self.rows[slot])

    def __setitem__(self, slot: int, state: BatchState) -> None:
        if state.array.shape != self.rows.shape[1:] or state.array.dtype != self.rows.dtype:
            raise GameContractError(
                f"a state of {self.rules.name} is {state.array.dtype} {state.array.shape}, the first one "
                f"{self.rows.dtype} {self.rows.shape[1:]}: all states of a forest have one dtype and shape"
            )
        self.store(np.array([slot]), state.array[None])

    def __delitem__(self, slot: int) -> None:
        self._has_state[slot] = False

    def __contains__(self, slot: object) -> bool:
        return isinstance(slot, int) and 0 <= slot < len(self.rows) and bool(self._has_state[slot])

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._has_state).tolist())

    def __len__(self) -> int:
        return int(self._has_state.sum())


class BatchWorld(PythonWorld):
    """Trees of a game of arrays, which plays the new positions of all trees in one call."""

    def create_engine(self, states: Sequence[Any]) -> Sequence[Any]:
        """Creates the engine's forest; returns the states."""
        self._table = StateTable(states[0])
        self._states = self._table
        self._batches = 0
        return super().create_engine(states)

    def release(self, slots: Sequence[int]) -> None:
        """Drops the states of slots that the engine no longer uses."""
        for slot in slots:
            if slot in self._table:
                del self._table[slot]
            self._forced_plies_left.pop(slot, None)

    def batch(self) -> None:
        """Gathers leaves, plays all moves together, and evaluates the leaves."""
        if self._forced_depth:
            super().batch()  # forced moves are searched state by state
            return
        core, playouts = self.core, self._leaves.playouts
        playouts.deadline = self.deadline
        self._batches += 1
        rows = core.next_rows()
        while rows is not None:
            self._step_rows(*rows)
            rows = core.next_rows()
        if core.num_waiting() == 0:
            core.apply(None, np.zeros((0, self.info.num_players)))
        elif self._play_out is not None:
            core.apply(None, self._play_all_out())
        else:
            answer = self._leaves.answer()
            core.apply(answer.policy, answer.values, answer.probabilities)

    def _step_rows(self, slots: NDArray[np.int64], parents: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
        """Plays the moves of rows and passes the new positions to the engine."""
        rules, before = self._table.rules, self._table.rows[parents]
        states = rules.play(before, actions)
        columns = self._read(states)
        if self._batches <= FIRST_CHECKS or self._batches % CHECK_INTERVAL == 0:
            self._check_pure(parents, actions, before, columns)
        self._table.store(slots, states)
        self._play_check.moves += len(slots)
        to_play, terminal, returns, legal = columns
        self.core.step_rows(to_play, terminal, returns, legal)

    def _read(self, states: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Returns (to_play, is_terminal, returns of the ends, legal_mask) of states."""
        rules = self._table.rules
        terminal = rules.is_terminal(states)
        to_play, legal = rules.to_play(states), rules.legal_mask(states)
        returns = np.zeros((len(states), rules.num_players))
        if terminal.any():
            returns[terminal] = rules.returns(states[terminal])
            # `to_play` is arbitrary at an end; its value is stored for some valid player.
            is_player = (to_play >= 0) & (to_play < rules.num_players)
            to_play, legal = np.where(terminal & ~is_player, 0, to_play), legal & ~terminal[:, None]
        return to_play, terminal, returns, legal

    def _check_pure(
        self,
        parents: NDArray[np.int64],
        actions: NDArray[np.int64],
        given: NDArray[Any],
        columns: tuple[NDArray[Any], ...],
    ) -> None:
        """Raises `GameContractError` unless `play` left its argument alone and, called row by row, does the same."""
        rules, before = self._table.rules, self._table.rows[parents]
        if given.tobytes() != before.tobytes():
            raise GameContractError(f"{rules.name}.play(states, actions) changed states: it must return a new array")
        for row in {0, len(actions) - 1}:
            one = slice(row, row + 1)
            again = self._read(rules.play(before[one], actions[one]))
            names = ("to_play", "is_terminal", "returns", "legal_mask")
            for name, whole, single in zip(names, columns, again, strict=True):
                if not np.array_equal(whole[one], single):
                    raise GameContractError(
                        f"{rules.name}.play(states, actions) is not a pure function of each row: {name} after action "
                        f"{int(actions[row])} was {shown(whole[row].tolist())} among {len(actions)} rows, and "
                        f"{shown(single[0].tolist())} when the row was played alone"
                    )

    def _play_all_out(self) -> NDArray[np.float64]:
        """Returns the results of random playouts from all waiting leaves."""
        playouts = self._leaves.playouts
        slots, keys = self.core.waiting_rows()
        values, unfinished = batch_playouts(
            self._table.rules,
            self._table.rows[slots],
            keys,
            MAX_PLAYOUT_LENGTH,
            playouts.check_time,
            self.config.discount,
        )
        playouts.ended += len(slots) - unfinished
        for _ in range(unfinished):
            playouts.count_cut(MAX_PLAYOUT_LENGTH)
        if unfinished and playouts.ended:
            playouts.warn_of_truncation()
        return values
