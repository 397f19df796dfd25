"""How time is measured here: CPU seconds, one thread, the work of all rivals interleaved.

Machines are shared and clocks vary; what counts is the ratio of two figures of one run. Every entry
is called in turn, `runs` times, and the least CPU time of each is kept; a first, untimed round
compiles kernels and warms caches.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

# One thread each; this module is imported before numpy and friends.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def interleaved(
    entries: dict[str, Callable[[], object]], runs: int = 3, warm: bool = True
) -> dict[str, float]:
    """Least CPU seconds of each entry over `runs` rounds."""
    if warm:
        for work in entries.values():
            work()
    best = dict.fromkeys(entries, float("inf"))
    for _ in range(runs):
        for name, work in entries.items():
            best[name] = min(best[name], cpu_seconds(work))
    return best


@dataclass
class Table:
    """Rows of (work, who, seconds, rate, ratio of ours to theirs, goal), printed as Markdown."""

    rows: list[tuple[str, str, str, str, str, str]] = field(default_factory=list)

    def add(self, work: str, who: str, seconds: float, rate: str = "", ratio: str = "",
            goal: str = "") -> None:  # fmt: skip
        """Add a row and show it at once."""
        took = f"{seconds:.3f} s" if seconds >= 0.1 else f"{1e3 * seconds:.2f} ms"
        self.rows.append((work, who, took, rate, ratio, goal))
        print("| " + " | ".join(self.rows[-1]) + " |", flush=True)

    def add_rivals(self, work: str, times: dict[str, float], amount: float, unit: str,
                   goal: str = "", ours: str = "napari-agglo") -> None:  # fmt: skip
        """Add a row for each entry; `amount` of `unit` is what all of them did."""
        for who, seconds in times.items():
            ratio = "" if who == ours else f"ours {seconds / times[ours]:.2f} x as fast"
            self.add(work, who, seconds, f"{amount / seconds:,.3g} {unit}/s", ratio,
                     goal if who == ours else "")  # fmt: skip

    @staticmethod
    def header() -> str:
        """Return the first two lines of the table."""
        names = ("work", "who", "CPU time", "rate", "ratio", "goal")
        return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Send what C++ code prints to standard output nowhere."""
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
