"""Calls from kernels to other kernels by address: one compiled copy for all callers.

Numba compiles a copy of each helper into each kernel that calls it. A large helper is better a
kernel of its own, with a disk cache of its own, whose address its callers find in one of their
arrays: an address is of one process, and must not be compiled into code that is kept on disk.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core import config, types
from numba.core.errors import TypingError
from numba.extending import intrinsic


def kernel_address(compiled: Any, *arguments: Any) -> int:
    """Return the address of a kernel for arguments of these types; compile or load it if need be.

    The address is valid as long as the process lives.
    """
    if config.DISABLE_JIT:
        return 0
    signature = tuple(numba.typeof(argument) for argument in arguments)
    compiled.compile(signature)
    result = compiled.overloads[signature]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


if config.DISABLE_JIT:

    def call_kernel(function: Any, address: int, arguments: tuple[Any, ...]) -> None:
        """Call the function."""
        function(*arguments)

else:

    @intrinsic
    def call_kernel(typing_context: Any, function: Any, address: Any, arguments: Any) -> Any:
        """Call a kernel, which returns nothing, at its address for arguments of these types."""
        # Invariant: the code at the address is for exactly these types, which only Python can see
        # to. What is tested here is that there is such code. Without any, no address is known yet:
        # a loop that will not make the call, since its policy reads no features, is compiled first.
        if not function.dispatcher.overloads:
            function.dispatcher.compile(tuple(arguments.types))
        if tuple(arguments.types) not in function.dispatcher.overloads:
            raise TypingError(f"{function.dispatcher.__name__} has no code for {arguments}")

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(types.none, arguments.types)
            code = builder.inttoptr(values[1], kind.as_pointer())
            unpacked = [builder.extract_value(values[2], k) for k in range(len(arguments))]
            convention.call_function(builder, code, types.none, arguments.types, unpacked)
            return context.get_dummy_value()

        return types.void(function, types.int64, arguments), generate
