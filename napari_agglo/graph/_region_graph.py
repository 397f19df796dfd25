"""The region adjacency graph: frozen arrays, one row a region and one row a boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph._layout import Layout
from napari_agglo.volumes import DenseLabels

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    import networkx as nx
    import pandas as pd


@dataclass(frozen=True, eq=False)
class RegionGraph:
    """Regions, the boundaries between them, and what is known of both.

    Regions are addressed by dense ids 1..n; row 0 of every table is "no region" and stays empty.

    Parameters
    ----------
    superpixels : DenseLabels
        The label image on dense ids, and the user's id of each.
    spacing : tuple of float
        Size of a pixel along each axis.
    cue_names, cue_ranges : tuple
        The cues, in the order of their blocks of statistics, and the values that meant 0 and 1.
    layout : Layout
        Which column of a row holds what.
    edges : ndarray of int64, shape (m, 2)
        Dense ids (u, v) of the regions of each boundary, u < v, in lexicographic order.
    regions, boundaries : ndarray of int64
        A row of statistics for each region (0..n) and each boundary.
    boxes : ndarray of int32, shape (n + 1, 2, ndim)
        Bounding boxes: first index, and one past the last, along each axis.
    dams : bool
        Whether regions on the two sides of a line of 0, one pixel thick, are adjacent.
    cues : ndarray of uint8, shape (number of cues, number of pixels), optional
        The cues as they were added up, 0..255, in C order and read-only; None if the graph did not
        keep them. Only dividing a superpixel needs them.
    """

    superpixels: DenseLabels
    spacing: tuple[float, ...]
    cue_names: tuple[str, ...]
    cue_ranges: tuple[tuple[float, float], ...]
    layout: Layout
    edges: NDArray[np.int64]
    regions: NDArray[np.int64]
    boundaries: NDArray[np.int64]
    boxes: NDArray[np.int32]
    dams: bool = False
    cues: NDArray[np.uint8] | None = None

    def __repr__(self) -> str:
        cues = ", ".join(self.cue_names) or "none"
        return (
            f"RegionGraph({self.n_regions} regions, {self.n_boundaries} boundaries, "
            f"shape {self.superpixels.image.shape}, cues: {cues})"
        )

    @property
    def n_regions(self) -> int:
        """Number of regions."""
        return len(self.regions) - 1

    @property
    def n_boundaries(self) -> int:
        """Number of boundaries."""
        return len(self.edges)

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The user's id of each dense id; ``ids[0]`` is 0."""
        return self.superpixels.ids

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Pixels of each dense id."""
        return self.regions[:, 0]

    def cue_index(self, name: str) -> int:
        """Return the position of the cue `name`; refuse a name that the graph does not have."""
        if name not in self.cue_names:
            raise InvalidInput(
                f"This graph has no cue {name!r}; it has {list(self.cue_names)}. "
                f"Build it again with cues={{{name!r}: ...}}."
            )
        return self.cue_names.index(name)

    def boundary_mean(self, cue: str = "boundary") -> NDArray[np.float64]:
        """Mean of a cue over each boundary, 0..1; 0.5 for a boundary without a face."""
        return self._mean(
            self.boundaries[:, self.layout.boundary_sums(self.cue_index(cue)).start],
            2 * self.boundaries[:, self.layout.faces].sum(axis=1),
        )

    def region_mean(self, cue: str = "boundary") -> NDArray[np.float64]:
        """Mean of a cue over each region (dense ids 0..n), 0..1."""
        return self._mean(
            self.regions[:, self.layout.region_sums(self.cue_index(cue)).start], self.sizes
        )

    def contact_area(self) -> NDArray[np.float64]:
        """Area of each boundary in physical units: every face by the spacing across it."""
        return self.boundaries[:, self.layout.faces] @ self.face_areas()

    def face_areas(self) -> NDArray[np.float64]:
        """Area of one face perpendicular to each axis, from the spacing of the others."""
        spacing = np.asarray(self.spacing)
        return np.array([np.delete(spacing, axis).prod() for axis in range(len(spacing))])

    def centroids(self) -> NDArray[np.float64]:
        """Mean pixel index of each dense id, shape (n + 1, ndim); NaN for "no region"."""
        sums = self.regions[:, self.layout.coordinates].astype(np.float64)
        out = np.full_like(sums, np.nan)
        np.divide(sums, self.sizes[:, None], out=out, where=self.sizes[:, None] > 0)
        return out

    def region_table(self) -> pd.DataFrame:
        """One row a region: the user's id, size, centroid, box, border faces, mean of each cue."""
        from napari_agglo.graph._export import region_table

        return region_table(self)

    def boundary_table(self) -> pd.DataFrame:
        """One row a boundary: the user's ids u and v, faces, area, mean of each cue."""
        from napari_agglo.graph._export import boundary_table

        return boundary_table(self)

    def to_networkx(self) -> nx.Graph[int]:
        """Return a networkx graph on the user's ids, with the columns of both tables."""
        from napari_agglo.graph._export import to_networkx

        return to_networkx(self)

    def to_graphml(self, path: str | PathLike[str]) -> Path:
        """Write the graph as GraphML, whole or not at all."""
        from napari_agglo.graph._export import to_graphml

        return to_graphml(self, path)

    @staticmethod
    def _mean(sums: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        out = np.full(len(sums), 0.5)
        np.divide(sums, 255.0 * counts, out=out, where=counts > 0)
        return out
