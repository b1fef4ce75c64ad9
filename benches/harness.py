"""Paired comparison of two programs on a shared machine.

Absolute rates vary with other load, so ratios under equal conditions are reported: one single-threaded process per
side, measured alternately in short rounds of alternating order, in units of work per second of CPU time, which other
load affects less than wall time. The result is the median of the ratios per round, with minimum and maximum.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent

#: Requirements of each peer's environment; the first name gives its folder, `.venv-NAME`.
PEERS = {
    "openspiel": ("peer_openspiel.py", ("open_spiel==2.0.2",)),
    "chess": ("peer_chess.py", ("chessmg==0.6.0",)),
    "python": ("peer_python.py", ("mcts==1.0.4", "mctspy==0.1.1")),
    # Its trees need only the wheel; the dependencies would be gigabytes.
    "lightzero": (
        "peer_lightzero.py",
        ("--no-deps", "--only-binary=:all:", "LightZero==0.2.0", "numpy==1.26.4"),
    ),
    "mctx": ("peer_mctx.py", ("mctx==0.0.71", "jax==0.10.2", "jaxlib==0.10.2")),
}


@dataclass(frozen=True)
class Plan:
    """The extent of the measurement."""

    #: Rounds of each comparison.
    rounds: int
    #: Minimum CPU seconds per side and round.
    seconds: float
    #: Whether sizes (simulations, depths) are those of the bars, or small.
    full: bool = True
    #: Whether peers are measured.
    peers: bool = True

    def size(self, full: int, tiny: int) -> int:
        """Returns the size for the bars, or the small one."""
        return full if self.full else tiny


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    bench: str
    what: str
    unit: str
    ours: float | None
    #: None without a peer, or if it could not be installed.
    peer: float | None
    peer_name: str
    #: The value compared with the bar: a ratio, or `ours` itself.
    measured: float | None
    lowest: float | None = None
    highest: float | None = None
    bar: float | None = None
    #: The bar is an upper limit.
    at_most: bool = False
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the bar is met; None without a bar or a measurement."""
        if self.bar is None or self.measured is None:
            return None
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar


class Worker:
    """A process that runs jobs (see worker.py)."""

    def __init__(self, python: Path | str, script: str, environment: dict[str, str] | None = None) -> None:
        # NumPy would start threads, whose spinning counts as CPU time of the process.
        environment = (environment or dict(os.environ)) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [str(python), "-B", str(HERE / script)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def do(self, job: str, **settings: Any) -> Any:
        """Runs a job and returns its result."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"job": job, **settings}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{job}({settings}): the process ended with {self.process.wait()}")
        return json.loads(line)

    def rate(self, job: str, **settings: Any) -> float:
        """Returns units of work per CPU second."""
        answer = self.do(job, **settings)
        return float(answer["units"] / answer["cpu"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def ours() -> Worker:
    """Starts a process with Pondertree."""
    return Worker(sys.executable, "ours.py")


def peer(name: str, plan: Plan) -> Worker | None:
    """Starts a process with a peer, creating its environment if necessary; None if that fails."""
    script, packages = PEERS[name]
    if not plan.peers:
        return None
    folder = HERE / f".venv-{name}"
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != " ".join(packages):
        print(f"making {folder.name}: {' '.join(packages)}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        if subprocess.call([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *packages]):
            print(f"{' '.join(packages)} cannot be installed here: measured without", file=sys.stderr)
            return None
        stamp.write_text(" ".join(packages), encoding="utf-8")
    return Worker(python, script)


def compare_pair(
    plan: Plan,
    mine: Worker,
    other: Worker | None,
    job: str,
    settings: dict[str, Any],
    *,
    other_settings: dict[str, Any] | None = None,
    **row: Any,
) -> Row:
    """Measures both sides alternately and returns the row of the median ratio."""
    my_rates: list[float] = []
    other_rates: list[float] = []
    for number in range(plan.rounds):
        sides = [(mine, settings, my_rates)]
        if other is not None:
            sides.append((other, other_settings or settings, other_rates))
        for worker, given, rates in sides if number % 2 == 0 else reversed(sides):
            rates.append(worker.rate(job, seconds=plan.seconds, **given))
    if other is None:
        return Row(ours=statistics.median(my_rates), peer=None, measured=None, **row)
    measured, lowest, highest = spread([a / b for a, b in zip(my_rates, other_rates, strict=True)])
    return Row(
        ours=statistics.median(my_rates),
        peer=statistics.median(other_rates),
        measured=measured,
        lowest=lowest,
        highest=highest,
        **row,
    )


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns the median, the minimum and the maximum."""
    return statistics.median(values), min(values), max(values)
