"""What is seen at the threshold: the segment of each superpixel, kept up to date edit by edit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session._between import Between
from napari_agglo.session._edits import Override
from napari_agglo.session._repair._hierarchy import Hierarchy
from napari_agglo.session._state import State
from napari_agglo.session._views import View

# Who has not asked for so many edits what moved is told that anything may have.
_REMEMBERED = 1000


class Seen:
    """The segments at a threshold, by name: the dense id of one of their superpixels.

    A name is looked up again only where an edit was made; what was done at another scale is looked
    at when one looks.
    """

    def __init__(self, state: State, threshold: float) -> None:
        self.state = state
        self._threshold = threshold
        self._names: NDArray[np.uint32] | None = None
        self._table: NDArray[Any] | None = None
        self._view: tuple[int, View] | None = None
        self.version = 0  # another number whenever what is seen may have changed
        self.between = Between()
        self.cut_pairs: dict[int, tuple[Any, NDArray[np.int64]]] = {}  # of parts, across cuts
        self._moves: list[tuple[int, NDArray[np.int32]]] = []  # by version ...
        self._since = 0  # ... and from which on they are known

    @property
    def threshold(self) -> float:
        """The scale that is looked at."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        if threshold != self._threshold:
            self._threshold = threshold
            self.forget()

    def forget(self) -> None:
        """Look everything up again, when it is asked for."""
        self._names = self._table = self._view = None
        self.version += 1
        self._moves, self._since = [], self.version

    @property
    def view(self) -> View:
        """What is shown, with the overrides of this scale that still lead somewhere."""
        if self._view is None or self._view[0] != self.state.version:
            made = view_of(self.state.tree, self._threshold, self.state.overrides)
            self._view = self.state.version, made
        return self._view[1]

    def names(self, progress: ProgressCallback | None = None) -> NDArray[np.uint32]:
        """Return the name of the segment of each superpixel; it is not to be changed."""
        if self._names is None:
            tree = self.state.tree
            tree.look(self._threshold, progress)
            view = self.view
            names = tree.table(self._threshold)
            for node in view.moved():
                names[tree.members(node)] = tree.name(node)
            self._names = names
        return self._names

    def naming(self) -> NDArray[np.bool_]:
        """Return which superpixels segments are named by, one of each segment."""
        found: NDArray[np.bool_] = self.names() == self.state.tree.record.names.of_superpixel
        found[0] = False
        return found

    def table(self) -> NDArray[Any]:
        """Return the user's id of the segment of each superpixel; it is not to be changed."""
        if self._table is None:
            labels = self.state.graph.superpixels
            self._table = labels.ids[self.names()].astype(labels.dtype.newbyteorder("="))
        return self._table

    def refresh(self, touched: NDArray[np.int32]) -> None:
        """Look up the segments of some superpixels again: nothing else has changed here."""
        self._table = None
        self.version += 1
        if self._names is None:
            self._moves, self._since = [], self.version
            return
        self._moves.append((self.version, touched))
        if len(self._moves) > _REMEMBERED:
            self._since = self._moves.pop(0)[0]
        n = self.state.graph.n_regions
        if len(self._names) != n + 1:  # some superpixels came, or went
            more = np.zeros(max(0, n + 1 - len(self._names)), np.uint32)
            self._names = np.concatenate([self._names[: n + 1], more])
        tree, left = self.state.tree, touched[touched <= n]
        while len(left):
            node = tree.region(int(left[0]), self._threshold)
            members = tree.members(node)
            self._names[members] = tree.name(node)
            left = np.setdiff1d(left, members, assume_unique=True)

    def moved_since(self, version: int) -> NDArray[np.int64] | None:
        """Return which superpixels may have moved since a version; None: any."""
        if version < self._since:
            return None
        newer = [np.zeros(0, np.int64)]
        for number, touched in reversed(self._moves):
            if number <= version:
                break
            newer.append(touched.astype(np.int64))
        return np.unique(np.concatenate(newer))

    def node(self, name: int) -> int | None:
        """Return the node that is shown under a name, if there is one."""
        record = self.state.tree.record
        superpixel = int(record.names.superpixel_of[name])
        node = self.view.shown(superpixel)
        return node if record.naming(node) == superpixel else None


def view_of(tree: Hierarchy, scale: float, overrides: tuple[Override, ...]) -> View:
    """Return what is shown at a scale; a way along a branch that ends sooner is left out."""
    view = View(tree, scale)
    for override in overrides:
        if override.scale == scale:
            try:
                view.apply(override)
            except InvalidInput:
                continue
    return view


def moved_sets(view: View) -> set[bytes]:
    """Return what is shown though it is not of this scale, as sets of superpixels."""
    return {view.tree.members(node).tobytes() for node in view.moved()}
