"""The session directory as one object: its data, its journal, and the right to write to it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, as_policy
from napari_agglo.session._store import _lock, _policies
from napari_agglo.session._store._contents import Contents
from napari_agglo.session._store._create import create_folder
from napari_agglo.session._store._errors import NotSaved, SessionDamage, saving
from napari_agglo.session._store._folder import check_path, session_folder
from napari_agglo.session._store._journal import Journal
from napari_agglo.session._store._manifest import Manifest, read_manifest, write_manifest
from napari_agglo.session._store._reading import Reading
from napari_agglo.session._store._report import Report
from napari_agglo.session._store._snapshots import write_snapshot
from napari_agglo.session._store._superpixels import given_superpixels, relative_to
from napari_agglo.tree import MergeTree


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

    def __init__(self, contents: Contents, journal: Journal, lock: _lock.Lock | None) -> None:
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
        lock = None if read_only else _lock.Lock(folder, steal=steal_lock)
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
        from napari_agglo.session._store._recovery import recover_folder

        return recover_folder(session_folder(path), superpixels)

    @staticmethod
    def break_lock(path: str | PathLike[str]) -> None:
        """Remove a lock that was left behind; that of a living process here is refused."""
        folder = session_folder(path)
        read_manifest(folder)
        _lock.break_lock(folder)

    def keep_policy(self, policy: Policy) -> dict[str, Any]:
        """Store a further policy; return the words by which an entry can refer to it."""
        self._require_writing()
        with saving("The policy", self.path):
            return _policies.keep(self.path, policy)

    def forget_policy(self, words: Mapping[str, Any]) -> None:
        """Remove a policy that nothing refers to after all: its entry could not be written."""
        _policies.forget(self.path, words.get("file"))

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
