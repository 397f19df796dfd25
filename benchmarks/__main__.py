"""``make bench``: every figure that the documentation quotes, measured in one run."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from benchmarks import (
    bench_engine,
    bench_evaluate,
    bench_learning,
    bench_session,
    bench_start,
    bench_superpixels,
    bench_window,
)
from benchmarks.timing import Table


def main() -> int:
    """Print the table."""
    names = ("numpy", "numba", "scikit-image", "bioimage-cpp", "waterz", "higra")
    machine = f"Python {platform.python_version()}, {platform.machine()}"
    print(f"{machine}; {', '.join(map(_said, names))}")
    print("CPU seconds, one thread, least of several interleaved runs.\n")
    print(Table.header())
    table = Table()
    bench_start.run(table)
    bench_engine.run(table)
    bench_evaluate.run(table)
    bench_learning.run(table)
    bench_session.run(table)
    bench_window.run(table)
    print()
    bench_superpixels.speed(256)
    return 0


def _said(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"no {name}"


if __name__ == "__main__":
    sys.exit(main())
