"""Connect a widget to a signal of the project, for as long as the widget lives."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any

from psygnal import SignalInstance
from qtpy.QtWidgets import QWidget


def link(widget: QWidget, signal: SignalInstance, method: Callable[..., Any]) -> None:
    """Call `method`, of `widget`, whenever `signal` is emitted.

    Qt destroys a widget before Python lets go of it; a signal that came between would call into
    nothing, so the connection ends with the widget.
    """
    held = weakref.WeakMethod(method)
    n = len(inspect.signature(method).parameters)

    def call(*arguments: Any) -> None:
        live = held()
        if live is not None:
            live(*arguments[:n])

    signal.connect(call)
    widget.destroyed.connect(lambda: signal.disconnect(call, missing_ok=True))
