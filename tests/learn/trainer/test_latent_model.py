"""Training of a learned model: losses by hand, decreasing losses, exact resuming, reanalyse."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learn.data.test_trajectories import played
from tests.support.learning import small

torch = pytest.importorskip("torch")

from pondertree.learn.data.trajectories import UnrolledBatch  # noqa: E402
from pondertree.learn.trainer.latent_model import (  # noqa: E402 (after the packages it needs)
    LatentModelTrainer,
    inputs_of,
    policy_losses,
    prediction_errors_by_depth,
)
from pondertree.networks.policy_value import player_of  # noqa: E402

CPU = torch.device("cpu")


def learner_of(spec: Any, **values: Any) -> LatentModelTrainer:
    return LatentModelTrainer(spec, small(Path("unused"), algorithm="muzero", **values), CPU)


def losses_of(learner: LatentModelTrainer, batch: UnrolledBatch, symmetry_ids: Any) -> tuple[dict[str, Any], Any]:
    return learner.losses([torch.from_numpy(array) for array in inputs_of(batch, symmetry_ids)])


def test_losses_of_untrained_model_match_hand_computation() -> None:
    """Uniform policies, values and rewards have known losses."""
    spec, replay, _ = played(10)
    learner = learner_of(spec, learner={"symmetries": False})
    batch = replay.gather(np.arange(16), np.random.default_rng(0))
    losses, errors = losses_of(learner, batch, np.zeros(16, np.int64))
    steps = batch.moves.shape[1]
    depths = np.array([1.0, *[1.0 / steps] * steps])
    assert losses["policy_loss"].item() == pytest.approx((batch.searched * depths).sum() / 16 * math.log(9), rel=1e-5)
    assert losses["value_loss"].item() == pytest.approx((batch.known * depths).sum() / 16 * math.log(3), rel=1e-5)
    assert losses["reward_loss"].item() == pytest.approx(math.log(3), rel=1e-5)
    np.testing.assert_allclose(errors.numpy(), np.abs(batch.values[:, 0]), atol=1e-6)


def test_importance_weights_scale_rows_of_loss() -> None:
    spec, replay, _ = played(10)
    learner = learner_of(spec)
    batch = replay.gather(np.arange(16), np.random.default_rng(0))
    none = np.zeros(16, np.int64)
    whole = losses_of(learner, batch, none)[0]["value_loss"].item()
    batch.weights = np.full(16, 0.5, np.float32)
    assert losses_of(learner, batch, none)[0]["value_loss"].item() == pytest.approx(0.5 * whole)


def test_targets_beyond_truncation_do_not_affect_loss() -> None:
    """Changing masked targets changes no loss."""
    spec, replay, _ = played(6, self_play={"max_moves": 4, "opening_plies": 0})
    learner = learner_of(spec)
    batch = replay.gather(np.arange(12), np.random.default_rng(0))
    assert (batch.known == 0.0).any()
    none = np.zeros(12, np.int64)
    before = losses_of(learner, batch, none)[0]
    unknown = batch.known == 0.0
    batch.values[unknown] = 1.0
    batch.rewards[unknown[:, 1:]] = -1.0
    batch.policy[batch.searched == 0.0] = 0.7
    after = losses_of(learner, batch, none)[0]
    assert {name: one.item() for name, one in before.items()} == {name: one.item() for name, one in after.items()}


def test_policy_of_fast_search_does_not_affect_loss() -> None:
    spec, replay, _ = played(6, self_play={"full_share": 0.5})
    learner = learner_of(spec)
    batch = replay.gather(np.arange(12), np.random.default_rng(0))
    short = (batch.searched == 0.0) & (batch.actions[:, :, 0] < 9)
    assert short.any()
    before = losses_of(learner, batch, np.zeros(12, np.int64))[0]["policy_loss"].item()
    batch.policy[short] *= 3.0
    assert losses_of(learner, batch, np.zeros(12, np.int64))[0]["policy_loss"].item() == before


def test_policy_loss_penalises_illegal_actions() -> None:
    """The loss is over all actions, since inside the tree only the policy rules illegal ones out."""
    logits = torch.zeros(1, 3)
    losses = policy_losses(logits, torch.tensor([[1, 3]]), torch.tensor([[1.0, 0.0]]))
    assert losses.item() == pytest.approx(math.log(3))


def test_symmetry_applies_to_all_unroll_steps() -> None:
    """A transformed batch has the losses of the transformed games."""
    spec, replay, games = played(10)
    config = small(Path("unused"), algorithm="muzero", learner={"symmetries": True}, muzero={"consistency": 1.0})
    learner = LatentModelTrainer(spec, config, CPU)
    numbers = np.random.default_rng(3)
    batch = replay.gather(np.arange(8), np.random.default_rng(0), later=True)
    which = numbers.integers(len(spec.symmetries), size=8)
    with torch.no_grad():
        for tensor in learner.network.parameters():
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1)))
    apply = losses_of(learner, batch, which)[0]
    # The reference: moves and actions by permutation, observations by the rules.
    from pondertree.games import TicTacToe
    from pondertree.learn.data.observations import PackedObservations

    states = []
    for game in games:
        state = TicTacToe()
        for move in game.opening.tolist():
            state = state.play(move)
        for move in game.moves.tolist():
            states.append((game, state, len(states)))
            state = state.play(move)

    def looked_at(row: int, place: int) -> Any:
        board = np.asarray(states[place][1].observation(), np.float32).reshape(-1, 9)
        return board[:, spec.symmetries[which[row]].cells].reshape(-1)

    none = np.zeros((8, 0), np.uint64)
    batch.seen = PackedObservations(none, np.stack([looked_at(row, row) for row in range(8)]))
    steps = batch.moves.shape[1]
    assert batch.inside is not None
    rows = [
        (row, row + depth if batch.inside[row, depth - 1] else row) for row in range(8) for depth in range(1, steps + 1)
    ]
    batch.later = PackedObservations(np.zeros((8 * steps, 0), np.uint64), np.stack([looked_at(*one) for one in rows]))
    for row in range(8):
        moved = np.append(spec.symmetries[which[row]].actions, 9)
        batch.moves[row] = moved[batch.moves[row]]
        batch.actions[row] = moved[batch.actions[row]]
    plain = LatentModelTrainer(spec, config.with_values(learner={"symmetries": False}), CPU)
    plain.network.load_state_dict(learner.network.state_dict())
    by_hand = losses_of(plain, batch, which)[0]
    for name, one in apply.items():
        assert one.item() == pytest.approx(by_hand[name].item(), rel=1e-4), name


@pytest.mark.parametrize("muzero", [{}, {"consistency": 1.0}, {"priority": 0.8}, {"reanalyse": 0.5}])
def test_training_lowers_losses_and_resumes_exactly(muzero: dict[str, float]) -> None:
    spec, replay, _ = played(20, muzero=muzero)
    learner = learner_of(spec, muzero=muzero, learner={"learning_rate": 0.01})
    first: dict[str, Any] = {}
    for step in range(30):
        if step == 20:
            saved, retained = learner.state_dict(), {name: array.copy() for name, array in replay.state_dict().items()}
        losses = learner.learn_from(replay, 0.0)
        first = first or losses
    assert losses["value_loss"] < first["value_loss"]
    assert losses["reward_loss"] < 0.7 * first["reward_loss"]
    other = learner_of(spec, muzero=muzero, learner={"learning_rate": 0.01})
    other.load_state_dict(saved, 20)
    replay.load_state_dict(retained)
    for _ in range(10):
        other.learn_from(replay, 0.0)
    for name, tensor in learner.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_captured_steps_match_eager_steps() -> None:
    from pondertree.gpu.captured_step import GraphedSteps

    spec, replay, _ = played(20)
    config = small(Path("unused"), algorithm="muzero", learner={"reduced_precision": False, "learning_rate": 1e-3})
    recorded, plain = (LatentModelTrainer(spec, config, torch.device("cuda")) for _ in range(2))
    plain.steps = GraphedSteps(torch.device("cuda"), plain.loss_and_update, captured=False)
    for _ in range(8):
        losses = (
            recorded.checked_losses(recorded.learn_from(replay, 0.0)),
            plain.checked_losses(plain.learn_from(replay, 0.0)),
        )
        assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_reanalyse_policy_matches_search_with_current_weights() -> None:
    spec, replay, _ = played(10, muzero={"reanalyse": 1.0})
    learner = learner_of(spec, muzero={"reanalyse": 1.0, "reanalyse_simulations": 32})
    numbers = np.random.default_rng(0)
    batch = replay.gather(np.arange(16), numbers)
    old = batch.policy.copy(), batch.values.copy()
    assert learner._reanalysis is not None
    learner._reanalysis.refresh_targets(batch, replay, learner.average, 5)
    inside = batch.actions[:, :, 0] < 9
    sums = batch.policy.sum(axis=2)
    np.testing.assert_allclose(sums[inside], 1.0, atol=1e-5)
    assert (sums[~inside] == 0.0).all()
    assert not np.allclose(batch.policy, old[0])
    assert (batch.values[~inside] == old[1][~inside]).all()
    again = replay.gather(np.arange(16), np.random.default_rng(0))
    learner._reanalysis.refresh_targets(again, replay, learner.average, 5)
    np.testing.assert_array_equal(again.policy, batch.policy)


def test_fresh_values_bootstrap_from_current_weights() -> None:
    from tests.support.learning import Stairs

    from pondertree.evaluators import Uniform
    from pondertree.learn.config.game_spec import game_spec
    from pondertree.learn.data.trajectories import TrajectoryBuffer
    from pondertree.learn.self_play.actor import SelfPlay

    muzero = {"support": 5, "td_steps": 2, "discount": 0.5, "fresh_values": True}
    config = small(Path("unused"), algorithm="muzero", muzero=muzero, learner={"root_value_share": 0.0})
    config = config.with_values(self_play={"opening_plies": 0})
    spec = game_spec("", Stairs, model=True)
    self_play = SelfPlay(spec, config.with_values(algorithm="gumbel"), Uniform())
    self_play.begin()
    games: Any = []
    while not games:
        games = self_play.move(0)
    replay = TrajectoryBuffer(spec, config)
    replay.add(games)
    learner = LatentModelTrainer(spec, config, CPU)
    with torch.no_grad():
        learner.network.predictor.value_out.bias.copy_(torch.linspace(-2.0, 2.0, 11))
    weights = {name: tensor.clone() for name, tensor in learner.network.state_dict().items()}
    batch = replay.gather(np.arange(6), np.random.default_rng(0))
    assert learner._reanalysis is not None
    learner._reanalysis.refresh_targets(batch, replay, weights, 0)
    states = [Stairs()]
    for move in games[0].moves.tolist():
        states.append(states[-1].play(move))
    player = player_of(learner.network)
    seen = torch.from_numpy(np.stack([state.observation() for state in states]))
    values = player.initial_inference(seen)[2].numpy()
    paid = games[0].rewards
    for place in range(6):
        expected = paid[place] + (0.5 * paid[place + 1] if place < 5 else 0.0)
        expected += 0.25 * values[place + 2] if place < 4 else 0.0
        assert batch.values[place, 0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("retained", [0.0, 0.5])
def test_hidden_gradient_is_scaled_at_each_step(retained: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At scale 0 the representation is trained by the first position alone; at 0.5 by later losses, too."""
    from pondertree.learn.trainer import latent_model

    assert latent_model.HIDDEN_GRADIENT_SCALE == 0.5
    monkeypatch.setattr(latent_model, "HIDDEN_GRADIENT_SCALE", retained)
    spec, replay, _ = played(4)
    learner = learner_of(spec)
    with torch.no_grad():
        for tensor in learner.network.parameters():
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1)))
    learner.network.eval()  # batch norms would couple the depths
    batch, none = replay.gather(np.arange(8), np.random.default_rng(0)), np.zeros(8, np.int64)
    stem = learner.network.stem.layer.weight
    (whole,) = torch.autograd.grad(sum(losses_of(learner, batch, none)[0].values()), stem)
    batch.known[:, 1:] = batch.searched[:, 1:] = 0.0
    (first,) = torch.autograd.grad(sum(losses_of(learner, batch, none)[0].values()), stem)
    assert torch.allclose(whole, first, atol=1e-6) == (retained == 0.0)


def test_prediction_errors_by_depth_of_known_model() -> None:
    spec, replay, _ = played(30)
    learner = learner_of(spec, learner={"learning_rate": 0.01})
    before = prediction_errors_by_depth(player_of(learner.network), replay)
    assert {name: len(errors) for name, errors in before.items()} == {"value": 6, "reward": 5, "policy": 6, "legal": 6}
    assert before["legal"][0] < 0.9
    for _ in range(60):
        learner.learn_from(replay, 0.0)
    after = prediction_errors_by_depth(player_of(learner.network), replay)
    assert after["legal"][1] > before["legal"][1] + 0.05
    assert after["reward"][0] < before["reward"][0] + 0.1
    assert min(after["policy"]) >= 0.0


def test_prediction_errors_cover_positions_of_games_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a model that predicts 0 is the mean absolute target over positions of games."""
    spec, replay, _ = played(30, muzero={"unroll": 10})
    player = player_of(learner_of(spec, muzero={"unroll": 10}).network)
    monkeypatch.setattr(type(player.categories), "to_numbers", lambda _, logits: torch.zeros(len(logits)))
    found = prediction_errors_by_depth(player, replay)
    first = int(0.9 * len(replay))
    batch = replay.gather(np.arange(first, len(replay)), np.random.default_rng(0))
    inside = batch.actions[:, :, 0] < 9
    for depth in range(11):
        rows = inside[:, depth]
        expected = float(np.abs(batch.values[rows, depth]).mean()) if rows.any() else None
        assert found["value"][depth] == (expected and pytest.approx(expected, abs=1e-4))
        rows = inside[:, depth - 1]
        expected = float(np.abs(batch.rewards[rows, depth - 1]).mean()) if depth and rows.any() else None
        assert depth == 0 or found["reward"][depth - 1] == (expected and pytest.approx(expected, abs=1e-4))
    assert found["value"][0]
    assert found["value"][-1] is None
    assert found["policy"][-1] is found["legal"][-1] is found["reward"][-1] is None
