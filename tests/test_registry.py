"""The registry through which other packages add to this one."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest
from refusals import refuses

from napari_agglo import _registry
from napari_agglo._registry import Registry, misspelt_groups
from napari_agglo.errors import InvalidInput

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
