"""Probabilities as a plausible, imperfect pixel classifier gives them.

Strategy: the classifier is a real one, a small neural network on a few filters of the image, the
kind that pixel classification tools offer. It sees the image alone, so that its errors are those
of such a tool: boundary at the rim of mitochondria, at vesicles and reticulum, and none where
membrane is faint. Its weights were fitted once, on samples of another seed (`_fit` prints them),
and are written in `_weights`: to fit them in every call would cost seconds and tie the bits to
the version of a solver.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from napari_agglo.samples._noise import Floats
from napari_agglo.samples._weights import Network

_SCALES = (1.0, 2.0, 4.0)
_CLOSINGS = (5, 9)
_CONFIDENCE = 1.2  # above 1: classifiers of this kind are surer than they have a right to be


def probabilities(picture: Floats, network: Network) -> list[Floats]:
    """Return the probability of each class that `network` knows, float32; they sum to 1.

    `picture` has grey values of about -0.5 to 0.5.
    """
    from scipy import ndimage

    hidden = [np.full(picture.shape, bias, dtype=np.float32) for bias in network.hidden_bias]
    # Sums in a fixed order, not a matrix product: the bits must not depend on a BLAS.
    for feature, row in zip(features(picture), network.hidden, strict=True):
        for unit, weight in zip(hidden, row, strict=True):
            unit += np.float32(weight) * feature
    scores = [np.full(picture.shape, bias, dtype=np.float32) for bias in network.output_bias]
    for unit, row in zip(hidden, network.output, strict=True):
        np.maximum(unit, 0, out=unit)
        for score, weight in zip(scores, row, strict=True):
            score += np.float32(weight) * unit
    # Smoothing the scores stands for the field of view that a larger network would have.
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
            for size in _CLOSINGS:  # thin dark things vanish, mitochondria stay
                yield 10 * ndimage.grey_closing(smooth, size=(size,) * picture.ndim)
