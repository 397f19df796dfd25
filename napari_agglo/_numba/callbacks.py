"""Calls from kernels back into Python functions: slow, but the functions need not be compiled.

A kernel has the address of a Python function, an integer, and calls it with one argument; the
function reads its input from a buffer that the kernel has filled, and writes its result to another.
Kernels cannot propagate an exception, so the first one is kept until `raise_error` raises it in
Python; until then no function is called.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

from numba.core import config, types
from numba.extending import intrinsic

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_int64)
_pending = threading.local()  # a kernel calls back on its own thread


def callback_address(function: Callable[[int], None], owner: Any) -> int:
    """Return the address of a function for kernels, valid as long as the array `owner` lives.

    `function` must not refer to `owner`, or neither would ever be freed.
    """

    def call(n: int) -> None:
        if getattr(_pending, "error", None) is None:
            try:
                function(n)
            except BaseException as error:  # ctypes would print it and continue
                _pending.error = error

    entry = _SIGNATURE(call)
    # the finalizer does nothing but keep `entry` alive as long as `owner`
    weakref.finalize(owner, id, entry).atexit = False
    address = ctypes.cast(entry, ctypes.c_void_p).value
    assert address is not None
    return address


def raise_error() -> None:
    """Raise the first exception of the functions that kernels have called since the last time."""
    error = getattr(_pending, "error", None)
    _pending.error = None
    if error is not None:
        raise error


if config.DISABLE_JIT:

    def call_python(address: int, n: int) -> None:
        """Call the function at `address`."""
        _SIGNATURE(int(address))(int(n))

else:

    @intrinsic
    def call_python(typing_context: Any, address: Any, n: Any) -> Any:
        """Call the function at `address`, which takes the GIL while it runs."""
        from llvmlite import ir

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            function = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
            builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [arguments[1]])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate
