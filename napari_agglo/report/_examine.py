"""One policy on one image, examined: all that a page shows of it, without the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import breakdown, contingency, table_metrics, vi_curve
from napari_agglo.plots import MERGE, SPLIT, grey, tinted, worst_plane, wrong_shares
from napari_agglo.report._boundaries import sampled_boundaries
from napari_agglo.report._cutouts import cut_out
from napari_agglo.report._layers import border_path, layered
from napari_agglo.volumes import check_labels, check_same_shape

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.tree import MergeTree

_LARGEST_MAP = 512  # pixels along a side of an error map


@dataclass(frozen=True)
class PicturedError:
    """One error: what it is, how much it costs, where it is and how it looks (SVG)."""

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
    """What there is to say of one policy on one image.

    Attributes
    ----------
    policy, image : str
        Their names.
    threshold : float
        Where the tree was cut.
    curve : DataFrame
        The `vi_curve`; of several gold standards, the mean over them.
    scores : dict
        The `metrics` at the threshold; of several gold standards, the mean over them.
    gold, segments : DataFrame
        The `breakdown` against the first gold standard.
    errors : tuple of PicturedError
        The worst, the worst first.
    error_map : str
        SVG of a plane with its errors painted; `plane` says which.
    boundaries : DataFrame, optional
        The `boundary_curve`.
    shape : tuple of int
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
    tables = [contingency(labels, one, progress=progress) for one in golds]
    scores = [table_metrics(table) for table in tables]
    parts = breakdown(labels, first, progress=progress)
    if first.ndim < 2:  # a line of voxels is drawn as an image of one row
        labels, first, picture = labels[None], first[None], picture[None]
        spacing = None if spacing is None else (1.0, *spacing)
    drawn = worst_plane(tables[0], labels, first) if plane is None else tuple(plane)
    if len(drawn) != first.ndim - 2:
        raise InvalidInput(
            f"`plane` must have {first.ndim - 2} indices, one for each axis but the last two, got "
            f"{drawn}."
        )
    return Finding(
        policy=policy,
        image=image,
        threshold=threshold,
        curve=_curve(tree, golds, progress),
        scores={str(k): float(np.mean([s[k] for s in scores])) for k in scores[0].index},
        gold=parts.gold,
        segments=parts.segments,
        errors=_errors(parts.worst(worst), picture, labels, first, spacing),
        plane=drawn,
        error_map=_error_map(picture, labels, first, tables[0], drawn, spacing),
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


def _curve(
    tree: MergeTree, golds: list[NDArray[Any]], progress: ProgressCallback | None
) -> pd.DataFrame:
    curves = [vi_curve(tree, one, progress=progress) for one in golds]
    if len(curves) == 1:
        return curves[0]
    columns = ["false_merge", "false_split", "vi"]
    mean = curves[0].copy()  # the states are those of one tree: rows correspond
    mean[columns] = sum(curve[columns] for curve in curves) / len(curves)
    return mean


def _errors(
    worst: pd.DataFrame,
    picture: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    spacing: Sequence[float] | None,
) -> tuple[PicturedError, ...]:
    found = []
    for row in worst.to_dict("records"):
        drawn, plane = cut_out(
            picture, labels, gold, kind=row["kind"], one=row["id"], partners=row["partners"],
            spacing=spacing,
        )  # fmt: skip
        voxel = tuple(int(row[name]) for name in row if str(name).startswith("voxel_"))
        found.append(
            PicturedError(
                row["kind"], int(row["id"]), float(row["contribution"]), int(row["voxels"]),
                tuple(int(one) for one in row["partners"]), voxel, str(plane), drawn,
            )
        )  # fmt: skip
    return tuple(found)


def _error_map(
    picture: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    table: Any,
    plane: tuple[int, ...],
    spacing: Sequence[float] | None,
) -> str:
    step = max(1, -(-max(labels.shape[-2:]) // _LARGEST_MAP))
    some: tuple[Any, ...] = (*plane, slice(None, None, step), slice(None, None, step))
    segments, truth = labels[some], gold[some]
    merge, split = wrong_shares(table, segments, truth)
    shown = tinted(tinted(grey(picture[some]), SPLIT, 0.55 * split), MERGE, 0.55 * merge)
    paths = {
        name: border_path(_parted(cut, joined, truth, 1), _parted(cut, joined, truth, 0))
        for name, cut, joined in (("split", segments, truth), ("merge", truth, segments))
    }
    said = "where there are false merges and false splits"
    return layered(shown, paths, said, tuple(spacing)[-2:] if spacing else (1.0, 1.0))


def _parted(
    cut: NDArray[Any], joined: NDArray[Any], gold: NDArray[Any], axis: int
) -> NDArray[np.bool_]:
    """Return where `cut` has a border and `joined` has none, both sides being annotated."""
    here = (slice(None), slice(None, -1)) if axis else (slice(None, -1), slice(None))
    there = (slice(None), slice(1, None)) if axis else (slice(1, None), slice(None))
    both = (gold[here] != 0) & (gold[there] != 0)
    return np.asarray((cut[here] != cut[there]) & (joined[here] == joined[there]) & both)
