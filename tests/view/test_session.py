"""A game played on a page: moves, take back, set-up, replies, settings, and failures of a game."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.support.view import call, session_of, setup_of, wait_until

from pondertree import UCT
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, PondertreeError, UsageError
from pondertree.games import Chess, ConnectFour
from pondertree.view.messages import MAX_MESSAGE
from pondertree.view.session import Session


def position(session: Session) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(session.position)
    return message


def status(session: Session) -> dict[str, Any]:
    snapshot = session.snapshot
    assert snapshot is not None
    found: dict[str, Any] = snapshot.head["status"]
    return found


def search(session: Session, simulations: int) -> None:
    call(session, lambda: session.start(simulations=simulations))
    wait_for_end(session)


def wait_for_end(session: Session) -> None:
    wait_until(lambda: not session.is_running)
    call(session, lambda: None)  # after what the worker was doing
    assert not status(session)["running"]


def test_game_is_played_taken_back_and_replayed() -> None:
    with session_of(setup_of("connect4")) as session:
        first = position(session)
        assert (first["ply"], first["to_play"], first["moves"], first["over"]) == (0, 0, [], False)
        for text in ("4", "3", "4"):
            call(session, lambda text=text: session.play(text=text))
        third = position(session)
        assert (third["ply"], third["to_play"]) == (3, 1)
        assert [(move["action"], move["text"], move["player"]) for move in third["moves"]] == [
            (3, "4", 0),
            (2, "3", 1),
            (3, "4", 0),
        ]
        call(session, lambda: session.goto(1))
        back = position(session)
        assert (back["ply"], back["moves"]) == (1, third["moves"])
        call(session, lambda: session.goto(2))
        assert (position(session)["ply"], position(session)["moves"]) == (2, third["moves"])
        call(session, lambda: session.play(action=0))
        changed = position(session)
        assert [move["action"] for move in changed["moves"]] == [3, 2, 0]
        call(session, session.new)
        assert (position(session)["ply"], position(session)["moves"]) == (0, [])
        numbers = [first, third, back, changed, position(session)]
        assert len({message["position"] for message in numbers}) == 5


def test_moves_forward_keep_the_subtree() -> None:
    with session_of(setup_of("connect4")) as session:
        search(session, 3_000)
        moves = {row["action"]: row["visits"] for row in session.snapshot.head["moves"]}  # type: ignore[union-attr]
        call(session, lambda: session.play(action=3))
        assert status(session)["simulations"] == 0
        assert session.snapshot.rows.values[0, 0] == pytest.approx(moves[3], abs=1)  # type: ignore[union-attr]
        call(session, lambda: session.goto(0))
        assert session.snapshot.rows.values[0, 0] == 0  # type: ignore[union-attr]


def test_end_of_the_game_is_shown_and_nothing_can_be_searched() -> None:
    with session_of(setup_of("connect4", moves="1 2 1 2 1 2")) as session:
        call(session, lambda: session.play(text="1"))
        message = position(session)
        assert (message["over"], message["outcome"], message["legal"]) == (True, "X wins.", [])
        assert session.snapshot is not None
        assert len(session.snapshot.rows.ids) == 0
        for command in (session.start, session.move, session.step):
            with pytest.raises(GameOverError):
                call(session, command)
        with pytest.raises(GameOverError):
            call(session, lambda: session.play(text="2"))
        call(session, lambda: session.goto(6))
        assert position(session)["over"] is False
        search(session, 50)


def test_search_replies_with_the_move_of_run() -> None:
    setup = setup_of("connect4", simulations=2_000, seed=5)
    with session_of(setup) as session:
        expected = UCT(num_simulations=2_000, seed=5).run(ConnectFour()).action
        call(session, session.move)
        assert [move["action"] for move in position(session)["moves"]] == [expected]
        call(session, lambda: session.play(action=0, reply=True))
        assert position(session)["ply"] == 3
        evaluations = position(session)["evaluations"]
        assert [entry["ply"] for entry in evaluations] == [0, 2]
        assert all(-1 <= entry["value"] <= 1 for entry in evaluations)


def test_evaluation_of_a_game_is_for_the_first_player() -> None:
    with session_of(setup_of("connect4", moves="1 2 1 2 1")) as session:
        # The first player threatens to win.
        search(session, 2_000)
        value = status(session)["value"]
        (entry,) = position(session)["evaluations"]
        assert entry["ply"] == 5
        assert entry["value"] == pytest.approx(-value)


def test_pause_ends_a_search_at_once_and_a_reply_without_a_move() -> None:
    with session_of(setup_of("connect4", simulations=100_000_000)) as session:
        reply = session.submit(session.move)
        wait_until(lambda: status(session)["simulations"] > 0)
        begun = time.monotonic()
        call(session, session.pause)
        assert time.monotonic() - begun < 5
        assert reply.result(5) is None
        assert position(session)["ply"] == 0
        assert not status(session)["running"]
        before = status(session)["simulations"]
        time.sleep(0.3)
        assert status(session)["simulations"] == before


def test_search_without_limits_goes_on_after_a_move() -> None:
    with session_of(setup_of("connect4")) as session:
        call(session, lambda: session.start(simulations=None))
        wait_until(lambda: status(session)["simulations"] > 1_000)
        call(session, lambda: session.play(text="4"))
        wait_until(lambda: position(session)["ply"] == 1 and status(session)["simulations"] > 1_000)
        assert status(session)["goal"] is None
        call(session, session.pause)


def test_proven_win_without_a_visit_comes_first() -> None:
    with session_of(setup_of("chess", "hybrid", fen="6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1")) as session:
        call(session, session.start)
        wait_until(lambda: not session.is_running)
        call(session, lambda: None)
        assert session.snapshot is not None
        first, *others = session.snapshot.head["moves"]
        assert (first["text"], first["visits"], first["proven"]) == ("Ra8#", 0, 1)
        assert all(move["proven"] != 1 for move in others)


@pytest.mark.parametrize("kind", ["start", "move"])
def test_search_that_cannot_run_a_simulation_says_so(kind: str) -> None:
    with session_of(setup_of("connect4", max_nodes=1)) as session:
        found = []
        for _ in range(2):
            done = call(session, getattr(session, kind))
            wait_until(lambda: not session.is_running)
            assert done is None
            found.append(session.failure)
        assert "the tree is full" in found[0]
        assert found[0] is not found[1], "each is told"
        assert session._ply == 0


def test_solved_position_ends_the_search() -> None:
    with session_of(setup_of("connect4", moves="1 2 1 2 1 3", simulations=None)) as session:
        call(session, session.start)
        wait_for_end(session)
        assert (status(session)["proven"], status(session)["distance"], session.failure) == (1, 1, "")


def test_full_tree_and_early_stop_end_the_search() -> None:
    with session_of(setup_of("connect4", max_nodes=100, early_stop=True, simulations=10**6)) as session:
        call(session, session.start)
        wait_for_end(session)
        assert session.failure == ""


def test_position_is_set_up_by_fen_and_moves() -> None:
    with session_of(setup_of("chess", "hybrid")) as session:
        fen = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"
        call(session, lambda: session.set_up(fen=fen, moves="Ra8"))
        message = position(session)
        assert (message["ply"], message["over"], message["outcome"]) == (1, True, "White wins (checkmate).")
        assert message["fen"] == Chess(fen).play(Chess(fen).parse_action("Ra8")).fen()
        call(session, lambda: session.goto(0))
        assert position(session)["fen"] == fen
        before = session.position
        with pytest.raises(PondertreeError):
            call(session, lambda: session.set_up(fen="nonsense"))
        assert session.position == before
        call(session, lambda: session.set_up(moves="e4 e5"))
        assert [move["text"] for move in position(session)["moves"]] == ["e4", "e5"]


@pytest.mark.parametrize("game", ["connect4", "chess", "othello", "hex:5", "breakthrough", "tic-tac-toe"])
def test_random_games_have_consistent_messages(game: str) -> None:
    """Boards, cells of moves and the game so far, in random games with moves taken back."""
    numbers = random.Random(0)
    with session_of(setup_of(game)) as session:
        for _ in range(25):
            message = position(session)
            assert len(session.position.encode()) <= MAX_MESSAGE
            assert message["board"]["svg"].startswith("<svg")
            box = [float(number) for number in message["board"]["svg"].split('viewBox="')[1].split('"')[0].split()]
            for move in message["legal"]:
                assert len(move["cells"]) == (0 if move["text"] == "pass" else 2 if game in TWO_CELLS else 1)
                for x, y in move["cells"]:
                    assert box[0] < x < box[0] + box[2]
                    assert box[1] < y < box[1] + box[3]
            ends = [tuple(map(tuple, move["cells"])) for move in message["legal"] if move["cells"]]
            assert game == "chess" or len(set(ends)) == len(ends)
            if message["over"]:
                call(session, session.new)
            elif numbers.random() < 0.15 and message["ply"]:
                ply = numbers.randrange(message["ply"])
                call(session, lambda ply=ply: session.goto(ply))
                assert position(session)["ply"] == ply
            else:
                action = numbers.choice(message["legal"])["action"]
                call(session, lambda action=action: session.play(action=action))
                assert position(session)["moves"][message["ply"]]["action"] == action


TWO_CELLS = {"chess", "breakthrough"}


def test_wrong_moves_and_plies_change_nothing() -> None:
    with session_of(setup_of("connect4")) as session:
        before = session.position
        for command, error in (
            (lambda: session.play(action=7), InvalidActionError),
            (lambda: session.play(text="9"), InvalidActionError),
            (lambda: session.play(), InvalidActionError),
            (lambda: session.goto(1), InvalidArgumentError),
            (lambda: session.inspect(5), InvalidArgumentError),
        ):
            with pytest.raises(error):
                call(session, command)
        assert session.position == before


def test_settings_begin_a_new_search_except_for_limits() -> None:
    with session_of(setup_of("connect4")) as session:
        search(session, 500)
        number = position(session)["position"]
        call(session, lambda: session.change_settings({"simulations": 70, "seconds": None}))
        assert position(session)["position"] == number
        assert status(session)["simulations"] == 500
        call(session, lambda: session.change_settings({"parameters": {"c_param": 0.5}}))
        message = position(session)
        assert message["position"] > number
        assert message["settings"]["parameters"] == {"c_param": 0.5}
        assert status(session)["simulations"] == 0
        call(session, session.start)
        wait_for_end(session)
        expected = UCT(c_param=0.5, num_simulations=70, seed=1).run(ConnectFour())
        shown = {row["action"]: row["visits"] for row in session.snapshot.head["moves"]}  # type: ignore[union-attr]
        assert shown == {action: int(expected.visits[action]) for action in shown}
        call(session, lambda: session.change_settings({"preset": "alphazero"}))
        assert position(session)["settings"]["parameters"] == {}
        call(session, lambda: session.change_settings({"seed": None}))
        assert isinstance(position(session)["settings"]["seed"], int)


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "nonsense"},
        {"parameters": {"c_parma": 1.0}},
        {"parameters": {"c_param": -1.0}},
        {"parameters": {"max_depth": "many"}},
        {"parameters": {"evaluator": "nonsense"}},
        {"parameters": {"evaluator": None}},
        {"exclude": [0, 1, 2, 3, 4, 5, 6]},
        {"force": [99]},
    ],
)
def test_wrong_settings_are_refused_and_the_search_stays(settings: dict[str, Any]) -> None:
    with session_of(setup_of("connect4")) as session:
        search(session, 100)
        before = session.position
        with pytest.raises(PondertreeError):
            call(session, lambda: session.change_settings(settings))
        assert session.position == before
        search(session, 100)
        assert status(session)["simulations"] == 200


def test_excluded_and_forced_moves_hold_until_the_next_move() -> None:
    with session_of(setup_of("connect4")) as session:
        call(session, lambda: session.change_settings({"exclude": [3]}))
        search(session, 300)
        shown = {row["action"] for row in session.snapshot.head["moves"]}  # type: ignore[union-attr]
        assert shown == {0, 1, 2, 4, 5, 6}
        call(session, lambda: session.change_settings({"exclude": [], "force": [2, 5]}))
        search(session, 300)
        assert {row["action"] for row in session.snapshot.head["moves"]} == {2, 5}  # type: ignore[union-attr]
        call(session, lambda: session.play(action=2))
        assert position(session)["settings"]["force"] == position(session)["settings"]["exclude"] == []


def test_search_with_schedule_needs_simulations_and_runs_as_a_whole() -> None:
    setup = setup_of("connect4", "gumbel", evaluator="playouts", simulations=400)
    with session_of(setup) as session:
        with pytest.raises(UsageError, match="number of simulations"):
            call(session, lambda: session.start(simulations=None))
        call(session, session.start)
        session.submit(lambda: session.change_window(nodes=50), is_urgent=False).result(30)
        wait_for_end(session)
        assert status(session)["simulations"] == 400


def test_move_without_limits_is_refused() -> None:
    setup = setup_of("connect4")
    setup = replace(setup, settings=replace(setup.settings, simulations=None))
    with session_of(setup) as session, pytest.raises(UsageError, match="limit"):
        call(session, session.move)


class Broken:
    """A game whose third move raises."""

    num_players, num_actions, is_terminal = 2, 2, False

    def __init__(self, depth: int = 0) -> None:
        self.depth, self.to_play = depth, depth % 2

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Broken:
        if self.depth == 2:
            raise RuntimeError("the dog ate the move")
        return Broken(self.depth + 1)

    def returns(self) -> list[float]:
        return [0.0, 0.0]


def test_exception_of_a_game_is_reported_and_the_session_lives() -> None:
    with session_of(setup_of("tests.view.test_session:Broken")) as session:
        call(session, session.start)
        wait_until(lambda: session.failure)
        assert "the dog ate the move" in session.failure
        assert not session.is_running
        reply = session.submit(session.move)
        assert reply.result(30) is None
        assert position(session)["ply"] == 0


def test_game_in_python_shows_its_text_and_has_no_picture() -> None:
    with session_of(setup_of("examples.games.nim:Nim")) as session:
        message = position(session)
        text = str(setup_of("examples.games.nim:Nim").history[0][1].state)
        assert message["board"] == {"svg": None, "text": text, "flip": 0, "cell": 20}
        assert {move["text"] for move in message["legal"]} >= {"a-1", "c-5"}
        call(session, lambda: session.play(text="c-4"))
        search(session, 500)
        assert status(session)["value"] < 0


def test_long_game_is_sent_in_part() -> None:
    class_name = "tests.support.cli_search:Endless"
    with session_of(setup_of(class_name, max_depth=10)) as session:

        def play_many() -> None:
            for _ in range(1500):
                session._history.append((0, session._history[-1][1].play(0)))
            session._evaluations = dict.fromkeys(range(1500), 0.25)
            session._begin_search(session._history, 1500)

        call(session, play_many)
        message = position(session)
        assert len(session.position) <= MAX_MESSAGE
        assert message["ply"] == 1500
        assert message["first"] <= 1500 <= message["first"] + len(message["moves"])
        assert 100 < len(message["evaluations"]) <= 400
