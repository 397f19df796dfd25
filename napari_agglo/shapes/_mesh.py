"""Surface of a segment: marching cubes on its bounding box, coarser where the box is large.

Strategy: only the box of the segment is read, slab by slab. Where it has more voxels than wanted,
blocks of voxels become one voxel, with the share of the block that is in the segment as its value;
the finest axes become coarser first, so that blocks are about cubes in space. A layer of empty
voxels around the box closes the surface at the border of the volume. Marching cubes of a mask makes
steps, which Taubin's method smooths: a step that shrinks the surface, then one that grows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.errors import InvalidInput, PickIndex, check_whole, is_whole
from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import check_spacing, spacing_of, unwrap

Box = tuple[slice, ...]

MOST_VOXELS = 1 << 21  # of a box before it is coarsened: a third of a second of marching cubes
SMOOTHING = 10  # pairs of steps; more change little that can be seen
_SHRINK, _GROW = 0.5, -0.53  # Taubin's factors: details of a few voxels go, the volume stays
_SLAB = 1 << 24  # voxels that are read at a time
_THIN = 0.1  # least share of a block in the segment that may count as inside


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles of a closed surface.

    Attributes
    ----------
    vertices : ndarray of float32, shape (n, 3)
        Positions in units of the spacing, in the order of the axes (plane, row, column); the centre
        of the first voxel is at 0.
    faces : ndarray of int32, shape (m, 3)
        Vertices of each triangle. With coordinates in the order column, row, plane (x, y, z), they
        run anticlockwise seen from outside.

    Examples
    --------
    >>> import numpy as np, napari_agglo as agglo
    >>> labels = np.zeros((6, 6, 6), int)
    >>> labels[1:5, 1:5, 1:5] = 7
    >>> cube = agglo.mesh(labels, 7, spacing=(2, 1, 1), smooth=0)
    >>> cube.bounds.tolist()
    [[1.0, 0.5, 0.5], [9.0, 4.5, 4.5]]
    >>> round(cube.volume)  # the edges of the 128 units of the voxels are bevelled
    117
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} faces)"

    @property
    def bounds(self) -> NDArray[np.float32]:
        """The least and the greatest coordinates, shape (2, 3)."""
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)])

    @property
    def volume(self) -> float:
        """The volume inside, in units of the spacing."""
        a, b, c = self._corners()
        # Coordinates are in the order z, y, x, which turns the sign.
        return float(-np.einsum("ij,ij->", a, np.cross(b, c)) / 6)

    @property
    def area(self) -> float:
        """The area, in units of the spacing."""
        a, b, c = self._corners()
        return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)

    def _corners(self) -> tuple[NDArray[np.float64], ...]:
        corners = self.vertices.astype(np.float64)
        return tuple(corners[self.faces[:, k]] for k in range(3))


def mesh(
    labels: Any,
    segment: int | Sequence[int],
    *,
    spacing: Sequence[float] | None = None,
    box: ArrayLike | None = None,
    max_voxels: int = MOST_VOXELS,
    smooth: int = SMOOTHING,
    progress: ProgressCallback | None = None,
) -> Mesh:
    """Return the surface of a segment, or of several as one, of a label image with three axes.

    The surface is closed, at the border of the volume too. Of a session, use
    ``session.segments.mesh(id)``, which knows the box of each segment.

    Parameters
    ----------
    labels : array of int, Volume or lazy array
        The label image. It is read slab by slab.
    segment : int or sequence of int
        The label, or labels.
    spacing : sequence of float, optional
        Size of a voxel along each axis; by default that of a `Volume`, else 1.
    box : array of int, shape (2, 3), optional
        First index, and one past the last, along each axis: only this part is read. Without it the
        whole image is searched for the segment.
    max_voxels : int
        Number of voxels above which the box is made coarser.
    smooth : int
        Number of smoothing steps; 0 leaves the stairs of the voxels.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop.

    Returns
    -------
    Mesh
        Vertices in units of the spacing, and triangles.

    Examples
    --------
    >>> import numpy as np, napari_agglo as agglo
    >>> z, y, x = np.ogrid[:20, :20, :20]
    >>> ball = ((z - 10) ** 2 + (y - 10) ** 2 + (x - 10) ** 2 < 64).astype(int)
    >>> agglo.mesh(ball, 1)
    Mesh(1158 vertices, 2312 faces)
    """
    data = unwrap(labels, "labels")
    distance = spacing_of(labels, "labels") if spacing is None else spacing
    _check_axes(data.shape, "labels")
    ids = _checked_ids(segment)
    if np.dtype(data.dtype).kind not in "iu":
        raise InvalidInput(
            f"`labels` must hold whole numbers, not {np.dtype(data.dtype)}",
            argument="labels",
            remedy="pass a label image",
        )

    def inside(part: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(part == ids[0] if len(ids) == 1 else np.isin(part, ids))

    searched = _checked_box(box, data.shape)
    first_box = _searched(data, searched, inside, part_of(progress, 0.0, 0.3))
    if first_box is None:
        raise InvalidInput(
            f"There is no label {', '.join(map(str, ids))} in `labels`"
            f"{'' if box is None else ' within `box`'}",
            argument="segment",
            remedy="pass a label of the image" if box is None else "pass another box",
        )
    return _surface(
        data, first_box, inside, check_spacing(distance, 3), max_voxels, smooth,
        part_of(progress, 0.3, 1.0),
    )  # fmt: skip


def mesh_of_regions(
    graph: RegionGraph,
    members: NDArray[Any],
    *,
    max_voxels: int = MOST_VOXELS,
    smooth: int = SMOOTHING,
    progress: ProgressCallback | None = None,
) -> Mesh:
    """Return the surface of a union of regions of a graph, by dense ids; their box alone is read.

    Parameters
    ----------
    graph : RegionGraph
        A graph with its label image, of three dimensions.
    members : array of int
        Dense ids of the regions.
    max_voxels : int
        Number of voxels above which the box is made coarser.
    smooth : int
        Number of smoothing steps; 0 leaves the stairs of the voxels.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Mesh
        Vertices in units of the spacing, and triangles.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> labels = np.zeros((4, 4, 4), int)
    >>> labels[:2], labels[2:] = 5, 6
    >>> graph = region_graph(labels, np.zeros((4, 4, 4)), spacing=(3, 1, 1))
    >>> mesh_of_regions(graph, np.array([2]), smooth=0).bounds.tolist()
    [[4.5, -0.5, -0.5], [10.5, 3.5, 3.5]]
    """
    image = graph.superpixels.image
    _check_axes(image.shape, "segment")
    if not len(members):
        raise InvalidInput(
            "There is no segment to make a surface of", argument="segment", remedy="name one"
        )
    boxes = graph.boxes[members]
    box = _slices(boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0))
    table = np.zeros(graph.n_regions + 1, np.bool_)
    table[members] = True

    def inside(part: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(table[part])

    return _surface(image, box, inside, graph.spacing, max_voxels, smooth, progress)


def _check_axes(shape: Sequence[int], argument: str) -> None:
    if len(shape) != 3:
        raise InvalidInput(
            f"A surface needs three axes (plane, row, column), and the image has {len(shape)}",
            argument=argument,
            remedy=PickIndex(tuple(range(len(shape) - 3)), len(shape))
            if len(shape) > 3
            else "use a volume",
        )


def _checked_ids(segment: Any) -> NDArray[Any]:
    ids = list(segment) if isinstance(segment, Iterable) else [segment]
    if not ids or not all(is_whole(one) and one > 0 for one in ids):
        raise InvalidInput(
            f"`segment` must be a label, 1 or more, or a list of labels, got {segment!r:.80}",
            argument="segment",
            remedy="pass a label of the image; 0 is the background",
        )
    return np.array([int(one) for one in ids])


def _slices(start: Any, stop: Any) -> Box:
    return tuple(slice(int(a), int(b)) for a, b in zip(start, stop, strict=True))


def _checked_box(box: Any, shape: Sequence[int]) -> Box:
    if box is None:
        return _slices([0] * len(shape), shape)
    corners = np.asarray(box)
    is_box = corners.shape == (2, len(shape)) and corners.dtype.kind in "iu"
    if not is_box or (corners[0] < 0).any() or (corners[1] > shape).any() or (
        corners[0] >= corners[1]
    ).any():  # fmt: skip
        raise InvalidInput(
            f"`box` must be two rows of {len(shape)} whole numbers within the shape "
            f"{tuple(shape)}, first index and one past the last, got {box!r:.80}",
            argument="box",
            remedy=f"pass [[0, 0, 0], {[int(n) for n in shape]}], for example",
        )
    return _slices(*corners)


def _slabs(box: Box, thick: int) -> Iterable[Box]:
    """Yield parts of a box along axis 0, each a multiple of `thick` planes but the last."""
    first, *rest = box
    plane = math.prod(one.stop - one.start for one in rest)
    step = max(1, _SLAB // max(1, plane) // thick) * thick
    for start in range(first.start, first.stop, step):
        yield (slice(start, min(start + step, first.stop)), *rest)


def _searched(
    data: Any,
    box: Box,
    inside: Callable[[NDArray[Any]], NDArray[np.bool_]],
    progress: ProgressCallback | None,
) -> Box | None:
    """Return the bounding box of a segment within a box; None if it is not there."""
    low = np.array([one.stop for one in box])
    high = np.array([one.start for one in box])
    for part in _slabs(box, 1):
        report(progress, "searching the segment", part[0].start, box[0].stop)
        mask = inside(np.asarray(data[part]))
        for axis in range(mask.ndim):
            others = tuple(k for k in range(mask.ndim) if k != axis)
            at = np.flatnonzero(mask.any(axis=others)) + part[axis].start
            if len(at):
                low[axis] = min(low[axis], at[0])
                high[axis] = max(high[axis], at[-1] + 1)
    return _slices(low, high) if (low < high).all() else None


def coarse_steps(
    shape: Sequence[int], spacing: Sequence[float], max_voxels: int
) -> tuple[int, ...]:
    """Return the voxels of a block along each axis, so that a box has few enough blocks.

    Examples
    --------
    >>> coarse_steps((10, 100, 100), (40.0, 4.0, 4.0), 20_000)
    (1, 3, 2)
    >>> coarse_steps((64, 64, 64), (1.0, 1.0, 1.0), 1 << 30)
    (1, 1, 1)
    """
    steps = [1] * len(shape)
    while math.prod(-(-n // s) for n, s in zip(shape, steps, strict=True)) > max_voxels:
        finest = min(
            (axis for axis, n in enumerate(shape) if steps[axis] < n),
            key=lambda axis: (steps[axis] * spacing[axis], -shape[axis]),
        )
        steps[finest] += 1
    return tuple(steps)


def _surface(
    data: Any,
    box: Box,
    inside: Callable[[NDArray[Any]], NDArray[np.bool_]],
    spacing: tuple[float, ...],
    max_voxels: int,
    smooth: int,
    progress: ProgressCallback | None,
) -> Mesh:
    check_whole("max_voxels", max_voxels, 8)
    check_whole("smooth", smooth, 0)
    from skimage.measure import marching_cubes

    shape = [one.stop - one.start for one in box]
    steps = coarse_steps(shape, spacing, max_voxels)
    shares = np.zeros([-(-n // s) + 2 for n, s in zip(shape, steps, strict=True)], np.float32)
    inner = shares[1:-1, 1:-1, 1:-1]
    first, last = box[0].start, box[0].stop
    for part in _slabs(box, steps[0]):
        report(progress, "reading", part[0].start - first, 2 * (last - first))
        mask = inside(np.asarray(data[part]))
        at = (part[0].start - first) // steps[0]
        blocks = mask if max(steps) == 1 else _shares(mask, steps)
        inner[at : at + len(blocks)] = blocks
    report(progress, "surface", 1, 2)
    level = _level(inner, steps)
    vertices, faces, _, _ = marching_cubes(shares, level)
    report(progress, "smoothing", 3, 4)
    vertices = _smoothed(vertices, faces, smooth)
    # A block of s voxels has its centre at (s - 1) / 2; the empty layer is one block.
    start = np.array([one.start for one in box])
    index = (vertices - 1) * steps + (np.array(steps) - 1) / 2 + start
    report(progress, "surface", 4, 4)
    return Mesh((index * spacing).astype(np.float32), faces.astype(np.int32))


def _shares(mask: NDArray[np.bool_], steps: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the share of each block that is in the mask; outside of the mask is empty."""
    blocks = mask
    for axis, step in enumerate(steps):
        blocks = np.add.reduceat(
            blocks, np.arange(0, blocks.shape[axis], step), axis=axis, dtype=np.int32
        )
    return np.asarray(blocks / np.float32(math.prod(steps)), np.float32)


def _level(shares: NDArray[np.float32], steps: tuple[int, ...]) -> float:
    """Return the share from which a block is inside, so that the number of voxels stays.

    At one half, a sheet thinner than half a block would vanish.
    """
    size = math.prod(steps)
    if size == 1:
        return 0.5
    some = np.sort(shares[shares > 0])[::-1]
    n_blocks = max(1, round(float(some.sum())))
    level = min(max(float(some[n_blocks - 1]), _THIN), 0.5, float(some[0]))
    return level - 0.5 / size  # between two values that occur, as at one of them triangles collapse


def _smoothed(
    vertices: NDArray[np.float32], faces: NDArray[Any], n_steps: int
) -> NDArray[np.float64]:
    """Move each vertex towards the mean of its neighbours and away again, `n_steps` times."""
    from scipy.sparse import coo_array

    positions = vertices.astype(np.float64)
    n = len(positions)
    if n_steps == 0 or n == 0:
        return positions
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    both = np.concatenate([ends, ends[:, ::-1]])
    near = coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n, n)).tocsr()
    near.data[:] = 1.0
    counts = np.maximum(near.sum(axis=1), 1.0)[:, None]
    for _ in range(n_steps):
        for factor in (_SHRINK, _GROW):
            positions += factor * (near @ positions / counts - positions)
    return positions
