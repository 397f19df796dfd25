"""The plots of errors at every threshold, tied to the threshold of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psygnal import Signal

from napari_agglo.evaluate import minimum, state_at
from napari_agglo.policy import LearnedPolicy, Policy
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.evaluate._comparison import Comparison
from napari_agglo.widgets.evaluate._edited import Edited
from napari_agglo.widgets.hierarchy._ticks import Ticks
from napari_agglo.widgets.plots import SplitVIPlot, ThresholdPlot

if TYPE_CHECKING:
    import pandas as pd

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
        """What the curve of the hierarchy on the screen is called."""
        return policy_name(self._project.tree_of[1])

    def set_theme(self, background: str, foreground: str) -> None:
        self.split.set_theme(background, foreground)
        self.by_threshold.set_theme(background, foreground)

    def draw(self) -> None:
        """Draw the curves that there are."""
        curve, project = self._project.curve, self._project
        of = (project.tree_of[0], project.gold)
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
        counts = self._comparison.counts
        self.split.set_best(None if counts is None else counts.best)

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
        session, numbers = self._project.session, self._comparison.numbers
        if session is None or not session.can_undo or numbers is None:
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
    if isinstance(policy, LearnedPolicy):
        strategy, epochs = policy.record.get("strategy", "learned"), policy.record.get("epochs")
        return f"{strategy}, {epochs} epochs" if epochs else str(strategy)
    return "policy" if policy is None else type(policy).__name__.removesuffix("Policy").lower()
