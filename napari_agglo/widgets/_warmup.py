"""Compile or load the kernels before they are needed, in the background."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from napari.utils.colormaps import label_colormap

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import agglomerate
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import region_graph
from napari_agglo.session import Session
from napari_agglo.superpixels import oversegment
from napari_agglo.widgets._colours import LABEL_COLOURS, MARKS, direct_colours

# Compile or load what edits need, in a worker, before a click would have to wait for it.


_one_at_a_time = threading.Lock()
_edits_warm = False  # this process has made every kind of edit once


def warm_edits(progress: ProgressCallback | None = None) -> None:
    """Make a few edits of next to nothing, once in a process; the first time ever takes longest."""
    global _edits_warm
    with _one_at_a_time:
        if not _edits_warm:
            with tempfile.TemporaryDirectory() as folder:
                _edit(Path(folder) / "warm.agglo", progress)
            _edits_warm = True


def _edit(path: Path, progress: ProgressCallback | None) -> None:
    rows, columns = np.indices((12, 12))
    superpixels = (rows // 3) * 4 + columns // 3 + 1
    cue = np.random.default_rng(0).random((12, 12), np.float32)
    gold = (rows // 6 + 1).astype(np.uint8)
    with Session.create(path, region_graph(superpixels, cue), gold=gold) as session:
        session.threshold = -1.0

        def cut(method: str) -> None:
            session.preview(1, [[1], [3]], method)
            session.cut(1, [[1], [3]], method)
            session.undo()

        def look() -> None:
            session.threshold = 0.6
            session.look()

        steps: tuple[Callable[[], object], ...] = (
            lambda: session.merge(1, 2, 3),
            lambda: cut("min_cut"),
            lambda: cut("seeded"),
            lambda: cut("tree"),
            lambda: session.cut(1, points=[[(0, 0)], [(2, 2)]]),
            lambda: (session.errors.now(), session.undo(), session.redo(), session.undo()),
            lambda: (
                session.lock(1),
                session.unlock(1),
                session.marks.review(1),
                session.marks.progress,
            ),
            lambda: (session.up(5), session.undo(), session.down(1), session.cut_children(1)),
            look,
        )
        for k, step in enumerate(steps):
            report(
                progress, "loading what edits need (the first time takes longest)", k, len(steps)
            )
            try:
                step()
            except InvalidInput:  # it was only to be tried
                continue


WARM = "warm"  # the name of the job


_pipeline_warm = False  # this process has run the pipeline once


def is_warm() -> bool:
    """Return whether this process has been warmed up."""
    return _pipeline_warm


def warm_up(progress: ProgressCallback) -> None:
    """Run the pipeline on next to nothing, in 2-D and 3-D."""
    global _pipeline_warm
    rng = np.random.default_rng(0)
    shapes = ((12, 12), (6, 12, 12))
    for k, shape in enumerate(shapes):
        report(progress, "loading kernels", k, len(shapes))
        cue = rng.random(shape, np.float32)
        graph = region_graph(oversegment(cue, min_size=1), cue)
        agglomerate(graph, "mean").segment(0.5)
    report(progress, "loading colours", len(shapes), len(shapes) + 1)
    # napari compiles how it colours labels in each process anew: seconds, at the first selection.
    direct_colours(MARKS).map(np.zeros((2, 2), np.uint8))
    label_colormap(LABEL_COLOURS).map(np.zeros((2, 2), np.uint32))
    _pipeline_warm = True
