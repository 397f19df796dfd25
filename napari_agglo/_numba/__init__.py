"""Decorators that compile kernels: `kernel`, `inlined` and `subroutine`.

Kernels release the GIL and are cached on disk, so that a second process loads them in
milliseconds. None uses ``parallel=True``: napari's own colouring does, and two such kernels at
once abort the process under numba's ``workqueue`` layer.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from napari_agglo._numba.compiler import HelperCompiler, KernelCompiler, load_alone
from napari_agglo.errors import DataWarning

F = TypeVar("F", bound=Callable[..., Any])
# Kernels allocate nothing, so that numba need not count references (`_nrt`); they divide by zero as
# numpy does; and wrappers that only Python or C would call are not compiled. That saves a third of
# the compile time.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "_nrt": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelCompiler,
}
_HELPER: dict[str, Any] = {
    **_OPTIONS,
    "no_cpython_wrapper": True,
    "pipeline_class": HelperCompiler,
}
NOT_KEPT = (
    "Compiled kernels cannot be kept, so every start compiles them again: no cache folder is "
    "writable. Set NUMBA_CACHE_DIR to a folder that is."
)
# Matches imports at the top of a file only: kernels use no imports inside functions.
_IMPORT = re.compile(rb"^from (napari_agglo[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def kernel(function: F) -> F:
    """Compile `function` on first call, without the GIL, cached on disk where that is possible.

    Numba refuses ``cache=True`` at *import* when neither the package's folder nor the user's cache
    folder can be written (a shared installation, a container without a home). The kernel is then
    compiled in each process, which a warning says once, and cached in a temporary folder that is
    removed at the end of the process: a second process can compile for the first one.
    """
    try:
        compiled = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError as error:
        if "cache" not in str(error):
            raise
        _warn_not_kept()
        compiled = _cached_for_now(function)
        if compiled is None:
            return cast(F, numba.njit(**_OPTIONS)(function))
    _stamp_with_sources(compiled)
    cache: Any = getattr(compiled, "_cache", None)  # None where nothing is compiled
    if cache is not None:
        cache.save_overload = _unless_full(cache.save_overload)
        cache.load_overload = load_alone(cache)
    return cast(F, compiled)


_temporary: list[Path] = []  # the folder, once it is needed
_one_at_a_time = threading.Lock()


def temporary_cache() -> Path | None:
    """Return the folder that caches kernels for this process alone; None if there is none."""
    return _temporary[0] if _temporary else None


def _cached_for_now(function: Any) -> Any:
    """Return a kernel with a cache in the temporary folder; None if none can be made."""
    with _one_at_a_time, suppress(OSError, RuntimeError):
        if not _temporary:
            _temporary.append(Path(tempfile.mkdtemp(prefix="napari-agglo-kernels-")))
            atexit.register(shutil.rmtree, _temporary[0], ignore_errors=True)
        # Numba reads the folder while it decorates the function. It has the usual one afterwards,
        # as other packages use it too.
        usual = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(_temporary[0])
        try:
            return numba.njit(cache=True, **_OPTIONS)(function)
        finally:
            numba.config.CACHE_DIR = usual
    return None


@cache  # one warning in a process
def _warn_not_kept() -> None:
    warnings.warn(DataWarning(NOT_KEPT), stacklevel=2)


def inlined(function: F) -> F:
    """Compile a helper of kernels that LLVM inlines into its callers; it is cached with them.

    Python must not call it: it has no wrapper for Python, and the process would crash.
    """
    return cast(F, numba.njit(**_HELPER, forceinline=True)(function))


def subroutine(function: F) -> F:
    """Compile a large helper of kernels that they call; each kernel has one copy of it.

    As with `inlined`, Python must not call it.
    """
    return cast(F, numba.njit(**_HELPER)(function))


def _unless_full(save: Callable[..., None]) -> Callable[..., None]:
    """Return `save` without its errors: a kernel that a full disk cannot take is compiled again."""

    def try_to_save(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    return try_to_save


def is_cached(compiled: Any) -> bool:
    """Return whether the disk cache has code of a kernel that matches the present sources."""
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    return file is not None and bool(file._load_index())


def _stamp_with_sources(compiled: Any) -> None:
    """Make a cached kernel valid for the present sources of the kernel and of its helpers only.

    Numba checks only the file of the kernel. Most of its code is in helpers of other files, which
    are compiled into it: after an update it would silently run the old helpers.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None:
        source = Path(compiled.py_func.__code__.co_filename)
        file._source_stamp = (file._source_stamp, _stamp(source))


@cache
def _stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, modification time and size of every source that a file's kernels depend on."""
    states = ((source, source.stat()) for source in sorted(kernel_sources(path)))
    return tuple((source.name, state.st_mtime_ns, state.st_size) for source, state in states)


def kernel_sources(path: Path, root: Path = Path(__file__).parents[1]) -> set[Path]:
    """Return the files from which kernels in `path` take helpers, records and constants.

    Parameters
    ----------
    path : Path
        A file with kernels.
    root : Path
        The folder of the package.
    """
    sources: set[Path] = set()
    waiting = [path]
    while waiting:
        source = waiting.pop()
        if source in sources:
            continue
        sources.add(source)
        for name, module in _imports(source).items():
            home = _home(name, module, root)
            if b"napari_agglo._numba" in _text(home) or home.parent.name == "_numba":
                waiting.append(home)
            elif name.isupper() or b"NamedTuple" in _text(home):
                sources.add(home)  # constants and the fields of records are compiled in
    return sources


def _home(name: str, module: str, root: Path) -> Path:
    """Return the file that defines a name; follow packages that re-export it."""
    folder = root.joinpath(*module.split(".")[1:])
    for file in (folder / f"{name}.py", folder.with_suffix(".py"), folder / "__init__.py"):
        if file.is_file():
            break
    exported = _imports(file).get(name)
    return file if exported is None else _home(name, exported, root)


@cache
def _imports(path: Path) -> dict[str, str]:
    """Return the names that a file imports from this package, each with its module."""
    return {
        name.split()[0]: module.decode()
        for module, names in _IMPORT.findall(_text(path))
        for name in re.sub(rb"#.*|[()]", b"", names).decode().split(",")
        if name.strip()
    }


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()
