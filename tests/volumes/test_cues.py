"""Quantising: against the formula in exact arithmetic, over types, ranges and layouts."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from refusals import refuses

from napari_agglo.errors import ConvertTo, DataWarning, SetOption, alternatives
from napari_agglo.volumes import Volume, _volume, check_cues
from napari_agglo.volumes import _value_range as quantise_module


def exact(value, low, high):
    share = 255 * (Fraction(value) - Fraction(low)) / (Fraction(high) - Fraction(low))
    return min(255, max(0, math.floor(share + Fraction(1, 2))))


@examples(80)
@given(
    st.sampled_from(["u1", "u2", "i1", "i2", "u4", "i8", ">u2", "u8"]),
    st.integers(-100, 100),
    st.integers(1, 120),
    st.booleans(),
    st.data(),
)
def test_integers_are_exact(dtype, low, span, inverted, data):
    info = np.iinfo(dtype)
    bottom, top = max(low, int(info.min)), min(low + span, int(info.max))
    if bottom >= top:
        bottom, top = 0, 1
    values = data.draw(npst.arrays(np.dtype(dtype), (2, 3), elements=st.integers(bottom, top)))
    limits = (top, bottom) if inverted else (bottom, top)
    cues = check_cues(values, (2, 3), ranges=limits)
    expected = [exact(int(v), *limits) for v in values.reshape(-1)]
    np.testing.assert_array_equal(cues.values, [expected])


@examples(80)
@given(
    st.sampled_from(["f2", "f4", "f8", ">f4"]),
    st.booleans(),
    st.lists(st.integers(0, 1024), min_size=1, max_size=8),
)
def test_floats_follow_the_formula(dtype, inverted, numerators):
    values = (np.array(numerators) / 1024).astype(dtype)  # exact in all of these types
    limits = (1.0, 0.0) if inverted else (0.0, 1.0)
    cues = check_cues(values, values.shape, ranges=limits if inverted else None)
    np.testing.assert_array_equal(cues.values, [[exact(n / 1024, *limits) for n in numerators]])


def test_blocks_of_the_kernel_do_not_show(monkeypatch):
    values = np.linspace(0, 1, 50)
    values[[7, 31]] = np.nan
    values[[9, 40]] = 3
    out = np.empty(50, np.uint8)
    found = quantise_module.quantise(values, (0.0, 1.0), out)
    assert (found.not_finite, found.first_not_finite) == (2, 7)
    assert (found.outside, found.first_outside) == (2, 9)
    assert (found.lowest, found.highest) == (3, 3)
    assert out[7] == out[31] == 255


def test_bytes_pass_through():
    values = np.arange(256, dtype=np.uint8).reshape(16, 16)
    cues = check_cues(values, (16, 16), ranges=(0, 255))
    np.testing.assert_array_equal(cues.values[0], values.reshape(-1))
    assert not np.shares_memory(cues.values, values)


def test_names_and_order_are_kept():
    cues = check_cues(
        {"boundary": np.zeros((2, 2)), "mito": np.full((2, 2), 51, np.uint8)},
        (2, 2),
        ranges={"mito": (0, 102)},
    )
    assert cues.names == ("boundary", "mito")
    assert cues.ranges == ((0.0, 1.0), (0.0, 102.0))
    np.testing.assert_array_equal(cues.values, [[0] * 4, [128] * 4])
    assert cues.values.flags.c_contiguous
    assert cues.values.dtype == np.uint8


class Slabs:
    """A lazy array that tells what was asked of it."""

    def __init__(self, data, chunks):
        self.data, self.chunks = data, chunks
        self.shape, self.dtype = data.shape, data.dtype
        self.asked = []

    def __getitem__(self, index):
        self.asked.append((index.start, index.stop))
        return self.data[index]


def test_lazy_arrays_come_slab_by_slab(monkeypatch):
    values = np.random.default_rng(0).random((10, 3, 4)).astype(np.float32)
    lazy = Slabs(values, (2, 3, 4))
    pieces = list(_volume.slabs(lazy, slab_bytes=5 * 3 * 4 * 4))
    assert lazy.asked == [(0, 4), (4, 8), (8, 10)]  # whole chunks, never the whole array
    assert [(a, b) for a, b, _ in pieces] == [(0, 48), (48, 96), (96, 120)]
    np.testing.assert_array_equal(
        check_cues(Slabs(values, None), values.shape).values,
        check_cues(values, values.shape).values,
    )


class Shape:
    """A lazy array of 2**33 voxels: only the arithmetic is looked at."""

    shape, dtype, chunks = (2**20, 2**13), np.dtype(np.uint8), None

    def __getitem__(self, index):
        return np.zeros((1, 1), np.uint8)


def test_offsets_of_slabs_are_64_bit():
    assert next(iter(_volume.slabs(Shape(), slab_bytes=2**40)))[1] == 2**33


def test_layout_does_not_matter():
    values = np.random.default_rng(0).random((4, 5, 6))
    plain = check_cues(values, values.shape).values
    np.testing.assert_array_equal(check_cues(np.asfortranarray(values), values.shape).values, plain)
    np.testing.assert_array_equal(
        check_cues(values[::-1], values.shape).values,
        check_cues(values[::-1].copy(), values.shape).values,
    )
    values.flags.writeable = False
    np.testing.assert_array_equal(check_cues(Volume(values), values.shape).values, plain)


def test_empty_image():
    assert check_cues(np.zeros((0, 4)), (0, 4)).values.shape == (1, 0)


def test_progress_can_cancel():
    from napari_agglo.errors import Cancelled

    def stop(progress):
        raise Cancelled(f"at {progress.done}")

    with pytest.raises(Cancelled):
        check_cues(np.zeros((3, 3)), (3, 3), progress=stop)


@pytest.mark.parametrize(
    ("cues", "ranges", "argument", "remedy", "fact"),
    [
        ({}, None, "cues", "pass at least one", "empty"),
        ({1: np.zeros(2)}, None, "cues", "name them", "[1]"),
        (np.zeros(2), (0, 0), "ranges", "(0, 255)", "(0, 0)"),
        (np.zeros(2), (0, math.inf), "ranges", "(0, 255)", "(0, inf)"),
        (np.zeros(2), (-1.7e308, 1.7e308), "ranges", "(0, 255)", "(-1.7e+308, 1.7e+308)"),
        (np.zeros(2), {"boundary": (0, 10**400)}, "ranges['boundary']", "(0, 255)", "1000"),
        (np.zeros(2), 7, "ranges", "(0, 255)", "not 7"),
        (np.zeros(2), {"mito": (0, 1)}, "ranges", "remove mito", "['boundary']"),
        (np.zeros(2, complex), None, "cues['boundary']", ConvertTo("float32"), "complex128"),
    ],
)
def test_refusals(cues, ranges, argument, remedy, fact):
    with refuses(argument, remedy, facts=(fact,)):
        check_cues(cues, (2,), ranges)


def test_unknown_nan_option():
    with refuses("nan", SetOption("nan", "refuse")):
        check_cues(np.zeros(2), (2,), nan="zero")


@pytest.mark.slow
def test_more_voxels_than_32_bits_can_count():
    """The value that is not finite lies where 32 bits do not reach.

    Pages of zeros that are only read take no memory, and the output has a stride of 0.
    """
    from numpy.lib.stride_tricks import as_strided

    size = 2**31 + 8
    flat = np.zeros(size, np.float32)
    flat[-3] = np.nan
    flat[-2] = 7
    out = as_strided(np.zeros(1, np.uint8), (size,), (0,))
    found = quantise_module.quantise(flat, (0.0, 1.0), out)
    assert (found.not_finite, found.first_not_finite) == (1, 2**31 + 5)
    assert (found.outside, found.first_outside) == (1, 2**31 + 6)


def test_progress_within_an_array_in_memory(monkeypatch):
    values = np.random.default_rng(0).random((1, 5, 4))
    plain = check_cues(values, values.shape).values
    monkeypatch.setattr(_volume, "PIECE", 3)
    seen = []
    cues = check_cues(values, values.shape, progress=seen.append)
    assert [step.done for step in seen] == [3, 6, 9, 12, 15, 18, 20]
    np.testing.assert_array_equal(cues.values, plain)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64])
def test_wide_integers_within_their_declared_range_are_values(dtype):
    values = np.array([0, 51, 255], dtype)
    np.testing.assert_array_equal(check_cues(values, (3,), (0, 255)).values, [[0, 51, 255]])
    with refuses(
        "cues['boundary']", SetOption("ranges", None, "boundary", "as wide as its values")
    ):
        check_cues(values * dtype(2), (3,), (0, 255))


@pytest.mark.parametrize(
    ("top", "limits", "told"),
    [(255, (0, 65535), True), (255, (0, 255), False), (200, (255, 0), False), (0, (0, 255), False)],
)
def test_a_range_of_which_values_fill_little_is_named(top, limits, told):
    cue = np.linspace(0, top, 2000).astype(np.uint8)
    with warnings.catch_warnings(record=True, action="always") as caught:
        check_cues({"membrane": cue}, cue.shape, ranges=limits)
    assert [str(one.message.argument) for one in caught] == ["cues['membrane']"] * told
    if told:
        assert SetOption("ranges", (0, 255), "membrane") in alternatives(caught[0].message.remedy)


@pytest.mark.parametrize("top", [1.0, 0.4])
def test_floats_that_hardly_fill_a_declared_range_give_a_warning(top):
    """Those below half a level are 0 as bytes, all of them."""
    values = np.random.default_rng(0).random((50, 50), np.float32) * np.float32(top)
    with pytest.warns(DataWarning, match="of the range 0 to 255"):
        check_cues(values, values.shape, ranges=(0, 255))
    with pytest.warns(DataWarning, match="of the range 255 to 0"):
        check_cues(values, values.shape, ranges=(255, 0))
    check_cues(values, values.shape, ranges=(0, 2))  # warnings are errors
