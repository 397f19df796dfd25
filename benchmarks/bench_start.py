"""Cold start: the time that a new process spends before the first result."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.results import Table, below

# Print the time of the first call, less that of a second call of the same work.
_FIRST_CALL = """
import time
import numpy as np
import numba, scipy.ndimage
import napari_agglo as agglo

def work():
    rng = np.random.default_rng(0)
    boundary = rng.random((8, 16, 16)).astype(np.float32)
    superpixels = agglo.oversegment(boundary)
    tree = agglo.agglomerate(agglo.region_graph(superpixels, boundary))
    labels = tree.segment(0.5)
    agglo.split_vi(labels, superpixels)

start = time.perf_counter()
work()
first = time.perf_counter() - start
start = time.perf_counter()
work()
print(first - (time.perf_counter() - start))
"""


def _python(code: str, cache: str) -> tuple[float, str]:
    """Return the wall seconds of a new interpreter that runs `code`, and its output."""
    root = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": root}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, done.stdout


def run(table: Table, small: bool = False) -> None:
    """Measure the import, the first call of all, and the first call with kernels cached."""
    with tempfile.TemporaryDirectory() as cache:
        bare = min(_python("pass", cache)[0] for _ in range(5))
        took = min(_python("import napari_agglo", cache)[0] for _ in range(5)) - bare
        table.add("import napari_agglo (wall)", took, goals=below(took, 0.5))
        cold = float(_python(_FIRST_CALL, cache)[1])
        table.add("first call of all, compiling (wall)", cold)
        warm = min(float(_python(_FIRST_CALL, cache)[1]) for _ in range(3))
        table.add("first call, kernels cached (wall)", warm, goals=below(warm, 1))
