"""Every parameter and every result of what users call has a section in its docstring.

These are the names of the front door, of the folders in `FOLDERS`, and all that docs/reference.md
lists. The other folders also have names that stages use among themselves, which are documented in
free form.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString

from napari_agglo import Session

FOLDERS = (
    "", "learning", "pixels", "shapes", "partition", "evaluate", "compare", "plots", "movie",
    "report", "samples", "session", "errors", "blocks", "superpixels",
)  # fmt: skip
PARTS = [  # a session makes them: nobody calls these classes
    inspect.signature(getattr(Session, name).fget, eval_str=True).return_annotation
    for name in ("segments", "history", "marks", "queue", "errors", "sources")
]


ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference.md"


def listed_names() -> list[str]:
    """Return the names of the page, each with its folder."""
    names, folder = [], ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            folder = match[1]
        elif match := re.fullmatch(r"   (\w+)", line):
            names.append(f"{folder}.{match[1]}")
    return names


def listed_values() -> list[str]:
    """Return the names on the page that are no functions or classes, such as registries."""
    text = REFERENCE.read_text(encoding="utf-8")
    return re.findall(r"^\.\. py:data:: (\S+)$", text, re.MULTILINE)


def named(name: str) -> object:
    folder, _, last = name.rpartition(".")
    return getattr(import_module(folder), last)


def is_ours(value: object) -> bool:
    return (getattr(value, "__module__", None) or "").startswith("napari_agglo")


def public_names() -> dict[str, object]:
    """Return the classes and functions that the folders list, by name."""
    names: dict[str, object] = {}
    for folder in FOLDERS:
        module = import_module(".".join(filter(None, ["napari_agglo", folder])))
        listed = getattr(module, "__all__", None) or [
            name for name, value in vars(module).items() if not name.startswith("_")
        ]
        for name in listed:
            value = getattr(module, name)
            if is_ours(value) and callable(value) and value not in names.values():
                names[f"{module.__name__}.{name}"] = value
    for name in listed_names():
        if callable(value := named(name)) and value not in names.values():
            names[name] = value
    return names


def members(kind: type) -> dict[str, object]:
    """Return the methods and properties that a class defines, also the class methods."""
    kinds = (property, classmethod, staticmethod)
    found = {}
    for name, value in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, kinds)):
            found[name] = getattr(value, "__func__", value)
    return found


def parameters(value: object) -> list[str]:
    """Return the parameters that a docstring must have."""
    if inspect.isclass(value) and "__init__" not in vars(value) and issubclass(value, Exception):
        return []  # those of the base class
    if inspect.isclass(value) and getattr(value, "_is_protocol", False):
        return []
    try:
        names = inspect.signature(value).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a compiled function, an alias of types
        return []
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def has_result(value: object) -> bool:
    """Return whether a function returns something."""
    if inspect.isclass(value) or isinstance(value, property):
        return False
    try:
        result = inspect.signature(value).return_annotation  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return result not in (None, "None", "NoReturn", inspect.Signature.empty)


def missing(value: object) -> list[str]:
    """Return what a docstring does not have: parameters, "Returns", or everything."""
    text = inspect.getdoc(value)
    if not text:
        return ["docstring"]
    if isinstance(value, property) or not callable(value):
        return []
    document = NumpyDocString(text)
    entries = [*document["Parameters"], *document["Other Parameters"], *document["Attributes"]]
    listed = {name.strip(" *") for entry in entries for name in entry.name.split(",")}
    gaps = [name for name in parameters(value) if name not in listed]
    if has_result(value) and not (document["Returns"] or document["Yields"]):
        gaps.append("Returns")
    return gaps


@pytest.mark.parametrize("name", public_names())
def test_all_parameters_and_results_are_documented(name):
    value = public_names()[name]
    gaps = {} if value in PARTS else {name: missing(value)}
    if inspect.isclass(value):
        gaps |= {f"{name}.{one}": missing(member) for one, member in members(value).items()}
    assert {one: gap for one, gap in gaps.items() if gap} == {}


def test_names_that_the_docs_use_are_in_the_reference():
    """Functions and classes of the package, by imports and by what follows a module of it."""
    listed = [named(name) for name in listed_names()]
    used = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        modules = {}
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                modules |= {one.asname or one.name: one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules |= {
                    one.asname or one.name: f"{node.module}.{one.name}" for one in node.names
                }
                used |= {f"{node.module}.{one.name}": page.name for one in node.names}
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = modules.get(node.value.id, node.value.id)
                used[f"{module}.{node.attr}"] = page.name
        used |= dict.fromkeys(re.findall(r"`(napari_agglo(?:\.\w+)+)", text), page.name)
    absent = []
    for name, page in used.items():
        if name.startswith("napari_agglo."):
            with contextlib.suppress(
                ImportError, AttributeError
            ):  # a method, a group of entry points
                value = named(name)
                kinds = inspect.isclass(value) or inspect.isfunction(value)
                if kinds and is_ours(value) and not any(value is one for one in listed):
                    absent.append((name, page))
    assert absent == []
    assert "napari_agglo.volumes.split_components" in used, "test invalid"


# Folders whose names are all for users, but for these.
FOR_USERS = (
    "superpixels", "learning", "partition", "pixels", "shapes", "evaluate", "compare", "plots",
    "movie", "report", "samples", "session", "blocks",
)  # fmt: skip
INTERNAL = {  # with the reason
    "superpixels.CueKind": "a type of annotations; CUE_KINDS has its values",
    "learning.training_pairs": "the check of volumes and gold, which train and hold_out share",
    "plots.check_plane": "the check of the option plane, which plots, reports and movies share",
    "plots.shown": "shortens names in legends of plots and reports",
    "session.NOT_KEPT": "a warning, which commands and docks show in the same words",
}


def test_every_name_for_users_is_in_the_reference():
    listed = [named(name) for name in (*listed_names(), *listed_values())]
    absent = {
        f"{folder}.{name}"
        for folder in FOR_USERS
        for name in import_module(f"napari_agglo.{folder}").__all__
        if not any(named(f"napari_agglo.{folder}.{name}") is one for one in listed)
    }
    assert absent == INTERNAL.keys()
    policy = import_module("napari_agglo.policy")
    features = import_module("napari_agglo.features")
    for value in (policy.policies, policy.save_policy, features.PRESETS, features.feature_blocks):
        assert any(value is one for one in listed)


def test_examples_of_values_run():
    tried = doctest.testfile(str(REFERENCE), module_relative=False, encoding="utf-8")
    assert tried.failed == 0
    assert tried.attempted >= 10


def test_docstring_rule_can_fail():
    def undocumented(first: int, *others: int) -> int:
        """Return a number.

        Parameters
        ----------
        first : int
            A number.
        """
        return first + len(others)

    assert missing(undocumented) == ["others", "Returns"]
    assert "napari_agglo.Session" in public_names()
    assert set(PARTS) <= set(public_names().values())
    assert "merge" in members(Session), "test invalid: methods from another file are not found"
    assert missing(lambda: None) == ["docstring"]
