"""What was found: all that a page shows of one policy on one image, without the arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


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
