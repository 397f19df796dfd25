"""The parts below the samples: smooth noise, packing, and the features of the classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from napari_agglo.samples import Sample
from napari_agglo.samples._classifier import CELLS, NEUROPIL, features, probabilities
from napari_agglo.samples._neurites import Calibre, box_around, pack
from napari_agglo.samples._neuropil import neuropil, neuropil_cues
from napari_agglo.samples._random_fields import generator, smooth_noise
from napari_agglo.samples._sample import cells_sample, neuropil_sample


@pytest.mark.parametrize("sigma", [1.0, 3.0, 8.0])
def test_smooth_noise_has_unit_variance_and_the_correlation_length(sigma: float) -> None:
    field = smooth_noise((300, 300), sigma, generator(1, 0))
    assert field.dtype == np.float32
    assert abs(field.std() - 1) < 0.25
    near = np.corrcoef(field[:, :-1].ravel(), field[:, 1:].ravel())[0, 1]
    distance = int(4 * sigma)
    far = np.corrcoef(field[:, :-distance].ravel(), field[:, distance:].ravel())[0, 1]
    assert near > 0.7
    assert abs(far) < 0.3


def test_generators_differ_by_kind_and_seed() -> None:
    draws = {generator(kind, seed).random() for kind in (2, 3) for seed in (0, 1)}
    assert len(draws) == 4


@pytest.mark.parametrize("shape", [(400,), (90, 90), (30, 40, 40), (10, 12, 14, 16)])
def test_packing_fills_its_share_in_any_dimension(shape: tuple[int, ...]) -> None:
    packing = pack(shape, (Calibre(0.4, (4.0, 6.0), (10.0, 30.0), 0.3, 1.0),), generator(1, 0))
    assert packing.labels.shape == shape
    assert len(packing.walks) > 1
    assert np.mean(packing.clearance < 0) > 0.3
    assert set(np.unique(packing.labels)) <= set(range(len(packing.walks) + 1))
    assert (packing.labels[packing.clearance < 0] > 0).all()


def test_box_around_is_clipped_and_none_outside() -> None:
    centre = np.array([2.0, 9.0])
    assert box_around(centre, 3.0, (10, 10)) == (slice(0, 6), slice(6, 10))
    assert box_around(np.array([30.0, 5.0]), 3.0, (10, 10)) is None


def test_curvatures_are_the_eigenvalues_of_the_hessian_in_the_plane() -> None:
    row, column = np.mgrid[-16:17, -16:17].astype(np.float32)
    # A saddle, turned: its Hessian has the eigenvalues 0.02 and -0.01 everywhere.
    angle = 0.4
    u = np.cos(angle) * row + np.sin(angle) * column
    v = -np.sin(angle) * row + np.cos(angle) * column
    _, _, highest, lowest, *_ = features((0.01 * u**2 - 0.005 * v**2).astype(np.float32))
    assert highest[16, 16] == pytest.approx(10 * 0.02, rel=1e-3)
    assert lowest[16, 16] == pytest.approx(-10 * 0.01, rel=1e-3)


def test_highest_curvature_of_a_sheet_is_exact_in_space() -> None:
    plane = np.arange(-12, 13, dtype=np.float32)[:, None, None]
    sheet = np.broadcast_to(0.01 * plane**2, (25, 25, 25)).astype(np.float32)
    _, _, highest, *_ = features(sheet)
    assert highest[12, 12, 12] == pytest.approx(10 * 0.02, rel=1e-3)


@pytest.mark.parametrize("network", [NEUROPIL, CELLS])
def test_the_network_fits_the_features(network: object) -> None:
    picture = smooth_noise((20, 22), 2.0, generator(1, 0)) * np.float32(0.2)
    assert len(network.hidden) == len(list(features(picture)))
    chances = probabilities(picture, network)
    assert len(chances) == len(network.output_bias) == 3
    np.testing.assert_allclose(np.add.reduce(chances), 1, atol=1e-5)


def test_the_network_agrees_with_matrix_products() -> None:
    from scipy import ndimage

    picture = smooth_noise((12, 13), 2.0, generator(1, 1)) * np.float32(0.2)
    columns = np.stack([feature.ravel() for feature in features(picture)], axis=1)
    hidden = np.maximum(columns @ np.array(NEUROPIL.hidden) + NEUROPIL.hidden_bias, 0)
    scores = hidden @ np.array(NEUROPIL.output) + NEUROPIL.output_bias
    smooth = [1.2 * ndimage.gaussian_filter(s.reshape(picture.shape), 0.6) for s in scores.T]
    expected = np.exp(smooth) / np.exp(smooth).sum(axis=0)
    np.testing.assert_allclose(probabilities(picture, NEUROPIL), expected, atol=1e-4)


def content(one: Sample) -> list[bytes]:
    return [np.ascontiguousarray(a).tobytes() for a in (one.image, one.gold, *one.cues.values())]


def test_same_seed_same_bits_and_another_seed_another_sample_of_any_shape() -> None:
    for make, shape in ((neuropil_sample, (20, 48, 56)), (cells_sample, (96, 80))):
        first, again, other = (make("x", shape, seed) for seed in (3, 3, 4))
        assert content(first) == content(again)
        assert content(first) != content(other)
        assert not np.array_equal(first.gold, other.gold)


def test_the_classifier_errs_where_such_classifiers_do() -> None:
    tissue, _ = neuropil((384, 384), generator(2, 5))
    cues = neuropil_cues(tissue.image)
    membrane, mitochondria = tissue.classes == 1, tissue.classes == 2
    plain = tissue.classes == 0
    # False boundary belongs to mitochondria more than to cytoplasm ...
    false = cues["boundary"] > 0.5
    assert false[mitochondria].mean() > 2 * false[plain].mean()
    # ... some membrane is missed ...
    assert 0.02 < (cues["boundary"][membrane] < 0.2).mean() < 0.4
    # ... the values saturate, and the third cue tells the two apart, which is there to be learnt.
    assert ((cues["boundary"] < 0.05) | (cues["boundary"] > 0.95)).mean() > 0.5
    scored, true = cues["mitochondria"].reshape(-1)[::7], mitochondria.reshape(-1)[::7]
    assert 0.85 < roc_auc_score(true, scored) < 0.99


@pytest.mark.parametrize("shape", [(2, 64, 64), (8, 9, 70), (5, 5), (2, 200)])
def test_odd_shapes_work(shape: tuple[int, ...]) -> None:
    one = neuropil_sample("x", shape, 0)
    assert one.gold.shape == one.cues["boundary"].shape == shape
    assert one.gold.max() >= 1
