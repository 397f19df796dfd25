"""Policies: what says which merge comes first."""

from napari_agglo.policy._policies import MeanPolicy, Policy, RandomPolicy, as_policy
from napari_agglo.policy._score import MEAN, RANDOM, score_boundary

__all__ = ["MEAN", "RANDOM", "MeanPolicy", "Policy", "RandomPolicy", "as_policy", "score_boundary"]
