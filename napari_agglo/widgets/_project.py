"""The state of one viewer: dataset, regions, policy, hierarchy and session, with signals.

All widgets of a viewer share one project, so a step does the same in the guided dock and as a
widget of its own, and closing a dock loses nothing. Nothing here draws; `Scene` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_agglo.agglomeration import MergeTree
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import MeanPolicy, Policy
from napari_agglo.session import Session
from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets._jobs import Jobs

if TYPE_CHECKING:
    import pandas as pd


# Provenance: each value names what it was made of, so that staleness is a comparison. Gold is an
# array that is painted in place, so its identity tells nothing: brush strokes are counted, and a
# value made of gold keeps the count at which the making began.


@dataclass(frozen=True, eq=False)
class Regions:
    """A region graph, and the dataset (with superpixels) that it was made of."""

    dataset: Dataset
    graph: RegionGraph


@dataclass(frozen=True, eq=False)
class Trained:
    """A policy, and the chosen regions that it was trained on; None if it came from elsewhere."""

    policy: Policy
    on: Regions | None = None
    strokes: int | None = None


@dataclass(frozen=True, eq=False)
class Built:
    """A hierarchy without edits: the regions and the policy it was made by, and its errors.

    Attributes
    ----------
    tree : MergeTree
    regions : Regions
    policy : Policy
    gold : array of int, optional
        What the tree is compared with.
    curve : DataFrame, optional
        The VI against gold at every threshold.
    strokes : int, optional
        Brush strokes in the gold before the curve was computed.
    """

    tree: MergeTree
    regions: Regions
    policy: Policy
    gold: Any = None
    curve: pd.DataFrame | None = None
    strokes: int | None = None


LOOK = "look"  # the job that repairs the hierarchy above edits


class Project:
    """The state of one viewer. Set attributes on the main thread only.

    Attributes
    ----------
    dataset : Dataset or None
        Chosen in the Data step.
    training : tuple of Dataset
        Further volumes to train on.
    regions : Regions or None
        The latest regions that were built.
    trained : Trained
        The policy that the next hierarchy is built by.
    built : Built or None
        The hierarchy on the screen, without edits.
    session : Session or None
        Its edits.
    """

    dataset_changed = Signal()
    regions_changed = Signal()
    policy_changed = Signal()
    hierarchy_changed = Signal()  # another tree or session is shown
    curve_changed = Signal()
    threshold_changed = Signal(float)
    edited = Signal(object)  # the visible segments have changed: a Change, or None
    selection_changed = Signal()
    status_changed = Signal()
    released = Signal()  # no worker has the session any more
    closing = Signal()

    def __init__(self, viewer: object = None) -> None:
        self.jobs = Jobs()
        self.jobs.changed.connect(lambda _: self.status_changed.emit())
        self.trouble = ""  # why there is no dataset, in words
        self._dataset: Dataset | None = None
        self._training: tuple[Dataset, ...] = ()
        self._regions: Regions | None = None
        self._trained = Trained(MeanPolicy())
        self._built: Built | None = None
        self.session: Session | None = None
        self._session_graph: RegionGraph | None = None  # with superpixels that edits divided
        self.strokes = 0  # of a brush in gold labels
        self.active = 0  # dense name of the active segment, 0 for none
        self.selected: tuple[int, ...] = ()  # dense names, without the active one
        self._threshold = 0.5
        self._last = np.zeros(1, np.uint32)
        self._n_last = 0
        self._held = 0
        self._closed = False

    # Provenance.

    @property
    def dataset(self) -> Dataset | None:
        """The dataset that is chosen in the Data step."""
        return self._dataset

    def set_dataset(self, dataset: Dataset | None, trouble: str = "") -> None:
        """Choose a dataset; `trouble` says why there is none."""
        self._dataset, self.trouble = dataset, trouble
        self.dataset_changed.emit()
        self.status_changed.emit()

    @property
    def training(self) -> tuple[Dataset, ...]:
        """Further volumes to train on."""
        return self._training

    @training.setter
    def training(self, volumes: Sequence[Dataset]) -> None:
        self._training = tuple(volumes)
        self.status_changed.emit()

    @property
    def regions(self) -> Regions | None:
        """The latest regions that were built."""
        return self._regions

    @regions.setter
    def regions(self, regions: Regions) -> None:
        self._regions = regions
        if self._dataset is not None and self._dataset is regions.dataset.origin:
            self._dataset = regions.dataset  # unless another was chosen meanwhile
        self.regions_changed.emit()
        self.status_changed.emit()

    @property
    def trained(self) -> Trained:
        """The policy that the next hierarchy is built by."""
        return self._trained

    @trained.setter
    def trained(self, trained: Trained) -> None:
        self._trained = trained
        self.policy_changed.emit()
        self.status_changed.emit()

    @property
    def built(self) -> Built | None:
        """The hierarchy on the screen, without edits."""
        return self._built

    @built.setter
    def built(self, built: Built) -> None:
        self.close_session()
        self._built = built
        self._tell_hierarchy()

    def set_session(self, session: Session, built: Built) -> None:
        """Show a session of a hierarchy, and edit it from now on."""
        self.close_session()
        self.session, self._built, self._session_graph = session, built, session.graph
        if built.policy is not self._trained.policy:
            self._trained = Trained(built.policy)
        self._threshold = session.threshold
        self._tell_hierarchy()

    def close_session(self) -> None:
        """Close the session: all of it is on the disk. The tree without edits stays."""
        if self.session is not None:
            self.session.close()
            self.session = self._session_graph = None
            self.select(0)
            self.hierarchy_changed.emit()
            self.status_changed.emit()

    def set_gold(self, gold: Any) -> None:
        """Compare the hierarchy with other gold labels; its curve is not known then."""
        if self._built is not None:
            self._set_errors(replace(self._built, gold=gold, curve=None, strokes=None))

    def set_curve(self, curve: pd.DataFrame | None, strokes: int | None = None) -> None:
        """Take the VI at every threshold; `strokes` were in the gold when the work began."""
        if self._built is not None:
            self._set_errors(replace(self._built, curve=curve, strokes=strokes))

    def _set_errors(self, built: Built) -> None:
        self._built = built
        self.curve_changed.emit()
        self.status_changed.emit()

    def _tell_hierarchy(self) -> None:
        self.select(0)
        self.hierarchy_changed.emit()
        self.threshold_changed.emit(self._threshold)
        self.curve_changed.emit()
        self.status_changed.emit()

    # Shorthands for parts of these values.

    @property
    def policy(self) -> Policy:
        """The policy that the next hierarchy is built by."""
        return self._trained.policy

    @property
    def tree(self) -> MergeTree | None:
        """The tree on the screen, without edits."""
        return None if self._built is None else self._built.tree

    @property
    def gold(self) -> Any:
        """The gold labels that the hierarchy is compared with."""
        return None if self._built is None else self._built.gold

    @property
    def curve(self) -> pd.DataFrame | None:
        """The VI against gold at every threshold of the tree."""
        return None if self._built is None else self._built.curve

    @property
    def shown_regions(self) -> Regions | None:
        """The regions on the screen: those of the hierarchy, or else the latest."""
        return self._regions if self._built is None else self._built.regions

    @property
    def graph(self) -> RegionGraph | None:
        """The graph on the screen, with superpixels that edits divided."""
        if self._session_graph is not None:
            return self._session_graph
        return None if self.shown_regions is None else self.shown_regions.graph

    @property
    def placement(self) -> Placement | None:
        """The place of the graph in the world."""
        return None if self.shown_regions is None else self.shown_regions.dataset.placement

    # Staleness.

    @property
    def policy_is_stale(self) -> bool:
        """Whether the policy was trained on other data than are chosen, or on other gold."""
        on = self._trained.on
        other = self._regions is None or on is None or on.dataset is not self._regions.dataset
        return on is not None and (other or self.is_painted(self._trained))

    @property
    def hierarchy_is_stale(self) -> bool:
        """Whether regions or policy have changed since the hierarchy was built."""
        built = self._built
        if built is None or self.session is not None:
            return False
        other = self._regions is not None and built.regions is not self._regions
        return other or built.policy is not self.policy

    def is_painted(self, made: Trained | Built | None) -> bool:
        """Return whether gold was painted since a value was made of it."""
        return made is not None and made.strokes not in (None, self.strokes)

    def has_painted(self, data: Any) -> None:
        """Count a brush stroke in an array, if it is gold."""
        datasets = [one for one in (self._dataset, *self._training) if one is not None]
        golds = [self.gold, *(one.gold for one in datasets)]
        if data is None or not any(data is gold for gold in golds):
            return
        self.strokes += 1
        if self.strokes - 1 in (self._trained.strokes, self._built and self._built.strokes):
            self.status_changed.emit()

    # What is seen.

    @property
    def threshold(self) -> float:
        """The scale that is looked at."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        if threshold == self._threshold:
            return
        self._threshold = float(threshold)
        self._follow()
        self.threshold_changed.emit(self._threshold)

    @property
    def settled(self) -> bool:
        """Whether the session shows the threshold; if not, the way there is being repaired."""
        session = self.session
        return session is None or (
            not self.held and session.threshold == self._threshold and session.ready
        )

    @property
    def held(self) -> bool:
        """Whether a worker has the session: nothing is to be asked of it, or the window waits."""
        return self._held > 0 or self.jobs[LOOK] is not None

    def hold(self) -> None:
        """Say that a worker is about to use the session; follow it with `release`."""
        self._held += 1

    def release(self) -> None:
        """Say that the worker is done; the slider may have moved on meanwhile."""
        self._held -= 1
        session = self.session
        if self._held or self._closed or session is None:
            return
        moved = session.threshold != self._threshold
        self._follow()
        if moved and self.settled:
            self.edited.emit(None)
        self.released.emit()

    def _follow(self) -> None:
        """Bring the session to the threshold; in a worker, if that takes a repair above edits."""
        session = self.session
        if session is None or self.held:
            return
        before = session.threshold if session.ready else None
        session.threshold = self._threshold
        if session.ready:
            return
        job = self.jobs.start(LOOK, "Repairing the hierarchy", session.look, lambda _: None)
        if job is not None:
            job.ended.connect(lambda: self._looked(session, before))

    def _looked(self, session: Session, before: float | None) -> None:
        """Show what was repaired; after a cancel, what was shown before."""
        if self._closed or session is not self.session:
            return
        if not session.ready and before is not None and session.threshold == self._threshold:
            self._threshold = session.threshold = before
            self.threshold_changed.emit(before)
        self._follow()  # the slider may have moved on meanwhile
        if self.settled:
            self.edited.emit(None)

    @property
    def has_hierarchy(self) -> bool:
        """Whether there is something to show."""
        return self.tree is not None

    def table(self) -> NDArray[np.uint32]:
        """Return the dense name of the segment of each dense superpixel, at the threshold.

        While the way to the threshold is being repaired it is what was seen last.
        """
        if self.session is not None:
            if self.settled:
                self._last, self._n_last = self.session.lut(dense=True), self.session.n_segments
            return self._last
        if self.tree is not None:
            return self.tree.lut(self._threshold)
        return np.zeros(1, np.uint32)

    @property
    def n_segments(self) -> int:
        """How many segments are seen."""
        if self.session is not None:
            return self.session.n_segments if self.settled else self._n_last
        return 0 if self.tree is None else self.tree.n_segments(self._threshold)

    def id_of(self, name: int) -> int:
        """Return the user's id of a segment by its dense name."""
        return 0 if self.graph is None else int(self.graph.ids[name])

    def select(self, active: int, *others: int) -> None:
        """Make a segment the active one, with others selected beside it, by dense names."""
        self.active, self.selected = int(active), tuple(int(one) for one in others)
        self.selection_changed.emit()

    def has_edited(self, change: Any = None) -> None:
        """Tell all that the session was edited, undone or redone."""
        if self.session is not None:
            self._session_graph = self.session.graph
            self._follow()  # what was undone may have been done at another scale
        self.edited.emit(change)
        self.status_changed.emit()

    # The end.

    def close(self) -> None:
        """Stop what runs and close the session: the viewer goes."""
        if self._closed:
            return
        self._closed = True
        self.jobs.close()
        try:
            self.closing.emit()
        finally:
            if self.session is not None:
                self.session.close()
                self.session = self._session_graph = None
