"""Probabilities as a plausible, imperfect pixel classifier gives them.

Strategy: the classifier is a real one, a small neural network on a few filters of the image, the
kind that pixel classification tools offer. It sees the image alone, so that its errors are those of
such a tool: boundary at the rim of mitochondria, at vesicles and reticulum, and none where membrane
is faint. Its weights were fitted once, on samples of another seed (`_fit` prints them), and are written
in `_weights`: to fit them in every call would cost seconds and tie the bits to the version of a solver.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._noise import Floats
from napari_agglo.samples._weights import HIDDEN, HIDDEN_BIAS, OUTPUT, OUTPUT_BIAS

CLASSES = ("cytoplasm", "boundary", "mitochondria")  # as `Tissue.classes` numbers them
_SCALES = (1.0, 2.0, 4.0)
_CLOSINGS = (5, 9)
_CONFIDENCE = 1.2  # above 1: classifiers of this kind are surer than they have a right to be


def probabilities(image: NDArray[np.uint8]) -> dict[str, Floats]:
    """Return the cues of `image`, "boundary" first, each float32 in [0, 1]; they sum to 1."""
    from scipy import ndimage

    hidden = [np.full(image.shape, bias, dtype=np.float32) for bias in HIDDEN_BIAS]
    # Sums in a fixed order, not a matrix product: the bits must not depend on a BLAS.
    for feature, row in zip(features(image), HIDDEN, strict=True):
        for unit, weight in zip(hidden, row, strict=True):
            unit += np.float32(weight) * feature
    scores = [np.full(image.shape, bias, dtype=np.float32) for bias in OUTPUT_BIAS]
    for unit, row in zip(hidden, OUTPUT, strict=True):
        np.maximum(unit, 0, out=unit)
        for score, weight in zip(scores, row, strict=True):
            score += np.float32(weight) * unit
    # Smoothing the scores stands for the field of view that a larger network would have.
    mean = sum(scores) / np.float32(len(scores))
    scores = [_CONFIDENCE * ndimage.gaussian_filter(score - mean, 0.6) for score in scores]
    highest = np.maximum.reduce(scores)
    weights = [np.exp(score - highest) for score in scores]
    total = np.add.reduce(weights)
    cues = {name: weight / total for name, weight in zip(CLASSES, weights, strict=True)}
    return {name: cues[name] for name in ("boundary", "cytoplasm", "mitochondria")}


def features(image: NDArray[np.uint8]) -> Iterator[Floats]:
    """Yield the filters of `image`, one at a time: at each scale value, slope and curvatures.

    The curvatures are bounds of the extreme eigenvalues of the Hessian from its trace and norm
    (mean -+ deviation * sqrt(ndim - 1)): exact in 2-D and for sheets in n-D, at a fraction of the
    cost of the eigenvalues.
    """
    from scipy import ndimage

    scaled = image.astype(np.float32) / 255 - np.float32(0.55)
    for sigma in _SCALES:
        smooth = ndimage.gaussian_filter(scaled, sigma, truncate=3.0)
        slopes = np.gradient(smooth)
        trace, squares = np.float32(0), np.float32(0)
        for i, slope in enumerate(slopes):
            for j in range(i, image.ndim):
                second = np.gradient(slope, axis=j)
                squares = squares + second * second * (1 if i == j else 2)
                if i == j:
                    trace = trace + second
        mean = trace / image.ndim
        spread = np.sqrt(np.maximum(squares / image.ndim - mean * mean, 0) * (image.ndim - 1))
        yield 10 * smooth
        yield 10 * np.float32(sigma) * np.sqrt(sum(slope * slope for slope in slopes))
        yield 10 * np.float32(sigma**2) * (mean + spread)
        yield 10 * np.float32(sigma**2) * (mean - spread)
        if sigma == _SCALES[0]:
            for size in _CLOSINGS:  # thin dark things vanish, mitochondria stay
                yield 10 * ndimage.grey_closing(smooth, size=(size,) * image.ndim)
