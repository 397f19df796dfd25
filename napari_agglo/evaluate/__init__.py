"""Errors of a segmentation against a gold standard: measures, curves, and places of errors."""

from __future__ import annotations

from napari_agglo.evaluate._benchmark import (
    CrossValidation,
    OverSet,
    cross_validate,
    human_agreement,
    over_set,
)
from napari_agglo.evaluate._boundary import average_precision, boundary_curve, boundary_scores
from napari_agglo.evaluate._breakdown import (
    Breakdown,
    breakdown,
    merged_breakdown,
    table_breakdown,
)
from napari_agglo.evaluate._hold_out import hold_out, train_and_hold_out
from napari_agglo.evaluate._metrics import (
    conditional_entropies,
    metrics,
    split_vi,
    table_metrics,
    weighted_vi,
)
from napari_agglo.evaluate._optimal_agglomeration import (
    best_agglomeration,
    best_lut,
    best_point,
    table_best,
)
from napari_agglo.evaluate._vi_curve import (
    best_covering,
    best_together,
    first_threshold,
    mean_curve,
    merge_curve,
    minimum,
    plain_curve,
    shortest_threshold,
    state_at,
    table_curve,
    tangent_point,
    vi_curve,
)
from napari_agglo.volumes import Contingency, contingency

__all__ = [
    "Contingency",
    "contingency",
    "split_vi",
    "weighted_vi",
    "conditional_entropies",
    "metrics",
    "table_metrics",
    "Breakdown",
    "breakdown",
    "merged_breakdown",
    "table_breakdown",
    "vi_curve",
    "table_curve",
    "merge_curve",
    "best_covering",
    "state_at",
    "minimum",
    "tangent_point",
    "best_together",
    "first_threshold",
    "plain_curve",
    "shortest_threshold",
    "boundary_scores",
    "boundary_curve",
    "average_precision",
    "best_agglomeration",
    "best_lut",
    "best_point",
    "table_best",
    "over_set",
    "OverSet",
    "mean_curve",
    "human_agreement",
    "cross_validate",
    "CrossValidation",
    "hold_out",
    "train_and_hold_out",
]
