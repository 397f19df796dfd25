"""Pictures of errors: the plane that shows them, and what is painted."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from napari_agglo.report._pictures import (
    best_plane,
    border_path,
    boxes,
    cut_out,
    label_path,
    layered,
    png_uri,
)
from napari_agglo.volumes import dense_labels


def decoded(svg):
    data = re.search(r"base64,([^\"]+)", svg)[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")) / 255


def walked(path, shape):
    """Return the sides of pixels that a path runs along, by walking it."""
    rows, columns = shape
    upright, level = np.zeros((rows, columns - 1), bool), np.zeros((rows - 1, columns), bool)
    for x, y, way, end in re.findall(r"M(\d+) (\d+)([VH])(\d+)", path):
        x, y, end = int(x), int(y), int(end)
        if way == "V":
            assert not upright[y:end, x - 1].any(), "no side is drawn twice"
            upright[y:end, x - 1] = True
        else:
            assert not level[y - 1, x:end].any(), "no side is drawn twice"
            level[y - 1, x:end] = True
    return upright, level


SHAPES = st.tuples(st.integers(2, 6), st.integers(2, 6))


@given(arrays(np.uint8, SHAPES, elements=st.integers(0, 2)))
def test_paths_run_along_every_border_and_nowhere_else(labels):
    upright, level = walked(label_path(labels), labels.shape)
    assert (upright == (labels[:, :-1] != labels[:, 1:])).all()
    assert (level == (labels[:-1] != labels[1:])).all()


def test_no_border_is_no_path():
    assert label_path(np.ones((3, 3))) == ""
    assert border_path(np.zeros((1, 0), bool), np.zeros((0, 1), bool)) == ""
    assert "<path" not in layered(np.zeros((2, 2, 3)), {"gold": ""}, "x")


def test_pixels_come_back():
    picture = np.zeros((2, 3, 3))
    picture[0, 1] = (1.0, 0.5, 0.0)
    assert decoded(png_uri(picture) + '"') == pytest.approx(picture, abs=0.01)


def test_the_shape_of_a_picture_follows_the_spacing():
    assert "aspect-ratio:20/40" in layered(np.zeros((10, 20, 3)), {}, "x", (4.0, 1.0))


@pytest.mark.parametrize("ndim", [2, 3, 4])
def test_the_plane_shows_the_error(ndim):
    labels = np.ones((6,) * ndim, int)
    labels[(4,) * (ndim - 2) + (slice(0, 3), slice(None))] = 2
    plane = best_plane(labels > 0, labels == 2)
    assert plane.index == (4,) * (ndim - 2) + (None, None)
    assert (plane.cut(labels) == 2).sum() == 18
    assert str(plane) == ", ".join(f"axis {k} = 4" for k in range(ndim - 2))


def test_coarse_axes_are_not_shown():
    labels = np.ones((8, 8, 8), int)
    labels[:, 3] = 2  # best seen along axis 0
    labels[:, :, 5] = 2
    free = best_plane(labels > 0, labels == 2)
    assert free.index != (None, None, 0), "test invalid"
    for coarse in range(3):
        spacing = [1.0, 1.0, 1.0]
        spacing[coarse] = 5.0
        assert best_plane(labels > 0, labels == 2, spacing).index[coarse] is not None


def test_a_false_split_is_tinted_by_its_pieces():
    gold = np.zeros((60, 80), np.uint64)
    gold[10:30, 10:50] = 2**63 + 1  # ids may be huge
    labels = np.full((60, 80), 5, np.uint64)
    labels[10:30, 30:50] = 6
    svg, plane = cut_out(
        np.full((60, 80), 0.5), labels, gold, kind="false split", one=2**63 + 1, partners=[5, 6]
    )
    assert str(plane) == ""
    picture = decoded(svg)
    assert picture.shape[0] <= 60
    colours = {tuple(c) for c in picture.reshape(-1, 3)}
    assert len(colours) == 3, "the image, and two pieces"
    assert 'class="gold"' in svg
    assert 'class="segmentation"' in svg
    assert 'class="whole"' in svg


def test_large_segments_are_thinned():
    gold = np.ones((900, 900), np.uint8)
    labels = gold.copy()
    labels[:, 450:] = 2
    svg, _ = cut_out(np.zeros((900, 900)), labels, gold, kind="false split", one=1, partners=[1, 2])
    assert max(decoded(svg).shape) <= 240


@given(arrays(np.uint8, (4, 5, 6), elements=st.integers(0, 3)))
def test_a_box_holds_all_of_a_label_and_no_margin(labels):
    for one, box in boxes(dense_labels(labels), np.unique(labels).tolist()).items():
        inside = labels[box] == one
        assert inside.sum() == (labels == one).sum()
        for axis in range(3):
            assert inside.take(0, axis).any()
            assert inside.take(-1, axis).any()


@pytest.mark.parametrize("kind", ["false split", "false merge"])
def test_to_look_only_at_the_box_changes_nothing(kind):
    rng = np.random.default_rng(0)
    gold = np.zeros((9, 40, 50), int)
    gold[2:8, 5:30, 7:40] = rng.integers(1, 3, (6, 25, 33))
    labels = np.where(gold > 0, 7, 8)
    labels[5, :, 20:] = 9
    whole, one = (gold, 1) if kind == "false split" else (labels, 7)
    partners = [7, 9] if kind == "false split" else [1, 2]
    given = dict(kind=kind, one=one, partners=partners)
    box = boxes(dense_labels(whole), [one])[one]
    assert gold[box].size < gold.size, "test invalid"
    image = rng.random(gold.shape)
    assert cut_out(image, labels, gold, **given) == cut_out(image, labels, gold, **given, box=box)


def test_a_membrane_of_the_gold_standard_is_one_line():
    gold = np.zeros((50, 60), int)
    gold[:, :28], gold[:, 30:] = 1, 2
    svg, _ = cut_out(np.zeros(gold.shape), np.ones_like(gold), gold, kind="false merge", one=1,
                     partners=[2, 1])  # fmt: skip
    lines = re.search(r'class="gold" d="([^"]*)"', svg)[1]
    assert lines.count("M") == 1
