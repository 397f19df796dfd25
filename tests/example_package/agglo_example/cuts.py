"""A cut method: each superpixel goes to the nearest group, counted in boundaries crossed."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from napari_agglo.session import CutProblem, cut_method


@cut_method("nearest", label="to the nearest seed, in steps")
def cut_to_nearest(problem: CutProblem) -> list[NDArray[np.int64]]:
    """Grow all groups at once, a boundary a step: a breadth-first search from every seed."""
    neighbours: dict[int, list[int]] = {int(k): [] for k in problem.members}
    for a, b in problem.graph.edges.tolist():
        if a in neighbours and b in neighbours:
            neighbours[a].append(b)
            neighbours[b].append(a)
    group = {seed: k for k, seeds in enumerate(problem.seeds) for seed in seeds}
    waiting = deque(group)
    while waiting:
        here = waiting.popleft()
        for there in neighbours[here]:
            if there not in group:
                group[there] = group[here]
                waiting.append(there)
    parts: list[list[int]] = [[] for _ in problem.seeds]
    for superpixel, k in group.items():
        parts[k].append(superpixel)
    return [np.array(part) for part in parts]
