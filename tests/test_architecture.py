"""The stream of imports, and what no module may do. Sources are parsed, not imported."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "napari_agglo"
STREAM = {  # a stage imports only from those with a smaller number, and from itself
    "samples": 0,
    "volumes": 0,
    "superpixels": 1,
    "graph": 2,
    "features": 3,
    "policy": 4,
    "agglomeration": 5,
    "learning": 6,
    "evaluate": 8,
    "compare": 9,
    "plots": 9,
    "movie": 10,
    "report": 10,
    "session": 11,
}
DRIVERS = {"widgets", "cli"}
COMMON = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"} | {"_numba"}
GUI = {"napari", "qtpy", "magicgui", "superqt", "pyqtgraph", "PyQt5", "PyQt6", "PySide2", "PySide6"}
RUNS_CODE = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}


def imported(source: str, module: str) -> set[str]:
    """Return the full names that `module` imports, anywhere in it; relative ones are resolved."""
    names: set[str] = set()
    parents = module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names.update(f"{stem}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            names.update(a.value for a in node.args if isinstance(a, ast.Constant))
    return names


def faults(source: str, module: str) -> list[str]:
    """Return what is wrong with a module, named like ``napari_agglo.graph._build_graph``."""
    own = module.split(".")[1]
    found = []
    for name in sorted(imported(source, module)):
        top, _, rest = name.partition(".")
        stage = rest.partition(".")[0]
        if top in GUI and own != "widgets":
            found.append(f"{module} imports {name}: only widgets may")
        if top in RUNS_CODE:
            found.append(f"{module} imports {name}: no file that we open may run code")
        if top != "napari_agglo":
            continue
        if own in STREAM or own in COMMON:
            if stage in DRIVERS:
                found.append(f"{module} imports {name}: no stage imports a driver")
            if stage in STREAM and not (
                own == stage or (own in STREAM and STREAM[stage] < STREAM[own])
            ):
                found.append(f"{module} imports {name}: against the stream")
            if stage not in STREAM.keys() | DRIVERS | COMMON:
                found.append(f"{module} imports {name}: through the front door, not from a stage")
        elif own in DRIVERS and stage in DRIVERS and stage != own:
            found.append(f"{module} imports {name}: drivers do not know each other")
    return found + _forbidden_keywords(source, module)


def _forbidden_keywords(source: str, module: str) -> list[str]:
    forbidden = {"allow_pickle": "runs code", "parallel": "aborts the process beside napari's own"}
    return [
        f"{module}: {keyword.arg}=... {forbidden[keyword.arg]}"
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg in forbidden
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    ]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_every_module_keeps_to_the_stream(path):
    assert faults(path.read_text(encoding="utf-8"), module_name(path)) == []


def test_every_folder_has_its_place():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= STREAM.keys() | DRIVERS | COMMON
    assert "graph" in folders, "test invalid: nothing was found"


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("graph._build", "from napari_agglo.agglomeration import MergeTree", "against the stream"),
        ("graph._build", "from ..agglomeration import MergeTree", "against the stream"),
        ("graph._build", "from .. import agglomeration", "against the stream"),
        ("graph.__init__", "from ..agglomeration import MergeTree", "against the stream"),
        (
            "graph._build",
            "def f():\n    import napari_agglo.agglomeration._mean",
            "against the stream",
        ),
        (
            "graph._build",
            "import importlib\nimportlib.import_module('napari_agglo.agglomeration')",
            "stream",
        ),
        ("samples._a", "from napari_agglo.volumes import Volume", "against the stream"),
        ("errors", "from napari_agglo.volumes import Volume", "against the stream"),
        (
            "agglomeration._merge_tree",
            "from napari_agglo.cli import main",
            "no stage imports a driver",
        ),
        ("agglomeration._merge_tree", "import napari_agglo as agglo", "through the front door"),
        (
            "agglomeration._merge_tree",
            "from napari_agglo import region_graph",
            "through the front door",
        ),
        ("cli._main", "from napari_agglo.widgets import dock", "drivers do not know"),
        ("cli._main", "def f():\n    import napari", "only widgets may"),
        ("graph._build", "from qtpy.QtCore import QObject", "only widgets may"),
        ("graph._build", "import pickle", "run code"),
        ("policy._file", "from joblib import load", "run code"),
        ("policy._file", "np.load(f, allow_pickle=True)", "allow_pickle"),
        ("policy._file", "np.load(f, allow_pickle=flag)", "allow_pickle"),
        ("graph._build", "@njit(cache=True, parallel=True)\ndef f(): ...", "parallel"),
    ],
)
def test_it_can_fail(module, source, complaint):
    found = faults(source, f"napari_agglo.{module}")
    assert any(complaint in fault for fault in found), found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("evaluate._curve", "from napari_agglo.agglomeration import MergeTree"),
        ("evaluate._curve", "from ._vi import split_vi"),
        ("graph._build", "from napari_agglo.errors import InvalidInput"),
        ("widgets._dock", "import napari"),
        ("cli._demo", "from napari_agglo.evaluate import vi_curve"),
        ("policy._file", "np.load(f, allow_pickle=False)"),
    ],
)
def test_it_can_pass(module, source):
    assert faults(source, f"napari_agglo.{module}") == []
