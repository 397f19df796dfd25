"""What a session directory holds and says of itself, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._store import _policies
from napari_agglo.session._store._contents import Contents
from napari_agglo.session._store._digest import Fingerprint
from napari_agglo.session._store._journal import Journal
from napari_agglo.session._store._lines import Record
from napari_agglo.session._store._manifest import Manifest
from napari_agglo.session._store._report import Report
from napari_agglo.session._store._snapshots import Snapshot, read_snapshot
from napari_agglo.tree import MergeTree
from napari_agglo.volumes import DenseLabels


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
        return _policies.recall(self.path, words)

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
