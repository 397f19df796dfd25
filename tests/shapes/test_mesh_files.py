"""Files of meshes, read back by plain readers of their formats."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.cli import main
from napari_agglo.shapes import Mesh, write_mesh, write_precomputed

SPACING = (4.0, 1.0, 2.0)


@pytest.fixture(scope="module")
def meshes():
    labels = np.zeros((5, 7, 9), int)
    labels[:3, 1:6, 2:8], labels[3:, 1:6, 2:8] = 5, 2**40
    return {one: agglo.mesh(labels, one, spacing=SPACING) for one in (5, 2**40)}


def volume(vertices, faces):
    a, b, c = (np.asarray(vertices, float)[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def read_ply(path):
    head, _, body = path.read_bytes().partition(b"end_header\n")
    words = [line.split() for line in head.decode().splitlines()]
    n, m = (int(line[2]) for line in words if line[0] == "element")
    vertices = np.frombuffer(body, "<f4", 3 * n).reshape(n, 3)
    kind = {"int": "<i4", "double": "<f8"}[words[-1][1]]
    rows = np.frombuffer(body, [("n", "u1"), ("corners", "<i4", 3), ("segment", kind)], m, 12 * n)
    assert (rows["n"] == 3).all()
    assert len(body) == 12 * n + rows.nbytes
    return vertices, rows["corners"], rows["segment"]


def read_obj(path):
    lines = [line.split() for line in path.read_text().splitlines()]
    vertices = np.array([line[1:] for line in lines if line[0] == "v"], float)
    faces = np.array([line[1:] for line in lines if line[0] == "f"], int) - 1
    return vertices, faces, [line[1] for line in lines if line[0] == "o"]


def read_stl(path):
    data = path.read_bytes()
    kind = [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
    rows = np.frombuffer(data, kind, offset=84)
    assert len(rows) == np.frombuffer(data, "<u4", 1, 80)[0]
    corners = rows["corners"].reshape(-1, 3)
    return corners, np.arange(len(corners)).reshape(-1, 3), rows["normal"]


def test_files_of_two_segments(tmp_path, meshes):
    whole = sum(one.volume for one in meshes.values())
    vertices, faces, segments = read_ply(write_mesh(tmp_path / "a.ply", meshes))
    assert volume(vertices, faces) == pytest.approx(whole, rel=1e-4), "x, y, z, outwards"
    assert [int(one) for one in np.unique(segments)] == [5, 2**40]
    first = meshes[5]
    np.testing.assert_array_equal(vertices[: len(first.vertices)], first.vertices[:, ::-1])

    again, corners, names = read_obj(write_mesh(tmp_path / "a.obj", meshes))
    np.testing.assert_allclose(again, vertices, rtol=1e-6)
    np.testing.assert_array_equal(corners, faces)
    assert names == ["segment_5", f"segment_{2**40}"]

    points, triangles, normals = read_stl(write_mesh(tmp_path / "a.stl", meshes))
    np.testing.assert_array_equal(points, vertices[faces].reshape(-1, 3))
    assert volume(points, triangles) == pytest.approx(whole, rel=1e-4)
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1, abs=1e-4)
    assert len(read_ply(write_mesh(tmp_path / "b.ply", first))[1]) == len(first.faces)


def read_precomputed(folder, segment):
    """Read a mesh as neuroglancer's specification says, in nanometres."""
    assert json.loads((folder / "info").read_text()) == {"@type": "neuroglancer_legacy_mesh"}
    (name,) = json.loads((folder / f"{segment}:0").read_text())["fragments"]
    data = (folder / name).read_bytes()
    n = int(np.frombuffer(data, "<u4", 1)[0])
    vertices = np.frombuffer(data, "<f4", 3 * n, 4).reshape(n, 3)
    return vertices, np.frombuffer(data, "<u4", offset=4 + 12 * n).reshape(-1, 3)


def test_a_folder_for_neuroglancer(tmp_path, meshes):
    folder = tmp_path / "mesh"
    write_precomputed(folder, meshes, spacing=SPACING, nanometres=1000)
    vertices, faces = read_precomputed(folder, 2**40)
    assert volume(vertices, faces) == pytest.approx(1e9 * meshes[2**40].volume, rel=1e-4)
    # The corner of the first voxel is 0 there: rows 1 to 6 are y = 1 to 6 voxels, not 0.5 to 5.5.
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    assert middle == pytest.approx((10_000, 3500, 16_000), rel=0.02)
    write_precomputed(folder, {5: meshes[5]})
    assert sorted(one.name for one in folder.iterdir()) == ["5", "5:0", "info"]
    (folder / "notes.txt").write_text("mine")
    with refuses("path", "choose another name, or remove it first"):
        write_precomputed(folder, meshes)
    assert (folder / "notes.txt").read_text() == "mine"
    with refuses("nanometres", "pass 1000 for micrometres"):
        write_precomputed(tmp_path / "other", meshes, nanometres=0)


def test_refusals_of_files(tmp_path, meshes):
    with refuses("path", "name it a.ply"):
        write_mesh(tmp_path / "a.xyz", meshes)
    with refuses("meshes"):
        write_mesh(tmp_path / "a.ply", {})
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def session(tmp_path):
    labels = np.arange(1, 9).reshape(2, 2, 2).repeat(4, 0).repeat(4, 1).repeat(4, 2)
    graph = agglo.region_graph(labels, np.full(labels.shape, 0.6), spacing=SPACING)
    with agglo.Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.3
        made.merge(3, 4)
        yield made


def test_a_session_exports_the_surfaces_of_its_segments(tmp_path, session):
    session.export(tmp_path / "all.ply", "mesh")
    _, _, segments = read_ply(tmp_path / "all.ply")
    assert np.unique(segments).tolist() == [1, 2, 3, 5, 6, 7, 8]
    session.export(tmp_path / "large.obj", "mesh", min_size=100, smooth=0)
    vertices, faces, names = read_obj(tmp_path / "large.obj")
    assert names == ["segment_3"]
    plain = session.segments.mesh(3, smooth=0)
    assert volume(vertices, faces) == pytest.approx(plain.volume, rel=1e-4)
    session.export(tmp_path / "some", "precomputed_mesh", segments=[3, 8])
    assert {one.name for one in (tmp_path / "some").iterdir()} == {"3", "3:0", "8", "8:0", "info"}
    with refuses("segments", "take ids of segments.ids()"):
        session.export(tmp_path / "b.ply", "mesh", segments="3, 4")
    with refuses("segments", "pass '7, 12', or a list of numbers"):
        session.export(tmp_path / "b.ply", "mesh", segments="axon")
    with refuses("min_size", "pass a smaller size"):
        session.export(tmp_path / "b.ply", "mesh", min_size=10**6)
    with refuses("path", "name it b.ply"):
        session.export(tmp_path / "b.tif", "mesh")
    assert not (tmp_path / "b.ply").exists()


def test_the_command_line_exports_surfaces(tmp_path, session, capsys):
    session.close()
    folder, out = str(session.path), str(tmp_path / "three.stl")
    assert main(["export", folder, "mesh", "-o", out, "--option", "segments=3,5"]) == 0
    assert len(read_stl(tmp_path / "three.stl")[1]) > 100
    assert isinstance(Mesh(np.zeros((0, 3)), np.zeros((0, 3))), Mesh)
    out = str(tmp_path / "mesh")
    options = ["--option", "segments=3", "--option", "unit=um"]
    assert main(["export", folder, "precomputed_mesh", "-o", out, *options]) == 0
    assert read_precomputed(tmp_path / "mesh", 3)[0].max() > 1000
