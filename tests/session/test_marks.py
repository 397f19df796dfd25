"""Marks of segments: a change is a value with an inverse; text that no file can hold is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo.errors import SetOption
from napari_agglo.session._marks import Mark, MarkChange, Marks

plain_text = st.text(st.characters(categories=("L", "N", "P", "Zs")), max_size=12)
changes = st.builds(
    MarkChange,
    segment=st.integers(1, 4),
    name=plain_text,
    comment=st.none() | plain_text,
    reviewed=st.none() | st.booleans(),
)


def state(marks):
    return {segment: marks[segment] for segment in marks}


@given(st.lists(changes, max_size=8))
def test_taking_back_in_reverse_order_leaves_nothing(message):
    marks = Marks()
    states, undo = [], []
    for change in message:
        states.append(state(marks))
        undo.append(marks.apply(change))
    for before, back in zip(reversed(states), reversed(undo), strict=True):
        marks.apply(back)
        assert state(marks) == before
    assert len(marks) == 0


@given(changes)
def test_a_change_survives_the_journal(change):
    assert MarkChange.from_json(json.loads(json.dumps(change.to_json()))) == change


def test_fields_that_are_not_given_stay():
    marks = Marks()
    marks.apply(MarkChange(3, name="axon", reviewed=True))
    marks.apply(MarkChange(3, comment="ends here"))
    assert marks[3] == Mark("axon", "ends here", True)
    marks.apply(MarkChange(3, name=""))
    assert marks[3] == Mark("", "ends here", True)


def test_only_segments_that_exist_are_counted():
    marks = Marks()
    for segment in (2, 5, 9):
        marks.apply(MarkChange(segment, reviewed=True))
    marks.apply(MarkChange(4, name="axon"))
    merged = marks.progress([2, 4, 7])  # 5 and 9 became part of others
    assert (merged.reviewed, merged.left) == (1, 2)
    assert str(merged) == "1 of 3 segments reviewed"
    undone = marks.progress([2, 4, 5, 7, 9])
    assert (undone.reviewed, undone.left) == (3, 2)
    assert marks.named("axon") == [4]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"segment": 0, "name": "a"}, ("segment", "take an id of segments.ids()")),
        ({"segment": True, "name": "a"}, ("segment", "take an id of segments.ids()")),
        ({"segment": 3}, ("name", "pass `name`, `comment` or `reviewed`")),
        ({"segment": 3, "name": 7}, ("name", SetOption("name", "7"))),
        ({"segment": 3, "name": "a" * 201}, ("name", "shorten it")),
        (
            {"segment": 3, "name": "two\nlines"},
            ("name", "remove the control characters"),
        ),
        (
            {"segment": 3, "comment": "nul\0"},
            ("comment", "remove the control characters"),
        ),
        (
            {"segment": 3, "comment": "half \ud800"},
            ("comment", "remove the control characters"),
        ),
        ({"segment": 3, "reviewed": 1}, ("reviewed", SetOption("reviewed", True))),
    ],
)
def test_refusals(arguments, refusal):
    with refuses(*refusal):
        MarkChange(**arguments)


@pytest.mark.parametrize("entry", [{"name": "a"}, {"segment": 3, "colour": "red"}])
def test_an_unknown_entry_is_refused(entry):
    with refuses("mark", "open the session with the version that"):
        MarkChange.from_json(entry)


def test_a_comment_may_have_lines():
    assert MarkChange(3, comment="one\ntwo\t\N{SNOWMAN}").comment == "one\ntwo\t\N{SNOWMAN}"
