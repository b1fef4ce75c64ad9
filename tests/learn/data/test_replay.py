"""The replay buffer: content, sampling, lossless packing of observations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learn.data.test_records import make_game

from pondertree import games
from pondertree.errors import InvalidActionError
from pondertree.game import CHANCE
from pondertree.learn.config.game_spec import game_spec
from pondertree.learn.config.schema import Config
from pondertree.learn.config.sections import ReplayConfig
from pondertree.learn.data import replay as rings
from pondertree.learn.data.observations import packed_observations
from pondertree.learn.data.records import GameRecord
from pondertree.learn.data.replay import ReplayBuffer, RingBuffer, TrainingBatch

torch = pytest.importorskip("torch")

from pondertree.gpu.buffer import unpacked  # noqa: E402 (after the package it needs)


def observations_of(batch: TrainingBatch, shape: tuple[int, ...]) -> np.ndarray:
    planes, numbers = batch.seen
    return unpacked(torch.from_numpy(planes.view(np.int64)), torch.from_numpy(numbers), shape).numpy()


@settings(max_examples=40)
@given(
    name=st.sampled_from([*games.BY_NAME, "examples.games.nim:Nim"]),
    seed=st.integers(0, 1000),
    opening=st.integers(0, 5),
)
def test_packed_observations_match_states(name: str, seed: int, opening: int) -> None:
    """Unpacked observations and players to move equal those of the states."""
    spec = game_spec(name)
    numbers = np.random.default_rng(seed)
    state, states, moves, outcomes, drawn = spec.factory(), [], [], [], [0]
    while not state.is_terminal and len(moves) < 30:
        action = int(numbers.choice(state.legal_actions()))
        if state.to_play == CHANCE:
            outcomes.append(action)
            drawn[-1] += 1
        else:
            states.append(state)
            moves.append(action)
            drawn.append(0)
        state = state.play(action)
    opening = min(opening, len(moves))
    nothing = np.zeros(0, np.float32)
    record = GameRecord(
        number=0,
        opening=np.array(moves[:opening], dtype=np.uint16),
        moves=np.array(moves[opening:], dtype=np.uint16),
        values=nothing,
        versions=np.zeros(0, np.int64),
        full=np.zeros(0, np.bool_),
        counts=np.zeros(0, np.uint16),
        actions=np.zeros(0, np.uint16),
        policy=nothing,
        returns=nothing,
        outcomes=np.array(outcomes, dtype=np.uint16),
        drawn=np.array(drawn if spec.info.has_chance else [], dtype=np.uint16),
    )
    seen, players = packed_observations(record, spec)
    found = unpacked(torch.from_numpy(seen.planes.view(np.int64)), torch.from_numpy(seen.numbers), spec.shape)
    expected = [state.observation() for state in states[opening:]]
    np.testing.assert_array_equal(found, np.reshape(expected, (-1, *spec.shape)))
    assert players.tolist() == [state.to_play for state in states[opening:]]


def test_packed_line_refuses_illegal_move() -> None:
    with pytest.raises(InvalidActionError, match="action 9 is not legal here"):
        games.ConnectFour()._line(np.array([3, 9], dtype=np.uint16))


def test_packed_chess_position_is_thirtieth_of_observation() -> None:
    planes, numbers, _ = games.Chess()._line(np.array([], dtype=np.uint16))
    assert 8 * planes.shape[1] + 4 * numbers.shape[1] < 119 * 64 * 4 / 30


@settings(max_examples=30)
@given(counts=st.lists(st.integers(0, 25), min_size=1, max_size=12), window=st.integers(1, 60))
def test_replay_buffer_holds_newest_positions_in_order(counts: list[int], window: int) -> None:
    spec = game_spec("connect4")
    replay = ReplayBuffer(spec, Config(replay=ReplayConfig(window=window, learned_first=1)))
    records = [make_game(number, plies) for number, plies in enumerate(counts)]
    added = sum(replay.add([game]) for game in records)
    expected = [one for game in records for one in game.examples(spec.factory) if one.policy is not None]
    assert (added, replay.seen) == (len(expected), len(expected))
    retained = expected[-window:]
    assert len(replay) == len(retained)
    if not retained:
        return
    batch = replay.gather(np.arange(len(retained)))
    seen = observations_of(batch, spec.shape)
    for row, one in enumerate(retained):
        np.testing.assert_array_equal(seen[row], one.state.observation())
        legal = len(one.actions)
        assert batch.actions[row, :legal].tolist() == one.actions.tolist()
        assert (batch.actions[row, legal:] == 7).all()
        np.testing.assert_array_equal(batch.policy[row, :legal], one.policy)
        assert not batch.policy[row, legal:].any()
        assert (batch.results[row], batch.values[row]) == (one.result, np.float32(one.value))


@pytest.mark.parametrize("fresh", [0.0, 0.5, 1.0])
def test_replay_buffer_sampling_is_recency_weighted(fresh: float) -> None:
    spec = game_spec("connect4")
    replay = ReplayBuffer(spec, Config(replay=ReplayConfig(window=1000, learned_first=1, fresh=fresh)))
    replay.add([make_game(number, 20) for number in range(60)])
    # Values are distinct, so they identify the sampled index.
    everything = replay.gather(np.arange(len(replay))).values
    drawn = replay.sample(100_000, np.random.default_rng(1)).values
    halves = np.searchsorted(np.sort(everything), drawn)
    places = np.argsort(everything)[np.minimum(halves, len(everything) - 1)]
    newer = (places >= len(replay) / 2).mean()
    # Probability of the newer half under the density 1 - fresh + 2 fresh x.
    assert newer == pytest.approx(0.5 + fresh / 4, abs=0.02)
    assert (
        replay.sample(50, np.random.default_rng(2)).values.tolist()
        == replay.sample(50, np.random.default_rng(2)).values.tolist()
    )


@settings(max_examples=60, deadline=None)
@given(most=st.integers(1, 40), sizes=st.lists(st.integers(1, 25), max_size=12))
def test_ring_buffer_holds_newest_rows_in_order(most: int, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rings, "FIRST_ROWS", 3)
        ring = RingBuffer(most, {"number": np.zeros((), np.int64), "pair": np.zeros(2, np.float32)})
        came: list[int] = []
        for size in sizes:
            new = np.arange(len(came), len(came) + size)
            came += new.tolist()
            ring.append({"number": new, "pair": np.stack([new, -new], axis=1)})
            retained = came[-most:]
            assert len(ring) == len(retained)
            places = np.arange(len(ring))
            assert ring.gather("number", places).tolist() == retained
            assert ring.gather("pair", places)[:, 1].tolist() == [-number for number in retained]


def test_ring_buffer_widens_rows() -> None:
    ring = RingBuffer(10, {"actions": np.full(2, 7, np.uint16)})
    ring.append({"actions": np.array([[1, 2]], np.uint16)})
    ring.widen("actions", 4)
    ring.widen("actions", 3)  # narrowing has no effect
    ring.append({"actions": np.array([[1, 2, 3, 4]], np.uint16)})
    assert ring.gather("actions", np.arange(2)).tolist() == [[1, 2, 7, 7], [1, 2, 3, 4]]
