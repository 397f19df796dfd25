"""The one place that knows how kernels are compiled.

Kernels release the GIL and are cached on disk, so that a second process loads them in
milliseconds. None uses ``parallel=True``: napari's own colouring does, and two such kernels at
once abort the process under numba's ``workqueue`` layer.
"""

from __future__ import annotations

from collections.abc import Callable
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
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Compile a helper of kernels; it becomes part of its callers and is cached with them."""
    return cast(F, numba.njit(nogil=True, forceinline=True)(function))
