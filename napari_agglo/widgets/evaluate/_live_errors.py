"""Errors against gold: the curve once, measures and breakdown at each threshold.

The overlaps of superpixels and gold are counted once, in a worker. Measures at a threshold, also
after edits, are sums of these counts and need no images.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.agglomeration import MergeTree
from napari_agglo.evaluate import (
    Breakdown,
    Contingency,
    best_point,
    breakdown,
    contingency,
    merged_breakdown,
    table_best,
    table_breakdown,
    table_curve,
    table_metrics,
    vi_curve,
)
from napari_agglo.evaluate._metrics import merged_rows
from napari_agglo.graph import RegionGraph
from napari_agglo.session import Session
from napari_agglo.volumes import DenseLabels, dense_labels, is_on_disk
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import per_viewer, single_shot, tell_error

if TYPE_CHECKING:
    import pandas as pd

EVALUATE = "evaluate"  # the job that compares with gold
NUMBERS = "numbers"  # the job that follows the threshold
_WAIT = 120  # milliseconds without a change until measures are computed


@dataclass(frozen=True, eq=False)
class Counts:
    """Overlaps of superpixels and gold."""

    graph: RegionGraph
    gold: Any
    table: Contingency
    superpixels: Breakdown
    best: dict[str, float]


class Comparison:
    """The comparison of a project with gold, shared by all Evaluate widgets."""

    changed = Signal()  # numbers and breakdown were computed or reset

    def __init__(self, viewer: Any) -> None:
        self.project = project = per_viewer(viewer, Project)
        self.counts: Counts | None = None
        self.numbers: pd.Series[float] | None = None
        self.breakdown: Breakdown | None = None
        self.threshold: float | None = None  # of numbers and breakdown
        self._declined: object = None  # the tree of a cancelled count
        self._inputs: tuple[object, ...] = ()  # session, graph and gold of awaited overlaps
        self._again = False
        self._timer = single_shot(self._start_numbers, _WAIT)
        project.closing.connect(self._close)

    @property
    def waiting(self) -> bool:
        """Whether numbers and breakdown are being computed."""
        jobs = self.project.jobs
        running = jobs[NUMBERS] is not None or jobs[EVALUATE] is not None
        waits = bool(self._inputs) and self._inputs[0] is self.project.session
        return running or waits or self._timer.isActive()

    def adopt_gold(self) -> None:
        """Use gold that was chosen after the hierarchy was built."""
        project, dataset = self.project, self.project.dataset
        if dataset is None or dataset.gold is None or project.graph is None:
            return
        fits = tuple(dataset.gold.shape) == project.graph.superpixels.image.shape
        if project.tree is not None and fits and dataset.gold is not project.gold:
            project.set_gold(dataset.gold)

    def want(self) -> None:
        """Update the comparison, for a visible widget."""
        project = self.project
        if project.tree is None or project.gold is None:
            self._forget()
        elif self._fits() and project.curve is not None:
            self._timer.start()
        elif self._declined is not project.tree:
            self.count()

    def count(self) -> None:
        """Compare with gold in a worker."""
        project, session = self.project, self.project.session
        tree, graph, gold = project.tree, project.graph, project.gold
        if tree is None or graph is None or gold is None or project.jobs[EVALUATE] is not None:
            return
        on_disk = is_on_disk(graph.superpixels.image)
        if session is None or not on_disk or gold is not session.errors.gold:
            self._compare()
            return
        if session.errors.are_counted:
            self._ask_overlaps(session)
            return
        title = "Comparing with gold"
        job = project.jobs.start(EVALUATE, title, session.errors.count, lambda _: None)
        if job is None:
            return

        def end() -> None:
            if job.cancelled or job.error is not None:
                self._declined = tree
            elif project.session is session:
                self._ask_overlaps(session)

        job.ended.connect(end)

    def _ask_overlaps(self, session: Session) -> None:
        """Compare by the overlaps of a session on disk, as its superpixels are divided now."""
        project = self.project
        inputs = (session, project.graph, project.gold)
        if len(self._inputs) and all(a is b for a, b in zip(self._inputs, inputs, strict=True)):
            return
        self._inputs = inputs

        def done(table: Contingency) -> None:
            self._inputs = ()
            if project.gold is session.errors.gold:
                self._compare(table)

        def failed(error: Exception) -> None:
            self._inputs, self._declined = (), project.tree
            tell_error(error)

        project.worker.latest("overlaps to compare", session.errors.overlaps, done, failed)

    def _compare(self, overlaps: Contingency | None = None) -> None:
        """Compare with gold in a job; `overlaps` are those of a session on disk."""
        project = self.project
        tree, graph, gold, curve = project.tree, project.graph, project.gold, project.curve
        if tree is None or graph is None or gold is None:
            return
        painted = project.is_painted(project.built)
        curve = None if painted else curve
        counts, strokes = self.counts if self._fits() and not painted else None, project.strokes

        session = project.session

        def work(progress: ProgressCallback) -> tuple[pd.DataFrame, Counts]:
            if is_on_disk(graph.superpixels.image):
                return _count_on_disk(tree, graph, gold, curve, session, overlaps, progress)
            truth = dense_labels(np.asarray(gold), "gold")
            errors = curve
            if errors is None:
                errors = vi_curve(tree, truth, progress=part_of(progress, 0.0, 0.3))
            return errors, counts or _count(graph, gold, truth, part_of(progress, 0.3, 1.0))

        def done(result: tuple[pd.DataFrame, Counts]) -> None:
            if project.tree is not tree or project.gold is not gold:
                return  # another hierarchy or gold is visible now
            errors, self.counts = result
            if project.curve is None or painted:
                project.set_curve(errors, strokes)
            self.want()

        def end() -> None:
            self._declined = tree if job is None or job.cancelled or not self._fits() else None

        job = project.jobs.start(EVALUATE, "Comparing with gold", work, done)
        if job is not None:
            job.ended.connect(end)

    def _fits(self) -> bool:
        """Return whether the counts are of the visible graph and gold."""
        counts, project = self.counts, self.project
        same = counts is not None and counts.graph is project.graph
        return same and counts.gold is project.gold

    def _start_numbers(self) -> None:
        project, counts = self.project, self.counts
        if counts is None or not self._fits() or not project.worker.settled:
            return
        if project.jobs[NUMBERS] is not None:
            self._again = True
            return
        table = np.array(project.table())  # a copy, as an edit may change it meanwhile
        at = project.threshold

        def take(result: tuple[pd.Series[float], Breakdown]) -> None:
            self.numbers, self.breakdown = result
            self.threshold = at
            self.changed.emit()

        job = project.jobs.start(NUMBERS, "Evaluating", lambda _: evaluated(counts, table), take)
        if job is not None:
            job.ended.connect(self._restart)

    def _restart(self) -> None:
        if self._again:
            self._again = False
            self._timer.start()

    def _close(self) -> None:
        with suppress(RuntimeError):  # Qt itself may be gone by now
            self._timer.stop()

    def _forget(self) -> None:
        if self.numbers is not None or self.counts is not None:
            self.counts = self.numbers = self.breakdown = None
            self.changed.emit()


def evaluated(counts: Counts, table: NDArray[np.uint32]) -> tuple[pd.Series[float], Breakdown]:
    """Return all measures and the breakdown of the segments `table`."""
    return (
        table_metrics(merged_rows(counts.table, table)),
        merged_breakdown(counts.superpixels, table, counts.graph.ids),
    )


def _count_on_disk(
    tree: MergeTree,
    graph: RegionGraph,
    gold: Any,
    curve: pd.DataFrame | None,
    session: Session | None,
    overlaps: Contingency | None,
    progress: ProgressCallback,
) -> tuple[pd.DataFrame, Counts]:
    """Compare a volume on disk with gold: by tables alone, once overlaps are counted."""
    counting = part_of(progress, 0.0, 0.8)
    if session is not None and overlaps is not None:
        first, table = session.errors.count(counting), overlaps
    else:
        first = table = contingency(graph.superpixels, gold, progress=counting)
    if curve is None:
        curve = table_curve(tree, first, progress=part_of(progress, 0.8, 1.0))
    return curve, Counts(graph, gold, table, table_breakdown(graph, table), table_best(table))


def _count(graph: RegionGraph, gold: Any, truth: DenseLabels, progress: Any) -> Counts:
    table = contingency(graph.superpixels, truth, progress=part_of(progress, 0.0, 0.2))
    superpixels = breakdown(graph.superpixels, truth, progress=part_of(progress, 0.2, 0.8))
    best = best_point(graph, np.asarray(gold), progress=part_of(progress, 0.8, 1.0))
    return Counts(graph, gold, table, superpixels, best)
