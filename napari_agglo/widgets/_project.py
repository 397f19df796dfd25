"""The state of one viewer: dataset, regions, policy, hierarchy and session, with signals.

All widgets of a viewer share one project, so a step works the same in the guided dock and in a dock
of its own, and closing a dock loses nothing. `Scene` draws the project; this module does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_agglo._data_warnings import keep_warnings, warn_caller
from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.evaluate import minimum
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import MeanPolicy, Policy, policy_record
from napari_agglo.session import Session
from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets._jobs import Jobs
from napari_agglo.widgets._session_worker import SessionWorker
from napari_agglo.widgets._slider_scale import Ticks

if TYPE_CHECKING:
    import pandas as pd


# Provenance: each value refers to its inputs, so that staleness is a comparison. Gold is an array
# that is painted in place, so brush strokes are counted, and a value computed from gold keeps the
# count at the start of its computation.
@dataclass(frozen=True, eq=False)
class Regions:
    """A region graph, and the dataset (with superpixels) it was computed from."""

    dataset: Dataset
    graph: RegionGraph
    doubts: tuple[DataWarning, ...] = ()  # of the data, such as a map of the wrong sign

    @classmethod
    def of(cls, dataset: Dataset, progress: ProgressCallback | None) -> Regions:
        """Return the regions of a dataset, computing superpixels if there are none."""
        with keep_warnings() as kept:
            whole = dataset.oversegmented(part_of(progress, 0.0, 0.6))
            graph = whole.graph(part_of(progress, 0.6, 1.0))
        for one in kept:  # to the window too, whose step may be another one
            warn_caller(one)
        return cls(whole, graph, tuple(kept))


@dataclass(frozen=True, eq=False)
class Trained:
    """A policy, and the regions it was trained on; None if it was loaded or is the mean."""

    policy: Policy
    on: Regions | None = None
    strokes: int | None = None


@dataclass(frozen=True, eq=False)
class Built:
    """A hierarchy without edits, its regions and policy, and its errors."""

    tree: MergeTree
    regions: Regions
    policy: Policy
    gold: Any = None  # labels to compare the tree with
    curve: pd.DataFrame | None = None  # the VI against gold at every threshold
    strokes: int | None = None  # of a brush in the gold, before the curve was computed
    training: bool = False  # whether the policy was trained on these very regions
    method: str = "threshold"  # the choice of the segments, see napari_agglo.partition


class Project:
    """The state of one viewer. Set attributes on the main thread only."""

    dataset_changed = Signal()
    hierarchy_changed = Signal()  # another tree or session is visible
    curve_changed = Signal()
    threshold_changed = Signal(float)
    edited = Signal(object)  # the visible segments have changed: a Change, or None
    selection_changed = Signal()
    status_changed = Signal()
    step_requested = Signal(str)  # a step to open
    closing = Signal()

    def __init__(self, viewer: object = None) -> None:
        self.jobs = Jobs()
        self.jobs.changed.connect(lambda _: self.status_changed.emit())
        self.trouble = ""  # why there is no dataset, as a sentence
        self._dataset: Dataset | None = None
        self._training: tuple[Dataset, ...] = ()
        self._regions: Regions | None = None
        self._trained = Trained(MeanPolicy())
        self._learned: dict[str, Trained] = {}  # the latest policy of each strategy
        self.former: Trained | None = None  # the learned policy that was in use before this one
        self._built: Built | None = None
        self._ticks: tuple[MergeTree, Ticks] | None = None
        self.session: Session | None = None  # edits of the hierarchy
        self._session_graph: RegionGraph | None = None  # with superpixels that edits divided
        self.strokes = 0  # of a brush in gold labels
        self.active = 0  # dense name of the active segment, 0 for none
        self.selected: tuple[int, ...] = ()  # dense names, without the active one
        self._threshold = 0.5
        self._table = np.zeros(1, np.uint32)
        self._table_key: tuple[object, float, int] | None = None  # the state of the table
        self._n_segments = 0
        self._edits = 0  # count of changes of the table at one threshold
        self._closed = False
        self.worker = SessionWorker(self)

    # Provenance.

    @property
    def dataset(self) -> Dataset | None:
        """The dataset chosen in the Data step."""
        return self._dataset

    def set_dataset(self, dataset: Dataset | None, trouble: str = "") -> None:
        """Choose a dataset; `trouble` is the reason if there is none."""
        self._dataset, self.trouble = dataset, trouble
        self.jobs.failures.clear()  # of other data
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
        """The latest regions."""
        return self._regions

    @regions.setter
    def regions(self, regions: Regions) -> None:
        self._regions = regions
        if self._dataset is not None and self._dataset is regions.dataset.origin:
            self._dataset = regions.dataset  # unless the user chose another meanwhile
        self.status_changed.emit()

    @property
    def trained(self) -> Trained:
        """The policy of the next hierarchy, with its provenance."""
        return self._trained

    @trained.setter
    def trained(self, trained: Trained) -> None:
        self._replace_policy(trained)
        self.jobs.failures.clear()  # of another policy
        self.status_changed.emit()

    def _replace_policy(self, trained: Trained) -> None:
        """Use another policy; a learned one that it replaces can be taken back."""
        before = self._trained
        if before.policy is not trained.policy and policy_record(before.policy) is not None:
            self.former = before
        elif self.former is not None and self.former.policy is trained.policy:
            self.former = None
        self._trained = trained
        self.keep_learned(trained)

    def keep_learned(self, trained: Trained) -> None:
        """Keep a learned policy, so that a comparison need not train it again."""
        strategy = (policy_record(trained.policy) or {}).get("strategy")
        if isinstance(strategy, str):
            self._learned[strategy] = trained

    def learned_policies(self, graph: RegionGraph) -> dict[str, Policy]:
        """Return the policies that can merge a graph, by strategy; not of gold painted since."""
        fitting: dict[str, Policy] = {}
        for strategy, trained in self._learned.items():
            if self.is_painted(trained):
                continue
            with suppress(InvalidInput):  # of other cues
                trained.policy.check(graph)
                fitting[strategy] = trained.policy
        return fitting

    @property
    def built(self) -> Built | None:
        """The visible hierarchy, without edits."""
        return self._built

    @built.setter
    def built(self, built: Built) -> None:
        self.close_session()
        self._built = built
        self._tell_hierarchy()

    def set_session(self, session: Session, built: Built) -> None:
        """Show a session of a hierarchy for edits."""
        self.close_session()
        self.session, self._built, self._session_graph = session, built, session.graph
        if built.policy is not self._trained.policy:
            self._replace_policy(Trained(built.policy))
        self._threshold = session.threshold
        self._tell_hierarchy()

    def drop_hierarchy(self) -> None:
        """Forget the visible hierarchy, whose data are gone; an open session stays."""
        if self._built is not None and self.session is None:
            self._built = None
            self._table = np.zeros(1, np.uint32)
            self._tell_hierarchy()

    def place_regions(self, regions: Regions) -> None:
        """Give the visible hierarchy the same graph with another dataset, such as its layers."""
        if self._built is not None and self._built.regions.graph is regions.graph:
            self._built = replace(self._built, regions=regions)
            self.regions = regions

    def close_session(self) -> None:
        """Close the session, which is saved already. The tree without edits stays."""
        if self.session is not None:
            self._end_session()
            self._emit_hierarchy()
            self.status_changed.emit()

    def _end_session(self) -> None:
        self.worker.clear()
        if self.session is not None:
            self.session.close()
            self.session = self._session_graph = None

    def set_gold(self, gold: Any) -> None:
        """Compare the hierarchy with other gold labels; its curve is reset."""
        if self._built is not None:
            self._set_errors(replace(self._built, gold=gold, curve=None, strokes=None))

    def set_curve(self, curve: pd.DataFrame | None, strokes: int | None = None) -> None:
        """Set the VI at every threshold; `strokes` is the count when its computation began."""
        if self._built is not None:
            if curve is not None:
                curve.attrs["training"] = self._built.training
            self._set_errors(replace(self._built, curve=curve, strokes=strokes))

    def _set_errors(self, built: Built) -> None:
        self._built = built
        self.curve_changed.emit()
        self.status_changed.emit()

    def _tell_hierarchy(self) -> None:
        self._emit_hierarchy()
        self.threshold_changed.emit(self._threshold)
        self.curve_changed.emit()
        self.status_changed.emit()

    def _emit_hierarchy(self) -> None:
        """Deselect all; listeners of the selection find the new hierarchy on the screen."""
        self.active, self.selected = 0, ()
        self.hierarchy_changed.emit()
        self.selection_changed.emit()

    # Shorthands for parts of these values.

    @property
    def policy(self) -> Policy:
        """The policy of the next hierarchy."""
        return self._trained.policy

    @property
    def tree(self) -> MergeTree | None:
        """The visible tree, without edits."""
        return None if self._built is None else self._built.tree

    @property
    def gold(self) -> Any:
        """The gold labels to compare the hierarchy with."""
        return None if self._built is None else self._built.gold

    @property
    def curve(self) -> pd.DataFrame | None:
        """The VI against gold at every threshold of the tree."""
        return None if self._built is None else self._built.curve

    @property
    def shown_regions(self) -> Regions | None:
        """The visible regions: those of the hierarchy, or else the latest."""
        return self._regions if self._built is None else self._built.regions

    @property
    def graph(self) -> RegionGraph | None:
        """The visible graph, with the superpixels divided by edits."""
        if self._session_graph is not None:
            return self._session_graph
        return None if self.shown_regions is None else self.shown_regions.graph

    @property
    def placement(self) -> Placement | None:
        """The placement of the graph in the world."""
        return None if self.shown_regions is None else self.shown_regions.dataset.placement

    # Staleness.

    def is_elsewhere(self, regions: Regions | None) -> bool:
        """Return whether the chosen dataset is another volume than that of some regions."""
        chosen = self._dataset
        if chosen is None or regions is None or not regions.dataset.cues:
            return False
        return not chosen.same_volume(regions.dataset)

    @property
    def shows_another_volume(self) -> bool:
        """Whether the hierarchy on the screen is of another volume than the chosen one."""
        built = self._built
        if built is None or self.session is not None:
            return False
        return self.lacks_data or self.is_elsewhere(built.regions)

    @property
    def lacks_data(self) -> bool:
        """Whether the choice of the Data step is not complete, such as a new image without a cue.

        Results on the screen are of the data before, then.
        """
        return self._dataset is None and bool(self.trouble) and self.session is None

    @property
    def policy_is_stale(self) -> bool:
        """Whether data or gold have changed since the policy was trained on the chosen volume."""
        on = self._trained.on
        if on is not None and self.is_elsewhere(on):  # deliberately
            return self.is_painted(self._trained)
        if on is None:
            return False
        other = self._regions is None or on.dataset.key != self._regions.dataset.key
        return other or self.is_painted(self._trained)

    @property
    def hierarchy_is_stale(self) -> bool:
        """Whether regions or policy have changed since the hierarchy was built."""
        built = self._built
        if built is None or self.session is not None:
            return False
        other = self._regions is not None and built.regions is not self._regions
        return other or built.policy is not self.policy

    def is_painted(self, value: Trained | Built | None) -> bool:
        """Return whether gold was painted since a value was computed from it."""
        return value is not None and value.strokes not in (None, self.strokes)

    @property
    def is_volume(self) -> bool:
        """Whether the visible graph has more than two axes."""
        return self.graph is not None and self.graph.superpixels.image.ndim > 2

    @property
    def any_gold(self) -> Any:
        """The gold labels of the hierarchy, or else of the latest regions."""
        if self.gold is not None or self._regions is None:
            return self.gold
        return self._regions.dataset.gold

    @property
    def all_gold(self) -> Any:
        """The gold labels to learn from: `any_gold`, or a list of those of several people."""
        gold = self.any_gold
        shown = self.shown_regions
        golds = () if shown is None else shown.dataset.golds
        return list(golds) if gold is not None and any(gold is one for one in golds) else gold

    def has_painted(self, data: Any) -> None:
        """Count a brush stroke in an array, if it is gold."""
        datasets = [one for one in (self._dataset, *self._training) if one is not None]
        golds = [self.gold, *(one.gold for one in datasets)]
        golds += [getattr(gold, "base", None) for gold in golds]  # of several people, a part
        if data is None or not any(data is gold for gold in golds):
            return
        self.strokes += 1
        if self.strokes - 1 in (self._trained.strokes, self._built and self._built.strokes):
            self.status_changed.emit()

    # The visible segments.

    @property
    def threshold(self) -> float:
        """The chosen threshold; the session follows when it is free."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        if threshold == self._threshold:
            return
        self._threshold = float(threshold)
        self.worker.look()
        self.threshold_changed.emit(self._threshold)

    @property
    def ticks(self) -> Ticks | None:
        """The states of the visible tree by numbers of merges."""
        if self._built is None:
            return None
        if self._ticks is None or self._ticks[0] is not self._built.tree:
            self._ticks = (self._built.tree, Ticks(self._built.tree.heights))
        return self._ticks[1]

    @property
    def least_vi(self) -> float | None:
        """The threshold of the least VI against gold, if the curve is known."""
        ticks = self.ticks
        if ticks is None or self._built is None or self._built.curve is None:
            return None
        return ticks.threshold(ticks.merges(minimum(self._built.curve)["threshold"]))

    def step(self, direction: int, *, single: bool = False) -> None:
        """Move the threshold up (+1) or down (-1), by a step of the slider or a single merge."""
        ticks = self.ticks
        if ticks is not None:
            move = ticks.moved if single else ticks.stepped
            self.threshold = ticks.threshold(move(ticks.merges(self._threshold), direction))

    @property
    def has_hierarchy(self) -> bool:
        """Whether there is a hierarchy."""
        return self._built is not None

    def table(self) -> NDArray[np.uint32]:
        """Return the dense name of the segment of each dense superpixel, at the threshold.

        While a worker uses the session it is the last table. It is computed once for each threshold
        and edit.
        """
        shown: object = self._built if self.session is None else self.session
        key = (shown, self._threshold, self._edits)
        if key != self._table_key and self.worker.settled:
            self._table_key = key
            if self.session is not None:
                self._table = self.session.lut(dense=True)
            elif self._built is not None:
                self._table = self._built.tree.lut(self._threshold)
        return self._table

    def show_meanwhile(self) -> None:
        """Show the segments that the session has now, on its way to the threshold."""
        assert self.session is not None
        self._table, self._table_key = self.session.lut(dense=True), None
        self.threshold_changed.emit(self._threshold)

    @property
    def n_segments(self) -> int:
        """The number of visible segments."""
        if self.session is None:
            return 0 if self._built is None else self._built.tree.n_segments(self._threshold)
        if self.worker.settled:
            self._n_segments = len(self.session.segments)
        return self._n_segments

    def id_of(self, name: int) -> int:
        """Return the user's id of a segment by its dense name."""
        return 0 if self.graph is None else int(self.graph.ids[name])

    def names_of(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the dense names of segments by the user's ids."""
        if self.graph is None:
            return ()
        return tuple(np.searchsorted(self.graph.ids, np.array(ids, np.uint64)).tolist())

    def select(self, active: int, *others: int) -> None:
        """Make a segment the active one, and select others beside it, by dense names."""
        self.active, self.selected = int(active), tuple(int(one) for one in others)
        self.selection_changed.emit()

    def has_edited(self, change: Any = None) -> None:
        """Announce that the session was edited, or that it has reached the threshold."""
        self._edits += 1
        if self.session is not None:
            self._session_graph = self.session.graph
            self.worker.look()  # an undone edit may be of another threshold
        self.edited.emit(change)

    # The end.

    def close(self) -> None:
        """Cancel all jobs and close the session; called when the viewer closes."""
        if self._closed:
            return
        self._closed = True
        self.jobs.close()
        try:
            self.closing.emit()
        finally:
            self._end_session()
