"""Folders that a command fills appear whole, and names of outputs are checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from napari_agglo.errors import Advice

SAMPLE = ["sample", "cells2d", "-o", "out"]
CUES = ("boundary", "brightness", "nucleus", "texture")
FILES = [*(f"cue_{name}.tif" for name in CUES), "gold.tif", "image.tif"]


@pytest.fixture
def last_step(monkeypatch, tmp_path):
    """Work in an empty folder; return a function that puts a step after the last file."""
    from napari_agglo import volumes

    monkeypatch.chdir(tmp_path)
    real = volumes.write_labels

    def put(step):
        def write_labels(path, *arguments, **options):
            real(path, *arguments, **options)
            step(Path(path).parent)

        monkeypatch.setattr(volumes, "write_labels", write_labels)

    return put


def test_a_folder_appears_whole(run, last_step):
    def check(folder):
        assert set(FILES) <= set(os.listdir(folder))
        assert not os.path.exists("out")

    last_step(check)
    assert run(*SAMPLE)[0] == 0
    assert sorted(os.listdir()) == ["out", "out.json"]  # and the record of its provenance
    assert sorted(os.listdir("out")) == FILES


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (ValueError, 1)])
def test_an_interrupted_run_leaves_nothing(run, last_step, error, status):
    def fail(folder):
        raise error

    last_step(fail)
    assert run(*SAMPLE)[0] == status
    assert os.listdir() == []
    os.mkdir("out")
    for name in ("gold.tif", "mine"):
        Path("out", name).write_text("old")
    assert run(*SAMPLE)[0] == status
    assert os.listdir() == ["out"]
    assert {p.name: p.read_text() for p in Path("out").iterdir()} == {
        "gold.tif": "old", "mine": "old",
    }  # fmt: skip


def test_only_files_of_the_same_name_are_replaced(run, last_step):
    def add_store(folder):
        (folder / "z.zarr").mkdir()
        (folder / "z.zarr" / "0").write_text("new")

    last_step(add_store)
    os.makedirs("out/z.zarr")
    for name in ("mine", "gold.tif", "z.zarr/1"):
        Path("out", name).write_text("old")
    assert run(*SAMPLE)[0] == 0
    assert sorted(os.listdir("out")) == [*FILES, "mine", "z.zarr"]
    assert os.listdir("out/z.zarr") == ["0"]
    assert Path("out/z.zarr/0").read_text() == "new"
    assert Path("out/gold.tif").read_bytes() != b"old"
    assert Path("out/mine").read_text() == "old"


def test_a_file_is_no_folder(refused, last_step):
    Path("out").write_text("mine")
    message = refused(*SAMPLE)
    assert (message.argument, message.remedies) == ("-o", (Advice("name a folder"),))
    assert message.line.startswith("napari-agglo: -o out: ")
    assert Path("out").read_text() == "mine"


def test_names_that_labels_can_have(run, refused, files):
    for name in ("a.tif", "a.TIFF", "a.ome.zarr", "a.h5:seg", "a.npz"):
        assert run("oversegment", "boundary.tif", "-o", name)[0] == 0
        assert os.path.exists(name.partition(":")[0])
    message = refused("oversegment", "boundary.tif", "-o", "a.jpg")
    assert (message.argument, message.remedies) == ("-o", (Advice("add .tif"),))
    message = refused("oversegment", "boundary.tif", "-o", "no/a.tif")
    assert (message.argument, "-o no/a.tif" in message) == ("-o", True)
