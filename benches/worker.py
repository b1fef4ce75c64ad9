"""What every measured process does: read a job from each line of stdin, answer it by one line of JSON.

Standard library only, for it also runs in the environments of the peers. A process lives through all rounds of a
comparison and is idle while its rival is measured.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

#: Given the settings of a job, does one unit of work each time it is called, and says how many things it has done.
Work = Callable[[], int]


def rate(make: Callable[..., Work], *, seconds: float, **settings: Any) -> dict[str, Any]:
    """Calls the work until `seconds` of this process's CPU time are spent; once before that, to warm up."""
    work = _made(make, settings)
    units, cpu, wall = 0, time.process_time(), time.perf_counter()
    while True:
        units += work()
        spent = time.process_time() - cpu
        if spent >= seconds:
            return {"units": units, "cpu": spent, "wall": time.perf_counter() - wall}


_kept: dict[str, Work] = {}


def _made(make: Callable[..., Work], settings: dict[str, Any]) -> Work:
    name = f"{make.__name__} {json.dumps(settings, sort_keys=True)}"
    if name not in _kept:
        _kept[name] = make(**settings)
        _kept[name]()
    return _kept[name]


def resident_bytes() -> int:
    """Memory this process holds now; where the system does not tell (macOS), the most it has ever held."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def serve(rates: dict[str, Callable[..., Work]], answers: dict[str, Callable[..., dict[str, Any]]]) -> None:
    """Answers jobs until stdin ends: `rates` are timed here, `answers` give their own numbers."""
    for line in sys.stdin:
        job = json.loads(line)
        name = job.pop("job")
        answer = rate(rates[name], **job) if name in rates else answers[name](**job)
        print(json.dumps(answer), flush=True)
