"""The policies that need no learning, as plain values, and what else may be given for one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.policy._learned import LearnedPolicy


@dataclass(frozen=True)
class MeanPolicy:
    """Merge first where the mean of a cue over the boundary is lowest."""

    cue: str = "boundary"


@dataclass(frozen=True)
class RandomPolicy:
    """Merge in random order: a number in [0, 1) from the seed and the ids of both regions."""

    seed: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.seed, (int, np.integer)) and 0 <= self.seed < 2**32):
            raise InvalidInput(
                f"`seed` must be a whole number from 0 to {2**32 - 1}, got {self.seed!r}."
            )


Policy = MeanPolicy | RandomPolicy | LearnedPolicy


def as_policy(policy: Policy | str, seed: int = 0) -> Policy:
    """Return the policy that is meant: itself, or the one of that name.

    Examples
    --------
    >>> as_policy("mean")
    MeanPolicy(cue='boundary')
    """
    if isinstance(policy, Policy):
        return policy
    if policy == "mean":
        return MeanPolicy()
    if policy == "random":
        return RandomPolicy(seed)
    raise InvalidInput(
        f"`policy` must be 'mean', 'random' or a policy (from `train` or `load_policy`), "
        f"got {policy!r}."
    )
