"""One `go`, from its arrival to its `bestmove`: the search thread and its stopping conditions.

The search runs in slices of some hundredths of a second; between slices the thread takes a snapshot, reports, and
decides whether to continue. If it does not return shortly after `stop` or the time limit, a timer replies from the
last snapshot: a slow evaluator, tree reuse or a busy machine cause no time loss.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass

from pondertree._core import ending
from pondertree.search.arguments import UNLIMITED
from pondertree.search.tree import Tree
from pondertree.uci import clock, info
from pondertree.uci.info import DepthEstimate, SearchSnapshot
from pondertree.uci.options import Options, evaluation, scale
from pondertree.uci.position import UciGame, legal_moves, static_best_move
from pondertree.uci.protocol import Go
from pondertree.uci.tree_reuse import TreeReuse
from pondertree.uci.writer import LineWriter, Reply
from pondertree.validation import brief

#: Seconds per search slice; the first is shorter.
SLICE, FIRST_SLICE = 0.05, 0.01
#: Seconds between reports: after a change of the best move, and otherwise.
MIN_REPORT_INTERVAL, MAX_REPORT_INTERVAL = 0.1, 1.0
#: Seconds for the search to return after `stop`.
STOP_GRACE = 0.05
#: Seconds to wait for the thread of the previous search.
JOIN_TIMEOUT = 2.0
#: Minimum remaining seconds for the mate search at the root, and for searching at all.
MIN_SECONDS_FOR_MATES, MIN_SECONDS_FOR_TREE = 0.25, 0.003
#: Seconds of normal search after `go mate` has proven that there is no mate.
NO_MATE_SECONDS = 1.0


@dataclass(eq=False, repr=False)
class SearchTask:
    """A running search."""

    _go: Go
    _game: UciGame
    _options: Options
    _reuse: TreeReuse
    _writer: LineWriter
    _arrived: float
    _lag: clock.LagEstimate

    def __post_init__(self) -> None:
        go, game, arrived = self._go, self._game, self._arrived
        #: Notified of `stop` and `ponderhit`.
        self._changed = threading.Condition()
        self._stopped = False
        self._pondering = go.ponder
        #: The time at which our clock started.
        self._since = arrived
        self._legal = legal_moves(game.state)
        searchmoves = frozenset(go.searchmoves) & frozenset(self._legal)
        self._root_moves = searchmoves if searchmoves and len(searchmoves) < len(self._legal) else None
        #: The planned end, if the clock ended the search.
        self._planned: float | None = None
        overhead = self._lag.overhead(self._options["Move Overhead"] / 1000.0)
        self.limits = clock.limits(go, game.state.to_play, overhead, len(self._legal) == 1)
        self._tree: Tree | None = None
        self._snapshot: SearchSnapshot | None = None
        #: The best move by the tree of the previous search.
        self._expected: str | None = None
        self._nodes = 0
        self._depth = DepthEstimate(arrived)
        self._reported = arrived
        self._previous: SearchTask | None = None
        self._reply = Reply(self._writer, self._fallback_reply)
        self._thread = threading.Thread(target=self._run, name="search", daemon=True)

    # --- called by the command thread ---------------------------------------------------------------------------------

    def start(self, previous: SearchTask | None) -> None:
        """Starts the search thread, which first waits for an unfinished previous search."""
        while previous is not None and not previous._thread.is_alive():
            previous = previous._previous
        self._previous = previous
        if self._is_timed:
            self._reply.send_at(self._since + self.limits.deadline)
        try:
            self._thread.start()
        except RuntimeError as error:  # the system has no thread left
            self._writer.info_string(f"the search cannot be started: {error}")
            self._reply.send([self._best_move(None)])

    def stop(self) -> None:
        """Requests the reply, which follows within a tenth of a second."""
        if not self._stopped:
            self._request_stop()
            self._reply.send_at(time.perf_counter() + STOP_GRACE)

    def ponderhit(self, arrived: float) -> None:
        """Handles `ponderhit`: the expected move was played and our clock runs."""
        with self._changed:
            if not self._pondering:
                return
            self._since, self._pondering = arrived, False
            self._changed.notify_all()
        if self._is_timed:
            self._reply.send_at(arrived + self.limits.deadline)

    def wait_for_reply(self, seconds: float | None = None) -> None:
        """Blocks until `bestmove` was sent."""
        self._reply.sent.wait(seconds)

    @property
    def ends_by_itself(self) -> bool:
        """Whether the search ends without `stop`."""
        return self._go.is_limited and not self._pondering

    def join(self, seconds: float) -> bool:
        """Waits up to `seconds` per thread, those of previous searches included; returns whether all have ended."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        previous = self._previous
        return (previous is None or previous.join(seconds)) and not self._thread.is_alive()

    @property
    def is_over(self) -> bool:
        """Whether the threads of this and all previous searches have ended."""
        previous = self._previous
        return not self._thread.is_alive() and (previous is None or previous.is_over)

    # --- stopping conditions ------------------------------------------------------------------------------------------

    @property
    def _is_timed(self) -> bool:
        """Whether our clock is running."""
        return self.limits.is_timed and not self._pondering and not self._go.infinite

    def _has_less_than(self, seconds: float) -> bool:
        """Whether less than `seconds` remain on the clock."""
        return self._is_timed and self.limits.hard - (time.perf_counter() - self._since) < seconds

    def _should_stop(self) -> bool:
        return self._stopped or self._has_less_than(0.0)

    def _request_stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        tree = self._tree
        if tree is not None:
            tree.stop()

    def _end_time(self, snapshot: SearchSnapshot, changed: float, now: float) -> float:
        """Returns the time to end, on the `perf_counter` clock; the best move is unchanged since `changed`."""
        stability = (now - changed) / max(now - self._since, 1e-9)
        return self._since + clock.target_time(self.limits, min(max(stability, 0.0), 1.0), snapshot.is_consistent)

    def _is_time_up(self, snapshot: SearchSnapshot, changed: float, now: float, per_second: float) -> bool:
        """Whether the time is up, or the rest of it cannot change the best move."""
        if not self._is_timed:
            return False
        end = self._end_time(snapshot, changed, now)
        has_choice = self.limits.soft < self.limits.hard
        if now >= end:
            self._planned = end
        return now >= end or (has_choice and clock.is_decided(snapshot.first, snapshot.second, per_second, end - now))

    # --- the search ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        lines: list[str] = []
        try:
            is_over = not self._legal or self._game.state.is_terminal
            lines = self._finished_game_info() if is_over else self._search()
        except Exception as error:  # including a panic of the engine, an InternalError
            self._writer.info_string(f"the search has failed: {type(error).__name__}: {brief(str(error))}")
            self._reuse.clear()
        finally:
            self._tree = None
            with self._changed:
                # `go infinite` and `go ponder` reply only after `stop` or `ponderhit`.
                while not self._stopped and (self._pondering or not self._go.is_limited):
                    self._changed.wait()
            self._reply.send([*lines, self._best_move(self._snapshot)])
            if self._planned is not None:
                self._lag.update(time.perf_counter() - self._planned)

    def _search(self) -> list[str]:
        """Searches up to the limits and returns the output lines before `bestmove`."""
        if self._previous is not None and not self._previous.join(JOIN_TIMEOUT):
            self._writer.info_string("the search before this one does not come back: this one does without")
            return []
        self._previous = None
        state = self._game.state
        if self._go.mate is not None and self._root_moves is None:
            self._snapshot, self._nodes = info.find_mate(state, self._go.mate, self._should_stop)
            if self._snapshot is not None:
                self._depth.mean = self._depth.most = self._snapshot.best.plies
                return self._info(self._snapshot)
        self._expected = self._reuse.expected(self._options, self._game)
        if self._has_less_than(MIN_SECONDS_FOR_TREE):
            self._planned = self._since + self.limits.hard
            return []
        root_actions = (
            None if self._root_moves is None else frozenset(state.parse_action(move) for move in self._root_moves)
        )
        tree = self._reuse.tree(self._options, self._game, root_actions)
        if self._has_less_than(MIN_SECONDS_FOR_MATES) and ending(state) is None:
            tree.skip_root_analysis()
        self._tree = tree
        self._search_tree(tree)
        self._search_other_moves()
        lines = list(info.statistics(tree.result())) if self._options["VerboseMoveStats"] else []
        if self._snapshot is not None:
            self._snapshot = info.complete_lines(self._snapshot, state)
            lines += self._info(self._snapshot)
        return lines

    def _search_other_moves(self) -> None:
        """Searches root moves without a line, if MultiPV requires more lines than a proven root has."""
        count = min(self._options["MultiPV"], len(self._root_moves or self._legal))
        while self._snapshot is not None and self._snapshot.proven is not None and len(self._snapshot.lines) < count:
            nodes, prefix = self._go.nodes, self._snapshot
            if (
                self._should_stop()
                or self._has_less_than(MIN_SECONDS_FOR_TREE)
                or (nodes is not None and self._nodes >= nodes)
            ):
                return
            reported = {line.move for line in prefix.lines}
            left = [move for move in self._root_moves or self._legal if move not in reported]
            known = info.table_lines(self._game.state, left) if ending(self._game.state) is not None else []
            if known:
                self._snapshot = info.append_lines(prefix, known, count)
                continue
            tree = self._reuse.separate_tree(
                self._options, self._game, frozenset(self._game.state.parse_action(move) for move in left)
            )
            self._tree = tree
            if self._stopped:
                return
            # If one of these moves proves the root again, the remaining ones need another search.
            if self._search_tree(tree, prefix).proven is None or len(self._snapshot.lines) == len(prefix.lines):
                return

    def _search_tree(self, tree: Tree, prefix: SearchSnapshot | None = None) -> SearchSnapshot:
        """Searches in slices until a limit is reached; `prefix` holds the lines before those of this tree."""
        go, started = self._go, time.perf_counter()
        only_mate = not (go.has_clock or any(limit is not None for limit in (go.depth, go.nodes, go.movetime)))
        time_limit = started + NO_MATE_SECONDS if go.mate is not None and only_mate else float("inf")
        snapshot, changed = self._update_snapshot(tree, prefix), self._since
        #: Start of the speed measurement, (time, simulations): after the first slice, which includes the mate search.
        measured_from: tuple[float, int] | None = None
        while snapshot.proven is None and not self._stopped:
            now = time.perf_counter()
            slice_seconds = FIRST_SLICE if now - started < FIRST_SLICE else SLICE
            if self._is_timed:
                slice_seconds = max(min(slice_seconds, self._end_time(snapshot, changed, now) - now), clock.MIN_SECONDS)
            tree.simulate(UNLIMITED if go.nodes is None else max(go.nodes - self._nodes, 1), seconds=slice_seconds)
            before, snapshot, now = snapshot, self._update_snapshot(tree, prefix), time.perf_counter()
            self._nodes += snapshot.simulations - before.simulations
            if snapshot.simulations == before.simulations:
                break  # the tree is full or was stopped
            if before.first > 0 and snapshot.best.move != before.best.move:
                changed = now
            self._report(tree, self._snapshot or snapshot, changed, now)
            if measured_from is None:
                per_second, measured_from = math.inf, (now, self._nodes)
            else:
                per_second = (self._nodes - measured_from[1]) / max(now - measured_from[0], 1e-9)
            if (
                (go.nodes is not None and self._nodes >= go.nodes)
                or (go.depth is not None and self._depth.measure(tree) >= go.depth)
                or (now >= time_limit and not go.infinite)
                or self._is_time_up(snapshot, changed, now, per_second)
            ):
                break
        self._depth.measure(tree, at_the_end=True)
        return snapshot

    def _update_snapshot(self, tree: Tree, prefix: SearchSnapshot | None) -> SearchSnapshot:
        # No reference to the result is kept: a tree with live views is copied before it grows.
        snapshot = info.snapshot(tree.state, tree.result(), self._options["MultiPV"])
        if snapshot.first > 0 or snapshot.proven is not None:
            self._snapshot = (
                snapshot if prefix is None else info.append_lines(prefix, snapshot.lines, self._options["MultiPV"])
            )
        return snapshot

    # --- output -------------------------------------------------------------------------------------------------------

    def _report(self, tree: Tree, snapshot: SearchSnapshot, changed: float, now: float) -> None:
        has_changed = changed > self._reported or self._reported == self._arrived
        if now - self._reported >= (MIN_REPORT_INTERVAL if has_changed else MAX_REPORT_INTERVAL):
            self._depth.measure(tree)
            self._reported = now
            self._reply.report(self._info(snapshot))

    def _fallback_reply(self) -> list[str]:
        """Returns the reply of the timer."""
        self._request_stop()
        snapshot = self._snapshot
        return [*([] if snapshot is None else self._info(snapshot)), self._best_move(snapshot)]

    def _best_move(self, snapshot: SearchSnapshot | None) -> str:
        """Returns the `bestmove` line, with a legal move, one of `searchmoves` if given."""
        allowed = self._root_moves or self._legal
        if snapshot is None or snapshot.best.move not in allowed:
            if self._expected in allowed:
                return f"bestmove {self._expected}"
            best = static_best_move(self._game.state, evaluation(self._options), self._root_moves)
            return f"bestmove {best or '(none)'}"
        pv = snapshot.best.pv
        return f"bestmove {pv[0]} ponder {pv[1]}" if self._options["Ponder"] and len(pv) > 1 else f"bestmove {pv[0]}"

    def _finished_game_info(self) -> list[str]:
        lost = self._game.state.termination == "checkmate"
        return [f"info depth 0 score {'mate 0' if lost else 'cp 0'}"]

    def _info(self, snapshot: SearchSnapshot) -> list[str]:
        progress = info.Progress(
            depth=self._depth.mean,
            seldepth=max(self._depth.most, len(snapshot.best.pv)),
            nodes=self._nodes,
            seconds=time.perf_counter() - self._arrived,
            hashfull=min(1000 * snapshot.bytes // (self._options["Hash"] << 20), 1000),
            scale=scale(self._options),
            wdl=self._options["UCI_ShowWDL"],
        )
        return list(info.info(snapshot, progress))
