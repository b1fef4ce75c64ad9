"""Worker processes: killed with their parent or alone, without lost or changed games."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.matches import lines_without_times, shape

from pondertree.errors import PlayerError
from pondertree.match import play_match, read_record

KILLED = """
import sys
from pondertree.match import play_match

if __name__ == "__main__":
    play_match("uct:num_simulations=1500", "uct:num_simulations=300", "connect4", num_games=24, seed=8,
               concurrency=int(sys.argv[2]), out=sys.argv[1], resume=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 2])
def test_killed_match_resumes_to_same_result(tmp_path: Path, concurrency: int) -> None:
    script = tmp_path / "play.py"
    script.write_text(KILLED)
    whole, part = tmp_path / "whole", tmp_path / "part"
    subprocess.run([sys.executable, script, whole, "1"], check=True, timeout=60)
    kills = 0
    for num_pairs in (2, 5, 8):
        started = subprocess.Popen([sys.executable, script, part, str(concurrency)])
        while started.poll() is None:
            if part.exists() and part.read_bytes().count(b"\n") > num_pairs:
                os.kill(started.pid, signal.SIGKILL)
                started.wait()
                kills += 1
                break
            time.sleep(0.005)
    assert kills
    before = read_record(part)[1]
    assert 0 < len(before) <= 12
    subprocess.run([sys.executable, script, part, str(concurrency)], check=True, timeout=60)
    assert lines_without_times(part) == lines_without_times(whole)
    # Recorded pairs are not played again.
    after = {pair.number: pair for pair in read_record(part)[1]}
    assert all(after[pair.number] == pair for pair in before)


def dies_once(state: Any) -> int:
    """Kills its process at the first move, once, by a marker file."""
    note = Path(os.environ["DIES_ONCE"])
    if not note.exists():
        note.write_text("done")
        os.kill(os.getpid(), signal.SIGKILL)
    return int(state.legal_actions()[0])


def dies(state: Any) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def raises(state: Any) -> int:
    raise ZeroDivisionError("of all things")


@pytest.mark.slow
def test_dead_worker_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIES_ONCE", str(tmp_path / "note"))
    result = play_match(dies_once, "random", "connect4", num_games=8, seed=1, concurrency=2)
    assert (tmp_path / "note").exists()
    assert len(result.games) == 8
    assert shape(result)[2:] == shape(play_match("first", "random", "connect4", num_games=8, seed=1, concurrency=1))[2:]
    with pytest.raises(PlayerError, match=r"pair \d+ died \(exit code -9\), and again"):
        play_match(dies, "random", "connect4", num_games=8, seed=1, concurrency=2)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_player_exception_in_worker_names_player(concurrency: int) -> None:
    with pytest.raises(PlayerError, match=r"raises \(player 2\) raised ZeroDivisionError in game \d+ .*of all things"):
        play_match("random", raises, "connect4", num_games=8, concurrency=concurrency)


def test_script_without_main_guard_raises_usage_error(tmp_path: Path) -> None:
    script = tmp_path / "play.py"
    script.write_text(
        "from pondertree.match import play_match\n"
        "play_match('random', 'first', 'connect4', num_games=8, concurrency=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "UsageError: a process for the games could not be started" in done.stderr
    assert '`if __name__ == "__main__":`' in done.stderr


FIRST_PROCESS = """
import multiprocessing, signal, time
from pathlib import Path
from pondertree.match.worker_process import deferred_interrupts

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(30,), daemon=True)
    with deferred_interrupts():
        process.start()
    status = Path(f"/proc/{process.pid}/status").read_text()
    [blocked] = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk")]
    print(bool(blocked >> (signal.SIGINT - 1) & 1), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    process.kill()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_first_worker_starts_with_sigint_blocked(tmp_path: Path) -> None:
    """Also while multiprocessing starts its resource tracker, which unblocks SIGINT in the parent."""
    script = tmp_path / "first.py"
    script.write_text(FIRST_PROCESS)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True False\n"


DEFERRED = """
import signal, threading
from pondertree.match.worker_process import deferred_interrupts

# Another thread receives the signal, which the main thread's mask does not block.
wait = threading.Event()
threading.Thread(target=wait.wait, daemon=True).start()
reached = False
try:
    with deferred_interrupts():
        import os
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
        reached = True
except KeyboardInterrupt:
    print("interrupted", reached, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupt_while_a_worker_starts_is_deferred_until_it_has_started(tmp_path: Path) -> None:
    script = tmp_path / "deferred.py"
    script.write_text(DEFERRED)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert done.stdout == "interrupted True True\n"
