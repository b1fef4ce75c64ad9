"""The window of positions: what it holds, how it is drawn from, and observations packed without loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.test_learn_records import make_game

from ponderosa import games
from ponderosa.learn.config import ReplayConfig
from ponderosa.learn.game_spec import game_spec
from ponderosa.learn.observations import ObservationCodec
from ponderosa.learn.replay import Replay


@settings(max_examples=40)
@given(name=st.sampled_from([*games.BY_NAME, "examples.games.nim:Nim"]), seed=st.integers(0, 1000))
def test_observations_are_packed_without_loss(name: str, seed: int) -> None:
    spec = game_spec(name)
    numbers = np.random.default_rng(seed)
    states = [spec.factory()]
    while not states[-1].is_terminal and len(states) < 30:
        states.append(states[-1].play(int(numbers.choice(states[-1].legal_actions()))))
    observations = np.stack([state.observation() for state in states]).astype(np.float32)
    codec = ObservationCodec(spec.info, spec.shape)
    packed = codec.pack(observations)
    assert packed.shape == (len(states), codec.row_bytes)
    np.testing.assert_array_equal(codec.unpack(packed), observations)


def test_a_position_of_chess_takes_a_thirtieth_of_its_observation() -> None:
    spec = game_spec("chess")
    assert ObservationCodec(spec.info, spec.shape).row_bytes < 119 * 64 * 4 / 30


@settings(max_examples=30)
@given(counts=st.lists(st.integers(0, 25), min_size=1, max_size=12), window=st.integers(1, 60))
def test_the_window_holds_the_newest_positions_in_their_order(counts: list[int], window: int) -> None:
    spec = game_spec("connect4")
    replay = Replay(spec, ReplayConfig(window=window, learned_first=1))
    told = [make_game(number, plies) for number, plies in enumerate(counts)]
    added = sum(replay.add([game]) for game in told)
    expected = [one for game in told for one in game.examples(spec.factory) if one.policy is not None]
    assert (added, replay.seen) == (len(expected), len(expected))
    kept = expected[-window:]
    assert len(replay) == len(kept)
    if not kept:
        return
    batch = replay.take(np.arange(len(kept)))
    for row, one in enumerate(kept):
        np.testing.assert_array_equal(batch.observations[row], one.state.observation())
        legal = len(one.actions)
        assert batch.actions[row, :legal].tolist() == one.actions.tolist()
        assert (batch.actions[row, legal:] == 7).all()
        np.testing.assert_array_equal(batch.policy[row, :legal], one.policy)
        assert not batch.policy[row, legal:].any()
        assert (batch.results[row], batch.values[row]) == (one.result, np.float32(one.value))


@pytest.mark.parametrize("fresh", [0.0, 0.5, 1.0])
def test_newer_positions_are_drawn_more_often(fresh: float) -> None:
    spec = game_spec("connect4")
    replay = Replay(spec, ReplayConfig(window=1000, learned_first=1, fresh=fresh))
    replay.add([make_game(number, 20) for number in range(60)])
    # Which place was drawn can be read off the values, which are all different.
    everything = replay.take(np.arange(len(replay))).values
    drawn = replay.sample(100_000, np.random.default_rng(1)).values
    halves = np.searchsorted(np.sort(everything), drawn)
    places = np.argsort(everything)[np.minimum(halves, len(everything) - 1)]
    newer = (places >= len(replay) / 2).mean()
    # The density 1 - fresh + 2 fresh x has so much weight above 1/2.
    assert newer == pytest.approx(0.5 + fresh / 4, abs=0.02)
    assert (
        replay.sample(50, np.random.default_rng(2)).values.tolist()
        == replay.sample(50, np.random.default_rng(2)).values.tolist()
    )
