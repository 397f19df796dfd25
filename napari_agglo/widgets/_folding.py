"""Parts that are folded away take no room while they are."""

from __future__ import annotations

from qtpy.QtGui import QIcon
from superqt import QCollapsible


def close_up(folding: QCollapsible) -> None:
    """Take away the margins around a part that folds; its button says what is in it.

    Its arrow is text like that of the steps, not an icon, which would stay black on dark.
    """
    button, title = folding.toggleButton(), folding.text()
    button.setToolTip(folding.toolTip())
    folding.setCollapsedIcon(QIcon())
    folding.setExpandedIcon(QIcon())

    def turn(is_open: bool) -> None:
        button.setText(f"{'▾' if is_open else '▸'}  {title}")

    folding.toggled.connect(turn)
    turn(folding.isExpanded())
    for widget in (folding, folding.content().parentWidget()):
        layout = None if widget is None else widget.layout()
        if layout is not None:
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(2)
