"""Fit the pixel classifiers of the samples and print the tables of `samples/_classifier.py`.

To be run again when the images or the features change: ``python scripts/fit_sample_classifier.py``.
The result depends on the version of scikit-learn, which is why it is kept as text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo.samples._cells import cells, flattened
from napari_agglo.samples._classifier import features
from napari_agglo.samples._neuropil import Tissue, centred, neuropil
from napari_agglo.samples._random_fields import Floats, generator

_SEED = 1001  # of the training samples; the weights have never seen the others
_PIXELS = 60_000  # drawn from each
_UNITS = 8


def fit(training: list[tuple[Tissue, Floats]]) -> Any:
    """Return a scikit-learn ``MLPClassifier`` fitted to tissues and their pictures."""
    from sklearn.neural_network import MLPClassifier

    rng = generator(0, _SEED)
    columns, classes = [], []
    for tissue, picture in training:
        chosen = rng.integers(0, picture.size, _PIXELS)
        columns.append([feature.reshape(-1)[chosen] for feature in features(picture)])
        classes.append(tissue.classes.reshape(-1)[chosen])
    network = MLPClassifier(
        (_UNITS,),
        alpha=1e-3,
        batch_size=500,
        learning_rate_init=3e-3,
        max_iter=60,
        random_state=0,
    )
    return network.fit(np.concatenate(columns, axis=1).T, np.concatenate(classes))


def show(name: str, network: Any) -> None:
    """Print one table, two digits a weight."""
    print(f"{name} = Network(")
    for part, table, bias in zip(
        ("hidden", "output"), network.coefs_, network.intercepts_, strict=True
    ):
        print(f"    {part}=(")
        for row in table.tolist():
            print(f"        {_rounded(row)},")
        print(f"    ),\n    {part}_bias={_rounded(bias.tolist())},")
    print(")")


def _rounded(row: list[float]) -> tuple[float, ...]:
    return tuple(round(weight, 2) + 0.0 for weight in row)  # + 0.0: no minus before a zero


def main() -> None:
    """Fit both classifiers and print them."""
    brains = [neuropil(shape, generator(9, _SEED))[0] for shape in ((96, 160, 160), (384, 384))]
    show("NEUROPIL", fit([(tissue, centred(tissue.image)) for tissue in brains]))
    dishes = [cells((320, 320), generator(key, _SEED))[0] for key in (7, 8)]
    show("CELLS", fit([(tissue, flattened(tissue.image)) for tissue in dishes]))


if __name__ == "__main__":
    main()
