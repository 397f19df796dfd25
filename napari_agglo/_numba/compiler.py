"""Compilers of kernels and of their helpers: numba's, without work that kernels do not need.

Numba compiles a helper as if it were called from Python: it optimises its code and makes machine
code of it, and the kernel that calls it does both again with a copy. Here a helper is only
translated to LLVM; the kernel is optimised as a whole, once. Numba also looks for the signatures of
its own functions again and again; here they are remembered. Together, this saves about half of the
time, and the code of the kernels is the same.
"""

# In its own file, as the only one that uses numba's internals.

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import BuiltinFunctionType
from typing import Any, ClassVar
from unittest.mock import patch

from numba.core import base, errors
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.cpu import CPUContext
from numba.core.errors import NumbaError
from numba.core.ir import Inst, Loc, Var
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.runtime import rtsys
from numba.core.transforms import canonicalize_cfg
from numba.core.types import Array, Dispatcher, Function, unliteral  # type: ignore[attr-defined]
from numba.core.typing.context import BaseContext, Context

# Kernels have no closures, context managers, literal unrolling, array expressions or functions that
# numba inlines before typing, for which these passes search; and nobody reads the listing of types.
_SKIPPED = {
    "AnnotateTypes",
    "FindLiterallyCalls",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NopythonRewrites",
    "RewriteDynamicRaises",
    "WithLifting",
}


class KernelTypes(Context):
    """Typing context that remembers the signatures of numba's own functions and operators.

    Numba tries the operators of strings, lists, sets and arrays before those of numbers, at each
    ``+`` of each kernel. All else is the context of the process, whose attributes are shared.
    """

    _signatures: ClassVar[dict[tuple[Any, ...], Any]] = {}

    def __init__(self, context: Context) -> None:
        self.__dict__ = context.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call; helpers are not compiled for each constant anew."""
        if isinstance(func, Dispatcher):
            args = tuple(unliteral(arg) for arg in args)
        if kws or not (isinstance(func, Function) or getattr(func, "__module__", 0) == "_operator"):
            return super().resolve_function_type(func, args, kws)
        key = (func, *args)
        if key not in self._signatures:
            self._signatures[key] = super().resolve_function_type(func, args, kws)
        return self._signatures[key]


_get_call_type = Function.get_call_type
_resolve_value_type = BaseContext.resolve_value_type


def _remembered_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call as `Function.get_call_type`, from memory if it is known.

    A failure is remembered too. Numba asks for each index and each operator of a kernel while
    it writes LLVM code, though it has found the signature before.
    """
    if kws:
        return _get_call_type(function, context, args, kws)
    known = function.__dict__.setdefault("_agglo_signatures", {})
    if args not in known:
        try:
            signature = _get_call_type(function, context, args, kws)
            known[args] = signature, function.get_impl_key(signature)
        except NumbaError as error:
            known[args] = error.with_traceback(None), None
    signature, implementation = known[args]
    if implementation is None:
        raise signature
    function._impl_keys[signature.args] = implementation
    return signature


_get_function = CPUContext.get_function
_has_loc = cache(base._has_loc)
_post_process = PostProcessor.run
_list_variables = Inst._rec_list_vars


def _implementation(context: Any, function: Any, signature: Any, _firstcall: bool = True) -> Any:
    """Return the implementation of a function for a signature as `CPUContext.get_function`.

    Numba asks at each use of an array whether its type wraps another array. The answer is no for
    plain ones, after a search of all registries.
    """
    if function == "__array__" and isinstance(signature.args[0], Array):
        raise NotImplementedError
    return _get_function(context, function, signature, _firstcall)


def _process(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Prepare the code of a function for the next pass as `PostProcessor.run`.

    Numba lists the live variables of each block after each pass. Only generators read that list.
    """
    function = processor.func_ir
    if function.is_generator:
        _post_process(processor, emit_dels, extend_lifetimes)
        return
    function.blocks = canonicalize_cfg(function.blocks)
    function.variable_lifetime = VariableLifetime(function.blocks)  # computed when it is read
    function.generator_info = None
    if emit_dels:
        processor._insert_var_dels(extend_lifetimes=extend_lifetimes)


def _variables(instruction: Any, value: Any) -> list[Var]:
    """Return the variables in an operand or a collection as `Inst._rec_list_vars`, in less time."""
    variables: list[Var] = []
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        variables += _list_variables(instruction, value)
        return variables
    for each in value:
        kind = type(each)
        if kind is Var:
            variables.append(each)
        elif kind is not Loc and kind is not str:
            variables += _variables(instruction, each)
    return variables


class _Plain:
    """Colours of messages: none. Numba makes and drops thousands of messages for each kernel."""

    def code(self, text: str) -> str:
        """Return a text as it is."""
        return text

    errmsg = filename = indicate = highlight = reset = code


_PLAIN = _Plain()


@contextmanager
def _shortcuts() -> Iterator[None]:
    """Let numba remember the types of its functions, and leave out what no kernel needs.

    Numba locks the compiler meanwhile, and results are the same for all kernels of the process.
    """
    functions: dict[Any, Any] = {}

    def value_type(context: Any, value: Any) -> Any:
        if not isinstance(value, BuiltinFunctionType):
            return _resolve_value_type(context, value)
        if value not in functions:
            functions[value] = _resolve_value_type(context, value)
        return functions[value]

    with (
        patch.object(Function, "get_call_type", _remembered_call_type),
        patch.object(BaseContext, "resolve_value_type", value_type),
        patch.object(CPUContext, "get_function", _implementation),
        patch.object(base, "_has_loc", _has_loc),
        patch.object(PostProcessor, "run", _process),
        patch.object(Inst, "_rec_list_vars", _variables),
        patch.object(errors, "_termcolor_inst", _PLAIN),
    ):
        yield


class _NoEnvironment:
    """Code generator that keeps no pointer to the Python objects of a function: helpers have none.

    Numba writes the pointer into the machine code, which a helper does not have.
    """

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: object) -> None:
        """Leave the pointer unset."""


class HelperLibrary(JITCodeLibrary):
    """LLVM code of one helper with the helpers that it calls, to be linked into kernels."""

    @property
    def codegen(self) -> Any:
        """The code generator of the process."""
        return _NoEnvironment(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, as numba does where there is no machine code for Python to call."""
        self._ensure_finalized()
        return 0

    def _optimize_functions(self, module: Any) -> None:
        """Leave the optimisation to the kernel."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Leave the optimisation to the kernel."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalized = True


class KernelLibrary(JITCodeLibrary):
    """LLVM code of a kernel with all its helpers, which is optimised once.

    Numba does so twice, so that counts of references meet in one function; kernels have none.
    """

    def _optimize_functions(self, module: Any) -> None:
        """Leave the optimisation to that of the whole."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Run the passes of numba's second turn."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@cache
def _types(context: Context) -> KernelTypes:
    return KernelTypes(context)


def _pipelines(state: Any) -> list[PassManager]:
    """Return the one pipeline of kernels: numba's, without the passes that they do not need."""
    state.typingctx = _types(state.typingctx)
    numbas = DefaultPassBuilder.define_nopython_pipeline(state)
    pipeline = PassManager("kernel")
    pipeline.passes.extend(each for each in numbas.passes if each[0].__name__ not in _SKIPPED)
    pipeline.finalize()
    return [pipeline]


class KernelCompiler(CompilerBase):
    """Compiler of kernels."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the pipeline of kernels."""
        name = self.state.func_id.func_qualname
        self.state.library = KernelLibrary(self.state.targetctx.codegen(), name)
        self.state.library.enable_object_caching()
        return _pipelines(self.state)

    def _compile_core(self) -> Any:
        """Compile the kernel and its helpers."""
        with _shortcuts():
            return super()._compile_core()


class HelperCompiler(CompilerBase):
    """Compiler of helpers, whose code only kernels use."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the pipeline of kernels, which writes into a library without machine code."""
        name = self.state.func_id.func_qualname
        self.state.library = HelperLibrary(self.state.targetctx.codegen(), name)
        return _pipelines(self.state)


def load_alone(cache: Any) -> Callable[[Any, Any], Any]:
    """Return the function by which a cache loads a kernel from the disk, and nothing else.

    Numba first imports its implementations of all functions and operators, and `scipy.linalg`: half
    a second. Only compiling needs these; the code on disk needs the addresses of C functions.
    """

    def load(signature: Any, context: Any) -> Any:
        rtsys.initialize(context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    return load
