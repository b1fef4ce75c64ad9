"""`pondertree play`: a game at the terminal between users and the search."""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import textwrap
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pondertree.cli.algorithms import MAX_LEVEL, NAMED_LEVELS, Configuration, Level, configure, level
from pondertree.cli.arguments import Commands, add_command, add_effort, shell_line
from pondertree.cli.position import Position, join, read_position
from pondertree.cli.search_report import Report, count_text, fit
from pondertree.cli.searcher import EXIT_INTERRUPTED, Searcher, run_search
from pondertree.errors import GameContractError, GameOverError, InvalidActionError, InvalidArgumentError
from pondertree.game import CHANCE, is_over, join_moves
from pondertree.games.board_svg import piece_colours
from pondertree.games.chance import draw_outcome
from pondertree.random import OUTCOME, Random

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = """\
  pondertree play connect4 --level 3
  pondertree play chess --side black --level beginner
  pondertree play chess --seconds 5 --moves "e4 e5"
  pondertree play othello --side none
  pondertree play connect4 --player runs/connect4
  pondertree play mygames:ThreeKingdoms --side 2

While you play, type help for the commands."""

HELP = """\
a move   {example}
moves    list the legal moves
hint     show what the search would play at full strength
undo     take back your last move, and the answers to it
resign   give the game up
quit     stop here; the command that continues the game is printed
help     this list
A move with the name of a command is the move; :quit is always the command."""

#: Text width of messages.
WIDTH = 80
#: Maximum moves of a game without users, which no prompt interrupts.
MAX_MOVES = 10_000


class Stopped(Exception):  # noqa: N818 (not an error)
    """The user has quit."""


class Resigned(Exception):  # noqa: N818 (not an error)
    """The user has resigned."""


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree play`."""
    parser = add_command(commands, "play", "Play a game against the search.", EXAMPLES, run)
    parser.add_argument(
        "--side",
        default="first",
        metavar="SIDE",
        help="your side: first (default), second, a name such as black, a number from 1, or several as in 1,3; "
        "both or all: users play each other; none: the search plays itself",
    )
    effort = add_effort(parser, " per move")
    named = ", ".join(f"{name} = {number}" for name, number in NAMED_LEVELS.items())
    effort.add_argument(
        "--level",
        metavar="L",
        type=level,
        help=f"playing strength, from 1 to {MAX_LEVEL}, or a name: {named} (default: {MAX_LEVEL})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit status."""
    from pondertree.cli import output

    position = read_position(arguments.game, arguments.moves, arguments.fen)
    if is_over(position.state):
        raise GameOverError(f"the game is over in this position. {position.outcome()}")
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    outcomes = Random(seed, OUTCOME)
    position, drawn = draw_outcomes(position, outcomes)
    users = read_side(arguments.side, position)
    chosen = configure(position, arguments)
    session = GameSession(
        console=output.make_console(),
        engine=chosen.start(position, seed, arguments.threads),
        chosen=chosen,
        users=users,
        level=arguments.level or Level(MAX_LEVEL),
        options=options_of(arguments),
        outcomes=outcomes,
        drawn=drawn,
    )
    return session.play(arguments.fen)


def draw_outcomes(position: Position, outcomes: Random) -> tuple[Position, list[str]]:
    """Returns the position after drawing outcomes up to a decision, and their texts."""
    drawn = []
    while not is_over(position.state) and position.state.to_play == CHANCE:
        outcome = draw_outcome(position.state, outcomes)
        drawn.append(position.write(outcome))
        position = position.play(outcome)
    if drawn and is_over(position.state):
        raise GameOverError(f"the game is over after the outcome {join_moves(drawn)}. {position.outcome()}")
    return position, drawn


def read_side(text: str, position: Position) -> tuple[int, ...]:
    """Returns the players that are users, from 0."""
    names = position.players
    count = len(names)
    sides: dict[str, tuple[int, ...]] = {"none": (), "both": tuple(range(count)), "all": tuple(range(count))}
    sides |= {name.lower(): (player,) for player, name in enumerate(names)}
    sides |= {str(player + 1): (player,) for player in range(count)}
    sides |= dict(list({"first": (0,), "second": (1,)}.items())[:count])
    colours = piece_colours(type(position.state)) or ()
    sides |= {colour: (player,) for player, colour in enumerate(colours)}
    users: set[int] = set()
    for part in text.lower().split(","):
        if part.strip() not in sides:
            known = "first, second, both" if count == 2 else "all"
            numbers = "1" if count == 1 else f"1 to {count}"
            raise InvalidArgumentError(
                f"--side: invalid choice: {text!r} (choose {known}, none, {numbers}, {', '.join([*names, *colours])})"
            )
        users.update(sides[part.strip()])
    return tuple(sorted(users))


def options_of(arguments: argparse.Namespace) -> list[str]:
    """Returns the options other than the position, as words of a command line."""
    parts = ["--side", arguments.side]
    if arguments.algorithm != "auto":
        parts += ["--algorithm", arguments.algorithm]
    for name in ("player", "simulations", "seconds", "max_depth", "seed"):
        given = getattr(arguments, name)
        if given is not None:
            parts += [f"--{name.replace('_', '-')}", str(given)]
    if arguments.level is not None:
        parts += ["--level", str(arguments.level.number)]
    return [*parts, "--threads", str(arguments.threads)] if arguments.threads > 1 else parts


@dataclass(slots=True)
class GameSession:
    """A game in progress."""

    console: Console
    engine: Searcher
    chosen: Configuration
    users: tuple[int, ...]
    level: Level
    #: The options of the command, for the continue command.
    options: list[str]
    #: The generator of outcomes, and the texts of those that were drawn before the first decision.
    outcomes: Random
    drawn: list[str] = field(default_factory=list)
    #: The positions with a user to move, for `undo`.
    undo_stack: list[Position] = field(default_factory=list)
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.engine.seed)

    def play(self, fen: str | None = None) -> int:
        """Plays to the end, or until the user quits; returns the exit status."""
        self.introduce()
        started = len(self.engine.position.history)
        try:
            while (outcome := self.outcome()) is None:
                if not self.users and len(self.engine.position.history) - started >= MAX_MOVES:
                    raise GameContractError(f"the game has not ended after {MAX_MOVES:,} moves: it is given up")
                self.play_turn()
        except Resigned:
            self.console.print(self.resignation(), style="bold")
            return 0
        except (Stopped, KeyboardInterrupt) as reason:
            self.console.print(f"Stopped. To go on from here: {self.command(fen)}", soft_wrap=True)
            return EXIT_INTERRUPTED if isinstance(reason, KeyboardInterrupt) else 0
        except OSError:  # closed output
            raise
        except (Exception, SystemExit):
            # An error of the user's game, which the caller reports; the game can be continued once it is fixed.
            self.console.print(f"Stopped by an error. To go on from here: {self.command(fen)}", soft_wrap=True)
            raise
        self.draw()
        self.console.print(outcome, style="bold")
        return 0

    def outcome(self) -> str | None:
        """Returns the outcome; None while the game continues.

        Claimable draws end a game of chess, as in matches, since the search counts them as draws.
        """
        from pondertree.match.game import claimed_draw

        position = self.engine.position
        if is_over(position.state):
            return position.outcome()
        claim = claimed_draw(position.state)
        return None if claim is None else f"The game is a draw ({claim.replace('_', ' ')})."

    def introduce(self) -> None:
        """Prints the players, the search and how to enter moves."""
        position = self.engine.position
        names = position.players
        yours = [names[player] for player in self.users]
        others = [name for player, name in enumerate(names) if player not in self.users]
        if not yours:
            who = "The search plays itself." if len(names) > 1 else "The search plays."
        elif len(names) == 1:
            who = "You play, and can ask the search for hints."
        elif not others:
            who = f"You play all sides, {join(names)}, and can ask the search for hints."
        else:
            who = f"You play {join(yours)}, the search plays {join(others)}."
        self.console.print(f"{position.title}. {who}", style="bold")
        self.console.print(f"Search: {self.effort()}", style="dim")
        if yours:
            self.console.print(f"Enter {self.example()}, or a command (type help to list them).")
        for text in self.drawn:
            self.console.print(f"chance: {text}", style="bold")

    def effort(self) -> str:
        """Describes the search and its limits per move."""
        chosen = self.chosen
        parts = [chosen.description]
        if chosen.simulations is not None:
            parts.append(f"{count_text(self.level.simulations(chosen.simulations))} per move")
        if chosen.seconds is not None:
            parts.append(f"{chosen.seconds:g} s per move")
        parts.append("full strength" if self.level.is_full else f"level {self.level.number} of {MAX_LEVEL}")
        return ", ".join(parts)

    def example(self) -> str:
        """Describes the move notation by a legal move, of a user as soon as one is to move."""
        position = after = self.engine.position
        while not is_over(after.state):
            if after.state.to_play == CHANCE:
                after = after.play(after.state.legal_actions()[0])
                continue
            position, actions = after, [int(action) for action in after.state.legal_actions()]
            action = actions[(len(actions) - 1) // 2]
            if position.state.to_play in self.users:
                break
            after = position.play(action)
        also = f" (or {position.state.action_to_string(action)})" if position.game == "chess" else ""
        return f"a move such as {position.write(action)}{also}"

    def play_turn(self) -> None:
        """Plays one move."""
        position = self.engine.position
        if position.state.to_play == CHANCE:
            outcome = draw_outcome(position.state, self.outcomes)
            self.console.print(f"chance: {position.write(outcome)}", style="bold")
            self.advance(outcome)
            return
        if position.state.to_play not in self.users:
            if not self.users:
                self.draw()
            self.advance(self.reply())
            return
        self.draw()
        action = self.read_move()
        if action is not None:
            self.undo_stack.append(position)
            self.advance(action)

    def advance(self, action: int) -> None:
        """Plays a move and prints its rewards."""
        before = self.engine.position.rewards
        self.engine.follow(action)
        position = self.engine.position
        if not position.rewards:
            return
        paid = [after - paid for after, paid in zip(position.rewards, before or [0.0] * 255, strict=False)]
        if len(paid) == 1:
            self.console.print(f"reward {paid[0]:+.4g}, total {position.rewards[0]:.4g}", style="dim")
        elif any(paid):
            self.console.print(f"rewards so far: {position.scores_text(position.rewards)}", style="dim")

    def draw(self) -> None:
        """Prints the board and the player to move."""
        from pondertree.cli.output import draw_board

        position = self.engine.position
        self.console.print()
        self.console.print(draw_board(position))
        if is_over(position.state) or len(position.players) == 1:
            return
        line = f"{position.player} to move"
        # The board of a game with dice ends with it.
        if not position.board.rpartition("\n")[2].startswith(line):
            self.console.print(line, style="dim")

    def search(self, simulations: int | None, *, is_preview: bool) -> tuple[Report, str]:
        """Searches the position; returns the report and a description of the effort."""
        before, was_solved = self.engine.simulations, self.engine.is_solved
        with self.console.status("thinking") if sys.stdout.isatty() else nullcontext():
            finished = run_search(self.engine, simulations, self.chosen.seconds)
        if not finished:
            raise KeyboardInterrupt
        new = self.engine.simulations - before
        without = "known from the search before" if was_solved else "found by the mate search"
        return self.engine.report(is_preview=is_preview), count_text(new) if new else without

    def reply(self) -> int:
        """Plays the search's move at the configured level, without tree reuse below full strength."""
        if self.level.is_full or self.chosen.simulations is None:
            report, effort = self.search(self.chosen.simulations, is_preview=True)
            self.print_move("plays", report, effort)
            return report.best.action
        # Weaker levels do not reuse the tree.
        self.engine.restart(self.engine.position)
        simulations = self.level.simulations(self.chosen.simulations)
        report, _ = self.search(simulations, is_preview=False)
        move = self.level.choose(report.moves, simulations, self.random)
        self.console.print(f"{report.position.player} plays {report.text_of(move)}", style="bold")
        return move.action

    def hint(self) -> None:
        """Prints the move of the search at full strength."""
        self.print_move("could play", *self.search(self.chosen.simulations, is_preview=True))

    def print_move(self, verb: str, report: Report, effort: str) -> None:
        """Prints the best move with its value and principal variation in one line."""
        how = f"value {round(report.value, 2) + 0.0:+.2f}" if report.proven is None else report.verdict()
        head = f"{report.position.player} {verb} {report.text_of(report.best)}"
        parts = [how, effort]
        line = fit(report.line_of(report.best)[1:7], WIDTH - len(f"{head}  {', '.join(parts)}, expects "))
        self.console.print(head, style="bold", end="  ")
        self.console.print(", ".join([*parts, f"expects {line}"] if line else parts), style="dim", soft_wrap=True)

    def read_move(self) -> int | None:
        """Reads the user's move; returns None after `undo`."""
        position = self.engine.position
        while True:
            text = self.read_line(f"{position.player}> ")
            is_move = text != "" and text.split() in [move.split() for move in position.legal_moves()]
            match None if is_move else text.lower().removeprefix(":"):
                case "":
                    continue
                case "help" | "?":
                    self.console.print(HELP.format(example=self.example().removeprefix("a move ")))
                case "moves":
                    self.print_paragraph(position.legal_text())
                case "hint":
                    self.hint()
                case "undo" if self.undo_stack:
                    self.engine.restart(self.undo_stack.pop())
                    return None
                case "undo":
                    self.console.print("There is nothing to take back.")
                case "resign":
                    raise Resigned
                case "quit" | "exit" | "q":
                    raise Stopped
                case _:
                    try:
                        return position.parse(text)
                    except InvalidActionError as error:
                        self.print_paragraph(str(error))

    def print_paragraph(self, text: str) -> None:
        """Prints a wrapped paragraph."""
        for line in textwrap.wrap(text, min(self.console.width, WIDTH)):
            self.console.print(line, soft_wrap=True)

    def read_line(self, prompt: str) -> str:
        """Reads a line from the user."""
        try:
            line = input(prompt)
        except EOFError:
            self.console.print()
            raise Stopped from None
        if not sys.stdin.isatty():
            # Echoes piped input, so that the transcript is complete.
            self.console.print(line)
        return line.strip()

    def resignation(self) -> str:
        """Returns the outcome after a resignation of the player to move."""
        position = self.engine.position
        names = position.players
        if len(names) == 2:
            return f"{position.player} resigns. {names[1 - position.state.to_play]} wins."
        total = f" Rewards: {position.scores_text(position.rewards)}." if position.rewards else ""
        return f"{position.player} resigns. The game ends here.{total}"

    def command(self, fen: str | None) -> str:
        """Returns the command that continues the game."""
        position = self.engine.position
        words = ["pondertree", "play", position.game, *self.options]
        if fen is not None:
            words += ["--fen", position.state.fen()]
        elif position.history:
            # A separate value that begins with a dash would be parsed as an option.
            words += [f"--moves={position.moves}"] if position.moves.startswith("-") else ["--moves", position.moves]
        return shell_line(words)
