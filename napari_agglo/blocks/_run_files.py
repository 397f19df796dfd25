"""Files of a block-wise run: a results folder with its plan, and parts of the inputs.

A job reads and writes the tables, stores and arrays of a folder by their names. A result that is
missing or damaged is named by the tasks that make it, to be done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import MergeTree
from napari_agglo.blocks._block_grid import Grid, Slices
from napari_agglo.blocks._plan import Plan, Source
from napari_agglo.blocks._stores import absent_chunks, open_level
from napari_agglo.blocks._tables import DamagedTable, Table, write_table
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, load_policy
from napari_agglo.volumes import DenseLabels, disk_labels
from napari_agglo.volumes import _atomic as files

Notes = dict[str, Any]
SUPERPIXELS, LABELS = "superpixels.ome.zarr", "labels.ome.zarr"
POLICY, CLASSIFIER = "policy.npz", "classifier.npz"


class Redo(Exception):
    """A result that a task reads is missing or damaged: these tasks must be done again first."""

    def __init__(self, tasks: list[tuple[str, int]], reason: str) -> None:
        super().__init__(reason)
        self.tasks = tasks


@dataclass(frozen=True)
class Job:
    """A results folder and its plan."""

    folder: Path
    plan: Plan

    @property
    def grid(self) -> Grid:
        """The blocks of the volume."""
        return self.plan.grid

    def table(self, stage: str, index: int) -> Path:
        """Return the file of the table of a task."""
        return self.folder / "tables" / stage / f"{index:06d}.table"

    def write(self, stage: str, index: int, arrays: dict[str, NDArray[Any]]) -> int:
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

    def store(self, name: str) -> Path:
        """Return the folder of a store."""
        return self.folder / name

    def cue(self, name: str, slices: Slices, notes: Notes) -> NDArray[Any]:
        """Read a part of a cue."""
        if name in self.plan.cues:
            return read_source(self.plan.cues[name], slices, f"cues[{name!r}]", notes)
        return self._own(f"cue_{name}.ome.zarr", "predict", slices)

    def range(self, name: str) -> tuple[float, float] | None:
        """Return the values of a cue that mean 0 and 1, if they are declared."""
        return (0.0, 65535.0) if name in self.plan.predicted else self.plan.ranges.get(name)

    def labels(self, slices: Slices, notes: Notes) -> NDArray[Any]:
        """Read a part of the superpixels."""
        if self.plan.superpixels is not None:
            return read_source(self.plan.superpixels, slices, "superpixels", notes)
        return self._own(SUPERPIXELS, "superpixels", slices)

    def _own(self, store: str, stage: str, slices: Slices) -> NDArray[Any]:
        array = open_level(self.store(store))
        if absent_chunks(array, slices)[0]:
            lost = [
                (stage, index)
                for index in range(self.grid.n_blocks)
                if absent_chunks(array, self.grid.slices(index))[0]
            ]
            raise Redo(lost, f"{store} lacks chunks of {len(lost)} blocks")
        return np.asarray(array[slices])

    @cached_property
    def arrays(self) -> Callable[[str], NDArray[Any]]:
        """Return a reader of the arrays of the graph, the tree and the table, memory-mapped."""

        def read(name: str) -> NDArray[Any]:
            try:
                # Private pages, so that kernels take them for arrays in memory and are not
                # compiled again for read-only ones; the file is never written.
                array = np.asarray(np.load(self.folder / f"{name}.npy", mmap_mode="c"))
            except (OSError, ValueError) as error:
                stage = name.partition("/")[0]
                raise Redo([(stage, 0)], f"{name}.npy cannot be read ({error})") from error
            return array

        return read

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Write an array of the graph, the tree or the table, whole or not at all."""
        path = self.folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{files.token()}.partial")
        try:
            with temporary.open("xb") as handle:
                np.lib.format.write_array(handle, np.asarray(array), allow_pickle=False)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def policy(self) -> Policy | str:
        """Return the policy of the plan."""
        return load_policy(self.folder / POLICY) if self.plan.policy_digest else self.plan.policy

    def graph(self, prefix: str = "") -> RegionGraph:
        """Return the graph, its tables memory-mapped and its superpixels on disk.

        With `prefix` "rest_", the graph that is left by the final merges of a hierarchical run.
        """
        plan = self.plan
        if plan.hierarchical and not prefix:
            raise InvalidInput(
                f"{self.folder} is of a hierarchical run, whose graph was never in one place",
                argument="folder",
                remedy="use its tree and labels, or plan without `hierarchical`",
            )
        ids = self.arrays(f"graph/{prefix}ids")
        return RegionGraph(
            superpixels=lazy_superpixels(self, ids),
            spacing=plan.spacing,
            cue_names=plan.cue_names,
            cue_ranges=tuple(self.range(name) or (0.0, 1.0) for name in plan.cue_names),
            layout=plan.layout,
            edges=self.arrays(f"graph/{prefix}edges"),
            regions=self.arrays(f"graph/{prefix}regions"),
            boundaries=self.arrays(f"graph/{prefix}boundaries"),
            boxes=self.arrays(f"graph/{prefix}boxes"),
            dams=plan.dams,
            cues=None,
        )

    def tree(self) -> MergeTree:
        """Return the merge tree."""
        ids = self.arrays("graph/ids")
        labels = lazy_superpixels(self, ids)
        winners, losers, priorities = (
            self.arrays(f"tree/{name}") for name in ("winners", "losers", "priorities")
        )
        sizes = np.asarray(self.arrays("graph/sizes"))
        return MergeTree(labels, winners, losers, priorities, sizes)


def read_source(source: Source, slices: Slices, name: str, notes: Notes) -> NDArray[Any]:
    """Read a part of an input; note how many of its chunks are not in the store."""
    data = source.open().data
    array = getattr(data, "array", None)
    if array is not None and len(array.shape) == len(slices):
        absent, _ = absent_chunks(array, slices)
        if absent:
            missing = notes.setdefault("absent", {})
            missing[name] = missing.get(name, 0) + absent
    return np.ascontiguousarray(data[slices])


def lazy_superpixels(job: Job, ids: NDArray[np.uint64]) -> DenseLabels:
    """Return the superpixels on disk, with dense ids."""
    source = job.plan.superpixels
    data = open_level(job.store(SUPERPIXELS)) if source is None else source.open().data
    return disk_labels(data, ids, job.plan.label_dtype)
