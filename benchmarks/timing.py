"""Measurement of time: CPU seconds, one thread, the work of all libraries interleaved.

Machines are shared and clocks vary; only the ratio of two figures of one run is meaningful. Every
entry is called in turn, `runs` times, and the least CPU time of each is kept; a first, untimed
round compiles kernels and warms caches.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def interleaved(
    entries: dict[str, Callable[[], object]], runs: int = 3, warm: bool = True
) -> dict[str, float]:
    """Return the least CPU seconds of each entry over `runs` rounds."""
    each = rounds(entries, runs, warm)
    return {name: min(times[name] for times in each) for name in entries}


def rounds(
    entries: dict[str, Callable[[], object]], runs: int = 3, warm: bool = True
) -> list[dict[str, float]]:
    """Return the CPU seconds of each entry in each of `runs` rounds."""
    if warm:
        for work in entries.values():
            work()
    return [{name: cpu_seconds(work) for name, work in entries.items()} for _ in range(runs)]


def least(work: Callable[[], object], runs: int = 3, warm: bool = True) -> float:
    """Return the least CPU seconds of `runs` calls."""
    return interleaved({"": work}, runs, warm)[""]


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Discard what C++ code prints to standard output."""
    sys.stdout.flush()
    saved = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(nowhere)
