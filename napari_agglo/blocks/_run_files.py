"""Files of a block-wise run: a results folder with its plan, and parts of the inputs.

A job reads and writes the tables, stores and arrays of a folder by their names. A result that is
missing or damaged is named by the tasks that make it, to be done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import MergeTree
from napari_agglo.blocks._block_grid import Grid, Slices
from napari_agglo.blocks._face_cues import AFFINITY, offsets_of_text
from napari_agglo.blocks._piece_runs import Runs, runs_of
from napari_agglo.blocks._plan import Plan, Source
from napari_agglo.blocks._stores import (
    absent_chunks,
    chunk_boxes,
    coarser_box,
    holds_coarser,
    is_readable,
    level_grid,
    open_level,
)
from napari_agglo.blocks._tables import (
    DamagedTable,
    Rows,
    Table,
    check_array,
    write_array,
    write_table,
)
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, load_policy
from napari_agglo.volumes import (
    Affinities,
    Contingency,
    DenseLabels,
    DiskCues,
    DiskFaces,
    VoxelSize,
    add_tables,
    check_spacing,
    disk_labels,
    open_levels,
    open_volume,
)
from napari_agglo.volumes import _replace_file as files
from napari_agglo.volumes._disk_faces import boundary_part, cropped, margin, part_of_channels
from napari_agglo.volumes._on_disk import Index, OnDisk

Notes = dict[str, Any]
Task = tuple[str, int]  # a stage, and the number of a task of it
SUPERPIXELS, LABELS = "superpixels.ome.zarr", "labels.ome.zarr"
PRECOMPUTED = "labels.precomputed"
POLICY, CLASSIFIER = "policy.npz", "classifier.npz"


@dataclass(frozen=True)
class Absent:
    """Chunks of inputs that are not in their stores and read as the fill value, by input.

    A block counts the chunks that begin in it, so that all blocks together count each chunk once,
    although its voxels may lie in several of them, and in the halos of more.
    """

    block: Slices
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, data: OnDisk, slices: Slices, values: NDArray[Any]) -> None:
        """Count those of a part that was read; it may have further axes before those of a block."""
        before = len(slices) - len(self.block)
        chunks = data.chunks or (1,) * len(slices)
        own = list(slices[:before])
        for here, side in zip(self.block, chunks[before:], strict=True):
            own.append(slice(-(-here.start // side) * side, here.stop))
        if any(one.start >= one.stop for one in own):
            return
        part = tuple(
            slice(one.start - read.start, one.stop - read.start)
            for one, read in zip(own, slices, strict=True)
        )
        number = data.absent(tuple(own), values[part])
        if number:
            self.counts[name] = self.counts.get(name, 0) + number


@dataclass(frozen=True)
class CountedImage:
    """An image whose absent chunks are counted as its parts are read."""

    data: OnDisk
    name: str
    absent: Absent

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels along each axis."""
        return self.data.shape

    def __getitem__(self, index: Slices) -> NDArray[Any]:
        values = self.data[index]
        self.absent.add(self.name, self.data, index, values)
        return values


class Redo(Exception):
    """A result that a task reads is missing or damaged: these tasks must be done again first."""

    def __init__(self, tasks: list[Task], reason: str) -> None:
        super().__init__(reason)
        self.tasks = tasks


def is_joint(plan: Plan, store: str) -> bool:
    """Return whether the blocks of a store of labels write its first coarse level too."""
    return holds_coarser(plan.pyramid(store), plan.block, plan.chunks, plan.shards)


class StoredLevel:
    """A level of a store that blocks wrote, whose parts are read with all their chunks or not.

    A chunk that is absent, empty or cannot be decoded is lost: `Redo` names the tasks that write
    such chunks.
    """

    def __init__(self, job: Job, store: str, level: int) -> None:
        self._job, self._store, self._level = job, store, level
        try:
            self._array = open_level(job.store(store), level)
        except (OSError, ValueError) as error:
            everything = [task for task, _ in job.writers(store, level)]
            raise Redo(everything, f"{store} cannot be opened ({error})") from error
        self.shape: tuple[int, ...] = tuple(self._array.shape)
        self.chunks: tuple[int, ...] = tuple(self._array.chunks)

    def __getitem__(self, slices: Slices) -> NDArray[Any]:
        self.check(slices)
        try:
            return np.asarray(self._array[slices])
        except (MemoryError, OSError):
            raise
        except Exception:  # codecs raise nearly anything on a damaged chunk
            self._refuse(slices, lambda box: not is_readable(self._array, _common(box, slices)))
            raise

    def check(self, slices: Slices) -> None:
        """Ask for the tasks whose chunks are lost to be done again, if some of a part are."""
        if absent_chunks(self._array, slices):
            self._refuse(None, lambda box: absent_chunks(self._array, box) > 0)

    def _refuse(self, within: Slices | None, is_lost: Callable[[Slices], bool]) -> None:
        lost = [
            task
            for task, box in self._job.writers(self._store, self._level)
            if (within is None or all(s.start < s.stop for s in _common(box, within)))
            and is_lost(box)
        ]
        if lost:
            reason = f"{self._store}, level {self._level}, lacks chunks of {len(lost)} tasks"
            raise Redo(lost, reason)


def _common(one: Slices, other: Slices) -> Slices:
    """Return the common part of two boxes; an axis without one is empty."""
    return tuple(
        slice(max(a.start, b.start), max(a.start, b.start, min(a.stop, b.stop)))
        for a, b in zip(one, other, strict=True)
    )


@dataclass(frozen=True)
class Job:
    """A results folder and its plan.

    Attributes
    ----------
    folder : Path
        The results folder.
    plan : Plan
        Its plan.
    others : int
        Worker processes that share its budget.
    is_task : bool
        Whether this is the job of a task, which checks what it reads.
    written : dict of str to int
        Files that were written, beside tables and stores, and their bytes.
    """

    folder: Path
    plan: Plan
    others: int = 0
    is_task: bool = False
    written: dict[str, int] = field(default_factory=dict)

    @property
    def grid(self) -> Grid:
        """The blocks of the volume."""
        return self.plan.grid

    def table(self, stage: str, index: int) -> Path:
        """Return the file of the table of a task."""
        return self.folder / "tables" / stage / f"{index:06d}.table"

    def write(self, stage: str, index: int, arrays: Mapping[str, NDArray[Any] | Rows]) -> int:
        """Write the table of a task; return its bytes."""
        path = self.table(stage, index)
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_table(path, arrays)

    def read(self, stage: str, index: int) -> Table:
        """Open the table of a task; one that is damaged is to be done again."""
        try:
            return Table(self.table(stage, index))
        except DamagedTable as error:
            raise Redo([(stage, index)], str(error)) from error

    def values(self, stage: str, index: int, *names: str) -> list[NDArray[Any]]:
        """Read arrays of the table of a task."""
        table = self.read(stage, index)
        try:
            return [table.read(name) for name in names]
        except DamagedTable as error:
            raise Redo([(stage, index)], str(error)) from error

    def pieces(self, index: int) -> Runs:
        """Read the pieces of a block; earlier versions wrote the number of each voxel."""
        if "pieces" in self.read("cut", index):
            return runs_of(*self.values("cut", index, "pieces"))
        return Runs(*self.values("cut", index, "values", "begins"))

    def store(self, name: str) -> Path:
        """Return the folder of a store."""
        return self.folder / name

    def cue(self, name: str, slices: Slices, absent: Absent) -> NDArray[Any]:
        """Read a part of a cue."""
        if name in self.plan.cues:
            return read_source(self.plan.cues[name], slices, f"cues[{name!r}]", absent)
        return self.level(f"cue_{name}.ome.zarr")[slices]

    def evidence(self, slices: Slices, absent: Absent) -> dict[str, Any]:
        """Read a part of all cues, as `check_cues` takes them."""
        out: dict[str, Any] = {}
        if self.plan.affinities is not None:
            around, cues = self._channels(slices, absent)
            out[AFFINITY] = cropped(cues, slices, around)
        names = (*self.plan.cues, *self.plan.predicted)
        return out | {name: self.cue(name, slices, absent) for name in names}

    def boundary(self, slices: Slices, absent: Absent) -> NDArray[Any]:
        """Read a part of the map that superpixels are made of."""
        if self.plan.boundary != AFFINITY or self.plan.affinities is None:
            return self.cue(self.plan.boundary, slices, absent)
        around, cues = self._channels(slices, absent)
        return boundary_part(cues, slices, around)

    def _channels(self, slices: Slices, absent: Absent) -> tuple[Slices, Affinities]:
        """Read a part of the affinities with the margin that its faces need."""
        plan = self.plan
        assert plan.affinities is not None
        offsets = offsets_of_text(plan.offsets)
        around = margin(slices, offsets, plan.shape)
        every = (slice(0, len(offsets)), *around)
        channels = read_source(plan.affinities, every, "affinities", absent)
        limits = plan.ranges.get(AFFINITY)
        return around, part_of_channels(channels, around, offsets, limits, plan.nan)

    def range(self, name: str) -> tuple[float, float] | None:
        """Return the values of a cue that mean 0 and 1, if they are declared."""
        if name in self.plan.predicted:
            return (0.0, 65535.0)
        return self.plan.ranges.get(name if name in self.plan.cues else AFFINITY)

    def labels(self, slices: Slices, absent: Absent) -> NDArray[Any]:
        """Read a part of the superpixels."""
        if self.plan.superpixels is not None:
            return read_source(self.plan.superpixels, slices, "superpixels", absent)
        return self.level(SUPERPIXELS)[slices]

    def level(self, store: str, level: int = 0) -> StoredLevel:
        """Open a level of a store that blocks wrote, to be read with all its chunks."""
        return StoredLevel(self, store, level)

    def writers(self, store: str, level: int) -> list[tuple[Task, Slices]]:
        """Return the tasks that write a level of a store, each with its part of the level."""
        first = {SUPERPIXELS: "superpixels", LABELS: "labels"}.get(store, "predict")
        if first != "predict" and level > (1 if is_joint(self.plan, store) else 0):
            stage = f"{'overview' if store == SUPERPIXELS else 'pyramid'}-{level}"
            grid = level_grid(self.plan.pyramid(store).shapes[level], self.plan.block)
            return [((stage, k), grid.slices(k)) for k in range(grid.n_blocks)]
        boxes = [self.grid.slices(k) for k in range(self.grid.n_blocks)]
        if level:
            boxes = [coarser_box(self.plan.pyramid(store), box) for box in boxes]
        return [((first, k), box) for k, box in enumerate(boxes)]

    @cached_property
    def arrays(self) -> Callable[[str], NDArray[Any]]:
        """Return a reader of the arrays of the graph, the tree and the table, memory-mapped."""

        def read(name: str) -> NDArray[Any]:
            path = self.folder / f"{name}.npy"
            try:
                if self.is_task:
                    check_array(path)
                # Private pages, so that kernels take them for arrays in memory and are not
                # compiled again for read-only ones; the file is never written.
                array = np.asarray(np.load(path, mmap_mode="c"))
            except (OSError, ValueError) as error:
                stage = name.partition("/")[0]
                raise Redo([(stage, 0)], f"{name}.npy cannot be read ({error})") from error
            return array

        return read

    def save(self, name: str, array: NDArray[Any] | Rows) -> None:
        """Write an array of the graph, the tree or the table, whole or not at all."""
        path = self.folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{files.token()}.partial")
        try:
            write_array(temporary, array)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        self.note_file(f"{name}.npy")

    def note_file(self, name: str) -> None:
        """Note the size of a file that was written, so that its marker tells if it is lost."""
        self.written[name] = (self.folder / name).stat().st_size

    def policy(self) -> Policy | str:
        """Return the policy of the plan."""
        return load_policy(self.folder / POLICY) if self.plan.policy_digest else self.plan.policy

    def graph(self, prefix: str = "") -> RegionGraph:
        """Return the graph, its tables memory-mapped and its superpixels on disk.

        With `prefix` "rest_", the graph that is left by the final merges of a hierarchical run.
        """
        names = ("ids", "edges", "regions", "boundaries", "boxes")
        arrays = {name: self.arrays(f"graph/{prefix}{name}") for name in names}
        graph = self.graph_of(arrays, lazy_superpixels(self, arrays["ids"]))
        cues: Any = self.lazy_cues()
        return graph if prefix else replace(graph, cues=cues)

    def graph_of(self, arrays: dict[str, NDArray[Any]], superpixels: DenseLabels) -> RegionGraph:
        """Return the graph of some arrays, with the cues and settings of the plan."""
        plan = self.plan
        voxel = VoxelSize(plan.spacing, plan.unit).in_micrometres()
        return RegionGraph(
            superpixels=superpixels,
            spacing=check_spacing(voxel.spacing, len(plan.shape)),
            unit=voxel.unit,
            cue_names=plan.cue_names,
            cue_ranges=tuple(self.range(name) or (0.0, 1.0) for name in plan.cue_names),
            layout=plan.layout,
            edges=arrays["edges"],
            regions=arrays["regions"],
            boundaries=arrays["boundaries"],
            boxes=arrays["boxes"],
            dams=plan.dams,
            cues=None,
        )

    def overlaps(self) -> Contingency:
        """Return the overlaps of the superpixels with the gold standard, of all blocks."""
        blocks = range(self.grid.n_blocks)
        parts = [self.values("overlap", k, "rows", "columns", "counts") for k in blocks]
        return add_tables(parts, self.arrays("graph/ids"))

    def cue_path(self, name: str) -> str:
        """Return the path of a cue: of the user, or predicted by the run."""
        if name in self.plan.cues:
            return self.plan.cues[name].path
        return str(self.store(f"cue_{name}.ome.zarr"))

    def lazy_cues(self) -> DiskCues:
        """Return the cues as bytes, which are read box by box."""
        plan = self.plan
        names = (*plan.cues, *plan.predicted)
        ranges = [self.range(name) or (0.0, 1.0) for name in names]
        paths = [self.cue_path(name) for name in names]
        opened = [partial(_open_data, path) for path in paths]
        return DiskCues(names, opened, ranges, plan.shape, paths, self._lazy_faces(len(names)))

    def _lazy_faces(self, n_plain: int) -> DiskFaces | None:
        """Return the planes of affinities; None without affinities."""
        plan = self.plan
        if plan.affinities is None:
            return None
        path, limits = plan.affinities.path, self.range(AFFINITY)
        assert limits is not None  # which a plan has for affinities
        return DiskFaces(
            partial(_open_data, path), offsets_of_text(plan.offsets), limits, plan.shape,
            plan.layout.n_planes - n_plain, path,
        )  # fmt: skip

    def tree(self) -> MergeTree:
        """Return the merge tree."""
        ids = self.arrays("graph/ids")
        labels = lazy_superpixels(self, ids)
        winners, losers, priorities = (
            self.arrays(f"tree/{name}") for name in ("winners", "losers", "priorities")
        )
        sizes = np.asarray(self.arrays("graph/sizes"))
        return MergeTree(labels, winners, losers, priorities, sizes)


def read_source(source: Source, slices: Slices, name: str, absent: Absent) -> NDArray[Any]:
    """Read a part of an input; count its chunks that are not in the store."""
    data = source.open().data
    values = np.ascontiguousarray(data[slices])
    if isinstance(data, OnDisk):
        absent.add(name, data, slices, values)
    return values


def _open_data(path: str) -> Any:
    return open_volume(path).data


def lazy_superpixels(job: Job, ids: NDArray[np.uint64]) -> DenseLabels:
    """Return the superpixels on disk, with dense ids and their coarser levels."""
    source = job.plan.superpixels
    if source is None:
        data, *coarser = own_levels(job, SUPERPIXELS)
    else:
        data, *coarser = (level.data for level in open_levels(source.path))
    return disk_labels(data, ids, job.plan.label_dtype, coarser)


def own_levels(job: Job, store: str) -> list[Any]:
    """Return the levels of a store of the run, the finest first."""
    names = sorted(int(p.name) for p in job.store(store).iterdir() if p.name.isdigit())
    levels: list[Any] = []
    for level in names:
        array = open_level(job.store(store), level)
        read = _ReadOwn(job.folder, job.plan, store, level, array)
        levels.append(_OwnLevel(array, read))
    return levels


class _OwnLevel:
    """A level of a store of the run: the Zarr array, read by way of `_ReadOwn`."""

    def __init__(self, array: Any, read: _ReadOwn) -> None:
        self._array = array
        self._data = OnDisk(array.shape, array.dtype, read, array.chunks)

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return self._data[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._data.__array__(dtype, copy)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while it is unpickled, when it has no array yet
            raise AttributeError(name)
        return getattr(self._array, name)


@dataclass(frozen=True, eq=False)
class _ReadOwn:
    """Read a part of a level of a store of the run; refuse a chunk that is damaged by its name."""

    folder: Path
    plan: Plan
    store: str
    level: int
    array: Any

    def __call__(self, index: Index) -> NDArray[Any]:
        try:
            return np.asarray(self.array[index])
        except (MemoryError, OSError):
            raise
        except Exception as error:  # codecs raise nearly anything on a damaged chunk
            part = tuple(s if isinstance(s, slice) else slice(s, s + 1) for s in index)
            for (stage, k), box in Job(self.folder, self.plan).writers(self.store, self.level):
                common = _common(box, part)
                if not all(s.start < s.stop for s in common):
                    continue
                for file, voxels in chunk_boxes(self.array, common):
                    if not is_readable(self.array, voxels):
                        raise InvalidInput(
                            f"the chunk {file} is damaged ({error})",
                            argument="folder",
                            remedy="write it again: napari-agglo blocks run "
                            f"{self.folder} --stage {stage} --block {k}",
                        ) from error
            raise
