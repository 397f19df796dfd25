"""Examination of one policy on one image: the numbers and pictures of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.errors import InvalidInput, is_number, is_whole
from napari_agglo.evaluate import boundary_curve, breakdown, contingency, table_metrics, vi_curve
from napari_agglo.evaluate._boundary import Matches
from napari_agglo.evaluate._metrics import dense_golds
from napari_agglo.plots import check_plane, worst_plane
from napari_agglo.report._pictures import boxes, cut_out, error_map
from napari_agglo.volumes import (
    DenseLabels,
    check_labels,
    check_same_shape,
    check_spacing,
    dense_labels,
    is_lazy,
    is_on_disk,
    require_memory,
    unwrap,
)

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.agglomeration import MergeTree


THRESHOLDS = (-np.inf, *(k / 20 for k in range(20)))  # the same for all images, so that they add
_COUNTS = ["drawn", "right", "true", "recalled"]
_PLANES = 5
_IN_PARTS = (
    "examine a crop",
    "take the errors of the whole from `vi_curve`, which reads volumes on disk in slabs",
)
Worst = Annotated[int, {"min": 0, "max": 100}]  # as a control offers it
_SIDE = 640  # pixels of a plane along each axis, from its middle
# The ends of the steps of `examine` as shares of its work: dense ids, overlaps, breakdown, errors
# at every threshold, pictures, boundaries.
_SHARES = (0.0, 0.05, 0.15, 0.35, 0.55, 0.75, 1.0)


def clean_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a training record that have the expected type.

    A record comes from a file, and an invalid entry must not break the page.

    Examples
    --------
    >>> clean_record({"strategy": "agglo", "epochs": "many", "importances": {"a": 0.5, "b": None}})
    {'strategy': 'agglo', 'importances': {'a': 0.5}}
    """
    out: dict[str, Any] = {}
    if isinstance(record.get("strategy"), str):
        out["strategy"] = record["strategy"]
    out |= {
        name: int(record[name])
        for name in ("epochs", "examples")
        if is_whole(record.get(name)) and record[name] >= 0
    }
    if _finite(record.get("accuracy")):
        out["accuracy"] = float(record["accuracy"])
    if isinstance(record.get("held_out"), bool):
        out["held_out"] = record["held_out"]
    bins = record.get("calibration")
    if isinstance(bins, (list, tuple)):
        triples = [one for one in bins if isinstance(one, (list, tuple)) and len(one) == 3]
        out["calibration"] = [
            [float(v) for v in one] for one in triples if all(map(_finite, one)) and one[2] > 0
        ]
    importances = record.get("importances")
    if isinstance(importances, Mapping):
        out["importances"] = {str(k): float(v) for k, v in importances.items() if _finite(v)}
    return out


def _finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def trained(record: Mapping[str, Any]) -> str:
    """Return a line about the training of a policy.

    Examples
    --------
    >>> trained({"strategy": "agglo", "epochs": 5, "examples": 300})
    'agglo, 5 epochs, 300 examples'
    >>> trained({"strategy": "agglo", "epochs": 1})
    'agglo, 1 epoch'
    """
    words = [str(record.get("strategy", "trained"))]
    for noun in ("epochs", "examples"):
        if record.get(noun):
            words.append(f"{record[noun]} {noun if record[noun] != 1 else noun[:-1]}")
    if "accuracy" in record:
        source = "held-out" if record.get("held_out") else "training"
        words.append(f"{100 * record['accuracy']:.1f} % of {source} examples right")
    return ", ".join(words)


def sampled_boundaries(
    tree: MergeTree, golds: Sequence[NDArray[Any]], progress: ProgressCallback | None = None
) -> pd.DataFrame | None:
    """Return the boundary curve of some planes of an image; None if they are not annotated.

    Boundaries of some planes are matched in seconds, those of a volume are not.
    """
    image = tree.superpixels.image
    if image.ndim < 2:
        return None
    tables = [tree.lut(threshold) for threshold in THRESHOLDS]
    curves: list[pd.DataFrame | None] = []
    planes = _planes(image.shape)
    for k, plane in enumerate(planes):
        part = part_of(progress, k / len(planes), (k + 1) / len(planes))
        truth = [np.asarray(one[plane]) for one in golds]
        if all(one.any() for one in truth):  # a gold without annotations is refused
            states = dict(zip(THRESHOLDS, (t[image[plane]] for t in tables), strict=True))
            gold = truth[0] if len(truth) == 1 else truth
            curves.append(boundary_curve(states, gold, progress=part))
    return summed(curves)


def _planes(shape: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the middles of a few planes of the last two axes, evenly apart."""
    middle = [
        slice(max(0, (n - _SIDE) // 2), max(0, (n - _SIDE) // 2) + min(n, _SIDE))
        for n in shape[-2:]
    ]
    leading = shape[:-2]
    planes = int(np.prod(leading))
    if planes <= 1:
        return [(*(0 for _ in leading), *middle)]
    n = min(_PLANES, planes)
    at = np.unique(((np.arange(n) + 0.5) * planes / n).astype(int))
    return [(*(int(i) for i in np.unravel_index(k, leading)), *middle) for k in at]


def summed(curves: Sequence[pd.DataFrame | None]) -> pd.DataFrame | None:
    """Return the curve of several images or planes together, by adding their boundary pixels.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.5], "drawn": [10], "right": [5], "true": [8],
    ...                     "recalled": [4], "precision": [0.5], "recall": [0.5], "f": [0.5]})
    >>> summed([one, None]) is None, summed([one, one])["drawn"].tolist()
    (True, [20])
    """
    import pandas as pd

    known = [curve for curve in curves if curve is not None]
    if not known or len(known) < len(curves):
        return None
    totals = np.sum([curve[_COUNTS].to_numpy() for curve in known], axis=0).tolist()
    rows = zip(known[0]["threshold"].tolist(), totals, strict=True)
    return pd.DataFrame([{"threshold": at} | Matches(*counts).row() for at, counts in rows])


@dataclass(frozen=True)
class PicturedError:
    """Error with its cost in bits, its place, and its picture (SVG).

    Attributes
    ----------
    kind : str
        "false split" of a gold segment or "false merge" by a segment.
    id : int
        The gold segment, or the segment.
    contribution : float
        Its share of the VI in bits.
    voxels : int
        Its size.
    partners : tuple of int
        The ids of its pieces, the largest first.
    voxel : tuple of int
        An index inside it.
    plane : str
        The plane of the picture in words.
    picture : str
        SVG.
    """

    kind: str
    id: int
    contribution: float
    voxels: int
    partners: tuple[int, ...]
    voxel: tuple[int, ...]
    plane: str
    picture: str


@dataclass(frozen=True, eq=False)
class Finding:
    """Results of one policy on one image.

    Attributes
    ----------
    policy, image : str
        Their names.
    threshold : float
        Threshold at which the tree was cut.
    curve : DataFrame
        The `vi_curve`; of several gold standards, the mean over them.
    scores : dict
        The `metrics` at the threshold; of several gold standards, the mean over them.
    gold, segments : DataFrame
        The `breakdown` against the first gold standard.
    errors : tuple of PicturedError
        The worst errors, the worst first.
    error_map : str
        SVG of the plane `plane` with its errors painted.
    boundaries : DataFrame, optional
        The `boundary_curve`.
    shape : tuple of int
    training : bool
        Whether the policy was trained on this image, so that its errors elsewhere are larger.
    plane : tuple of int
        Index of the plane of `error_map`.
    """

    policy: str
    image: str
    threshold: float
    curve: pd.DataFrame
    scores: dict[str, float]
    gold: pd.DataFrame
    segments: pd.DataFrame
    errors: tuple[PicturedError, ...]
    error_map: str
    plane: tuple[int, ...]
    shape: tuple[int, ...]
    boundaries: pd.DataFrame | None = field(default=None)
    training: bool = False


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
    worst: Worst = 10,
    boundaries: bool = True,
    training: bool = False,
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
        Image under the errors in pictures, with or without an axis of colours. Of one on disk,
        only the planes of the pictures are read.
    threshold : float
        Threshold at which the tree is cut.
    spacing : sequence of float, optional
        Distance between pixels along each axis.
    plane : sequence of int, optional
        Index of the plane of the error map along all axes but the last two; by default one with
        much error. Pass the same for all policies.
    worst : int
        Number of errors to draw.
    boundaries : bool
        Compare boundaries too, which takes longest.
    training : bool
        Whether the policy was trained on this image: the report says so.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Finding

    Raises
    ------
    InvalidInput
        If superpixels or gold on disk do not fit in memory, before they are read.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> superpixels = np.array([[1, 1, 2, 2, 3, 3]] * 4)
    >>> graph = agglo.region_graph(superpixels, np.zeros((4, 6)))
    >>> tree = agglo.agglomerate(graph, "mean")
    >>> finding = examine(tree, np.array([[4, 4, 4, 4, 5, 5]] * 4))
    >>> [(error.kind, error.id) for error in finding.errors]
    [('false merge', 1)]
    """
    gold = _read_golds(tree, gold)
    truths = dense_golds(gold, tree.superpixels.image, "the superpixels of the tree")
    golds = [check_labels(one) for one in (gold if isinstance(gold, (list, tuple)) else [gold])]
    first = golds[0]
    labels = tree.segment(threshold)
    picture = np.zeros(first.shape) if backdrop is None else _unread(backdrop, first.ndim)
    shape = tuple(picture.shape)
    if shape[: first.ndim] != first.shape or len(shape) > first.ndim + 1:
        raise InvalidInput(
            f"`backdrop` (shape {shape}) must match `gold` (shape {first.shape}), with or "
            "without an axis of colours after the others",
            argument="backdrop",
            remedy="pass the same crop of both",
        )
    spacing = None if spacing is None else check_spacing(spacing, first.ndim)
    end = 1.0 if boundaries else _SHARES[-2]
    numbering, overlaps, places_of, errors_at, pictures, planes = (
        part_of(progress, *shares) for shares in pairwise(min(one / end, 1.0) for one in _SHARES)
    )
    segments = dense_labels(labels, "labels", progress=numbering)
    tables = [contingency(segments, one, progress=overlaps) for one in truths]
    scores = [table_metrics(table) for table in tables]
    parts = breakdown(segments, truths[0], progress=places_of)
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
        curve=vi_curve(tree, truths, progress=errors_at),
        scores={str(k): float(np.mean([s[k] for s in scores])) for k in scores[0].index},
        gold=parts.gold,
        segments=parts.segments,
        errors=_errors(worst_ones, places, picture, labels, first, spacing, pictures),
        plane=drawn,
        error_map=error_map(picture, labels, first, tables[0], drawn, spacing),
        boundaries=sampled_boundaries(tree, golds, planes) if boundaries else None,
        training=training,
        shape=golds[0].shape,
    )


def _read_golds(tree: MergeTree, gold: Any) -> Any:
    """Return the gold standards, those on disk read; refuse before that what does not fit.

    The segments are made in memory, and numbered, beside them.
    """
    image = tree.superpixels.image
    golds = list(gold) if isinstance(gold, (list, tuple)) else [gold]
    names = ["gold" if len(golds) == 1 else f"gold[{k}]" for k in range(len(golds))]
    lazy = {k: one for k, one in enumerate(map(unwrap, golds, names)) if is_lazy(one)}
    for k, one in lazy.items():
        check_same_shape(one, image, names[k], "the superpixels of the tree")
    if lazy or is_on_disk(image):
        each = [np.dtype(one.dtype).itemsize + 4 for one in lazy.values()]
        extra = tree.superpixels.dtype.itemsize + 4 + sum(each)
        require_memory(image, "superpixels", extra, _IN_PARTS)
    read = [check_labels(one, names[k]) if k in lazy else one for k, one in enumerate(golds)]
    return read if isinstance(gold, (list, tuple)) else read[0]


def _unread(backdrop: Any, ndim: int) -> Any:
    """Return an image of which planes are read when they are drawn; a line of voxels is read."""
    data = backdrop if isinstance(backdrop, np.ndarray) else unwrap(backdrop, "backdrop")
    return np.asarray(data) if ndim < 2 else data


def _boxes(worst: pd.DataFrame, labels: DenseLabels, gold: DenseLabels) -> list[tuple[slice, ...]]:
    """Return the bounding box of each error."""
    by_kind = {
        kind: boxes(dense, worst.loc[worst["kind"] == kind, "id"].tolist())
        for kind, dense in (("false split", gold), ("false merge", labels))
    }
    return [by_kind[kind][one] for kind, one in zip(worst["kind"], worst["id"], strict=True)]


def _errors(
    worst: pd.DataFrame,
    places: Sequence[tuple[slice, ...]],
    picture: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    spacing: Sequence[float] | None,
    progress: ProgressCallback | None,
) -> tuple[PicturedError, ...]:
    errors = []
    for done, (row, box) in enumerate(zip(worst.to_dict("records"), places, strict=True)):
        report(progress, "pictures", done, len(places))
        drawn, plane = cut_out(
            picture, labels, gold, kind=row["kind"], one=row["id"], partners=row["partners"],
            spacing=spacing, box=box,
        )  # fmt: skip
        voxel = tuple(int(row[name]) for name in row if str(name).startswith("voxel_"))
        errors.append(
            PicturedError(
                row["kind"], int(row["id"]), float(row["contribution"]), int(row["voxels"]),
                tuple(int(one) for one in row["partners"]), voxel, str(plane), drawn,
            )
        )  # fmt: skip
    return tuple(errors)
