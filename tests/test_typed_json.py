"""Plain JSON becomes typed values, or is refused by the name of the field."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._typed_json import decode
from napari_agglo.errors import InvalidInput


@dataclass(frozen=True)
class Inner:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outer:
    scale: float
    pair: tuple[int, float]
    inner: dict[str, Inner]
    flag: bool | None = None
    rest: dict[str, Any] = field(default_factory=dict)


inner = st.builds(Inner, st.text(), st.lists(st.integers(0)).map(tuple))
finite = st.floats(allow_nan=False, allow_infinity=False)
outer = st.builds(
    Outer, finite, st.tuples(st.integers(0), finite), st.dictionaries(st.text(), inner),
    st.none() | st.booleans(), st.dictionaries(st.text(), st.integers()),
)  # fmt: skip


@given(outer)
def test_written_values_are_read(value):
    assert decode(Outer, json.loads(json.dumps(dataclasses.asdict(value)))) == value


@pytest.mark.parametrize(
    ("kind", "plain", "at"),
    [
        (int, -1, "it"),
        (int, 1.0, "it"),
        (int, True, "it"),
        (float, float("nan"), "it"),
        (float, float("inf"), "it"),
        (float, 10**400, "it"),
        (float, "1", "it"),
        (bool, 1, "it"),
        (str, None, "it"),
        (int | None, "x", "it"),
        (tuple[int, int], [1], "it"),
        (tuple[int, ...], [1, "x"], "it[1]"),
        (tuple[int, ...], "12", "it"),
        (dict[str, int], {"a": None}, "it.a"),
        (Inner, {}, "it"),
        (Inner, {"name": "a", "more": 1}, "it"),
        (Inner, {"name": 1}, "it.name"),
        (Inner, [], "it"),
        (Outer, {"scale": 1, "pair": [1, 2], "inner": {"a": {"name": "", "sizes": [-1]}}},
         "it.inner.a.sizes[0]"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_name(kind, plain, at):
    with pytest.raises(InvalidInput) as caught:
        decode(kind, plain)
    assert caught.value.argument == at
