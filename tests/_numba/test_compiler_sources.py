"""A cached kernel is valid for the sources that are compiled into it, and for no others."""

from __future__ import annotations

import ast
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import numba
import pytest

import napari_agglo
from napari_agglo._numba import kernel_sources
from napari_agglo.session import _warm_up

ROOT = Path(napari_agglo.__file__).parent


@pytest.fixture
def package(tmp_path):
    """Write a package in which a kernel takes names from other files in every way."""
    files = {
        "_numba/__init__.py": "",
        "_numba/heaps.py": "from napari_agglo._numba import inlined\n",
        "errors.py": "X = 1\n",
        "graph/__init__.py": "from napari_agglo.graph._rows import (\n    add_rows,  # as it is\n"
        "    Rows,\n)\nfrom napari_agglo.graph._sizes import ROOM\n",
        "graph/_rows.py": "from napari_agglo._numba import inlined\n"
        "from napari_agglo._numba.heaps import heap_push as push\n",
        "graph/_sizes.py": "from napari_agglo.errors import InvalidInput\nROOM = 8\n",
        "graph/_door.py": "from napari_agglo.graph._rows import add_rows\ndef build(): ...\n",
        "other.py": "from napari_agglo._numba import kernel\n",
        "loop.py": "from napari_agglo._numba import kernel\n"
        "from napari_agglo.errors import InvalidInput\n"
        "from napari_agglo.graph import ROOM, add_rows\nfrom napari_agglo.graph import _door\n"
        "if TYPE_CHECKING:\n    from napari_agglo.other import something\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_sources_are_followed_through_packages(package):
    found = kernel_sources(package / "loop.py", package)
    assert {str(path.relative_to(package)) for path in found} == {
        "loop.py", "_numba/__init__.py", "_numba/heaps.py", "graph/_rows.py", "graph/_sizes.py",
    }  # fmt: skip
    assert kernel_sources(package / "other.py", package) == {
        package / "other.py", package / "_numba/__init__.py"
    }  # fmt: skip


@pytest.mark.compiled
def test_all_that_is_compiled_into_a_kernel_is_among_its_sources():
    """Compare with the functions and constants that the bytecode of each kernel names."""
    kernels = []
    for module in pkgutil.walk_packages([str(ROOT)], "napari_agglo."):
        path = ROOT.joinpath(*module.name.split(".")[1:]).with_suffix(".py")
        if path.is_file() and "widgets" not in path.parts and b"._numba" in path.read_bytes():
            values = vars(import_module(module.name)).values()
            kernels += [v for v in values if isinstance(v, numba.core.dispatcher.Dispatcher)]
    assert len(kernels) > 50
    for kernel in kernels:
        sources = kernel_sources(Path(kernel.py_func.__code__.co_filename))
        # `_warm_up` imports the kernels of all stages; its own does nothing.
        few = len(sources) <= 35 or kernel.py_func is _warm_up._nothing.py_func
        assert few, "a change of most of the package compiles it again"
        waiting, known = [kernel.py_func], set()
        while waiting:
            function = waiting.pop()
            assert Path(function.__code__.co_filename) in sources
            for name in function.__code__.co_names:
                helper = getattr(function.__globals__.get(name), "py_func", None)
                if helper is not None and helper not in known:
                    known.add(helper)
                    waiting.append(helper)


def _uses(tree, kinds):
    """Return the names of `kinds` that are used outside of kernels and helpers."""
    used = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        decorators = getattr(node, "decorator_list", [])
        if not any(isinstance(one, ast.Name) and one.id in KINDS for one in decorators):
            waiting += ast.iter_child_nodes(node)
    return used & kinds


KINDS = ("kernel", "inlined", "subroutine")
DECORATED = re.compile(r"^@(inlined|subroutine)$", re.MULTILINE)


@pytest.mark.compiled
def test_python_calls_no_helper():
    """There is no code for that: it would crash."""
    texts = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    # to parse all sources would take seconds; a helper is imported by its name, without an alias
    trees = {path: ast.parse(text) for path, text in texts.items() if DECORATED.search(text)}
    defined = {}
    for path, tree in trees.items():
        for node in tree.body:
            for decorator in getattr(node, "decorator_list", []):
                if isinstance(decorator, ast.Name) and decorator.id in KINDS[1:]:
                    defined.setdefault(node.name, set()).add(path)
    assert len(defined) > 30, "test invalid: the helpers were not found"
    for path, text in texts.items():
        if not set(re.findall(r"\w+", text)) & defined.keys():
            continue
        tree = trees.get(path) or ast.parse(text)
        imported = {
            name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        own = {name for name, paths in defined.items() if path in paths or name in imported}
        assert not _uses(tree, own), path
