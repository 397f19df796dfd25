"""The command that writes exports of a session: every kind, its options, what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
import zarr

import napari_agglo as agglo
from napari_agglo.session import export_kinds


@pytest.fixture(scope="module")
def session_once(rooms_folder, tmp_path_factory):
    """Write a session with one merge, and return its folder and labels."""
    folder = tmp_path_factory.mktemp("session") / "cells.agglo"
    images = (tifffile.imread(rooms_folder / f"{n}.tif") for n in ("superpixels", "boundary"))
    with agglo.Session.create(folder, agglo.region_graph(*images)) as session:
        session.threshold = 0.0
        first = int(session.segments.ids()[0])
        session.merge(first, int(session.segments.neighbours(first)[0]))
        session.marks.review(first)
        labels = session.labels()
    return folder, labels


@pytest.fixture
def session(files, session_once):
    """Copy the session into the folder of the test; return its labels."""
    folder, labels = session_once
    shutil.copytree(folder, "cells.agglo")
    return labels


@pytest.mark.parametrize("command", [["export"], ["session", "export"]])
def test_kinds_are_listed(run, files, command):
    status, text, _ = run(*command, "--kinds")
    assert status == 0
    for kind in export_kinds():
        assert kind.name in text
        assert all(f"--option {option.name}=" in text for option in kind.options)
    for words in (["--kinds", "--json"], ["--json", "--kinds"], ["a.agglo", "--kinds", "--json"]):
        status, listed, _ = run(*command, *words)
        assert status == 0
        found = {kind.pop("name"): kind for kind in json.loads(listed)["kinds"]}
        assert list(found) == [kind.name for kind in export_kinds()]
        for kind in export_kinds():
            one = found[kind.name]
            assert (one["label"], tuple(one["suffixes"])) == (kind.label, kind.suffixes)
            assert one["in_3d"] == kind.in_3d
            names = [option.name for option in kind.options]
            assert [option["name"] for option in one["options"]] == names


def test_a_list_of_kinds_writes_nothing(run, refused, session):
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert run("export", "cells.agglo", "labels", "-o", "gold.tif", "--kinds")[0] == 0
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    assert all(name in refused("export", "cells.agglo") for name in ("KIND", "-o"))


def test_every_kind_is_written(run, session, tmp_path):
    for kind in export_kinds():
        if kind.in_3d:  # of volumes, see tests/shapes
            status, _, error = run("export", "cells.agglo", kind.name, "-o", "a.ply")
            assert status == 2
            assert all(words in error for words in ("three axes", " 2;"))
            continue
        name = f"{kind.name}{kind.suffixes[0] if kind.suffixes else ''}"
        for _ in ("new", "replaced"):
            status, text, error = run("export", "cells.agglo", kind.name, "-o", name)
            assert (status, error) == (0, "")
            assert text.startswith(f"{name}: ")
    np.testing.assert_array_equal(tifffile.imread("labels.tif"), session)
    assert len(pd.read_csv("regions.csv")) == len(np.unique(session))
    assert pd.read_csv("edits.csv")["kind"].tolist() == ["merge", "mark"]
    gold = tifffile.imread("gold.tif")
    np.testing.assert_array_equal(gold, np.where(session == gold.max(), session, 0))


def test_threshold_and_options(run, session):
    assert run("export", "cells.agglo", "labels", "-o", "all.tif", "--threshold", 1)[0] == 0
    assert len(np.unique(tifffile.imread("all.tif"))) < len(np.unique(session))
    with agglo.Session.open("cells.agglo", read_only=True) as opened:
        affinities = np.linspace(0, 1, opened.graph.n_boundaries)
    np.save("affinities.npy", affinities)
    options = ["--option", "affinities=affinities.npy", "--option", "superpixels=layer.tif"]
    assert run("export", "cells.agglo", "agglomerate", "-o", "map", *options)[0] == 0
    stored = zarr.open_group("map", mode="r")["agglomerate_to_affinities"][:]
    assert set(stored.tolist()) <= set(affinities.astype(np.float32).tolist())
    assert tifffile.imread("layer.tif").max() == len(np.unique(tifffile.imread("superpixels.tif")))


@pytest.mark.parametrize(
    ("words", "argument", "named"),
    [
        (["table", "-o", "x.csv"], "export kind", ["'table'", "'labels'"]),
        (["edits", "-o", "x.csv", "--option", "a=1"], "options", ["--option a=1", "edits"]),
        (["agglomerate", "-o", "x", "--option", "superpixels"], "options", ["affinities=VALUE"]),
        (["labels", "-o", "cells.agglo/x.tif"], "-o", ["-o cells.agglo/x.tif", "SESSION"]),
        (["labels"], None, ["-o/--output"]),
    ],
)
def test_refusals(refused, session, words, argument, named):
    message = refused("export", "cells.agglo", *words)
    assert message.argument == argument
    assert all(word in message for word in named), message
    assert message.remedies or "--help" in message


KIND = """
from napari_agglo.session import exporter

@exporter("typed", label="Options", suffixes=(".txt",))
def typed(view, path, *, n: int = 1, size: float | None = None, flag: bool = False, name: str):
    path.write_text(repr((n, size, flag, name)))
"""
PROGRAM = """
import sys
from napari_agglo.cli import main
for options in sys.argv[1:]:
    words = [word for option in options.split() for word in ("--option", option)]
    words += ["--option", "name=a=b", "-q", "-o", "typed.txt"]
    main(["export", "cells.agglo", "typed", *words])
    print(open("typed.txt").read())
"""


def test_options_are_read_by_their_type(session, tmp_path):
    """An export kind of another package, which an entry point declares."""
    (tmp_path / "agglo_typed.py").write_text(KIND)
    info = tmp_path / "agglo_typed-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agglo-typed\nVersion: 1\n")
    entry = "[napari_agglo.exports]\ntyped = agglo_typed:typed\n"
    (info / "entry_points.txt").write_text(entry)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    refused = ["n=x", "flag=1", "size=", "m=1"]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, "n=3 size=0.5 flag=true", *refused],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert set(ended.stdout.splitlines()) == {"(3, 0.5, True, 'a=b')"}
    lines = ended.stderr.splitlines()
    assert len(lines) == len(refused)
    for line, option in zip(lines, refused, strict=True):
        assert line.startswith(f"napari-agglo: --option {option}: ")
