"""Rows and texts of progress: the button of a job with its bar, and the reason of a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QProgressBar, QWidget

from napari_agglo._progress import Progress
from napari_agglo.widgets._colours import PROBLEM
from napari_agglo.widgets._fit_text import show_fitting
from napari_agglo.widgets._fixed_label import fixed_label
from napari_agglo.widgets._qt import button, column, label, link, row

if TYPE_CHECKING:
    from napari_agglo.widgets._jobs import Job
    from napari_agglo.widgets._project import Project

_STEPS = 1000  # of the bar


def short_texts(progress: Progress) -> tuple[str, ...]:
    """Return shorter texts of progress, for a narrow window.

    Examples
    --------
    >>> short_texts(Progress("fit", 1, 2, 0.25, 90.0, "epoch 1, 70 examples"))
    ('about 2 min left: fit', 'about 2 min left')
    >>> short_texts(Progress("graph", 1, 2))
    ('50%: graph', '50%')
    """
    left = progress.seconds_left
    start = f"{progress.whole:.0%}" if left is None else f"{duration(left)} left"
    return f"{start}: {progress.stage}", start


def text_of(progress: Progress, compiling: bool = False) -> str:
    """Return progress as text; the time left is first, since a narrow window cuts off the end.

    Examples
    --------
    >>> text_of(Progress("graph", 1, 2))
    '50%: graph'
    >>> text_of(Progress("fit", 1, 2, 0.25, 90.0, "epoch 1, 70 examples"))
    'about 2 min left: fit, epoch 1, 70 examples'
    >>> text_of(Progress("fit", 1, 2), compiling=True)
    'compiling (first run only): fit'
    """
    work = f"{progress.stage}, {progress.detail}" if progress.detail else progress.stage
    left = progress.seconds_left
    if compiling:
        return f"compiling (first run only): {progress.stage}"
    return f"{progress.whole:.0%}: {work}" if left is None else f"{duration(left)} left: {work}"


def duration(seconds: float) -> str:
    """Return an estimated time in words."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min"


class FailureLine(QWidget):
    """The reason that a job of one of some names failed, until the next run or other inputs."""

    def __init__(self, project: Project, *names: str) -> None:
        super().__init__()
        self._project, self._names = project, names
        self.text = label(f"failure {names[0]}")
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.text.setStyleSheet(f"border-left: 3px solid {PROBLEM}; padding-left: 5px;")
        column(self, self.text)
        link(self._follow, project.status_changed)
        self._follow()

    def _follow(self) -> None:
        failures = self._project.jobs.failures
        text = " ".join(failures[name] for name in self._names if name in failures)
        show_fitting(self.text, text)
        self.setVisible(bool(text))


class RunRow(QWidget):
    """A button that starts a job and, while it runs, cancels it; with its progress."""

    def __init__(
        self, project: Project, job: str, text: str, tooltip: str, start: Callable[[], object]
    ) -> None:
        super().__init__()
        self._project = project
        self._name = job
        self._text = text
        self._tooltip = tooltip
        self._start = start
        self._ready, self._why_not = True, ""
        self._watched: Job | None = None
        self.button = button(text, tooltip, self._clicked, f"run {job}")
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(6)
        self.progress = fixed_label(f"progress {job}")
        # Beside the button, so that nothing below moves when a job begins or ends.
        self.beside = QWidget()
        column(self.beside, self.progress, self.bar, spacing=1)
        self.row = row(self.button, self.beside, spacing=6)
        self.row.setStretch(0, 1)
        self.row.setStretch(1, 2)
        self.failure = FailureLine(project, job)
        column(self, self.row, self.failure)
        link(self._on_jobs, project.jobs.changed)
        self._follow()

    def set_text(self, text: str) -> None:
        """Change the text of the button."""
        self._text = text
        self._follow()

    def set_ready(self, ready: bool, why_not: str = "") -> None:
        """Enable the button or disable it, with the reason as its tooltip."""
        self._ready, self._why_not = ready, why_not
        self._follow()

    def _clicked(self) -> None:
        if self._project.jobs[self._name] is None:
            self._start()
        else:
            self._project.jobs.cancel(self._name)
            self.button.setEnabled(False)
            self.button.setText("Cancelling…")

    def _on_jobs(self, name: str) -> None:
        if name == self._name:
            self._follow()

    def _follow(self) -> None:
        job = self._project.jobs[self._name]
        running = job is not None
        if job is None or not job.cancelled:
            self.button.setText("Cancel" if running else self._text)
            self.button.setEnabled(running or self._ready)
        tooltip = self._tooltip if self._ready else self._why_not or self._tooltip
        self.button.setToolTip("Cancel; nothing is changed" if running else tooltip)
        self.beside.setVisible(running)
        if job is not None and job is not self._watched:
            self.bar.setValue(0)
            self.progress.setText(f"{job.title}…")
            link(self._show, job.progressed)
        self._watched = job

    def _show(self, progress: Progress) -> None:
        self.bar.setValue(round(_STEPS * progress.whole))
        job = self._watched
        compiling = job is not None and job.compiling
        shorter = ("compiling (first run only)", "compiling") if compiling else ()
        self.progress.show_first(text_of(progress, compiling), *(shorter or short_texts(progress)))
