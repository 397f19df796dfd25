"""Several segmentations of one image at matching thresholds, in matching colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.compare import (
    Disagreements,
    Matching,
    disagreements,
    match_tables,
    table_codes,
    table_disagreements,
)
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import state_at
from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import DenseLabels, dense_labels, is_on_disk
from napari_agglo.widgets._lut_array import Table
from napari_agglo.widgets.compare._choices import Cut, Mode, PanelSource, thresholds


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of an image, each within one base label of every panel."""

    image: NDArray[np.uint32]  # the piece of each pixel; 0 is none
    of: list[NDArray[np.int64]]  # the base label of each piece, panel by panel
    sizes: NDArray[np.int64]  # pixels of each piece

    @classmethod
    def common(cls, bases: Sequence[DenseLabels], graph: RegionGraph) -> Pieces:
        """Return the pieces of all bases: the superpixels of the graph, if there are no others.

        Examples
        --------
        >>> import napari_agglo as agglo
        >>> graph = agglo.region_graph(np.array([[5, 5, 6]]), np.zeros((1, 3)))
        >>> labels = dense_labels(np.array([[0, 2, 2]]), "labels")
        >>> pieces = Pieces.common([graph.superpixels, labels], graph)
        >>> pieces.image.tolist(), pieces.sizes.tolist()
        ([[1, 2, 3]], [0, 1, 1, 1])
        >>> [one.tolist() for one in pieces.of]
        [[0, 1, 1, 2], [0, 0, 1, 1]]
        """
        different = [graph.superpixels]
        for base in bases:
            if not any(base is one for one in different):
                different.append(base)
        image, of = graph.superpixels.image, [np.arange(graph.n_regions + 1)]
        if is_on_disk(image):
            if len(different) > 1:
                raise InvalidInput(
                    "Other labels can be compared only in memory, and this volume is on disk",
                    argument="labels",
                    remedy="compare hierarchies of the same superpixels, or a crop",
                )
            return cls(image, of * len(bases), graph.sizes)
        for base in different[1:]:
            both = image.astype(np.uint64) * np.uint64(len(base.ids)) + base.image
            dense = dense_labels(both, "labels")
            before, own = np.divmod(dense.ids.astype(np.int64), len(base.ids))
            image, of = dense.image, [*(one[before] for one in of), own]
        sizes = np.bincount(image.reshape(-1), minlength=len(of[0]))
        sizes[0] = 0
        places = [next(k for k, one in enumerate(different) if one is base) for base in bases]
        return cls(image, [of[place] for place in places], sizes)


@dataclass(eq=False)
class Panel:
    """One segmentation, and its colours."""

    name: str
    cut: Cut | None  # None if the labels are fixed
    base: DenseLabels  # superpixels, or the fixed labels: `shown` is a table over them
    of_piece: NDArray[np.int64]  # the base label of each of the common pieces
    threshold: float = np.nan
    fixed: NDArray[np.uint32] | None = None  # names that no threshold changes, if not `base`
    # The colour of each base label, matched with the first panel, and its name.
    shown: Table = field(default_factory=lambda: Table(np.zeros(1, np.uint32)))
    names: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(1, np.uint32))
    matching: Matching | None = None
    seconds: float | None = None  # CPU time of the choice of segments, if it was made here

    @property
    def n_segments(self) -> int:
        """The number of segments."""
        if self.cut is not None:
            return self.cut.tree.n_segments(self.threshold)
        names = np.arange(len(self.base.ids)) if self.fixed is None else self.fixed
        return len(np.unique(names[1:]))

    def on_pieces(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of base labels, such as `names`, as those of the common pieces."""
        return np.asarray(values[self.of_piece])

    def vi(self) -> float | None:
        """Return the VI against gold, if there is gold."""
        if self.cut is None or self.cut.curve is None:
            return None
        return float(state_at(self.cut.curve, self.threshold)["vi"])


@dataclass(frozen=True)
class Focus:
    """A selected difference: one of its voxels, and the panel where it is one segment."""

    voxel: tuple[int, ...]
    holder: int


class Comparison:
    """The panels and their common state; created in a worker, then used in the main thread."""

    def __init__(self, panels: list[Panel], graph: RegionGraph, pieces: Pieces) -> None:
        self.panels = panels
        self.pieces = pieces
        self.graph = graph
        self.n_superpixels = graph.n_regions  # edits of a session may increase it
        self.mode = Mode.THRESHOLD
        self.cuts = [panel.cut for panel in panels if panel.cut is not None]
        self.position = 0.5
        self.focus: Focus | None = None  # hides all other segments
        self.update()

    @classmethod
    def of(
        cls, prepared: list[PanelSource], graph: RegionGraph, progress: ProgressCallback | None
    ) -> Comparison:
        """Return the comparison of prepared panels."""
        report(progress, "comparing", 0, 1)
        bases = [
            graph.superpixels if source.labels is None else dense_labels(source.labels, "labels")
            for source in prepared
        ]
        pieces = Pieces.common(bases, graph)
        panels = [
            Panel(one.choice.name, one.cut, base, of_piece, fixed=one.table, seconds=one.seconds)
            for one, base, of_piece in zip(prepared, bases, pieces.of, strict=True)
        ]
        return cls(panels, graph, pieces)

    @property
    def lead(self) -> Cut | None:
        """The tree of the slider."""
        return self.cuts[0] if self.cuts else None

    def set(self, *, position: float | None = None, mode: Mode | None = None) -> None:
        """Set the position of the slider, or the common property of the panels."""
        if position is not None:
            self.position = position
        if mode is not None:
            self.mode = mode
        self.update()

    def update(self) -> None:
        """Cut all trees, and colour segments like those of the first panel they overlap most."""
        where = iter(thresholds(self.cuts, self.mode, self.position))
        for panel in self.panels:
            if panel.cut is not None:
                panel.threshold = next(where)
                panel.names = panel.cut.tree.lut(panel.threshold)
            elif panel.fixed is not None:
                panel.names = panel.fixed
            else:
                panel.names = np.arange(len(panel.base.ids), dtype=np.uint32)
        first, *others = self.panels
        first.shown.values = first.names
        names, beside = first.on_pieces(first.names), list[NDArray[Any]]()
        for panel in others:
            panel.matching = match_tables(
                names, panel.on_pieces(panel.names), self.pieces.sizes, panel.matching, beside
            )
            panel.shown.values = panel.matching.renamed(panel.names)
            beside.append(panel.on_pieces(panel.shown.values))
        for panel in self.panels if self.focus is not None else []:
            panel.shown.values = np.where(self._near(panel)[panel.names], panel.shown.values, 0)

    def codes(self, other: int) -> NDArray[np.uint8]:
        """Return the kind of difference between another panel and the first, for each piece."""
        two = self.panels[0], self.panels[other]
        a, b = (panel.on_pieces(panel.names) for panel in two)
        codes = table_codes(a, b, self.pieces.sizes)
        if self.focus is not None:
            shown = [panel.on_pieces(panel.shown.values) > 0 for panel in two]
            codes[~(shown[0] & shown[1])] = 0
        return codes

    def _near(self, panel: Panel) -> NDArray[np.bool_]:
        """Return the mask of segments of a panel that belong to the selected difference.

        These lie in the whole segment by more than half, or contain the voxel.
        """
        assert self.focus is not None
        piece, holder = self.pieces.image[self.focus.voxel], self.panels[self.focus.holder]
        wholes = holder.on_pieces(holder.names)
        names, sizes = panel.on_pieces(panel.names), self.pieces.sizes
        inside = np.bincount(names, sizes * (wholes == wholes[piece]))
        near: NDArray[np.bool_] = 2 * inside > np.bincount(names, sizes)
        near[names[piece]] = True
        near[0] = False
        return near

    def differences(self, other: int) -> Callable[[ProgressCallback], Disagreements]:
        """Return a function for a worker that computes the differences of two panels."""
        panel, graph, lead = self.panels[other], self.graph, self.panels[0]
        if panel.base is graph.superpixels and lead.base is graph.superpixels:
            a, b = lead.names, panel.names
            return lambda _: table_disagreements(a, b, graph)
        images = [(one.base.image, one.names) for one in (lead, panel)]
        return lambda _: disagreements(*(names[image] for image, names in images))
