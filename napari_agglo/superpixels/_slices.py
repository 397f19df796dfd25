"""Long kernels run in slices, so that progress is seen and a cancel is heard between two of them.

A slice is a bounded number of voxel visits. It takes well under 0.2 s even where every visit
misses the caches (some 100 ns), so a window stays alive and a cancel feels immediate.
"""

from __future__ import annotations

from collections.abc import Callable

BUDGET = 1 << 19  # visits in a slice

Tick = Callable[[str, int, int], None]  # stage, done, total


def in_slices(step: Callable[[int], int], total: int, stage: str, tick: Tick) -> None:
    """Call ``step(budget)`` until it returns 0 visits, telling `tick` after each call."""
    done = 0
    while visits := step(BUDGET):
        done += visits
        tick(stage, min(done, total), total)
