"""The registry through which other packages add to this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from refusals import refuses

from napari_agglo import _registry
from napari_agglo._registry import Registry, misspelt_groups
from napari_agglo.errors import InvalidInput
from napari_agglo.features import FeatureBlock, feature_blocks
from napari_agglo.partition import METHODS
from napari_agglo.policy import policies

GROUP = "napari_agglo.tests"


@pytest.fixture
def entries(monkeypatch):
    """Entry points that the tests declare."""
    declared: list[EntryPoint] = []
    monkeypatch.setattr(_registry, "declared_entry_points", lambda: EntryPoints(declared))
    return declared


def test_an_entry_point_is_listed_and_loaded_when_it_is_asked_for(entries):
    entries.append(EntryPoint("pi", "math:pi", GROUP))
    numbers: Registry[float] = Registry(GROUP, "number")
    numbers.register("one", 1.0)
    assert numbers.names() == ("one", "pi")
    assert "pi" in numbers
    assert numbers["pi"] == pytest.approx(3.14159, abs=1e-5)


def test_a_broken_entry_point_is_refused_by_name(entries):
    entries.append(EntryPoint("bad", "no_such_module:x", GROUP))
    numbers: Registry[float] = Registry(GROUP, "number")
    assert numbers.names() == ("bad",)
    with refuses("number", "fix or uninstall the package that defines it"):
        numbers["bad"]


def test_values_leave_a_broken_entry_point_out_with_a_warning(entries):
    entries += [EntryPoint("bad", "no_such_module:x", GROUP), EntryPoint("pi", "math:pi", GROUP)]
    entries.append(EntryPoint("text", "string:digits", GROUP))
    numbers: Registry[float] = Registry(GROUP, "number", float)
    with pytest.warns(UserWarning, match="cannot be loaded") as caught:
        assert numbers.values() == [pytest.approx(3.14159, abs=1e-5)]
    assert ["no_such_module" in str(w.message) for w in caught] == [True, False]
    assert "must be of the class float" in str(caught[1].message)


@pytest.mark.parametrize("name", [3, None, ["one"], {}])
def test_a_name_is_text(entries, name):
    numbers: Registry[float] = Registry(GROUP, "number")
    with pytest.raises(InvalidInput) as caught:
        numbers[name]
    assert caught.value.argument == "number"


def test_a_name_is_taken_once(entries):
    entries.append(EntryPoint("one", "math:pi", GROUP))
    numbers: Registry[float] = Registry(GROUP, "number")
    numbers.register("one", 1.0)
    with pytest.raises(InvalidInput) as caught:
        numbers.register("one", 2.0)
    assert caught.value.argument == "name"
    with pytest.warns(UserWarning, match="not used"):
        numbers.names()
    assert numbers["one"] == 1.0


def test_an_unknown_name_lists_those_there_are(entries):
    numbers: Registry[float] = Registry(GROUP, "number")
    numbers.register("one", 1.0)
    with refuses("number", "'one'"):
        numbers["two"]


class Named:
    def __init__(self, name):
        self.name = name


other = Named("other")


def test_the_names_of_a_value_and_of_its_entry_point_are_equal(entries):
    place = f"{__name__}:other"
    entries += [EntryPoint("other", place, GROUP), EntryPoint("mine", place, GROUP)]
    named: Registry[Named] = Registry(GROUP, "thing", Named)
    assert named["other"] is other
    for _ in range(2):  # it stays listed
        with refuses("thing", "the same name") as refusal:
            named["mine"]
        assert "'mine'" in refusal.value.problem
    assert named.names() == ("other", "mine")


def test_all_entry_points_are_listed_with_their_problems(entries):
    entries += [EntryPoint("pi", "math:pi", GROUP), EntryPoint("bad", "no_such:x", GROUP)]
    entries += [EntryPoint("one", "math:e", GROUP), EntryPoint("e", "math:e", GROUP + "s")]
    entries.append(EntryPoint("e", "math:e", "another.group"))
    numbers: Registry[float] = Registry(GROUP, "number", float)
    numbers.register("one", 1.0)
    with pytest.warns(UserWarning, match="not used"):
        found = numbers.plugins()
    assert [(one.name, bool(one.problem)) for one in found] == [
        ("pi", False), ("bad", True), ("one", True),
    ]  # fmt: skip
    assert numbers.own_names() == ("one",)
    assert [one.name for one in misspelt_groups([GROUP])] == ["e"]


def by_size_alone(graph, policy):
    """Return no tree, and take no progress."""


class NeedsStep:
    """A class of policies whose constructor has no defaults."""

    name = "step"
    probabilistic = False
    check = score = kernel = to_json = from_json = None

    def __init__(self, step):
        self.step = step


twice = FeatureBlock("twice", ("ratio", "ratio"), lambda graph: graph.sizes)


@pytest.mark.parametrize(
    ("registry", "name", "value", "problem"),
    [
        (METHODS, "by_size", "by_size_alone", "progress"),
        (policies, "step", "NeedsStep", "'step'"),
        (feature_blocks, "twice", "twice", "'ratio'"),
    ],
)
def test_faults_that_no_import_shows_are_listed(entries, registry, name, value, problem):
    entries.append(EntryPoint(name, f"{__name__}:{value}", GROUP))
    like: Registry[object] = Registry(GROUP, registry.noun, accept=registry._accept)
    (found,) = like.plugins()
    assert problem in found.problem


def test_an_article_fits_its_noun():
    kinds: Registry[float] = Registry(GROUP, "export kind")
    kinds.register("one", 1.0)
    with refuses("name", facts=("an export kind",)):
        kinds.register("one", 1.0)


NEW_FILES = {  # of each registry: a new file in the folder of the package
    "policy/_by_rank.py": """
from napari_agglo.policy._policies import policies

@policies.add("by rank")
class RankPolicy:
    name, probabilistic = "by rank", False
""",
    "features/_rank.py": """
from napari_agglo.features._feature_map import FeatureBlock

rank = FeatureBlock("rank", ("rank",), lambda graph: graph.edges[:, 0])
""",
    "partition/_by_size.py": """
from napari_agglo.agglomeration import merge_tree
from napari_agglo.partition._methods import METHODS

@METHODS.add("by size")
def by_size(graph, policy, *, progress=None):
    return merge_tree(graph, policy, progress=progress)
""",
    "session/_exports/ranks.py": """
from napari_agglo.session._exports.export_kinds import exporter

@exporter("ranks", label="Ranks")
def export_ranks(view, path):
    path.write_text("")
""",
    "session/_cut_methods/halves.py": """
from napari_agglo.session._cut_methods.cut_registry import cut_method

@cut_method("halves", label="in halves")
def in_halves(problem):
    return problem.seeds
""",
}
LIST_NAMES = """
from napari_agglo.features import feature_blocks
from napari_agglo.partition import METHODS
from napari_agglo.policy import policies
from napari_agglo.session._cut_methods import cut_methods
from napari_agglo.session._exports import exports

for registry in (policies, feature_blocks, METHODS, exports, cut_methods):
    print(*registry.own_names(), sep=",")
"""


def test_a_new_value_is_one_new_file(tmp_path):
    package = Path(_registry.__file__).parent
    copy = tmp_path / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "widgets", "cli"))
    for name, text in NEW_FILES.items():
        (copy / name).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", LIST_NAMES],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    names = [line.split(",") for line in run.stdout.splitlines()]
    new = ["by rank", "rank", "by size", "ranks", "halves"]
    assert [name in listed for name, listed in zip(new, names, strict=True)] == [True] * 5
    assert [listed[0] for listed in names] == ["mean", "rank", "threshold", "labels", "min_cut"]
