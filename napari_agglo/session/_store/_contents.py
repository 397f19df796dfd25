"""The data in a session directory, each read when it is asked for and checked before it is used."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._store._arrays import ARRAYS, read_array
from napari_agglo.session._store._create import TREE
from napari_agglo.session._store._errors import SessionDamaged
from napari_agglo.session._store._graph import STATISTICS, unpacked
from napari_agglo.session._store._manifest import Manifest
from napari_agglo.session._store._superpixels import read_superpixels
from napari_agglo.tree import MergeTree
from napari_agglo.volumes import DenseLabels


class Contents:
    """The arrays that a manifest describes."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @cached_property
    def superpixels(self) -> DenseLabels:
        """The label image on dense ids."""
        return read_superpixels(self.folder, self.manifest)

    def graph(self, progress: ProgressCallback | None = None) -> RegionGraph:
        """Read the region graph."""
        names = [*STATISTICS, *(name for name in ("cues",) if name in self.manifest.arrays)]
        total = 1 + len(names)
        report(progress, "reading the session", 0, total)
        labels = self.superpixels
        arrays = {}
        for done, name in enumerate(names, 1):
            report(progress, "reading the session", done, total)
            arrays[name] = self._array(name)
        made = unpacked(labels, self.manifest.graph, arrays)
        report(progress, "reading the session", total, total)
        return made

    def tree(self) -> MergeTree | None:
        """Read the merge tree, if there is one."""
        if not all(f"tree_{name}" in self.manifest.arrays for name in TREE):
            return None
        winners, losers, priorities = (self._array(f"tree_{name}") for name in TREE)
        if not all(a.ndim == 1 and a.dtype.kind == "i" for a in (winners, losers)):
            raise SessionDamaged(f"The merge tree in {self.folder} cannot be used.")
        try:
            return MergeTree(
                self.superpixels,
                winners.astype("i8", copy=False),
                losers.astype("i8", copy=False),
                priorities.astype("f8", copy=False),
            )
        except InvalidInput as error:
            raise SessionDamaged(
                f"The merge tree in {self.folder} cannot be used: {error}"
            ) from error

    def gold(self) -> NDArray[Any] | None:
        """Read the gold standard, if there is one."""
        if "gold" not in self.manifest.arrays:
            return None
        gold = self._array("gold")
        if gold.dtype.kind not in "iu" or gold.shape != self.manifest.superpixels.shape:
            raise SessionDamaged(f"The gold in {self.folder} cannot be used; call recover().")
        return gold

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self.manifest.arrays:
            raise SessionDamaged(f"{self.folder} has no array {name!r}; call recover().")
        return read_array(self.folder / ARRAYS, name, self.manifest.arrays[name])
