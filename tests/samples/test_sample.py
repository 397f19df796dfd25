"""The samples as the user gets them: same bits, sound gold, plausible but imperfect cues."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys

import numpy as np
import pytest
from refusals import refuses
from skimage.measure import label
from skimage.segmentation import find_boundaries
from sklearn.metrics import roc_auc_score

from napari_agglo.errors import SetOption
from napari_agglo.samples import SAMPLES, Sample, sample

SHAPES = {"neuropil3d": (96, 160, 160), "neuropil2d": (384, 384), "cells2d": (320, 320)}
CUES = {
    "neuropil3d": ["boundary", "cytoplasm", "mitochondria"],
    "neuropil2d": ["boundary", "cytoplasm", "mitochondria"],
    "cells2d": ["boundary", "nucleus", "brightness", "texture"],
}


def digest(one: Sample) -> str:
    hashed = hashlib.sha256()
    for array in (one.image, one.gold, *one.cues.values()):
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def separability(values: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve of `values` as evidence for `positive`, on every 7th pixel."""
    return float(roc_auc_score(positive.reshape(-1)[::7], values.reshape(-1)[::7]))


@pytest.fixture(scope="module", params=SAMPLES)
def whole(request: pytest.FixtureRequest) -> Sample:
    return sample(request.param)


def test_the_kinds_are_those_promised() -> None:
    assert SAMPLES == ("neuropil3d", "neuropil2d", "cells2d")


def test_shapes_types_and_ranges(whole: Sample) -> None:
    assert whole.name in SAMPLES
    assert whole.image.shape == whole.gold.shape == SHAPES[whole.name]
    assert whole.image.dtype == np.uint8
    assert whole.gold.dtype == np.uint16
    assert len(whole.spacing) == whole.image.ndim
    assert list(whole.cues) == CUES[whole.name]
    for name, cue in whole.cues.items():
        assert cue.shape == whole.image.shape, name
        assert cue.dtype == np.float32, name
        assert np.isfinite(cue).all(), name
        assert cue.min() >= 0, name
        assert cue.max() <= 1, name


def test_image_uses_the_grey_scale(whole: Sample) -> None:
    low, high = np.percentile(whole.image, [1, 99])
    assert high - low > 60
    assert np.mean((whole.image == 0) | (whole.image == 255)) < 0.02


def test_every_gold_region_is_one_connected_piece(whole: Sample) -> None:
    pieces, count = label(whole.gold, connectivity=1, background=0, return_num=True)
    assert count == whole.gold.max() == np.unique(whole.gold[whole.gold > 0]).size
    assert pieces.max() > 50


def test_sizes_are_very_different(whole: Sample) -> None:
    sizes = np.bincount(whole.gold.reshape(-1))[1:]
    factor = 3 if whole.name == "cells2d" else 8
    assert np.percentile(sizes, 95) > factor * np.percentile(sizes, 20)


def test_gold_annotates_most_pixels(whole: Sample) -> None:
    annotated = np.mean(whole.gold > 0)
    assert annotated == 1 if whole.name == "cells2d" else 0.6 < annotated < 0.95


def test_boundary_cue_is_good_but_not_perfect(whole: Sample) -> None:
    between = find_boundaries(whole.gold, connectivity=1, mode="thick")
    assert 0.8 < separability(whole.cues["boundary"], between) < 0.985


def test_another_seed_gives_another_sample() -> None:
    for kind in ("neuropil2d", "cells2d"):
        first, other = (sample(kind, seed=seed) for seed in (3, 4))
        assert digest(first) != digest(other)
        assert not np.array_equal(first.gold, other.gold)


def test_another_process_gives_the_same_bits_without_scikit_learn() -> None:
    kinds = ["neuropil2d", "cells2d"]
    code = (
        "import hashlib, sys, numpy as np\n"
        "from napari_agglo.samples import sample\n"
        "for kind in sys.argv[1:]:\n"
        "    one = sample(kind, seed=1)\n"
        "    hashed = hashlib.sha256()\n"
        "    for array in (one.image, one.gold, *one.cues.values()):\n"
        "        hashed.update(np.ascontiguousarray(array).tobytes())\n"
        "    print(hashed.hexdigest())\n"
        "print('sklearn' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, *kinds]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert out.stdout.split() == [*(digest(sample(kind, seed=1)) for kind in kinds), "False"]


def test_importing_the_samples_loads_nothing_heavy() -> None:
    code = "import sys, napari_agglo.samples; print([m for m in HEAVY if m in sys.modules])"
    code = code.replace("HEAVY", "('scipy', 'skimage', 'sklearn', 'numba')")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_cues_of_neuropil_sum_to_one(whole: Sample) -> None:
    if whole.name != "cells2d":
        np.testing.assert_allclose(sum(whole.cues.values()), 1, atol=1e-5)


@pytest.mark.parametrize("kind", ["neuropil", "", "NEUROPIL3D", None])
def test_unknown_kind_names_the_known_ones(kind: str) -> None:
    with refuses("kind", SetOption("kind", SAMPLES[0]), facts=(*SAMPLES, repr(kind))):
        sample(kind)


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None])
def test_bad_seed(seed: int) -> None:
    with refuses("seed", SetOption("seed", 0)):
        sample("cells2d", seed=seed)


def test_numpy_integers_are_seeds() -> None:
    assert digest(sample("cells2d", seed=np.int64(2))) == digest(sample("cells2d", seed=2))


def test_a_sample_is_frozen(whole: Sample) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        whole.name = "y"
