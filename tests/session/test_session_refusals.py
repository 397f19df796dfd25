"""What is refused is said in terms of what the user passed, with what to do."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session


@pytest.fixture
def session(tmp_path):
    graph = agglo.region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.1, 0.1, 0.8, 0.9]]))
    with Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.3
        yield made


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda s: s.detach(1, 2), r"`superpixels` must be a list of ids of .*\[a, b\], got 2; "),
        (lambda s: s.detach(1, [[2]]), r"`superpixels` must be a list of ids .* got \[\[2\]\]"),
        (lambda s: s.detach(1, "2"), "`superpixels` must be a list of ids .* got '2'"),
        (lambda s: s.detach(1, [77]), "`superpixels` must be the id of a superpixel, got 77: th"),
        (lambda s: s.merge(1.0, 3), r"`first` must be the id of a segment, got 1\.0; ask segments"),
        (lambda s: s.merge(1, "3"), "`others` must be the id of a segment, got '3'; ask segm"),
        (lambda s: s.merge(1, 0), "`others` must be the id of a segment, got 0: 0 is no region; "),
        (lambda s: s.lock(50), r"`segment` must be the id of a segment, got 50: .* segments.at\("),
        (lambda s: s.preview(1), "Give `seeds` or `parts`, .* or `points`, groups of"),
        (lambda s: s.preview(1, [[1], [2]], points=[[(0, 0)], [(0, 1)]]), "not two of them"),
        (lambda s: s.cut(1), "Give `seeds` or `parts`, .* or `points`, groups of"),
        (lambda s: s.cut(1, parts=[[1], [2]], method="bogus"), "`method` must be 'min_cut', "),
        (lambda s: s.preview(1, parts=[[1], [2]], method="bogus"), "`method` must be"),
    ],
)  # fmt: skip
def test_what_was_passed_is_named(session, work, words):
    with pytest.raises(InvalidInput, match=words):
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


def test_nor_in_what_it_raises(session, tmp_path):
    session.close()
    for manifest in (b"{", None):
        copy = shutil.copytree(session.path, tmp_path / f"{manifest is None}.agglo")
        (copy / "arrays.zarr" / "zarr.json").write_bytes(b"{")
        if manifest is None:
            (copy / "manifest.json").unlink()
        else:
            (copy / "manifest.json").write_bytes(manifest)
        with pytest.raises(InvalidInput, match=r"put back manifest\.json from a copy") as raised:
            Session.recover(copy)
        assert "recover()" not in str(raised.value)
