"""Commands that fail, or come while a search runs: what is published, and that nothing is lost."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.view import call, session_of, setup_of, wait_until

from pondertree.errors import InvalidActionError, InvalidArgumentError, PondertreeError, UsageError
from pondertree.view.live import build
from pondertree.view.session import Session
from pondertree.view.setup import Setup


def status(session: Session) -> dict[str, Any]:
    assert session.snapshot is not None
    found: dict[str, Any] = session.snapshot.head["status"]
    return found


def shown(session: Session) -> tuple[Any, ...]:
    """Returns the game and its search, as objects."""
    tree = session._live.tree
    return session.position, list(session._history), session._ply, session._settings, session._live, tree


def without_limits(setup: Setup) -> Setup:
    return replace(setup, settings=replace(setup.settings, simulations=None, seconds=None))


class Faulty:
    """A game of two moves, 0 and 1, where `failing` names a method that raises after move 1."""

    num_players, num_actions, is_terminal = 2, 2, False
    failing = ""
    error: type[BaseException] = RuntimeError

    def __init__(self, moves: tuple[int, ...] = ()) -> None:
        self.moves, self.to_play = moves, len(moves) % 2

    def fail(self, method: str) -> None:
        if type(self).failing == method and 1 in self.moves:
            raise type(self).error(f"{method} fails")

    def legal_actions(self) -> list[int]:
        self.fail("legal_actions")
        return [0, 1]

    def play(self, action: int) -> Faulty:
        self.fail("play")
        return Faulty((*self.moves, action))

    def action_to_string(self, action: int) -> str:
        self.fail("action_to_string")
        return "ab"[action]

    def returns(self) -> list[float]:
        return [0.0, 0.0]


FAULTY = "tests.view.test_session_failures:Faulty"


@pytest.fixture(autouse=True)
def sound_game() -> Iterator[None]:
    yield
    Faulty.failing = ""


REFUSED: list[tuple[Callable[[Session], Any], type[PondertreeError]]] = [
    (lambda session: session.move(), UsageError),
    (lambda session: session.play(action=0, reply=True), UsageError),
    (lambda session: session.play(action=7), InvalidActionError),
    (lambda session: session.goto(5), InvalidArgumentError),
    (lambda session: session.goto(-1), InvalidArgumentError),
    (lambda session: session.change_settings({"parameters": {"c_param": -1.0}}), PondertreeError),
    (lambda session: session.change_settings({"exclude": list(range(7))}), PondertreeError),
    (lambda session: session.set_up(fen="nonsense"), PondertreeError),
]


@pytest.mark.parametrize(("command", "error"), REFUSED)
def test_refused_command_changes_nothing_and_the_search_runs_on(
    command: Callable[[Session], Any], error: type[PondertreeError]
) -> None:
    with session_of(without_limits(setup_of("connect4"))) as session:
        call(session, session.start)
        before = shown(session)
        with pytest.raises(error):
            call(session, lambda: command(session))
        assert shown(session) == before
        assert session.is_running
        count = status(session)["simulations"]
        wait_until(lambda: status(session)["simulations"] > count)
        call(session, session.pause)
        assert status(session)["running"] is False


def test_command_that_fails_after_it_stopped_the_search_publishes_that(monkeypatch: pytest.MonkeyPatch) -> None:
    with session_of(without_limits(setup_of("connect4"))) as session:
        call(session, session.start)
        wait_until(lambda: status(session)["running"])

        def fail(*_: object) -> None:
            raise UsageError("no simulation is left")

        monkeypatch.setattr(session._live, "step", fail)
        with pytest.raises(UsageError):
            call(session, session.step)
        assert status(session)["running"] is False


def test_position_that_is_already_shown_ends_the_search_and_publishes_that() -> None:
    with session_of(without_limits(setup_of("connect4"))) as session:
        call(session, session.start)
        wait_until(lambda: status(session)["running"])
        call(session, lambda: session.goto(0))
        assert status(session)["running"] is False


def test_pause_always_publishes() -> None:
    with session_of(setup_of("connect4")) as session:
        before = session.snapshot
        call(session, session.pause)
        assert session.snapshot is not before
        assert status(session)["running"] is False


@pytest.mark.parametrize(
    ("failing", "error"), [("play", RuntimeError), ("play", SystemExit), ("action_to_string", RuntimeError)]
)
def test_failure_of_a_game_in_a_search_publishes_its_end(
    failing: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Faulty, "error", error)
    with session_of(without_limits(setup_of(FAULTY, max_depth=6))) as session:
        call(session, session.start)
        wait_until(lambda: status(session)["running"] and status(session)["simulations"])
        Faulty.failing = failing
        session.submit(lambda: session.change_window(nodes=5_000))
        call(session, lambda: None)
        if failing == "action_to_string":
            # The texts that are shown are kept: a new window needs them again.
            session.submit(lambda: session._live._set_root(session._position.state))
        wait_until(lambda: session.failure)
        call(session, lambda: None)
        assert f"{failing} fails" in session.failure
        assert status(session)["running"] is False


@pytest.mark.parametrize("failing", ["legal_actions", "action_to_string"])
@pytest.mark.parametrize("command", ["play", "goto"])
def test_failure_of_a_game_in_a_command_leaves_the_position(failing: str, command: str) -> None:
    with session_of(setup_of(FAULTY, max_depth=6)) as session:
        call(session, lambda: session.play(action=1))
        call(session, lambda: session.play(action=0))
        call(session, lambda: session.goto(0))
        before = shown(session)
        Faulty.failing = failing
        with pytest.raises((RuntimeError, PondertreeError), match="fails"):
            call(session, lambda: session.play(action=1) if command == "play" else session.goto(2))
        assert shown(session) == before
        Faulty.failing = ""
        call(session, lambda: session.play(action=0))
        assert [action for action, _ in session._history] == [None, 0]


def test_tree_that_cannot_advance_leaves_the_position(monkeypatch: pytest.MonkeyPatch) -> None:
    with session_of(setup_of("connect4")) as session:
        before = shown(session)

        def fail(*_: object, **__: object) -> None:
            raise UsageError("no")

        with monkeypatch.context() as patch:
            patch.setattr(session._live, "advance", fail)
            with pytest.raises(UsageError):
                call(session, lambda: session.play(action=3))
        assert shown(session) == before
        call(session, lambda: session.play(action=3))
        assert session._ply == 1


# A search with a schedule

SIMULATIONS = 100_000
HARMLESS: list[Callable[[Session], Any]] = [
    lambda session: session.goto(9),
    lambda session: session.play(action=9),
    lambda session: session.play(text="nonsense"),
    lambda session: session.start(simulations=None),
    lambda session: session.change_settings({"simulations": 7}),
    lambda session: session.change_settings({"parameters": {"c_parma": 1.0}}),
    lambda session: session.set_up(fen="nonsense"),
    lambda session: session.change_window(nodes=50),
    lambda session: [],
]
#: Whether each of them is refused.
ARE_REFUSED = [True, True, True, True, False, True, True, False, False]


def test_search_with_schedule_runs_as_a_whole_whatever_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = setup_of("connect4", "gumbel", evaluator="playouts", simulations=SIMULATIONS)
    expected = build(setup.algorithms, setup.settings).run(setup.history[-1][1].state)._view.columns()
    with session_of(setup) as session:
        is_within, is_free, run_slice = threading.Event(), threading.Event(), session._live.run_slice

        def hold() -> None:
            is_within.set()
            is_free.wait(30)

        def run_held_slice(must_end: Callable[[], bool]) -> bool:
            """The slice is held at its first report of progress, until every command waits."""
            session.submit(hold)
            return run_slice(must_end)

        monkeypatch.setattr(session._live, "run_slice", run_held_slice)
        call(session, session.start)
        assert is_within.wait(30)
        waiting = [
            session.submit(lambda: session.inspect(0), is_urgent=False),
            session.submit(lambda: session.save(tmp_path / "a.tree")),
        ]
        called = [session.submit(functools.partial(command, session)) for command in HARMLESS]
        seen = session.submit(lambda: session._worker.is_within_slice and not any(each.done() for each in waiting))
        is_free.set()
        assert seen.result(30), "the search is too short for this test"
        assert [isinstance(each.exception(30), PondertreeError) for each in called] == ARE_REFUSED
        assert json.loads(session.position)["settings"]["simulations"] == 7
        for each in waiting:
            each.result(60)
        wait_until(lambda: not session.is_running)
        call(session, lambda: None)
        found = session._live.require_tree().result()._view.columns()
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column, err_msg=name)


@pytest.mark.parametrize("command", ["pause", "play", "goto", "settings", "new", "step"])
def test_search_with_schedule_ends_for_a_command_that_ends_it(command: str) -> None:
    setup = setup_of("connect4", "gumbel", evaluator="playouts", simulations=10**7)
    with session_of(setup) as session:
        commands: dict[str, Callable[[], Any]] = {
            "pause": session.pause,
            "play": lambda: session.play(action=3),
            "goto": lambda: session.goto(0),
            "settings": lambda: session.change_settings({"seed": 3}),
            "new": session.new,
            "step": session.step,
        }
        call(session, session.start)
        call(session, commands[command])
        assert not session.is_running
        assert status(session)["running"] is False
        assert session.failure == ""


def test_cancelled_command_does_not_end_a_search_with_schedule() -> None:
    """A command is cancelled before it is called, or not at all."""
    setup = setup_of("connect4", "gumbel", evaluator="playouts", simulations=10**7)
    with session_of(setup) as session:
        is_free = threading.Event()
        blocked = session.submit(lambda: is_free.wait(30))
        started = session.submit(session.start)
        cancelled = session.submit(session.pause)
        assert cancelled.cancel()
        is_free.set()
        assert blocked.result(30)
        started.result(30)
        call(session, lambda: None)
        assert session.is_running
        call(session, session.pause)
