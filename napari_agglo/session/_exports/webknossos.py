"""The partition as a webKnossos AgglomerateAttachment: a Zarr v3 group of flat arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.graph import RegionGraph
from napari_agglo.session._cut_methods.segment_graph import pieces_of
from napari_agglo.session._exports.export_kinds import (
    ExportView,
    check_target,
    exporter,
    split_key,
)
from napari_agglo.volumes import is_on_disk, replacing, slabs, write_labels

_SLICE = 1 << 24  # pixels between two reports of progress, about a tenth of a second


def representative_pixels(
    graph: RegionGraph, *, progress: ProgressCallback | None = None
) -> NDArray[np.int32]:
    """Return the pixel of each superpixel nearest to its centroid, which may lie outside of it.

    The result are indices of shape (n + 1, ndim); row 0 is zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 1, 1], [1, 2, 2], [1, 1, 1]]), np.zeros((3, 3)))
    >>> representative_pixels(graph)[1:].tolist()  # the centroid of 1 would be (1, 0.86)
    [[1, 0], [1, 1]]
    """
    image = graph.superpixels.image
    centroids = np.nan_to_num(graph.centroids())
    best = np.full(graph.n_regions + 1, np.inf)
    at = np.zeros(graph.n_regions + 1, np.int64)
    index = np.zeros(image.ndim, np.int64)
    shape, spacing = np.array(image.shape, np.int64), np.array(graph.spacing)
    for first, flat in _flat_parts(image):
        for start in range(0, flat.size, _SLICE):
            report(progress, "positions", first + start, image.size)
            stop = min(start + _SLICE, flat.size)
            index[:] = np.unravel_index(first + start, image.shape)
            before = best.copy()
            _nearest(flat, start, stop, index, shape, spacing, centroids, best, at)
            at[best < before] += first  # places count from the beginning of the image
    report(progress, "positions", image.size, image.size)
    places = np.stack(np.unravel_index(at, image.shape), axis=1).astype(np.int32)
    places[0] = 0
    return places


def _flat_parts(image: Any) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Yield the image, or slabs of an image on disk, each with the number of its first pixel."""
    if not is_on_disk(image):
        yield 0, image.reshape(-1)
        return
    for first, _, slab in slabs(image):
        yield first, slab.reshape(-1)


@kernel
def _nearest(
    image: NDArray[np.uint32],
    start: int,
    stop: int,
    index: NDArray[np.int64],
    shape: NDArray[np.int64],
    spacing: NDArray[np.float64],
    centroids: NDArray[np.float64],
    best: NDArray[np.float64],
    at: NDArray[np.int64],
) -> None:
    """Keep the pixel nearest to each centroid, of equals the first, and its squared distance.

    `index` must be that of pixel `start`; it is that of `stop` in the end. No bounds checking.
    """
    ndim = shape.size
    for i in range(start, stop):
        label = image[i]
        if label != 0:
            distance = 0.0
            for axis in range(ndim):
                step = (index[axis] - centroids[label, axis]) * spacing[axis]
                distance += step * step
            if distance < best[label]:
                best[label] = distance
                at[label] = i
        axis = ndim - 1
        index[axis] += 1
        while axis > 0 and index[axis] == shape[axis]:
            index[axis] = 0
            axis -= 1
            index[axis] += 1


# Arrays of webKnossos' AgglomerateAttachment, version 4: superpixels are called segments there, and
# segments agglomerates; both are numbered from 1 without gaps, and 0 is the background.
# https://docs.webknossos.org/webknossos-py/spec

NAMES = (
    "segment_to_agglomerate",
    "agglomerate_to_segments_offsets",
    "agglomerate_to_segments",
    "agglomerate_to_edges_offsets",
    "agglomerate_to_edges",
    "agglomerate_to_affinities",
    "agglomerate_to_positions",
)


def agglomerate_arrays(
    graph: RegionGraph,
    lut: NDArray[np.uint64],
    affinities: NDArray[np.float64],
    pixels: NDArray[np.int32],
) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of an attachment by their names.

    `lut` is the segment of each superpixel, `affinities` the evidence for merging across each
    boundary, `pixels` a pixel of each superpixel.
    """
    n = graph.n_regions
    _, first, number = np.unique(lut[1:], return_index=True, return_inverse=True)
    # Agglomerates are in the order of their smallest superpixel.
    agglomerate = np.argsort(np.argsort(first))[number] + 1
    offsets = _offsets(agglomerate, len(first))
    order = np.argsort(agglomerate, kind="stable")
    local = np.empty(n + 1, np.int64)
    local[order + 1] = np.arange(n) - offsets[agglomerate[order]]
    owner = np.concatenate([[0], agglomerate])
    edges, weights = _connected_edges(graph, owner, affinities)
    belongs = owner[edges[:, 0]]
    in_order = np.lexsort((edges[:, 1], edges[:, 0], belongs))
    ids = np.uint32 if n < 2**32 else np.uint64
    xyz = np.zeros((n, 3), np.int32)  # a plane is at z = 0
    xyz[:, : pixels.shape[1]] = pixels[order + 1, ::-1]
    arrays = (
        owner.astype(np.uint64),
        offsets.astype(np.uint64),
        (order + 1).astype(ids),
        _offsets(belongs, len(first)).astype(np.uint64),
        local[edges[in_order]].astype(ids),
        weights[in_order].astype(np.float32),
        xyz,
    )
    return dict(zip(NAMES, arrays, strict=True))


def _offsets(belongs: NDArray[np.int64], n_agglomerates: int) -> NDArray[np.int64]:
    """Return the start of the entries of each agglomerate, and the end of the last one."""
    counts = np.bincount(belongs, minlength=n_agglomerates + 1)
    return np.concatenate([[0], np.cumsum(counts)])


def _connected_edges(
    graph: RegionGraph, owner: NDArray[np.int64], affinities: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the boundaries inside agglomerates, and edges between the pieces of one in several.

    For readers, agglomerates are the connected components of the edges, so strong edges must join
    the pieces of an agglomerate that was merged across a gap.
    """
    inside = owner[graph.edges[:, 0]] == owner[graph.edges[:, 1]]
    edges = graph.edges[inside]
    _, piece = pieces_of(graph.n_regions + 1, edges)
    _, smallest = np.unique(piece[1:], return_index=True)
    smallest = np.sort(smallest + 1)
    _, first, number = np.unique(owner[smallest], return_index=True, return_inverse=True)
    ties = np.stack([smallest[first[number]], smallest], axis=1)
    ties = ties[ties[:, 0] != ties[:, 1]]
    strong = np.full(len(ties), max(1.0, float(affinities.max(initial=1.0))))
    return np.concatenate([edges, ties]), np.concatenate([affinities[inside], strong])


_CLASS = "AgglomerateViewArtifact"
_VERSION = 4
# Bytes of a chunk and of a shard, as the specification asks: (offsets, all others).
_CHUNK = (1 << 16, 1 << 18)
_SHARD = (1 << 28, 1 << 30)


@exporter("agglomerate", label="webKnossos agglomerate")
def export_agglomerate(
    view: ExportView,
    path: str | PathLike[str],
    *,
    affinities: Annotated[
        NDArray[np.float64] | None,
        "Affinity of each boundary (default: 1 less the mean of the first cue)",
    ] = None,
    superpixels: Annotated[
        Path | str | None, "Label image to write, renumbered 1, 2, ... without gaps"
    ] = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> None:
    """Write a partition for webKnossos: a folder, whose name is the name of the mapping.

    Segments are numbered again, in the order of their smallest superpixel. `affinities` are the
    evidence for merging across each boundary, by which webKnossos splits. `superpixels` is the file
    of the label image for the mapping; it is required if the superpixels are not numbered 1, 2, ...
    without gaps, as webKnossos expects. `overwrite` also allows to replace that file.
    """
    target = check_target(path, overwrite)
    _refuse_other(target)
    graph = view.graph
    _refuse_unfit(graph, superpixels)
    weights = _affinities(graph, affinities)
    layer = None
    if superpixels is not None:
        layer = check_target(superpixels, overwrite, "superpixels", with_key=True)
        _refuse_overlap(path, superpixels)
    pixels = representative_pixels(graph, progress=progress)
    arrays = agglomerate_arrays(graph, view.lut, weights, pixels)
    with replacing(target, may_replace=is_attachment) as temporary:
        _write(temporary, arrays)
        if layer is not None:
            write_labels(layer, graph.superpixels.image, spacing=graph.spacing, unit=graph.unit)


def is_attachment(folder: Path) -> bool:
    """Return whether a folder is an AgglomerateAttachment and nothing else."""
    try:
        group = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
        ours = group["attributes"]["voxelytics"]["artifact_class"] == _CLASS
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return bool(ours) and {entry.name for entry in folder.iterdir()} == {"zarr.json", *NAMES}


def _refuse_other(target: Path) -> None:
    if target.is_dir() and any(target.iterdir()) and not is_attachment(target):
        raise InvalidInput(
            f"{target} is a folder with other files than those of an agglomerate attachment",
            argument="path",
            remedy="choose another name, or remove it first",
        )


def _refuse_overlap(path: str | PathLike[str], superpixels: str | PathLike[str]) -> None:
    """Refuse two targets of which one is, or is in, the other."""
    layer, _ = split_key(superpixels, "superpixels", True)
    ours, theirs = (
        Path(os.path.normcase(os.path.realpath(one))) for one in (os.fspath(path), layer)
    )
    if ours == theirs or ours in theirs.parents or theirs in ours.parents:
        raise InvalidInput(
            f"`superpixels` must not be in `path`, nor the reverse, got {os.fspath(superpixels)} "
            f"and {os.fspath(path)}",
            argument="superpixels",
            remedy="choose another folder or name for it",
        )


def _refuse_unfit(graph: RegionGraph, superpixels: object) -> None:
    if graph.layout.ndim > 3:
        raise InvalidInput(
            f"webKnossos takes up to 3 axes, and these superpixels have {graph.layout.ndim}",
            argument="kind",
            remedy="export the labels instead",
        )
    n = graph.n_regions
    if superpixels is None and int(graph.ids[-1]) != n:
        raise InvalidInput(
            f"webKnossos needs superpixels numbered 1 to {n} without gaps, and these {n} have ids "
            f"up to {int(graph.ids[-1])}; they must be written with new ids as well",
            argument="superpixels",
            remedy=SetOption("superpixels", "FILE.ome.zarr"),
        )


def _affinities(graph: RegionGraph, affinities: ArrayLike | None) -> NDArray[np.float64]:
    if affinities is None:
        if not graph.cue_names:
            return np.ones(graph.n_boundaries)
        return 1.0 - graph.boundary_mean(graph.cue_names[0])
    values = np.asarray(affinities, np.float64)
    if values.shape != (graph.n_boundaries,) or not np.isfinite(values).all():
        raise InvalidInput(
            f"`affinities` must be a finite number for each of {graph.n_boundaries} boundaries, "
            f"got shape {values.shape}",
            argument="affinities",
            remedy="pass 1 - graph.boundary_mean(), for example",
        )
    return values


def _write(folder: Path, arrays: dict[str, NDArray[Any]]) -> None:
    import zarr
    from zarr.codecs import ZstdCodec

    kind = {"artifact_schema_version": _VERSION, "artifact_class": _CLASS}
    group = zarr.create_group(str(folder), zarr_format=3, attributes={"voxelytics": kind})
    for name, array in arrays.items():
        other = 0 if name.endswith("_offsets") else 1
        row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        n_rows = max(1, len(array))
        chunk = min(n_rows, _CHUNK[other] // row_bytes)
        shard = -(-min(n_rows, _SHARD[other] // row_bytes) // chunk) * chunk
        stored = group.create_array(
            name, shape=array.shape, dtype=array.dtype, chunks=(chunk, *array.shape[1:]),
            shards=(shard, *array.shape[1:]), compressors=ZstdCodec(level=5, checksum=True),
            fill_value=0, config={"write_empty_chunks": True},
        )  # fmt: skip
        if array.size:
            stored[...] = array
