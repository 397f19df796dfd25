"""Files of meshes: PLY, OBJ and STL, and folders of meshes for neuroglancer.

Coordinates in files are in the order x, y, z: column, row, plane.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.shapes._mesh import Mesh
from napari_agglo.volumes import replacing

Meshes = Mapping[int, Mesh]


def write_mesh(path: str | PathLike[str], meshes: Mesh | Meshes) -> Path:
    """Write the surfaces of one segment or several to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        ``.ply`` (binary, with the segment of each triangle as ``segment``), ``.obj`` (text, an
        object for each segment) or ``.stl`` (binary, triangles alone).
    meshes : Mesh or dict of Mesh by segment
        Surfaces. Coordinates are written in the order x, y, z.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, numpy as np, napari_agglo as agglo
    >>> from napari_agglo.shapes import write_mesh
    >>> labels = np.ones((3, 3, 3), int)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_mesh(f"{folder}/cells.obj", {1: agglo.mesh(labels, 1, smooth=0)})
    ...     path.read_text().splitlines()[:2]
    ['o segment_1', 'v 0.0 0.0 -0.5']
    """
    target = Path(path)
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise InvalidInput(
            f"A mesh is written as {', '.join(_WRITERS)}, not as {target.suffix or target.name!r}",
            argument="path",
            remedy=f"name it {target.with_suffix('.ply').name}",
        )
    several = {1: meshes} if isinstance(meshes, Mesh) else dict(meshes)
    if not several:
        raise InvalidInput(
            "There is no mesh to write", argument="meshes", remedy="pass a mesh, or a dict of them"
        )
    with replacing(target) as temporary, temporary.open("wb") as file:
        write(file, several)
    return target


def _joined(meshes: Meshes) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.uint64]]:
    """Return all vertices as x, y, z, all triangles, and the segment of each triangle."""
    offsets = np.cumsum([0, *(len(one.vertices) for one in meshes.values())])
    vertices = np.concatenate([one.vertices[:, ::-1] for one in meshes.values()])
    parts = [one.faces + start for one, start in zip(meshes.values(), offsets, strict=False)]
    segments = np.repeat(
        np.array(list(meshes), np.uint64), [len(one.faces) for one in meshes.values()]
    )
    return vertices.astype("<f4"), np.concatenate(parts).astype("<i4"), segments


def _write_ply(file: BinaryIO, meshes: Meshes) -> None:
    vertices, faces, segments = _joined(meshes)
    # PLY has no 64-bit integers; ids up to 2**53 are exact in a double.
    wide = int(segments.max()) >= 2**31
    kind, dtype = ("double", "<f8") if wide else ("int", "<i4")
    head = [
        "ply", "format binary_little_endian 1.0", "comment coordinates are x, y, z",
        f"element vertex {len(vertices)}", *(f"property float {axis}" for axis in "xyz"),
        f"element face {len(faces)}", "property list uchar int vertex_indices",
        f"property {kind} segment", "end_header", "",
    ]  # fmt: skip
    file.write("\n".join(head).encode("ascii"))
    file.write(vertices.tobytes())
    rows = np.empty(len(faces), [("n", "u1"), ("corners", "<i4", 3), ("segment", dtype)])
    rows["n"], rows["corners"], rows["segment"] = 3, faces, segments
    file.write(rows.tobytes())


def _write_obj(file: BinaryIO, meshes: Meshes) -> None:
    start = 1  # vertices are counted from 1, through all objects
    for segment, one in meshes.items():
        file.write(f"o segment_{segment}\n".encode("ascii"))
        lines = [f"v {x} {y} {z}\n" for x, y, z in one.vertices[:, ::-1].tolist()]
        corners = (one.faces + start).tolist()
        lines += [f"f {a} {b} {c}\n" for a, b, c in corners]
        file.write("".join(lines).encode("ascii"))
        start += len(one.vertices)


def _write_stl(file: BinaryIO, meshes: Meshes) -> None:
    vertices, faces, _ = _joined(meshes)
    corners = vertices[faces]
    rows = np.zeros(
        len(faces), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
    )
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    rows["normal"] = normal / np.maximum(length, 1e-30)
    rows["corners"] = corners
    file.write(b"coordinates are x, y, z".ljust(80))
    file.write(np.uint32(len(faces)).astype("<u4").tobytes())
    file.write(rows.tobytes())


_WRITERS: dict[str, Callable[[BinaryIO, Meshes], None]] = {
    ".ply": _write_ply,
    ".obj": _write_obj,
    ".stl": _write_stl,
}
MESH_SUFFIXES = tuple(_WRITERS)
_TYPE = "neuroglancer_legacy_mesh"


def write_precomputed(
    path: str | PathLike[str],
    meshes: Meshes,
    *,
    spacing: ArrayLike = 1.0,
    nanometres: float = 1.0,
) -> Path:
    """Write meshes as a folder for neuroglancer: precomputed, single resolution.

    Parameters
    ----------
    path : path-like
        The folder, for example ``mesh`` in the folder of a precomputed segmentation, whose ``info``
        then needs ``"mesh": "mesh"``. By itself it is opened as ``precomputed://URL``.
    meshes : dict of Mesh by segment
        Surfaces; the keys are the ids of the segmentation.
    spacing : sequence of float
        Size of a voxel, as of the meshes: neuroglancer has 0 at the corner of the first voxel, not
        at its centre.
    nanometres : float
        Length of a unit of the spacing.

    Returns
    -------
    Path
        The folder, with ``info``, and for each segment a fragment ``ID`` and a manifest ``ID:0``.
        (Windows does not allow a colon in a file name.)

    Examples
    --------
    >>> import tempfile, numpy as np, napari_agglo as agglo
    >>> from napari_agglo.shapes import write_precomputed
    >>> labels = np.ones((3, 3, 3), int)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_precomputed(f"{folder}/mesh", {8: agglo.mesh(labels, 1)})
    ...     sorted(one.name for one in path.iterdir()), (path / "8:0").read_text()
    (['8', '8:0', 'info'], '{"fragments": ["8"]}')
    """
    target = Path(path)
    if not (np.isfinite(nanometres) and nanometres > 0):
        raise InvalidInput(
            f"`nanometres` must be the length of a unit, above 0, got {nanometres!r}",
            argument="nanometres",
            remedy="pass 1000 for micrometres",
        )
    half = np.broadcast_to(np.asarray(spacing, np.float64), 3) / 2
    with replacing(target, may_replace=is_precomputed) as temporary:
        temporary.mkdir()
        (temporary / "info").write_text(json.dumps({"@type": _TYPE}), encoding="utf-8")
        for segment, one in meshes.items():
            name = str(int(segment))
            manifest = json.dumps({"fragments": [name]})
            (temporary / f"{name}:0").write_text(manifest, encoding="utf-8")
            xyz = ((one.vertices + half) * nanometres)[:, ::-1]
            data = [
                np.array([len(one.vertices)], "<u4").tobytes(),
                np.ascontiguousarray(xyz, "<f4").tobytes(),
                one.faces.astype("<u4").tobytes(),
            ]
            (temporary / name).write_bytes(b"".join(data))
    return target


def is_precomputed(folder: Path) -> bool:
    """Return whether a folder has meshes for neuroglancer, and nothing else."""
    try:
        info = json.loads((folder / "info").read_text(encoding="utf-8"))
        names = {entry.name for entry in folder.iterdir()}
    except (OSError, ValueError):
        return False
    ours = isinstance(info, dict) and info.get("@type") == _TYPE
    return ours and all(name == "info" or name.removesuffix(":0").isdigit() for name in names)
