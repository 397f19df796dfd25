"""Labels of a run that are copied to a URL: the same objects, also after a stop at any of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
import zarr
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.blocks import _remote_copy
from napari_agglo.errors import Cancelled, SetOption
from napari_agglo.volumes import open_levels, open_volume, write_labels

STORES = ("labels.ome.zarr", "labels.precomputed")
METADATA = ("zarr.json", "info", ".zattrs", ".zgroup", ".zarray")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Give the boundary map and the folder of a complete run without a copy."""
    where = tmp_path_factory.mktemp("copied")
    boundary = agglo.sample("neuropil2d").cues["boundary"][:80, :100]
    zarr.create_array(str(where / "b.zarr"), data=boundary, chunks=(40, 50))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napari_agglo.volumes._ome_zarr_metadata._SMALL", 500)
        plan_in(where / "result", where)
    assert blocks.run(where / "result").is_complete
    return where


def plan_in(folder, where, **options):
    plan = blocks.plan(
        folder, str(where / "b.zarr"), block=(40, 50), chunks=(10, 10), precomputed=True,
        **{"threshold": 0.3, **options},
    )  # fmt: skip
    assert plan.levels == 3, "test invalid"
    return plan


@pytest.fixture
def run(finished, tmp_path, monkeypatch):
    """Give a copy of the complete run, a URL, and a function that plans a copy to the URL."""
    monkeypatch.setattr("napari_agglo.volumes._ome_zarr_metadata._SMALL", 500)
    folder = shutil.copytree(finished / "result", tmp_path / "result")
    url = f"memory://{tmp_path.name}/cells"

    def plan(where=folder, **options):
        return plan_in(where, finished, **{"copy_to": url, **options})

    return SimpleNamespace(folder=folder, url=url, plan=plan, where=finished)


@pytest.fixture
def writes(monkeypatch):
    """Give the names of objects that are written, and let the k-th of the chunks fail."""
    made = SimpleNamespace(names=[], fail_at=None)
    system = type(fsspec.filesystem("memory"))
    pipe = system.pipe_file

    def counted(self, path, value, **options):
        made.names.append(path.partition("/cells/")[2])
        if made.fail_at is not None and len(chunks(made.names)) > made.fail_at:
            raise ConnectionError("the line is cut")
        return pipe(self, path, value, **options)

    monkeypatch.setattr(system, "pipe_file", counted)
    return made


def chunks(names):
    return [name for name in names if name.rpartition("/")[2] not in METADATA and "/" in name]


def files_of(folder):
    """Return the bytes of all files of the stores by name."""
    paths = [path for store in STORES for path in (folder / store).rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def objects_at(url):
    system, root = fsspec.core.url_to_fs(url)
    names = {path: path.partition(f"{root.strip('/')}/")[2] for path in system.find(root)}
    return {name: system.cat_file(path) for path, name in names.items() if "/" in name}


def check_copy(run):
    """Check that the copy has every object, byte for byte, and opens as the labels."""
    assert objects_at(run.url) == files_of(run.folder)
    result = blocks.open(run.folder)
    assert result.copies == [f"{run.url}/{store}" for store in STORES]
    for level, labels in enumerate(result.labels):
        copied = open_levels(f"{run.url}/labels.ome.zarr")[level].data
        assert np.array_equal(copied[...], labels[...])
    precomputed = open_volume(f"{run.url}/labels.precomputed").load()
    assert np.array_equal(precomputed, result.labels[0][...])
    assert len(np.unique(precomputed)) > 5, "test invalid"


@pytest.mark.parametrize("version", ["0.5", "0.4"])
def test_labels_are_copied_object_by_object(run, writes, version):
    run.plan(version=version)
    state = blocks.status(run.folder)
    assert [stage.name for stage in state.stages][-2:] == ["copy", "publish"]
    seen = []
    done = blocks.run(run.folder, progress=seen.append)
    n_tasks = state.stages[-2].tasks
    assert done.done["copy"] == n_tasks == 12
    assert {one.stage for one in seen} >= {"copy", "publish"}
    assert done.is_complete
    check_copy(run)
    assert len(chunks(writes.names)) == len(chunks(objects_at(run.url))), "each is sent once"
    order = [name for name in writes.names if "/" in name]
    assert set(order[-6:]) >= {"labels.precomputed/info"}
    assert all(name.rpartition("/")[2] in METADATA for name in order[-4:]), "metadata come last"
    writes.names.clear()
    assert blocks.run(run.folder).done == {}
    assert writes.names == []


@pytest.mark.parametrize("after", [0, 1, 57, 95])
def test_a_copy_goes_on_where_it_stopped(run, writes, after):
    run.plan()
    writes.fail_at = after
    with refuses("folder", "run again") as refused:
        blocks.run(run.folder, workers=1)
    assert f"{run.url}/labels." in str(refused.value), "the object is named"
    assert "the line is cut" in str(refused.value)
    with refuses("source"):  # half of a volume is not taken for a whole one
        open_volume(f"{run.url}/labels.ome.zarr")
    (stage,) = [one for one in blocks.status(run.folder).stages if one.name == "copy"]
    assert stage.done < stage.tasks
    assert stage.failed
    there = set(chunks(objects_at(run.url)))
    assert len(there) == after
    writes.fail_at = None
    writes.names.clear()
    blocks.run(run.folder)
    assert not there & set(writes.names), "objects that are there are not sent again"
    check_copy(run)
    assert not any(one.failed for one in blocks.status(run.folder).stages)


def test_objects_that_were_changed_or_lost_are_written_again(run, writes):
    run.plan()
    blocks.run(run.folder)
    system, root = fsspec.core.url_to_fs(run.url)
    changed, lost = sorted(chunks(objects_at(run.url)))[3:5]
    content = system.cat_file(f"{root}/{changed}")
    system.pipe_file(f"{root}/{changed}", bytes(len(content)))  # as many bytes, but others
    system.rm_file(f"{root}/{lost}")
    shutil.rmtree(run.folder / "done" / "copy")
    writes.names.clear()
    blocks.run(run.folder)
    assert sorted(chunks(writes.names)) == sorted([changed, lost]), "each once, in any order"
    check_copy(run)
    # All of the copy is removed: it is made again, as a lost store of the folder is.
    system.rm(root, recursive=True)
    blocks.run(run.folder)
    check_copy(run)


def test_a_list_with_half_a_line_is_read(run, writes):
    run.plan()
    blocks.run(run.folder)
    shutil.rmtree(run.folder / "done" / "copy")
    lists = sorted((run.folder / "copied").rglob("*.jsonl"))
    lists[0].write_bytes(lists[0].read_bytes()[:-5])
    n = lists[1].read_text().count("[")
    lists[1].write_bytes(b"\xff\x00")
    writes.names.clear()
    blocks.run(run.folder)
    assert len(chunks(writes.names)) == 1 + n > 2
    check_copy(run)
    shutil.rmtree(run.folder / "done" / "copy")
    writes.names.clear()
    blocks.run(run.folder)
    assert chunks(writes.names) == [], "what was written after half a line is read"


def test_a_cancelled_copy_goes_on(run, writes):
    run.plan()

    def stop(state):
        if state.stage == "copy" and len(chunks(writes.names)) > 20:
            raise Cancelled("Cancelled.")

    with pytest.raises(Cancelled):
        blocks.run(run.folder, progress=stop)
    assert not blocks.status(run.folder).is_complete
    first = list(writes.names)
    blocks.run(run.folder)
    assert len(chunks(writes.names)) == len(set(chunks(writes.names))), "none is sent twice"
    assert len(writes.names) > len(first) > 20
    check_copy(run)


def test_parts_of_a_run_copy_their_tasks(run):
    run.plan()
    for part in ((1, 2), (2, 2), (1, 2), (2, 2)):
        blocks.run(run.folder, part=part)
    assert blocks.status(run.folder).is_complete
    check_copy(run)


def test_another_threshold_replaces_the_copy(run, writes):
    run.plan()
    blocks.run(run.folder)
    before = objects_at(run.url)
    run.plan(threshold=0.6)
    writes.fail_at = 2
    writes.names.clear()
    with refuses("folder"):
        blocks.run(run.folder)
    with refuses("source"):  # a mixture of both is not to be read
        open_volume(f"{run.url}/labels.precomputed")
    writes.fail_at = None
    blocks.run(run.folder)
    assert objects_at(run.url) != before
    check_copy(run)


def test_chunks_that_the_folder_lost_are_made_again_before_they_are_copied(run):
    run.plan()
    expected = files_of(run.folder)
    (run.folder / "labels.ome.zarr" / "0" / "c" / "0" / "1").unlink()
    some = next((run.folder / "labels.precomputed").glob("*/0-64_*"))
    some.write_bytes(b"")
    blocks.run(run.folder)
    assert files_of(run.folder) == expected
    check_copy(run)


def test_a_place_of_others_is_refused(run, finished, tmp_path):
    run.plan()
    blocks.run(run.folder)
    before = objects_at(run.url)
    with refuses("copy_to", "another URL"):  # of another results folder
        run.plan(tmp_path / "other")
    with refuses("copy_to", "another URL"):  # also for a plan that is only printed
        run.plan(None)
    foreign = f"memory://{tmp_path.name}/foreign/cells"
    fsspec.filesystem("memory").pipe_file(f"{foreign}/labels.ome.zarr/zarr.json", b"{}")
    with refuses("copy_to", "another URL"):
        run.plan(copy_to=foreign)
    elsewhere = f"memory://{tmp_path.name}/elsewhere/cells"
    run.plan(copy_to=elsewhere)
    fsspec.filesystem("memory").pipe_file(f"{elsewhere}/labels.precomputed/info", b"{}")
    fsspec.filesystem("memory").rm_file(f"{elsewhere}/napari-agglo-copy.json")
    with refuses("copy_to", "another URL"):  # it came after the plan
        blocks.run(run.folder)
    assert objects_at(run.url) == before


def test_places_that_cannot_be_written_to_are_refused(run, finished, tmp_path):
    for url, words in (
        ("https://example.org/cells", "s3://"),
        ("memory://", "BUCKET"),
        (str(tmp_path / "cells"), "s3://"),
        ("nonsense://a/b", "s3://"),
        (7, "s3://"),
    ):
        with refuses("copy_to", words):
            run.plan(copy_to=url)
    with refuses("folder", SetOption):
        blocks.plan("s3://bucket/result", str(finished / "b.zarr"))
    with refuses("path", "--copy-to"):
        write_labels("s3://bucket/a.ome.zarr", np.ones((2, 2), np.uint8))
    state = json.loads((run.folder / "plan.json").read_text())
    assert state["copy_to"] == "", "the plan before stays"


def test_a_plan_without_a_copy_has_none(run):
    assert blocks.open(run.folder).copies == []
    run.plan()
    with refuses("folder", "blocks run"):
        _ = blocks.open(run.folder).copies


def test_a_copy_to_s3(run, server, s3, tmp_path):
    """The checksums of the server tell what is there: the lists of the folder are not needed."""
    handler, bucket = server[0].RequestHandlerClass, tmp_path / "served" / "bucket"
    handler.written = []
    bucket.mkdir(parents=True)
    run.url = f"{s3}/cells"
    run.plan(copy_to=run.url)
    blocks.run(run.folder)
    assert files_of(bucket / "cells") == files_of(run.folder)
    copied = open_volume(f"{run.url}/labels.ome.zarr").load()
    assert np.array_equal(copied, blocks.open(run.folder).labels[0][...])
    shutil.rmtree(run.folder / "done" / "copy")
    for path in (run.folder / "copied").rglob("*.jsonl"):
        path.unlink()
    (lost,) = sorted(bucket.glob("cells/labels.ome.zarr/0/c/0/1"))
    lost.unlink()
    handler.written.clear()
    blocks.run(run.folder)
    assert [name for name in handler.written if name.endswith("c/0/1")] == handler.written
    assert files_of(bucket / "cells") == files_of(run.folder)
    handler.refused = ("PUT",)
    with refuses("copy_to", "log in") as refused:
        run.plan(copy_to=f"{s3}/other")
    assert f"{s3}/other/" in str(refused.value)


KILLED = """
import os, signal, sys
from fsspec.implementations.local import LocalFileSystem
from napari_agglo import blocks
pipe, left = LocalFileSystem.pipe_file, [int(sys.argv[2])]
def killed(self, path, value, **options):
    if "/labels." in str(path):
        left[0] -= 1
        if left[0] < 0:
            with open(path, "wb") as half:
                half.write(value[: len(value) // 2])
                half.flush()
                os.kill(os.getpid(), signal.SIGKILL)
    return pipe(self, path, value, **options)
LocalFileSystem.pipe_file = killed
blocks.run(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 63, 95])
def test_a_killed_copy_goes_on(run, tmp_path, after):
    """Also one that left half of an object, as a file system at a URL may have it."""
    run.url = f"file://{tmp_path}/out/cells"
    run.plan(copy_to=run.url)
    command = [sys.executable, "-c", KILLED, str(run.folder), str(after)]
    killed = subprocess.run(command, env=os.environ, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    there = files_of(tmp_path / "out" / "cells")
    assert there
    times = {name: os.stat(tmp_path / "out" / "cells" / name).st_mtime_ns for name in there}
    expected = files_of(run.folder)
    blocks.run(run.folder)
    check_copy(run)
    kept = [
        name
        for name, time in times.items()
        if os.stat(tmp_path / "out" / "cells" / name).st_mtime_ns == time
    ]
    assert all(there[name] == expected[name] for name in kept), "no half of an object is kept"
    # Each of the threads of two tasks may have written an object that is not in the list yet.
    assert len(kept) >= after - 2 * _remote_copy._AT_A_TIME
