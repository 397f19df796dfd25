"""Compile the kernels once, in the open, before tests that would each wait for them.

``python tests/kernels.py`` is a step of `make test`, so that the parts that run side by side then
load the kernels from numba's cache. Fixtures call the same functions, so that in a run of its own
the time shows as the set-up of a fixture and not as the time of whichever test comes first.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

import napari_agglo as agglo
from napari_agglo.errors import InvalidInput


def _volume(shape: tuple[int, ...]) -> tuple[agglo.RegionGraph, np.ndarray]:
    """Return a graph of small boxes with random cues, and a gold standard of halves."""
    grid = np.indices(shape)
    superpixels = np.ravel_multi_index(tuple(g // 3 for g in grid), tuple(n // 3 for n in shape))
    cue = np.random.default_rng(0).random(shape, np.float32)
    return agglo.region_graph(superpixels + 1, cue), (grid[-1] // 6 + 1).astype(np.uint8)


@cache
def compile_pipeline() -> None:
    """Run every stage from superpixels to curves on next to nothing, in 2-D and 3-D."""
    for shape in ((12, 12), (6, 12, 12)):
        cue = np.random.default_rng(0).random(shape, np.float32)
        agglo.oversegment(cue, min_size=4)
        graph, gold = _volume(shape)
        for policy in ("mean", agglo.train(graph, gold, epochs=2)):
            tree = agglo.agglomerate(graph, policy)
            agglo.merge_curve(tree, gold)
            agglo.vi_curve(tree, gold)
            agglo.breakdown(tree.segment(0.5), gold)
    agglo.train(graph, gold, strategy="lash", epochs=1)


@cache
def compile_edits() -> None:
    """Make every kind of edit, by the mean and by a forest, and look above it."""
    graph, gold = _volume((12, 12))
    for policy in ("mean", agglo.train(graph, gold, epochs=1)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "compiled.agglo"
            with agglo.Session.create(path, graph, policy, gold=gold) as session:
                _edit(session)


def _edit(session: agglo.Session) -> None:
    session.threshold = 0.0
    session.merge(1, 2, 3)
    for method in ("min_cut", "seeded", "tree"):
        with suppress(InvalidInput):  # some refuse what others cut
            session.cut(1, [[1], [3]], method)
            session.undo()
    with suppress(InvalidInput):
        session.cut(5, points=[[(3, 0)], [(5, 2)]])
    session.lock(9)
    session.unlock(9)
    session.threshold = 1.0
    session.look()
    session.queue.next(3)


if __name__ == "__main__":
    for step in (compile_pipeline, compile_edits):
        begun = time.perf_counter()
        step()
        print(f"{step.__name__.replace('_', ' ')}: {time.perf_counter() - begun:.0f} s", flush=True)
