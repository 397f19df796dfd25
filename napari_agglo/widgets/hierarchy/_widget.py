"""The Hierarchy step as a widget."""

from __future__ import annotations

from typing import Any

from napari_agglo.widgets._project import Step
from napari_agglo.widgets._step_widget import StepWidget


class HierarchyWidget(StepWidget):
    """The Hierarchy step."""

    step = Step.HIERARCHY

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.start()
