"""Mappings of other programs: the segment of each superpixel, read as a lut over a label image.

volara writes a lut (``.npz``) and a graph (SQLite), webKnossos an agglomerate attachment (Zarr), an
agglomerate file (HDF5) or a mapping (JSON), Neuroglancer a state (JSON) with equivalences.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, OneOf, Remedy, SetOption, check_choice, is_number
from napari_agglo.volumes._checks import check_labels
from napari_agglo.volumes._on_disk import reading

_ATTACHMENT = "segment_to_agglomerate"
_VOLARA = "fragment_segment_lut"


@dataclass(frozen=True, eq=False)
class SegmentMapping:
    """The segment of each superpixel, in the ids of the program that wrote it.

    Attributes
    ----------
    superpixels : ndarray of uint64, shape (n,)
        Ids of superpixels, ascending, each once; 0 is not among them.
    segments : ndarray of uint64, shape (n,)
        The segment of each.
    name : str
        Name of the file.

    Examples
    --------
    >>> import numpy as np
    >>> mapping = SegmentMapping.of([7, 5, 9], [1, 1, 2])
    >>> mapping.apply(np.array([0, 5, 7, 9], np.uint8))
    array([0, 1, 1, 2], dtype=uint8)
    """

    superpixels: NDArray[np.uint64]
    segments: NDArray[np.uint64]
    name: str = "mapping"

    @classmethod
    def of(cls, superpixels: Any, segments: Any, name: str = "mapping") -> SegmentMapping:
        """Return a mapping of ids in any order; refuse one that gives two segments to an id.

        Parameters
        ----------
        superpixels, segments : array of int, shape (n,)
            Ids of superpixels, and the segment of each.
        name : str
            A name for messages.

        Returns
        -------
        SegmentMapping
            The mapping, in ascending order.
        """
        ids, targets = (_ids(one, name) for one in (superpixels, segments))
        if ids.shape != targets.shape:
            raise InvalidInput(
                f"{name} has {ids.size} superpixels and {targets.size} segments",
                argument="mapping",
                remedy="check that this is a mapping",
            )
        order = np.argsort(ids, kind="stable")
        ids, targets = ids[order], targets[order]
        double = np.flatnonzero((ids[1:] == ids[:-1]) & (targets[1:] != targets[:-1]))
        if double.size:
            raise InvalidInput(
                f"{name} gives superpixel {ids[double[0]]} to two segments",
                argument="mapping",
                remedy="check that this is a mapping",
            )
        keep = np.append(True, ids[1:] != ids[:-1])[: ids.size] & (ids != 0)
        return cls(ids[keep], targets[keep], name)

    def apply(self, labels: Any, unmapped: str = "keep") -> NDArray[Any]:
        """Return the segments of a label image of superpixels.

        Parameters
        ----------
        labels : array of int
            The superpixels.
        unmapped : {"keep", "zero", "refuse"}
            Superpixels that the mapping does not have keep their id, which no segment may have;
            become 0; or are refused.

        Returns
        -------
        ndarray
            Segments, of the type of `labels`, or a wider one if an id does not fit.
        """
        check_choice("unmapped", unmapped, ("keep", "zero", "refuse"))
        image = check_labels(labels, "superpixels")
        ids, inverse = np.unique(image, return_inverse=True)
        known = ids.astype(np.uint64)
        at = np.minimum(np.searchsorted(self.superpixels, known), max(0, self.superpixels.size - 1))
        has = (
            self.superpixels[at] == known if self.superpixels.size else np.zeros(ids.size, np.bool_)
        )
        table = np.where(has, self.segments[at] if self.segments.size else 0, known)
        table = table.astype(np.uint64)
        missing = ~has & (known != 0)
        if missing.any() and unmapped == "refuse":
            raise InvalidInput(
                f"{self.name} has no segment for {int(missing.sum())} of {int((known != 0).sum())} "
                f"superpixels, such as {known[missing][0]}",
                argument="mapping",
                remedy=(
                    "check that the mapping belongs to these superpixels",
                    SetOption("unmapped", "keep"),
                ),
            )
        if unmapped == "zero":
            table[missing] = 0
        elif missing.any():
            clash = np.intersect1d(known[missing], self.segments)
            if clash.size:
                raise InvalidInput(
                    f"{self.name} does not have superpixel {clash[0]}, and has a segment of that "
                    "id, so that both would become one",
                    argument="mapping",
                    remedy=(
                        SetOption("unmapped", "zero"),
                        "check that the mapping belongs to these superpixels",
                    ),
                )
        highest = int(table.max(initial=0))
        fits = highest <= int(np.iinfo(image.dtype).max)
        dtype = image.dtype if fits else np.min_scalar_type(highest)
        segments: NDArray[Any] = table.astype(dtype)[inverse].reshape(image.shape)
        return segments


def _ids(values: Any, name: str) -> NDArray[np.uint64]:
    array = np.asarray(values).reshape(-1)
    if array.size == 0:
        return np.zeros(0, np.uint64)
    if array.dtype.kind not in "iu":
        raise InvalidInput(
            f"{name} has ids of type {array.dtype}, not whole numbers",
            argument="mapping",
            remedy="check that this is a mapping",
        )
    return array.astype(np.uint64)


def read_mapping(
    path: str | os.PathLike[str], *, score: str | None = None, threshold: float | None = None
) -> SegmentMapping:
    """Read a mapping of another program.

    Parameters
    ----------
    path
        A lut of volara (``.npz``), its SQLite database, an agglomerate attachment of webKnossos (a
        Zarr folder, as `Session.export` writes it), its agglomerate file (``.h5``/``.hdf5``), its
        mapping (``.json`` with ``classes``), or a state of Neuroglancer (``.json`` with
        ``equivalences``).
    score, threshold
        For a database of edges: superpixels are joined whose edge has a value above `threshold` in
        the column `score`.

    Returns
    -------
    SegmentMapping
        The segment of each superpixel.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mapping.json"
    ...     _ = file.write_text(json.dumps({"name": "cells", "classes": [[5, 7], [9]]}))
    ...     read_mapping(file).segments
    array([5, 5, 9], dtype=uint64)
    """
    if not isinstance(path, str | os.PathLike) or not Path(path).exists():
        raise InvalidInput(f"{path} does not exist", argument="mapping", remedy="check the path")
    file = Path(path)
    readers: dict[str, Callable[[Path], SegmentMapping]] = {
        ".npz": _read_npz, ".json": _read_json, ".h5": _read_hdf5, ".hdf5": _read_hdf5
    }  # fmt: skip
    try:
        with reading(file, "a mapping"):
            if file.is_dir():
                return _read_attachment(file)
            with file.open("rb") as handle:
                if handle.read(16) == b"SQLite format 3\0":
                    return _read_sqlite(file, score, threshold)
            if file.suffix.lower() in readers:
                return readers[file.suffix.lower()](file)
    except InvalidInput as error:
        if error.argument != "source":
            raise
        raise InvalidInput(error.problem, argument="mapping", remedy=error.remedy) from error
    raise InvalidInput(
        f"{file} is not a mapping of a known format",
        argument="mapping",
        remedy="give a lut of volara (.npz), its SQLite database, or a mapping of webKnossos or "
        "Neuroglancer (.json, .h5, a Zarr folder)",
    )


def _refuse(file: Path, content: str) -> InvalidInput:
    return InvalidInput(
        f"{file} has no {content}", argument="mapping", remedy="check that this is a mapping"
    )


def _read_npz(file: Path) -> SegmentMapping:
    """Read ``fragment_segment_lut``, shape (2, n), alone: other members may be Python objects."""
    from numpy.lib import format as npy_format

    with zipfile.ZipFile(file) as archive:
        if f"{_VOLARA}.npy" not in archive.namelist():
            raise _refuse(file, f"member {_VOLARA}, as the luts of volara have")
        with archive.open(f"{_VOLARA}.npy") as member:
            lut = npy_format.read_array(member, allow_pickle=False)
    if lut.ndim != 2 or lut.shape[0] != 2:
        if lut.size == 0:
            return SegmentMapping.of([], [], file.name)
        raise _refuse(file, f"two rows in {_VOLARA}, but the shape {lut.shape}")
    return SegmentMapping.of(lut[0], lut[1], file.name)


def _read_attachment(folder: Path) -> SegmentMapping:
    import zarr

    if not (folder / _ATTACHMENT / "zarr.json").is_file():
        raise _refuse(folder, f"array {_ATTACHMENT}, as agglomerate attachments have")
    array = zarr.open_array(str(folder / _ATTACHMENT), mode="r")
    return _dense(np.asarray(array[...]), folder)


def _read_hdf5(file: Path) -> SegmentMapping:
    import h5py

    with h5py.File(file, "r") as handle:
        if not isinstance(handle.get(_ATTACHMENT), h5py.Dataset):
            raise _refuse(file, f"dataset {_ATTACHMENT}, as agglomerate files have")
        return _dense(handle[_ATTACHMENT][...], file)


def _dense(table: NDArray[Any], file: Path) -> SegmentMapping:
    """Return a mapping whose superpixels are 0, 1, 2, ...; 0 is the background."""
    return SegmentMapping.of(np.arange(table.size), table.reshape(-1), file.name)


def _read_json(file: Path) -> SegmentMapping:
    content = json.loads(file.read_text(encoding="utf-8"))
    if isinstance(content, dict) and isinstance(content.get("classes"), list):
        return _classes(content["classes"], file)
    layers = content.get("layers") if isinstance(content, dict) else None
    equivalences = [
        one["equivalences"]
        for one in layers or ()
        if isinstance(one, dict) and isinstance(one.get("equivalences"), list)
    ]
    if len(equivalences) != 1:
        raise _refuse(file, f"single list of classes or equivalences, but {len(equivalences)}")
    return _classes(equivalences[0], file)


def _classes(classes: list[Any], file: Path) -> SegmentMapping:
    """Return a mapping by lists of superpixels; a segment has the id of its smallest one."""
    try:
        groups = [[int(one) for one in group] for group in classes]
    except (TypeError, ValueError) as error:
        raise _refuse(file, "list of lists of ids") from error
    sizes = [len(group) for group in groups if group]
    ids = np.array([one for group in groups for one in group], np.uint64)
    least = np.array([min(group) for group in groups if group], np.uint64)
    return SegmentMapping.of(ids, np.repeat(least, sizes), file.name)


def _read_sqlite(file: Path, score: str | None, threshold: float | None) -> SegmentMapping:
    """Join the superpixels of the edges above a threshold; those without one are segments, too."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    uri = f"{file.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(edges)")]
        if "u" not in columns or "v" not in columns:
            raise _refuse(file, "table `edges` with the columns u and v")
        scores = [one for one in columns if one not in ("u", "v")]
        if score not in scores:
            choices: Remedy = OneOf(tuple(SetOption("score", one) for one in scores))
            raise InvalidInput(
                f"{file} has the scores {', '.join(scores) or 'none'}"
                + (f", not {score!r}" if score else ""),
                argument="score",
                remedy=choices if scores else "use a lut of volara instead",
            )
        if not is_number(threshold):
            raise InvalidInput(
                f"{file} has edges with a score each, and those above a `threshold` are to be "
                f"joined, got {threshold!r}",
                argument="threshold",
                remedy=SetOption("threshold", 0.5),
            )
        quoted = '"' + score.replace('"', '""') + '"' if score else ""
        rows = database.execute(
            f"SELECT u, v FROM edges WHERE {quoted} > ?", (float(threshold or 0.0),)
        ).fetchall()
        has_nodes = [row[1] for row in database.execute("PRAGMA table_info(nodes)")]
        key = "id" if "id" in has_nodes else "node_id" if "node_id" in has_nodes else None
        nodes = [row[0] for row in database.execute(f"SELECT {key} FROM nodes")] if key else []
    # SQLite has signed numbers: an id above 2**63 comes back negative, and wraps round again
    pairs = np.array(rows, np.int64).reshape(-1, 2).view(np.uint64)
    ids = np.unique(np.concatenate([np.array(nodes, np.int64).view(np.uint64), pairs.reshape(-1)]))
    ends = np.searchsorted(ids, pairs)
    ones = np.ones(len(ends), np.bool_)
    graph = coo_matrix((ones, (ends[:, 0], ends[:, 1])), (ids.size, ids.size))
    _, component = connected_components(graph, directed=False)
    _, first = np.unique(component, return_index=True)
    return SegmentMapping.of(ids, ids[first][component], file.name)
