"""Policy-value training: shapes, folding, losses by hand, optimiser, schedule, resuming."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learn.data.test_records import make_game
from tests.support.learning import small

from pondertree.errors import EvaluationError, InvalidArgumentError, StorageError, TrainingError
from pondertree.evaluators.symmetry import symmetries_of

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.gpu.buffer import unpacked  # noqa: E402
from pondertree.gpu.captured_step import GraphedSteps  # noqa: E402 (after the packages it needs)
from pondertree.learn.config import Config  # noqa: E402
from pondertree.learn.config.game_spec import game_spec  # noqa: E402
from pondertree.learn.data.replay import ReplayBuffer  # noqa: E402
from pondertree.learn.trainer.architectures import policy_value_architecture  # noqa: E402
from pondertree.learn.trainer.devices import choose_device, reported_out_of_memory  # noqa: E402
from pondertree.learn.trainer.policy_value import PolicyValueTrainer, SymmetryTransforms, policy_loss  # noqa: E402
from pondertree.networks.architecture import Architecture, NetworkConfig  # noqa: E402
from pondertree.networks.categories import Categories, outcome_shares  # noqa: E402
from pondertree.networks.policy_value import PolicyValueNetwork, fresh, player_of, update_player  # noqa: E402
from pondertree.networks.weights_file import player_bytes, player_of_bytes, read_player  # noqa: E402

CPU = torch.device("cpu")
SIZE = NetworkConfig(blocks=2, channels=8, policy_channels=4, value_channels=2, value_hidden=8)
CONFIG = Config(network=SIZE)
GAMES = ["tic-tac-toe", "connect4", "othello", "chess", "examples.games.nim:Nim"]


def shaken(game: str, seed: int = 1) -> PolicyValueNetwork:
    """Returns a network with random weights and norm statistics."""
    network = fresh(policy_value_architecture(game_spec(game), CONFIG), seed)
    numbers = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                tensor += 0.3 * torch.rand(tensor.shape, generator=numbers) + (0.2 if "var" in name else 0.0)
    return network


@pytest.mark.parametrize("game", GAMES)
def test_heads_match_action_space(game: str) -> None:
    spec = game_spec(game)
    network = fresh(policy_value_architecture(spec, CONFIG), 1).eval()
    logits, values = network(torch.from_numpy(np.stack([spec.factory().observation()] * 3)))
    assert logits.shape == (3, spec.info.num_actions)
    assert values.shape == (3,)
    # An untrained network is uniform.
    assert not logits.any()
    assert not values.any()
    assert Architecture.of_data(network.architecture.as_data()) == network.architecture


def test_chess_policy_planes_match_action_numbers() -> None:
    network = shaken("chess").eval()
    with torch.no_grad():
        network.policy_out.weight.zero_()
        network.policy_out.bias.copy_(torch.arange(73.0))
    logits, _ = network(torch.zeros(1, 119, 8, 8))
    np.testing.assert_array_equal(logits[0].detach().numpy(), np.arange(4672) % 73)


@pytest.mark.parametrize("game", GAMES)
def test_folded_player_matches_network(game: str) -> None:
    network = shaken(game).eval()
    player = player_of(network)
    observations = torch.rand(5, *network.architecture.shape)
    for one, other in zip(network(observations), player(observations), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    # Weights are updated in place.
    held = player.stem.weight
    before = held.clone()
    other_network = shaken(game, 2).eval()
    update_player(player, other_network.state_dict())
    assert held is player.stem.weight
    assert not torch.equal(held, before)
    torch.testing.assert_close(other_network(observations)[0], player(observations)[0], rtol=1e-4, atol=1e-4)


def test_player_file_round_trips(tmp_path: Path) -> None:
    player = player_of(shaken("connect4"))
    content = player_bytes(player, {"game": "connect4", "step": 7})
    again, about = player_of_bytes(content)
    assert about["step"] == 7
    observations = torch.rand(3, 3, 6, 7)
    assert all(torch.equal(one, other) for one, other in zip(player(observations), again(observations), strict=True))
    for damaged in (content[:50], content[: len(content) // 2], b"", b"\x80\x04pickle", content[8:]):
        path = tmp_path / "player.safetensors"
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match=r"player\.safetensors"):
            read_player(path)
    for wrong, message in ((b'version\\": 1', "version 9"), (b"pondertree-player", "pondertree-plover")):
        changed = content.replace(wrong, wrong.replace(b"1", b"9").replace(b"player", b"plover"), 1)
        with pytest.raises(StorageError, match=message):
            player_of_bytes(changed)


def test_losses_match_hand_computation() -> None:
    logits = torch.tensor([[1.0, 5.0, 2.0], [0.0, 0.0, 9.0]])
    actions = torch.tensor([[0, 2], [1, 3]])  # 3 is padding: the second position has one legal move
    policy = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    first = -(0.25 * (1.0 - math.log(math.e + math.e**2)) + 0.75 * (2.0 - math.log(math.e + math.e**2)))
    assert float(policy_loss(logits, actions, policy)) == pytest.approx(first / 2, rel=1e-5)
    shares = outcome_shares(torch.tensor([1.0, 0.0, -1.0, 0.25, -0.5]))
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.25, 0.75, 0], [0, 0.5, 0.5]]
    np.testing.assert_allclose(shares.numpy(), expected)
    assert float(Categories(0).loss(torch.zeros(2, 3), torch.tensor([1.0, 0.0])).mean()) == pytest.approx(math.log(3.0))


def test_gradient_of_illegal_moves_is_zero() -> None:
    logits = torch.zeros(1, 4, requires_grad=True)
    policy_loss(logits, torch.tensor([[1, 2, 4]]), torch.tensor([[0.9, 0.1, 0.0]])).backward()
    np.testing.assert_allclose(logits.grad.numpy(), [[0.0, -0.4, 0.4, 0.0]], atol=1e-6)


@pytest.mark.parametrize("game", ["connect4", "tic-tac-toe", "othello"])
def test_symmetry_transform_commutes_with_play(game: str) -> None:
    """Playing a transformed move on the transformed board gives the transformed board."""
    spec = game_spec(game)
    replay = ReplayBuffer(spec, small(Path("unused")))
    numbers = np.random.default_rng(3)
    symmetries = tuple(symmetries_of(game))
    if game == "connect4":
        replay.add([make_game(number, 12) for number in range(5)])
        batch = replay.gather(np.arange(len(replay)))
        which = numbers.integers(len(symmetries), size=len(batch.results))
        planes, scalars = (torch.from_numpy(part) for part in (batch.seen.planes.view(np.int64), batch.seen.numbers))
        boards = unpacked(planes, scalars, spec.shape)
        turning = SymmetryTransforms(symmetries, CPU)
        found, moved = turning.apply(boards, torch.from_numpy(batch.actions), torch.from_numpy(which))
        flipped = which == 1
        np.testing.assert_array_equal(found[flipped], boards[flipped].flip(-1))
        legal = batch.actions[flipped] < 7
        np.testing.assert_array_equal(moved[flipped][legal], 6 - batch.actions[flipped][legal])
        assert (moved[flipped][~legal] == 7).all()
        np.testing.assert_array_equal(found[~flipped], boards[~flipped])
        return
    # Only the planes of own pieces are compared: the player to move differs.
    state = spec.factory()
    for _ in range(3):
        state = state.play(int(numbers.choice(state.legal_actions())))
    for symmetry in symmetries:
        board = state.observation()[:2].reshape(2, -1)[:, symmetry.cells]
        legal = {int(symmetry.actions[action]) for action in state.legal_actions()}
        empty = set(np.flatnonzero(board.sum(axis=0) == 0).tolist())
        assert legal <= empty | {64}


def test_training_lowers_losses_and_averages_weights(tmp_path: Path) -> None:
    config = small(tmp_path, "connect4", learner={"batch_size": 32, "learning_rate": 1e-2})
    spec = game_spec("connect4")
    learner = PolicyValueTrainer(spec, config, CPU)
    replay = ReplayBuffer(spec, config)
    replay.add([make_game(number, 20) for number in range(20)])
    batch = replay.sample(32, learner.step_generator())
    losses = [learner.checked_losses(learner.learn(batch, np.zeros(32, np.int64), 0.0)) for _ in range(60)]
    assert losses[-1]["policy_loss"] < losses[0]["policy_loss"] - 0.1
    assert losses[-1]["value_loss"] < losses[0]["value_loss"] - 0.2
    distances = [
        float((learner.average[name] - tensor.detach()).abs().max())
        for name, tensor in learner.network.named_parameters()
    ]
    assert 0.0 < max(distances) < 0.5


def test_batches_depend_on_step_number_alone(tmp_path: Path) -> None:
    config, spec = small(tmp_path, "connect4"), game_spec("connect4")
    replay = ReplayBuffer(spec, config)
    replay.add([make_game(number, 20) for number in range(20)])
    one, other = PolicyValueTrainer(spec, config, CPU), PolicyValueTrainer(spec, config, CPU)
    assert one.learn_from(replay, 0.0) == other.learn_from(replay, 0.0)
    assert one.step == 1
    third = PolicyValueTrainer(spec, config, CPU)
    third.step = 1
    first = third.step_generator().integers(1 << 30, size=9)
    np.testing.assert_array_equal(first, one.step_generator().integers(1 << 30, size=9))
    third.step = 0
    assert not np.array_equal(first, third.step_generator().integers(1 << 30, size=9))


def test_restored_trainer_continues_bit_for_bit(tmp_path: Path) -> None:
    for optimiser in ("adamw", "sgd"):
        config, spec = small(tmp_path, "connect4", learner={"optimiser": optimiser}), game_spec("connect4")
        replay = ReplayBuffer(spec, config)
        replay.add([make_game(number, 20) for number in range(20)])
        one, other = PolicyValueTrainer(spec, config, CPU), PolicyValueTrainer(spec, config, CPU)
        for _ in range(5):
            one.learn_from(replay, 0.0)
        other.load_state_dict(one.state_dict(), one.step)
        for learner in (one, other):
            for _ in range(5):
                learner.learn_from(replay, 0.0)
        left, right = one.state_dict(), other.state_dict()
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)
    with pytest.raises(StorageError, match="do not fit this network"):
        PolicyValueTrainer(game_spec("tic-tac-toe"), small(tmp_path), CPU).load_state_dict(one.state_dict(), 1)


def learned(config: Any, steps: int = 2) -> tuple[PolicyValueTrainer, ReplayBuffer]:
    """Returns a trainer after some steps, and its replay buffer."""
    spec = game_spec("connect4")
    learner, replay = PolicyValueTrainer(spec, config, CPU), ReplayBuffer(spec, config)
    replay.add([make_game(number, 20) for number in range(20)])
    for _ in range(steps):
        learner.learn_from(replay, 0.0)
    return learner, replay


def test_unknown_optimiser_state_is_refused(tmp_path: Path) -> None:
    learner, _ = learned(small(tmp_path, "connect4"))
    saved = learner.state_dict()
    name = next(name for name in saved if name.endswith(".exp_avg"))
    rest = {key: tensor for key, tensor in saved.items() if key != name}
    for wrong in (rest, {**rest, f"{name}x": saved[name]}, {**rest, name: saved[name].flatten()[0].clone()}):
        with pytest.raises(StorageError, match=r"optimiser\.\d+"):
            learner.load_state_dict(wrong, 2)
    for number in ("-1", "x", "9999", "9" * 5000):
        with pytest.raises(StorageError, match="do not fit this network: optimiser"):
            learner.load_state_dict({**saved, f"optimiser.{number}.step": torch.zeros(())}, 2)


@pytest.mark.parametrize(("before", "after"), [("adamw", "sgd"), ("sgd", "adamw")])
def test_changed_optimiser_starts_without_state(tmp_path: Path, before: str, after: str) -> None:
    old, replay = learned(small(tmp_path, "connect4", learner={"optimiser": before}))
    new, _ = learned(small(tmp_path, "connect4", learner={"optimiser": after}), steps=0)
    new.load_state_dict(old.state_dict(), old.step)
    assert not new.optimiser.state_dict()["state"]
    new.learn_from(replay, 0.0)
    assert new.step == old.step + 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_captured_steps_match_eager_steps(tmp_path: Path) -> None:
    """Captured, eager and resumed training give the same weights."""
    device, spec = torch.device("cuda"), game_spec("connect4")
    config = small(tmp_path, "connect4", learner={"reduced_precision": False, "learning_rate": 1e-3})
    replay = ReplayBuffer(spec, config)
    replay.add([make_game(number, 20) for number in range(20)])
    recorded, plain, resumed = (PolicyValueTrainer(spec, config, device) for _ in range(3))
    plain.steps = GraphedSteps(device, plain.loss_and_update, captured=False)
    for step in range(8):
        losses = (
            recorded.checked_losses(recorded.learn_from(replay, 0.0)),
            plain.checked_losses(plain.learn_from(replay, 0.0)),
        )
        assert losses[0] == pytest.approx(losses[1], rel=1e-2)
        if step == 4:
            resumed.load_state_dict(recorded.state_dict(), recorded.step)
        elif step > 4:
            resumed.learn_from(replay, 0.0)
    left, others = recorded.state_dict(), (plain.state_dict(), resumed.state_dict())
    for right in others:
        for name, tensor in left.items():
            torch.testing.assert_close(
                tensor, right[name], rtol=0.05, atol=2e-3, msg=lambda text, at=name: f"{at}: {text}"
            )


def test_learning_rate_schedule_warms_up_and_decays(tmp_path: Path) -> None:
    settings = {"learning_rate": 1.0, "warm_up": 4, "decay_from": 0.5, "final_rate": 0.1}
    learner = PolicyValueTrainer(game_spec("tic-tac-toe"), small(tmp_path, learner=settings), CPU)
    assert [learner.learning_rate(0.0) for learner.step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert learner.learning_rate(0.5) == 1.0
    assert learner.learning_rate(0.75) == pytest.approx(0.55)
    assert learner.learning_rate(1.0) == pytest.approx(0.1)


def test_non_finite_loss_stops_training(tmp_path: Path) -> None:
    learner = PolicyValueTrainer(game_spec("tic-tac-toe"), small(tmp_path), CPU)
    with pytest.raises(TrainingError, match=r"policy_loss is nan at step 0.*lower learner\.learning_rate"):
        learner.checked_losses({"policy_loss": torch.tensor(math.nan)})


def test_device_choice_refuses_unavailable_devices() -> None:
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(InvalidArgumentError, match="device 'abacus' is unknown to PyTorch"):
        choose_device("abacus")
    if not torch.backends.mps.is_available():
        with pytest.raises(InvalidArgumentError, match="device 'mps' is unavailable: PyTorch finds none"):
            choose_device("mps")
    if not torch.cuda.is_available():
        assert choose_device("auto").type == "cpu"
        with pytest.raises(InvalidArgumentError, match="PyTorch finds no GPU; use cpu or auto"):
            choose_device("cuda")
    with (
        pytest.raises(TrainingError, match=r"ran out of memory during self-play"),
        reported_out_of_memory("self-play", "self_play.games_at_once"),
    ):
        raise EvaluationError("the evaluator raised something") from torch.OutOfMemoryError("out of it")
    with (
        pytest.raises(TrainingError, match=r"ran out of memory during self-play: lower self_play\.games_at_once \(out"),
        reported_out_of_memory("self-play", "self_play.games_at_once"),
    ):
        raise torch.OutOfMemoryError("out of it\nand so on")
