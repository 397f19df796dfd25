"""Box with a problem of the chosen data, and buttons for its remedies.

In its own file: the Data step has two, one for what cannot be used, one for what is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from qtpy.QtWidgets import QFrame

from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.widgets._colours import PROBLEM
from napari_agglo.widgets._fit_text import fitting_button, show_fitting
from napari_agglo.widgets._qt import button, column, guarded, label
from napari_agglo.widgets.data._remedy_buttons import Fix, fixes, message
from napari_agglo.widgets.data._selection import Selection


class RemedyBox(QFrame):
    """A problem, a button for each of its first two remedies, and perhaps one to dismiss it."""

    def __init__(
        self,
        name: str,
        selection: Selection,
        problem: Callable[[], InvalidInput | DataWarning | None],
        dismiss: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setStyleSheet(f"QFrame#{name} {{ border: 1px solid {PROBLEM}; border-radius: 4px; }}")
        self._selection, self._problem, self._dismiss = selection, problem, dismiss
        self._fixes: list[Fix] = []
        self.message = label(f"{name} message")
        together = "Apply this remedy"
        self.button = fitting_button("", together, lambda: self._act(0), f"mend {name}")
        self.second = fitting_button("", together, lambda: self._act(1), f"mend {name} otherwise")
        kept = "Hide this message; nothing is changed"
        self.keep = button("Leave it as it is", kept, self._on_keep, f"dismiss {name}")
        column(self, self.message, self.button, self.second, self.keep).setContentsMargins(
            6, 4, 6, 4
        )

    def follow(self) -> None:
        """Show the problem, if there is one."""
        problem = self._problem()
        self.setVisible(problem is not None)
        self._fixes = [] if problem is None else fixes(problem, self._selection)
        if problem is not None:
            show_fitting(self.message, message(problem, self._selection))
        for k, push in enumerate((self.button, self.second)):
            push.setVisible(k < len(self._fixes))
            if k < len(self._fixes):
                push.setText(self._fixes[k].text)
                push.setToolTip(f"<qt>Apply this remedy: {escape(self._fixes[k].text)}</qt>")
        self.keep.setVisible(self._dismiss is not None)

    def _act(self, k: int) -> None:
        guarded(self._fixes[k].act)

    def _on_keep(self) -> None:
        if self._dismiss is not None:
            self._dismiss()
