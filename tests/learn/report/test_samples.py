"""Sample games in reports, and boards as SVG."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.support.learning import small

from pondertree.cli.position import Position
from pondertree.errors import StorageError
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe, name_of
from pondertree.learn import train
from pondertree.learn.data.shards import list_shards, read_shard
from pondertree.learn.evaluation.arena import games_path, read_games
from pondertree.learn.report.page import write_report
from pondertree.learn.report.samples import Sample
from pondertree.learn.report.samples_html import samples_html

EVALUATION = {"games": 4, "uct_simulations": (5,), "simulations": 4, "positions": 0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("training") / "out"
    train(small(out, steps=4).with_values(evaluation=EVALUATION))
    return out


def report_of(out: Path, factory: Any = None) -> str:
    path, _ = write_report(out, factory)
    return path.read_text(encoding="utf-8")


def games_in(text: str) -> list[str]:
    return re.findall(r'<section class="game">.*?</section>', text, re.S)


def test_report_shows_self_play_game_and_one_evaluation_game_per_side(trained: Path) -> None:
    text = report_of(trained)
    games = games_in(text)
    assert len(games) == 3
    titles = [re.search("<h3>(.*?)</h3>", game)[1] for game in games]  # type: ignore[index]
    assert titles[0].startswith("Self-play, game ")
    assert titles[1:] == ["Evaluation, against UCT 5"] * 2
    player, opponent = "step 4 with 4 simulations per move", "UCT with 5 simulations per move"
    assert f"{player} (X) against {opponent} (O)" in games[1]
    assert f"{opponent} (X) against {player} (O)" in games[2]
    played = [one.game for one in read_games(trained / games_path(4)) if one.opponent == "UCT 5"]
    for game, shown in zip(played[:2], games[1:], strict=True):
        # Every position has a board without scripts; moves and result are those of the record.
        plies = len(game.opening) + len(game.moves)
        assert shown.count('<figure class="position"><svg') == plies + 1
        state = TicTacToe()
        for place, action in enumerate((*game.opening, *game.moves), start=1):
            assert f"{place}. {state.action_to_string(action)} by {'XO'[state.to_play]}" in shown
            state = state.play(action)
        assert state.is_terminal
        result = {1.0: "X wins", -1.0: "O wins", 0.0: "a draw"}[state.returns()[0]]
        assert f": {result}, {plies} moves" in shown
    newest = read_shard(list_shards(trained / "games")[-1])
    assert any(f"Self-play, game {game.number}" == titles[0] for game in newest)
    assert ", value " in games[0]


def test_report_with_games_is_self_contained_and_reproducible(trained: Path) -> None:
    text = report_of(trained)
    assert report_of(trained) == text
    own = "".join(games_in(text)) + text[text.index("<script>") : text.index("</script>")]
    assert not re.search(r"(src|href|url|import|fetch)\s*[=(]", own.replace("xmlns=", ""))
    assert text.count("<script>") == text.count("</script>") == 1


def test_report_without_evaluation_games_shows_more_self_play(tmp_path: Path) -> None:
    train(small(tmp_path, steps=4))
    titles = re.findall("<h3>(.*?)</h3>", report_of(tmp_path))
    assert [title.split(",")[0] for title in titles] == ["Self-play"] * 3
    assert len(set(titles)) == 3


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"[]",
        b'{"format": "pondertree-evaluation-games", "version": 2, "games": []}',
        b'{"format": "pondertree-evaluation-games", "version": 1, "games": [{"opponent": "UCT 5"}]}',
        b'{"format": "pondertree-evaluation-games", "version": 1, "games": [{"opponent": "UCT 5", "side": 7, '
        b'"opening": [], "moves": [], "returns": [1, -1]}]}',
    ],
)
def test_report_is_written_despite_damaged_evaluation_games(trained: Path, damaged: bytes) -> None:
    path = trained / games_path(4)
    whole = path.read_bytes()
    try:
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match=re.escape(str(path))):
            read_games(path)
        assert len(games_in(report_of(trained))) == 3
        assert "Evaluation, against" not in report_of(trained)
    finally:
        path.write_bytes(whole)


def test_game_with_illegal_moves_lists_actions_without_boards() -> None:
    shown = samples_html([Sample("a", ("one", "other"), [], [4, 4, 3], [1.0, -1.0])], TicTacToe)
    assert "<figure" not in shown
    assert "Actions: <span>4</span> <span>4</span> <span>3</span>" in shown


class Hostile:
    """A game whose texts are HTML."""

    num_players, num_actions, to_play = 2, 3, 0

    def __init__(self, plies: int = 0) -> None:
        self.plies = plies
        self.is_terminal = plies == 2

    def play(self, action: int) -> Hostile:
        return Hostile(self.plies + 1)

    def action_to_string(self, action: int) -> str:
        return "<b onclick='x()'>&"

    def __str__(self) -> str:
        return "</pre><script>alert(1)</script>"


def test_texts_of_user_game_are_escaped() -> None:
    samples = [Sample("<i>title</i>", ("<u>", "&amp;"), [0], [1], [0.0, 0.0], "<hr>", [0.5])]
    shown = samples_html(samples, Hostile)
    for wrong in ("<i>", "<u>", "<hr>", "<b onclick", "<script>alert"):
        assert wrong not in shown
    assert shown.count("<pre>&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;</pre>") == 3
    assert "&amp;amp; (Player 2)" in shown


def test_game_whose_str_raises_shows_the_error() -> None:
    class Raising(Hostile):
        def __str__(self) -> str:
            raise RuntimeError

        def play(self, action: int) -> Hostile:
            return Raising(self.plies + 1)

    shown = samples_html([Sample("a", ("one", "other"), [], [1, 2], [0.0, 0.0])], Raising)
    assert "&lt;Raising: Raising.__str__ raised RuntimeError: &gt;" in shown
    assert "<b onclick" not in shown


def test_report_imports_no_game_named_by_folder(trained: Path, tmp_path: Path) -> None:
    """A run folder is data: the game it names is not imported; `factory=` supplies it."""
    module = tmp_path / "named_by_a_folder.py"
    module.write_text("raise AssertionError('imported')\n")
    config = trained / "config.toml"
    before = config.read_text()
    sys.path.insert(0, str(tmp_path))
    try:
        config.write_text(before.replace('"tic-tac-toe"', '"named_by_a_folder:Game"'))
        text = report_of(trained)
        assert "named_by_a_folder" not in sys.modules
        assert all("Actions: " in game and "<figure" not in game for game in games_in(text))
        assert 'class="position"' in report_of(trained, TicTacToe)
    finally:
        sys.path.remove(str(tmp_path))
        config.write_text(before)


def test_report_of_python_game_shows_its_text(tmp_path: Path) -> None:
    from examples.games.nim import Nim

    train(small(tmp_path, "examples.games.nim:Nim", steps=2).with_values(evaluation=EVALUATION))
    games = games_in(report_of(tmp_path, Nim))
    assert len(games) == 3
    assert all(f"<pre>{Nim()}</pre>" in game for game in games)


def test_report_of_environment_shows_returns_and_actions(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from pondertree.learn import default_config

    config = default_config("gym:CartPole-v1", out=str(tmp_path), steps=2, device="cpu").with_values(
        network={"blocks": 1, "channels": 8},
        self_play={"games_at_once": 4, "simulations": 2, "workers": 1},
        replay={"learned_first": 40},
        learner={"batch_size": 8},
        evaluation={"games": 0},
    )
    train(config)
    text = report_of(tmp_path)
    games = games_in(text)
    assert "<h2>Sample episodes</h2>" in text
    assert games[0].startswith('<section class="game"><h3>Best of the newest')
    records = {game.number: game for shard in list_shards(tmp_path / "games") for game in read_shard(shard)}
    for game in games:
        record = records[int(re.search(r"number (\d+)", game)[1])]  # type: ignore[index]
        assert f"return {float(record.returns[0]):g}, {len(record.moves)} moves" in game
        assert "Actions: " + " ".join(f"<span>{action}</span>" for action in record.moves) in game
        assert "<polyline" in game


@pytest.mark.parametrize(
    ("game", "colours"),
    [(TicTacToe, ("", "")), (ConnectFour, (", red", ", yellow")), (Othello, (", black", ", white")), (Chess, ("", ""))],
)
def test_sample_games_name_players_like_printed_board(game: Any, colours: tuple[str, str]) -> None:
    state = game()
    action = int(state.legal_actions()[0])
    first, second = (Position(name_of(game) or "", state).players for state in (state, state.play(action)))
    assert first == second
    assert f"{first[0]} to move" in str(state)
    assert f"{first[1]} to move" in str(state.play(action))
    shown = samples_html([Sample("a", ("one", "other"), [], [action], [1.0, -1.0])], game)
    assert f"one ({first[0]}{colours[0]}) against other ({first[1]}{colours[1]}): {first[0]} wins" in shown
    assert f" by {first[0]}<" in shown
