"""Connect a widget to a signal of the project, for as long as the widget lives."""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Callable
from typing import Any

from psygnal import SignalInstance
from qtpy.QtCore import QObject
from qtpy.QtWidgets import QWidget

_log = logging.getLogger("napari_agglo")
# What is to happen when a widget goes. Held here, for Python may collect a widget together with all
# that only the widget holds, take that apart first, and crash when Qt then calls it.
_ends: set[Callable[[], None]] = set()


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
    when_gone(widget, lambda: signal.disconnect(call, missing_ok=True))


def when_gone(thing: QObject, action: Callable[[], object]) -> None:
    """Call `action` when Qt destroys a thing, to which it must not refer."""

    def end() -> None:
        _ends.discard(end)
        try:
            action()
        except Exception:  # an error in a slot ends the program; here it is ending by itself
            _log.debug("something was gone already", exc_info=True)

    _ends.add(end)
    thing.destroyed.connect(end)
