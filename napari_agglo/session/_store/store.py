"""The session folder as one object: its data, its journal and its lock."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, report
from napari_agglo._registry import raised_by
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, as_policy
from napari_agglo.session._store import stored_policy
from napari_agglo.session._store.arrays import (
    ARRAYS,
    STATISTICS,
    Contents,
    Snapshot,
    read_contents,
    read_snapshot,
    unpacked,
    write_snapshot,
)
from napari_agglo.session._store.create import (
    TREE,
    check_path,
    create_folder,
    match_superpixels,
    read_superpixels,
    refers_to_disk,
    relative_to,
    session_folder,
)
from napari_agglo.session._store.journal import Journal
from napari_agglo.session._store.lock import Lock
from napari_agglo.session._store.manifest import (
    Manifest,
    SourceNote,
    digest_bytes,
    read_manifest,
    write_manifest,
)
from napari_agglo.session._store.sources import AFFINITIES, CUE, GOLD, open_source
from napari_agglo.session._store.store_errors import (
    RECOVER,
    RESTORE,
    PackageMissing,
    Report,
    SessionDamage,
    SessionDamaged,
    saving,
)
from napari_agglo.volumes import DenseLabels, DiskCues, DiskFaces, are_on_disk, is_on_disk


class Data:
    """The arrays and the policy of a session folder, each read on first use, checked, and kept.

    `superpixels` and `graph` are read unless they are passed.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        *,
        superpixels: DenseLabels | None = None,
        graph: RegionGraph | None = None,
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._superpixels = superpixels
        self._graph = None if graph is None else self._with_cues(graph)
        self.store: weakref.ref[Store] | None = None  # with the cut-outs of cues on disk

    def follow(self, manifest: Manifest) -> None:
        """Use another manifest, in which inputs have moved."""
        self._manifest = manifest

    @property
    def superpixels(self) -> DenseLabels:
        """The label image on dense ids."""
        if self._superpixels is None:
            self._superpixels = read_superpixels(self._folder, self._manifest)
        return self._superpixels

    @property
    def graph(self) -> RegionGraph:
        """The region graph that the session was created with."""
        return self.read_graph()

    def read_graph(self, progress: ProgressCallback | None = None) -> RegionGraph:
        """Return `graph`; report progress while it is read."""
        if self._graph is None:
            names = [*STATISTICS, *(["cues"] if "cues" in self._manifest.arrays else [])]
            total = 1 + len(names)
            report(progress, "reading the session", 0, total)
            labels = self.superpixels
            arrays, extents = {}, {}
            for done, name in enumerate(names, 1):
                report(progress, "reading the session", done, total)
                arrays[name], _, extents[name] = self._contents(name)
            graph = unpacked(labels, self._manifest.graph, arrays, extents)
            self._graph = self._with_cues(graph)
            report(progress, "reading the session", total, total)
        return self._graph

    def _with_cues(self, graph: RegionGraph) -> RegionGraph:
        """Return a graph with its cues; those of superpixels on disk are read from their files."""
        lazy = is_on_disk(graph.superpixels.image) and "cues" not in self._manifest.arrays
        return replace(graph, cues=self._lazy_cues()) if lazy else graph

    def _lazy_cues(self) -> Any:
        """Return the cues of the session, box by box, as they are needed."""
        note, shape = self._manifest.graph, self._manifest.superpixels.shape
        n_planes = 1 + max(max(row) for row in note.sources) if note.planes else 0
        if note.planes and not note.offsets:  # a session of an earlier version, or of directions
            names, ranges = [CUE] * n_planes, [(0.0, 1.0)] * n_planes
            return DiskCues(names, [_refuse_faces] * n_planes, ranges, shape)

        def opened(key: str) -> Any:
            return open_source(self._folder, self._manifest.sources, key)

        rows = note.sources or ((0,),) * len(note.cue_names)
        known = list(zip(note.cue_names, note.cue_ranges, rows, strict=True))
        plain = [(name, limits) for name, limits, row in known if len(row) == 1]
        faces = None
        if note.planes:
            limits = next(limits for _, limits, row in known if len(row) > 1)
            faces = DiskFaces(
                partial(opened, AFFINITIES),
                note.channel_offsets,
                limits,
                shape,
                n_planes - len(plain),
            )
        return DiskCues(
            [name for name, _ in plain], [partial(opened, f"{CUE} {name}") for name, _ in plain],
            [limits for _, limits in plain], shape, faces=faces, cutouts=self._cutout,
        )  # fmt: skip

    def _cutout(self, box: tuple[slice, ...]) -> NDArray[np.uint8] | None:
        """Return the bytes of all cues in a box around a superpixel that the session divided."""
        store = None if self.store is None else self.store()
        return None if store is None else store.cutout(box)

    @cached_property
    def policy(self) -> Policy:
        """The policy that the session was created with."""
        return stored_policy.recall(self._folder, self._manifest.policy)

    def use_policy(self, policy: Policy) -> None:
        """Use `policy` as the one that the session was created with, without reading it."""
        self.policy = policy

    def check_policy(self, policy: Policy) -> None:
        """Refuse a policy other than that of the session, or one that the session has in a file."""
        stored_policy.check_passed(self._folder, policy, self._manifest.policy)

    @cached_property
    def tree(self) -> MergeTree | None:
        """The merge tree before any edit; None if it was not stored."""
        if not all(f"tree_{name}" in self._manifest.arrays for name in TREE):
            return None
        winners, losers, priorities = (self._array(f"tree_{name}") for name in TREE)
        if not all(a.ndim == 1 and a.dtype.kind == "i" for a in (winners, losers)):
            raise SessionDamaged(
                f"The merge tree in {self._folder} cannot be used",
                argument="path",
                remedy=RESTORE,
            )
        try:
            return MergeTree(
                self.superpixels,
                winners.astype("i8", copy=False),
                losers.astype("i8", copy=False),
                priorities.astype("f8", copy=False),
                # superpixels on disk are not counted again
                self.graph.sizes if is_on_disk(self.superpixels.image) else None,
            )
        except InvalidInput as error:
            raise SessionDamaged(
                f"The merge tree in {self._folder} cannot be used: {error.problem}",
                argument="path",
                remedy=RESTORE,
            ) from error

    @property
    def has_gold(self) -> bool:
        """Whether a gold standard was stored, or is in a file; it is not read."""
        return "gold" in self._manifest.arrays or self._refers_to_gold

    @property
    def _refers_to_gold(self) -> bool:
        return refers_to_disk(self._manifest) and GOLD in self._manifest.sources

    @cached_property
    def gold(self) -> Any:
        """The gold standard; None if it was not stored. That of superpixels on disk stays there."""
        if not self.has_gold:
            return None
        if "gold" not in self._manifest.arrays:
            return open_source(self._folder, self._manifest.sources, GOLD)
        gold = self._array("gold")
        if gold.dtype.kind not in "iu" or gold.shape != self._manifest.superpixels.shape:
            raise SessionDamaged(
                f"The gold in {self._folder} cannot be used", argument="path", remedy=RECOVER
            )
        return gold

    def _array(self, name: str) -> NDArray[Any]:
        return self._contents(name).array

    def _contents(self, name: str) -> Contents:
        if name not in self._manifest.arrays:
            raise SessionDamaged(
                f"{self._folder} has no array {name!r}", argument="path", remedy=RECOVER
            )
        return read_contents(self._folder / ARRAYS, name, self._manifest.arrays[name])


class Store:
    """An open session folder; use `Store.create`, `Store.open` or `Store.recover`.

    Examples
    --------
    >>> import tempfile, numpy as np, napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 6, 7]]), np.array([[0.0, 0.2, 1.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.create(f"{folder}/cells.agglo", graph, "mean") as store:
    ...         _ = store.journal.append({"merge": [1, 2]})  # on the disk when it returns
    ...     with Store.open(f"{folder}/cells.agglo", read_only=True) as store:
    ...         print(store.journal.records[0].entry, store.data.graph)
    {'merge': [1, 2]} RegionGraph(3 regions, 2 boundaries, shape (1, 3), cues: boundary)
    """

    def __init__(
        self, folder: Path, manifest: Manifest, data: Data, journal: Journal, lock: Lock | None
    ) -> None:
        self.path = folder
        self.manifest = manifest
        self.data = data
        self.journal = journal
        self._lock = lock
        data.store = weakref.ref(self)

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        graph: RegionGraph,
        policy: Policy | str = "mean",
        *,
        tree: MergeTree | None = None,
        gold: Any = None,
        source: str | PathLike[str] | None = None,
        sources: Mapping[str, Any] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Store:
        """Make a session folder and open it for writing.

        Parameters are those of `Session.create`.
        """
        if not isinstance(graph, RegionGraph):
            raise InvalidInput(
                f"`graph` must be a RegionGraph, got {type(graph).__name__}",
                argument="graph",
                remedy="make one with RegionGraph.from_networkx(graph, superpixels=labels)"
                if callable(getattr(graph, "adjacency", None))
                else "make one with region_graph(superpixels, cues), or with "
                "RegionGraph.from_edges(edges, weights, superpixels=labels)",
            )
        target = Path(check_path(path, "a new session, NAME.agglo"))
        create_folder(
            target, graph, as_policy(policy), tree=tree, gold=gold, source=source,
            sources=sources or {}, progress=progress,
        )  # fmt: skip
        return cls._open(session_folder(path), graph=graph)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        superpixels: Any = None,
        steal_lock: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Store:
        """Open a session folder.

        Untrusted bytes at the end of the journal are moved to ``journal.damaged-N`` and mentioned
        in `report`; a warning is given if acknowledged entries are lost.

        Parameters are those of `Session.open`.
        """
        return cls._open(
            session_folder(path), read_only=read_only, superpixels=superpixels,
            steal_lock=steal_lock, progress=progress,
        )  # fmt: skip

    @classmethod
    def _open(
        cls,
        folder: Path,
        *,
        read_only: bool = False,
        superpixels: Any = None,
        steal_lock: bool = False,
        graph: RegionGraph | None = None,
        progress: ProgressCallback | None = None,
    ) -> Store:
        manifest = read_manifest(folder)
        labels = None if graph is None else graph.superpixels
        if superpixels is not None:
            labels = match_superpixels(superpixels, manifest, progress, folder)
        lock = None if read_only else Lock(folder, steal=steal_lock)
        try:
            if lock is not None:
                manifest = read_manifest(folder)  # another writer may have changed it
            if lock and isinstance(superpixels, (str, PathLike)) and manifest.source is not None:
                source = relative_to(folder, superpixels)
                if source != manifest.source:
                    manifest = _replaced(folder, manifest, replace(manifest, source=source))
            journal = Journal(folder, manifest.id, read_only=read_only)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        data = Data(folder, manifest, superpixels=labels, graph=graph)
        store = cls(folder, manifest, data, journal, lock)
        if store.report.lost:
            warnings.warn(f"{folder}: {store.report}", SessionDamage, stacklevel=3)
        return store

    @staticmethod
    def recover(path: str | PathLike[str], *, superpixels: Any = None) -> Report:
        """Repair a damaged session folder; see `Session.recover`."""
        from napari_agglo.session._store.recovery import recover_folder

        return recover_folder(session_folder(path), superpixels)

    @property
    def report(self) -> Report:
        """Damage that opening the journal found, in words."""
        return self.journal.report

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written: opened so, closed, or given up after an error."""
        return self.journal.read_only

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were saved last."""
        return dict(self.manifest.settings)

    def save_settings(self, settings: Mapping[str, Any]) -> None:
        """Replace the settings, which are plain JSON and not in the journal."""
        self.journal.require_writable()
        if settings != self.manifest.settings:
            changed = replace(self.manifest, settings=dict(settings))
            self.manifest = _replaced(self.path, self.manifest, changed)

    def save_sources(self, sources: Mapping[str, SourceNote]) -> None:
        """Replace the notes on the inputs."""
        self.journal.require_writable()
        changed = replace(self.manifest, sources=dict(sources))
        self.manifest = _replaced(self.path, self.manifest, changed)
        self.data.follow(self.manifest)

    def keep_policy(self, policy: Policy) -> dict[str, Any]:
        """Store another policy; return the reference by which an entry can name it."""
        self.journal.require_writable()
        with saving("The policy", self.path):
            return stored_policy.keep(self.path, policy)

    def recall_policy(self, reference: Mapping[str, Any]) -> Policy:
        """Return the policy for which `keep_policy` returned this reference."""
        return stored_policy.recall(self.path, reference)

    def do_without_missing(self) -> None:
        """Refuse changes if the package of the policy is missing; use its stored properties."""
        try:
            _ = self.data.policy
        except PackageMissing as error:
            self.data.use_policy(self._refuse_changes(self.manifest.policy, error))

    def do_without_changed(self, difference: Callable[[Policy], str]) -> None:
        """Refuse changes if the code of a policy of another package has changed.

        `difference` compares the policy with merges of the session, and returns what differs.
        """
        policy = self.data.policy
        if not self.is_of_package(policy):
            return
        try:
            why = difference(policy)
        except Exception as error:  # its code may raise anything
            note = raised_by(error)
            why = f"{error!r}, {note}" if note else repr(error)
            why = error.problem if isinstance(error, InvalidInput) else why
        if why:
            reference = self.manifest.policy
            changed = stored_policy.changed(self.path, reference, why)
            self.data.use_policy(self._refuse_changes(reference, changed))

    def recall_or_do_without(self, reference: Mapping[str, Any]) -> Policy:
        """Return a policy; without its package, its place in a session that is read-only."""
        try:
            return self.recall_policy(reference)
        except PackageMissing as error:
            return self._refuse_changes(reference, error)

    def _refuse_changes(self, reference: Mapping[str, Any], error: PackageMissing) -> Policy:
        """Let others write, refuse every change, and return the place of a policy."""
        remedy = error.remedy or RECOVER
        self.journal.refuse(f"{error.problem}, so that the session is open read-only", remedy)
        if self._lock is not None:
            self._lock.release()
            self._lock = None
            problem = f"{error.problem}: the session is open read-only"
            warn_caller(DataWarning(problem, argument="path", remedy=remedy))
        return stored_policy.AbsentPolicy(reference, error.problem, remedy)

    def is_of_package(self, policy: Policy) -> bool:
        """Return whether a policy needs another package than this one."""
        return stored_policy.package_of(policy) is not None

    def needs_code(self, policy: Policy) -> bool:
        """Return whether a policy, or that of the start, is scored by code of others."""
        return any(map(stored_policy.needs_code, (policy, self.data.policy)))

    def forget_policy(self, reference: Mapping[str, Any]) -> None:
        """Remove a policy whose entry could not be written."""
        stored_policy.forget(self.path, reference.get("file"))

    def snapshot(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> bool:
        """Cache arrays of the state after the last entry; return whether they could be written."""
        self.journal.require_writable()
        return write_snapshot(self.path, name, arrays, self.journal.last)

    def load_snapshot(self, name: str) -> Snapshot | None:
        """Return a snapshot and the number of its entry; None if damaged or of another history."""
        known = {record.seq: record.sum for record in self.journal.records}
        return read_snapshot(self.path, name, {0: self.manifest.id, **known})

    def keep_cutout(self, graph: RegionGraph, box: tuple[slice, ...]) -> None:
        """Keep the bytes of cues on disk in a box, so that a division needs no other file."""
        name = _cutout_name(box)
        if are_on_disk(graph.cues) and self.load_snapshot(name) is None:
            cues: Any = graph.cues
            with suppress(InvalidInput):  # a cache: the file of the cue is there still
                self.snapshot(name, {"cues": cues[(slice(None), *box)]})

    def cutout(self, box: tuple[slice, ...]) -> NDArray[np.uint8] | None:
        """Return the bytes that `keep_cutout` kept."""
        kept = self.load_snapshot(_cutout_name(box))
        return None if kept is None else kept.arrays.get("cues")

    def close(self) -> None:
        """Release the lock; entries are on the disk already."""
        self.journal.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:  # release the lock of a store that was not closed
        if hasattr(self, "_lock"):
            self.close()

    def __repr__(self) -> str:
        mode = ", read-only" if self.read_only else ""
        return f"Store({str(self.path)!r}, {len(self.journal.records)} entries{mode})"


def _refuse_faces() -> Any:
    raise InvalidInput(
        "This session has cues of faces on disk, and does not know the file and offsets of them",
        argument="points",
        remedy="cut between superpixels, or make the session of the run again",
    )


def _cutout_name(box: tuple[slice, ...]) -> str:
    ends = " ".join(f"{side.start}:{side.stop}" for side in box)
    return f"cues-{digest_bytes(ends.encode())}"


def _replaced(folder: Path, old: Manifest, new: Manifest) -> Manifest:
    """Write the new manifest; if that fails, put the old one back."""
    try:
        write_manifest(folder, new)
    except InvalidInput:
        if read_manifest(folder) != old:
            write_manifest(folder, old)
        raise
    return new
