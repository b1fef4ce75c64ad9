"""Model networks: shapes, ranges, folding, action and value encodings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.learning import small

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.errors import StorageError  # noqa: E402 (after the packages it needs)
from pondertree.learn.config.game_spec import game_spec  # noqa: E402
from pondertree.learn.trainer.architectures import model_architecture  # noqa: E402
from pondertree.networks.categories import Categories  # noqa: E402
from pondertree.networks.model_architecture import ActionPlanes, ModelArchitecture  # noqa: E402
from pondertree.networks.model_network import ModelNetwork, fresh_model  # noqa: E402
from pondertree.networks.policy_value import player_of, update_player  # noqa: E402
from pondertree.networks.weights_file import player_bytes, player_of_bytes  # noqa: E402

GAMES = ["tic-tac-toe", "connect4", "othello", "chess", "examples.games.nim:Nim"]


def architecture(game: str, **muzero: Any) -> ModelArchitecture:
    return model_architecture(game_spec(game), small(Path("unused"), algorithm="muzero", muzero=muzero))


def shaken(game: str, **muzero: Any) -> ModelNetwork:
    """Returns a network with random weights and norm statistics."""
    network = fresh_model(architecture(game, **muzero), 1)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        with torch.no_grad():
            for tensor in network.parameters():
                tensor.add_(0.3 * torch.randn_like(tensor))
            for name, tensor in network.named_buffers():
                if name.endswith("running_mean"):
                    tensor.normal_(0.0, 0.5)
                elif name.endswith("running_var"):
                    tensor.uniform_(0.5, 2.0)
    return network.eval()


def seen(game: str) -> Any:
    state = game_spec(game).factory()
    after = state.play(state.legal_actions()[0])
    return torch.from_numpy(np.stack([np.asarray(one.observation(), np.float32) for one in (state, after)]))


@pytest.mark.parametrize("game", GAMES)
def test_folded_model_matches_network(game: str, tmp_path: Path) -> None:
    network = shaken(game, consistency=1.0)
    player = player_of(network)
    assert not any("norm" in name or "guesser" in name for name in player.state_dict() if network.is_board)
    read, about = player_of_bytes(player_bytes(player, {"step": 3}))
    assert about["step"] == 3
    actions = torch.tensor([0, 1])
    with torch.inference_mode():
        for one in (player, read):
            first, other = network.initial_inference(seen(game)), one.initial_inference(seen(game))
            for expected, found in zip(first, other, strict=True):
                torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-4)
            for expected, found in zip(
                network.recurrent_inference(first[0], actions),
                one.recurrent_inference(first[0], actions),
                strict=True,
            ):
                torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-4)
    before = [tensor.data_ptr() for tensor in player.parameters()]
    update_player(player, fresh_model(architecture(game, consistency=1.0), 9).state_dict())
    assert [tensor.data_ptr() for tensor in player.parameters()] == before


@pytest.mark.parametrize("game", GAMES)
def test_model_outputs_have_documented_shapes_and_ranges(game: str) -> None:
    network = shaken(game)
    spec = game_spec(game)
    with torch.inference_mode():
        hidden, policy, value = network.initial_inference(seen(game))
        after, reward, logits, later, discount = network.recurrent_inference(hidden, torch.tensor([0, 1]))
    assert tuple(hidden.shape[1:]) == network.architecture.hidden_shape == tuple(after.shape[1:])
    assert policy.shape == logits.shape == (2, spec.info.num_actions)
    assert value.shape == reward.shape == later.shape == (2,)
    for states in (hidden, after):
        flat = states.flatten(1)
        torch.testing.assert_close(flat.amin(1), torch.zeros(2))
        torch.testing.assert_close(flat.amax(1), torch.ones(2))
    # The negative discount tells searches that players alternate.
    assert discount.tolist() == [-1.0, -1.0]
    assert value.abs().max() <= 1.0
    with torch.inference_mode():
        one, other = (network.step(hidden[:1], torch.tensor([action])) for action in (0, 1))
    assert not torch.equal(one, other)
    assert not torch.equal(one, hidden[:1])


def test_action_encodings_match_their_games() -> None:
    planes = {game: ActionPlanes(architecture(game)) for game in GAMES}
    kinds = [planes[game].kind for game in GAMES]
    assert kinds == ["cells", "columns", "cells", "squares", "vector"]
    encoded = planes["tic-tac-toe"](torch.tensor([5]), torch.float32)
    assert encoded[0, 0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    encoded = planes["connect4"](torch.tensor([3]), torch.float32)
    assert encoded[0, 0].sum(0).tolist() == [0, 0, 0, 6, 0, 0, 0]
    # The pass of Othello marks no cell.
    assert planes["othello"](torch.tensor([64]), torch.float32).abs().sum() == 0
    encoded = planes["chess"](torch.tensor([12 * 73 + 5]), torch.float32)[0]
    assert encoded[0].flatten().argmax() == 12
    assert encoded[1:].amax((1, 2)).argmax() == 5


def test_untrained_model_is_uniform() -> None:
    network = fresh_model(architecture("connect4"), 3).eval()
    with torch.inference_mode():
        hidden, policy, value = network.initial_inference(seen("connect4"))
        _, reward, logits, later, _ = network.recurrent_inference(hidden, torch.tensor([0, 1]))
    for numbers in (policy, value, reward, logits, later):
        assert numbers.abs().max() == 0.0


def test_categorical_encoding_round_trips() -> None:
    numbers = torch.tensor([-250.0, -1.0, 0.0, 0.3, 17.5, 800.0])
    for support in (0, 30):
        categories = Categories(support)
        given = numbers.clamp(-categories.largest, categories.largest)
        logits = torch.zeros(6, categories.count, requires_grad=True)
        optimiser = torch.optim.Adam([logits], lr=0.3)
        for _ in range(400):
            optimiser.zero_grad()
            categories.loss(logits, given).sum().backward()
            optimiser.step()
        torch.testing.assert_close(categories.to_numbers(logits.detach()), given, rtol=0.05, atol=0.05)


def test_invalid_model_description_is_refused() -> None:
    content = player_bytes(player_of(shaken("tic-tac-toe")), {})
    with pytest.raises(Exception, match="not a model description"):
        player_of_bytes(content.replace(b"action_planes", b"action_planet"))
    with pytest.raises(StorageError, match="do not fit the network"):
        player_of_bytes(content.replace(b'num_actions\\": 9', b'num_actions\\": 8'))
