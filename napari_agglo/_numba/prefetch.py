"""Prefetches: a kernel asks for memory that it will read a little later, and goes on meanwhile."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

if config.DISABLE_JIT:

    def prefetch(array: Any, index: Any) -> None:
        """Do nothing."""

else:

    @intrinsic
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line where ``array[index]`` begins; any index is safe."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, values[0])
            step = cgutils.unpack_tuple(builder, view.strides)[0]
            pointer = ir.IntType(8).as_pointer()
            at = builder.gep(builder.bitcast(view.data, pointer), [builder.mul(values[1], step)])
            flag = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
            ask = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
            builder.call(ask, [at, flag(0), flag(3), flag(1)])  # to read, for all caches, data
            return context.get_dummy_value()

        return types.void(array, types.int64), generate
