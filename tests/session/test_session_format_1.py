"""A session folder written before the package was restructured still opens, with the same result.

The folder holds every kind of edit: merge, cut by seeds, by children and by points within one
superpixel, lock, unlock, a move along a branch, marks, answers to suggestions, relearning, undo.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from napari_agglo import Session

DATA = Path(__file__).parents[1] / "data" / "session_of_format_1"
SCALES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)


@pytest.fixture(params=["with snapshots", "journal alone"])
def folder(request, tmp_path):
    copy = shutil.copytree(DATA / "old.agglo", tmp_path / "old.agglo")
    if request.param == "journal alone":
        shutil.rmtree(copy / "snapshots")
    return copy


def test_old_session_shows_the_same_labels(folder):
    expected = np.load(DATA / "expected.npz")
    sizes = [len(np.unique(expected[f"labels_{scale}"])) for scale in SCALES]
    assert sizes[0] > sizes[3] > sizes[-1], "test invalid: the scales look alike"
    with Session.open(folder) as session:
        assert session.threshold == 0.5
        for scale in SCALES:
            session.threshold = scale
            np.testing.assert_array_equal(session.labels(), expected[f"labels_{scale}"])
        np.testing.assert_array_equal(session.segments.locked(), expected["locked"])


def test_old_session_has_the_same_tree(folder):
    expected = np.load(DATA / "expected.npz")
    with Session.open(folder) as session:
        tree = session.tree
        np.testing.assert_array_equal(tree.priorities, expected["priorities"])
        np.testing.assert_array_equal(tree.winners, expected["winners"])
        # Merges of one height may come in another order: the engine has changed since.
        assert merges(tree.winners, tree.losers, tree.priorities) == merges(
            expected["winners"], expected["losers"], expected["priorities"]
        )


def merges(winners, losers, priorities):
    """Return the merges in an order that does not depend on the one in which they were done."""
    return sorted(zip(np.maximum.accumulate(priorities), winners, losers, strict=True))


def test_old_session_has_the_same_history_and_marks(folder):
    expected = json.loads((DATA / "expected.json").read_text())
    with Session.open(folder) as session:
        assert [str(entry) for entry in session.history] == expected["history"]
        marks = {str(k): [m.name, m.comment, m.reviewed] for k, m in session.marks.all().items()}
        assert marks == expected["marks"]


def test_every_edit_of_an_old_session_can_be_undone(folder):
    with Session.open(folder) as session:
        first = session.history.unedited_tree
        while session.history.can_undo:
            session.undo()
        for scale in SCALES:
            session.threshold = scale
            np.testing.assert_array_equal(session.labels(), first.segment(scale))
