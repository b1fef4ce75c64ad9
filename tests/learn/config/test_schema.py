"""Training configurations: validation and the TOML round trip."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondertree import games
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.learn import Config, EvaluationConfig, default_config, read_config, text_of_config
from pondertree.learn.config.game_spec import game_spec
from pondertree.learn.config.schema import SECTIONS, config_of_text, field_docs


@pytest.mark.parametrize("kind", [Config, *SECTIONS.values()])
def test_every_field_is_documented(kind: Any) -> None:
    sentences = field_docs(kind)
    assert all(sentences.get(field.name, "").endswith(".") for field in fields(kind))


@pytest.mark.parametrize("game", ["tic-tac-toe", "connect4", "othello", "chess", "examples.games.nim:Nim"])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_config_round_trips_through_toml(game: str, on_gpu: bool) -> None:
    if game.startswith("examples"):
        config = Config(game=game)
    else:
        config = default_config(game, on_gpu=on_gpu, minutes=7.5, out='runs\\"odd"\nname')
    assert config_of_text(text_of_config(config), Config()) == config


def test_config_stores_canonical_name_of_compiled_game() -> None:
    for name in ("tictactoe", "TicTacToe", "tic_tac_toe", "tic-tac-toe", "pondertree.games:TicTacToe"):
        assert default_config(name) == default_config("tic-tac-toe")
        assert default_config(name).game == "tic-tac-toe"


@pytest.mark.parametrize(
    ("game", "like"),
    [("hex:3", "tic-tac-toe"), ("hex:5", "tic-tac-toe"), ("hex:6", "othello"), ("breakthrough", "othello")],
)
@pytest.mark.parametrize("options", [{}, {"on_gpu": True}, {"algorithm": "muzero", "on_gpu": True}])
def test_games_without_own_defaults_are_trained_like_others_of_their_size(
    game: str, like: str, options: dict[str, Any]
) -> None:
    assert default_config(game, **options).with_values(game=like) == default_config(like, **options)


def test_default_config_accepts_factory_of_unnamed_game() -> None:
    from examples.games.nim import Nim

    assert default_config(factory=Nim) == default_config("examples.games.nim:Nim")
    assert default_config(factory=lambda: Nim((1, 2)), algorithm="muzero").algorithm == "muzero"
    pytest.importorskip("gymnasium")
    from tests.support.environments import Corridor

    config = default_config(factory=Corridor, steps=3)
    assert (config.algorithm, config.steps, config.muzero.support) == ("muzero", 3, 30)
    with pytest.raises(InvalidArgumentError, match="environments need algorithm muzero"):
        default_config(factory=Corridor, algorithm="gumbel")


def test_environment_without_prefix_is_refused_with_hint() -> None:
    with pytest.raises(InvalidArgumentError, match=r"unknown game 'CartPole-v1'.*; an environment .* gym:CartPole-v1"):
        default_config("CartPole-v1")
    with pytest.raises(InvalidArgumentError, match=rf"the compiled games are {re.escape(games.KNOWN)}$"):
        default_config("checkers")


def test_defaults_follow_the_specifications() -> None:
    chess, connect4 = default_config("chess").self_play, default_config("connect4").self_play
    assert (chess.temperature, chess.temperature_moves) == (1.0, 30)
    assert (connect4.temperature, connect4.temperature_moves) == (1.0, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("minutse = 3", "unknown key 'minutse': did you mean 'minutes'"),
        ("[self_play]\nsimulation = 3", r"unknown key 'simulation' in \[self_play\]: did you mean 'simulations'"),
        ("[network]\nzzzz = 3", r"unknown key 'zzzz' in \[network\]: known keys are blocks"),
        ("network = 3", r"network must be a table, \[network\]"),
        ("minutes = ", "invalid TOML"),
        ("[learner]\noptimiser = 'adam'", 'learner.optimiser must be "adamw" or "sgd"'),
        ("[learner]\nlearning_rate = 0", "learner.learning_rate must be above 0"),
        ("[learner]\naveraged = 1", "learner.averaged must be at least 0 and below 1"),
        ("[replay]\nwindow = 10", "replay.learned_first must be at most replay.window"),
        ("[self_play]\nfull_share = 0", "self_play.full_share must be above 0"),
        ("[self_play]\nresign_below = 0.5", "self_play.resign_below must be from -1"),
        ("[evaluation]\ngames = 3", "evaluation.games must be even"),
        ("[evaluation]\nuct_simulations = 3", "evaluation.uct_simulations must be a list"),
        ("algorithm = 'uct'", 'algorithm must be "gumbel", "alphazero" or "muzero"'),
        ("steps = 0", "steps must be at least 1"),
        ("steps = '5'", "steps must be a whole number"),
        ("game = ''", "game must be the name of a game"),
    ],
)
def test_invalid_config_file_is_refused_with_cause(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=message) as raised:
        read_config(path, Config())
    assert "config.toml" in str(raised.value)


def test_missing_config_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_config(tmp_path / "none.toml", Config())


def test_unknown_keyword_is_refused_like_unknown_key() -> None:
    with pytest.raises(InvalidArgumentError, match="unknown key 'stepz': did you mean 'steps'"):
        default_config("chess", stepz=3)
    with pytest.raises(InvalidArgumentError, match=r"unknown key 'simulation' in \[self_play\]: did you mean"):
        Config().with_values(self_play={"simulation": 3})


def test_config_accepts_path_as_run_folder() -> None:
    config = default_config("tic-tac-toe", out=Path("runs") / "one")
    assert config.out == str(Path("runs") / "one")
    assert config_of_text(text_of_config(config), Config()) == config
    with pytest.raises(InvalidArgumentError, match="out must be the name of a folder, not 3"):
        Config(out=3)  # type: ignore[arg-type]


def test_config_refuses_section_of_other_type() -> None:
    with pytest.raises(InvalidArgumentError, match="network must be a NetworkConfig"):
        Config(network=EvaluationConfig())  # type: ignore[arg-type]


@given(out=st.text(), seed=st.integers(0, 2**63 - 1), minutes=st.floats(0.0, allow_infinity=False), solve=st.booleans())
def test_values_round_trip_through_toml(out: str, seed: int, minutes: float, solve: bool) -> None:
    config = Config(out=out, seed=seed, checkpoint_minutes=minutes, evaluation=EvaluationConfig(solve=solve))
    assert config_of_text(text_of_config(config), Config()) == config


class Blind:
    """A game without `observation`."""

    to_play, is_terminal, num_actions, num_players = 0, False, 2, 2

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Blind:
        return self

    def returns(self) -> list[float]:
        return [0.0, 0.0]


class NeedsArgument(Blind):
    """A game whose class needs an argument."""

    def __init__(self, size: int) -> None:
        self.size = size


class OneNumber(Blind):
    """A game whose observation has no axis."""

    def observation(self) -> np.ndarray[Any, Any]:
        return np.zeros((), np.float32)


class Unturned(Blind):
    """A game whose symmetries fail."""

    def observation(self) -> np.ndarray[Any, Any]:
        return np.zeros(2, np.float32)

    def symmetries(self) -> Any:
        raise KeyError("board")


def test_untrainable_game_is_refused_with_cause() -> None:
    with pytest.raises(GameContractError, match=r"NeedsArgument' must give a starting state .* without arguments"):
        game_spec(f"{__name__}:NeedsArgument")
    with pytest.raises(GameContractError, match=r"OneNumber.observation\(\) has shape \(\): it must have at least one"):
        game_spec("", OneNumber)
    with pytest.raises(GameContractError, match=r"Unturned.symmetries\(\) failed: KeyError: 'board'"):
        game_spec("", Unturned)
    with pytest.raises(GameContractError, match=r"Blind has no observation\(\): a network needs one"):
        game_spec("", Blind)
    with pytest.raises(InvalidArgumentError, match="unknown game 'go'"):
        game_spec("go")
    with pytest.raises(InvalidArgumentError, match="cannot be imported"):
        game_spec("examples.games.none:None")
    with pytest.raises(InvalidArgumentError, match="cannot be trained"):
        game_spec("examples.games.coin_row:CoinRow")


def test_config_is_written_without_source_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing the package during a long run must not end it."""
    from pondertree.learn.config import schema

    def gone(kind: Any) -> str:
        raise OSError("could not get source code")

    monkeypatch.setattr("inspect.getsource", gone)
    config = default_config("chess")
    assert "# Self-play moves per game" in text_of_config(config)
    schema.field_docs.cache_clear()
    bare = text_of_config(config)
    schema.field_docs.cache_clear()
    assert config_of_text(bare, Config()) == config
    assert "# Self-play moves per game" not in bare
