"""The in-process engine: replies, timing, tree reuse, MultiPV."""

from __future__ import annotations

import random
import re
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.support.uci_client import (
    BACK_RANK,
    MATED,
    MATED_SOON,
    MORPHY,
    ONE_MOVE,
    ROOK,
    STALEMATE,
    EngineClient,
    field,
)

import pondertree
from pondertree.games import Chess
from pondertree.uci import info, search_task
from pondertree.uci.options import TABLE
from pondertree.uci.position import legal_moves


def test_uci_declares_id_and_options() -> None:
    with EngineClient() as client:
        client.send("uci", "isready")
        assert client.output[0] == f"id name Pondertree {pondertree.__version__}"
        assert client.output[-2:] == ["uciok", "readyok"]
        assert sum(line.startswith("option name ") for line in client.output) == len(TABLE)


def test_node_limited_search_is_reproducible() -> None:
    outputs = []
    for _ in range(2):
        with EngineClient() as client:
            client.send("position startpos moves e2e4", "go nodes 500")
            client.wait()
            client.send("position startpos moves e2e4 e7e5 g1f3", "go nodes 500")
            client.wait(2)
            last = client.infos()[-1]
            assert field(last, "nodes") == 500
            outputs.append((client.bestmoves(), re.sub(r"(nps|time) \d+", "", last)))
    assert outputs[0] == outputs[1]


def test_info_has_multipv_wdl_and_move_statistics() -> None:
    with EngineClient(MultiPV=3, UCI_ShowWDL="true", VerboseMoveStats="true") as client:
        client.send("position startpos", "go nodes 800")
        best = client.wait()
        first, second, third = client.infos()[-3:]
        assert [field(line, "multipv") for line in (first, second, third)] == [1, 2, 3]
        assert len({line.split(" pv ")[1].split()[0] for line in (first, second, third)}) == 3
        assert first.split(" pv ")[1].split()[0] == best
        assert 1 <= field(first, "depth") <= field(first, "seldepth")
        assert 0 <= field(first, "hashfull") <= 1000
        [wdl] = re.findall(r" wdl (\d+) (\d+) (\d+) ", first)
        assert sum(map(int, wdl)) == 1000
        assert abs(field(first, "score cp")) < 200
        statistics = [line for line in client.info_strings() if " N: " in line]
        assert len(statistics) == 20
        assert statistics[-1].split()[2] == best
        assert sum(field(line, r"N: +") for line in statistics) == 800


@pytest.mark.parametrize(
    ("fen", "go", "score", "best"),
    [
        (BACK_RANK, "go movetime 2000", "mate 1", "a1a8"),
        (MORPHY, "go wtime 60000 btime 60000", "mate 2", "a1a6"),
        (MORPHY, "go mate 2", "mate 2", "a1a6"),
        (ONE_MOVE, "go nodes 2000", "mate -1", "h1g1"),
        (STALEMATE, "go depth 3", "cp 0", "(none)"),
        (MATED, "go nodes 5", "mate 0", "(none)"),
        ("8/8/4k3/8/8/4K3/8/8 w - - 0 1", "go movetime 10", "cp 0", None),
    ],
)
def test_mates_and_finished_games_report_exact_scores(fen: str, go: str, score: str, best: str | None) -> None:
    with EngineClient() as client:
        begun = time.perf_counter()
        client.send(f"position fen {fen}", go)
        answer = client.wait()
        assert time.perf_counter() - begun < 1.5
        assert f" score {score}" in client.infos()[-1]
        assert answer == best or (best is None and answer in legal_moves(Chess(fen)))
        if score == "mate 2":
            assert len(client.infos()[-1].split(" pv ")[1].split()) == 3


@pytest.mark.parametrize(
    ("fen", "count", "scores"),
    [
        (MORPHY, 5, ["mate 2"]),
        (ROOK, 4, ["mate 2", "mate 2", "mate 3", "mate 3"]),
        (MATED_SOON, 3, ["mate -2", "mate -1"]),
        ("8/8/8/8/8/5k2/8/5q1K w - - 0 1", 3, ["mate -1"]),
    ],
)
@pytest.mark.parametrize("go", ["go nodes 400", "go movetime 300", "go infinite"])
def test_proven_root_reports_all_multipv_lines(fen: str, count: int, scores: list[str], go: str) -> None:
    """Reports every legal move with a proof or an own search."""
    with EngineClient(MultiPV=count) as client:
        client.send(f"position fen {fen}", go)
        if go == "go infinite":
            time.sleep(0.3)
            client.send("stop")
        best = client.wait()
        legal = legal_moves(Chess(fen))
        last = client.infos()[-min(count, len(legal)) :]
        assert len(last) == min(count, len(legal))
        assert [field(line, "multipv") for line in last] == list(range(1, len(last) + 1))
        moves = [line.split(" pv ")[1].split()[0] for line in last]
        assert moves[0] == best
        assert len(set(moves)) == len(moves)
        for line, score in zip(last, scores, strict=False):
            assert f" score {score} " in line
        # A mate line is complete.
        assert len(last[0].split(" pv ")[1].split()) == 2 * abs(field(last[0], "score mate")) - (scores[0][5] != "-")


def test_table_lines_are_sorted_by_result_and_distance() -> None:
    lost, won = Chess("8/8/8/3k4/8/8/1K6/7R b - - 0 1"), Chess("8/8/8/8/8/2k5/7R/K7 w - - 0 1")
    longest = [line.plies for line in info.table_lines(lost, legal_moves(lost))]
    assert longest == sorted(longest, reverse=True)
    lines = info.table_lines(won, legal_moves(won))
    wins = [line.plies for line in lines if line.proven == 1]
    assert wins == sorted(wins)
    # Moves that lose the rook are draws and come last.
    assert [line.proven for line in lines] == [1] * len(wins) + [0] * (len(lines) - len(wins))
    assert len(wins) < len(lines) == len(legal_moves(won))


@pytest.mark.parametrize("fen", ["8/8/8/3k4/8/8/8/KQ6 w - - 0 1", "8/8/8/3k4/8/8/8/KR6 w - - 0 1"])
def test_table_endings_are_won_with_little_time(fen: str) -> None:
    """The mate distance is reported at the first move and falls by one with every move."""
    with EngineClient() as client:
        moves: list[str] = []
        state, left = Chess(fen), None
        while not state.is_terminal:
            client.send(f"position fen {fen} moves {' '.join(moves)}", "go movetime 100")
            moves.append(client.wait(len(moves) + 1))
            if state.to_play == 0:
                reported = field(client.infos()[-1], "score mate")
                assert left is None or reported == left - 1
                left = reported
            state = state.play(state.parse_action(moves[-1]))
        assert (state.termination, left) == ("checkmate", 1)


def test_go_mate_without_mate_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_task, "NO_MATE_SECONDS", 0.1)
    with EngineClient() as client:
        client.send("position startpos", "go mate 1")
        assert client.wait() in legal_moves(Chess())
        client.send("go mate 20")
        time.sleep(0.3)
        assert len(client.bestmoves()) == 1
        client.send("stop")
        client.wait(2, 0.5)


def test_searchmoves_restrict_only_the_root() -> None:
    with EngineClient(MultiPV=5) as client:
        client.send("position startpos", "go nodes 300")
        client.wait()
        client.send("go nodes 300 searchmoves a2a3 h2h3 e2e9")
        assert client.wait(2) in ("a2a3", "h2h3")
        assert any("e2e9" in line for line in client.info_strings())
        last = [line for line in client.infos() if field(line, "multipv") == 1][-1]
        assert field(last, "nodes") == 300
        assert field(client.infos()[-1], "multipv") == 2
        # A restricted tree is not reused for an unrestricted search.
        client.send("go nodes 300")
        assert client.wait(3) not in ("a2a3", "h2h3")
        # The mating move is not among searchmoves.
        client.send(f"position fen {MORPHY}", "go nodes 200 searchmoves a1b1 a1c1")
        assert client.wait(4) in ("a1b1", "a1c1")
        assert " score cp" in client.infos()[-2]
        client.send("go nodes 200")
        assert client.wait(5) == "a1a6"
        assert len(client.info_strings()) == 1


def test_tree_is_reused_while_game_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[Any] = []
    retained = pondertree.Hybrid.tree
    monkeypatch.setattr(pondertree.Hybrid, "tree", lambda self, state: trees.append(state) or retained(self, state))
    with EngineClient() as client:
        client.send("position startpos", "go nodes 400")
        client.wait()
        client.send("position startpos moves e2e4 e7e5", "go nodes 400")
        client.wait(2)
        client.send("position startpos moves e2e4 e7e5 g1f3 b8c6 f1b5 a7a6", "go nodes 400")
        client.wait(3)
        assert len(trees) == 1
        for number, command in enumerate(
            ("position startpos moves d2d4", "ucinewgame", "setoption name ExplorationConstant value 2"), start=2
        ):
            client.send(command, "go nodes 100")
            client.wait(number + 2)
            assert len(trees) == number
        client.send("setoption name MultiPV value 2", "go nodes 100")
        client.wait(6)
        assert len(trees) == 4


def test_clock_is_used_with_tree_reuse() -> None:
    """The first slice contains the root's mate search and must not determine the speed estimate."""
    with EngineClient() as client:
        moves = ""
        for number in range(1, 5):
            client.send(f"position startpos{moves and ' moves' + moves}", "go wtime 8000 btime 8000")
            best = client.wait(number)
            assert field(client.infos()[-1], "nodes") > 100
            state = client.session._game.state.play(client.session._game.state.parse_action(best))
            moves += f" {best} {legal_moves(state)[0]}"


def test_searchmoves_without_mating_move_are_searched() -> None:
    with EngineClient() as client:
        for position, others in ((MORPHY, "c8d7 a1b1"), (BACK_RANK, "a1a2 e1e2"), (MATED_SOON, "g8h8")):
            number = len(client.bestmoves())
            client.send(f"position fen {position}", "go nodes 200", f"go nodes 100 searchmoves {others}")
            assert client.wait(number + 2) in others.split()
            assert client.infos()[-1].startswith("info depth")
        assert not client.info_strings()


def test_invalid_limit_falls_back_to_movetime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.uci.protocol.FALLBACK_MOVETIME", 30)
    with EngineClient() as client:
        client.send("position startpos", "go movetime abc")
        client.wait()
        assert any("no limit is left" in line for line in client.info_strings())
        client.send("position startpos move e2e4")
        assert client.session._game.moves == ()
        assert "startpos" in client.info_strings()[-1]


def test_reply_without_time_comes_from_previous_tree() -> None:
    """Without time to advance the tree, its best move for the new position is read without advancing."""
    with EngineClient() as client:
        client.send("position startpos", "go nodes 3000")
        best = client.wait()
        reply = client.infos()[-1].split(" pv ")[1].split()[1]
        client.send(f"position startpos moves {best} {reply}")
        options, game = client.session.options, client.session._game
        expected = client.session._reuse.expected(options, game)
        assert expected in legal_moves(game.state)
        assert client.session._reuse.tree(options, game, None).result().move == expected
        client.send("go wtime 1 btime 1")
        assert client.wait(2) == expected


def test_game_continues_after_automatic_draw() -> None:
    """The state ends in an automatic draw; the engine continues."""
    shuffle = " ".join(("g1f3", "g8f6", "f3g1", "f6g8") * 4)
    with EngineClient() as client:
        client.send(f"position startpos moves {shuffle[:-5]}", "go nodes 200")
        client.wait()
        client.send(f"position startpos moves {shuffle}", "go nodes 200")
        assert client.wait(2) in legal_moves(Chess())
        client.send(f"position startpos moves {shuffle} e2e4 e7e5", "go nodes 200")
        assert client.wait(3) in legal_moves(client.session._game.state)
        assert not client.info_strings()


def test_infinite_and_ponder_wait_for_stop_or_ponderhit() -> None:
    with EngineClient(Ponder="true", Hash=1) as client:
        for number, (fen, go, end) in enumerate(
            [
                (MORPHY, "go infinite", "stop"),
                (MORPHY, "go ponder wtime 1000 btime 1000", "ponderhit"),
                (MORPHY, "go ponder movetime 10", "stop"),
                (STALEMATE, "go infinite", "stop"),
                (ONE_MOVE, "go ponder wtime 1000 btime 1000", "ponderhit"),
                ("4k3/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "go", "stop"),
                ("4k3/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "go infinite nodes 10", "stop"),
            ],
            start=1,
        ):
            client.send(f"position fen {fen}", go)
            time.sleep(0.3)
            assert len(client.bestmoves()) == number - 1
            if "infinite" in go:
                client.send("ponderhit")
            client.send(end)
            client.wait(number, 1.0)
        client.send("ponderhit", "stop", "stop", "ponderhit", "isready")
        assert client.output[-1] == "readyok"


def test_bestmove_names_ponder_move() -> None:
    with EngineClient(Ponder="true") as client:
        client.send("position startpos", "go nodes 500")
        best = client.wait()
        words = client.bestmoves()[0].split()
        assert words[2] == "ponder"
        assert words[3] in legal_moves(Chess().play(Chess().parse_action(best)))
        # After ponderhit the clock runs.
        client.send(f"position startpos moves {best} {words[3]}", "go ponder wtime 2000 btime 2000 winc 0 binc 0")
        time.sleep(0.4)
        begun = time.perf_counter()
        client.send("ponderhit")
        client.wait(2, 1.5)
        assert time.perf_counter() - begun < 1.0


def test_go_depth_reaches_mean_depth() -> None:
    with EngineClient() as client:
        client.send("position startpos", "go depth 4")
        client.wait()
        assert field(client.infos()[-1], "depth") >= 4


def test_full_tree_replies() -> None:
    with EngineClient(Hash=1) as client:
        client.send("position startpos", "go wtime 600000 btime 600000")
        client.wait(1, 10.0)
        assert field(client.infos()[-1], "hashfull") > 800
        client.send("go nodes 1000000")
        assert client.wait(2, 10.0) in legal_moves(Chess())


def test_multithreaded_search_is_reproducible() -> None:
    outputs = []
    for _ in range(2):
        with EngineClient(Threads=2) as client:
            client.send("position startpos", "go nodes 500")
            outputs.append((client.wait(), client.infos()[-1].split(" pv ")[1]))
    assert outputs[0] == outputs[1]


# --- when ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"Threads": 2}, {"MultiPV": 4}])
def test_stop_replies_within_100_ms(options: dict[str, Any]) -> None:
    """100 ms are promised; a loaded machine gets more here."""
    chance = random.Random(1)
    waits = []
    with EngineClient(**options) as client:
        for number in range(1, 16):
            client.send(f"position startpos moves {chance.choice(['e2e4', 'd2d4', 'g1f3'])}", "go infinite")
            time.sleep(chance.choice([0.0, 0.001, 0.02, 0.1]))
            begun = time.perf_counter()
            client.send("stop")
            client.wait(number)
            waits.append(time.perf_counter() - begun)
    assert sorted(waits)[len(waits) // 2] < 0.1
    assert max(waits) < 0.4


@pytest.mark.parametrize(
    "clock",
    [
        "1000 winc 10",
        "100 winc 0",
        "5000 movestogo 1",
        "10 winc 0",
        "50 winc 5000",
        "-100",
        "0",
        "1",
        "99999999999 winc 0",
    ],
)
def test_reply_arrives_before_clock_ends(clock: str) -> None:
    with EngineClient() as client:
        begun = time.perf_counter()
        client.send("position startpos moves e2e4 e7e5", f"go wtime {clock}")
        if clock.startswith("9999"):
            time.sleep(0.05)
            client.send("stop")
        client.wait(1, 8.0)
        passed = 1000 * (time.perf_counter() - begun)
        assert passed < max(int(clock.split()[0]), 200)


def test_single_legal_move_is_played_at_once() -> None:
    with EngineClient() as client:
        begun = time.perf_counter()
        client.send(f"position fen {ONE_MOVE}", "go wtime 600000 btime 600000")
        assert client.wait() in legal_moves(Chess(ONE_MOVE))
        assert time.perf_counter() - begun < 0.5


# --- what the tree offers for it ----------------------------------------------------------------------------------


def test_depths_match_walk_of_tree() -> None:
    result = pondertree.Hybrid(num_simulations=400, seed=1).run(Chess())
    total, deepest, level, depth = 0, 0, [result.root], 0
    while level:
        edges = [result._view.edges(node._index) for node in level]
        tried = sum(int(columns[1].sum()) for columns in edges)
        total, depth = total + tried, depth + 1
        deepest = depth if tried else deepest
        level = [child for node in level for child in node.children.values() if child._index >= 0]
    assert result.depths() == (pytest.approx(total / 400), deepest)


def test_restricted_root_searches_only_given_actions() -> None:
    state = Chess(MORPHY)
    tree = pondertree.Hybrid(seed=1).tree(state)
    with pytest.raises(pondertree.PondertreeError, match="when it has its priors"):
        tree._forest._core.restrict(0, [state.parse_action("a1b1")])
    retained = [state.parse_action(move) for move in ("a1b1", "a1c1")]
    with pytest.raises(pondertree.PondertreeError, match="none of the actions"):
        tree.restrict([4671])
    tree.restrict(retained)
    tree.simulate(100)
    result = tree.result()
    assert result.proven is None
    assert set(np.flatnonzero(result.visits)) == set(retained)
    assert sum(child.prior for child in result.root.children.values()) == pytest.approx(1.0, abs=1e-6)
    tree.advance(retained[0])
    tree.simulate(50)
    assert len(tree.result()._view.edges(0)[0]) == len(tree.state.legal_actions())


def test_session_leaves_no_threads() -> None:
    before = threading.active_count()
    with EngineClient() as client:
        client.send("position startpos", "go nodes 50")
        client.wait()
    time.sleep(0.1)
    assert threading.active_count() == before
