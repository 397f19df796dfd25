"""The session directory as one object: its data, its journal, and the right to write to it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, as_policy
from napari_agglo.session._store import policies
from napari_agglo.session._store.arrays import ARRAYS, STATISTICS, read_array, unpacked
from napari_agglo.session._store.create import (
    TREE,
    check_path,
    create_folder,
    given_superpixels,
    read_superpixels,
    relative_to,
    session_folder,
)
from napari_agglo.session._store.journal import Journal, Record
from napari_agglo.session._store.lock import Lock, break_lock
from napari_agglo.session._store.manifest import (
    Fingerprint,
    Manifest,
    read_manifest,
    write_manifest,
)
from napari_agglo.session._store.snapshot import Snapshot, read_snapshot, write_snapshot
from napari_agglo.session._store.store_errors import (
    NotSaved,
    Report,
    SessionDamage,
    SessionDamaged,
    saving,
)
from napari_agglo.volumes import DenseLabels

# The data in a session directory, each read when it is asked for and checked before it is used.


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


# What a session directory holds and says of itself, each read when it is asked for.


class Reading:
    """A session directory as it can be read, with a lock or without one."""

    def __init__(self, contents: Contents, journal: Journal) -> None:
        self.path = contents.folder
        self.report: Report = journal.report
        self._contents = contents
        self._manifest = contents.manifest
        self._journal = journal

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written: opened so, closed, or given up after an error."""
        return self._journal.read_only

    @property
    def fingerprint(self) -> Fingerprint:
        """What the superpixels are known by."""
        return self._manifest.superpixels

    @property
    def manifest(self) -> Manifest:
        """What the directory says of itself."""
        return self._manifest

    @cached_property
    def graph(self) -> RegionGraph:
        """The region graph that the session was made on, read and checked on first use."""
        return self._contents.graph()

    def read_graph(self, progress: ProgressCallback | None = None) -> RegionGraph:
        """Return `graph`, with progress while it is read."""
        if "graph" not in self.__dict__:
            self.__dict__["graph"] = self._contents.graph(progress)
        return self.graph

    @property
    def superpixels(self) -> DenseLabels:
        """The label image on dense ids, read on first use."""
        return self._contents.superpixels

    @cached_property
    def policy(self) -> Policy:
        """The policy that the session started with."""
        return self.recall_policy(self._manifest.policy)

    @cached_property
    def tree(self) -> MergeTree | None:
        """The merge tree before any edit, if it was stored."""
        return self._contents.tree()

    @cached_property
    def gold(self) -> NDArray[Any] | None:
        """The gold standard, if it was stored."""
        return self._contents.gold()

    def recall_policy(self, words: Mapping[str, Any]) -> Policy:
        """Return the policy that `keep_policy` gave these words for."""
        return policies.recall(self.path, words)

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, in order; they are not to be changed."""
        return [record.entry for record in self._journal.records]

    def records(self) -> list[Record]:
        """Return all entries with their numbers and time stamps."""
        return list(self._journal.records)

    @property
    def settings(self) -> dict[str, Any]:
        """What was last given to `save_settings`."""
        return dict(self._manifest.settings)

    def load_snapshot(self, name: str) -> Snapshot | None:
        """Return a snapshot and the number of its entry; None if damaged or of another history."""
        known = {record.seq: record.sum for record in self._journal.records}
        return read_snapshot(self.path, name, {0: self._manifest.id, **known})

    def __repr__(self) -> str:
        mode = ", read-only" if self.read_only else ""
        return f"Store({str(self.path)!r}, {len(self._journal.records)} entries{mode})"


class Store(Reading):
    """A session directory, opened; use `Store.create`, `Store.open` or `Store.recover`.

    Attributes
    ----------
    path : Path
        The directory; a link is followed.
    report : Report
        What opening found wrong, in words.

    Examples
    --------
    >>> import tempfile, numpy as np, napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 6, 7]]), np.array([[0.0, 0.2, 1.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.create(f"{folder}/cells.agglo", graph, "mean") as store:
    ...         _ = store.append({"merge": [1, 2]})  # on the disk when it returns
    ...     with Store.open(f"{folder}/cells.agglo", read_only=True) as store:
    ...         print(store.entries(), store.graph)
    [{'merge': [1, 2]}] RegionGraph(3 regions, 2 boundaries, shape (1, 3), cues: boundary)
    """

    def __init__(self, contents: Contents, journal: Journal, lock: Lock | None) -> None:
        super().__init__(contents, journal)
        self._lock = lock

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        graph: RegionGraph,
        policy: Policy | str = "mean",
        *,
        tree: MergeTree | None = None,
        gold: Any = None,
        settings: Mapping[str, Any] | None = None,
        source: str | PathLike[str] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Store:
        """Make a session directory and open it for writing.

        Parameters
        ----------
        path : path-like
            ``NAME.agglo``; nothing may be there yet.
        graph : RegionGraph
            The superpixels and their statistics.
        policy : Policy or str
            What the session agglomerates by.
        tree : MergeTree, optional
            The tree before any edit, so that opening need not agglomerate again.
        gold : array of int, optional
            A gold standard of the same shape.
        settings : dict, optional
            What else to remember, as plain JSON.
        source : path-like, optional
            The file that the superpixels came from, PATH or PATH:KEY. If they take 1 GB or more
            they are then not copied into the session, but looked for there.
        progress : callable, optional
            Called as the arrays are written; raise `Cancelled` in it to stop.
        """
        if not isinstance(graph, RegionGraph):
            raise InvalidInput(f"`graph` must be a RegionGraph, got {type(graph).__name__}.")
        target = Path(check_path(path, "a new session, NAME.agglo"))
        create_folder(
            target, graph, as_policy(policy), tree=tree, gold=gold, settings=settings or {},
            source=source, progress=progress,
        )  # fmt: skip
        made = cls.open(path)
        made._contents.superpixels = graph.superpixels
        made.__dict__["graph"] = graph  # as if it had been read
        return made

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
        """Open a session directory.

        What its journal has at its end that cannot be trusted is moved to ``journal.damaged-N``,
        told by `report`, and warned of if acknowledged entries are lost.

        Parameters
        ----------
        path : path-like
            The directory, wherever it is now and whatever its name.
        read_only : bool
            Write nothing at all; works beside a writer and on a read-only disk.
        superpixels : array or path-like, optional
            The label image, if it is not in the session and no longer where it was. Other data
            than the session was made on are refused.
        steal_lock : bool
            Take over a lock that was left behind, after `SessionLocked` offered it.
        progress : callable, optional
            Called while superpixels are read.
        """
        folder = session_folder(path)
        manifest = read_manifest(folder)
        given = None
        if superpixels is not None:
            given = given_superpixels(superpixels, manifest, progress)
        lock = None if read_only else Lock(folder, steal=steal_lock)
        try:
            if lock is not None:
                manifest = read_manifest(folder)  # as the writer before us left it
            if lock and isinstance(superpixels, (str, PathLike)) and manifest.source is not None:
                where = relative_to(folder, superpixels)
                if where != manifest.source:
                    manifest = _replaced(folder, manifest, replace(manifest, source=where))
            journal = Journal(folder, manifest.id, read_only=read_only)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        contents = Contents(folder, manifest)
        if given is not None:
            contents.superpixels = given
        store = cls(contents, journal, lock)
        if store.report.lost:
            warnings.warn(f"{folder}: {store.report}", SessionDamage, stacklevel=2)
        return store

    @staticmethod
    def recover(path: str | PathLike[str], *, superpixels: Any = None) -> Report:
        """Mend what can be mended of a damaged session directory; nothing is deleted.

        Parameters
        ----------
        path : path-like
            The directory.
        superpixels : array or path-like, optional
            The label image, should the session's own copy be damaged.

        Returns
        -------
        Report
            What was found and done, in words; `unmended` if it still cannot be opened.
        """
        from napari_agglo.session._store.recovery import recover_folder

        return recover_folder(session_folder(path), superpixels)

    @staticmethod
    def break_lock(path: str | PathLike[str]) -> None:
        """Remove a lock that was left behind; that of a living process here is refused."""
        folder = session_folder(path)
        read_manifest(folder)
        break_lock(folder)

    def keep_policy(self, policy: Policy) -> dict[str, Any]:
        """Store a further policy; return the words by which an entry can refer to it."""
        self._require_writing()
        with saving("The policy", self.path):
            return policies.keep(self.path, policy)

    def forget_policy(self, words: Mapping[str, Any]) -> None:
        """Remove a policy that nothing refers to after all: its entry could not be written."""
        policies.forget(self.path, words.get("file"))

    def append(self, entry: Mapping[str, Any]) -> int:
        """Add an entry to the journal; when this returns its number, it survives a crash.

        All that belongs to one action of the user goes into one entry: it is there whole or not at
        all. On failure `NotSaved` is raised and the directory is as before.
        """
        return self._journal.append(entry)

    def save_settings(self, settings: Mapping[str, Any]) -> None:
        """Replace the settings, which are plain JSON and no part of the journal."""
        self._require_writing()
        changed = self._manifest.with_settings(settings)
        if changed.settings != self._manifest.settings:
            self._manifest = _replaced(self.path, self._manifest, changed)

    def snapshot(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> bool:
        """Keep arrays that belong to the last entry, to save replaying the journal.

        Return whether they could be written; a snapshot is a cache, and no harm is done.
        """
        self._require_writing()
        return write_snapshot(self.path, name, arrays, self._journal.last)

    def close(self) -> None:
        """Let others write; entries are on the disk already."""
        self._journal.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:  # one that was forgotten must not keep the session locked
        if hasattr(self, "_lock"):
            self.close()

    def _require_writing(self) -> None:
        if self.read_only:
            raise NotSaved(f"{self.path} is closed, or open read-only; open it for writing.")


def _replaced(folder: Path, old: Manifest, new: Manifest) -> Manifest:
    """Write the new manifest; if that fails half way, put the old one back."""
    try:
        write_manifest(folder, new)
    except InvalidInput:
        if read_manifest(folder) != old:
            write_manifest(folder, old)
        raise
    return new
