"""The registry through which other packages add to this one."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from napari_agglo import _registry
from napari_agglo._registry import Registry
from napari_agglo.errors import InvalidInput

GROUP = "napari_agglo.tests"


@pytest.fixture
def entries(monkeypatch):
    """Entry points that the tests declare."""
    declared: list[EntryPoint] = []
    monkeypatch.setattr(
        _registry, "entry_points", lambda group: [e for e in declared if e.group == group]
    )
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
    with pytest.raises(InvalidInput, match="no_such_module"):
        numbers["bad"]


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
    with pytest.raises(InvalidInput) as caught:
        numbers["two"]
    assert caught.value.argument == "number"
    assert "'one'" in str(caught.value.remedy)
