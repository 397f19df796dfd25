"""What is seen while the hierarchy above edits is being repaired."""

from __future__ import annotations

from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from napari_agglo.widgets._links import link
from napari_agglo.widgets._project import LOOK, Project


class Repairing(QWidget):
    """A line that is there only while a repair runs, with a button to stop it."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.label = QLabel("Repairing the hierarchy above your edits…")
        self.label.setWordWrap(True)
        self.cancel = QPushButton("Cancel")
        self.cancel.setObjectName("cancel repair")
        self.cancel.setToolTip("Stop, and go back to the threshold seen before")
        self.cancel.clicked.connect(lambda: project.jobs.cancel(LOOK))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.label, 1)
        row.addWidget(self.cancel)
        link(self, project.jobs.changed, self._follow)
        self._follow(LOOK)

    def _follow(self, name: str) -> None:
        if name == LOOK:
            self.setVisible(self._project.jobs[LOOK] is not None)
