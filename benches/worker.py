"""The loop of measured processes: reads a job per line of stdin and writes its result as a line of JSON.

Standard library only, since it also runs in the environments of peers. A process lives through all rounds of a
comparison and is idle while the other side is measured.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

#: Takes the parameters of a job and returns a function that does one unit of work and returns the operations done.
Work = Callable[[], int]


def rate(make: Callable[..., Work], *, seconds: float, **settings: Any) -> dict[str, Any]:
    """Calls the work once to warm up, then until `seconds` of CPU time of this process are spent."""
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
    """Returns the resident set size; on macOS, which does not report it, the peak."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def serve(rates: dict[str, Callable[..., Work]], handlers: dict[str, Callable[..., dict[str, Any]]]) -> None:
    """Runs jobs until stdin ends: `rates` are timed here, `answers` return their own figures."""
    for line in sys.stdin:
        job = json.loads(line)
        name = job.pop("job")
        answer = rate(rates[name], **job) if name in rates else handlers[name](**job)
        print(json.dumps(answer), flush=True)
