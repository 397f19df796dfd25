"""The plots of errors at every threshold, tied to the threshold of the project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from psygnal import Signal

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree
from napari_agglo.evaluate import minimum, state_at, vi_curve
from napari_agglo.policy import Policy, policy_record
from napari_agglo.volumes import dense_labels
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.evaluate._live_errors import Comparison
from napari_agglo.widgets.hierarchy._slider import Ticks
from napari_agglo.widgets.plots import SplitVIPlot, ThresholdPlot

if TYPE_CHECKING:
    import pandas as pd

EDITED = "edited"  # the name of the job
_WITHOUT = "as the policy merged it, without edits"


class Edited:
    """The hierarchy with the edits of the open session, and its curve, for files.

    Neither follows each edit: an edit changes all scales above it, and what is above is only looked
    at when it is asked for.
    """

    def __init__(self, project: Project) -> None:
        self._project = project

    @property
    def there(self) -> bool:
        """Whether there are edits."""
        session = self._project.session
        return session is not None and session.history.can_undo

    @property
    def words(self) -> str:
        """Say which hierarchy it is."""
        session = self._project.session
        if session is None or not self.there:
            return _WITHOUT
        done = sum(not item.undone for item in session.history)
        return f"with the {done} {'edit' if done == 1 else 'edits'} of {session.path.name}"

    @property
    def policy(self) -> Policy | None:
        """The policy of the hierarchy; edits may have taught another."""
        session = self._project.session
        if session is not None and self.there:
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
        """Have the hierarchy with all edits, once it is there; if there are none, as it is."""
        project, session = self._project, self._project.session
        if session is None or not self.there:
            if project.tree is not None:
                then(project.tree)
            return

        def work(progress: ProgressCallback) -> MergeTree:
            session.look(progress, threshold=np.inf)
            return session.tree

        project.worker.run(EDITED, "Following the edits", work, then)

    def ask_curve(self, then: Callable[[pd.DataFrame], object]) -> None:
        """Have the errors at every threshold, with all edits."""
        project, gold = self._project, self._project.gold
        if not self.there:
            if project.curve is not None:
                then(project.curve)
            return

        def compare(tree: MergeTree) -> None:
            def work(progress: ProgressCallback) -> pd.DataFrame:
                return vi_curve(tree, dense_labels(np.asarray(gold), "gold"), progress=progress)

            project.jobs.start(f"{EDITED} curve", "Comparing the edits with gold", work, then)

        self.ask_tree(compare)


EDITED_SUFFIX = ", edited"  # after the name of a policy: with the edits of a session
_KEPT = 3  # curves of earlier policies, to compare with


class Curves:
    """Split VI and VI by threshold; a drag in either sets the threshold of the project.

    Curves of policies used before on the same gold stay, to be compared with; only that of the
    hierarchy on the screen can be dragged along.
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
        self._edited_at: object = None  # the edits that a curve is drawn of, and its name
        self._edited_name = ""

    @property
    def name(self) -> str:
        """Name of the curve of the visible hierarchy."""
        return policy_name(None if self._project.built is None else self._project.built.policy)

    def set_theme(self, background: str, foreground: str) -> None:
        self.split.set_theme(background, foreground)
        self.by_threshold.set_theme(background, foreground)

    def draw(self) -> None:
        """Draw the curves that there are."""
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
        """Whether a curve with the edits is drawn."""
        return self._edited_at is not None

    def show_edited(self, curve: pd.DataFrame) -> None:
        """Draw the curve with the edits, until there is another edit."""
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
        """Return false merge and false split of what is seen."""
        edited = self._edited()
        if edited is not None or self._project.curve is None:
            return edited
        state = state_at(self._project.curve, self._project.threshold)
        return state["false_merge"], state["false_split"]

    def go_to_least(self) -> None:
        """Set the threshold where the VI is least."""
        curve, tree = self._project.curve, self._project.tree
        if curve is not None and tree is not None:
            ticks = Ticks(tree.heights)
            self._project.threshold = ticks.threshold(ticks.merges(minimum(curve)["threshold"]))

    def _edited(self) -> tuple[float, float] | None:
        """Return the errors of a session, which may lie beside the curve."""
        numbers = self._comparison.numbers
        if numbers is None or not self.edits.there:
            return None
        if self._comparison.threshold != self._project.threshold:
            return None  # until the numbers have followed, the curve without edits is a guess
        return float(numbers["false_merge"]), float(numbers["false_split"])

    def _on_picked(self, name: str, threshold: float) -> None:
        if name == self.name:
            self._set(threshold)

    def _set(self, threshold: float) -> None:
        self._project.threshold = threshold


def policy_name(policy: Policy | None) -> str:
    """Return what to call the curve of a policy.

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
