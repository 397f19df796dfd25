"""The help panel: gestures and keys, and a line on each step."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

# What the hands do, as in the Proofread step.
KEYS = (
    ("click", "make a segment the active one"),
    ("Shift + click", "merge with the active segment"),
    ("Ctrl + click", "place a seed for a cut"),
    ("G", "next group of seeds"),
    ("Enter", "cut, while there are seeds"),
    ("Escape", "clear the seeds"),
    (", and .", "down and up the branch of the active segment"),
    ("Ctrl + Z", "undo; Ctrl + Shift + Z redoes"),
    ("right-click", "select several; W merges them with the active one"),
    ("K", "take the superpixel under the mouse out of its segment"),
    ("H", "lock or unlock the active segment"),
    ("U", "mark the active segment as reviewed, or not"),
    ("Y, N and S", "yes, no, skip, while the next probable error is asked"),
    ("A and D", "threshold one step down or up"),
)
_STEPS = (
    "<b>Data</b>: choose the image, its boundary cues, and gold labels if you have some.",
    "<b>Train</b>: learn from the gold labels which regions to merge. Optional.",
    "<b>Hierarchy</b>: merge superpixels, and scrub the result from fine to coarse.",
    "<b>Evaluate</b>: compare with gold: what is wrong, and where.",
    "<b>Proofread</b>: merge and cut by hand, at any scale. Every edit is saved at once.",
)


class HelpPanel(QWidget):
    """What there is to know, on one panel."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("agglo help")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 8)
        rows = "".join(
            f"<tr><td style='padding-right: 12px'><b>{key}</b></td><td>{does}</td></tr>"
            for key, does in KEYS
        )
        steps = "".join(f"<p style='margin: 2px 0'>{line}</p>" for line in _STEPS)
        label = QLabel(f"{steps}<table style='margin-top: 6px'>{rows}</table>")
        label.setWordWrap(True)
        label.setTextFormat(Qt.TextFormat.RichText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout.addWidget(label)
