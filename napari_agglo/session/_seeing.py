"""Reading a session: labels, segments, superpixels, at the threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration._merge_tree import map_labels
from napari_agglo.session._core import Core
from napari_agglo.session._edits import Merge
from napari_agglo.session._rules import (
    Found,
    check_index,
    check_threshold,
    contacts,
    find,
    is_locked,
)


class Seeing(Core):
    """What a session shows, in the user's ids."""

    @property
    def threshold(self) -> float:
        """The scale that is looked at, and at which edits are made.

        It is saved with the session, and not undone.
        """
        return self._seen.threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        checked = check_threshold(threshold)
        with self._lock:
            self._seen.threshold = checked

    @property
    def ready(self) -> bool:
        """Whether what is seen at the threshold is known; if not, `look` first, in a worker."""
        return self._state.tree.horizon >= self._seen.threshold

    def look(
        self, progress: ProgressCallback | None = None, *, threshold: float | None = None
    ) -> None:
        """Bring the segments at a threshold up to date, which may take a second after an edit.

        Every method that needs this does it itself; call this first, in a worker, to show progress,
        or to be able to cancel (raise `Cancelled` in `progress`).

        Parameters
        ----------
        progress : callable, optional
            Called with the progress so far.
        threshold : float, optional
            The highest scale that is needed: infinity before `tree`. By default the session's.
        """
        with self._lock:
            if threshold is None:
                self._seen.names(progress)
            else:
                self._state.tree.look(threshold, progress)

    def labels(self, index: Any = ...) -> NDArray[Any]:
        """Return the segments as a label image, or a part of it.

        Parameters
        ----------
        index : optional
            Which part, as in ``image[index]``: ``np.s_[10]`` is a plane. Only that is computed.
        """
        with self._lock:
            table = self._seen.table()
            part = self._state.graph.superpixels.image[index]
            out = np.empty(np.shape(part), table.dtype)
            map_labels(np.ascontiguousarray(part).reshape(-1), table, out.reshape(-1))
            return out

    def lut(self, *, dense: bool = False) -> NDArray[Any]:
        """Return the segment of each superpixel, as a table over dense ids 0..n.

        ``session.lut()[session.graph.superpixels.image]`` is ``session.labels()``.

        Parameters
        ----------
        dense : bool
            Return the dense id by which each segment goes, ``session.graph.ids[...]`` being yours,
            as a read-only view of uint32 for a screen: it costs nothing, and holds until the next
            edit, which changes it. When `version` is another number, take it anew.
        """
        with self._lock:
            if dense:
                names = self._seen.names().view()
                names.flags.writeable = False
                return names
            return self._seen.table().copy()

    @property
    def version(self) -> int:
        """Another number whenever what is seen may have changed."""
        return self._seen.version

    def superpixel_at(self, index: Any) -> int:
        """Return the superpixel at a pixel; 0 where there is none."""
        graph = self._state.graph
        return int(graph.ids[graph.superpixels.image[check_index(graph, index)]])

    def segment_at(self, index: Any) -> int:
        """Return the segment at a pixel; 0 where there is none."""
        with self._lock:
            graph = self._state.graph
            return int(self._seen.table()[graph.superpixels.image[check_index(graph, index)]])

    def segments(self) -> NDArray[np.uint64]:
        """Return the segments that there are, ascending."""
        with self._lock:
            names = self._seen.names()
            return self._state.graph.ids[np.sort(names[self._seen.naming()])]

    @property
    def n_segments(self) -> int:
        """How many segments there are."""
        with self._lock:
            return int(np.count_nonzero(self._seen.naming()))

    def members(self, segment: int) -> NDArray[np.uint64]:
        """Return the superpixels of a segment, ascending."""
        with self._lock:
            return self._state.graph.ids[self._find(segment).members]

    def neighbours(self, segment: int) -> NDArray[np.uint64]:
        """Return the segments that touch a segment, ascending."""
        with self._lock:
            found = self._find(segment)
            _, there = contacts(self._state.tree.record.ground, found.members)
            held = self._seen.names()[there]
            names: NDArray[np.uint32] = np.unique(held[held != self._seen.names()[found.anchor]])
            return self._state.graph.ids[names]

    def locked(self) -> NDArray[np.uint64]:
        """Return the segments that are locked, ascending."""
        with self._lock:
            held = np.flatnonzero(self._state.tree.record.constraints.lock_of)
            names: NDArray[np.uint32] = np.unique(self._seen.names()[held])
            return self._state.graph.ids[names]

    def is_locked(self, segment: int) -> bool:
        """Return whether a segment is locked."""
        with self._lock:
            return is_locked(self._seen, self._find(segment))

    def asleep(self) -> list[str]:
        """Return the edits that a newer one stands in the way of, in words.

        They wake when that is undone, or unlocked.
        """
        with self._lock:
            state = self._state
            said = []
            for edit, k in state.tree.asleep():
                number = state.owner(edit)
                entry = self._history.done[number]
                what = "pair" if isinstance(state.tree.edits[edit], Merge) else "part"
                said.append(f"{entry.number}. {entry.action.words}: {what} {k + 1} is not together")
            return said

    def _find(self, segment: Any, argument: str = "segment") -> Found:
        return find(self._seen, segment, argument)
