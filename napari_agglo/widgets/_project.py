"""What is worked on in one viewer: from the data to the session, and who is told when it changes.

All widgets of a viewer share one project, so a step does the same in the guided dock and as a
widget of its own, and closing a dock loses nothing. Nothing here draws; `Scene` does.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_agglo.agglomeration import MergeTree
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import MeanPolicy, Policy
from napari_agglo.session import Session
from napari_agglo.widgets._dataset import Material, Placement
from napari_agglo.widgets._jobs import Jobs
from napari_agglo.widgets._steps import Status, Step, status_of

if TYPE_CHECKING:
    import napari
    import pandas as pd


# Gold that is painted in place: what was made of it before is stale.
#
# The array stays the same one, so nothing else tells. Strokes are counted, which costs nothing;
# what was made remembers how many there had been when the making began.


class GoldPaint:
    """The strokes in the gold labels of a project."""

    stale = Signal()  # the first stroke since something was made of the gold

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.strokes = 0
        self._began: dict[str, int] = {}  # strokes when a job began
        self._made: dict[str, int] = {}  # and when what is there now was begun
        jobs.changed.connect(self._on_job)

    def paint(self, data: Any, golds: Sequence[Any]) -> None:
        """Say that an array was painted in; it counts if it is one of `golds`."""
        if data is not None and any(data is gold for gold in golds):
            fresh = self.strokes in self._made.values()
            self.strokes += 1
            if fresh:
                self.stale.emit()

    def made(self, what: str, *jobs: str) -> None:
        """Say that something was made of the gold, by whichever of the jobs is running."""
        began = [self._began[name] for name in jobs if self._jobs[name] is not None]
        if began:
            self._made[what] = min(began)

    def since(self, what: str) -> bool:
        """Return whether gold was painted since something was made of it."""
        return self._made.get(what, self.strokes) != self.strokes

    def _on_job(self, name: str) -> None:
        if self._jobs[name] is not None:
            self._began[name] = self.strokes


LOOK = "look"  # the job that repairs the hierarchy above edits


class Project:
    """The state of one viewer. Set attributes on the main thread only.

    Attributes
    ----------
    material : Material or None
        What the Data step has chosen.
    training : list of Material
        Further volumes to train on.
    graph, policy, tree, curve, session
        What the steps made, as far as they are.
    """

    material_changed = Signal()
    graph_changed = Signal()
    policy_changed = Signal()
    hierarchy_changed = Signal()  # another tree or session is shown
    curve_changed = Signal()
    threshold_changed = Signal(float)
    edited = Signal(object)  # what is seen has changed: a Change, or None
    selection_changed = Signal()
    status_changed = Signal()
    released = Signal()  # no worker has the session any more
    closing = Signal()

    def __init__(self) -> None:
        self.jobs = Jobs()
        self.gold_paint = GoldPaint(self.jobs)
        self.gold_paint.stale.connect(lambda: self.status_changed.emit())
        self.jobs.changed.connect(lambda _: self.status_changed.emit())
        self.material: Material | None = None
        self.trouble = ""  # why there is no material, in words
        self.training: list[Material] = []
        self.built: RegionGraph | None = None  # the latest graph, and what it was made of
        self.graph_of: Material | None = None
        self.graph: RegionGraph | None = None  # that of the tree, if there is one; else the latest
        self.policy: Policy = MeanPolicy()
        self.policy_of: Any = None  # what it was trained on, to know when it is stale
        self.tree: MergeTree | None = None
        self.tree_of: tuple[Any, Any] = (None, None)  # the graph and the policy it was made by
        self.built_then: RegionGraph | None = None  # the latest graph when the tree came
        self.gold: Any = None  # that goes with the tree
        self.curve: pd.DataFrame | None = None
        # The segment of another tool that each dense superpixel belongs to, if it starts from one.
        self.partition: NDArray[Any] | None = None
        self.session: Session | None = None
        self.placement: Placement | None = None  # of the graph
        self.active = 0  # dense name of the active segment, 0 for none
        self.selected: tuple[int, ...] = ()  # dense names, without the active one
        self._threshold = 0.5
        self._last = np.zeros(1, np.uint32)
        self._n_last = 0
        self._held = 0
        self._closed = False

    # What the steps set.

    def set_material(self, material: Material | None, trouble: str = "") -> None:
        """Take what the Data step has chosen; `trouble` says why there is none."""
        self.material, self.trouble = material, trouble
        self.material_changed.emit()
        self.status_changed.emit()

    def set_graph(self, graph: RegionGraph, material: Material) -> None:
        """Take the graph that was made of a material (with its superpixels)."""
        self.built, self.graph_of = graph, material
        if self.tree is None:  # what is on the screen stays what it is until there is another tree
            self._look_at(graph)
        if self.material is not None and self.material is material.origin:
            self.material = material  # unless something else was chosen meanwhile
        self.graph_changed.emit()
        self.status_changed.emit()

    def _look_at(self, graph: RegionGraph) -> None:
        self.graph = graph
        if graph is self.built and self.graph_of is not None:
            self.placement, self.partition = self.graph_of.placement, self.graph_of.partition

    def set_policy(self, policy: Policy, made_of: Any = None) -> None:
        """Take a policy that was trained or loaded."""
        self.policy, self.policy_of = policy, made_of
        self.gold_paint.made(Step.TRAIN.value, Step.TRAIN.value)
        self.policy_changed.emit()
        self.status_changed.emit()

    def set_tree(self, tree: MergeTree, graph: RegionGraph, policy: Policy, gold: Any) -> None:
        """Show a tree, without a session."""
        self.close_session()
        self.tree, self.tree_of, self.gold = tree, (graph, policy), gold
        self.built_then = graph
        self._look_at(graph)
        self.curve = None
        self.select(0)
        self.hierarchy_changed.emit()
        self.threshold_changed.emit(self._threshold)
        self.status_changed.emit()

    def set_curve(self, curve: pd.DataFrame | None) -> None:
        """Take the VI at every threshold of the tree."""
        self.curve = curve
        self.gold_paint.made(Step.EVALUATE.value, Step.EVALUATE.value, Step.HIERARCHY.value)
        self.curve_changed.emit()
        self.status_changed.emit()

    def set_session(self, session: Session, tree: MergeTree, placement: Placement) -> None:
        """Show a session that was created or opened, and edit it from now on."""
        self.close_session()
        self.session, self.tree = session, tree
        self.graph, self.policy, self.placement = session.graph, session.policy, placement
        self.tree_of, self.built_then = (session.graph, session.policy), self.built
        self._threshold = session.threshold
        self.select(0)
        self.hierarchy_changed.emit()
        self.threshold_changed.emit(self._threshold)
        self.status_changed.emit()

    def close_session(self) -> None:
        """Let go of the session: all of it is on the disk. The tree without edits stays."""
        if self.session is not None:
            self.session.close()
            self.session = None
            self.select(0)
            self.hierarchy_changed.emit()
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

    def has_painted(self, data: Any) -> None:
        """Say that the pixels of a layer were painted in place: they may be gold."""
        materials = [one for one in (self.material, *self.training) if one is not None]
        self.gold_paint.paint(data, [self.gold, *(one.gold for one in materials)])

    def has_edited(self, change: Any = None) -> None:
        """Tell all that the session was edited, undone or redone."""
        if self.session is not None:
            self.graph = self.session.graph
            self._follow()  # what was undone may have been done at another scale
        self.edited.emit(change)
        self.status_changed.emit()

    # How far it is.

    def status(self, step: Step) -> Status:
        """Return how far a step is."""
        return status_of(self, step)

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
                self.session = None


_projects: weakref.WeakKeyDictionary[Any, Project] = weakref.WeakKeyDictionary()


def project_of(viewer: napari.viewer.ViewerModel) -> Project:
    """Return the project of a viewer; there is one for each, made when first asked for."""
    real = getattr(viewer, "__wrapped__", viewer)  # a plugin is handed a proxy
    project = _projects.get(real)
    if project is None:
        project = _projects[real] = Project()
    return project
