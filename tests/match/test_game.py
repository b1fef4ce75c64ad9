"""Games of a match: sides, seeds, terminations, adjudication, player failures."""

from __future__ import annotations

from typing import Any

import pytest
from examples.games.nim import Nim

import pondertree
from pondertree.errors import InvalidArgumentError, PlayerError
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.match import Adjudication, GameRecord, Opening, PlayedMove, Player, PlayerFailure, read_player
from pondertree.match.game import claimed_draw, play_game


class Scripted(Player):
    """Plays listed moves with listed values."""

    def __init__(self, moves: str = "", value: float | None = None) -> None:
        self.moves, self.value = moves.split(), value
        self.seen: list[int] = []
        self.seed = -1

    def new_game(self, state: Any, seed: int) -> None:
        self.seed, self.left = seed, list(self.moves)

    def choose(self, state: Any) -> PlayedMove:
        if not self.left:
            return PlayedMove(state.legal_actions()[0], self.value)
        word = self.left.pop(0)
        if word == "fail":
            raise PlayerFailure("died", "it is gone")
        if word == "raise":
            raise ValueError("oh")
        return PlayedMove(int(word) if word.isdigit() and int(word) > 99 else state.parse_action(word), self.value)

    def played(self, state: Any, action: int) -> None:
        self.seen.append(action)


def play(
    one: Player,
    two: Player,
    game: Any = ConnectFour,
    opening: Opening | None = None,
    first: int = 1,
    on_failure: str = "loss",
    **adjudication: Any,
) -> GameRecord:
    opening = opening or Opening()
    return play_game(
        opening.root(game),
        opening,
        [one, two],
        ["one", "two"],
        [11, 22],
        number=4,
        first=first,
        adjudication=Adjudication(**adjudication),
        on_failure=on_failure,
    )


@pytest.mark.parametrize(("first", "points"), [(1, 1.0), (2, 0.0)])
def test_first_player_alternates_within_pair(first: int, points: float) -> None:
    """The side that moves first wins: player 1 in one game, player 2 in the other."""
    winner, loser = Scripted("1 1 1 1", 0.5), Scripted("2 2 2")
    one, two = (winner, loser) if first == 1 else (loser, winner)
    game = play(one, two, first=first)
    assert (game.points, game.first, game.reason, game.culprit) == (points, first, "finished", None)
    assert game.moves == ("1", "2", "1", "2", "1", "2", "1")
    assert len(game.seconds) == 7
    assert game.values == (0.5, None, 0.5, None, 0.5, None, 0.5)
    assert (one.seed, two.seed) == (11, 22)
    assert one.seen == two.seen == [0, 1, 0, 1, 0, 1, 0]
    assert GameRecord.from_json(game.as_json()) == game


def test_opening_moves_precede_players() -> None:
    one, two = Scripted("2 2"), Scripted("1 1")
    game = play(one, two, opening=Opening(("1", "2", "1")), max_plies=5)
    assert game.moves == ("1", "2", "1", "1", "2")
    assert (game.opening, len(game.seconds)) == (3, 2)
    assert (game.reason, game.points) == ("max_plies", 0.5)
    assert len(one.seen) == 5


def test_chess_game_starts_from_fen() -> None:
    opening = Opening(("Ra2", "Kf8"), "6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1")
    game = play(Scripted("a2a8"), Scripted("f8e7"), Chess, opening, max_plies=4)
    assert game.fen == opening.fen
    assert game.moves == ("a1a2", "g8f8", "a2a8", "f8e7")
    mate = play(Scripted("a1a8"), Scripted(), Chess, Opening(fen=opening.fen))
    assert (mate.reason, mate.points) == ("checkmate", 1.0)


def test_claimable_draws_end_chess_games() -> None:
    game = play(Scripted("g1f3 f3g1 " * 9), Scripted("g8f6 f6g8 " * 9), Chess)
    assert (game.reason, game.points, len(game.moves)) == ("threefold_repetition", 0.5, 8)
    still = "8/8/4k3/8/8/4K3/4R3/8 w - - 98 80"
    assert play(Scripted("e2a2"), Scripted("e6e7"), Chess, Opening(fen=still)).reason == "fifty_moves"
    assert claimed_draw(TicTacToe()) is None


def test_python_game_without_notation_is_played() -> None:
    """Nim with numbered actions; the optimal player wins."""
    game = play(read_player(pondertree.UCT(500)).start(), read_player("first").start(), Nim)
    assert game.points == 1.0
    assert all(move.lstrip("-").isdigit() or move for move in game.moves)


# --- adjudication ---------------------------------------------------------------------------------------------


def test_resignation_requires_agreement() -> None:
    sure, lost, unsure = Scripted(value=0.97), Scripted(value=-0.97), Scripted(value=0.5)
    game = play(lost, sure, resign=0.95, resign_moves=2)
    assert (game.reason, game.points, len(game.moves)) == ("resigned", 0.0, 5)
    assert play(sure, lost, resign=0.95, resign_moves=2).points == 1.0
    assert play(lost, unsure, resign=0.95, resign_moves=2).reason == "finished"
    alone = play(lost, unsure, resign=0.95, resign_moves=2, agree=False)
    assert (alone.reason, alone.points, len(alone.moves)) == ("resigned", 0.0, 3)
    assert play(Scripted(), sure, resign=0.95, resign_moves=1).reason == "finished"


def test_draw_is_adjudicated_by_values() -> None:
    even = Scripted(value=0.01)
    game = play(even, Scripted(value=-0.01), draw=0.02, draw_moves=3, draw_after=4)
    assert (game.reason, game.points, len(game.moves)) == ("draw_agreed", 0.5, 6)
    assert len(play(even, even, draw=0.02, draw_moves=1, draw_after=9).moves) == 9
    assert play(even, Scripted(value=0.3), draw=0.02, draw_moves=3, draw_after=4).reason == "finished"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_plies", 0),
        ("max_plies", 1.5),
        ("resign", 2.0),
        ("resign", -0.1),
        ("resign_moves", 0),
        ("draw", float("nan")),
        ("draw_after", -1),
        ("agree", "yes"),
    ],
)
def test_invalid_adjudication_raises(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        Adjudication(**{name: value})


# --- failures -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "reason"), [("fail", "died"), ("500", "illegal_move")])
@pytest.mark.parametrize("first", [1, 2])
def test_player_failure_loses_game(word: str, reason: str, first: int) -> None:
    game = play(Scripted("1"), Scripted(f"2 {word}"), first=first)
    assert (game.points, game.reason, game.culprit) == (1.0, reason, 2)
    assert game.detail
    assert play(Scripted(word), Scripted(), first=first).points == 0.0


def test_player_failure_ends_match_with_on_failure_error() -> None:
    with pytest.raises(PlayerError, match=r"two \(player 2\) failed in game 4 after 3 moves \(died\): it is gone"):
        play(Scripted(), Scripted("1 fail"), on_failure="error")


def test_player_exception_raises_player_error() -> None:
    with pytest.raises(PlayerError, match=r"one \(player 1\) raised ValueError in game 4 after 0 moves: oh"):
        play(Scripted("raise"), Scripted())


@pytest.mark.parametrize("answer", [99, -1, "a", None, 1.5])
def test_invalid_function_result_is_illegal_move(answer: Any) -> None:
    player = read_player(lambda state: answer).start()
    game = play(player, Scripted())
    assert (game.reason, game.culprit, game.points) == ("illegal_move", 1, 0.0)


# --- players --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["uct:num_simulations=50", "uct:num_simulations=50,reuse=true", "random"])
def test_game_depends_only_on_seed(text: str) -> None:
    player = read_player(text).start()
    games = [play(player, Scripted("4 4 4")) for _ in range(2)]
    assert games[0].moves == games[1].moves


def test_tree_reuse_adds_visits() -> None:
    search = pondertree.UCT(200, trace=False)
    player: Any = read_player("uct:num_simulations=200,reuse=true").start()
    player.new_game(ConnectFour(), 1)
    state = ConnectFour()
    for _ in range(2):
        action = player.choose(state).action
        player.played(state, action)
        state = state.play(action)
    assert player._tree.result().visits.sum() > 0
    player.choose(state)
    assert player._tree.result().visits.sum() > search.run(state).visits.sum()
