"""How two programs are compared on a machine that others use too.

Absolute rates on such a machine mean little; a ratio means something if both sides were measured under the same
conditions. So: one process per side, single thread, measured in turn in short rounds, the order changing from round to
round; rates per second of CPU time, which the other users of the machine disturb less than wall time; the ratio of each
round; and of those the median, with the lowest and the highest as the spread.
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

#: What each peer's environment holds, as pip is told; the first name is that of its folder, `.venv-NAME`.
PEERS = {
    "openspiel": ("peer_openspiel.py", ("open_spiel==2.0.2",)),
    "chess": ("peer_chess.py", ("chessmg==0.6.0",)),
    "python": ("peer_python.py", ("mcts==1.0.4", "mctspy==0.1.1")),
    # Its trees need nothing but the wheel; its dependencies would be gigabytes.
    "lightzero": (
        "peer_lightzero.py",
        ("--no-deps", "--only-binary=:all:", "LightZero==0.2.0", "numpy==1.26.4"),
    ),
    "mctx": ("peer_mctx.py", ("mctx==0.0.71", "jax==0.10.2", "jaxlib==0.10.2")),
}


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    #: Rounds of each comparison.
    rounds: int
    #: CPU seconds of one side of one round, at least.
    seconds: float
    #: All sizes (simulations, depths) as the bars are stated, or small.
    full: bool = True
    #: Whether there are peers at all.
    peers: bool = True

    def size(self, full: int, tiny: int) -> int:
        """A size that counts for a bar, or one that only shows that the code runs."""
        return full if self.full else tiny


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    bench: str
    what: str
    unit: str
    ours: float | None
    #: None where there is no peer, or it could not be had.
    peer: float | None
    peer_name: str
    #: What is compared with the bar: a ratio, or `ours` itself.
    measured: float | None
    lowest: float | None = None
    highest: float | None = None
    bar: float | None = None
    #: The bar is an upper limit.
    at_most: bool = False
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """None where there is no bar or nothing to hold against it."""
        if self.bar is None or self.measured is None:
            return None
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar


class Worker:
    """A process that does jobs (see worker.py)."""

    def __init__(self, python: Path | str, script: str, environment: dict[str, str] | None = None) -> None:
        # numpy would start threads of its own, whose idling counts as CPU time of the process.
        environment = (environment or dict(os.environ)) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [str(python), "-B", str(HERE / script)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def do(self, job: str, **settings: Any) -> Any:
        """Does a job and gives its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"job": job, **settings}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{job}({settings}): the process ended with {self.process.wait()}")
        return json.loads(line)

    def rate(self, job: str, **settings: Any) -> float:
        """Things done per CPU second."""
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
    """A fresh process with Pondertree."""
    return Worker(sys.executable, "ours.py")


def peer(name: str, plan: Plan) -> Worker | None:
    """A fresh process with a peer, its environment made if there is none; None if it cannot be had."""
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


def duel(
    plan: Plan,
    mine: Worker,
    other: Worker | None,
    job: str,
    settings: dict[str, Any],
    *,
    other_settings: dict[str, Any] | None = None,
    **row: Any,
) -> Row:
    """Measures both sides in turn; the row has the median ratio."""
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
    """Median, lowest and highest."""
    return statistics.median(values), min(values), max(values)
