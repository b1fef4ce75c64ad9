"""The engine in this process: what it answers, when, and what the tree offers for it."""

from __future__ import annotations

import random
import re
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.support.uci_talk import BACK_RANK, MATED, MATED_SOON, MORPHY, ONE_MOVE, ROOK, STALEMATE, Talk, field

import pondertree
from pondertree.games import Chess
from pondertree.uci import info
from pondertree.uci import search_task as thinking
from pondertree.uci.options import TABLE
from pondertree.uci.position import legal_moves


def test_it_introduces_itself() -> None:
    with Talk() as talk:
        talk.tell("uci", "isready")
        assert talk.said[0] == f"id name Pondertree {pondertree.__version__}"
        assert talk.said[-2:] == ["uciok", "readyok"]
        assert sum(line.startswith("option name ") for line in talk.said) == len(TABLE)


def test_a_search_by_nodes_repeats() -> None:
    answers = []
    for _ in range(2):
        with Talk() as talk:
            talk.tell("position startpos moves e2e4", "go nodes 500")
            talk.wait()
            talk.tell("position startpos moves e2e4 e7e5 g1f3", "go nodes 500")
            talk.wait(2)
            last = talk.infos()[-1]
            assert field(last, "nodes") == 500
            answers.append((talk.moves(), re.sub(r"(nps|time) \d+", "", last)))
    assert answers[0] == answers[1]


def test_what_info_says() -> None:
    with Talk(MultiPV=3, UCI_ShowWDL="true", VerboseMoveStats="true") as talk:
        talk.tell("position startpos", "go nodes 800")
        best = talk.wait()
        first, second, third = talk.infos()[-3:]
        assert [field(line, "multipv") for line in (first, second, third)] == [1, 2, 3]
        assert len({line.split(" pv ")[1].split()[0] for line in (first, second, third)}) == 3
        assert first.split(" pv ")[1].split()[0] == best
        assert 1 <= field(first, "depth") <= field(first, "seldepth")
        assert 0 <= field(first, "hashfull") <= 1000
        [wdl] = re.findall(r" wdl (\d+) (\d+) (\d+) ", first)
        assert sum(map(int, wdl)) == 1000
        assert abs(field(first, "score cp")) < 200
        statistics = [line for line in talk.remarks() if " N: " in line]
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
def test_mates_and_ends(fen: str, go: str, score: str, best: str | None) -> None:
    with Talk() as talk:
        begun = time.perf_counter()
        talk.tell(f"position fen {fen}", go)
        answer = talk.wait()
        assert time.perf_counter() - begun < 1.5
        assert f" score {score}" in talk.infos()[-1]
        assert answer == best or (best is None and answer in legal_moves(Chess(fen)))
        if score == "mate 2":
            assert len(talk.infos()[-1].split(" pv ")[1].split()) == 3


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
def test_a_decided_root_has_as_many_lines_as_were_asked_for(fen: str, count: int, scores: list[str], go: str) -> None:
    """Each legal move with what is known of it, by a proof or by a search of its own."""
    with Talk(MultiPV=count) as talk:
        talk.tell(f"position fen {fen}", go)
        if go == "go infinite":
            time.sleep(0.3)
            talk.tell("stop")
        best = talk.wait()
        legal = legal_moves(Chess(fen))
        last = talk.infos()[-min(count, len(legal)) :]
        assert len(last) == min(count, len(legal))
        assert [field(line, "multipv") for line in last] == list(range(1, len(last) + 1))
        moves = [line.split(" pv ")[1].split()[0] for line in last]
        assert moves[0] == best
        assert len(set(moves)) == len(moves)
        for line, score in zip(last, scores, strict=False):
            assert f" score {score} " in line
        # A line tells a mate to its end.
        assert len(last[0].split(" pv ")[1].split()) == 2 * abs(field(last[0], "score mate")) - (scores[0][5] != "-")


def test_lines_by_table_are_in_the_order_of_what_they_are_worth() -> None:
    lost, won = Chess("8/8/8/3k4/8/8/1K6/7R b - - 0 1"), Chess("8/8/8/8/8/2k5/7R/K7 w - - 0 1")
    longest = [line.plies for line in info.by_table(lost, legal_moves(lost))]
    assert longest == sorted(longest, reverse=True)
    lines = info.by_table(won, legal_moves(won))
    wins = [line.plies for line in lines if line.proven == 1]
    assert wins == sorted(wins)
    # Rooks that can be taken come last.
    assert [line.proven for line in lines] == [1] * len(wins) + [0] * (len(lines) - len(wins))
    assert len(wins) < len(lines) == len(legal_moves(won))


@pytest.mark.parametrize("fen", ["8/8/8/3k4/8/8/8/KQ6 w - - 0 1", "8/8/8/3k4/8/8/8/KR6 w - - 0 1"])
def test_elementary_endings_are_won_however_little_time_there_is(fen: str) -> None:
    """The mate is told at the first move, and is one move nearer at every other."""
    with Talk() as talk:
        moves: list[str] = []
        state, left = Chess(fen), None
        while not state.is_terminal:
            talk.tell(f"position fen {fen} moves {' '.join(moves)}", "go movetime 100")
            moves.append(talk.wait(len(moves) + 1))
            if state.to_play == 0:
                told = field(talk.infos()[-1], "score mate")
                assert left is None or told == left - 1
                left = told
            state = state.play(state.parse_action(moves[-1]))
        assert (state.termination, left) == ("checkmate", 1)


def test_go_mate_without_a_mate_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinking, "AFTER_NO_MATE", 0.1)
    with Talk() as talk:
        talk.tell("position startpos", "go mate 1")
        assert talk.wait() in legal_moves(Chess())
        talk.tell("go mate 20")
        time.sleep(0.3)
        assert len(talk.moves()) == 1
        talk.tell("stop")
        talk.wait(2, 0.5)


def test_searchmoves_restrict_the_root_and_nothing_else() -> None:
    with Talk(MultiPV=5) as talk:
        talk.tell("position startpos", "go nodes 300")
        talk.wait()
        talk.tell("go nodes 300 searchmoves a2a3 h2h3 e2e9")
        assert talk.wait(2) in ("a2a3", "h2h3")
        assert any("e2e9" in line for line in talk.remarks())
        last = [line for line in talk.infos() if field(line, "multipv") == 1][-1]
        assert field(last, "nodes") == 300
        assert field(talk.infos()[-1], "multipv") == 2
        # A tree that knows some moves only is not asked about all of them.
        talk.tell("go nodes 300")
        assert talk.wait(3) not in ("a2a3", "h2h3")
        # The mate is not among the moves asked for.
        talk.tell(f"position fen {MORPHY}", "go nodes 200 searchmoves a1b1 a1c1")
        assert talk.wait(4) in ("a1b1", "a1c1")
        assert " score cp" in talk.infos()[-2]
        talk.tell("go nodes 200")
        assert talk.wait(5) == "a1a6"
        assert len(talk.remarks()) == 1


def test_the_tree_is_kept_for_the_game_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[Any] = []
    kept = pondertree.Hybrid.tree
    monkeypatch.setattr(pondertree.Hybrid, "tree", lambda self, state: trees.append(state) or kept(self, state))
    with Talk() as talk:
        talk.tell("position startpos", "go nodes 400")
        talk.wait()
        talk.tell("position startpos moves e2e4 e7e5", "go nodes 400")
        talk.wait(2)
        talk.tell("position startpos moves e2e4 e7e5 g1f3 b8c6 f1b5 a7a6", "go nodes 400")
        talk.wait(3)
        assert len(trees) == 1
        for number, command in enumerate(
            ("position startpos moves d2d4", "ucinewgame", "setoption name ExplorationConstant value 2"), start=2
        ):
            talk.tell(command, "go nodes 100")
            talk.wait(number + 2)
            assert len(trees) == number
        talk.tell("setoption name MultiPV value 2", "go nodes 100")
        talk.wait(6)
        assert len(trees) == 4


def test_a_clock_is_used_also_where_the_tree_is_kept() -> None:
    """The root's search for mates takes the first slice, which says nothing of how fast the search is."""
    with Talk() as talk:
        moves = ""
        for number in range(1, 5):
            talk.tell(f"position startpos{moves and ' moves' + moves}", "go wtime 8000 btime 8000")
            best = talk.wait(number)
            assert field(talk.infos()[-1], "nodes") > 100
            state = talk.session._game.state.play(talk.session._game.state.parse_action(best))
            moves += f" {best} {legal_moves(state)[0]}"


def test_other_moves_than_the_one_that_mates() -> None:
    with Talk() as talk:
        for position, others in ((MORPHY, "c8d7 a1b1"), (BACK_RANK, "a1a2 e1e2"), (MATED_SOON, "g8h8")):
            number = len(talk.moves())
            talk.tell(f"position fen {position}", "go nodes 200", f"go nodes 100 searchmoves {others}")
            assert talk.wait(number + 2) in others.split()
            assert talk.infos()[-1].startswith("info depth")
        assert not talk.remarks()


def test_a_limit_that_cannot_be_read_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.uci.protocol.INSTEAD", 30)
    with Talk() as talk:
        talk.tell("position startpos", "go movetime abc")
        talk.wait()
        assert any("no limit is left" in line for line in talk.remarks())
        talk.tell("position startpos move e2e4")
        assert talk.session._game.moves == ()
        assert "startpos" in talk.remarks()[-1]


def test_in_a_hurry_the_old_tree_answers() -> None:
    """With no time to move the tree, what it says of the position is read off where it stands."""
    with Talk() as talk:
        talk.tell("position startpos", "go nodes 3000")
        best = talk.wait()
        reply = talk.infos()[-1].split(" pv ")[1].split()[1]
        talk.tell(f"position startpos moves {best} {reply}")
        options, game = talk.session.options, talk.session._game
        expected = talk.session._kept.expected(options, game)
        assert expected in legal_moves(game.state)
        assert talk.session._kept.tree(options, game, None).result().move == expected
        talk.tell("go wtime 1 btime 1")
        assert talk.wait(2) == expected


def test_a_game_that_goes_on_after_a_draw_by_rule() -> None:
    """The tree ends there; the engine does not."""
    shuffle = " ".join(("g1f3", "g8f6", "f3g1", "f6g8") * 4)
    with Talk() as talk:
        talk.tell(f"position startpos moves {shuffle[:-5]}", "go nodes 200")
        talk.wait()
        talk.tell(f"position startpos moves {shuffle}", "go nodes 200")
        assert talk.wait(2) in legal_moves(Chess())
        talk.tell(f"position startpos moves {shuffle} e2e4 e7e5", "go nodes 200")
        assert talk.wait(3) in legal_moves(talk.session._game.state)
        assert not talk.remarks()


def test_endless_searches_and_pondering_wait() -> None:
    with Talk(Ponder="true", Hash=1) as talk:
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
            talk.tell(f"position fen {fen}", go)
            time.sleep(0.3)
            assert len(talk.moves()) == number - 1
            if "infinite" in go:
                talk.tell("ponderhit")
            talk.tell(end)
            talk.wait(number, 1.0)
        talk.tell("ponderhit", "stop", "stop", "ponderhit", "isready")
        assert talk.said[-1] == "readyok"


def test_ponder_names_the_move_expected() -> None:
    with Talk(Ponder="true") as talk:
        talk.tell("position startpos", "go nodes 500")
        best = talk.wait()
        words = talk.moves()[0].split()
        assert words[2] == "ponder"
        assert words[3] in legal_moves(Chess().play(Chess().parse_action(best)))
        # It was expected, and comes: the clock begins to run at ponderhit.
        talk.tell(f"position startpos moves {best} {words[3]}", "go ponder wtime 2000 btime 2000 winc 0 binc 0")
        time.sleep(0.4)
        begun = time.perf_counter()
        talk.tell("ponderhit")
        talk.wait(2, 1.5)
        assert time.perf_counter() - begun < 1.0


def test_go_depth() -> None:
    with Talk() as talk:
        talk.tell("position startpos", "go depth 4")
        talk.wait()
        assert field(talk.infos()[-1], "depth") >= 4


def test_a_full_tree_answers() -> None:
    with Talk(Hash=1) as talk:
        talk.tell("position startpos", "go wtime 600000 btime 600000")
        talk.wait(1, 10.0)
        assert field(talk.infos()[-1], "hashfull") > 800
        talk.tell("go nodes 1000000")
        assert talk.wait(2, 10.0) in legal_moves(Chess())


def test_threads() -> None:
    answers = []
    for _ in range(2):
        with Talk(Threads=2) as talk:
            talk.tell("position startpos", "go nodes 500")
            answers.append((talk.wait(), talk.infos()[-1].split(" pv ")[1]))
    assert answers[0] == answers[1]


# --- when ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"Threads": 2}, {"MultiPV": 4}])
def test_stop_is_answered_at_once(options: dict[str, Any]) -> None:
    """Within 100 ms by what is promised; a busy machine is given some more here."""
    chance = random.Random(1)
    waits = []
    with Talk(**options) as talk:
        for number in range(1, 16):
            talk.tell(f"position startpos moves {chance.choice(['e2e4', 'd2d4', 'g1f3'])}", "go infinite")
            time.sleep(chance.choice([0.0, 0.001, 0.02, 0.1]))
            begun = time.perf_counter()
            talk.tell("stop")
            talk.wait(number)
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
def test_no_clock_is_overrun(clock: str) -> None:
    with Talk() as talk:
        begun = time.perf_counter()
        talk.tell("position startpos moves e2e4 e7e5", f"go wtime {clock}")
        if clock.startswith("9999"):
            time.sleep(0.05)
            talk.tell("stop")
        talk.wait(1, 8.0)
        passed = 1000 * (time.perf_counter() - begun)
        assert passed < max(int(clock.split()[0]), 200)


def test_a_single_move_is_played_at_once() -> None:
    with Talk() as talk:
        begun = time.perf_counter()
        talk.tell(f"position fen {ONE_MOVE}", "go wtime 600000 btime 600000")
        assert talk.wait() in legal_moves(Chess(ONE_MOVE))
        assert time.perf_counter() - begun < 0.5


# --- what the tree offers for it ----------------------------------------------------------------------------------


def test_depths_are_those_of_the_tree() -> None:
    result = pondertree.Hybrid(num_simulations=400, seed=1).run(Chess())
    total, deepest, level, depth = 0, 0, [result.root], 0
    while level:
        edges = [result._view.edges(node._index) for node in level]
        tried = sum(int(columns[1].sum()) for columns in edges)
        total, depth = total + tried, depth + 1
        deepest = depth if tried else deepest
        level = [child for node in level for child in node.children.values() if child._index >= 0]
    assert result.depths() == (pytest.approx(total / 400), deepest)


def test_a_restricted_root() -> None:
    state = Chess(MORPHY)
    tree = pondertree.Hybrid(seed=1).tree(state)
    with pytest.raises(pondertree.PondertreeError, match="when it has its priors"):
        tree._forest._core.restrict(0, [state.parse_action("a1b1")])
    kept = [state.parse_action(move) for move in ("a1b1", "a1c1")]
    with pytest.raises(pondertree.PondertreeError, match="none of the actions"):
        tree.restrict([4671])
    tree.restrict(kept)
    tree.simulate(100)
    result = tree.result()
    assert result.proven is None
    assert set(np.flatnonzero(result.visits)) == set(kept)
    assert sum(child.prior for child in result.root.children.values()) == pytest.approx(1.0, abs=1e-6)
    tree.advance(kept[0])
    tree.simulate(50)
    assert len(tree.result()._view.edges(0)[0]) == len(tree.state.legal_actions())


def test_threads_of_the_engine_are_gone_after_it() -> None:
    before = threading.active_count()
    with Talk() as talk:
        talk.tell("position startpos", "go nodes 50")
        talk.wait()
    time.sleep(0.1)
    assert threading.active_count() == before
