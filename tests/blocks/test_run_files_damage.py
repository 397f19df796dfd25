"""Files of a results folder that are lost or damaged are noticed, and only they are made again."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from block_runs import content, copied
from refusals import refuses

from napari_agglo import blocks
from napari_agglo.blocks import _chunk_census, _stages, _stores
from napari_agglo.session import Session

TABLES = "tables"
CUE, SUPERPIXELS, LABELS = (
    f"{name}.ome.zarr" for name in ("cue_boundary", "superpixels", "labels")
)


def remove(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-9])


def zero(path):
    """Leave the length, as a machine that went down may do."""
    path.write_bytes(bytes(path.stat().st_size))


def flip(path):
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)


def redone(undisturbed, folder, damage, victim, forgotten=()):
    """Damage a file of a complete run, forget that some tasks were done, and run again.

    Return the number of tasks that were done, by stage.
    """
    copied(undisturbed.folder, folder)
    damage(folder / victim)
    assert content(folder) != undisturbed.content, "test invalid"
    for task in forgotten:
        (folder / "done" / f"{task}.json").unlink()
    run = blocks.run(folder)
    assert run.is_complete
    assert content(folder) == undisturbed.content
    return run.done


CHUNKS = [
    (remove, f"{CUE}/0/c/3/4", "predict", "cut/000007"),
    (zero, f"{CUE}/0/c/3/4", "predict", "statistics/000007"),
    (cut_short, f"{SUPERPIXELS}/0/c/3/4", "superpixels", "overlap/000007"),
    (empty, f"{SUPERPIXELS}/1/c/1/2", "superpixels", "overview-2/000000"),
    (remove, f"{LABELS}/0/c/3/4", "labels", "precomputed-0/000000"),
    (cut_short, f"{LABELS}/1/c/1/2", "labels", "pyramid-2/000000"),
    (empty, f"{LABELS}/2/c/1/1", "pyramid-2", "precomputed-2/000000"),
]
OTHERS = [
    (damage, *row)
    for first, *row in CHUNKS
    for damage in (remove, empty, cut_short, zero)
    if damage is not first
]


@pytest.mark.parametrize(
    ("damage", "chunk", "written_by", "read_by"),
    [*CHUNKS, *(pytest.param(*row, marks=pytest.mark.slow) for row in OTHERS)],
)
def test_a_lost_chunk_is_written_again_before_it_is_read(
    undisturbed, tmp_path, damage, chunk, written_by, read_by
):
    done = redone(undisturbed, tmp_path / "r", damage, chunk, [read_by])
    assert done == {written_by: 1, read_by.partition("/")[0]: 1}


def test_superpixels_are_there_after_labels_are_written_again(undisturbed, tmp_path):
    # which are made of tables, so that a lost chunk would stay lost
    chunk = f"{SUPERPIXELS}/0/c/3/4"
    done = redone(undisturbed, tmp_path / "r", empty, chunk, ["labels/000007"])
    assert done == {"superpixels": 1, "labels": 1}


@pytest.mark.parametrize(
    ("damage", "table", "read_by"),
    [
        (cut_short, "statistics", None),
        (flip, "cut", "join/000001"),
        (flip, "statistics", "reduce-1/000000"),
        (remove, "reduce-1", "graph/000000"),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in [
                (remove, "cut", "superpixels/000001"),
                (flip, "join", "number/000000"),
                (flip, "reduce-1", "graph/000000"),
                (flip, "overlap", "evaluate/000000"),
            ]
        ),
    ],
)
def test_a_damaged_table_is_made_again(undisturbed, tmp_path, damage, table, read_by):
    victim = f"{TABLES}/{table}/000001.table"
    forgotten = [] if read_by is None else [read_by]
    if damage is remove:  # tables of a complete run may be removed
        forgotten += ["complete"]
    done = redone(undisturbed, tmp_path / "r", damage, victim, forgotten)
    assert done == {table: 1} | ({} if read_by is None else {read_by.partition("/")[0]: 1})


@pytest.mark.parametrize(
    ("damage", "name", "read_by"),
    [
        (remove, "curve.csv", None),
        (cut_short, "tree/winners.npy", None),
        (flip, "graph/boundaries.npy", "tree/000000"),
        (zero, "table/segments.npy", "labels/000003"),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in [
                (remove, "graph/edges.npy", None),
                (flip, "number/superpixel.npy", "superpixels/000003"),
                (flip, "tree/priorities.npy", "table/000000"),
            ]
        ),
    ],
)
def test_a_damaged_array_is_made_again(undisturbed, tmp_path, damage, name, read_by):
    stage = "evaluate" if name == "curve.csv" else name.partition("/")[0]
    done = redone(undisturbed, tmp_path / "r", damage, name, [read_by] if read_by else [])
    assert done == {stage: 1} | ({read_by.partition("/")[0]: 1} if read_by else {})


@pytest.mark.parametrize(
    ("lost", "made_again"),
    [
        pytest.param("cue_interior.ome.zarr", {"predict": 20}, marks=pytest.mark.slow),
        pytest.param(LABELS, {"labels": 20, "pyramid-2": 2}, marks=pytest.mark.slow),
        (f"{SUPERPIXELS}/1", {"superpixels": 20, "overview-2": 2}),
        ("labels.precomputed", {"precomputed-0": 4, "precomputed-1": 1, "precomputed-2": 1}),
    ],
)
def test_a_lost_store_is_made_again(undisturbed, tmp_path, lost, made_again):
    assert redone(undisturbed, tmp_path / "r", shutil.rmtree, lost) == made_again


def test_arrays_without_a_checksum_are_read(undisturbed, tmp_path):
    """Files of earlier versions have none."""
    folder = copied(undisturbed.folder, tmp_path / "r")
    for path in folder.rglob("*.npy"):
        np.save(path, np.load(path))
    assert {"graph", "tree"} <= set(blocks.run(folder).done), "their sizes were written down"
    assert content(folder) == undisturbed.content


def test_a_store_that_another_process_has_made_stays(undisturbed, tmp_path, monkeypatch):
    """Parts of an array job begin a stage at the same time; one of them has written a block."""
    folder = copied(undisturbed.folder, tmp_path / "r")
    job = _stages.Job(folder, blocks.open(folder).plan)
    stages = {stage.name: stage for stage in _stages.stages_of(job.plan)}
    for name, store in (("labels", LABELS), ("precomputed-0", "labels.precomputed")):
        hidden = (folder / store).rename(folder / "hidden")
        make = _stores.files.token

        def meanwhile(hidden=hidden, store=store, make=make):
            if hidden.exists():
                hidden.rename(folder / store)
            return make()

        monkeypatch.setattr(_stores.files, "token", meanwhile)
        assert _stages.prepare(job, stages[name]) == []
        monkeypatch.undo()
        assert not hidden.exists(), "test invalid"
    assert content(folder) == undisturbed.content
    assert not list(folder.glob(".*")), "nothing is left over"


def test_a_garbage_chunk_of_a_finished_result_is_named_with_its_command(undisturbed, tmp_path):
    folder = copied(undisturbed.folder, tmp_path / "r")
    with blocks.open(folder).create_session(tmp_path / "before.agglo"):
        pass
    store = folder / SUPERPIXELS / "0"
    victim = max(path for path in store.rglob("*") if path.is_file() and path.name.isdigit())
    victim.write_bytes(b"garbage")
    state = blocks.status(folder, check=True)
    assert not state.is_complete
    assert state.decoded is not None
    assert state.decoded[0] == state.decoded[1]
    (damaged,) = state.damaged
    assert (damaged.store, damaged.chunks) == (SUPERPIXELS, 1)
    assert folder / damaged.first == victim
    ((stage, block),) = damaged.tasks
    command = f"blocks run {folder} --stage {stage} --block {block}"
    with refuses("folder", command, facts=(str(victim),)):
        blocks.open(folder).superpixels[0][...]
    with refuses("folder", command):
        blocks.open(folder).create_session(tmp_path / "after.agglo")
    with refuses("superpixels", f"blocks status {folder} --check"):
        Session.open(tmp_path / "before.agglo").graph.superpixels.image[...]
    blocks.run(folder, stage=stage, block=block)
    assert blocks.status(folder, check=True).is_complete
    assert content(folder) == undisturbed.content


def test_a_sample_of_many_chunks_is_decoded(undisturbed, monkeypatch):
    monkeypatch.setattr(_chunk_census, "MOST_DECODED", 3)
    some, all_of_them = blocks.status(undisturbed.folder, check=True).decoded
    assert 0 < some <= 6 < all_of_them
