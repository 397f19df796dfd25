"""Fit the weights of `oriented_boundary` to gold borders, and print `_boundary_weights.py`.

    python -m scripts.fit_oriented_boundary [--whole] [FOLDER]

FOLDER has photographs NAME.jpg with NAME_gt.tif, a label image of each person; by default it is the
part ``train`` of bsds500_subset in the data folder, and the test images are never read. To be run
again when the gradients change. The weights depend on the version of scikit-learn, which is why
they are kept as text.

An example is a pixel with a direction. It is a boundary if a person drew one within 2.5 pixels, in
that direction or in one next to it; with several people it counts by their share. Most examples are
crests of the mean gradient, which is where a watershed puts its lines; the rest are random.
The first two regressions combine the gradients of discs. The last two, for which ``--whole`` takes
the first ones from the file, combine the logit of the discs with what the whole image says.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.volumes import data_folder
from napari_agglo.superpixels._boundary_cue import Picture, to_channels
from napari_agglo.superpixels._boundary_weights import COLOUR, GREY, Weights
from napari_agglo.superpixels._oriented_energy import (
    DIRECTIONS,
    add_gradient,
    along_lines,
    gradients,
    of_the_whole,
)
from napari_agglo.volumes import border_channels

_CRESTS, _OTHERS = 12_000, 6_000  # examples of each image
_NEAR = 2.5  # pixels to a border that someone drew
_SEED = 0


def drawn(gold: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each direction the pixels that are near a gold border of about that direction."""
    faces = border_channels(gold, DIRECTIONS, 1.5)
    out = np.empty((DIRECTIONS, *gold.shape), bool)
    for k in range(DIRECTIONS):
        near = np.isin(faces, [(k + step) % DIRECTIONS for step in (-1, 0, 1)])
        hit = near.any(axis=0)
        hit[1:] |= near[0, :-1]
        hit[:, 1:] |= near[1, :, :-1]
        out[k] = ndimage.distance_transform_edt(~hit) <= _NEAR
    return out


def crests(strength: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the pixels that are higher than both neighbours across their strongest direction."""
    best = strength.argmax(axis=0)
    out = np.zeros(best.shape, bool)
    for k in range(DIRECTIONS):
        angle = np.pi * k / DIRECTIONS
        step = np.array([np.cos(angle), np.sin(angle)])
        sides = [ndimage.shift(strength[k], way * step, order=1, mode="nearest") for way in (1, -1)]
        out |= (best == k) & (strength[k] >= np.maximum(*sides))
    return out


class Annotated(NamedTuple):
    """A photograph as channels, and the share of people who drew a border, by direction."""

    values: NDArray[np.float32]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, path: Path) -> Annotated:
        """Read a photograph and its annotations."""
        import tifffile
        from skimage import io

        image = io.imread(path)
        picture = Picture.of(image, -1)
        limits = float(image.min()), float(image.max())
        values = to_channels(picture.slab(0, len(image)), limits, True)
        golds = tifffile.imread(path.with_name(f"{path.stem}_gt.tif"))
        share = np.mean([drawn(gold) for gold in golds], axis=0).reshape(DIRECTIONS, -1)
        return cls(values, share)


def chosen(
    strength: NDArray[np.float32], rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the directions and the pixels of examples."""
    best = strength.argmax(axis=0).ravel()
    on_crests = np.flatnonzero(crests(strength))
    pixels = rng.choice(on_crests, min(_CRESTS, on_crests.size), replace=False)
    more = rng.integers(0, best.size, _OTHERS)
    directions = np.concatenate([best[pixels], rng.integers(0, DIRECTIONS, _OTHERS)])
    directions[-_OTHERS // 2 :] = best[more[-_OTHERS // 2 :]]
    return directions, np.concatenate([pixels, more])


def examples(one: Annotated, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the gradients of examples of one image, and the share of people who drew a border."""
    stack = np.stack(list(gradients(one.values)))
    strength = (stack / stack.mean(axis=(1, 2, 3), keepdims=True)).mean(axis=0)
    directions, pixels = chosen(strength, rng)
    flat = stack.reshape(len(stack), DIRECTIONS, -1)
    across = (directions + DIRECTIONS // 2) % DIRECTIONS
    parts = [flat[:, directions, pixels], flat[:, :, pixels].mean(axis=1), flat[:, across, pixels]]
    return np.sqrt(np.stack(parts, axis=1)).T, one.share[directions, pixels]


def whole_examples(
    one: Annotated, each: tuple[Weights, ...], rng: np.random.Generator
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return, for each regression of gradients, examples of what the whole image says."""
    shape = DIRECTIONS, *one.values.shape[1:]
    energies = [np.full(shape, np.float32(weights.intercept)) for weights in each]
    for k, planes in enumerate(gradients(one.values)):
        for energy, weights in zip(energies, each, strict=True):
            if k < len(weights.factors):
                add_gradient(energy, planes, weights, k)
    out = []
    for energy in energies:
        smooth = np.stack([along_lines(energy[k], k / DIRECTIONS) for k in range(DIRECTIONS)])
        parts, level = of_the_whole(smooth)
        directions, pixels = chosen(smooth, rng)
        columns = [one.reshape(DIRECTIONS, -1)[directions, pixels] for one in (smooth, parts)]
        rows = np.stack([*columns, np.full(len(pixels), level)], axis=1)
        out.append((rows, one.share[directions, pixels]))
    return out


def fitted(columns: NDArray[Any], share: NDArray[Any]) -> tuple[float, NDArray[Any]]:
    """Return the intercept and the weights of a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    middle, spread = columns.mean(axis=0), columns.std(axis=0)
    scaled = (columns - middle) / spread
    model = LogisticRegression(max_iter=1000)
    drawn_or_not = np.repeat([True, False], len(scaled))
    model.fit(np.tile(scaled, (2, 1)), drawn_or_not, np.concatenate([share, 1 - share]))
    weights = model.coef_[0] / spread
    return float(model.intercept_[0] - weights @ middle), weights


def show(name: str, features: NDArray[Any], share: NDArray[Any]) -> Weights:
    """Fit the regression of gradients and print its weights, three digits each."""
    columns = features.transpose(0, 2, 1).reshape(len(features), -1)  # gradient by gradient
    intercept, weights = fitted(columns, share)
    rows = np.round(weights, 3).reshape(-1, 3).tolist()
    print(f"{name} = Weights(\n    intercept={intercept:.3f},\n    factors=(")
    for row in rows:
        print(f"        ({', '.join(f'{one + 0.0:.3f}' for one in row)}),")
    print("    ),\n)")
    return Weights(round(intercept, 3), tuple((a, b, c) for a, b, c in rows))


def show_whole(name: str, rows: NDArray[Any], share: NDArray[Any]) -> None:
    """Fit the regression of what the whole image says, and print its weights."""
    intercept, (local, parts, level) = fitted(rows, share)
    low, high = rows[:, 2].min(), rows[:, 2].max()
    print(f"{name}_WHOLE = Whole(\n    intercept={intercept:.3f},\n    local={local:.3f},")
    print(f"    parts={parts:.3f},\n    level={level:.3f},\n    levels=({low:.2f}, {high:.2f}),\n)")


def main() -> None:
    """Fit the regressions and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="only what the whole image says")
    parser.add_argument("folder", type=Path, nargs="?")
    given = parser.parse_args()
    data = data_folder()
    folder = given.folder or (data and data / "bsds500_subset" / "train")
    if folder is None:
        raise SystemExit("No data: name a folder, or set AGGLO_DATA.")
    images = [Annotated.of(path) for path in sorted(folder.glob("*.jpg"))]
    each = COLOUR, GREY
    if not given.whole:
        rng = np.random.default_rng(_SEED)
        pairs = [examples(one, rng) for one in images]
        features, share = (np.concatenate(part) for part in zip(*pairs, strict=True))
        # grey: brightness and texture alone
        each = show("COLOUR", features, share), show("GREY", features[:, :, :6], share)
    found = [
        whole_examples(one, each, np.random.default_rng((_SEED, k))) for k, one in enumerate(images)
    ]
    for name, pairs in zip(("COLOUR", "GREY"), zip(*found, strict=True), strict=True):
        rows, share = (np.concatenate(part) for part in zip(*pairs, strict=True))
        show_whole(name, rows, share)


if __name__ == "__main__":
    main()
