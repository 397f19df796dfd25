"""What stands in the way, in the widget, with a button that mends it where one can."""

from __future__ import annotations

from qtpy.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout

from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets.data._trouble import Trouble


class TroublePart(QFrame):
    """A box with the trouble; not there if there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("trouble")
        self.setStyleSheet("QFrame#trouble { border: 1px solid #d97706; border-radius: 4px; }")
        self._trouble: Trouble | None = None
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.words.setObjectName("trouble words")
        self.button = QPushButton()
        self.button.setObjectName("mend")
        self.button.setToolTip("Do this, so that the layers can be used together")
        self.button.clicked.connect(self._mend)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.addWidget(self.words)
        layout.addWidget(self.button)

    def show_trouble(self, trouble: Trouble | None) -> None:
        """Show it, or go away."""
        self._trouble = trouble
        self.setVisible(trouble is not None)
        if trouble is not None:
            self.words.setText(str(trouble))
            self.button.setText(trouble.remedy)
            self.button.setVisible(bool(trouble.remedy))

    def _mend(self) -> None:
        trouble = self._trouble
        if trouble is not None and trouble.mend is not None:
            try:
                trouble.mend()
            except Exception as error:
                tell_error(error)
