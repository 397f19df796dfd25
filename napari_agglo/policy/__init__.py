"""Policies: what says which merge comes first."""

from napari_agglo.policy._file import load_policy
from napari_agglo.policy._model import (
    CHUNK,
    FOREST,
    LOGISTIC,
    MEAN,
    RANDOM,
    Forest,
    Logistic,
    Model,
    flatten_trees,
)
from napari_agglo.policy._policies import LearnedPolicy, MeanPolicy, Policy, RandomPolicy, as_policy
from napari_agglo.policy._score import Scoring, no_features, owner_of, score_chunk, scoring

__all__ = [
    "CHUNK",
    "FOREST",
    "LOGISTIC",
    "MEAN",
    "RANDOM",
    "Forest",
    "LearnedPolicy",
    "Logistic",
    "MeanPolicy",
    "Model",
    "Policy",
    "RandomPolicy",
    "Scoring",
    "as_policy",
    "flatten_trees",
    "load_policy",
    "no_features",
    "owner_of",
    "score_chunk",
    "scoring",
]
