"""Connect a widget to an event of the viewer, for as long as the widget lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from qtpy.QtWidgets import QWidget


def link_viewer(widget: QWidget, emitter: Any, method: Callable[[], Any]) -> None:
    """Call `method`, of `widget`, whenever napari's `emitter` has an event; as `link` does."""
    held = weakref.WeakMethod(method)

    def call(_: object = None) -> None:
        live = held()
        if live is not None:
            live()

    emitter.connect(call)
    widget.destroyed.connect(lambda: emitter.disconnect(call))
