"""A line on an image that was opened beside a sample, with a button to use it."""

# In its own file: a new image changes no choice by itself, unlike the guesses of `_selection`.

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QWidget

from napari_agglo.widgets._napari import is_of_sample
from napari_agglo.widgets._qt import button, column, guarded, label, row, shortened
from napari_agglo.widgets.data._guess_roles import guess_image
from napari_agglo.widgets.data._selection import Selection

_LETTERS = 24  # of the name of the image


class OpenedImage(QWidget):
    """A line on an image of the user's, opened while a sample is chosen, with a button to use it.

    The layers of a sample say what they are, so they are not replaced by a guess.
    """

    def __init__(self, selection: Selection) -> None:
        super().__init__()
        self._selection = selection
        self.message = label("opened image")
        tooltip = "Choose this image in place of the sample, with the cues and gold of its size"
        self.use = button("Use it", tooltip, lambda: guarded(self._use), "use opened image")
        line = row(self.message, self.use)
        line.setStretch(0, 1)
        column(self, line)

    @property
    def image(self) -> Any:
        """The latest image that is of no sample, while the chosen image is; else None."""
        chosen = self._selection.image
        if chosen is None or not is_of_sample(chosen):
            return None
        return guess_image([one for one in self._selection.images() if not is_of_sample(one)])

    def follow(self) -> None:
        """Show the line if there is such an image."""
        image = self.image
        self.setVisible(image is not None)
        if image is not None:
            self.message.setText(f"“{shortened(str(image.name), _LETTERS)}” is open:")

    def _use(self) -> None:
        self._selection.choose("image", self.image)
