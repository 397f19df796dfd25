"""Pixel classifier of the samples: plausible, imperfect probabilities.

Strategy: the classifier is a small neural network on a few filters of the image, as in tools for
pixel classification. Its only input is the image, so that it makes the errors of such tools:
boundary at the rim of mitochondria, at vesicles and reticulum, and none where membrane is faint.
Its weights were fitted once, on samples of another seed (`scripts/fit_sample_classifier.py` prints
them): a fit in every call would take seconds, and its bits would depend on the version of a solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from napari_agglo.samples._random_fields import Floats


class Network(NamedTuple):
    """Weights of a network with one hidden layer of rectified units.

    `hidden` has a row for each feature and a column for each unit, `output` a row for each unit and
    a column for each class.
    """

    hidden: tuple[tuple[float, ...], ...]
    hidden_bias: tuple[float, ...]
    output: tuple[tuple[float, ...], ...]
    output_bias: tuple[float, ...]


# fmt: off
NEUROPIL = Network(
    hidden=(
        (0.35, 0.54, -1.0, -0.24, -0.65, 0.25, 0.08, 0.61),
        (1.51, -0.69, 0.12, 0.05, 0.14, 1.21, -0.98, 1.64),
        (-1.27, -0.01, 0.16, 2.74, 1.43, 0.62, -1.13, -0.52),
        (-1.73, 2.4, 1.38, 0.4, -1.11, -1.01, -0.15, 1.2),
        (-0.03, -0.47, -0.41, 0.18, 0.24, 1.68, -0.08, -0.04),
        (-0.33, 0.06, 0.62, -0.07, 0.12, 0.99, -0.25, 0.13),
        (0.1, 0.48, 0.89, -0.32, 0.16, -0.41, -0.13, -0.35),
        (0.68, -0.07, 1.18, 0.51, 0.3, -0.78, 0.73, -1.7),
        (0.31, -0.05, -0.78, -1.44, 0.38, 0.25, 0.5, -0.69),
        (0.14, 0.23, -0.29, -0.39, 0.06, 0.99, 0.74, -0.91),
        (-0.6, 0.53, 0.54, 0.44, 0.41, -1.15, 0.64, -0.06),
        (-0.33, -0.34, -0.75, -0.26, -1.22, 0.05, -0.53, 0.34),
        (0.08, -0.23, -0.68, 0.1, -0.5, -0.15, -0.21, 0.2),
        (1.0, 0.06, -0.91, 0.11, 0.18, -1.1, 0.13, 0.18),
    ),
    hidden_bias=(0.64, 2.01, -0.4, -0.32, 0.81, 0.81, 1.43, 1.13),
    output=(
        (1.37, -0.65, -0.25),
        (1.49, 0.27, -2.55),
        (-1.23, -1.64, 1.74),
        (-2.72, 1.04, 1.11),
        (-1.11, 0.03, 0.56),
        (1.06, 0.04, -1.33),
        (-0.84, -1.76, 2.03),
        (-1.49, -0.95, 2.43),
    ),
    output_bias=(0.42, 1.13, -1.4),
)
CELLS = Network(
    hidden=(
        (0.04, 0.34, 0.51, 0.0, -0.28, -0.19, -0.51, 0.86),
        (0.23, -2.27, 0.02, 0.0, 0.03, 2.94, -1.96, -0.72),
        (-1.27, -0.91, -0.38, 0.0, -2.41, 0.93, 0.87, -0.12),
        (1.54, 1.43, -0.22, 0.0, 2.32, -2.55, 2.35, 3.27),
        (-0.5, -0.47, -0.54, 0.0, -1.07, 0.71, -0.07, -0.24),
        (0.29, 0.13, 0.43, 0.0, 1.13, 0.37, 0.33, -0.82),
        (0.18, 0.11, 0.39, 0.0, 0.42, -1.25, -0.04, 0.23),
        (0.49, -0.67, -0.57, 0.0, -1.67, -0.77, 0.95, 0.51),
        (0.72, -0.17, 0.95, 0.0, 1.52, 0.99, -0.05, -0.26),
        (0.52, 0.06, 1.42, 0.0, 0.29, 0.61, -0.54, 0.19),
        (0.08, 0.58, -0.34, 0.0, 0.58, -0.41, 0.07, -0.24),
        (-1.68, -0.19, -0.07, 0.0, 0.07, 0.66, 0.93, -0.28),
        (0.75, -1.76, -0.16, 0.0, -1.65, 1.7, 0.87, 0.66),
        (-0.04, -1.1, -0.25, 0.0, -1.41, 0.11, 0.14, 2.69),
    ),
    hidden_bias=(1.21, 2.71, 1.87, -0.17, 0.09, -1.61, 0.94, 0.66),
    output=(
        (0.4, -1.65, 1.35),
        (1.96, 0.95, -4.42),
        (-2.0, 0.23, 1.62),
        (0.0, 0.0, 0.0),
        (-0.58, -2.16, 2.78),
        (0.53, 1.91, -2.49),
        (1.03, -1.74, 0.67),
        (-0.9, -1.2, 1.72),
    ),
    output_bias=(0.18, 0.32, -0.21),
)
# fmt: on


_SCALES = (1.0, 2.0, 4.0)
_CLOSINGS = (5, 9)
_CONFIDENCE = 1.2  # above 1: classifiers of this kind are overconfident


def probabilities(picture: Floats, network: Network) -> list[Floats]:
    """Return the probability of each class of `network`, float32; they sum to 1.

    `picture` has grey values of about -0.5 to 0.5.
    """
    from scipy import ndimage

    hidden = [np.full(picture.shape, bias, dtype=np.float32) for bias in network.hidden_bias]
    # sums in a fixed order, not a matrix product: the bits must not depend on a BLAS
    for feature, row in zip(features(picture), network.hidden, strict=True):
        for unit, weight in zip(hidden, row, strict=True):
            unit += np.float32(weight) * feature
    scores = [np.full(picture.shape, bias, dtype=np.float32) for bias in network.output_bias]
    for unit, row in zip(hidden, network.output, strict=True):
        np.maximum(unit, 0, out=unit)
        for score, weight in zip(scores, row, strict=True):
            score += np.float32(weight) * unit
    # smoothing the scores simulates the larger field of view of a larger network
    mean = sum(scores) / np.float32(len(scores))
    scores = [_CONFIDENCE * ndimage.gaussian_filter(score - mean, 0.6) for score in scores]
    highest = np.maximum.reduce(scores)
    weights = [np.exp(score - highest) for score in scores]
    total = np.add.reduce(weights)
    return [weight / total for weight in weights]


def features(picture: Floats) -> Iterator[Floats]:
    """Yield the filters of `picture`, one at a time: at each scale value, slope and curvatures.

    The curvatures are bounds of the extreme eigenvalues of the Hessian from its trace and norm
    (mean -+ deviation * sqrt(ndim - 1)): exact in 2-D and for sheets in n-D, at a fraction of the
    cost of the eigenvalues.
    """
    from scipy import ndimage

    for sigma in _SCALES:
        smooth = ndimage.gaussian_filter(picture, sigma, truncate=3.0)
        slopes = np.gradient(smooth)
        trace, squares = np.float32(0), np.float32(0)
        for i, slope in enumerate(slopes):
            for j in range(i, picture.ndim):
                second = np.gradient(slope, axis=j)
                squares = squares + second * second * (1 if i == j else 2)
                if i == j:
                    trace = trace + second
        mean = trace / picture.ndim
        spread = np.sqrt(np.maximum(squares / picture.ndim - mean * mean, 0) * (picture.ndim - 1))
        yield 10 * smooth
        yield 10 * np.float32(sigma) * np.sqrt(sum(slope * slope for slope in slopes))
        yield 10 * np.float32(sigma**2) * (mean + spread)
        yield 10 * np.float32(sigma**2) * (mean - spread)
        if sigma == _SCALES[0]:
            for size in _CLOSINGS:  # thin dark lines vanish, mitochondria stay
                yield 10 * ndimage.grey_closing(smooth, size=(size,) * picture.ndim)
