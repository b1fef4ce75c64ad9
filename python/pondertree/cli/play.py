"""`pondertree play`: a game at the terminal, against the search or between people, or the search against itself."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pondertree.cli.arguments import Commands, add_command, add_effort
from pondertree.cli.position import Position, read_position
from pondertree.cli.report import count_text
from pondertree.cli.thinking import INTERRUPTED, Engine, think
from pondertree.errors import GameOverError, InvalidActionError

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = """\
  pondertree play tic-tac-toe
  pondertree play connect4 --side second --seconds 2
  pondertree play chess --simulations 20k --moves "e4 e5"
  pondertree play othello --side none
  pondertree play connect4 --player connect4"""

HELP = """\
a move   in the game's notation, such as {example}
moves    the legal moves
hint     what the search would play
undo     take back your last move
quit     stop here"""

#: Players who are people, by `--side`.
SIDES: dict[str, tuple[int, ...]] = {"first": (0,), "second": (1,), "both": (0, 1), "none": ()}
SIMULATIONS = 10_000
#: A trained player sees more with fewer, and each costs more.
PLAYER_SIMULATIONS = 400


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The user wants no more."""


def add_arguments(commands: Commands) -> None:
    """The arguments of `pondertree play`."""
    parser = add_command(commands, "play", "Play a game against the search.", EXAMPLES, run)
    parser.add_argument(
        "--side", choices=list(SIDES), default="first", help="your side (default: first); none: the search plays itself"
    )
    add_effort(parser, f"per move; default: {SIMULATIONS:,}")


def run(arguments: argparse.Namespace) -> int:
    """Runs it; the exit status."""
    from pondertree.cli import output

    position = read_position(arguments.game, arguments.moves, arguments.fen)
    if position.state.is_terminal:
        raise GameOverError(f"the game is over in this position. {position.outcome()}")
    simulations = arguments.simulations
    if simulations is None and arguments.seconds is None:
        simulations = SIMULATIONS if arguments.player is None else PLAYER_SIMULATIONS
    table = Match(
        console=output.make_console(),
        engine=Engine(position, arguments.seed, arguments.threads, arguments.seconds, arguments.player),
        people=SIDES[arguments.side],
        simulations=simulations,
        seconds=arguments.seconds,
        options=options_of(arguments),
    )
    return table.play(arguments.fen)


def options_of(arguments: argparse.Namespace) -> str:
    """What was asked for beside the position, as it was typed."""
    told = [f"--side {arguments.side}"]
    for name in ("player", "simulations", "seconds", "seed"):
        given = getattr(arguments, name)
        if given is not None:
            told.append(f"--{name} {shlex.quote(str(given))}")
    return " ".join([*told, f"--threads {arguments.threads}"] if arguments.threads > 1 else told)


@dataclass(slots=True)
class Match:
    """A game under way."""

    console: Console
    engine: Engine
    people: tuple[int, ...]
    simulations: int | None
    seconds: float | None
    #: How the command was given, for going on.
    options: str
    #: The positions in which a person was to move, for `undo`.
    turns: list[Position] = field(default_factory=list)

    def play(self, fen: str | None = None) -> int:
        """To the end, or until the user stops; the exit status."""
        if self.people:
            self.console.print("Type a move, or help.", style="dim")
        try:
            while not self.engine.position.state.is_terminal:
                self.turn()
        except (Stopped, KeyboardInterrupt) as reason:
            self.console.print(f"Stopped. To go on from here: {self.command(fen)}", soft_wrap=True)
            return INTERRUPTED if isinstance(reason, KeyboardInterrupt) else 0
        self.draw()
        self.console.print(self.engine.position.outcome(), style="bold")
        return 0

    def turn(self) -> None:
        """One move."""
        position = self.engine.position
        if position.state.to_play not in self.people:
            if not self.people:
                self.draw()
            self.engine.follow(self.think("plays"))
            return
        self.draw()
        action = self.ask()
        if action is not None:
            self.turns.append(position)
            self.engine.follow(action)

    def draw(self) -> None:
        """The board and who is to move."""
        from pondertree.cli.output import draw_board

        position = self.engine.position
        self.console.print()
        self.console.print(draw_board(position))
        if not position.state.is_terminal:
            self.console.print(f"{position.player} to move", style="dim")

    def think(self, verb: str) -> int:
        """The search's move, which is told: somebody "plays" it, or "could play" it."""
        engine = self.engine
        name = engine.position.player
        before = engine.simulations
        with self.console.status("thinking") if sys.stdout.isatty() else nullcontext():
            finished = think(engine, self.simulations, self.seconds)
        if not finished:
            raise KeyboardInterrupt
        report = engine.report(glance=True)
        how = f"value {round(report.value, 2) + 0.0:+.2f}" if report.proven is None else report.verdict()
        line = " ".join(report.best.pv[1:7])
        new = engine.simulations - before
        told = [how, count_text(new) if new else "known from the search before", f"expects {line}" if line else ""]
        self.console.print(f"{name} {verb} {report.best.move}", style="bold", end="  ")
        self.console.print(", ".join(part for part in told if part), style="dim", soft_wrap=True)
        return report.best.action

    def ask(self) -> int | None:
        """The user's move; None after `undo`, when the board is to be drawn anew."""
        position = self.engine.position
        while True:
            text = self.read(f"{position.player}> ")
            match text.lower():
                case "":
                    continue
                case "help" | "?":
                    example = position.legal_text().split()[0]
                    self.console.print(HELP.format(example=example))
                case "moves":
                    self.console.print(position.legal_text())
                case "hint":
                    self.think("could play")
                case "undo" if self.turns:
                    self.engine.restart(self.turns.pop())
                    return None
                case "undo":
                    self.console.print("There is nothing to take back.")
                case "quit" | "exit" | "q":
                    raise Stopped
                case _:
                    try:
                        return position.parse(text)
                    except InvalidActionError as error:
                        self.console.print(f"{error}", soft_wrap=True)

    def read(self, prompt: str) -> str:
        """One line from the user."""
        try:
            line = input(prompt)
        except EOFError:
            self.console.print()
            raise Stopped from None
        if not sys.stdin.isatty():
            # A transcript of piped moves shows what was read.
            self.console.print(line)
        return line.strip()

    def command(self, fen: str | None) -> str:
        """How to take the game up again."""
        position = self.engine.position
        start = f"pondertree play {position.game} {self.options}"
        if fen is not None:
            return f'{start} --fen "{position.state.fen()}"'
        return f'{start} --moves "{" ".join(position.history)}"' if position.history else start
