"""Fit the weights of `oriented_boundary` to gold borders, and print `_boundary_weights.py`.

    python -m scripts.fit_oriented_boundary [FOLDER]

FOLDER has photographs NAME.jpg with NAME_gt.tif, a label image of each person; by default it is the
part ``train`` of bsds500_subset in the data folder, and the test images are never read. To be run
again when the gradients change. The weights depend on the version of scikit-learn, which is why
they are kept as text.

An example is a pixel with a direction. It is a boundary if a person drew one within 2.5 pixels, in
that direction or in one next to it; with several people it counts by their share. Most examples are
crests of the mean gradient, which is where a watershed puts its lines; the rest are random.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.volumes import data_folder
from napari_agglo.superpixels._boundary_cue import Picture, to_channels
from napari_agglo.superpixels._oriented_energy import DIRECTIONS, gradients
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


def examples(path: Path, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the features of examples of one image, and the share of people who drew a border."""
    import tifffile
    from skimage import io

    image = io.imread(path)
    picture = Picture.of(image, -1)
    limits = float(image.min()), float(image.max())
    stack = np.stack(list(gradients(to_channels(picture.slab(0, len(image)), limits, True))))
    golds = tifffile.imread(path.with_name(f"{path.stem}_gt.tif"))
    share = np.mean([drawn(gold) for gold in golds], axis=0).reshape(DIRECTIONS, -1)
    strength = (stack / stack.mean(axis=(1, 2, 3), keepdims=True)).mean(axis=0)
    best = strength.argmax(axis=0).ravel()
    on_crests = np.flatnonzero(crests(strength))
    pixels = rng.choice(on_crests, min(_CRESTS, on_crests.size), replace=False)
    more = rng.integers(0, best.size, _OTHERS)
    directions = np.concatenate([best[pixels], rng.integers(0, DIRECTIONS, _OTHERS)])
    directions[-_OTHERS // 2 :] = best[more[-_OTHERS // 2 :]]
    pixels = np.concatenate([pixels, more])
    flat = stack.reshape(len(stack), DIRECTIONS, -1)
    across = (directions + DIRECTIONS // 2) % DIRECTIONS
    parts = [flat[:, directions, pixels], flat[:, :, pixels].mean(axis=1), flat[:, across, pixels]]
    return np.sqrt(np.stack(parts, axis=1)).T, share[directions, pixels]


def show(name: str, features: NDArray[Any], share: NDArray[Any]) -> None:
    """Fit a logistic regression and print its weights, three digits each."""
    from sklearn.linear_model import LogisticRegression

    columns = features.transpose(0, 2, 1).reshape(len(features), -1)  # gradient by gradient
    middle, spread = columns.mean(axis=0), columns.std(axis=0)
    scaled = (columns - middle) / spread
    model = LogisticRegression(max_iter=1000)
    drawn_or_not = np.repeat([True, False], len(scaled))
    model.fit(np.tile(scaled, (2, 1)), drawn_or_not, np.concatenate([share, 1 - share]))
    weights = model.coef_[0] / spread
    print(f"{name} = Weights(\n    intercept={model.intercept_[0] - weights @ middle:.3f},")
    print("    factors=(")
    for row in weights.reshape(-1, 3).tolist():
        print(f"        ({', '.join(f'{one + 0.0:.3f}' for one in row)}),")
    print("    ),\n)")


def main() -> None:
    """Fit both regressions and print them."""
    data = data_folder()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else data and data / "bsds500_subset" / "train"
    if folder is None:
        raise SystemExit("No data: name a folder, or set AGGLO_DATA.")
    rng = np.random.default_rng(_SEED)
    each = [examples(path, rng) for path in sorted(folder.glob("*.jpg"))]
    features = np.concatenate([one for one, _ in each])
    share = np.concatenate([one for _, one in each])
    show("COLOUR", features, share)
    show("GREY", features[:, :, :6], share)  # brightness and texture


if __name__ == "__main__":
    main()
