"""One policy on one image, examined: all that a page shows of it, without the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import breakdown, contingency, table_metrics, vi_curve
from napari_agglo.plots import check_plane, worst_plane
from napari_agglo.report._boundaries import sampled_boundaries
from napari_agglo.report._cutouts import boxes, cut_out
from napari_agglo.report._error_maps import error_map
from napari_agglo.report._finding import Finding, PicturedError
from napari_agglo.volumes import (
    DenseLabels,
    check_labels,
    check_same_shape,
    check_spacing,
    dense_labels,
)

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.tree import MergeTree


def examine(
    tree: MergeTree,
    gold: Any,
    *,
    policy: str = "policy",
    image: str = "image",
    backdrop: Any = None,
    threshold: float = 0.5,
    spacing: Sequence[float] | None = None,
    plane: Sequence[int] | None = None,
    worst: int = 10,
    boundaries: bool = True,
    progress: ProgressCallback | None = None,
) -> Finding:
    """Examine a merge tree for a report.

    Parameters
    ----------
    tree : MergeTree
    gold : array of int, or list of such
        The gold standard, of the shape of the superpixels; 0 is not annotated. Of several, the
        breakdown and the pictures are of the first.
    policy, image : str
        Names for the page.
    backdrop : array, optional
        What lies under the errors in pictures, with an axis of colours or without.
    threshold : float
        Where the tree is cut.
    spacing : sequence of float, optional
        Distance between pixels along each axis.
    plane : sequence of int, optional
        Which plane to draw the error map of, by its index along all axes but the last two; by
        default one with much error. Give all policies the same.
    worst : int
        How many errors to draw.
    boundaries : bool
        Whether to compare boundaries too, which takes longest.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Finding

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> superpixels = np.array([[1, 1, 2, 2, 3, 3]] * 4)
    >>> graph = agglo.region_graph(superpixels, np.zeros((4, 6)))
    >>> tree = agglo.agglomerate(graph, "mean")
    >>> found = examine(tree, np.array([[4, 4, 4, 4, 5, 5]] * 4))
    >>> [(error.kind, error.id) for error in found.errors]
    [('false merge', 1)]
    """
    golds = _golds(gold, tree)
    first = golds[0]
    labels = tree.segment(threshold)
    picture = np.zeros(first.shape) if backdrop is None else np.asarray(backdrop)
    if picture.shape[: first.ndim] != first.shape or picture.ndim > first.ndim + 1:
        raise InvalidInput(
            f"`backdrop` (shape {picture.shape}) must match `gold` (shape {first.shape}), with an "
            "axis of colours after the others or without; pass the same crop of both."
        )
    spacing = None if spacing is None else check_spacing(spacing, first.ndim)
    # Numbered once: every table and the boxes of the errors are counted from these.
    segments = dense_labels(labels, "labels", progress=progress)
    truths = [dense_labels(one, "gold", progress=progress) for one in golds]
    tables = [contingency(segments, one, progress=progress) for one in truths]
    scores = [table_metrics(table) for table in tables]
    parts = breakdown(segments, truths[0], progress=progress)
    worst_ones = parts.worst(worst)
    places = _boxes(worst_ones, segments, truths[0])
    if first.ndim < 2:  # a line of voxels is drawn as an image of one row
        labels, first, picture = labels[None], first[None], picture[None]
        spacing = None if spacing is None else (1.0, *spacing)
        places = [(slice(0, 1), *box) for box in places]
    if plane is None:
        drawn = worst_plane(tables[0], labels, first)
    else:
        drawn = check_plane(plane, first.shape)
    return Finding(
        policy=policy,
        image=image,
        threshold=threshold,
        curve=vi_curve(tree, truths, progress=progress),
        scores={str(k): float(np.mean([s[k] for s in scores])) for k in scores[0].index},
        gold=parts.gold,
        segments=parts.segments,
        errors=_errors(worst_ones, places, picture, labels, first, spacing, progress),
        plane=drawn,
        error_map=error_map(picture, labels, first, tables[0], drawn, spacing),
        boundaries=sampled_boundaries(tree, golds, progress) if boundaries else None,
        shape=golds[0].shape,
    )


def _golds(gold: Any, tree: MergeTree) -> list[NDArray[Any]]:
    golds = []
    for k, one in enumerate(gold if isinstance(gold, (list, tuple)) else [gold]):
        name = f"gold[{k}]" if k else "gold"
        golds.append(check_labels(one, name))
        check_same_shape(golds[-1], tree.superpixels.image, name, "the superpixels of the tree")
        if not golds[-1].any():
            raise InvalidInput(
                f"`{name}` is 0 everywhere, which is not annotated: there is nothing to compare; "
                "give a gold standard."
            )
    if not golds:
        raise InvalidInput("`gold` must hold a gold standard at least, got an empty list.")
    return golds


def _boxes(worst: pd.DataFrame, labels: DenseLabels, gold: DenseLabels) -> list[tuple[slice, ...]]:
    """Return the part of the image that each error lies in."""
    found = {
        kind: boxes(dense, worst.loc[worst["kind"] == kind, "id"].tolist())
        for kind, dense in (("false split", gold), ("false merge", labels))
    }
    return [found[kind][one] for kind, one in zip(worst["kind"], worst["id"], strict=True)]


def _errors(
    worst: pd.DataFrame,
    places: Sequence[tuple[slice, ...]],
    picture: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    spacing: Sequence[float] | None,
    progress: ProgressCallback | None,
) -> tuple[PicturedError, ...]:
    found = []
    for done, (row, box) in enumerate(zip(worst.to_dict("records"), places, strict=True)):
        report(progress, "pictures", done, len(places))
        drawn, plane = cut_out(
            picture, labels, gold, kind=row["kind"], one=row["id"], partners=row["partners"],
            spacing=spacing, box=box,
        )  # fmt: skip
        voxel = tuple(int(row[name]) for name in row if str(name).startswith("voxel_"))
        found.append(
            PicturedError(
                row["kind"], int(row["id"]), float(row["contribution"]), int(row["voxels"]),
                tuple(int(one) for one in row["partners"]), voxel, str(plane), drawn,
            )
        )  # fmt: skip
    return tuple(found)
