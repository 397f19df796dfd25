"""`napari-agglo session`: info, export and recover."""

from __future__ import annotations

import json
import shutil

import pytest
import tifffile

import napari_agglo as agglo
from napari_agglo.policy import policies


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


class Scaled:
    """A policy whose class says no more of it than an address."""

    name, probabilistic, kernel, check = "scaled", False, lambda *_: None, lambda *_: None

    def score(self, graph):
        return graph.boundary_mean("boundary") * 2

    def to_json(self):
        return {"kind": "scaled", "factor": 2}


def test_info_on_a_policy_of_others_has_its_parameters(run, files, tmp_path, monkeypatch):
    graph = agglo.region_graph(tifffile.imread("superpixels.tif"), tifffile.imread("boundary.tif"))
    agglo.Session.create("own.agglo", graph, Scaled()).close()
    words = run("session", "info", "own.agglo")[1]
    assert "scaled(factor=2): not available" in words
    monkeypatch.setitem(policies._values, "scaled", Scaled)
    monkeypatch.setattr(Scaled, "from_json", lambda words: Scaled(), raising=False)
    words = run("session", "info", "own.agglo")[1]
    assert "scaled(factor=2)" in words
    assert "not available" not in words
    assert " object at " not in words


def test_a_policy_that_is_not_there_may_be_of_a_package(refused, files):
    given = ["--superpixels", "superpixels.tif", "--cues", "boundary.tif", "-o", "l.tif"]
    for name in ("scaled", "w.json"):
        message = refused("segment", *given, "--policy", name)
        assert message.argument == "policy"
        assert "napari_agglo.policies" in message
        assert "MODULE:NAME" in message


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
