"""The partition as a webKnossos AgglomerateAttachment: a Zarr v3 group of flat arrays."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._exports._mapping import NAMES, agglomerate_arrays
from napari_agglo.session._exports._positions import representative_pixels
from napari_agglo.session._exports._target import check_target, refuse_overlap, writing
from napari_agglo.session._segments import check_lut
from napari_agglo.volumes import write_labels

_CLASS = "AgglomerateViewArtifact"
_VERSION = 4
# Bytes of a chunk and of a shard, as the specification asks: (offsets, all others).
_CHUNK = (1 << 16, 1 << 18)
_SHARD = (1 << 28, 1 << 30)


def export_agglomerate(
    path: str | PathLike[str],
    graph: RegionGraph,
    lut: ArrayLike,
    affinities: ArrayLike | None = None,
    *,
    superpixels: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Path:
    """Write a partition for webKnossos, whole or not at all.

    Parameters
    ----------
    path
        The folder to make; its name is the name of the mapping.
    graph : RegionGraph
        The superpixels, in 2-D or 3-D, and their boundaries.
    lut : array of int, shape (n + 1,)
        The segment of each superpixel. The file numbers segments anew, in the order of their
        smallest superpixel.
    affinities : array of float, shape (number of boundaries,), optional
        How much speaks for merging, for each boundary of the graph, which webKnossos splits by: 1
        less the probability of a boundary, say. By default 1 less the mean of the first cue.
    superpixels
        Where to write the label image that the mapping is made for. It must be given if the
        superpixels are not numbered 1, 2, ... without gaps, which webKnossos asks for: the mapping
        would be of other ids than those of the layer.
    overwrite : bool
        Whether an earlier attachment at `path`, or image at `superpixels`, may be replaced.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Path
        The folder written.

    Examples
    --------
    >>> import tempfile, numpy as np, zarr
    >>> from pathlib import Path
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export_agglomerate(Path(folder) / "proofread", graph, [0, 1, 3, 3])
    ...     zarr.open_group(path, mode="r")["segment_to_agglomerate"][:]
    array([0, 1, 2, 2], dtype=uint64)
    """
    table = check_lut(graph, lut)
    _refuse_unfit(graph, superpixels)
    weights = _affinities(graph, affinities)
    _refuse_other(check_target(path, overwrite))
    layer = None
    if superpixels is not None:
        layer = check_target(superpixels, overwrite, "superpixels", with_key=True)
        refuse_overlap(path, superpixels)
    pixels = representative_pixels(graph, progress=progress)
    arrays = agglomerate_arrays(graph, table, weights, pixels)
    target = Path(path)
    with writing(target, overwrite, may_replace=is_attachment) as temporary:
        _write(temporary, arrays)
        if layer is not None:
            write_labels(layer, graph.superpixels.image, spacing=graph.spacing)
    return target


def is_attachment(folder: Path) -> bool:
    """Whether a folder is an AgglomerateAttachment and nothing else, so that it may be replaced."""
    try:
        said = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
        ours = said["attributes"]["voxelytics"]["artifact_class"] == _CLASS
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return bool(ours) and {entry.name for entry in folder.iterdir()} == {"zarr.json", *NAMES}


def _refuse_other(target: Path) -> None:
    if target.is_dir() and any(target.iterdir()) and not is_attachment(target):
        raise InvalidInput(
            f"{target} is a folder that holds other things than an agglomerate attachment, which "
            "would be lost; choose another name, or remove it first."
        )


def _refuse_unfit(graph: RegionGraph, superpixels: object) -> None:
    if graph.layout.ndim > 3:
        raise InvalidInput(
            f"webKnossos holds up to 3 axes, and these superpixels have {graph.layout.ndim}; "
            "export the labels instead."
        )
    n = graph.n_regions
    if superpixels is None and int(graph.ids[-1]) != n:
        raise InvalidInput(
            f"webKnossos needs superpixels numbered 1 to {n} without gaps, and these {n} have ids "
            f"up to {int(graph.ids[-1])}; say superpixels=FILE.ome.zarr, and they are written "
            "there, renumbered, for use with the mapping."
        )


def _affinities(graph: RegionGraph, given: ArrayLike | None) -> NDArray[np.float64]:
    if given is None:
        if not graph.cue_names:
            return np.ones(graph.n_boundaries)
        return 1.0 - graph.boundary_mean(graph.cue_names[0])
    values = np.asarray(given, np.float64)
    if values.shape != (graph.n_boundaries,) or not np.isfinite(values).all():
        raise InvalidInput(
            f"`affinities` must be a finite number for each of {graph.n_boundaries} boundaries, "
            f"got shape {values.shape}."
        )
    return values


def _write(folder: Path, arrays: dict[str, NDArray[Any]]) -> None:
    import zarr
    from zarr.codecs import ZstdCodec

    said = {"artifact_schema_version": _VERSION, "artifact_class": _CLASS}
    group = zarr.create_group(str(folder), zarr_format=3, attributes={"voxelytics": said})
    for name, array in arrays.items():
        other = 0 if name.endswith("_offsets") else 1
        row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        n_rows = max(1, len(array))
        chunk = min(n_rows, _CHUNK[other] // row_bytes)
        shard = -(-min(n_rows, _SHARD[other] // row_bytes) // chunk) * chunk
        made = group.create_array(
            name, shape=array.shape, dtype=array.dtype, chunks=(chunk, *array.shape[1:]),
            shards=(shard, *array.shape[1:]), compressors=ZstdCodec(level=5, checksum=True),
            fill_value=0, config={"write_empty_chunks": True},
        )  # fmt: skip
        if array.size:
            made[...] = array
