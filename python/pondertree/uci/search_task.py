"""One `go`, from its arrival to its `bestmove`: the thread that searches, and what ends it.

The search runs in slices of some hundredths of a second. Between two, the thread looks at the tree, reports, and
decides whether to go on. If it is not back a moment after `stop`, or after the time was up, a guard answers with what
was seen last: a slow evaluator, a tree that is being moved, or a busy machine lose no game and no patience.
"""

from __future__ import annotations

import math
import threading
import time

from pondertree._core import ending
from pondertree.search.limits import UNLIMITED
from pondertree.search.tree import Tree
from pondertree.uci import clock, info
from pondertree.uci.info import Look
from pondertree.uci.options import Options, evaluation, scale
from pondertree.uci.position import Game, at_first_sight, legal_moves
from pondertree.uci.protocol import Go
from pondertree.uci.tree_reuse import Depth, Kept
from pondertree.uci.writer import Answer, Voice
from pondertree.validation import brief

#: Seconds between two looks at the tree; the first comes sooner.
SLICE, FIRST_SLICE = 0.05, 0.01
#: Seconds between two reports: when the best move has changed, and always.
OFTEN, SELDOM = 0.1, 1.0
#: Seconds that the search has to come back after `stop`.
GRACE = 0.05
#: Seconds that a search waits for the thread of the one before.
PATIENCE = 2.0
#: With less time than this the root is not searched for mates at length, and with less than that nothing is searched.
TIME_FOR_MATES, TIME_FOR_A_TREE = 0.25, 0.003
#: How long a position is searched after `go mate` has found that there is none, in seconds.
AFTER_NO_MATE = 1.0


class Thought:
    """A search under way."""

    def __init__(
        self, go: Go, game: Game, options: Options, kept: Kept, voice: Voice, arrived: float, lag: clock.Lag
    ) -> None:
        self._go = go
        self._game = game
        self._options = options
        self._kept = kept
        self._voice = voice
        self._arrived = arrived
        #: Told of `stop` and `ponderhit`.
        self._changed = threading.Condition()
        self._stopped = False
        self._pondering = go.ponder
        #: When our clock began to run.
        self._since = arrived
        self._legal = legal_moves(game.state)
        named = frozenset(go.searchmoves) & frozenset(self._legal)
        self._among = named if named and len(named) < len(self._legal) else None
        self._lag = lag
        #: When it ended, or should have, where the clock ended it.
        self._planned: float | None = None
        overhead = lag.overhead(options["Move Overhead"] / 1000.0)
        self.limits = clock.limits(go, game.state.to_play, overhead, len(self._legal) == 1)
        self._tree: Tree | None = None
        self._look: Look | None = None
        #: What the tree of the search before would play.
        self._expected: str | None = None
        self._nodes = 0
        self._depth = Depth(arrived)
        self._reported = arrived
        self._earlier: Thought | None = None
        self._answer = Answer(voice, self._in_place)
        self._thread = threading.Thread(target=self._run, name="search", daemon=True)

    # --- from the thread that reads commands --------------------------------------------------------------------------

    def start(self, earlier: Thought | None) -> None:
        """Begins. A search before that is not back yet is waited for, by the new thread."""
        while earlier is not None and not earlier._thread.is_alive():
            earlier = earlier._earlier
        self._earlier = earlier
        if self._is_timed:
            self._answer.guard(self._since + self.limits.late)
        try:
            self._thread.start()
        except RuntimeError as error:  # the system has no thread left
            self._voice.tell(f"the search cannot be started: {error}")
            self._answer.give([self._best_move(None)])

    def stop(self) -> None:
        """Asks for the answer, which comes within a tenth of a second."""
        if not self._stopped:
            self._break_off()
            self._answer.guard(time.perf_counter() + GRACE)

    def hit(self, arrived: float) -> None:
        """`ponderhit`: the move that was expected has been played, and our clock runs."""
        with self._changed:
            if not self._pondering:
                return
            self._since, self._pondering = arrived, False
            self._changed.notify_all()
        if self._is_timed:
            self._answer.guard(arrived + self.limits.late)

    def wait_for_answer(self, seconds: float | None = None) -> None:
        """Until there has been a `bestmove`."""
        self._answer.given.wait(seconds)

    @property
    def ends_by_itself(self) -> bool:
        """Whether it need not be told to stop."""
        return self._go.is_limited and not self._pondering

    def join(self, seconds: float) -> bool:
        """Waits up to `seconds` for each thread, its own and those of earlier searches; whether all are over."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        earlier = self._earlier
        return (earlier is None or earlier.join(seconds)) and not self._thread.is_alive()

    @property
    def is_over(self) -> bool:
        """Whether no thread runs any more, its own or that of an earlier search."""
        earlier = self._earlier
        return not self._thread.is_alive() and (earlier is None or earlier.is_over)

    # --- what ends it -------------------------------------------------------------------------------------------------

    @property
    def _is_timed(self) -> bool:
        """Whether our clock is running."""
        return self.limits.is_timed and not self._pondering and not self._go.infinite

    def _hurry(self, seconds: float) -> bool:
        """Whether the clock leaves less than this."""
        return self._is_timed and self.limits.hard - (time.perf_counter() - self._since) < seconds

    def _must_end(self) -> bool:
        return self._stopped or self._hurry(0.0)

    def _break_off(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        tree = self._tree
        if tree is not None:
            tree.stop()

    def _end(self, seen: Look, changed: float, now: float) -> float:
        """When to end, by the clock of the computer; the best move is the same since `changed`."""
        settled = (now - changed) / max(now - self._since, 1e-9)
        return self._since + clock.wanted(self.limits, min(max(settled, 0.0), 1.0), seen.agreed)

    def _is_time(self, seen: Look, changed: float, now: float, per_second: float) -> bool:
        """Whether the time is up, or more of it would change nothing."""
        if not self._is_timed:
            return False
        end = self._end(seen, changed, now)
        has_choice = self.limits.soft < self.limits.hard
        if now >= end:
            self._planned = end
        return now >= end or (has_choice and clock.cannot_be_caught(seen.first, seen.second, per_second, end - now))

    # --- the search ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        lines: list[str] = []
        try:
            is_over = not self._legal or self._game.state.is_terminal
            lines = self._of_a_finished_game() if is_over else self._think()
        except Exception as error:  # also a panic of the engine: an InternalError
            self._voice.tell(f"the search has failed: {type(error).__name__}: {brief(str(error))}")
            self._kept.forget()
        finally:
            self._tree = None
            with self._changed:
                # An endless search, and one on the opponent's time, answer only when they are told to.
                while not self._stopped and (self._pondering or not self._go.is_limited):
                    self._changed.wait()
            self._answer.give([*lines, self._best_move(self._look)])
            if self._planned is not None:
                self._lag.learn(time.perf_counter() - self._planned)

    def _think(self) -> list[str]:
        """Searches to the limits; the lines to be said before the answer."""
        if self._earlier is not None and not self._earlier.join(PATIENCE):
            self._voice.tell("the search before this one does not come back: this one does without")
            return []
        self._earlier = None
        state = self._game.state
        if self._go.mate is not None and self._among is None:
            self._look, self._nodes = info.search(state, self._go.mate, self._must_end)
            if self._look is not None:
                self._depth.mean = self._depth.most = self._look.best.plies
                return self._info(self._look)
        self._expected = self._kept.expected(self._options, self._game)
        if self._hurry(TIME_FOR_A_TREE):
            self._planned = self._since + self.limits.hard
            return []
        among = None if self._among is None else frozenset(state.parse_action(move) for move in self._among)
        tree = self._kept.tree(self._options, self._game, among)
        if self._hurry(TIME_FOR_MATES) and ending(state) is None:
            tree.skip_root_analysis()
        self._tree = tree
        self._grow(tree)
        self._grow_others()
        lines = list(info.statistics(tree.result())) if self._options["VerboseMoveStats"] else []
        if self._look is not None:
            self._look = info.completed(self._look, state)
            lines += self._info(self._look)
        return lines

    def _grow_others(self) -> None:
        """Searches the moves that have no line yet, where more are wanted and the root was decided without them."""
        wanted = min(self._options["MultiPV"], len(self._among or self._legal))
        while self._look is not None and self._look.proven is not None and len(self._look.lines) < wanted:
            nodes, above = self._go.nodes, self._look
            if self._must_end() or self._hurry(TIME_FOR_A_TREE) or (nodes is not None and self._nodes >= nodes):
                return
            told = {line.move for line in above.lines}
            left = [move for move in self._among or self._legal if move not in told]
            known = info.by_table(self._game.state, left) if ending(self._game.state) is not None else []
            if known:
                self._look = info.below(above, known, wanted)
                continue
            tree = self._kept.other_tree(
                self._options, self._game, frozenset(self._game.state.parse_action(move) for move in left)
            )
            self._tree = tree
            if self._stopped:
                return
            # A root that is decided again, by one of these moves, leaves the rest of them for another round.
            if self._grow(tree, above).proven is None or len(self._look.lines) == len(above.lines):
                return

    def _grow(self, tree: Tree, above: Look | None = None) -> Look:
        """Slice after slice, until something ends it; `above` has the lines to be told before those of this tree."""
        go, begun = self._go, time.perf_counter()
        only_mate = not (go.has_clock or any(limit is not None for limit in (go.depth, go.nodes, go.movetime)))
        enough = begun + AFTER_NO_MATE if go.mate is not None and only_mate else float("inf")
        seen, changed = self._see(tree, above), self._since
        #: Since when, and from how many simulations on, the speed is measured: in the first slice the root is searched
        #: for mates, which may take most of it and says nothing of the next.
        counted: tuple[float, int] | None = None
        while seen.proven is None and not self._stopped:
            now = time.perf_counter()
            pause = FIRST_SLICE if now - begun < FIRST_SLICE else SLICE
            if self._is_timed:
                pause = max(min(pause, self._end(seen, changed, now) - now), clock.LEAST)
            tree.simulate(UNLIMITED if go.nodes is None else max(go.nodes - self._nodes, 1), seconds=pause)
            before, seen, now = seen, self._see(tree, above), time.perf_counter()
            self._nodes += seen.simulations - before.simulations
            if seen.simulations == before.simulations:
                break  # the tree is full, or was told to stop
            if before.first > 0 and seen.best.move != before.best.move:
                changed = now
            self._report(tree, self._look or seen, changed, now)
            if counted is None:
                per_second, counted = math.inf, (now, self._nodes)
            else:
                per_second = (self._nodes - counted[1]) / max(now - counted[0], 1e-9)
            if (
                (go.nodes is not None and self._nodes >= go.nodes)
                or (go.depth is not None and self._depth.measure(tree) >= go.depth)
                or (now >= enough and not go.infinite)
                or self._is_time(seen, changed, now, per_second)
            ):
                break
        self._depth.measure(tree, at_the_end=True)
        return seen

    def _see(self, tree: Tree, above: Look | None) -> Look:
        # The result is let go of at once: a tree that somebody holds is copied before it grows.
        seen = info.look(tree.state, tree.result(), self._options["MultiPV"])
        if seen.first > 0 or seen.proven is not None:
            self._look = seen if above is None else info.below(above, seen.lines, self._options["MultiPV"])
        return seen

    # --- what is said -------------------------------------------------------------------------------------------------

    def _report(self, tree: Tree, seen: Look, changed: float, now: float) -> None:
        is_news = changed > self._reported or self._reported == self._arrived
        if now - self._reported >= (OFTEN if is_news else SELDOM):
            self._depth.measure(tree)
            self._reported = now
            self._answer.report(self._info(seen))

    def _in_place(self) -> list[str]:
        """What the guard answers."""
        self._break_off()
        seen = self._look
        return [*([] if seen is None else self._info(seen)), self._best_move(seen)]

    def _best_move(self, seen: Look | None) -> str:
        """Always a legal move, and one of those that were asked for."""
        allowed = self._among or self._legal
        if seen is None or seen.best.move not in allowed:
            if self._expected in allowed:
                return f"bestmove {self._expected}"
            return f"bestmove {at_first_sight(self._game.state, evaluation(self._options), self._among) or '(none)'}"
        pv = seen.best.pv
        return f"bestmove {pv[0]} ponder {pv[1]}" if self._options["Ponder"] and len(pv) > 1 else f"bestmove {pv[0]}"

    def _of_a_finished_game(self) -> list[str]:
        lost = self._game.state.termination == "checkmate"
        return [f"info depth 0 score {'mate 0' if lost else 'cp 0'}"]

    def _info(self, seen: Look) -> list[str]:
        progress = info.Progress(
            depth=self._depth.mean,
            seldepth=max(self._depth.most, len(seen.best.pv)),
            nodes=self._nodes,
            seconds=time.perf_counter() - self._arrived,
            hashfull=min(1000 * seen.bytes // (self._options["Hash"] << 20), 1000),
            scale=scale(self._options),
            wdl=self._options["UCI_ShowWDL"],
        )
        return list(info.info(seen, progress))
