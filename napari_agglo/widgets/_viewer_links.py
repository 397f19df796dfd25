"""Connect a widget to an event of the viewer, for as long as the widget lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from qtpy.QtWidgets import QWidget

from napari_agglo.widgets._links import when_gone


def link_viewer(widget: QWidget, emitter: Any, method: Callable[[], Any]) -> None:
    """Call `method`, of `widget`, whenever napari's `emitter` has an event; as `link` does."""
    held = weakref.WeakMethod(method)

    def call(_: object = None) -> None:
        live = held()
        if live is not None:
            live()

    emitter.connect(call)
    when_gone(widget, lambda: emitter.disconnect(call))
