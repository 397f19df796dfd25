"""The plots of errors at every threshold, which set the threshold of the project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from psygnal import Signal

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree
from napari_agglo.evaluate import Contingency, state_at, table_curve, vi_curve
from napari_agglo.policy import Policy, policy_record
from napari_agglo.volumes import dense_labels, is_on_disk
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.evaluate._live_errors import Comparison
from napari_agglo.widgets.plots import SplitVIPlot, ThresholdPlot

if TYPE_CHECKING:
    import pandas as pd

EDITED = "edited"  # the name of the job
_APPLYING = "Applying the edits at all thresholds"
_WITHOUT = "as the policy merged it, without edits"


class Edited:
    """The hierarchy with the edits of the open session, and its curve, for files.

    Both are computed on request: an edit changes all scales above it, which are repaired lazily.
    """

    def __init__(self, project: Project) -> None:
        self._project = project

    @property
    def exists(self) -> bool:
        """Whether there are edits."""
        session = self._project.session
        return session is not None and session.history.can_undo

    @property
    def description(self) -> str:
        """A clause on the hierarchy: its edits, or none."""
        session = self._project.session
        if session is None or not self.exists:
            return _WITHOUT
        done = sum(not item.undone for item in session.history)
        return f"with the {done} {'edit' if done == 1 else 'edits'} of {session.path.name}"

    @property
    def policy(self) -> Policy | None:
        """The policy of the hierarchy, which may be relearned from edits."""
        session = self._project.session
        if session is not None and self.exists:
            return session.policy
        return None if self._project.built is None else self._project.built.policy

    @property
    def state(self) -> object:
        """A value that differs after each edit."""
        session = self._project.session
        if session is None:
            return None
        return session.path, [(item.number, item.undone) for item in session.history]

    def ask_tree(self, then: Callable[[MergeTree], object]) -> None:
        """Pass the hierarchy with all edits to `then`; without edits, the visible one."""
        project, session = self._project, self._project.session
        if session is None or not self.exists:
            if project.tree is not None:
                then(project.tree)
            return

        def work(progress: ProgressCallback) -> MergeTree:
            session.look(progress, threshold=np.inf)
            return session.tree

        project.worker.run(EDITED, _APPLYING, work, then)

    def ask_curve(self, then: Callable[[pd.DataFrame], object]) -> None:
        """Pass the errors at every threshold, with all edits, to `then`."""
        project, gold = self._project, self._project.gold
        session = project.session
        if not self.exists:
            if project.curve is not None:
                then(project.curve)
            return

        assert session is not None
        on_disk = project.graph is not None and is_on_disk(project.graph.superpixels.image)
        known = on_disk and session.errors.has_gold and gold is session.errors.gold

        def edited(progress: ProgressCallback) -> tuple[MergeTree, Contingency | None]:
            session.look(progress, threshold=np.inf)
            return session.tree, session.errors.overlaps(progress) if known else None

        def compare(outcome: tuple[MergeTree, Contingency | None]) -> None:
            tree, table = outcome

            def work(progress: ProgressCallback) -> pd.DataFrame:
                if table is not None:
                    return table_curve(tree, table, progress=progress)
                # Gold on disk is read slab by slab.
                truth = gold if on_disk else dense_labels(np.asarray(gold), "gold")
                return vi_curve(tree, truth, progress=progress)

            project.jobs.start(f"{EDITED} curve", "Comparing the edits with gold", work, then)

        def ask(_: object = None) -> None:
            if project.session is session:
                project.worker.run(EDITED, _APPLYING, edited, compare)

        if known and not session.errors.are_counted:
            title = "Counting overlaps with gold"
            project.jobs.start(f"{EDITED} overlaps", title, session.errors.count, ask)
        else:
            ask()


OWN_SUFFIX = ", training data"  # after the name of a policy that was trained on what is compared
EDITED_SUFFIX = ", edited"  # after the name of a policy, for a session with edits
_KEPT = 3  # curves of earlier policies, to compare with


class Curves:
    """The plots of split VI and VI by threshold; a drag in either sets the threshold.

    The curves of former policies with the same gold stay for comparison; only the curve of the
    visible hierarchy can be dragged.
    """

    edited_drawn = Signal()

    def __init__(self, project: Project, comparison: Comparison) -> None:
        self._project, self._comparison = project, comparison
        self.split, self.by_threshold = SplitVIPlot(), ThresholdPlot()
        self.split.threshold_picked.connect(self._on_picked)
        self.by_threshold.threshold_dragged.connect(self._set)
        self._drawn: dict[str, pd.DataFrame] = {}
        self._of: tuple[object, object] = (None, None)  # the graph and gold of the curves
        self.edits = Edited(project)
        self._edited_at: object = None  # the edits of the drawn curve; its name
        self._edited_name = ""

    @property
    def name(self) -> str:
        """Name of the curve of the visible hierarchy."""
        built = self._project.built
        own = built is not None and built.training
        return policy_name(None if built is None else built.policy) + (OWN_SUFFIX if own else "")

    def draw(self) -> None:
        """Draw all known curves."""
        curve, project = self._project.curve, self._project
        of = (project.built and project.built.regions, project.gold)
        if any(one is not other for one, other in zip(of, self._of, strict=True)):
            self._of = of
            self._drawn.clear()
            self.split.clear()
        self._forget_edited()
        self.by_threshold.set_curve(curve)
        if curve is None:
            return
        if self._drawn.get(self.name) is not curve:
            self._drawn.pop(self.name, None)
            self._drawn[self.name] = curve
            while len(self._drawn) > _KEPT + 1:
                oldest = next(iter(self._drawn))
                del self._drawn[oldest]
                self.split.remove_curve(oldest)
        for name, table in self._drawn.items():
            self.split.set_curve(name, table, pickable=name == self.name)
        self._mark_best()

    @property
    def has_edited(self) -> bool:
        """Whether the curve with the edits is drawn."""
        return self._edited_at is not None

    def show_edited(self, curve: pd.DataFrame) -> None:
        """Draw the curve with the edits, until the next edit."""
        self._forget_edited()
        self._edited_at = self.edits.state
        self._edited_name = self.name + EDITED_SUFFIX
        self.split.set_curve(self._edited_name, curve, pickable=False)
        self.by_threshold.set_curve(curve)
        self.follow()
        self.edited_drawn.emit()

    def _forget_edited(self) -> None:
        if self.has_edited:
            self._edited_at = None
            self.split.remove_curve(self._edited_name)
            self.by_threshold.set_curve(self._project.curve)

    def follow(self) -> None:
        """Move the point and the line to the threshold of the project."""
        if self.has_edited and self._edited_at != self.edits.state:
            self._forget_edited()
        if self._project.curve is None or self.name not in self._drawn:
            return
        at = self._project.threshold
        self.by_threshold.set_threshold(at)
        self.split.set_point(self.name, at, self._edited())
        self._mark_best()

    def _mark_best(self) -> None:
        counts = self._comparison.counts
        self.split.set_best(None if counts is None else counts.best)

    def errors(self) -> tuple[float, float] | None:
        """Return false merge and false split of the visible segments."""
        edited = self._edited()
        if edited is not None or self._project.curve is None:
            return edited
        state = state_at(self._project.curve, self._project.threshold)
        return state["false_merge"], state["false_split"]

    def go_to_least(self) -> None:
        """Set the threshold of the least VI."""
        if self._project.least_vi is not None:
            self._project.threshold = self._project.least_vi

    def _edited(self) -> tuple[float, float] | None:
        """Return the errors of a session with edits, which may lie beside the curve."""
        numbers = self._comparison.numbers
        if numbers is None or not self.edits.exists:
            return None
        if self._comparison.threshold != self._project.threshold:
            return None  # until they are computed, those of the curve are shown
        return float(numbers["false_merge"]), float(numbers["false_split"])

    def _on_picked(self, name: str, threshold: float) -> None:
        if name == self.name:
            self._set(threshold)

    def _set(self, threshold: float) -> None:
        self._project.threshold = threshold


def policy_name(policy: Policy | None) -> str:
    """Return the name of the curve of a policy.

    Examples
    --------
    >>> from napari_agglo import MeanPolicy
    >>> policy_name(MeanPolicy())
    'mean'
    """
    if policy is None:
        return "policy"
    record = policy_record(policy) or {}
    strategy, epochs = record.get("strategy", policy.name), record.get("epochs")
    plural = "" if epochs == 1 else "s"
    return f"{strategy}, {epochs} epoch{plural}" if epochs else str(strategy)
