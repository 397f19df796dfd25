"""The one place that knows how kernels are compiled.

Kernels release the GIL and are cached on disk, so that a second process loads them in
milliseconds. None uses ``parallel=True``: napari's own colouring does, and two such kernels at
once abort the process under numba's ``workqueue`` layer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on first call, without the GIL, cached on disk where that is possible.

    Numba refuses ``cache=True`` at *import* when neither the package's folder nor the user's cache
    folder can be written (a shared installation, a container without a home). Compiling anew in
    each process is slow, but it works, so that is the fallback.
    """
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError as error:
        if "cache" not in str(error):
            raise
        compiled = numba.njit(nogil=True)(function)
    _stamp_with_package(compiled)
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Compile a helper of kernels; it becomes part of its callers and is cached with them."""
    return cast(F, numba.njit(nogil=True, forceinline=True)(function))


def _stamp_with_package(compiled: Any) -> None:
    """Make a cached kernel valid for just these sources of all kernels and their helpers.

    Numba looks at the file of the kernel alone. Most of what a kernel does stands in helpers of
    other files, which are compiled into it: after an update it would silently run the old ones.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None:
        file._source_stamp = (file._source_stamp, _package_stamp())


@cache
def _package_stamp() -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of every source file that kernels or their helpers may stand in."""
    root = Path(__file__).parents[1]
    return tuple(
        (str(path.relative_to(root)), path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(root.rglob("*.py"))
        if b"napari_agglo._numba" in path.read_bytes()
    )
