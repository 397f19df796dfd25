"""Levels of pyramids, and label images on disk: parts, painted boxes, coarser levels, memory."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo.volumes import (
    DiskCues,
    DiskLabels,
    MappedLabels,
    check_cues,
    downsample_labels,
    open_levels,
    open_volume,
    write_labels,
)

LABELS = (np.arange(6 * 10 * 9).reshape(6, 10, 9) // 7 + 1).astype(np.uint32)


@pytest.mark.parametrize("name", ["a.ome.zarr", "a.precomputed"])
def test_all_levels_are_opened(tmp_path, name):
    path = write_labels(tmp_path / name, LABELS, levels=3)
    levels = open_levels(path)
    assert len(levels) == 3
    expected = LABELS
    for level in levels:
        assert np.array_equal(level.load(), expected)
        expected = downsample_labels(expected, 2)


def test_an_image_without_levels_is_one_level(tmp_path):
    (level,) = open_levels(write_labels(tmp_path / "a.tif", LABELS))
    assert level.shape == LABELS.shape
    (level,) = open_levels(write_labels(tmp_path / "b.ome.zarr", LABELS, levels=1))
    assert level.shape == LABELS.shape


def test_levels_of_a_channel(tmp_path):
    group = zarr.create_group(str(tmp_path / "c.zarr"))
    datasets = []
    for level, side in enumerate((8, 4)):
        data = np.arange(2 * side * side).reshape(2, side, side)
        group.create_array(str(level), data=data)
        scale = [{"type": "scale", "scale": [1.0, 2.0**level, 2.0**level]}]
        datasets.append({"path": str(level), "coordinateTransformations": scale})
    axes = [{"name": n, "type": "channel" if n == "c" else "space"} for n in "cyx"]
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]}
    levels = open_levels(f"{tmp_path / 'c.zarr'}:c=1")
    assert [level.shape for level in levels] == [(8, 8), (4, 4)]
    assert levels[1].load()[0, 0] == 16


@given(st.data())
@examples(60, deadline=None)
def test_painted_boxes_are_seen_at_all_levels(data):
    """Of overlapping boxes the latest counts; a coarse voxel has the id in the middle of it."""
    fine = np.arange(2 * 7 * 9).reshape(2, 7, 9) + 1
    ids = np.arange(fine.size + 1, dtype=np.uint64)
    image = DiskLabels(fine, ids, coarser=(fine[:, ::2, ::2],)).copy()
    expected = fine.copy()
    for k in range(data.draw(st.integers(0, 4))):
        box = []
        for n in fine.shape:
            start = data.draw(st.integers(0, n - 1))
            box.append(slice(start, data.draw(st.integers(start + 1, n))))
        values = np.full([s.stop - s.start for s in box], 200 + k)
        image[tuple(box)] = values
        expected[tuple(box)] = values
    level0, level1 = image.levels
    assert np.array_equal(level0[...], expected)
    middle = expected[:, np.minimum(np.arange(4) * 2 + 1, 6)][
        :, :, np.minimum(np.arange(5) * 2 + 1, 8)
    ]
    painted = middle >= 200
    assert np.array_equal(level1[...], np.where(painted, middle, fine[:, ::2, ::2]))
    assert np.array_equal(level1[1, 1:3], level1[...][1, 1:3])


def test_boxes_that_are_covered_are_forgotten():
    image = DiskLabels(LABELS, np.arange(100, dtype=np.uint64)).copy()
    for _ in range(50):  # as undo and redo paint the same box again and again
        image[1:3, 2:5, 3:4] = np.ones((2, 3, 1))
        image[1:3, 2:5, 3:4] = np.zeros((2, 3, 1))
    assert len(image._painted) == 1


def test_a_part_that_does_not_fit_is_refused():
    whole = np.broadcast_to(np.uint32(1), (10**5, 10**5, 10**3))
    image = DiskLabels(whole, np.arange(2, dtype=np.uint64))
    with refuses("index", "ome.zarr"):
        image[...]
    with refuses("index"):
        np.asarray(MappedLabels(image, np.array([0, 5])))
    assert image[5, 6:8, ::500].tolist() == [[1, 1], [1, 1]]


@given(st.data())
@examples(40, deadline=None)
def test_cues_on_disk_are_those_in_memory(data):
    kind = data.draw(st.sampled_from(["f4", "f8", "u1", "u2", "i2", ">f4"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    values = rng.random((4, 5)) if "f" in kind else rng.integers(0, 100, (4, 5))
    values = values.astype(kind)
    limits = data.draw(st.sampled_from([(0.0, 1.0), (1.0, 0.0)] if "f" in kind else
                                       [(0.0, 100.0), (255.0, 0.0)]))  # fmt: skip
    if "f" in kind and data.draw(st.booleans()):
        values[2, 3] = np.nan
    known = check_cues(values, (4, 5), limits, nan="boundary").values.reshape(1, 4, 5)
    cues = DiskCues(["boundary"], [lambda: values], [limits], (4, 5))
    assert np.array_equal(cues[:, 1:3, 2:5], known[:, 1:3, 2:5])
    assert np.array_equal(cues[0, 2, 1:4], known[0, 2, 1:4])


def test_cues_of_another_file_are_refused():
    limits = [(0.0, 1.0)]
    other = DiskCues(["boundary"], [lambda: np.zeros((3, 3))], limits, (4, 5))
    with refuses("cues"):
        other[0, 0:1, 0:1]
    outside = DiskCues(["boundary"], [lambda: np.full((4, 5), 7.0)], limits, (4, 5))
    with refuses("cues"):
        outside[:, 0:1, 0:1]


def test_labels_on_disk_are_written_block_by_block(tmp_path):
    ids = np.arange(int(LABELS.max()) + 1, dtype=np.uint64) ** 2
    path = write_labels(tmp_path / "in.ome.zarr", ids[LABELS], chunks=(2, 5, 3), levels=1)
    image = DiskLabels(open_volume(path).data, ids)
    table = (ids // 3).astype(np.uint32)
    for name in ("out.ome.zarr", "out.precomputed", "out.npz"):
        written = write_labels(tmp_path / name, MappedLabels(image, table))
        plain = write_labels(tmp_path / f"plain_{name}", table[LABELS])
        for one, other in zip(open_levels(written), open_levels(plain), strict=True):
            assert np.array_equal(one.load(), other.load())
