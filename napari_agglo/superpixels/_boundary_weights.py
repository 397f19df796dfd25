"""Weights of `oriented_boundary`, as ``scripts/fit_oriented_boundary.py`` prints them.

In its own file because it is generated: from the 20 training images of the subset
of BSDS500 that the benchmarks use, whose test images had no part in them.
"""

from __future__ import annotations

from typing import NamedTuple


class Weights(NamedTuple):
    """A logistic regression on the roots of gradients.

    `factors` has, for each gradient, the weights of that of the direction itself, of the mean over
    all directions, and of that of the direction at right angles.
    """

    intercept: float
    factors: tuple[tuple[float, float, float], ...]


class Whole(NamedTuple):
    """A logistic regression on the logit of the discs and what the whole image says.

    `local` is the factor of that logit, `parts` that of the third root of the gradients of
    eigenvectors, `level` that of the logit that the strongest directions of a tenth of the pixels
    exceed, which is taken to be within `levels`, the range of the images of the fit.
    """

    intercept: float
    local: float
    parts: float
    level: float
    levels: tuple[float, float]


# fmt: off
COLOUR = Weights(
    intercept=-7.278,
    factors=(
        (0.249, 1.990, 0.153),
        (1.814, -1.951, 1.015),
        (2.317, -1.282, 0.904),
        (0.639, -0.321, 0.436),
        (-0.672, 0.388, -0.340),
        (0.443, 2.655, -0.496),
        (-0.278, 0.909, -0.454),
        (0.789, 0.476, -0.502),
        (0.688, -0.697, -0.062),
        (-0.008, 2.425, -0.589),
        (0.943, -1.393, 0.764),
        (1.201, -0.082, 0.425),
    ),
)
GREY = Weights(
    intercept=-7.059,
    factors=(
        (-0.084, 2.203, 0.199),
        (1.850, -0.775, 0.664),
        (3.620, -1.311, 1.011),
        (0.557, -0.213, 0.408),
        (-0.947, 0.247, -0.281),
        (0.822, 3.478, -0.675),
    ),
)
COLOUR_WHOLE = Whole(
    intercept=-2.014,
    local=1.017,
    parts=0.943,
    level=-0.672,
    levels=(-2.51, -0.56),
)
GREY_WHOLE = Whole(
    intercept=-2.454,
    local=1.051,
    parts=1.211,
    level=-0.649,
    levels=(-2.41, -0.50),
)
