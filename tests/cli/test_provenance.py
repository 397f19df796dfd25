"""The record beside an output: versions, settings, checksums, and the same bytes again."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import tifffile

from napari_agglo import __version__
from napari_agglo.cli import main
from napari_agglo.cli._main import make_parser


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    tifffile.imwrite("b.tif", rng.random((12, 14)).astype(np.float32))
    return tmp_path


def record(name):
    return json.loads(Path(name).read_text(encoding="utf-8"))


def test_versions_settings_and_checksums(here):
    words = ["oversegment", "b.tif", "-o", "s.tif", "--min-size", "2", "-q"]
    assert main(words) == 0
    first = record("s.tif.json")
    assert (first["napari-agglo"], first["command"]) == (__version__, "oversegment")
    assert first["settings"]["min_size"] == 2
    assert first["settings"]["nan"] == "refuse", "defaults too"
    expected = hashlib.sha256(Path("b.tif").read_bytes()).hexdigest()
    assert first["inputs"] == {"b.tif": {"bytes": Path("b.tif").stat().st_size, "sha256": expected}}
    assert list(first["outputs"]) == ["s.tif"]
    assert "numpy" in first["versions"]
    assert main(words) == 0
    again = record("s.tif.json")
    assert first.pop("run").keys() == again.pop("run").keys()
    assert again == first
    assert main(["oversegment", "b.tif", "-o", "s.ome.zarr", "-q"]) == 0
    assert record("s.ome.zarr.json")["outputs"]["s.ome.zarr"]["bytes"] > 0
    assert main(["oversegment", "b.tif", "-o", "s.h5:a/b", "-q"]) == 0
    assert record("s.h5.a.b.json")["outputs"].keys() == {"s.h5:a/b"}


def test_none_is_written_if_not_wanted_or_not_done(here):
    assert main(["oversegment", "b.tif", "-o", "s.tif", "--no-provenance", "-q"]) == 0
    assert main(["oversegment", "b.tif", "-o", "t.tif", "--range", "5:6", "-q"]) == 2
    assert not list(here.glob("*.json"))


# Commands that write nothing, or whose output is itself the record.
WITHOUT = {
    "plugins", "warm", "completion", "blocks plan", "blocks status", "session info",
    "session recover",
}  # fmt: skip


def leaves(parser):
    """Return the parser of each command that does something, by its words."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        return {parser.prog.partition(" ")[2]: parser}
    return {
        words: leaf
        for one in inner[0].choices.values()
        for words, leaf in leaves(one).items()
    }  # fmt: skip


def test_every_command_that_writes_has_a_record():
    found = leaves(make_parser())
    without = {
        words
        for words, leaf in found.items()
        if not any(action.dest == "provenance" for action in leaf._actions)
    }
    assert without == WITHOUT


def test_a_session_has_the_record_of_its_making_and_of_applied_edits(files):
    evidence = ["--superpixels", "superpixels.tif", "--cues", "boundary.tif"]
    assert main(["session", "create", "a.agglo", *evidence, "-q"]) == 0
    made = record("a.agglo.json")
    assert made["command"] == "session create"
    assert set(made["inputs"]) == {"superpixels.tif", "boundary.tif"}
    assert made["outputs"]["a.agglo"]["bytes"] > 0
    assert main(["session", "export", "a.agglo", "edits", "-o", "edits.csv", "-q"]) == 0
    assert set(record("edits.csv.json")["inputs"]) == {"a.agglo"}
    assert main(["session", "apply", "a.agglo", "edits.csv", "-q"]) == 0
    assert set(record("a.agglo.apply.json")["inputs"]) == {"edits.csv"}
    assert record("a.agglo.json") == made
