"""Several segmentations of one image, cut together, in colours that match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.compare import (
    Disagreements,
    Matching,
    disagreements,
    match_tables,
    table_codes,
    table_disagreements,
)
from napari_agglo.evaluate import state_at
from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import DenseLabels
from napari_agglo.widgets._lut_array import Table
from napari_agglo.widgets.compare._choices import Prepared
from napari_agglo.widgets.compare._pieces import Pieces, as_dense
from napari_agglo.widgets.compare._thresholds import Cut, Mode, thresholds


@dataclass(eq=False)
class Panel:
    """One segmentation, and how it is shown.

    Attributes
    ----------
    name : str
        What it is called.
    cut : Cut or None
        Its tree; None if its labels are fixed.
    base : DenseLabels
        Superpixels, or the fixed labels: what `shown` is a table over.
    shown : Table
        The label of each base label, matched with those of the first panel.
    names : ndarray of uint32
        The same, unmatched.
    pieces : Pieces
        With the first panel.
    fixed : ndarray of uint32, optional
        Names that do not depend on a threshold, where `base` is not what is shown itself.
    """

    name: str
    cut: Cut | None
    base: DenseLabels
    pieces: Pieces
    threshold: float = np.nan
    fixed: NDArray[np.uint32] | None = None
    shown: Table = field(default_factory=lambda: Table(np.zeros(1, np.uint32)))
    names: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(1, np.uint32))
    matching: Matching | None = None

    @property
    def n_segments(self) -> int:
        """How many segments it has."""
        if self.cut is not None:
            return self.cut.tree.n_segments(self.threshold)
        names = np.arange(len(self.base.ids)) if self.fixed is None else self.fixed
        return len(np.unique(names[1:]))

    def vi(self) -> float | None:
        """Return its error against gold, if that is known."""
        if self.cut is None or self.cut.curve is None:
            return None
        return float(state_at(self.cut.curve, self.threshold)["vi"])


class Comparison:
    """The panels, and what they have in common. Made in a worker, then used on the main thread."""

    changed = Signal()

    def __init__(self, panels: list[Panel], graph: RegionGraph) -> None:
        self.panels = panels
        self.graph = graph
        self.n_superpixels = graph.n_regions  # a session may divide some
        self.mode = Mode.THRESHOLD
        cuts = [panel.cut for panel in panels if panel.cut is not None]
        self.cuts: list[Cut] = cuts
        self.position = 0.5
        self.update()

    @classmethod
    def of(
        cls, prepared: list[Prepared], graph: RegionGraph, progress: ProgressCallback | None
    ) -> Comparison:
        """Bring together what was prepared."""
        bases = [graph.superpixels if p.labels is None else as_dense(p.labels) for p in prepared]
        whole = Pieces.of_superpixels(graph)
        panels = []
        for k, (one, base) in enumerate(zip(prepared, bases, strict=True)):
            report(progress, "comparing", k, len(prepared))
            both = base is graph.superpixels and bases[0] is graph.superpixels
            pieces = whole if both else Pieces.of_two(bases[0], base)
            panels.append(Panel(one.choice.name, one.cut, base, pieces, fixed=one.table))
        return cls(panels, graph)

    @property
    def lead(self) -> Cut | None:
        """The tree that the slider runs over."""
        return self.cuts[0] if self.cuts else None

    def set(self, *, position: float | None = None, mode: Mode | None = None) -> None:
        """Move the slider, or choose what the panels have in common."""
        if position is not None:
            self.position = position
        if mode is not None:
            self.mode = mode
        self.update()
        self.changed.emit()

    def update(self) -> None:
        """Cut all trees, and give all segments the colours of what they overlap most."""
        where = iter(thresholds(self.cuts, self.mode, self.position))
        for panel in self.panels:
            if panel.cut is not None:
                panel.threshold = next(where)
                panel.names = panel.cut.tree.lut(panel.threshold)
            elif panel.fixed is not None:
                panel.names = panel.fixed
            else:
                panel.names = np.arange(len(panel.base.ids), dtype=np.uint32)
        first = self.panels[0]
        first.shown.values = first.names
        for panel in self.panels[1:]:
            panel.matching = match_tables(*self._sides(panel), panel.matching)
            panel.shown.values = _renamed(panel.matching, panel.names)

    def codes(self, other: int) -> NDArray[np.uint8]:
        """Return of each piece of another panel with the first how they differ there."""
        panel = self.panels[other]
        first, second, sizes = self._sides(panel)
        return table_codes(first, second, sizes)

    def differences(self, other: int) -> Callable[[ProgressCallback], Disagreements]:
        """Return the work that finds where the first panel and another one differ, for a worker."""
        panel, graph, lead = self.panels[other], self.graph, self.panels[0]
        if panel.base is graph.superpixels and lead.base is graph.superpixels:
            a, b = lead.names, panel.names
            return lambda _: table_disagreements(a, b, graph)
        images = [(one.base.image, one.names) for one in (lead, panel)]
        return lambda _: disagreements(*(names[image] for image, names in images))

    def _sides(self, panel: Panel) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Any]:
        pieces = panel.pieces
        return self.panels[0].names[pieces.first], panel.names[pieces.second], pieces.sizes


def _renamed(matching: Matching, names: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the labels of names; one that shares no pixel with the first panel has none."""
    known: NDArray[Any] = np.zeros(int(names.max(initial=0)) + 1, np.uint32)
    known[: len(matching.labels)] = matching.labels[: len(known)]
    return known[names]
