"""Kernels compiled, or loaded from the cache, before a person has to wait for them.

Each stage runs its work on next to nothing, in the order in which a person needs it. All stages
in one process compile less than each in its own: helpers of several kernels are compiled once.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import agglomerate
from napari_agglo.errors import InvalidInput, check_choice
from napari_agglo.evaluate import breakdown, merge_curve, vi_curve
from napari_agglo.graph import RegionGraph, region_graph
from napari_agglo.learning import train
from napari_agglo.policy import Policy
from napari_agglo.session._session import Session
from napari_agglo.superpixels import oversegment

_SHAPES = ((12, 12), (6, 12, 12))


def warm_up(
    stages: Iterable[str] | None = None, *, progress: ProgressCallback | None = None
) -> None:
    """Compile the kernels of some stages, or load them; a stage is done once in a process.

    The first time on a machine takes a minute or two, after that a second or two.

    Parameters
    ----------
    stages : iterable of {"merge", "evaluate", "learn", "edit"}, optional
        "merge" goes from a boundary map to a merge tree by mean, "evaluate" compares with a gold
        standard, "learn" trains a policy and merges by it, "edit" proofreads. All by default.
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
        for k, stage in enumerate(waiting):
            report(progress, f"kernels that {stage}", k, len(waiting))
            STAGES[stage]()
            _done.add(stage)
        report(progress, "kernels", len(waiting), len(waiting))


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
        with suppress(InvalidInput):  # some refuse what others cut
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
    session.threshold = 1.0
    session.look()
    with suppress(InvalidInput):
        session.cut_children(int(session.lut()[1]))
    session.queue.next(3)
    session.history.checkpoint()


@kernel
def _nothing() -> None:
    """Do nothing, and be cached as all kernels are."""


def cache_folder() -> Path | None:
    """Return the folder in which kernels of this package are kept, or None if none is writable."""
    stats = getattr(_nothing, "stats", None)  # none without compiler
    return None if stats is None or stats.cache_path is None else Path(stats.cache_path)


STAGES = {"merge": _merge, "evaluate": _evaluate, "learn": _learn, "edit": _edit}
_one_at_a_time = threading.Lock()
_done: set[str] = set()  # the stages that this process has run
