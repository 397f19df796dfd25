"""Profile of the main thread: CPU seconds by function and by the library that they belong to.

The time of a function is its own, without the calls that it makes. Functions of numpy, of the
standard library and of other packages count for the caller in one of the libraries of `OWNERS`, and
so do the constructors of Qt, which Python does not report as calls. What Qt does of its own accord,
such as layout, style and painting, counts for Qt alone; what it does when it is called counts for
Qt, with the name of the caller. The profile itself makes functions of many short calls look slower.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

OWNERS = ("napari_agglo", "napari", "vispy", "Qt")
_QT = ("PyQt", "PySide", "qtpy", "superqt")

Times = dict[tuple[str, str], float]  # of each owner and function


@cache
def owner_of(path: str) -> str:
    """Return the library of a source file, or "" for one that counts for its caller.

    Examples
    --------
    >>> owner_of("lib/napari/layers/labels/labels.py"), owner_of("lib/numpy/ma/core.py")
    ('napari', '')
    """
    parts = path.replace("\\", "/").split("/")
    for part in reversed(parts[:-1]):
        if part in OWNERS:
            return part
        if part.startswith(_QT):
            return "Qt"
    return ""


def is_qt(function: Any) -> bool:
    """Return whether a built-in function is a method of a class of Qt."""
    owner = getattr(function, "__self__", None)
    kinds = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
    name = getattr(function, "__name__", "")
    return any(name in vars(kind) and kind.__module__.startswith(_QT) for kind in kinds)


def shares(times: Times) -> dict[str, float]:
    """Return the seconds of each owner, the most first."""
    out: dict[str, float] = {}
    for (owner, _), seconds in times.items():
        out[owner] = out.get(owner, 0.0) + seconds
    return dict(sorted(out.items(), key=lambda item: -item[1]))


class TurnProfile:
    """Profile of this thread, cut into turns of its event loop.

    Parameters
    ----------
    apart : dict of code objects
        Names of parts that count as one, by the code of the function that they begin with, for
        instance the drawing of a frame.
    clock : callable
        CPU seconds of this thread.
    """

    def __init__(
        self, apart: dict[Any, str] | None = None, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._apart = apart or {}
        self._clock = clock
        self._times: Times = {}
        self._stack: list[tuple[str, str]] = [("Qt", "event loop")]
        self._last = clock()

    def start(self) -> None:
        """Begin to profile."""
        self._last = self._clock()
        sys.setprofile(self._event)

    def stop(self) -> None:
        """End the profile."""
        sys.setprofile(None)

    def cut(self) -> Times:
        """Return the times since the last call, and begin again from zero."""
        self._charge()
        times, self._times = self._times, {}
        return times

    def _charge(self) -> None:
        now = self._clock()
        key = self._stack[-1]
        self._times[key] = self._times.get(key, 0.0) + now - self._last
        self._last = self._clock()

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        self._charge()
        if event == "call":
            self._stack.append(self._entered(frame))
        elif event == "c_call":
            self._stack.append(self._called(argument))
        elif len(self._stack) > 1:  # a return; those of calls before the start are not known
            self._stack.pop()

    def _entered(self, frame: FrameType) -> tuple[str, str]:
        above = self._stack[-1]
        code = frame.f_code
        if above[0] in self._apart.values():
            return above
        if code in self._apart:
            return self._apart[code], ""
        owner = owner_of(code.co_filename)
        if not owner:
            return above
        module = frame.f_globals.get("__name__", "?")
        return owner, f"{module}.{code.co_qualname}"

    def _called(self, function: Any) -> tuple[str, str]:
        owner, name = self._stack[-1]
        if owner.startswith("Qt") or owner in self._apart.values() or not is_qt(function):
            return owner, name
        return f"Qt, called by {owner}", f"{function.__name__} in {name}"
