"""Games with chance on a page: outcomes are drawn or chosen, and chance nodes of the tree are told from decisions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.chance_games import Race
from tests.support.view import call, session_of, setup_of, wait_until

from pondertree import CHANCE
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.games import Backgammon, Pig, TwentyFortyEight
from pondertree.view.hub import hello
from pondertree.view.parameters import parameters_of
from pondertree.view.session import Session
from pondertree.view.solver import solve

GAMES = {"pig": Pig, "backgammon": Backgammon, "2048": TwentyFortyEight}


def position(session: Session) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(session.position)
    return message


def head(session: Session) -> dict[str, Any]:
    assert session.snapshot is not None
    return dict(session.snapshot.head)


def wait_for_end(session: Session) -> None:
    """Waits until the search has ended and is shown."""
    wait_until(lambda: not session.is_running)
    call(session, lambda: None)


def replayed(game: Any, moves: list[dict[str, Any]]) -> Any:
    """Returns the state after the moves of a message, which names their players."""
    state = game()
    for move in moves:
        assert state.to_play == move["player"]
        state = state.play(move["action"])
    return state


@pytest.mark.parametrize("name", GAMES)
def test_search_plays_a_game_to_its_end(name: str) -> None:
    played = []
    for _ in range(2):
        with session_of(setup_of(name, simulations=2)) as session:
            while not position(session)["over"] and position(session)["ply"] < 600:
                call(session, session.move)
            end = session.shown_state()[1]
            played.append([turn[0] for turn in session._history[1:]])
            assert end.is_terminal or name == "2048"
            assert call(session, session.pause) is None
            assert not head(session)["status"]["running"]
    assert played[0] == played[1], "the outcomes are those of the seed"
    states = [GAMES[name]()]
    for action in played[0]:
        states.append(states[-1].play(action))
    assert any(state.to_play == CHANCE for state in states)
    assert states[-1] == end


def test_outcome_is_chosen_after_a_move_was_taken_back() -> None:
    with session_of(setup_of("pig", simulations=100)) as session:
        call(session, lambda: session.play(text="roll"))
        before = position(session)
        assert before["ply"] == 2
        assert before["moves"][1]["player"] == CHANCE
        call(session, lambda: session.goto(1))
        at_chance = position(session)
        assert (at_chance["to_play"], at_chance["over"]) == (CHANCE, False)
        assert [move["action"] for move in at_chance["legal"]] == Pig().play(0).legal_actions()
        rows = {row["action"]: row for row in head(session)["moves"]}
        assert {action: row["prior"] for action, row in rows.items()} == pytest.approx(
            dict.fromkeys(rows, 1 / 6), abs=1e-6
        )
        for command in (session.start, session.step):
            with pytest.raises(UsageError, match="chance is to move"):
                call(session, command)
        other = next(action for action in rows if action != before["moves"][1]["action"])
        call(session, lambda: session.play(action=other))
        after = position(session)
        assert [move["action"] for move in after["moves"]] == [before["moves"][0]["action"], other]
        call(session, session.move)
        assert position(session)["ply"] > 2
        call(session, lambda: session.goto(1))
        assert call(session, session.move) is None
        assert position(session)["ply"] == 2, "at a chance node, a move is an outcome"
        assert replayed(Pig, position(session)["moves"]) == session.shown_state()[1]


def test_search_does_not_reply_while_the_same_player_is_to_move() -> None:
    with session_of(setup_of("pig", simulations=50, seed=1)) as session:
        call(session, lambda: session.play(text="roll", reply=True))
        first = [(move["player"], move["action"]) for move in position(session)["moves"]]
        assert (first[0], first[1][0], first[1][1] > 1, len(first)) == ((0, 0), CHANCE, True, 2)
        assert position(session)["to_play"] == 0, "a roll from 2 to 6 does not end the turn"
        call(session, lambda: session.play(text="hold", reply=True))
        assert [move["player"] for move in position(session)["moves"]][:4] == [0, CHANCE, 0, 1]


def test_subtree_of_the_outcome_is_kept() -> None:
    with session_of(setup_of("pig", simulations=3_000)) as session:
        call(session, lambda: session.start(simulations=3_000))
        wait_for_end(session)
        root = session._live.require_tree().result().root
        call(session, lambda: session.play(text="roll"))
        first, outcome = (move["action"] for move in position(session)["moves"])
        visits = root.children[first].children[outcome].visit_count
        assert session.snapshot is not None
        assert session.snapshot.rows.values[0, 0] == pytest.approx(visits, abs=1)
        assert visits > 50


def test_outcomes_of_the_tree_are_shown_with_visits_and_probabilities() -> None:
    with session_of(setup_of("pig", simulations=2_000)) as session:
        call(session, lambda: session.start(simulations=2_000))
        wait_for_end(session)
        assert session.snapshot is not None
        rows = session.snapshot.rows
        outcomes = [row for row, player in enumerate(rows.players.tolist()) if player == CHANCE]
        assert len(outcomes) >= 6
        parents = {int(rows.parents[row]) for row in outcomes}
        chance = next(number for number in parents if rows.parents[rows.ids.tolist().index(number)] == 0)
        below = [row for row in outcomes if rows.parents[row] == chance]
        assert [rows.priors[row] for row in below] == pytest.approx([1 / 6] * 6)
        visits = [rows.values[row, 0] for row in below]
        assert max(visits) - min(visits) <= 1, "balanced outcomes"
        details = call(session, lambda: session.inspect(chance))
        assert details["node"]["to_play"] == CHANCE
        assert {row["action"]: row["visits"] for row in details["moves"]} == {
            int(rows.actions[row]): rows.values[row, 0] for row in below
        }
        assert all(row["u"] is None and row["score"] is None for row in details["moves"])
        step = call(session, session.step)
        assert CHANCE in [choice["player"] for choice in step["choices"]]


def test_game_may_begin_at_a_chance_node() -> None:
    with session_of(setup_of("tests.view.test_chance:Roll", simulations=50)) as session:
        assert position(session)["to_play"] == CHANCE
        call(session, lambda: session.change_settings({"seed": 3}))
        call(session, session.new)
        assert call(session, session.move) is None
        assert (position(session)["to_play"], position(session)["ply"]) == (1, 1)
        call(session, lambda: session.start(simulations=50))
        wait_for_end(session)
        assert head(session)["status"]["simulations"] == 50


class Roll(Race):
    """The race, which begins with a roll."""

    def __init__(self, *arguments: object, **fields: object) -> None:
        super().__init__(*arguments, **(fields or {"rolling": True}))  # type: ignore[arg-type]


def test_games_with_chance_have_no_exact_solver() -> None:
    assert json.loads(hello(setup_of("connect4"), ""))["game"]["solver"]
    game = json.loads(hello(setup_of("pig"), ""))["game"]
    assert (game["chance"], game["solver"]) == (True, False)
    with pytest.raises(InvalidArgumentError, match="games with chance nodes cannot be solved"):
        solve(Pig())


@pytest.mark.parametrize("preset", ["uct", "alphazero"])
def test_another_preset_has_the_parameters_of_the_game(preset: str) -> None:
    setup = setup_of("2048", "gumbel", simulations=20)
    with session_of(setup) as session:
        call(session, lambda: session.change_settings({"preset": preset}))
        assert session._settings.parameters == {"normalize": "tree"}
        assert session._live._search.normalize == "tree"
    forms = {each.name: {form["name"]: form["default"] for form in parameters_of(each)} for each in setup.algorithms}
    assert forms[preset]["normalize"] == "tree"
    other = next(each for each in setup_of("pig").algorithms if each.name == preset)
    assert {form["name"]: form["default"] for form in parameters_of(other)}["normalize"] == "none"
