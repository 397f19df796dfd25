"""How far a segmentation is from the gold standard, by which errors, and where they are."""

from __future__ import annotations

from napari_agglo.evaluate._boundary import boundary_scores
from napari_agglo.evaluate._boundary_curve import average_precision, boundary_curve
from napari_agglo.evaluate._breakdown import Breakdown, breakdown
from napari_agglo.evaluate._cross import CrossValidation, cross_validate
from napari_agglo.evaluate._curve import best_covering, merge_curve, vi_curve
from napari_agglo.evaluate._humans import human_agreement
from napari_agglo.evaluate._mean_curve import mean_curve
from napari_agglo.evaluate._merged_breakdown import merged_breakdown
from napari_agglo.evaluate._metrics import metrics, table_metrics
from napari_agglo.evaluate._optimum import best_agglomeration, best_lut, best_point
from napari_agglo.evaluate._points import minimum, state_at, tangent_point
from napari_agglo.evaluate._set import OverSet, over_set
from napari_agglo.evaluate._vi import conditional_entropies, split_vi, weighted_vi
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
    "vi_curve",
    "merge_curve",
    "best_covering",
    "state_at",
    "minimum",
    "tangent_point",
    "boundary_scores",
    "boundary_curve",
    "average_precision",
    "best_agglomeration",
    "best_lut",
    "best_point",
    "over_set",
    "OverSet",
    "mean_curve",
    "human_agreement",
    "cross_validate",
    "CrossValidation",
]
