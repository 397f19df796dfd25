"""Faults of a block-wise run: damage, killed processes, full disks, two runs, changed inputs."""

from __future__ import annotations

import errno
import hashlib
import os
import pkgutil
import shutil

import imageio.v3 as imageio
import numpy as np
import pytest
import zarr
from block_runs import content, copied, finished
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.errors import Cancelled, SetOption


@pytest.fixture(scope="module")
def boundary():
    return agglo.sample("neuropil2d").cues["boundary"][:160, :200]


@pytest.fixture
def place(tmp_path, boundary):
    """Give a folder with a plan of twelve blocks, not yet run."""
    zarr.create_array(str(tmp_path / "boundary.zarr"), data=boundary, chunks=(40, 50))
    blocks.plan(tmp_path / "result", str(tmp_path / "boundary.zarr"), block=(60, 50))
    return tmp_path


@pytest.fixture
def expected(tmp_path_factory, boundary):
    where = tmp_path_factory.mktemp("expected")
    zarr.create_array(str(where / "boundary.zarr"), data=boundary, chunks=(40, 50))
    blocks.plan(where / "result", str(where / "boundary.zarr"), block=(60, 50))
    blocks.run(where / "result")
    return content(where / "result")


@pytest.mark.slow
def test_a_second_run_has_nothing_to_do(place):
    assert blocks.run(place / "result").is_complete
    before = finished(place / "result")
    again = blocks.run(place / "result")
    assert (again.done, again.is_complete) == ({}, True)
    assert finished(place / "result") == before
    assert len(set(before)) == len(before)


def test_another_threshold_writes_only_the_labels(place, boundary):
    blocks.run(place / "result")
    source = str(place / "boundary.zarr")
    blocks.plan(place / "result", source, block=(60, 50), threshold=0.2)
    assert set(blocks.run(place / "result").done) == {"table", "labels"}
    result = blocks.open(place / "result")
    assert np.array_equal(result.labels[0][...], result.tree.segment(0.2))


def test_tables_of_a_complete_run_may_be_removed(place, expected):
    folder, source = place / "result", str(place / "boundary.zarr")
    blocks.run(folder)
    shutil.rmtree(folder / "tables")
    assert blocks.status(folder).is_complete
    assert blocks.run(folder).done == {}
    blocks.plan(folder, source, block=(60, 50), threshold=0.2)
    assert set(blocks.run(folder).done) == {"table", "labels"}
    result = blocks.open(folder)
    assert np.array_equal(result.labels[0][...], result.tree.segment(0.2))
    # Another graph needs them again: all is done again, and is what it was.
    blocks.plan(folder, source, block=(60, 50), statistics="all")
    assert {"cut", "statistics", "graph"} <= set(blocks.run(folder).done)
    blocks.plan(folder, source, block=(60, 50))
    blocks.run(folder)
    kept = {name: value for name, value in expected.items() if "tables/join" not in name}
    assert content(folder) == kept, "only joined pieces, whose numbers are known, are not needed"


@pytest.mark.slow
def test_tables_of_a_run_that_goes_on_are_needed(place, expected):
    folder = place / "result"
    for stage in ("cut", "join", "number", "superpixels", "statistics"):
        blocks.run(folder, stage=stage)
    shutil.rmtree(folder / "tables")
    assert blocks.status(folder).next_stage == "cut"
    blocks.run(folder)
    assert content(folder) == expected


@pytest.mark.parametrize("block", [(60, 50), (23, 31), (160, 200)])
def test_absent_chunks_of_an_input_are_counted_once(place, block):
    # Chunks of 40 x 50, in and around which several blocks have voxels, and more their halos.
    for row, column in [(0, 0), (1, 2), (3, 3)]:
        (place / "boundary.zarr" / "c" / str(row) / str(column)).unlink()
    blocks.plan(place / "result", str(place / "boundary.zarr"), block=block)
    run = blocks.run(place / "result")
    assert run.absent == {"cues['boundary']": 3}
    assert blocks.status(place / "result").absent == run.absent


FULL, DENIED = (OSError(code, os.strerror(code)) for code in (errno.ENOSPC, errno.EACCES))


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (FULL, "the disk is full", "free some space"),
        (DENIED, "Permission denied", "mend the cause"),
    ],
)
def test_a_fault_of_every_block_stops_the_run_which_goes_on_later(
    place, expected, monkeypatch, error, message, remedy
):
    fail_after(3, error, monkeypatch, "napari_agglo.blocks._tables.files.write_new")
    with refuses("folder", remedy) as refused:
        blocks.run(place / "result", workers=1)
    assert message in str(refused.value)
    status = blocks.status(place / "result")
    assert status.stages[0].failed == 1, "others would fail in the same way and are not begun"
    monkeypatch.undo()
    assert blocks.run(place / "result").is_complete
    assert content(place / "result") == expected
    assert not any((place / "result" / "failures").iterdir())


def fail_after(times, error, monkeypatch, *names):
    """Let functions work so many times, then raise an error."""
    left = [times]

    def failing(function):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] < 0:
                raise error
            return function(*arguments, **options)

        return call

    for name in names:
        monkeypatch.setattr(name, failing(pkgutil.resolve_name(name)))


FULL_DISKS = [  # a chunk, an array, a marker, a new store, and the note that all is done
    ("napari_agglo.blocks._stores.files.write_whole", 0, "pyramid-2/*"),
    ("napari_agglo.volumes._precomputed.Path.write_bytes", 1, "precomputed-0/*"),
    ("numpy.lib.format.write_array", 0, "tree/*"),
    ("numpy.lib.format.write_array_header_1_0", 0, "graph/*"),
    ("napari_agglo.blocks._engine.write_marker", 2, "statistics/*"),
    ("napari_agglo.blocks._stores.create_levels", 0, "store"),
    ("napari_agglo.blocks._task_markers.files.write_new", 0, "complete.json"),
]


@pytest.mark.parametrize(
    ("where", "times", "forgotten"),
    [
        ("napari_agglo.blocks._stores.files.write_whole", 2, "labels/*"),
        *(pytest.param(*row, marks=pytest.mark.slow) for row in FULL_DISKS),
    ],
)
def test_a_full_disk_is_named_and_the_run_goes_on(
    undisturbed, tmp_path, monkeypatch, where, times, forgotten
):
    folder = copied(undisturbed.folder, tmp_path / "r")
    if forgotten == "store":
        shutil.rmtree(folder / "labels.ome.zarr")
    else:
        victims = list((folder / "done").glob(forgotten))
        assert victims, "test invalid"
        for victim in victims:
            victim.unlink()
    fail_after(times, FULL, monkeypatch, where)
    with refuses("folder", "free some space") as refused:
        blocks.run(folder, workers=1)
    assert "the disk is full" in str(refused.value)
    monkeypatch.undo()
    assert blocks.run(folder).is_complete
    assert content(folder) == undisturbed.content
    assert not list(folder.rglob("*.partial")), "nothing is left over"


def test_a_plan_on_a_full_disk_leaves_the_one_before(place, monkeypatch):
    source = str(place / "boundary.zarr")
    before = blocks.open(place / "result").plan
    fail_after(0, FULL, monkeypatch, "napari_agglo.blocks._plan.files.write_new")
    with refuses("folder", "free some space"):
        blocks.plan(place / "result", source, block=(60, 50), threshold=0.1)
    assert blocks.open(place / "result").plan == before


def test_a_failed_block_has_a_log_and_the_others_are_done(place, boundary):
    array = zarr.open_array(str(place / "boundary.zarr"), mode="r+")
    array[150, 190] = np.nan
    source = str(place / "boundary.zarr")
    blocks.plan(place / "result", source, block=(60, 50), halo=4)
    with refuses("folder", "failures") as refused:
        blocks.run(place / "result")
    assert "1 of 12 tasks of stage cut" in str(refused.value)
    assert "block 11 ([120:160, 150:200]" in str(refused.value)
    log = (place / "result" / "failures" / "cut-000011.log").read_text()
    assert "--stage cut --block 11" in log
    assert source in log
    assert blocks.status(place / "result").stages[0].done == 11


def test_a_changed_input_is_refused(place, boundary):
    blocks.run(place / "result", stage="cut")
    array = zarr.open_array(str(place / "boundary.zarr"), mode="r+")
    array[0:40, 0:50] = boundary[40:80, 0:50]
    with refuses("cues['boundary']", "plan again"):
        blocks.run(place / "result")
    blocks.plan(place / "result", str(place / "boundary.zarr"), block=(60, 50))
    assert blocks.run(place / "result").done["cut"] == 12


def test_a_chunk_of_the_same_size_and_an_older_time_is_noticed(place):
    """As of a copy of another store: number, total size and latest time are those of before."""
    blocks.run(place / "result", stage="cut")
    chunk = place / "boundary.zarr" / "c" / "0" / "0"
    before, content_before = chunk.stat(), chunk.read_bytes()
    chunk.write_bytes(content_before[:-1] + bytes([content_before[-1] ^ 1]))
    os.utime(chunk, ns=(before.st_atime_ns, before.st_mtime_ns - 10**12))
    with refuses("cues['boundary']", "plan again"):
        blocks.run(place / "result")
    chunk.write_bytes(content_before)
    os.utime(chunk, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert blocks.run(place / "result").done.get("cut") is None


def test_another_array_in_the_group_of_an_input_is_no_change(tmp_path, boundary):
    group = zarr.open_group(str(tmp_path / "volumes.zarr"), mode="w")
    group.create_array("raw", data=boundary, chunks=(40, 50))
    source = f"{tmp_path / 'volumes.zarr'}:raw"
    blocks.plan(tmp_path / "r", source, block=(60, 50))
    blocks.run(tmp_path / "r", stage="cut")
    group.create_array("notes", data=np.zeros(5))
    group.attrs["author"] = "somebody"
    assert blocks.run(tmp_path / "r", stage="cut").done == {}
    group["raw"][:40] = boundary[40:80]
    with refuses("cues['boundary']", "plan again"):
        blocks.run(tmp_path / "r")


def test_another_spacing_in_the_group_of_an_input_is_a_change(tmp_path, boundary):
    agglo.write_labels(
        str(tmp_path / "gold.ome.zarr"), (boundary * 9).astype(np.uint8), spacing=(2, 2)
    )
    zarr.create_array(str(tmp_path / "boundary.zarr"), data=boundary)
    gold = str(tmp_path / "gold.ome.zarr")
    blocks.plan(tmp_path / "r", str(tmp_path / "boundary.zarr"), gold=gold, spacing=(2, 2))
    path = tmp_path / "gold.ome.zarr" / "zarr.json"
    text = path.read_text()
    path.write_text(text.replace("2.0", "3.0"))
    with refuses("gold", "plan again"):
        blocks.run(tmp_path / "r")


def test_a_restored_input_is_accepted_once_and_its_blocks_are_kept(place):
    blocks.run(place / "result", stage="cut")
    chunk = place / "boundary.zarr" / "c" / "0" / "0"
    os.utime(chunk, ns=(0, chunk.stat().st_mtime_ns + 10**9))
    accept = SetOption(
        "accept_inputs", True, when="if its content is the same, as of a restored copy"
    )
    with refuses("cues['boundary']", accept):
        blocks.run(place / "result")
    done = blocks.run(place / "result", accept_inputs=True).done
    assert "cut" not in done
    assert "labels" in done
    assert blocks.run(place / "result").done == {}, "the plan remembers it"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with refuses("cues['boundary']", "plan again"):
        blocks.run(place / "result", accept_inputs=True)


def test_a_plan_of_an_earlier_version_knows_its_folder(place):
    """The fingerprints of folders were of the number, total size and latest time of their files."""
    files = [path.stat() for path in (place / "boundary.zarr").rglob("*") if path.is_file()]
    sizes = len(files), sum(one.st_size for one in files), max(one.st_mtime_ns for one in files)
    known = hashlib.sha256(repr(((160, 200), "<f4")).encode())
    known.update(repr(sizes).encode())
    plan = blocks.open(place / "result").plan
    text = (place / "result" / "plan.json").read_text()
    (place / "result" / "plan.json").write_text(
        text.replace(plan.cues["boundary"].fingerprint, known.hexdigest()[:32])
    )
    assert blocks.run(place / "result", stage="cut").done == {"cut": 12}
    (place / "boundary.zarr" / "c" / "0" / "0").touch()
    with refuses("cues['boundary']", "plan again"):
        blocks.run(place / "result")


def test_a_changed_file_of_a_pattern_is_refused(tmp_path):
    levels = np.random.default_rng(0).integers(0, 256, (5, 20, 30)).astype(np.uint8)
    for k, plane in enumerate(levels):
        imageio.imwrite(tmp_path / f"plane{k}.png", plane)
    pattern = str(tmp_path / "plane*.png")
    blocks.plan(tmp_path / "r", pattern, ranges=(0, 255), block=(3, 20, 30))
    blocks.run(tmp_path / "r")
    assert blocks.run(tmp_path / "r").done == {}
    imageio.imwrite(tmp_path / "plane2.png", levels[2, ::-1])
    with refuses("cues['boundary']", "plan again"):
        blocks.run(tmp_path / "r")


def test_a_plan_of_an_earlier_version_knows_its_inputs(tmp_path):
    """The fingerprints of patterns and URLs were of shape and metadata alone."""
    plane = np.random.default_rng(0).integers(0, 256, (20, 30)).astype(np.uint8)
    imageio.imwrite(tmp_path / "plane0.png", plane)
    plan = blocks.plan(tmp_path / "r", str(tmp_path / "*.png"), ranges=(0, 255))
    known = hashlib.sha256(repr(((1, 20, 30), "|u1")).encode()).hexdigest()[:32]
    text = (tmp_path / "r" / "plan.json").read_text()
    (tmp_path / "r" / "plan.json").write_text(
        text.replace(plan.cues["boundary"].fingerprint, known)
    )
    assert blocks.run(tmp_path / "r").is_complete


def test_two_runs_into_one_folder_are_refused(place):
    def other(progress):
        with refuses("folder", "wait for it"):
            blocks.run(place / "result")
        with refuses("folder", "wait for it"):
            blocks.run(place / "result", part=(1, 2))
        with refuses("folder", "wait for it"):
            blocks.plan(place / "result", str(place / "boundary.zarr"), block=(60, 50))
        raise Cancelled("enough")

    with pytest.raises(Cancelled):
        blocks.run(place / "result", progress=other)
    assert blocks.run(place / "result").is_complete


@pytest.mark.slow
def test_parts_of_two_divisions_are_refused(place):
    """They would do the same blocks; those of one division run together."""

    def other(progress):
        for part in ((1, 2), (2, 2), (1, 13)):
            with refuses("folder", "wait for it"):
                blocks.run(place / "result", part=part)
        assert blocks.run(place / "result", part=(2, 3)).done == {"cut": 4}
        raise Cancelled("enough")

    with pytest.raises(Cancelled):
        blocks.run(place / "result", part=(1, 3), progress=other)


def test_parts_of_an_array_job_make_the_whole(place, expected):
    folder = place / "result"
    rounds = 0
    while not blocks.status(folder).is_complete:
        done = [blocks.run(folder, part=(i, 3)).done for i in (3, 1, 2)]
        stages = {name for one in done for name in one}
        assert len(stages) <= 2, "a part never runs ahead of the others"
        rounds += 1
        assert rounds < 40
    assert content(folder) == expected


def test_a_cancelled_run_goes_on(place, expected):
    def cancel(progress):
        if progress.stage == "statistics" and progress.done >= 4:
            raise Cancelled("Cancelled.")

    with pytest.raises(Cancelled):
        blocks.run(place / "result", workers=1, progress=cancel)
    assert blocks.status(place / "result").next_stage == "statistics"
    blocks.run(place / "result")
    assert content(place / "result") == expected


def test_chunks_must_divide_the_block(place):
    source = str(place / "boundary.zarr")
    with refuses("chunks", "leave it out"):
        blocks.plan(place / "other", source, block=(60, 50), chunks=(32, 50))
    with refuses("memory"):
        blocks.plan(place / "other", source, memory=1000)
    with refuses("cues['boundary']", "write it to a file"):
        blocks.plan(place / "other", np.zeros((3, 4)))
    with refuses("policy"):
        blocks.plan(place / "other", source, policy="median")
    with refuses("folder", "make one first"):
        blocks.run(place / "other")


def test_blocks_over_the_budget_are_refused_with_figures(tmp_path):
    zarr.create_array(
        str(tmp_path / "boundary.zarr"), shape=(2000, 2000, 2000), chunks=(500,) * 3, dtype="u1"
    )
    source = str(tmp_path / "boundary.zarr")
    with refuses("memory") as refused:
        blocks.plan(None, source, ranges=(0, 255), memory=4 * 10**9, block=1000)
    assert "GB" in str(refused.value)
    plan = blocks.plan(None, source, ranges=(0, 255), memory=4 * 10**9, workers=2)
    assert blocks.estimate(plan).workers * blocks.estimate(plan).block_bytes < 4e9
    assert all(n % 32 == 0 or n == 2000 for n in plan.block)


@pytest.mark.parametrize(("memory", "workers"), [(10**9, 1), (4 * 10**9, 2), (16 * 10**9, 2)])
def test_blocks_fit_the_budget_and_have_little_halo(tmp_path, memory, workers):
    path = str(tmp_path / "empty.zarr")
    zarr.create_array(path, shape=(1000, 1024, 900), chunks=(128, 128, 128), dtype="u1")
    plan = blocks.plan(None, path, ranges=(0, 255), memory=memory, workers=workers)
    cost = blocks.estimate(plan)
    assert cost.blocks * cost.block_bytes >= cost.voxels
    assert 350_000_000 + workers * cost.block_bytes <= memory
    flooded = np.prod(
        [n + 2 * plan.halo * (k - 1) for n, k in zip(plan.shape, plan.grid.counts, strict=True)]
    )
    assert flooded / cost.voxels < (1.3 if memory < 2e9 else 1.15)
    assert all(b % c == 0 for b, c in zip(plan.block, plan.chunks, strict=True))


@pytest.mark.parametrize("way", ["below a file", "lock", "locks"])
def test_a_folder_that_cannot_be_written_to_is_refused(place, way):
    folder, source = place / "result", str(place / "boundary.zarr")
    if way == "below a file":  # where root may not write either
        (place / "file").write_text("")
        folder = place / "file" / "result"
    elif way == "lock":  # cannot be opened for writing
        (folder / "locks" / "whole" / "lock").mkdir(parents=True)
    else:
        shutil.rmtree(folder / "locks")
        (folder / "locks").write_text("")
    with refuses("folder", "check its permissions") as refused:
        blocks.plan(folder, source, block=(60, 50))
    assert "cannot be written to" in str(refused.value)
    if way != "below a file":
        with refuses("folder", "check its permissions"):
            blocks.run(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(place):
    (place / "result").chmod(0o500)
    try:
        with refuses("folder"):
            blocks.run(place / "result")
    finally:
        (place / "result").chmod(0o700)
