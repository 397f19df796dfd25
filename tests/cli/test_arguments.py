from __future__ import annotations

import os
import shutil

import h5py
import pytest
import tifffile

SEGMENT = ["segment", "--superpixels", "superpixels.tif", "-o", "out.tif", "--cues"]


@pytest.mark.parametrize(
    ("text", "name", "source", "path"),
    [
        (r"C:\a b\m.h5:stack", "boundary", r"C:\a b\m.h5:stack", r"C:\a b\m.h5"),
        ("mito=a=b.tif", "mito", "a=b.tif", "a=b.tif"),
        ("./x=1/b.tif", "boundary", "./x=1/b.tif", "./x=1/b.tif"),
    ],
)
def test_a_drive_or_an_equals_sign_in_a_path(refused, files, text, name, source, path):
    missing = refused(*SEGMENT, text, "--policy", "random")
    assert missing.startswith(f"napari-agglo: {path} does not exist")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if path.endswith(".h5"):
        with h5py.File(path, "w") as file:
            file["stack"] = tifffile.imread("boundary8.tif")
    else:
        shutil.copy("boundary8.tif", path)
    message = refused(*SEGMENT, text, "--policy", "random")
    assert message.startswith(f"napari-agglo: {source} is uint8")
    assert f"--range {name}=0:255" in message


def test_two_cues_of_one_name(refused, files):
    message = refused(*SEGMENT, "boundary.tif", "boundary8.tif")
    assert "name them, e.g. boundary=A mitochondria=B" in message


def test_a_range_for_all_and_one_for_some(run, refused, files, monkeypatch):
    from napari_agglo import graph

    real, ranges = graph.region_graph, []

    def region_graph(*arguments, **options):
        ranges.append(options["ranges"])
        return real(*arguments, **options)

    monkeypatch.setattr(graph, "region_graph", region_graph)
    command = [*SEGMENT, "boundary.tif", "mito=boundary.tif", "--policy", "random"]
    assert run(*command, "--range", "0:255", "mito=1:0")[0] == 0
    assert run(*command)[0] == 0
    assert ranges == [{"boundary": (0.0, 255.0), "mito": (1.0, 0.0)}, None]
    assert "name one of these, or none for all" in refused(*command, "--range", "mtio=0:1")


def test_policies(run, refused, files):
    assert run(*SEGMENT, "boundary.tif", "--policy", "mean")[0] == 0
    missing = refused(*SEGMENT, "boundary.tif", "--policy", "p.npz")
    assert missing.startswith("napari-agglo: There is no policy file p.npz")
    message = refused(*SEGMENT, "boundary.tif", "--policy", "median")
    assert "give a Python function as MODULE:FUNCTION" in message
