"""A button that starts a job and, while it runs, cancels it; with how far it is."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from napari_agglo._progress import Progress
from napari_agglo.widgets._jobs import Job, share, words
from napari_agglo.widgets._links import link
from napari_agglo.widgets._project import Project

_STEPS = 1000


class RunRow(QWidget):
    """Start, watch and cancel the job of one name.

    Parameters
    ----------
    project : Project
        Whose jobs.
    job : str
        The name of the job that the button starts.
    text, tooltip : str
        Of the button while nothing runs.
    start : callable
        What a click does: it starts the job. A second click, while it runs, cancels it.
    """

    def __init__(
        self,
        project: Project,
        job: str,
        text: str,
        tooltip: str,
        start: Callable[[], object],
    ) -> None:
        super().__init__()
        self._project = project
        self._name = job
        self._text = text
        self._tooltip = tooltip
        self._start = start
        self._watched: Job | None = None
        self.button = QPushButton(text)
        self.button.setObjectName(f"run {job}")
        self.button.clicked.connect(self._clicked)
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(6)
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        row = QHBoxLayout()
        row.addWidget(self.button)
        layout.addLayout(row)
        layout.addWidget(self.bar)
        layout.addWidget(self.words)
        self.row = row  # for buttons beside it
        link(self, project.jobs.changed, self._on_jobs)
        self._follow()

    def set_text(self, text: str) -> None:
        """Say something else on the button."""
        self._text = text
        self._follow()

    def set_ready(self, ready: bool, why_not: str = "") -> None:
        """Let the button be clicked or not; its tooltip says why not."""
        if self._project.jobs[self._name] is None:
            self.button.setEnabled(ready)
            self.button.setToolTip(self._tooltip if ready else why_not or self._tooltip)

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
        self.button.setText("Cancel" if running else self._text)
        self.button.setToolTip("Stop; what was there before stays" if running else self._tooltip)
        self.button.setEnabled(True)
        self.bar.setVisible(running)
        self.words.setVisible(running)
        if job is not None and job is not self._watched:
            self.bar.setValue(0)
            self.words.setText(f"{job.title}…")
            link(self, job.progressed, self._show)
        self._watched = job

    def _show(self, progress: Progress) -> None:
        self.bar.setValue(round(_STEPS * share(progress)))
        self.words.setText(words(progress))
