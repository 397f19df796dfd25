"""Results of a block-wise run in a window."""

from __future__ import annotations

from refusals import refuses

from napari_agglo.widgets.proofread import open_run


def test_the_reader_knows_results_folders(tmp_path):
    from napari_agglo.widgets._readers import run_reader

    folder = tmp_path / "cells.blocks"
    folder.mkdir()
    assert run_reader(str(folder)) is None
    (folder / "plan.json").write_text('{"format": "napari-agglo blocks 1"}')
    assert run_reader(str(folder)) is run_reader(str(folder / "plan.json")) is not None
    other = tmp_path / "plan.json"
    other.write_text("{}")
    assert run_reader(str(other)) is None
    assert run_reader([str(folder)]) is None
    with refuses("path", "blocks run"):
        open_run(None, tmp_path / "nothing")
