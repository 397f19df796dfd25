"""Policies: the priority of every boundary, of which the lowest is merged first.

Every module of this folder is imported, and a class with ``@policies.add(name)`` is registered: a
new policy is one new file.
"""

from napari_agglo.policy._callable import CallablePolicy, as_policy, check_local, checked_scores
from napari_agglo.policy._data_profile import (
    DataDifference,
    adapt_cues,
    cue_digests,
    data_differences,
    data_profile,
    graph_digest,
    is_training_data,
)
from napari_agglo.policy._file import load_policy, save_policy
from napari_agglo.policy._learned_policy import LearnedPolicy, stretched
from napari_agglo.policy._mean_policy import MeanPolicy, OrientedMeanPolicy
from napari_agglo.policy._model import (
    FOREST,
    LOGISTIC,
    MEAN,
    PYTHON,
    RANDOM,
    Forest,
    Logistic,
    Model,
    flatten_trees,
)
from napari_agglo.policy._policies import (
    NamedFunction,
    Policy,
    graph_for,
    is_bounded,
    is_informative,
    policies,
    policy_features,
    policy_record,
)
from napari_agglo.policy._random_policy import RandomPolicy
from napari_agglo.policy._score import (
    Scoring,
    no_features,
    owner_of,
    python_scoring,
    score_chunk,
    scoring,
)
from napari_agglo.policy._tree_walk import CHUNK, Trees, tree_values, walk_row, walk_rows

__all__ = [
    "CHUNK",
    "FOREST",
    "LOGISTIC",
    "MEAN",
    "PYTHON",
    "RANDOM",
    "CallablePolicy",
    "DataDifference",
    "Forest",
    "LearnedPolicy",
    "Logistic",
    "MeanPolicy",
    "NamedFunction",
    "OrientedMeanPolicy",
    "Model",
    "Policy",
    "RandomPolicy",
    "Scoring",
    "Trees",
    "adapt_cues",
    "as_policy",
    "check_local",
    "checked_scores",
    "data_differences",
    "data_profile",
    "flatten_trees",
    "cue_digests",
    "graph_digest",
    "is_bounded",
    "is_informative",
    "is_training_data",
    "load_policy",
    "no_features",
    "owner_of",
    "policies",
    "graph_for",
    "policy_features",
    "policy_record",
    "python_scoring",
    "save_policy",
    "score_chunk",
    "scoring",
    "stretched",
    "tree_values",
    "walk_row",
    "walk_rows",
]

policies.register_modules(__name__, __path__, first="_mean_policy")
