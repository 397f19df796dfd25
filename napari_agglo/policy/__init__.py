"""Policies: the priority of every boundary, of which the lowest is merged first."""

from napari_agglo.policy._file import load_policy, save_policy
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
from napari_agglo.policy._policies import (
    LearnedPolicy,
    MeanPolicy,
    Policy,
    RandomPolicy,
    as_policy,
    is_informative,
    policies,
    policy_features,
    policy_record,
)
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
    "is_informative",
    "load_policy",
    "no_features",
    "owner_of",
    "policies",
    "policy_features",
    "policy_record",
    "save_policy",
    "score_chunk",
    "scoring",
]
