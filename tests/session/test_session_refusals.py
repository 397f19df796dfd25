"""Refusals name the argument as the user passed it, and a remedy."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Session
from napari_agglo.errors import SetOption


@pytest.fixture
def session(tmp_path):
    graph = agglo.region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.1, 0.1, 0.8, 0.9]]))
    with Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.3
        yield made


MIN_CUT = SetOption("method", "min_cut")


@pytest.mark.parametrize(
    ("work", "refusal"),
    [
        (lambda s: s.detach(1, 2), ("superpixels", "pass a list of superpixels, [a, b]")),
        (lambda s: s.detach(1, [[2]]), ("superpixels", "segments.superpixel_at(index)")),
        (lambda s: s.detach(1, "2"), ("superpixels", "pass a list of superpixels, [a, b]")),
        (lambda s: s.detach(1, [77]), ("superpixels", "segments.superpixel_at(index)")),
        (lambda s: s.merge(1.0, 3), ("first", "get one by segments.at(index)")),
        (lambda s: s.merge(1, "3"), ("others", "get one by segments.at(index)")),
        (lambda s: s.merge(1, 0), ("others", "get one by segments.at(index)")),
        (lambda s: s.lock(50), ("segment", "get one by segments.at(index)")),
        (lambda s: s.preview(1), ("seeds", "pass `seeds` or `parts`")),
        (
            lambda s: s.preview(1, [[1], [2]], points=[[(0, 0)], [(0, 1)]]),
            ("seeds", "pass `seeds` or `parts`"),
        ),
        (lambda s: s.cut(1), ("seeds", "pass `seeds` or `parts`")),
        (lambda s: s.cut(1, parts=[[1], [2]], method="bogus"), ("method", MIN_CUT)),
        (lambda s: s.preview(1, parts=[[1], [2]], method="bogus"), ("method", MIN_CUT)),
    ],
)
def test_refusals_name_the_value_that_was_passed(session, work, refusal):
    with refuses(*refusal):
        work(session)
    assert list(session.history) == []


@pytest.mark.parametrize("gone", ["superpixels", "ids", "cues", "edges", "gold"])
def test_recover_does_not_advise_itself(session, tmp_path, gone):
    session.close()
    for how in ("missing", "empty"):
        copy = shutil.copytree(session.path, tmp_path / f"{how}.agglo")
        if how == "missing":
            shutil.rmtree(copy / "arrays.zarr" / gone, ignore_errors=True)
        elif (copy / "arrays.zarr" / gone).exists():
            (copy / "arrays.zarr" / gone / "zarr.json").write_bytes(b"")
        report = str(Session.recover(copy))
        assert "recover()" not in report
        assert ("superpixels=PATH" in report) == (gone in ("superpixels", "ids"))


def test_errors_of_recover_do_not_advise_recover(session, tmp_path):
    session.close()
    for manifest in (b"{", None):
        copy = shutil.copytree(session.path, tmp_path / f"{manifest is None}.agglo")
        (copy / "arrays.zarr" / "zarr.json").write_bytes(b"{")
        if manifest is None:
            (copy / "manifest.json").unlink()
        else:
            (copy / "manifest.json").write_bytes(manifest)
        with refuses("path", "restore manifest.json from a copy of the") as raised:
            Session.recover(copy)
        assert "recover()" not in str(raised.value)
