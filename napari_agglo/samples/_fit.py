"""Fit the pixel classifier of the neuropil samples and print `_weights`.

To be run again when the image or the features change: ``python -m napari_agglo.samples._fit``.
The result depends on the version of scikit-learn, which is why it is kept as text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo.samples._classifier import features
from napari_agglo.samples._neuropil import neuropil
from napari_agglo.samples._noise import generator

_SEED = 1001  # of the training samples; the weights have never seen the others
_PIXELS = 60_000  # drawn from each
_SHAPES = ((96, 160, 160), (384, 384))
_HIDDEN = 8


def fit() -> Any:
    """Return the fitted network (a scikit-learn ``MLPClassifier``)."""
    from sklearn.neural_network import MLPClassifier

    rng = generator(0, _SEED)
    columns, classes = [], []
    for shape in _SHAPES:
        tissue, _ = neuropil(shape, generator(len(shape), _SEED))
        chosen = rng.integers(0, tissue.image.size, _PIXELS)
        columns.append([feature.reshape(-1)[chosen] for feature in features(tissue.image)])
        classes.append(tissue.classes.reshape(-1)[chosen])
    network = MLPClassifier(
        (_HIDDEN,),
        alpha=1e-3,
        batch_size=500,
        learning_rate_init=3e-3,
        max_iter=60,
        random_state=0,
    )
    return network.fit(np.concatenate(columns, axis=1).T, np.concatenate(classes))


def main() -> None:
    """Print the weights as the source of `_weights`, two digits each."""
    network = fit()
    for name, table in zip(("HIDDEN", "OUTPUT"), network.coefs_, strict=True):
        print(f"{name}: tuple[tuple[float, ...], ...] = (")
        for row in table.round(2).tolist():
            print(f"    {tuple(round(weight, 2) + 0.0 for weight in row)},")
        print(")")
    for name, row in zip(("HIDDEN_BIAS", "OUTPUT_BIAS"), network.intercepts_, strict=True):
        print(f"{name}: tuple[float, ...] = {tuple(round(w, 2) + 0.0 for w in row.tolist())}")


if __name__ == "__main__":
    main()
