"""Targets of exports: not in a session, not one in the other, and beside other datasets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import h5py
import numpy as np
import pytest
from oracles.disks import tree_of
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Session
from napari_agglo.errors import SetOption
from napari_agglo.session import export_kinds, exporter
from napari_agglo.session._exports import exports

LABELS = np.array([[1, 1, 2, 2], [3, 3, 4, 4]])
KINDS = [kind.name for kind in export_kinds()]


@pytest.fixture
def session(tmp_path):
    graph = agglo.region_graph(LABELS, np.linspace(0, 1, 8).reshape(2, 4))
    with Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.0
        made.merge(1, 2)
        yield made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    ["journal.jsonl", "manifest.json", "new.tif", "snapshots/new.csv", "../a.agglo", "../in.csv"],
)
def test_nothing_is_written_into_a_session(session, tmp_path, kind, name):
    os.symlink(session.path / "journal.jsonl", tmp_path / "in.csv")
    (tmp_path / "link").symlink_to(session.path)
    before = tree_of(session.path)
    for way in (session.path, tmp_path / "link"):
        with refuses("path", "choose another folder"):
            session.export(way / name, kind, overwrite=True)
    assert tree_of(session.path) == before


def test_no_export_goes_into_another_or_its_rest(session, tmp_path):
    with Session.create(tmp_path / "b.agglo", session.graph) as other:
        (other.path / "manifest.json").write_bytes(b"{")
    with refuses("path", "choose another folder"):
        session.export(tmp_path / "b.agglo" / "x.tif")
    with refuses("superpixels", "choose another folder"):
        session.export(tmp_path / "map", "agglomerate", superpixels=session.path / "x.zarr")
    with refuses("path", "choose another folder"):
        session.export(f"{session.path}/x.h5:seg")
    assert not (tmp_path / "map").exists()
    session.export(tmp_path / "agglo.tif")  # beside one is well


@pytest.mark.parametrize(
    ("path", "superpixels"),
    [("p.zarr", "p.zarr"), ("p.zarr", "./x/../p.zarr"), ("p", "p/s.zarr"), ("p.zarr/map", "p.zarr"),
     ("p.h5", "p.h5:seg")],
)  # fmt: skip
def test_two_targets_in_one_place_are_refused(session, tmp_path, path, superpixels):
    (tmp_path / "x").mkdir()
    before = sorted(os.listdir(tmp_path))
    with refuses("superpixels", "choose another folder or name for it"):
        session.export(f"{tmp_path}/{path}", "agglomerate", superpixels=f"{tmp_path}/{superpixels}")
    assert sorted(os.listdir(tmp_path)) == before


def test_a_new_dataset_beside_others(session, tmp_path):
    session.export(f"{tmp_path}/x.h5:seg")
    seen = session.labels()
    session.merge(3, 4)
    session.export(f"{tmp_path}/x.h5:seg2")
    for key in ("seg", "/seg2", "./seg2/"):
        with refuses("path", "choose another name") as caught:
            session.export(f"{tmp_path}/x.h5:{key}")
        assert f"x.h5:{key.strip('./')} " in caught.value.problem
    with refuses("path", "choose another name"):
        session.export(f"{tmp_path}/x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert (file["seg"][:] == seen).all()
        assert (file["seg2"][:] == session.labels()).all()
    (tmp_path / "no.h5").write_bytes(b"not HDF5")
    with refuses("path", "choose another name"):
        session.export(f"{tmp_path}/no.h5:seg")


@pytest.mark.parametrize("path", [None, 3, "", b"x.tif", "a\0.tif"])
def test_an_invalid_path_is_refused(session, path):
    for kind in KINDS:
        with refuses("path", "pass a str or a Path"):
            session.export(path, kind)
    for opening in (Session.open, Session.recover, lambda p: Session.create(p, session.graph)):
        with refuses("path", "pass a str or a Path"):
            opening(path)


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [
        ("least", [1, np.int64(2)], ["x", 1.5, True, None]),
        ("share", [1, 0.5, np.float32(2), None], ["x", True]),
        ("whole", [True, np.bool_(False)], ["x", 1]),
        ("name", ["x"], [b"x", 1]),
        ("place", ["x", Path("x")], [1]),
        ("table", [1, "x", [3]], []),  # of a type that is not checked
    ],
)
def test_options_have_their_types(session, tmp_path, monkeypatch, option, good, bad):
    @exporter("typed", label="Typed")
    def write(
        view, path, *, least: Annotated[int, "Help"] = 1, share: float | None = 1.0,
        whole: bool = False, name: str = "", place: Path = Path(), table: list[int] = (),
    ):  # fmt: skip
        path.write_text("")

    monkeypatch.setitem(exports._values, "typed", write)
    for value in good:
        session.export(tmp_path / "x", "typed", overwrite=True, **{option: value})
    for value in bad:
        with refuses(option, facts=("'typed'",)):
            session.export(tmp_path / "x", "typed", overwrite=True, **{option: value})


def test_options_are_known_ones(session, tmp_path):
    with refuses("affinity", "use affinities or superpixels"):
        session.export(tmp_path / "m", "agglomerate", affinity=[1])
    with refuses("superpixels", "leave it out"):
        session.export(tmp_path / "m.csv", "edits", superpixels="x")


@pytest.mark.parametrize(
    ("suffixes", "right"), [(".txt", (".txt",)), ("txt", (".txt",)), (("txt",), ()), ((3,), ())]
)
def test_suffixes_are_a_tuple_of_suffixes(suffixes, right):
    with refuses("suffixes", SetOption("suffixes", right), facts=("'wrong'",)):
        exporter("wrong", label="Wrong", suffixes=suffixes)


def with_text(view, path, *, least: int = "1"): ...
def with_none(view, path, *, least: Annotated[int, "Smallest size"] = None): ...  # noqa: RUF013
def with_number(view, path, *, least: str | None = 1.5): ...


@pytest.mark.parametrize("write", [with_text, with_none, with_number])
def test_a_default_is_of_the_type_of_its_option(write):
    with refuses("least", "declare", facts=("'wrong'", repr(write.__kwdefaults__["least"]))):
        exporter("wrong", label="Wrong")(write)
