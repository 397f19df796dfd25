"""`napari-agglo session`: info, export and recover."""

from __future__ import annotations

import json
import shutil

import pytest
import tifffile

import napari_agglo as agglo


@pytest.fixture
def session(files):
    """Write a session with one edit."""
    graph = agglo.region_graph(tifffile.imread("superpixels.tif"), tifffile.imread("boundary.tif"))
    with agglo.Session.create("cells.agglo", graph, gold=tifffile.imread("gold.tif")) as session:
        session.threshold = 0.3
        session.merge(1, 3)


def test_info(run, session):
    status, out, err = run("session", "info", "cells.agglo", "-q")
    assert (status, err) == (0, "")
    rows = dict(line.split(None, 1) for line in out.splitlines())
    assert (rows["superpixels"], rows["edits"], rows["gold"]) == ("4", "1", "yes")
    data = json.loads(run("session", "info", "cells.agglo", "--json")[1])
    assert (data["shape"], data["cues"], data["threshold"]) == ([4, 6], ["boundary"], 0.3)
    assert data["segments"] == 2


def test_export_is_that_of_the_command_export(run, session):
    assert run("session", "export", "cells.agglo", "labels", "-o", "a.tif")[0] == 0
    assert run("export", "cells.agglo", "labels", "-o", "b.tif")[0] == 0
    assert (tifffile.imread("a.tif") == tifffile.imread("b.tif")).all()


def test_recover(run, session, files):
    assert run("session", "recover", "cells.agglo")[0] == 0
    data = json.loads(run("session", "recover", "cells.agglo", "--json")[1])
    assert (data["lost"], data["unmended"]) == (0, False)
    shutil.rmtree("cells.agglo/arrays.zarr/superpixels")
    status, out, err = run("session", "recover", "cells.agglo")
    assert status == 2
    assert "cells.agglo" in out
    assert "--superpixels FILE" in err
    assert run("session", "recover", "cells.agglo", "--superpixels", "superpixels.tif")[0] == 0
    assert run("session", "info", "cells.agglo")[0] == 0


def test_refused(refused, files):
    assert "required: ACTION" in refused("session")
    assert "gone.agglo" in refused("session", "info", "gone.agglo")
    assert "gone.agglo" in refused("session", "recover", "gone.agglo")
