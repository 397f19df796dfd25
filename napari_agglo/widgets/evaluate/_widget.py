"""The Evaluate step as a widget."""

from __future__ import annotations

from typing import Any

from napari_agglo.widgets._project import Step
from napari_agglo.widgets._step_widget import StepWidget


class EvaluateWidget(StepWidget):
    """The Evaluate step."""

    step = Step.EVALUATE

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.start()
