"""Bad inputs: one row a case, refused with this argument and remedy, or handled."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import (
    Advice,
    ConvertTo,
    DataWarning,
    InvalidInput,
    LabelComponents,
    PickIndex,
    SetOption,
    alternatives,
)
from napari_agglo.volumes import (
    Volume,
    check_cues,
    check_labels,
    check_mask,
    check_same_shape,
    check_same_spacing,
    check_spacing,
    dense_labels,
    split_components,
)

SQUARE = np.array([[1, 1, 2], [1, 3, 2], [3, 3, 2]], np.uint16)
CUE = np.linspace(0, 1, 9).reshape(3, 3)


def with_value(value, dtype=float):
    cue = CUE.astype(dtype)
    cue[1, 2] = value
    return cue


def cues(cue, shape=(3, 3), **options):
    return lambda: check_cues(cue, shape, **options)


def labels(array, name="superpixels"):
    return lambda: check_labels(array, name)


WHOLE = ConvertTo("int64", when="if it holds whole numbers")
NAN = SetOption("nan", "boundary", when="to count them as boundary")
ONES = SetOption("spacing", (1.0, 1.0, 1.0), when="if it is not known")
WIDER = SetOption("ranges", None, "boundary", "as wide as its values")


def both_ways(top):
    upright = SetOption("ranges", (0, top), "boundary")
    return upright, SetOption("ranges", (top, 0), "boundary", "if dark is boundary")


# The argument of the error, and each remedy that it offers; `Advice` stands for any.
REFUSED = [
    ("R1", cues(CUE, (10, 512, 512)), "superpixels", (Advice,)),
    ("R1-mask", lambda: check_mask(np.ones((2, 3), bool), (3, 3)), "mask", (Advice,)),
    ("R1-transposed", cues(np.zeros((4, 5)), (5, 4)), "superpixels", (Advice,)),
    (
        "R2-extra",
        lambda: check_same_shape((5, 3, 4), (3, 4), "gold", "labels"),
        "gold",
        (PickIndex((0,), 3),),
    ),
    ("R2-extra-last", cues(np.zeros((3, 3, 7))), "cues['boundary']", (PickIndex((2,), 3),)),
    ("R2-time", cues(np.zeros((7, 5, 3, 3))), "superpixels", (Advice,)),
    ("R2-singleton", cues(CUE[None]), "cues['boundary']", (PickIndex((0,), 3),)),
    ("R2-singletons", cues(CUE[None, :, None]), "cues['boundary']", (PickIndex((0, 2), 4),)),
    ("R2-labels", cues(CUE, (1, 3, 3)), "superpixels", (PickIndex((0,), 3),)),
    (
        "R3",
        labels(CUE),
        "superpixels",
        (
            Advice,
            WHOLE,
        ),
    ),
    (
        "R3-gold",
        labels(SQUARE.astype("f4"), "gold"),
        "gold",
        (
            Advice,
            WHOLE,
        ),
    ),
    (
        "R4-nan",
        cues(with_value(np.nan)),
        "cues['boundary']",
        (
            Advice,
            NAN,
        ),
    ),
    (
        "R4-inf",
        cues(with_value(-np.inf, "f4")),
        "cues['boundary']",
        (
            Advice,
            NAN,
        ),
    ),
    ("R10", labels(np.array([[1, -1], [-7, 2]])), "superpixels", (Advice,)),
    (
        "R11",
        labels(np.array([255, 255, 0, 255], np.uint8)),
        "superpixels",
        (
            LabelComponents(),
            Advice,
        ),
    ),
    ("R11-bool", labels(SQUARE > 1), "superpixels", (LabelComponents(),)),
    (
        "R13-rgb",
        cues(np.zeros((3, 3, 3))),
        "cues['boundary']",
        (
            Advice,
            PickIndex((2,), 3),
        ),
    ),
    (
        "R13-rgba",
        cues(np.zeros((5, 6, 4)), (5, 6)),
        "cues['boundary']",
        (
            Advice,
            PickIndex((2,), 3),
        ),
    ),
    ("R14-list", labels([SQUARE, SQUARE]), "superpixels", (Advice,)),
    (
        "R16",
        lambda: check_same_spacing(
            {"superpixels": Volume(SQUARE, (2.0, 1.0)), "boundary": Volume(CUE, (1.0, 1.0))}
        ),
        "boundary",
        (
            Advice,
            SetOption("spacing", when="for all"),
        ),
    ),
    (
        "R16-cues",
        cues({"a": Volume(CUE, (2.0, 1.0)), "b": Volume(CUE, (1.0, 2.0))}),
        "cues['b']",
        (
            Advice,
            SetOption("spacing", when="for all"),
        ),
    ),
    ("R17-length", lambda: check_spacing((1, 1), 3), "spacing", (ONES,)),
    ("R17-number", lambda: check_spacing(4.0, 3), "spacing", (ONES,)),
    ("R17-words", lambda: check_spacing("zyx", 3), "spacing", (ONES,)),
    ("R18-zero", lambda: check_spacing((40, 0, 4), 3), "spacing", (Advice,)),
    ("R18-nan", lambda: check_spacing((40, np.nan, 4), 3), "spacing", (Advice,)),
    ("R18-inf", lambda: check_spacing((np.inf, 4), 2), "spacing", (Advice,)),
    ("R20-number", labels(np.array(3)), "superpixels", (Advice,)),
    (
        "R20-objects",
        labels(np.array([None, 1], object)),
        "superpixels",
        (
            Advice,
            WHOLE,
        ),
    ),
    ("R20-ragged", labels([[1, 2], [3]]), "superpixels", (Advice,)),
    ("R22-255", cues(CUE * 255), "cues['boundary']", (*both_ways(255),)),
    ("R22-65535", cues(CUE.astype("f4") * 65535), "cues['boundary']", (*both_ways(65535),)),
    ("R22-uint8", cues((CUE * 255).astype("u1")), "cues['boundary']", (*both_ways(255),)),
    ("R22-uint16", cues((CUE * 65535).astype("u2")), "cues['boundary']", (*both_ways(65535),)),
    ("R22-outside", cues(CUE * 300, ranges=(0, 255)), "cues['boundary']", (WIDER,)),
    ("R22-outside-int", cues(SQUARE, ranges=(0, 2)), "cues['boundary']", (WIDER,)),
    (
        "R22-negative",
        cues(CUE - 0.5),
        "cues['boundary']",
        (SetOption("ranges", (-1, 1), "boundary"),),
    ),
    (
        "R23-labels",
        cues(SQUARE.astype("u4")),
        "cues['boundary']",
        (
            Advice,
            SetOption("ranges", None, "boundary", "to declare its range"),
        ),
    ),
    (
        "R23-bool",
        cues(SQUARE > 1),
        "cues['boundary']",
        (ConvertTo("float32", when="to use it as a map of 0 and 1"),),
    ),
    ("R23-text", cues(np.array([["a", "b"]]), (1, 2)), "cues['boundary']", (ConvertTo("float32"),)),
    ("R23-mask", lambda: check_mask(CUE, (3, 3)), "mask", (Advice,)),
    ("path", labels("cells.tif"), "superpixels", (Advice,)),
    ("layer", labels(type("Labels", (), {"data": SQUARE})()), "superpixels", (Advice,)),
    ("masked", cues(np.ma.masked_equal(CUE, 0)), "cues['boundary']", (Advice,)),
    (
        "unknown-shape",
        labels(type("A", (), {"shape": (np.nan, 3), "dtype": int, "__getitem__": None})()),
        "superpixels",
        (Advice,),
    ),
    ("none", labels(None), "superpixels", (Advice,)),
]


@pytest.mark.parametrize(
    ("call", "argument", "remedies"), [pytest.param(*case, id=name) for name, *case in REFUSED]
)
def test_refused(call, argument, remedies):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.argument == argument
    assert f"`{argument}`" in str(caught.value)
    assert tuple(
        Advice if isinstance(remedy, Advice) else remedy
        for remedy in alternatives(caught.value.remedy)
    ) == tuple(remedies)


class Pyramid(Sequence):
    """As napari holds a multiscale layer: a sequence with the shape of its first level."""

    def __init__(self, levels):
        self.levels = levels
        self.shape, self.dtype = levels[0].shape, levels[0].dtype

    def __getitem__(self, index):
        return self.levels[index]

    def __len__(self):
        return len(self.levels)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def dask_array(array):
    return pytest.importorskip("dask.array").from_array(array, chunks=(2, 2))


def zarr_array(array):
    import zarr

    return zarr.array(array, chunks=(2, 2))


SAME = [
    ("R14-multiscale", lambda a: [a, a[::2, ::2]]),
    ("R14-napari", lambda a: Pyramid([a, a[::2, ::2]])),
    ("R15-dask", dask_array),
    ("R15-zarr", zarr_array),
    ("R15-volume", lambda a: Volume(zarr_array(a))),
    ("R19-read-only", read_only),
    ("R20-fortran", np.asfortranarray),
    ("R20-strided", lambda a: np.repeat(a, 2, axis=1)[:, ::2]),
    ("R20-swapped", lambda a: a.astype(a.dtype.newbyteorder(">"))),
    ("R20-nested-list", lambda a: a.tolist()),
]


@pytest.mark.parametrize("wrap", [pytest.param(w, id=i) for i, w in SAME])
def test_handled_alike(wrap):
    checked = check_labels(wrap(SQUARE))
    np.testing.assert_array_equal(checked, SQUARE)
    assert checked.flags.c_contiguous
    assert checked.dtype.isnative
    np.testing.assert_array_equal(dense_labels(wrap(SQUARE)).image, SQUARE)
    np.testing.assert_array_equal(
        check_cues(wrap(CUE), CUE.shape).values, check_cues(CUE, CUE.shape).values
    )


def r4_boundary():
    quantised = check_cues(with_value(np.nan), (3, 3), nan="boundary").values
    assert quantised[0, 5] == 255
    inverted = check_cues(with_value(np.inf), (3, 3), ranges=(1, 0), nan="boundary").values
    assert inverted[0, 5] == 255


def r5_empty():
    for shape in ((0,), (4, 0), (3, 3)):
        dense = dense_labels(check_labels(np.zeros(shape, np.uint8)))
        assert dense.n_labels == 0
        assert dense.image.shape == shape
    assert dense_labels(check_labels(np.ones((3, 3), int))).n_labels == 1


def r6_sparse():
    huge = np.array([2**40, 5, 2**40, 10**8], np.int64)
    dense = dense_labels(huge)
    np.testing.assert_array_equal(dense.image, [3, 1, 3, 2])
    np.testing.assert_array_equal(dense.ids[dense.image], huge)


def r7_unsigned():
    ids = np.array([2**53, 2**53 + 1, 2**63 + 1], np.uint64)
    dense = dense_labels(ids)
    assert dense.ids.dtype == np.uint64
    np.testing.assert_array_equal(dense.ids[dense.image], ids)


def r9_widened():
    dots = np.zeros(600, np.uint8)
    dots[::2] = 255
    split = split_components(dots)
    assert split.dtype == np.uint16
    assert len(np.unique(split)) == 301
    assert dots.dtype == np.uint8


def r11_one_region():
    image = np.zeros((4, 4), np.uint8)
    image[1:3, 1:3] = 1
    np.testing.assert_array_equal(check_labels(image), image)
    mask = np.array([1, 0, 1])
    np.testing.assert_array_equal(check_labels(mask, "gold"), mask)


def r11_one_region_in_pieces():
    # a crop: someone gave this superpixel its id, so it is no mask
    crop = np.array([[7, 0, 7]])
    np.testing.assert_array_equal(check_labels(crop), crop)
    assert dense_labels(crop, "superpixels").n_labels == 1


def r12_pieces():
    image = np.array([1, 2, 1, 0, 2], np.int32)
    np.testing.assert_array_equal(check_labels(image), image)
    np.testing.assert_array_equal(split_components(image), [1, 2, 3, 0, 4])


def r16_same():
    fine = Volume(CUE, (4.0, 2.0))
    voxel = check_same_spacing({"a": fine, "b": Volume(CUE, (4.00001, 2.0)), "c": CUE})
    assert voxel.spacing == (4.0, 2.0)
    assert check_same_spacing({"a": Volume(CUE), "c": CUE}).spacing is None


def r17_order():
    assert check_spacing((40, 6, 4), 3) == (40.0, 6.0, 4.0)
    assert check_spacing(np.array([1, 2]), 2) == (1.0, 2.0)
    assert check_spacing(None, 4) == (1.0,) * 4


def r22_overshoot():
    cue = with_value(1 + 5e-7)
    cue[0, 0] = -5e-7
    quantised = check_cues(cue, (3, 3)).values[0]
    assert (quantised[0], quantised[5]) == (0, 255)


HANDLED = [
    ("R4", r4_boundary), ("R5", r5_empty), ("R6", r6_sparse), ("R7", r7_unsigned),
    ("R9", r9_widened), ("R11", r11_one_region), ("R11-pieces", r11_one_region_in_pieces),
    ("R12", r12_pieces), ("R16", r16_same), ("R17", r17_order), ("R22", r22_overshoot),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(c, id=i) for i, c in HANDLED])
def test_handled(case):
    case()


class Enormous:
    """A lazy array that must not be read."""

    shape = (100_000, 100_000, 1000)
    dtype = np.dtype(np.uint64)

    def __getitem__(self, index):
        raise AssertionError("was read")


def test_r15_what_cannot_fit_is_refused_unread():
    with refuses("superpixels", "use a crop", facts=("120000.0 GB", " GB are free")):
        check_labels(Enormous())
    with refuses("volume", "use a crop", facts=("80000.0 GB",)):
        Volume(Enormous()).load()


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="the system does not say")
def test_r15_memory_is_known_here():
    with pytest.raises(InvalidInput) as caught:
        check_labels(Enormous())
    free = 10**9 * float(re.search(r"memory and ([\d.]+) GB", caught.value.problem)[1])
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 2**20 < free <= whole + 10**8  # which is written in tenths of a GB


def test_r14_the_full_resolution_is_taken_and_no_other_is_read():
    class Unread:
        shape, dtype = (2, 2), np.dtype(np.uint16)

        def __getitem__(self, index):
            raise AssertionError("a lower level was read")

    for pyramid in ([SQUARE, Unread()], Pyramid([SQUARE, Unread()]), Volume([SQUARE, Unread()])):
        assert check_labels(pyramid).shape == (3, 3)
        assert dense_labels(pyramid).image.shape == (3, 3)
    assert check_cues([CUE, Unread()], (3, 3)).values.shape == (1, 9)
    with refuses("superpixels", "use the same crop of both"):
        check_cues([CUE, Unread()], (2, 2))  # the shape is that of level 0


def test_inputs_are_never_modified():
    image, cue = SQUARE.copy(), with_value(np.nan)
    before = cue.copy()
    dense_labels(image)
    split_components(image)
    check_cues(cue, (3, 3), nan="boundary")
    np.testing.assert_array_equal(image, SQUARE)
    np.testing.assert_array_equal(cue, before)


def test_inputs_of_other_crops_give_a_warning_in_every_stage(tmp_path):
    rng = np.random.default_rng(0)
    tiles = np.arange(1, 37).reshape(6, 6).repeat(4, 0).repeat(4, 1)

    def crop(array, at=(0, 125)):
        return Volume(array, origin=tuple(map(float, at)))

    here = crop(tiles)
    cue = rng.random(tiles.shape)
    graph = agglo.region_graph(here, crop(cue))
    tree = agglo.agglomerate(graph)
    stages = {
        "cues['boundary']": [lambda at: agglo.region_graph(here, crop(cue, at))],
        "mask": [lambda at: agglo.oversegment(crop(cue), mask=crop(tiles > 0, at))],
        "gold": [
            lambda at: agglo.train(graph, crop(tiles // 2, at), epochs=0, preset="minimal"),
            lambda at: agglo.train(graph, crop(tiles // 2, at), epochs=0, preset="minimal",
                                   mask=np.ones(tiles.shape, bool)),
            lambda at: agglo.vi_curve(tree, crop(tiles // 2, at)),
            lambda at: agglo.metrics(here, crop(tiles // 2, at)),
            lambda at: agglo.Session.create(
                tmp_path / f"{at[1]}.agglo", graph, gold=crop(tiles // 2, at)
            ).close(),
        ],
        "segmentation": [
            lambda at: agglo.Session.create(
                tmp_path / f"s{at[1]}.agglo", graph, segmentation=crop(tiles, at)
            ).close(),
        ],
    }  # fmt: skip
    for argument, calls in stages.items():
        for call in calls:
            call((0, 125))  # warnings are errors
            with pytest.warns(DataWarning, match="begins at voxel") as told:
                call((0, 0))
            assert [one.message.argument for one in told] == [argument]


def test_gold_in_reverse_order_is_the_one_to_transpose():
    for first, call in (("gold", "gold.T"), ("mask", "superpixels.T")):
        with refuses(first, call):
            check_same_shape(np.zeros((2, 3, 4)), (4, 3, 2), first, "superpixels")
