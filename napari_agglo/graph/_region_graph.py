"""Region adjacency graph: frozen arrays, one row per region and one row per boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.volumes import DenseLabels, VoxelSize

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    import networkx as nx
    import pandas as pd

    from napari_agglo.graph._hulls import Hulls

# Bins of the histogram of a cue: those of the paper.
DEFAULT_BINS = 25


@dataclass(frozen=True)
class Layout:
    """Columns of the rows of statistics, by numbers of axes, cues, histogram bins and powers.

    A region or a boundary is one row of 64-bit integers, so that *merging is adding rows*. Two
    statistics are not plain sums: a merge subtracts its faces from the `contact` of a region,
    twice, once for each side; and bounding boxes are kept apart and merged by minimum and maximum.
    Cues are whole numbers 0..255, so sums up to the fourth power are exact for 2**31 pixels.

    A region's row is ``count | border | open | contact | coordinates | products | cues | words``:

    - `count`: pixels;
    - `border`, per axis: faces on the border of the volume;
    - `open`, per axis: faces towards label 0, "no region", dams included;
    - `contact`, per axis: faces of its boundaries with other regions, across dams if these count;
    - `coordinates`, per axis: sum of the pixel index;
    - `products`: sums of products of two pixel indices, upper triangle row by row;
    - `words`, per cue of words: pixels of each word.

    A boundary's row is ``faces | cues`` with `faces` per axis; a face adds the values of both its
    pixels, so a boundary has twice as many samples as faces. A face adds its value of an oriented
    cue twice, and nothing if the cue has none for its axis. A cue is its sums of powers 1..4, then
    its histogram; or its sum alone where `powers` is 1 and `bins` 0.

    `sources` are the planes of each cue, as in `napari_agglo.volumes.Cues`: empty if no cue is
    oriented. `words` are the numbers of words of the cues of words, whose planes are the last ones.

    Examples
    --------
    >>> layout = Layout(ndim=3, n_cues=1, bins=25)
    >>> layout.region_width, layout.boundary_width
    (48, 32)
    """

    ndim: int
    n_cues: int
    bins: int
    powers: int = 4
    sources: tuple[tuple[int, ...], ...] = ()
    words: tuple[int, ...] = ()

    def source_table(self) -> NDArray[np.int64]:
        """Return the planes that each cue reads: is oriented, of pixels, of faces across axes."""
        each = self.sources or tuple((cue,) for cue in range(self.n_cues))
        rows = [(len(row) > 1, row[0], *(row[1:] or row * self.ndim)) for row in each]
        return np.array(rows, np.int64).reshape(self.n_cues, 2 + self.ndim)

    @property
    def n_planes(self) -> int:
        """Number of planes of the cues, those of words included."""
        return self.n_plain_planes + len(self.words)

    @property
    def n_plain_planes(self) -> int:
        """Number of planes of the cues that are not words."""
        return max((max(row) for row in self.sources), default=self.n_cues - 1) + 1

    def word_table(self) -> NDArray[np.int64]:
        """Return the plane, the first column and the number of words of each cue of words."""
        starts = self.region_words + np.cumsum((0, *self.words[:-1]))
        rows = [
            (self.n_plain_planes + k, starts[k], n_words) for k, n_words in enumerate(self.words)
        ]
        return np.array(rows, np.int64).reshape(len(self.words), 3)

    def sampled(self, cue: int) -> NDArray[np.bool_]:
        """Return whether a cue has values on faces across each axis."""
        return self.source_table()[cue, 2:] >= 0

    @property
    def border(self) -> slice:
        return slice(1, 1 + self.ndim)

    @property
    def open(self) -> slice:
        return slice(1 + self.ndim, 1 + 2 * self.ndim)

    @property
    def contact(self) -> slice:
        return slice(1 + 2 * self.ndim, 1 + 3 * self.ndim)

    @property
    def coordinates(self) -> slice:
        return slice(1 + 3 * self.ndim, 1 + 4 * self.ndim)

    @property
    def products(self) -> slice:
        return slice(1 + 4 * self.ndim, self.region_cues)

    @property
    def faces(self) -> slice:
        return slice(0, self.ndim)

    @property
    def cue_width(self) -> int:
        return self.powers + self.bins

    @property
    def region_cues(self) -> int:
        """First column of cue 0 in a region's row."""
        return 1 + 4 * self.ndim + self.ndim * (self.ndim + 1) // 2

    @property
    def boundary_cues(self) -> int:
        """First column of cue 0 in a boundary's row."""
        return self.ndim

    @property
    def region_words(self) -> int:
        """First column of the words in a region's row."""
        return self.region_cues + self.n_cues * self.cue_width

    @property
    def region_width(self) -> int:
        return self.region_words + sum(self.words)

    @property
    def boundary_width(self) -> int:
        return self.boundary_cues + self.n_cues * self.cue_width

    def region_sums(self, cue: int) -> slice:
        start = self.region_cues + cue * self.cue_width
        return slice(start, start + self.powers)

    def region_histogram(self, cue: int) -> slice:
        start = self.region_cues + cue * self.cue_width + self.powers
        return slice(start, start + self.bins)

    def boundary_sums(self, cue: int) -> slice:
        start = self.boundary_cues + cue * self.cue_width
        return slice(start, start + self.powers)

    def boundary_histogram(self, cue: int) -> slice:
        start = self.boundary_cues + cue * self.cue_width + self.powers
        return slice(start, start + self.bins)


@dataclass(frozen=True, eq=False)
class RegionGraph:
    """Regions, the boundaries between them, and the statistics of both.

    Regions are addressed by dense ids 1..n; row 0 of every table is "no region" and stays empty.

    Parameters
    ----------
    superpixels : DenseLabels
        The label image on dense ids, and the user's id of each.
    spacing : tuple of float
        Size of a pixel along each axis; in micrometres if the unit is known.
    cue_names, cue_ranges : tuple
        The cues, in the order of their blocks of statistics, and the values that meant 0 and 1.
    layout : Layout
        Columns of the rows.
    edges : ndarray of int64, shape (m, 2)
        Dense ids (u, v) of the regions of each boundary, u < v, in lexicographic order.
    regions, boundaries : ndarray of int64
        A row of statistics for each region (0..n) and each boundary.
    boxes : ndarray of int32, shape (n + 1, 2, ndim)
        Bounding boxes: first index, and one past the last, along each axis.
    dams : bool
        True if regions on the two sides of a line of 0, one pixel thick, are adjacent.
    cues : ndarray of uint8, shape (number of planes, number of pixels), optional
        The planes of the cues, one each unless a cue is oriented, 0..255, in C order and read-only;
        None if the graph did not keep them. Only the division of a superpixel needs them.
    word_names : tuple of str
        The cues of words, such as textons, in the order of `Layout.words`.
    face_parts : int
        Number of parts that a face is counted in; 1 but for a graph of weights, whose means are as
        fine as these parts (`from_edges`).
    far : tuple of (offset, ndarray of uint8)
        The channels of long-range affinities, 255 for boundary, at the voxel that each was
        predicted for; empty if there are none, or if the graph did not keep its cues.
    hulls : Hulls, optional
        The convex hulls of the regions of a plane; None until a feature needs them (`with_hulls`).
    unit : str, optional
        "micrometer", or None if the unit of the spacing is not known.
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
    face_parts: int = 1
    far: tuple[tuple[tuple[int, ...], NDArray[np.uint8]], ...] = ()
    word_names: tuple[str, ...] = ()
    hulls: Hulls | None = None
    unit: str | None = None

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weights: Any,
        *,
        contacts: Any = None,
        superpixels: Any = None,
        spacing: Any = None,
        unit: str | None = None,
    ) -> RegionGraph:
        """Return the graph of edges and weights of the user, to merge by the mean of the weights.

        The weights are the cue "boundary", in their own units. Where regions merge, the weight of
        a boundary between them is the mean of the weights of its edges, each counted as often as
        its contact is large. Low merges first: for affinities, pass ``1 - affinities``.

        Parameters
        ----------
        edges : array of int, shape (m, 2)
            Ids of the two regions of each edge, 1 or more. Parallel edges become one.
        weights : array of float, shape (m,)
            Finite, 0 or more; kept to about nine digits.
        contacts : array of int, shape (m,), optional
            Size of each boundary, such as its number of faces; 1 each by default.
        superpixels : array of int, optional
            The label image with the ids of the edges, for segmentations and sessions. Without it
            each region is one pixel of a one-dimensional image, in the order of the ids.
        spacing : sequence of float, optional
            Size of a pixel along each axis of `superpixels`; by default that of a `Volume`.
        unit : str, optional
            Unit of the spacing, as for `region_graph`.

        Returns
        -------
        RegionGraph
            The graph, with the cue "boundary" alone.

        Raises
        ------
        InvalidInput
            If an id, a weight or a contact cannot be used.

        Examples
        --------
        >>> import napari_agglo as agglo
        >>> graph = agglo.RegionGraph.from_edges([(1, 2), (2, 5), (1, 5)], [0.25, 4.0, 2.0])
        >>> tree = agglo.agglomerate(graph)
        >>> tree.thresholds()
        array([0.25, 3.  ])
        >>> tree.segment(1)
        array([1, 1, 5])
        """
        from napari_agglo.graph._weighted_edges import from_edges

        return from_edges(
            edges, weights, contacts=contacts, superpixels=superpixels, spacing=spacing, unit=unit
        )

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph[Any],
        weight: str = "weight",
        *,
        contact: str | None = None,
        superpixels: Any = None,
        spacing: Any = None,
        unit: str | None = None,
    ) -> RegionGraph:
        """Return a graph of the edges of a networkx graph, as `from_edges` does.

        Parameters
        ----------
        graph : networkx.Graph
            Its nodes are ids of regions, whole numbers of 1 or more.
        weight : str
            The attribute of the edges that is their weight.
        contact : str, optional
            The attribute that is the size of the boundary; 1 each by default, so that a graph of
            `to_networkx` gives other segments than before unless this is "faces".
        superpixels, spacing, unit : optional
            As for `from_edges`.

        Returns
        -------
        RegionGraph
            The graph, with the cue "boundary" alone.

        Raises
        ------
        InvalidInput
            If a node is no id, or an edge lacks the attribute.

        Examples
        --------
        >>> import networkx as nx
        >>> import napari_agglo as agglo
        >>> path = nx.Graph()
        >>> path.add_weighted_edges_from([(1, 2, 0.1), (2, 3, 0.9)])
        >>> agglo.agglomerate(agglo.RegionGraph.from_networkx(path)).segment(0.5)
        array([1, 1, 3])
        """
        from napari_agglo.graph._weighted_edges import from_networkx

        return from_networkx(
            graph, weight, contact=contact, superpixels=superpixels, spacing=spacing, unit=unit
        )

    def __repr__(self) -> str:
        cues = ", ".join(self.cue_names + self.word_names) or "none"
        try:
            shape = f"shape {self.superpixels.image.shape}"
        except InvalidInput:
            shape = "a part of a graph"
        return (
            f"RegionGraph({self.n_regions} regions, {self.n_boundaries} boundaries, {shape}, "
            f"cues: {cues})"
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
    def voxel_size(self) -> VoxelSize:
        """The spacing with its unit, to convert it: ``graph.voxel_size.in_unit("nm").spacing``."""
        return VoxelSize(self.spacing, self.unit)

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The user's id of each dense id; ``ids[0]`` is 0."""
        return self.superpixels.ids

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Pixels of each dense id."""
        return self.regions[:, 0]

    def cue_index(self, name: str) -> int:
        """Return the position of the cue `name`; refuse an unknown cue.

        Parameters
        ----------
        name : str
            The name of a cue.

        Returns
        -------
        int
            Its position in `cue_names`.

        Raises
        ------
        InvalidInput
            If there is no such cue.
        """
        if name not in self.cue_names:
            raise InvalidInput(
                f"This graph has no cue {name!r}; it has {list(self.cue_names)}",
                argument="cue",
                remedy=SetOption("cues", key=name),
            )
        return self.cue_names.index(name)

    def boundary_mean(self, cue: str = "boundary") -> NDArray[np.float64]:
        """Return the mean of a cue over each boundary, 0..1; 0.5 for one without a value.

        Parameters
        ----------
        cue : str
            The name of a cue.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            In the order of `edges`.
        """
        index = self.cue_index(cue)
        faces = self.boundaries[:, self.layout.faces]
        return self._mean(
            self.boundaries[:, self.layout.boundary_sums(index).start],
            2 * faces @ self.layout.sampled(index),
        )

    def region_mean(self, cue: str = "boundary") -> NDArray[np.float64]:
        """Return the mean of a cue over each region (dense ids 0..n), 0..1.

        Parameters
        ----------
        cue : str
            The name of a cue.

        Returns
        -------
        ndarray of float, shape (n_regions + 1,)
            By dense id; 0 at 0.
        """
        return self._mean(
            self.regions[:, self.layout.region_sums(self.cue_index(cue)).start], self.sizes
        )

    def word_counts(self, name: str) -> NDArray[np.int64]:
        """Return the pixels of each word in each region (dense ids 0..n), shape (n + 1, words).

        Parameters
        ----------
        name : str
            The name of a cue of words.

        Returns
        -------
        ndarray of int, shape (n_regions + 1, words)
            Numbers of pixels, by dense id and word.

        Raises
        ------
        InvalidInput
            If there is no such cue of words.
        """
        if name not in self.word_names:
            raise InvalidInput(
                f"This graph has no words {name!r}; it has {list(self.word_names)}",
                argument="name",
                remedy=SetOption("cues", key=name),
            )
        _, start, n_words = self.layout.word_table()[self.word_names.index(name)]
        return self.regions[:, start : start + n_words]

    def contact_area(self) -> NDArray[np.float64]:
        """Return the area of each boundary in physical units.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            In the order of `edges`, in units of the spacing.
        """
        return self.boundaries[:, self.layout.faces] @ self.face_areas()

    def face_areas(self) -> NDArray[np.float64]:
        """Return the area of one part of a face perpendicular to each axis.

        Returns
        -------
        ndarray of float, shape (ndim,)
            In units of the spacing.
        """
        spacing = np.asarray(self.spacing)
        areas = np.array([np.delete(spacing, axis).prod() for axis in range(len(spacing))])
        return areas / self.face_parts

    def centroids(self) -> NDArray[np.float64]:
        """Return the mean pixel index of each dense id, shape (n + 1, ndim); NaN for 0.

        Returns
        -------
        ndarray of float, shape (n_regions + 1, ndim)
            Indices, by dense id.
        """
        sums = self.regions[:, self.layout.coordinates].astype(np.float64)
        out = np.full_like(sums, np.nan)
        np.divide(sums, self.sizes[:, None], out=out, where=self.sizes[:, None] > 0)
        return out

    def region_table(self) -> pd.DataFrame:
        """Return a row for each region: id, size, centroid, box, border faces, mean of each cue.

        Returns
        -------
        DataFrame
            In the order of the ids; docs/api.md has the columns.
        """
        from napari_agglo.graph._interchange import region_table

        return region_table(self)

    def boundary_table(self) -> pd.DataFrame:
        """Return a row for each boundary: ids u and v, faces, area, mean of each cue.

        Returns
        -------
        DataFrame
            In the order of `edges`.
        """
        from napari_agglo.graph._interchange import boundary_table

        return boundary_table(self)

    def to_networkx(self) -> nx.Graph[int]:
        """Return a networkx graph on the user's ids, with the columns of both tables.

        Returns
        -------
        networkx.Graph
            Nodes are ids of regions.
        """
        from napari_agglo.graph._interchange import to_networkx

        return to_networkx(self)

    def to_graphml(self, path: str | PathLike[str]) -> Path:
        """Write the graph as GraphML, atomically.

        Parameters
        ----------
        path : path-like
            The file to write.

        Returns
        -------
        Path
            The file that was written.
        """
        from napari_agglo.graph._interchange import to_graphml

        return to_graphml(self, path)

    @staticmethod
    def _mean(sums: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        out = np.full(len(sums), 0.5)
        np.divide(sums, 255.0 * counts, out=out, where=counts > 0)
        return out
