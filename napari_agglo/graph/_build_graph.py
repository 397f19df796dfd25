"""Region graph of a label image and cues: checks, memory and progress around the kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import DataWarning, InvalidInput, SetOption, check_choice, check_whole
from napari_agglo.graph._region_graph import DEFAULT_BINS, Layout, RegionGraph
from napari_agglo.graph._scan import (
    CueColumns,
    EncodedRows,
    Pairs,
    Pixels,
    Rows,
    enter_pairs,
    scan_rows,
)
from napari_agglo.volumes import (
    Affinities,
    OrientedMap,
    VoxelSize,
    Words,
    check_cues,
    check_same_axes,
    check_same_shape,
    check_same_spacing,
    check_spacing,
    dense_labels,
    refuse_directions,
    warn_of_places,
)

T = TypeVar("T", bound=np.generic)

# Pixels between two reports of progress: about a twentieth of a second.
_SLICE = 2_000_000
# Slots of the cache of recent pairs: 64 KiB, so that it stays in the processor's cache.
_RECENT = 4096
# Pixels of the rows that are kept as runs; beyond it a row is encoded once for each axis. In a row
# of more pixels, sums of values might exceed 32 bits.
_MOST_ENCODED = 1 << 22
# Boundaries per region to allocate at first; volumes have five or six.
_ROOM = 8
# Deviations by which a boundary map of the wrong sign is lower where regions touch than inside of
# them: 0.43 to 0.56 in the three samples, and as much higher with the right sign.
_INVERTED = 0.25
_LEAST = 1 << 12  # pixels below which nothing is said of it
_SAMPLE = 1 << 18  # pixels that tell the deviation where the sums of squares are not kept


def region_graph(
    superpixels: Any,
    cues: Any,
    *,
    spacing: Any = None,
    unit: str | None = None,
    ranges: Mapping[str, tuple[float, float]] | tuple[float, float] | None = None,
    statistics: Literal["all", "mean"] = "all",
    bins: int = DEFAULT_BINS,
    dams: bool = False,
    nan: Literal["refuse", "boundary"] = "refuse",
    keep_cues: bool = True,
    progress: ProgressCallback | None = None,
) -> RegionGraph:
    """Find the regions of a label image, their boundaries, and the statistics of both.

    Two regions are adjacent where two of their pixels share a face. Label 0 is "no region".

    Parameters
    ----------
    superpixels : array of int
        Labels, in any number of dimensions; ids may be sparse and 64-bit.
    cues : dict of str to array, or array
        Per-pixel evidence by name, each of the shape of `superpixels`; a single array is the cue
        "boundary". Floats are expected in [0, 1]; other types and values need `ranges`. The result
        of `affinities` is evidence per face, and gives several cues; so does an oriented map, of
        `oriented_boundary` or `oriented_map`. `Words`, such as `textons`, are counted in regions.
    spacing : sequence of float, optional
        Size of a pixel along each axis; 1 by default, or that of a `Volume`.
    unit : str, optional
        Unit of `spacing`, such as "nm"; by default that of a `Volume` whose spacing is used. The
        spacing of the graph is in micrometres if the unit is known.
    ranges : pair of float, or dict of str to pair, optional
        The values that mean 0 and 1, for all cues or by name; ``(255, 0)`` inverts a cue.
    statistics : {"all", "mean"}
        Statistics of each cue: sums of powers 1 to 4 and a histogram, or its sum alone, which
        suffices for the mean policy and takes half the time.
    bins : int
        Bins of the histograms, 1 to 256.
    dams : bool
        Regions on the two sides of a line of 0, one pixel thick, are adjacent. The values on the
        line are then the evidence of that boundary.
    nan : {"refuse", "boundary"}
        Treatment of NaN: refuse it, or count it as boundary, 1.
    keep_cues : bool
        Keep the cues in the graph, one byte per pixel and cue, or direction of an oriented cue;
        the label image has four bytes per pixel. A superpixel can be divided only in a graph with
        its cues.
    progress : callable, optional
        Called with a `Progress` several times a second; raise `Cancelled` in it to stop.

    Returns
    -------
    RegionGraph

    Warns
    -----
    DataWarning
        If the cue "boundary" is lower where regions touch than inside of them, as one of the inside
        of objects is; or if Volumes are crops from different places.

    Examples
    --------
    >>> import numpy as np
    >>> superpixels = np.array([[1, 1, 2], [3, 3, 2]])
    >>> boundary = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    >>> graph = region_graph(superpixels, boundary)
    >>> graph.boundary_table()[["u", "v", "area", "boundary_mean"]]
       u  v  area  boundary_mean
    0  1  2   1.0           1.00
    1  1  3   2.0           0.25
    2  2  3   1.0           0.50
    """
    check_whole("bins", bins, 1, 256)
    check_choice("statistics", statistics, ("all", "mean"))
    dense = dense_labels(superpixels, "superpixels", progress=progress)
    named = cues if isinstance(cues, Mapping) else {"boundary": cues}
    named_inputs = {f"cues[{name!r}]": cue for name, cue in named.items()}
    check_same_axes({"superpixels": superpixels, **named_inputs})
    warn_of_places({"superpixels": superpixels, **named_inputs})
    if spacing is None:
        voxel = check_same_spacing({"superpixels": superpixels, **named_inputs})
    else:
        voxel = VoxelSize(check_spacing(spacing, dense.image.ndim))
    voxel = voxel.in_unit(unit).in_micrometres()
    distances = check_spacing(voxel.spacing, dense.image.ndim)
    named = {name: _at_borders(name, cue, dense.image) for name, cue in named.items()}
    words = {name: cue for name, cue in named.items() if isinstance(cue, Words)}
    named = {name: cue for name, cue in named.items() if name not in words}
    checked = check_cues(
        named, dense.image.shape, ranges, nan=nan, shape_of="superpixels", progress=progress
    )
    values = _with_words(checked.values, words, checked.names, dense.image.shape)
    if statistics == "mean":
        words = {}
    kept = (int(bins), 4) if statistics == "all" else (0, 1)
    counts = tuple(cue.n_words for cue in words.values())
    layout = Layout(dense.image.ndim, len(checked.names), *kept, checked.sources, counts)
    values = values[: layout.n_planes]
    edges, regions, boundaries, boxes = scan(
        dense.image, values, layout, len(dense.ids), dams, progress
    )
    graph = RegionGraph(
        superpixels=dense,
        spacing=distances,
        unit=voxel.unit,
        cue_names=checked.names,
        cue_ranges=checked.ranges,
        layout=layout,
        edges=edges,
        regions=regions,
        boundaries=boundaries,
        boxes=boxes,
        dams=bool(dams),
        cues=_read_only(values) if keep_cues else None,
        far=_far_channels(named) if keep_cues else (),
        word_names=tuple(words),
    )
    _compare_sign(graph, values)
    return graph


def _compare_sign(graph: RegionGraph, values: NDArray[np.uint8]) -> None:
    """Warn of a cue "boundary" that is lower on the borders of regions than inside of them."""
    layout = graph.layout
    if "boundary" not in graph.cue_names:
        return
    cue = graph.cue_names.index("boundary")
    pixels, samples = graph.regions[:, 0].sum(), 2 * graph.boundaries[:, layout.faces].sum()
    is_oriented = bool(layout.source_table()[cue, 0])
    if is_oriented or pixels < _LEAST or not samples:
        return
    first = layout.region_cues + cue * layout.cue_width
    mean = graph.regions[:, first].sum() / pixels
    if layout.powers > 1:
        deviation = math.sqrt(max(graph.regions[:, first + 1].sum() / pixels - mean * mean, 0.0))
    else:  # of a sample, where the sums of squares are not kept
        plane = values[layout.source_table()[cue, 1]]
        step = max(1, math.ceil((plane.size / _SAMPLE) ** (1 / plane.ndim)))
        deviation = float(plane[(slice(None, None, step),) * plane.ndim].std())
    at_borders = graph.boundaries[:, layout.boundary_cues + cue * layout.cue_width].sum() / samples
    if mean - at_borders > _INVERTED * deviation:
        warning = DataWarning(
            "`cues['boundary']` is lower where regions touch than inside of them "
            f"({at_borders / 255:.2f} and {mean / 255:.2f}), as if it were high inside objects",
            argument="cues['boundary']",
            remedy=SetOption("ranges", graph.cue_ranges[cue][::-1], "boundary", when="if it is"),
        )
        warn_caller(warning)


class Window(NamedTuple):
    """The pixels of an array that are those of a block, and the place of the block in a volume.

    `core` are the pixels that count along each axis, from the first on; what is beyond only closes
    their faces. `origin` is the place of the first pixel in the volume, whose shape is `whole`.
    """

    origin: tuple[int, ...]
    core: tuple[int, ...]
    whole: tuple[int, ...]


def _far_channels(cues: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return offset and channel of all long-range affinities among the cues."""
    each = (cue.far for cue in cues.values() if isinstance(cue, Affinities))
    return tuple(one for channels in each for one in channels)


def _with_words(
    values: NDArray[np.uint8],
    words: Mapping[str, Words],
    names: tuple[str, ...],
    shape: tuple[int, ...],
) -> NDArray[np.uint8]:
    """Return the planes of cues with those of words after them."""
    for name, cue in words.items():
        check_same_shape(shape, cue, "superpixels", f"cues[{name!r}]")
        if name in names:
            raise InvalidInput(
                f"`cues` has two cues called {name!r}",
                argument="cues",
                remedy="give the words another name",
            )
    if not words:
        return values
    return np.concatenate([values, *(cue.words.reshape(1, -1) for cue in words.values())])


def _at_borders(name: str, cue: Any, labels: NDArray[np.uint32]) -> Any:
    """Return a cue, or the cues that an oriented map has at the borders of labels."""
    if not isinstance(cue, OrientedMap):
        return cue
    refuse_directions(labels, name)
    check_same_shape(labels.shape, cue, "superpixels", f"cues[{name!r}]")
    return cue.at_borders(labels)


def _read_only(values: NDArray[T]) -> NDArray[T]:
    values.flags.writeable = False
    return values


def scan(
    image: NDArray[np.uint32],
    values: NDArray[np.uint8],
    layout: Layout,
    n_labels: int,
    dams: bool,
    progress: ProgressCallback | None,
    window: Window | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Run the kernel over all rows, grow its arrays between calls, and sort the boundaries.

    With a window, only its pixels and the faces that belong to them count, and the faces of the
    boundaries are not yet added to the contact of regions: a region may have more in other blocks.
    """
    # The kernel is compiled for read-only arrays, which those of a graph are, and once is enough.
    labels, values = _read_only(image.reshape(-1)), _read_only(values.view())
    shape = np.array(image.shape, np.int64)
    strides = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))], np.int64)
    place = Window((0,) * image.ndim, image.shape, image.shape) if window is None else window
    within = np.array([place.core, place.origin, place.whole], np.int64)
    width = image.shape[-1]
    n_rows = labels.size // width if width else 0
    step = max(1, _SLICE // max(width, 1))
    # Zeros take no memory until they are written, so the arrays may be large. A row of pixels
    # cannot have more pairs of labels than there are.
    room = _ROOM * n_labels + min(layout.ndim * width, n_labels * n_labels)
    regions = np.zeros((n_labels, layout.region_width), np.int64)
    boxes = np.zeros((n_labels, 2, layout.ndim), np.int32)
    boundaries = np.zeros((room, layout.boundary_width), np.int64)
    pairs = np.zeros((room, 2), np.int64)
    n_pairs = np.zeros(1, np.int64)
    table = _empty_table(room)
    recent = np.zeros(2 * _RECENT, np.int64)
    bin_of = (np.arange(256) * layout.bins // 256).astype(np.uint8)
    pixels = Pixels(labels, values, n_labels, shape, strides, within, dams)
    cues = CueColumns(
        layout.source_table(), layout.word_table(), bin_of, layout.powers, layout.bins
    )
    encoded = _encoded_rows(image.shape, len(values) if layout.powers == 1 else 0)
    row = 0
    while row < n_rows:
        report(progress, "graph", row, n_rows)
        stop = min(row + step, n_rows)
        rows = Rows(
            regions.reshape(-1), layout.region_width, boxes,
            boundaries.reshape(-1), layout.boundary_width,
        )  # fmt: skip
        known_pairs = Pairs(pairs, n_pairs, table, recent)
        row = scan_rows(row, stop, pixels, cues, rows, known_pairs, encoded)
        if row < stop:  # the next row might not have fitted
            room = 2 * room + min(layout.ndim * width, n_labels * n_labels)
            boundaries = _grown(boundaries, room, int(n_pairs[0]))
            pairs = _grown(pairs, room, int(n_pairs[0]))
            table = _empty_table(room)
            enter_pairs(pairs, n_pairs[0], n_labels, table)
    n = int(n_pairs[0])
    order = np.argsort(pairs[:n, 0] * n_labels + pairs[:n, 1])
    edges = pairs[order]
    boundaries = boundaries[order]
    if window is None:
        add_contact(edges, boundaries, layout, regions)
    report(progress, "graph", n_rows, n_rows)
    return edges, regions, boundaries, boxes


def _encoded_rows(shape: tuple[int, ...], n_planes: int) -> EncodedRows:
    """Return places for the rows of an array of this shape, and of so many planes of values."""
    width = shape[-1]
    places = 1 + math.prod(shape[1:-1]) if len(shape) > 1 else 1
    if places * width > _MOST_ENCODED:
        places = len(shape)
    if width > _MOST_ENCODED:
        n_planes = 0
    return EncodedRows(
        where=np.zeros(len(shape), np.int64),
        rows=np.full(places, -1, np.int64),
        starts=np.zeros((places, width + 1), np.int32),
        counts=np.zeros(places, np.int64),
        sums=np.zeros((n_planes, places, width + 1), np.int32),
    )


def add_contact(
    edges: NDArray[np.int64],
    boundaries: NDArray[np.int64],
    layout: Layout,
    regions: NDArray[np.int64],
) -> None:
    """Add the faces of all boundaries to the contact of their regions."""
    for side in (0, 1):
        for axis in range(layout.ndim):
            faces = np.bincount(edges[:, side], boundaries[:, axis], minlength=len(regions))
            regions[:, layout.contact.start + axis] += faces.astype(np.int64)


def _empty_table(room: int) -> NDArray[np.int64]:
    slots = 1 << (2 * room - 1).bit_length()
    return np.zeros(2 * slots, np.int64)


def _grown(array: NDArray[np.int64], room: int, used: int) -> NDArray[np.int64]:
    larger = np.zeros((room, *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger
