"""The surfaces of segments: one file, or a folder for neuroglancer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Annotated, Any

import numpy as np

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.errors import InvalidInput
from napari_agglo.session._exports.export_kinds import ExportView, check_target, exporter
from napari_agglo.session._segment_statistics import segments_of
from napari_agglo.shapes import (
    MESH_SUFFIXES,
    Mesh,
    mesh_of_regions,
    write_mesh,
    write_precomputed,
)
from napari_agglo.shapes._mesh import MOST_VOXELS, SMOOTHING
from napari_agglo.volumes import VoxelSize, check_spacing

Segments = Annotated[
    str | Sequence[int] | None, "Ids of segments, as text separated by commas (default: all)"
]
Least = Annotated[int, "Least size of a segment, in voxels"]
Voxels = Annotated[int, "Voxels of a box above which its surface is coarser"]
Smooth = Annotated[int, "Smoothing steps"]
Unit = Annotated[
    str,
    "Unit of the positions (default: um if the session knows its unit, else that of its numbers)",
]


@exporter("mesh", label="Surfaces of segments", suffixes=MESH_SUFFIXES, in_3d=True)
def export_mesh(
    view: ExportView,
    path: str | PathLike[str],
    *,
    segments: Segments = None,
    min_size: Least = 1,
    max_voxels: Voxels = MOST_VOXELS,
    smooth: Smooth = SMOOTHING,
    unit: Unit = "",
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> None:
    """Write the surfaces of segments to one PLY, OBJ or STL file, as `shapes.write_mesh` does."""
    target = check_target(path, overwrite)
    if target.suffix.lower() not in MESH_SUFFIXES:
        write_mesh(target, {})  # which refuses the suffix, before minutes of work
    length = _length(view, unit or None)
    meshes = _meshes(view, segments, min_size, max_voxels, smooth, progress)
    scaled = {one: replace(mesh, vertices=mesh.vertices * length) for one, mesh in meshes.items()}
    write_mesh(target, scaled)


@exporter("precomputed_mesh", label="Surfaces for Neuroglancer", in_3d=True)
def export_precomputed_mesh(
    view: ExportView,
    path: str | PathLike[str],
    *,
    segments: Segments = None,
    min_size: Least = 1,
    max_voxels: Voxels = MOST_VOXELS,
    smooth: Smooth = SMOOTHING,
    unit: Annotated[
        str, "Unit of the spacing, where the session does not know it (default: nm)"
    ] = "",
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> None:
    """Write the surfaces of segments as a folder, as `shapes.write_precomputed` does."""
    target = check_target(path, overwrite)
    length = _length(view, unit or None, "nm")
    meshes = _meshes(view, segments, min_size, max_voxels, smooth, progress)
    write_precomputed(target, meshes, spacing=view.graph.spacing, nanometres=length)


def _length(view: ExportView, *units: str | None) -> float:
    """Return the length of 1 in the spacing of a view, in the last of `units`.

    A spacing of an unknown unit is taken to be in the first of `units`.
    """
    one = VoxelSize((1.0,), view.graph.unit)
    for unit in units:
        one = one.in_unit(unit)
    return check_spacing(one.spacing, 1)[0]


def _meshes(
    view: ExportView,
    segments: Any,
    min_size: int,
    max_voxels: int,
    smooth: int,
    progress: ProgressCallback | None,
) -> dict[int, Mesh]:
    """Return the surfaces of segments by id, ascending."""
    graph, lut = view.graph, view.lut
    every = segments_of(graph, lut)
    chosen = _chosen(segments, every.ids.tolist())
    is_large = every.sizes >= min_size
    ids = [one for one in every.ids[is_large].tolist() if chosen is None or one in chosen]
    if not ids:
        raise InvalidInput(
            f"No segment has {min_size} voxels or more",
            argument="min_size",
            remedy="pass a smaller size",
        )
    order = np.argsort(lut[1:], kind="stable") + 1  # superpixels of a segment are neighbours here
    first, last = (np.searchsorted(lut[order], np.array(ids, np.uint64), side) for side in
                   ("left", "right"))  # fmt: skip
    meshes = {}
    for k, (segment, a, b) in enumerate(zip(ids, first.tolist(), last.tolist(), strict=True)):
        report(progress, "surfaces", k, len(ids))
        own = part_of(progress, k / len(ids), (k + 1) / len(ids), "surfaces")
        meshes[segment] = mesh_of_regions(
            graph, order[a:b], max_voxels=max_voxels, smooth=smooth, progress=own
        )
    return meshes


def _chosen(segments: Any, present: list[int]) -> set[int] | None:
    """Return the ids of an option: text, or numbers; None for all."""
    if segments is None or (isinstance(segments, str) and not segments.strip()):
        return None
    parts = segments.replace(",", " ").split() if isinstance(segments, str) else list(segments)
    try:
        ids = {int(one) for one in parts}
    except (TypeError, ValueError):
        raise InvalidInput(
            f"`segments` must be ids of segments, got {segments!r:.80}",
            argument="segments",
            remedy="pass '7, 12', or a list of numbers",
        ) from None
    missing = sorted(ids - set(present))
    if missing:
        raise InvalidInput(
            f"There is no segment {', '.join(map(str, missing[:10]))} at this threshold",
            argument="segments",
            remedy="take ids of segments.ids()",
        )
    return ids
