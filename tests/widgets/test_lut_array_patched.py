"""A patched array is what painting the boxes into a copy would give, however it is sliced."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.widgets._lut_array import LutArray, Patched


@st.composite
def cases(draw):
    ndim = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 6)) for _ in range(ndim))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    source = rng.integers(1, 9, shape).astype(np.uint32)
    patches = []
    for _ in range(draw(st.integers(0, 3))):
        starts = [draw(st.integers(0, n - 1)) for n in shape]
        stops = [draw(st.integers(a + 1, n)) for a, n in zip(starts, shape, strict=True)]
        box = tuple(slice(a, b) for a, b in zip(starts, stops, strict=True))
        patches.append((box, rng.integers(0, 3, source[box].shape) * 10))
    index = []
    for n in shape:
        ends = st.none() | st.integers(-n - 1, n + 1)
        steps = st.none() | st.sampled_from([-2, -1, 1, 2])
        index.append(draw(st.integers(0, n - 1) | st.builds(slice, ends, ends, steps)))
    return source, patches, tuple(index)


def painted(source, patches):
    out = source.copy()
    for box, labels in patches:
        out[box][labels > 0] = labels[labels > 0]
    return out


@given(cases())
def test_patched_array_is_the_painted_copy(case):
    source, patches, index = case
    before = source.copy()
    found = Patched(source, patches)[index]
    np.testing.assert_array_equal(found, painted(source, patches)[index])
    np.testing.assert_array_equal(source, before)


@given(cases(), st.integers(1, 3))
def test_a_coarser_one_is_every_so_manieth_pixel_of_it(case, step):
    source, patches, _ = case
    every = (..., *[slice(None, None, step)] * min(3, source.ndim))
    found = Patched(source[every], patches, step)[(slice(None),) * source.ndim]
    np.testing.assert_array_equal(found, painted(source, patches)[every])


@given(cases())
def test_a_table_is_looked_up_in_it(case):
    source, patches, index = case
    table = np.arange(30, dtype=np.uint8)[::-1].copy()
    shown = LutArray(Patched(source, patches), table)
    np.testing.assert_array_equal(np.asarray(shown[index]), table[painted(source, patches)][index])
