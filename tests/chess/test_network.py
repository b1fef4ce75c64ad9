"""`ChessNN`: building, evaluation, training in place."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import chess
import numpy as np
import pytest
from tests.support.chess_networks import assert_same, needs_torch, observations, small

from pondertree import AlphaZero, evaluators
from pondertree.chess import MCTS, ChessGame, ChessNN
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.evaluators.batch import Packed
from pondertree.games import Chess

pytestmark = pytest.mark.usefixtures("one_thread")


def test_unbuilt_network_raises_usage_error() -> None:
    nn = ChessNN()
    assert not nn.is_built
    assert repr(nn) == "ChessNN(blocks=6, channels=64, not built)"
    uses: list[Any] = [
        lambda: nn.predict(Chess()),
        lambda: nn.evaluate(Chess().observation()[None]),
        lambda: nn.save_model("x.safetensors"),
        lambda: nn.module,
    ]
    for use in uses:
        with pytest.raises(UsageError, match=r"call build\(\) or load_model\(\) first"):
            use()


@pytest.mark.parametrize(
    "arguments", [{"blocks": -1}, {"channels": 0}, {"channels": 1.5}, {"value_hidden": "8"}, {"blocks": 10**9}]
)
def test_invalid_shapes_raise(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(arguments))):
        ChessNN(**arguments)


@needs_torch
def test_predict_accepts_every_position_type() -> None:
    nn = small()
    game = ChessGame()
    game.make_move("e4")
    policy, value = nn.predict(game)
    assert policy.shape == (4672,)
    assert policy.sum() == pytest.approx(1, abs=1e-5)
    assert (policy >= 0).all()
    assert isinstance(value, float)
    assert -1 <= value <= 1
    for same in (game.board, game.state, game.observation()):
        assert np.array_equal(nn.predict(same)[0], policy)
    policies, values = nn.predict([game, ChessGame()])
    assert policies.shape == (2, 4672)
    assert values.shape == (2,)
    np.testing.assert_allclose(policies[0], policy, atol=1e-6)
    assert nn.predict(observations())[0].shape == (3, 4672)
    for wrong in ([], np.zeros((8, 8, 119)), np.zeros((1, 8, 8, 119)), 3):
        with pytest.raises(InvalidArgumentError):
            nn.predict(wrong)
    with pytest.raises(InvalidArgumentError, match="observations"):
        nn.evaluate(game.observation())
    logits, values = nn.evaluate(np.zeros((0, 119, 8, 8)))
    assert (logits.shape, values.shape) == ((0, 4672), (0,))


@needs_torch
def test_policy_index_matches_move_index() -> None:
    """Move index square * 73 + plane: a bias on one plane and a feature on one square change the right logits."""
    import torch

    nn = small()
    with torch.no_grad():
        nn.module.policy_out.weight.zero_()
        nn.module.policy_out.bias.copy_(torch.arange(73.0))
    logits, _ = nn.evaluate(observations())
    assert np.array_equal(logits[0], np.tile(np.arange(73, dtype=np.float32), 64))

    nn = ChessNN(blocks=0, channels=1, device="cpu").build(seed=0)
    with torch.no_grad():
        for conv in (nn.module.stem_conv, nn.module.policy_conv):
            conv.weight.zero_()
            conv.weight[0, 0, 1, 1] = 1.0
        nn.module.policy_out.weight.zero_()
        nn.module.policy_out.weight[5] = 1.0
        nn.module.policy_out.bias.zero_()
    planes = np.zeros((1, 119, 8, 8), dtype=np.float32)
    planes[0, 0, 1, 4] = 1.0  # e2, square 12
    logits, _ = nn.evaluate(planes)
    assert np.flatnonzero(logits[0]).tolist() == [12 * 73 + 5]


@needs_torch
def test_build_is_reproducible_by_seed() -> None:
    import torch

    before = torch.random.get_rng_state()
    assert_same(small(3), small(3))
    assert not np.array_equal(small(3).evaluate(observations())[0], small(4).evaluate(observations())[0])
    fresh = [ChessNN(1, 4).build().evaluate(observations())[0] for _ in range(2)]
    assert not np.array_equal(*fresh)
    assert torch.equal(before, torch.random.get_rng_state()), "the global random state is unchanged"
    nn = ChessNN(1, 4)
    assert nn.build() is nn
    built = nn.version
    assert nn.build().version != built
    assert repr(nn) == "ChessNN(blocks=1, channels=4)"


@needs_torch
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_in_place_training_changes_version(kind: str) -> None:
    """The version invalidates a `Cached` around the network."""
    import torch

    nn = small()
    cached = evaluators.Cached(nn)
    first = MCTS(cached, 30, seed=1).run(Chess())
    version = nn.version
    assert MCTS(cached, 30, seed=1).run(Chess()).value == first.value
    assert nn.version == version, "evaluation does not change the version"
    optimizer = getattr(torch.optim, kind)(nn.module.parameters(), lr=0.5)
    logits, values = nn.module(torch.from_numpy(observations()))
    (logits.square().mean() + (values - 1).square().mean()).backward()
    optimizer.step()
    assert nn.version != version
    again = MCTS(cached, 30, seed=1).run(Chess())
    assert again.value == MCTS(nn, 30, seed=1).run(Chess()).value != first.value


@needs_torch
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda nn: pickle.loads(pickle.dumps(nn))])
def test_network_copies_and_pickles(copied: Any) -> None:
    nn = small()
    other = copied(nn)
    assert_same(nn, other)
    assert other.module is not nn.module
    assert repr(other) == repr(nn)
    assert_same(nn, copied(evaluators.Cached(nn)).evaluator)
    assert not copied(ChessNN(1, 4)).is_built


@needs_torch
def test_every_search_accepts_network() -> None:
    nn = small()
    assert isinstance(nn, evaluators.Evaluator)
    board = chess.Board()
    packed = MCTS(nn, 40, seed=1).run(board)
    unpacked = AlphaZero(nn.evaluate, 40, seed=1).run(board)
    assert packed.visits.sum() == 40
    assert packed.value == pytest.approx(unpacked.value, abs=0.02)  # rounding may change a selection
    assert len(MCTS(nn, 8, seed=1, in_flight=4).run([board] * 3)) == 3
    nn.module.train()
    MCTS(nn, 8, seed=1).run(board)
    assert nn.module.training, "the training mode is preserved"


@needs_torch
def test_evaluate_packed_matches_evaluate() -> None:
    nn = small()
    states = [Chess(), Chess("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 9")]
    legal = [state.legal_actions() for state in states]
    array = np.stack([state.observation() for state in states])
    bits = array[:, :112].reshape(2, 112, 64).astype(np.uint64) << np.arange(64, dtype=np.uint64)
    packed = Packed(
        np.bitwise_or.reduce(bits, axis=2),
        np.ascontiguousarray(array[:, 112:, 0, 0]),
        8,
        8,
        np.array([0, len(legal[0]), len(legal[0]) + len(legal[1])]),
        np.array([action for actions in legal for action in actions], dtype=np.uint16),
        4672,
    )
    assert np.array_equal(packed.unpack(), array)
    logits, values = nn.evaluate(array)
    expected = np.concatenate([logits[row, actions] for row, actions in enumerate(legal)])
    got, got_values = nn.evaluate_packed(packed)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    np.testing.assert_allclose(got_values, values, atol=1e-6)
