"""The wording of errors, in Python and on the command line: the one place that compares sentences.

Other tests assert `error.argument` and `error.remedy`. After a change of wording, read the
difference and copy the new sentences.
"""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from napari_agglo.errors import InvalidInput
from napari_agglo.samples import sample
from napari_agglo.superpixels import boundary_cue, oversegment
from napari_agglo.volumes import (
    Volume,
    check_cues,
    check_labels,
    check_mask,
    check_same_spacing,
    write_labels,
)

MAP = np.linspace(0, 1, 12).reshape(3, 4)
LABELS = np.arange(12).reshape(3, 4)
SEGMENT = "segment --superpixels s.h5:a --cues b.npy -o o.tif"
OVERSEGMENT = "oversegment b.npy -o o.tif"

WORDING = [
    (
        lambda: check_cues(MAP.astype(np.uint8), (3, 4)),
        {"b.npy": MAP.astype(np.uint8)},
        SEGMENT,
        "`cues['boundary']` is uint8, whose range is not known (values in [0, 1] are expected); "
        "pass ranges={'boundary': (0, 255)}, or pass ranges={'boundary': (255, 0)} if dark is "
        "boundary.",
        "b.npy is uint8, whose range is not known (values in [0, 1] are expected); add --range "
        "boundary=0:255, or add --range boundary=255:0 if dark is boundary.",
    ),
    (
        lambda: check_cues(LABELS, (3, 4)),
        {"b.npy": LABELS},
        SEGMENT,
        "`cues['boundary']` is int64 and looks like a label image, not like a map of values in "
        "[0, 1]; use the probability map, or pass `ranges` for 'boundary' to declare its range.",
        "b.npy is int64 and looks like a label image, not like a map of values in [0, 1]; use the "
        "probability map, or add --range boundary=LOW:HIGH to declare its range.",
    ),
    (
        lambda: check_cues(np.where(MAP == 1, np.nan, MAP), (3, 4)),
        {"b.npy": np.where(MAP == 1, np.nan, MAP)},
        SEGMENT,
        "`cues['boundary']` has 1 values that are NaN or infinite, the first at index (2, 3); "
        "replace them, or pass nan='boundary' to count them as boundary.",
        "b.npy has 1 values that are NaN or infinite, the first at index (2, 3); replace them, or "
        "add --nan boundary to count them as boundary.",
    ),
    (
        lambda: check_cues(MAP, (1, 3, 4)),
        {"s.h5": LABELS[None]},
        SEGMENT,
        "`superpixels` (shape (1, 3, 4)) must match `cues['boundary']` (shape (3, 4)), but "
        "`superpixels` has axis 0 of length 1 in excess; pick one index along axis 0, e.g. "
        "array[0].",
        "s.h5:a (shape (1, 3, 4)) must match b.npy (shape (3, 4)), but s.h5:a has axis 0 of length "
        "1 in excess; pick an index, e.g. s.h5:a,0=0.",
    ),
    (
        lambda: check_labels(MAP),
        {"s.h5": MAP},
        SEGMENT,
        "`superpixels` must hold integer labels, not float64; use the label image, or convert it "
        "with .astype('int64') if it holds whole numbers.",
        "s.h5:a must hold integer labels, not float64; use the label image, or save it as int64 if "
        "it holds whole numbers.",
    ),
    (
        lambda: check_labels(MAP > 0.5),
        {"s.h5": MAP > 0.5},
        SEGMENT,
        "`superpixels` must hold integer labels, not a bool mask; label its connected components "
        "first, e.g. scipy.ndimage.label(mask)[0].",
        "s.h5:a must hold integer labels, not a bool mask; label its connected components first, "
        "and save the labels.",
    ),
    (
        lambda: check_mask(MAP, (3, 4)),
        {"m.npy": MAP},
        f"{OVERSEGMENT} --mask m.npy",
        "`mask` must be a mask of bool or integers, not float64; convert it to bool first, e.g. "
        "mask > 0.5.",
        "m.npy must be a mask of bool or integers, not float64; convert it to bool first, e.g. "
        "mask > 0.5.",
    ),
    (
        lambda: check_same_spacing(
            {"labels": Volume(LABELS, (1.0, 1.0)), "gold": Volume(LABELS, (2.0, 1.0))}
        ),
        {"l.npz": Volume(LABELS, (1.0, 1.0)), "g.npz": Volume(LABELS, (2.0, 1.0))},
        "evaluate l.npz --gold g.npz",
        "`labels` has spacing (1.0, 1.0) and `gold` has (2.0, 1.0), but they must be on one grid; "
        "resample one, or pass `spacing` for all.",
        "l.npz has spacing (1.0, 1.0) and g.npz has (2.0, 1.0), but they must be on one grid; "
        "resample one, or add --spacing Z,Y,X for all.",
    ),
    (
        lambda: oversegment(MAP, spacing=(1, 2, 3)),
        {},
        f"{OVERSEGMENT} --spacing 1,2,3",
        "`spacing` must be 2 positive numbers, one per axis (order: row, column), not 3 "
        "(1, 2, 3); pass spacing=(1.0, 1.0) if it is not known.",
        "--spacing must be 2 positive numbers, one per axis (order: row, column), not 3 "
        "(1, 2, 3); add --spacing 1,1 if it is not known.",
    ),
    (
        lambda: oversegment(np.zeros((3, 9, 20, 20))),
        {"b.npy": np.zeros((3, 9, 20, 20))},
        OVERSEGMENT,
        "`boundary` (shape (3, 9, 20, 20)) looks like affinities, a volume for each offset, not "
        "like one boundary map; pass affinities(array), or pass per_plane=True if these "
        "are 3 separate volumes.",
        "b.npy (shape (3, 9, 20, 20)) looks like affinities, a volume for each offset, not like "
        "one boundary map; give it as --affinities b.npy, or add --per-plane if these are "
        "3 separate volumes.",
    ),
    (
        lambda: oversegment(MAP, per_plane=True),
        {},
        f"{OVERSEGMENT} --per-plane",
        "`boundary` (shape (3, 4)) has only one plane; leave `per_plane` out.",
        "b.npy (shape (3, 4)) has only one plane; leave --per-plane out.",
    ),
    (
        lambda: boundary_cue(MAP, "colour"),
        {},
        "cue b.npy --kind colour -o o.tif",
        "`image` (shape (3, 4)) has no channels, so it has no colours; pass `channel_axis`, or "
        "pass kind='gradient'.",
        "b.npy (shape (3, 4)) has no channels, so it has no colours; add --kind gradient.",
    ),
    (
        lambda: sample("cells2d", seed=-1),
        {},
        "sample cells2d --seed -1 -o o",
        "`seed` must be a whole number of 0 or more, got -1; pass seed=0.",
        "--seed must be a whole number of 0 or more, got -1; add --seed 0.",
    ),
]


@pytest.mark.parametrize(("call", "arrays", "command", "python", "command_line"), WORDING)
def test_wording(refused, tmp_path, monkeypatch, call, arrays, command, python, command_line):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value) == python
    monkeypatch.chdir(tmp_path)
    for name, array in ({"b.npy": MAP, "s.h5": LABELS} | arrays).items():
        if name == "s.h5":
            with h5py.File(name, "w") as file:
                file["a"] = array
        elif isinstance(array, Volume):
            write_labels(name, array.load(), spacing=array.spacing)
        else:
            np.save(name, array)
    assert refused(*command.split()).line == f"napari-agglo: {command_line}\n"


def test_a_name_that_is_not_known_stays(refused, monkeypatch, tmp_path):
    def refuse(*arguments, **options):
        raise InvalidInput("`unknown` stays", remedy="use a crop")

    monkeypatch.setattr("napari_agglo.samples.sample", refuse)
    message = refused("sample", "cells2d", "-o", tmp_path / "o").line
    assert message == "napari-agglo: `unknown` stays; use a crop.\n"
