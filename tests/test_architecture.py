"""The stream of imports, and rules for modules, names and docstrings. Sources are parsed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from scripts import import_graph

PACKAGE = Path(__file__).parents[1] / "napari_agglo"
MODULES = import_graph.read_modules()
STREAM = {  # a stage imports only from those with a smaller number, and from itself
    "samples": 0,
    "volumes": 0,
    "superpixels": 1,
    "graph": 2,
    "features": 3,
    "policy": 4,
    "agglomeration": 5,
    "learning": 6,
    "partition": 7,
    "pixels": 7,
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


def faults(source: str, module: str) -> list[str]:
    """Return what is wrong with a module, named like ``napari_agglo.graph._build_graph``."""
    own = module.split(".")[1]
    found = []
    for name in sorted(import_graph.imported_names(source, module.split(".")[:-1])):
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
    if not any(name in source for name in forbidden):  # parsing all sources takes seconds
        return []
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


# Rules of the layout. Folders and files named in NOT_YET do not keep them yet; the lists shrink.

FIRST_WORDS = ("What", "Which", "Where", "How", "Who", "Whose", "Whom")
REASON = re.compile(r"\bown file\b")  # "In its own file because ..."
NOT_YET = {
    "first words": set(),
    "single importer": set(),
    "repeated names": set(),
}


def of_stage(rule: str) -> list[import_graph.Module]:
    """Return the modules that a rule is checked for."""
    exempt = NOT_YET[rule]
    return [m for m in MODULES.values() if not {m.stage, m.path.stem} & exempt]


def bad_first_words(text: str) -> list[str]:
    """Return the docstrings of a source that begin with a question word."""
    if not any(word in text for word in FIRST_WORDS):
        return []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(n) for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]
    return [
        doc.splitlines()[0] for doc in docstrings if doc and re.match(r"\w*", doc)[0] in FIRST_WORDS
    ]


def has_reason(text: str) -> bool:
    """Return whether a module is a kernel, or says why it is a file (docstring, first comment)."""
    if "from napari_agglo._numba import" in text:
        return True
    head = ast.get_docstring(ast.parse(text)) or ""
    head += next((line for line in text.splitlines() if line.startswith("#")), "")
    return bool(REASON.search(" ".join(head.split())))


def test_no_module_is_longer_than_600_lines():
    assert {m.name: m.lines for m in MODULES.values() if m.lines > 600} == {}


def test_a_file_name_occurs_once():
    assert set(import_graph.repeated_names(MODULES)) <= NOT_YET["repeated names"]


def test_no_docstring_begins_with_a_question_word():
    assert {m.name: bad for m in of_stage("first words") if (bad := bad_first_words(m.text))} == {}
    assert bad_first_words('def f():\n    """What it is."""') == ["What it is."], "test invalid"


def test_a_module_with_one_importer_in_its_folder_has_a_reason():
    singles = import_graph.single_importers(MODULES)
    checked = [m for m in of_stage("single importer") if m.name in singles]
    assert [m.name for m in checked if not has_reason(m.text)] == []
    assert has_reason('"""Do x. In its own file because of y."""'), "test invalid"
    assert not has_reason('"""Do x."""'), "test invalid"


def test_the_page_on_the_architecture_is_up_to_date(capsys):
    assert import_graph.main(["--check"]) == 0, capsys.readouterr().out


def test_the_files_that_the_page_names_exist():
    page = import_graph.PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page)
    assert len(named) > 40, "test invalid"
    missing = [p for p in named if not any((d / p).exists() for d in (PACKAGE, PACKAGE.parent))]
    assert missing == []
