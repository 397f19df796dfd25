"""Parts that are folded away take no room while they are."""

from __future__ import annotations

from superqt import QCollapsible


def close_up(folding: QCollapsible) -> None:
    """Take away the margins around a part that folds; its button says what is in it."""
    folding.toggleButton().setToolTip(folding.toolTip())
    for widget in (folding, folding.content().parentWidget()):
        layout = None if widget is None else widget.layout()
        if layout is not None:
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(2)
