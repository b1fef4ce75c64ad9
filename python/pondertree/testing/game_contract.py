"""The contract of game states, and its checker (`pondertree.testing.check_game`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, NoReturn

import numpy as np

from pondertree._core import LARGEST_REWARD
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.game import (
    CHANCE,
    GameInfo,
    action_list,
    check_actions,
    check_player,
    check_rewards,
    describe,
    player_index,
    player_numbers,
)
from pondertree.games.batch_game import BatchState
from pondertree.games.chance import LARGEST_OUTCOME, check_same_outcomes, draw_outcome, is_chance, read_outcomes
from pondertree.games.playout import own_playout
from pondertree.games.purity import ADVICE
from pondertree.games.state_attributes import attributes, drawn_from, generator_states, is_same, parts
from pondertree.games.symmetry import checked_symmetries
from pondertree.random import Random
from pondertree.testing.batch_contract import row_violation
from pondertree.validation import shown

#: The rules by the names that messages use.
RULES = {
    "state": "factory() and play() give states: all methods and properties of pondertree.Game are there",
    "constants": "num_actions, num_players, zero_sum and whether there are rewards() are the same in every state",
    "answers": "no question about a state raises an exception",
    "to_play": "the player to move is an int from 0 to num_players - 1, or pondertree.CHANCE at a chance node",
    "chance": "chance_outcomes() of a chance node are ints below 65536, each once, with positive probabilities that "
    "sum to 1; legal_actions() lists the same outcomes",
    "is_terminal": "is_terminal is a property that is True or False",
    "legal_actions": "legal actions are a sequence of ints from 0 to num_actions - 1, each once; empty at an end only",
    "returns": "a finished game has one finite number per player, in [-1, 1] unless the game has rewards()",
    "zero_sum": "where zero_sum holds, the results (and rewards) of the players sum to 0",
    "rewards": f"rewards() has one finite number per player, at most {LARGEST_REWARD:.0e} in size",
    "observation": "observation() is a finite float32 array of one shape, a new one for each state",
    "notation": "texts of the legal actions differ, and parse_action(action_to_string(a)) is a",
    "play": "play(a) of a legal action gives a new state",
    "refusal": "play raises an exception for an action that is not legal, and at an end for any",
    "mutation": "play changes nothing in the state it is called on, nor in earlier ones",
    "determinism": "the same question gives the same answer, and the same actions give the same state",
    "equality": "where a class defines ==, the same actions give equal states, with equal hashes if it has any",
    "randomness": "states carry no random generator that play draws from: copies of a state would foresee its numbers",
    "playout": "simulateRandomPlayout(player, max_depth) gives a number, in [-1, 1] unless the game has rewards()",
    "symmetries": "symmetries() are pairs of permutations, of cells and of actions, that commute with play",
    "rows": "methods of a game of arrays treat each row as if it were alone, and do not change their arguments",
    "end": "games end",
}

#: Repetitions of each move: two equal dice rolls are likely, four are not.
REPETITIONS = 3


class GameChecker:
    """Checks the states of one game; holds the properties of the game and the state in question."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory
        self.shape: tuple[int, ...] | None = None
        self.unfinished = 0
        self.most_legal = 0
        self.state: Any = None
        self.seen: tuple[Any, Any, int] | None = None
        """The last state whose observation was read, the array, and a hash of its content."""
        self.path: list[int] = []
        start = self.ask("answers", "factory()", factory)
        self.info = self.describe(start)
        self.has_observation = callable(getattr(start, "observation", None))
        self.has_playout = callable(getattr(start, "simulateRandomPlayout", None))
        self.writes = callable(getattr(start, "action_to_string", None))
        self.reads = self.writes and callable(getattr(start, "parse_action", None))
        # Methods inherited from `object` compare addresses.
        kind: Any = type(start)
        self.compares = kind.__eq__ is not object.__eq__
        self.hashes = self.compares and kind.__hash__ is not None
        self.has_symmetries = self.has_observation and callable(getattr(start, "symmetries", None))
        self.draws = kind.__repr__ is not object.__repr__

    def play_game(self, random: Random, max_moves: int) -> int:
        """Plays one random game; returns the number of its moves."""
        self.path = []
        state = self.ask("answers", "factory()", self.factory)
        self.check_kind(state)
        states, readings = [state], [self.first_look(state)]
        while not readings[-1]["is_terminal"] and len(self.path) < max_moves:
            if self.has_playout and readings[-1]["to_play"] != CHANCE:
                self.check_playout(state, readings[-1], max_moves)
            before, generators = attributes(state), generator_states(state)
            legal = readings[-1]["legal_actions"]
            self.check_refusals(state, legal, random)
            is_drawn = readings[-1]["to_play"] == CHANCE
            action = draw_outcome(state, random) if is_drawn else legal[random.choose(len(legal))]
            after = self.ask("play", f"play({action}), a legal action,", state.play, action)
            if after is None:
                self.fail("play", f"play({action}) returned None: it must return the new state")
            self.check_unchanged(state, readings[-1], before, f"play({action})")
            self.path.append(action)
            self.check_kind(after)
            states.append(after)
            readings.append(self.first_look(after))
            self.check_repetitions(state, action, readings[-1])
            self.check_generators(generators, after)
            state = after
        if readings[-1]["is_terminal"]:
            before = attributes(state)
            self.check_refusals(state, [], random)
            self.check_unchanged(state, readings[-1], before, "a refused play")
            # If random moves end the game, its own playout must end without a limit.
            if self.has_playout and not readings[0]["is_terminal"] and readings[0]["to_play"] != CHANCE:
                path, self.path = self.path, []
                self.check_playout(states[0], readings[0], None)
                self.path = path
        else:
            self.unfinished += 1
        self.replay(states, readings)
        if self.has_symmetries:
            self.check_symmetries(states)
        if isinstance(states[0], BatchState) and (wrong := row_violation(states, self.path)) is not None:
            self.fail("rows", wrong)
        return len(self.path)

    def describe(self, state: Any) -> GameInfo:
        self.state = state
        try:
            return describe(state)
        except (InvalidArgumentError, GameContractError) as error:
            self.fail("state", str(error))

    def check_kind(self, state: Any) -> None:
        info = self.describe(state)
        for name in ("num_actions", "num_players", "zero_sum", "has_rewards"):
            first, now = getattr(self.info, name), getattr(info, name)
            if first != now:
                self.fail("constants", f"{name} was {first} and is {now} here")

    def first_look(self, state: Any) -> dict[str, Any]:
        """Reads all properties of a new state, twice."""
        readings = self.read(state)
        if readings["to_play"] != CHANCE:
            self.most_legal = max(self.most_legal, len(readings["legal_actions"]))
        if self.writes and readings["to_play"] != CHANCE:
            self.check_notation(state, readings["legal_actions"])
        for name, again in self.read(state).items():
            if readings[name] != again:
                self.fail("determinism", f"{name} was {readings[name]!r}, and {again!r} when read again")
        return readings

    def read(self, state: Any) -> dict[str, Any]:
        """Reads and checks all properties of a state; the values are comparable by ==."""
        self.state = state
        terminal = self.ask("answers", "is_terminal", lambda: state.is_terminal)
        if not isinstance(terminal, (bool, np.bool_)):
            hint = ": make it a property" if callable(terminal) else ""
            self.fail("is_terminal", f"is_terminal is {terminal!r}, not True or False{hint}")
        readings: dict[str, Any] = {"is_terminal": bool(terminal), "to_play": self.read_to_play(state, bool(terminal))}
        is_chance = not terminal and readings["to_play"] == CHANCE
        # Violations of the outcomes are reported as such, before those of the list that repeats them.
        if is_chance:
            readings["chance_outcomes()"] = self.read_outcomes(state)
        readings["legal_actions"] = self.read_legal(state, bool(terminal), is_chance)
        if is_chance:
            with self.under("chance"):
                outcomes = [outcome for outcome, _ in readings["chance_outcomes()"]]
                check_same_outcomes(state, outcomes, readings["legal_actions"])
        if self.info.has_rewards:
            readings["rewards()"] = self.read_numbers("rewards", self.ask("answers", "rewards()", state.rewards))
        if terminal:
            readings["returns()"] = self.read_numbers("returns", self.ask("answers", "returns()", state.returns))
        else:
            # Their values before the end are unspecified, but must not change.
            readings["returns()"] = _outcome(state.returns)
        # Evaluators never see a chance node.
        if self.has_observation and not is_chance:
            readings["observation()"] = self.read_observation(self.ask("answers", "observation()", state.observation))
        if self.draws:
            readings["repr"] = self.ask("answers", "repr", lambda: repr(state))
        return readings

    def read_to_play(self, state: Any, terminal: bool) -> int:
        given = self.ask("answers", "to_play", lambda: state.to_play)
        with self.under("to_play"):
            player = player_index(given, self.info)
            # It is unspecified at an end; outcomes are read where chance moves.
            if not terminal and player != CHANCE:
                check_player(player, self.info.num_players, self.info.name)
        return player

    def read_outcomes(self, state: Any) -> list[tuple[int, float]]:
        """Reads the outcomes of a chance node, with their probabilities."""
        with self.under("chance"):
            actions, probabilities = read_outcomes(state)
        return list(zip(actions, probabilities, strict=True))

    def read_legal(self, state: Any, terminal: bool, is_chance: bool = False) -> list[int]:
        given = self.ask("answers", "legal_actions()", state.legal_actions)
        with self.under("legal_actions"):
            legal = action_list(given, self.info)
            check_actions(legal, LARGEST_OUTCOME + 1 if is_chance else self.info.num_actions, self.info.name)
        if any(isinstance(action, (bool, np.bool_)) for action in given):
            self.fail("legal_actions", f"legal_actions() has True or False in it, like a mask: {shown(given)}")
        if len(set(legal)) != len(legal):
            twice = sorted({action for action in legal if legal.count(action) > 1})
            self.fail("legal_actions", f"legal_actions() has {twice[0]} more than once: {shown(legal)}")
        if terminal and legal:
            self.fail("legal_actions", f"the game is over, yet legal_actions() is {shown(legal)}: it must be empty")
        if not terminal and not legal:
            self.fail("legal_actions", "legal_actions() is empty although the game is not over")
        return legal

    def read_numbers(self, name: str, given: Any) -> tuple[float, ...]:
        """Reads the result of `returns()` at an end, or of `rewards()`."""
        with self.under(name):
            numbers = player_numbers(given, self.info, f"{name}()")
            if name == "rewards":
                check_rewards(numbers, self.info)
        if not all(math.isfinite(number) for number in numbers):
            self.fail(name, f"{name}() is {numbers}: numbers must be finite")
        if name == "returns" and not self.info.has_rewards and not all(-1.0 <= number <= 1.0 for number in numbers):
            self.fail(name, f"returns() is {numbers}: results must be in [-1, 1]")
        # With rewards, `returns` is ignored.
        counts = name == "rewards" or not self.info.has_rewards
        if counts and self.info.zero_sum and abs(math.fsum(numbers)) > 1e-9:
            self.fail("zero_sum", f"{name}() is {numbers}, which sums to {math.fsum(numbers)}: zero_sum says it is 0")
        return numbers

    def read_observation(self, given: Any) -> tuple[tuple[int, ...], int]:
        if not isinstance(given, np.ndarray) or given.dtype != np.float32:
            kind = f"an array of {given.dtype}" if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
            self.fail("observation", f"observation() is {kind}: it must be a NumPy array of float32")
        if self.shape is None:
            self.shape = given.shape
        if given.shape != self.shape:
            self.fail("observation", f"observation() has the shape {given.shape} here and had {self.shape} before")
        if not np.isfinite(given).all():
            self.fail("observation", "observation() has numbers that are not finite")
        held = hash(given.tobytes())
        if self.seen is not None:
            state, array, before = self.seen
            if state is not self.state and hash(array.tobytes()) != before:
                self.fail(
                    "observation", "observation() changed the array that it gave in another state: give a new one"
                )
        self.seen = self.state, given, held
        return given.shape, held

    def check_notation(self, state: Any, legal: list[int]) -> None:
        names: dict[str, int] = {}
        for action in legal:
            text = self.ask("notation", f"action_to_string({action})", state.action_to_string, action)
            if not isinstance(text, str) or not text:
                self.fail("notation", f"action_to_string({action}) is {text!r}, not a text")
            if text in names:
                self.fail("notation", f"{names[text]} and {action} are both written {text!r}")
            names[text] = action
            if self.reads:
                back = self.ask("notation", f"parse_action({text!r})", state.parse_action, text)
                if back != action:
                    self.fail("notation", f"parse_action({text!r}) is {back!r}, but {action} is written so")

    def check_refusals(self, state: Any, legal: list[int], random: Random) -> None:
        """Tries illegal actions, which `play` must refuse: out of range on both sides, and one in range."""
        self.state = state
        count = self.info.num_actions
        # Python lists accept -1 as an index, so it is tried in every state.
        tried = [-1, next(action for action in itertools.count(count) if action not in legal)]
        taken = set(legal)
        drawn = (random.below(count) for _ in range(8))
        inside = next((action for action in drawn if action not in taken), None)
        if inside is not None:
            tried.insert(0, inside)
        for action in tried:
            try:
                state.play(action)
            except Exception:
                continue
            why = "the action is not legal here" if legal else "the game is over"
            self.fail("refusal", f"play({action}) raised no exception, but {why}")

    def check_repetitions(self, state: Any, action: int, readings: dict[str, Any]) -> None:
        """Repeats an action and compares the states."""
        for _ in range(REPETITIONS - 1):
            again = self.ask("determinism", f"play({action}), played again,", state.play, action)
            self.compare_replayed(again, readings)

    def check_playout(self, state: Any, readings: dict[str, Any], max_depth: int | None) -> None:
        """Runs the game's own playout, as a search does."""
        self.state = state
        before = attributes(state)
        for player in range(self.info.num_players):
            try:
                own_playout(state, player, max_depth)
            except Exception as error:
                call = f"simulateRandomPlayout({player}, {max_depth})"
                text = str(error)
                self.fail("playout", text if text.startswith(call) else f"{call} raised {type(error).__name__}: {text}")
        self.check_unchanged(state, readings, before, "simulateRandomPlayout")

    def check_generators(self, before: dict[str, Any], after: Any) -> None:
        """Compares the random generators of two states before and after a move."""
        for place in drawn_from(before, generator_states(after)):
            self.fail(
                "randomness",
                f"play({self.path[-1]}) drew from the random generator in {place!r}: a search would foresee its "
                f"numbers. {ADVICE}",
            )

    def check_unchanged(self, state: Any, readings: dict[str, Any], before: dict[str, Any], what: str) -> None:
        for name, now in self.read_again(state).items():
            if readings[name] != now:
                self.fail("mutation", f"{what} changed {name} of the state itself: {readings[name]!r} became {now!r}")
        after = attributes(state)
        for name, was in before.items():
            if not is_same(was, after.get(name)):
                self.fail("mutation", f"{what} changed the attribute {name!r} of the state it was called on")

    def read_again(self, state: Any) -> dict[str, Any]:
        """Reads the properties after an operation; a new violation is a mutation."""
        try:
            return self.read(state)
        except GameContractError as error:
            self.fail("mutation", f"the state changed by being played on: {str(error).splitlines()[0]}")

    def replay(self, states: list[Any], readings: list[dict[str, Any]]) -> None:
        """Replays the game. The first states must be unchanged, and equal to the new ones."""
        path, self.path = self.path, []
        repeat = states[0]
        for ply, (state, known) in enumerate(zip(states, readings, strict=True)):
            if ply:
                repeat = self.ask(
                    "determinism", f"play({path[ply - 1]}), for the second time,", repeat.play, path[ply - 1]
                )
                self.path.append(path[ply - 1])
            for name, now in self.read_again(state).items():
                if known[name] != now:
                    self.fail("mutation", f"later moves changed {name}: {known[name]!r} became {now!r}")
            self.compare_replayed(repeat, known)
            if self.compares:
                self.check_equal(state, repeat)

    def check_symmetries(self, states: list[Any]) -> None:
        """Compares a game with its images under the symmetries that leave the start unchanged."""
        path = self.path
        self.state = start = states[0]
        with self.under("symmetries", InvalidArgumentError):
            symmetries = checked_symmetries(self.ask("symmetries", "symmetries()", start.symmetries))
        # Outcomes of chance have no images: only the moves before the first one are compared.
        drawn = next((ply for ply, state in enumerate(states) if is_chance(state)), None)
        states = states[:drawn]
        for number, (cells, actions) in enumerate(symmetries):
            self.state, self.path = start, []
            if actions.size != self.info.num_actions or start.observation().size % cells.size:
                self.fail(
                    "symmetries",
                    f"symmetries()[{number}] permutes {cells.size} cells and {actions.size} actions; "
                    f"observations have the shape {self.shape}, and there are {self.info.num_actions} actions",
                )
            boards = [state.observation().reshape(-1, cells.size)[:, cells] for state in states]
            for ply, (state, board) in enumerate(zip(states, boards, strict=True)):
                if ply:
                    self.path.append(int(actions[path[ply - 1]]))
                    self.state = self.ask("symmetries", f"play({self.path[-1]})", self.state.play, self.path[-1])
                legal = sorted(int(actions[action]) for action in state.legal_actions())
                same = legal == sorted(self.state.legal_actions())
                if not same or not np.array_equal(board.ravel(), self.state.observation().ravel()):
                    if not ply:
                        break
                    self.fail("symmetries", f"symmetries()[{number}] of the game {path[:ply]} is not this game")
        self.path = path

    def compare_replayed(self, repeat: Any, known: dict[str, Any]) -> None:
        """Compares a state with the properties of the first result of the same actions."""
        for name, now in self.read_again(repeat).items():
            # The default repr of a part contains its address.
            if known[name] != now and name != "repr":
                self.fail(
                    "determinism",
                    f"{name} was {known[name]!r}, and {now!r} after the same actions again. {ADVICE}",
                )

    def check_equal(self, state: Any, repeat: Any) -> None:
        same = self.compare("==", lambda: bool(state == repeat) and not bool(state != repeat))
        if not same:
            self.fail("equality", f"the same actions gave a state that is not equal (==): {shown(repeat, 1000)}")
        if self.hashes and self.compare("hash", lambda: hash(state)) != hash(repeat):
            self.fail("equality", "two states are equal but have different hashes")

    def compare(self, what: str, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception as error:
            arrays = is_dataclass(self.state) and any(isinstance(value, np.ndarray) for _, value in parts(self.state))
            hint = " (use @dataclass(eq=False) for states that hold NumPy arrays)" if arrays else ""
            self.fail("equality", f"{what} raised {type(error).__name__}: {error}{hint}", error)

    @contextmanager
    def under(self, rule: str, kind: type[Exception] = GameContractError) -> Iterator[None]:
        """Reports violations that other checks find, under a rule."""
        try:
            yield
        except kind as error:
            self.fail(rule, str(error))

    def ask(self, rule: str, what: str, question: Callable[..., Any], *arguments: Any) -> Any:
        """Calls the game; an exception of the game violates `rule`."""
        try:
            return question(*arguments)
        except Exception as error:
            self.fail(rule, f"{what} raised {type(error).__name__}: {error}", error)

    def fail(self, rule: str, what: str, cause: Exception | None = None) -> NoReturn:
        path = str(self.path)
        if rule == "end" and len(self.path) > 10:  # the full path of an endless game is no help
            first, last = (", ".join(map(str, part)) for part in (self.path[:5], self.path[-5:]))
            path = f"[{first}, ..., {last}]"
        where = f"  state: {shown(self.state, 1000)}\n  reached by the actions: {path}"
        raise GameContractError(f"broken rule {rule!r} ({RULES[rule]}): {what}\n{where}") from cause


def _outcome(question: Callable[[], Any]) -> str:
    """Returns a property without a rule in comparable form."""
    try:
        return repr(question())
    except Exception as error:
        return type(error).__name__
