"""How far it is: edits, reviewed segments, and errors against gold with their change."""

from __future__ import annotations

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_agglo.session import Session
from napari_agglo.widgets._links import link, when_gone
from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.proofread._latest import Latest

_SOON = 60  # milliseconds after the last change
Result = tuple[int, str, tuple[float, float] | None]


class Scores(QWidget):
    """Numbers that follow each edit; computed in a worker."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self.project = project
        self.words = QLabel()
        self.words.setObjectName("scores")
        self.words.setWordWrap(True)
        self.words.setToolTip(
            "Edits that count; segments reviewed; false merge + false split = VI in bits, against "
            "gold, and the change against the hierarchy without edits"
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.words)
        self._latest = Latest(project.hold, project.release)
        self._start: dict[float, tuple[float, float]] = {}  # errors at first, by threshold
        self._of: Session | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON)
        self._soon.timeout.connect(self._compute)
        link(self, project.edited, self._later)
        link(self, project.threshold_changed, self._later)
        link(self, project.hierarchy_changed, self._later)
        when_gone(self, self._latest.close)
        self._later()

    def _later(self) -> None:
        self._soon.start()

    def _compute(self) -> None:
        project, session = self.project, self.project.session
        if session is None:
            self._latest.forget()
            self.words.setText("")
            self._of = None
            return
        if session is not self._of:
            self._of, self._start = session, {}
        if not project.settled:
            self._soon.start()
            return

        def work() -> Result:
            errors = session.errors if session.has_gold else None
            done = sum(not item.undone for item in session.history)
            pair = None if errors is None else (errors.false_merge, errors.false_split)
            return done, str(session.reviewed), pair

        at = session.threshold
        self._latest.ask(work, lambda result: self._show(at, result), tell_error)

    def _show(self, threshold: float, result: Result) -> None:
        done, reviewed, pair = result
        lines = [f"{done} {'edit' if done == 1 else 'edits'} · {reviewed}"]
        if pair is not None:
            if done == 0:
                self._start[threshold] = pair
            first = self._unedited(threshold) or self._start.get(threshold)
            lines.append(f"VI {sum(pair):.4f}" + ("" if first is None else _change(first, pair)))
            lines.append(f"false merge {pair[0]:.4f} · false split {pair[1]:.4f}")
        self.words.setText("<br>".join(lines))

    def _unedited(self, threshold: float) -> tuple[float, float] | None:
        """Return the errors without any edit, if the curve of the hierarchy is known."""
        curve = self.project.curve
        if curve is None or not len(curve):
            return None
        at = max(0, int(curve["threshold"].searchsorted(threshold, side="right")) - 1)
        row = curve.iloc[at]
        return float(row["false_merge"]), float(row["false_split"])


def _change(before: tuple[float, float], now: tuple[float, float]) -> str:
    change = sum(now) - sum(before)
    sign = "±" if abs(change) < 5e-5 else ("+" if change > 0 else "−")
    return f" ({sign}{abs(change):.4f} by the edits)"
