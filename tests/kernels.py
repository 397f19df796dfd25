"""Compile the kernels once, in the open, before tests that would each wait for them.

``python tests/kernels.py`` is a step of `make test`, so that the parts that run side by side then
load the kernels from numba's cache. Fixtures call the same function, so that in a run of its own
the time shows as the set-up of a fixture and not as the time of whichever test comes first.
"""

from __future__ import annotations

import time

from napari_agglo.session import warm_up

if __name__ == "__main__":
    for stage in ("merge", "evaluate", "learn", "edit", "paint"):
        begun = time.perf_counter()
        warm_up([stage])
        print(f"kernels that {stage}: {time.perf_counter() - begun:.0f} s", flush=True)
