"""Compilation of kernels, or their loading from the cache, before a user needs them.

Each stage runs its functions on tiny data, in the order in which a user needs them. All stages in
one process compile less than each in its own, since helpers of several kernels are compiled once.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import is_cached, kernel, temporary_cache
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import agglomerate
from napari_agglo.agglomeration._lazy_rescoring import merge_lazily
from napari_agglo.agglomeration._mean import merge_by_mean
from napari_agglo.errors import InvalidInput, check_choice
from napari_agglo.evaluate import breakdown, merge_curve, vi_curve
from napari_agglo.evaluate._vi_by_merge import path_kernel
from napari_agglo.graph import RegionGraph, region_graph
from napari_agglo.learning import train
from napari_agglo.pixels import LiveTraining, check_classes, train_pixels
from napari_agglo.pixels._predict_classes import predict_classes
from napari_agglo.policy import Policy
from napari_agglo.session._hierarchy.replay_kernels import advance
from napari_agglo.session._session import Session
from napari_agglo.superpixels import oversegment

_SHAPES = ((12, 12), (6, 12, 12))


def warm_up(
    stages: Iterable[str] | None = None, *, progress: ProgressCallback | None = None
) -> None:
    """Compile or load the kernels of some stages; a stage runs once in a process.

    The first time on a machine takes about a minute, after that a second or two.

    Parameters
    ----------
    stages : iterable of {"merge", "evaluate", "learn", "edit", "paint"}, optional
        "merge" makes a merge tree of a boundary map, "evaluate" compares with a gold standard,
        "learn" trains a policy and merges by it, "edit" proofreads, "paint" classifies pixels. All
        by default.
    progress : callable, optional
        Called with a `Progress` before each step; it cancels by raising `Cancelled`.

    Examples
    --------
    >>> warm_up(["merge"])
    """
    chosen = list(STAGES) if stages is None else list(stages)
    for stage in chosen:
        check_choice("stages", stage, list(STAGES))
    with _one_at_a_time:
        waiting = [stage for stage in chosen if stage not in _done]
        total = seconds_to_compile(waiting)
        for k, stage in enumerate(waiting):
            report(progress, f"kernels that {stage}", seconds_to_compile(waiting[:k]), total)
            STAGES[stage]()
            _done.add(stage)
        report(progress, "kernels", total, total)


def is_warm() -> bool:
    """Return whether this process has run all stages.

    Returns
    -------
    bool
        Whether nothing is left to compile.

    Examples
    --------
    >>> is_warm() in (True, False)
    True
    """
    return len(_done) == len(STAGES)


def stages_to_compile() -> list[str]:
    """Return the stages whose kernels are not in the cache, in order; all if there is no cache.

    Returns
    -------
    list of str
        Names of stages.

    Examples
    --------
    >>> set(stages_to_compile()) <= {"merge", "evaluate", "learn", "edit", "paint"}
    True
    """
    return [stage for stage, main in _KERNELS.items() if not is_cached(main)]


def seconds_to_compile(stages: Iterable[str]) -> int:
    """Return the approximate CPU seconds to compile the kernels of some stages.

    Parameters
    ----------
    stages : iterable of str
        Names of stages.

    Returns
    -------
    int
        Seconds.

    Examples
    --------
    >>> seconds_to_compile(["merge", "edit"]) > seconds_to_compile(["merge"]) > 0
    True
    """
    return sum(_SECONDS[stage] for stage in stages)


def _volume(shape: tuple[int, ...]) -> tuple[RegionGraph, NDArray[np.uint8]]:
    """Return a graph of small boxes with random cues, and a gold standard of halves."""
    grid = np.indices(shape)
    superpixels = np.ravel_multi_index(tuple(g // 3 for g in grid), tuple(n // 3 for n in shape))
    cue = np.random.default_rng(0).random(shape, np.float32)
    return region_graph(superpixels + 1, cue), (grid[-1] // 6 + 1).astype(np.uint8)


def _merge() -> None:
    for shape in _SHAPES:
        oversegment(np.random.default_rng(0).random(shape, np.float32), min_size=4)
        agglomerate(_volume(shape)[0]).segment(0.5)


def _evaluate() -> None:
    graph, gold = _volume(_SHAPES[0])
    tree = agglomerate(graph)
    merge_curve(tree, gold)
    vi_curve(tree, gold)
    breakdown(tree.segment(0.5), gold)


def _learn() -> None:
    for shape in _SHAPES:
        graph, gold = _volume(shape)
        agglomerate(graph, train(graph, gold, epochs=2))
    train(graph, gold, strategy="lash", epochs=1)


def _paint() -> None:
    for shape in _SHAPES:
        image = np.random.default_rng(0).random(shape, np.float32)
        strokes = np.zeros(shape, np.uint8)
        strokes[..., :4, :4], strokes[..., 6:, :4] = 1, 2
        train_pixels(image, strokes, trees=4).predict(image)
        live = LiveTraining(image)
        live.predict(live.train(strokes, check_classes(None, 2)), (0,) * image.ndim, shape)


def _edit() -> None:
    graph, gold = _volume(_SHAPES[0])
    policies: tuple[str | Policy, ...] = ("mean", train(graph, gold, epochs=1))
    for policy in policies:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "warm.agglo"
            with Session.create(path, graph, policy, gold=gold) as session:
                _edit_everything(session)
            with Session.open(path) as session:
                session.look()


def _edit_everything(session: Session) -> None:
    session.threshold = 0.0
    session.merge(1, 2, 3)
    for method in ("min_cut", "seeded", "tree"):
        with suppress(InvalidInput):  # a method may refuse these seeds
            session.preview(1, [[1], [3]], method)
            session.cut(1, [[1], [3]], method)
            session.undo()
    with suppress(InvalidInput):
        session.cut(5, points=[[(3, 0)], [(5, 2)]])
    session.lock(9)
    session.unlock(9)
    session.up(10)
    session.undo()
    session.redo()
    session._state.tree.scorer.few = 0  # as if there were many boundaries
    session.threshold = 1.0
    session.look()
    with suppress(InvalidInput):
        session.cut_children(int(session.lut()[1]))
    session.queue.next(3)
    session.history.checkpoint()


@kernel
def _nothing() -> None:
    """Do nothing; its cache folder is that of all kernels."""


def cache_folder() -> Path | None:
    """Return the cache folder of the kernels of this package; None if no folder is writable.

    Returns
    -------
    Path or None
        The folder, in which later processes find the kernels.
    """
    stats = getattr(_nothing, "stats", None)  # None with NUMBA_DISABLE_JIT
    if stats is None or stats.cache_path is None:
        return None
    folder = Path(stats.cache_path)
    return None if folder.parent == temporary_cache() else folder


# A large kernel of each stage: if it is in the cache, most of the others are.
_KERNELS = {
    "merge": merge_by_mean,
    "evaluate": path_kernel,
    "learn": merge_lazily,
    "edit": advance,
    "paint": predict_classes,
}
_SECONDS = {"merge": 10, "evaluate": 9, "learn": 26, "edit": 15, "paint": 8}  # of CPU, measured
STAGES = {
    "merge": _merge, "evaluate": _evaluate, "learn": _learn, "edit": _edit, "paint": _paint,
}  # fmt: skip
_one_at_a_time = threading.Lock()
_done: set[str] = set()  # the stages that this process has run
