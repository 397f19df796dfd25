"""A run with all stages, whose results other runs must have."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from block_runs import STAGES, content, plan_all, write_inputs

from napari_agglo import blocks


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Give the folder of inputs, the folder of a complete run, and the content of its files."""
    where = tmp_path_factory.mktemp("undisturbed")
    write_inputs(where)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napari_agglo.volumes._ome_zarr._SMALL", 500)
        plan_all(where, where / "result")
    run = blocks.run(where / "result")
    assert run.is_complete
    assert set(run.done) == STAGES
    return SimpleNamespace(where=where, folder=where / "result", content=content(where / "result"))
