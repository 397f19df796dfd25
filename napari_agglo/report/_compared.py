"""Several findings side by side: which policies, which images, which of them leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo.evaluate import mean_curve
from napari_agglo.report._records import clean_record

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.report._finding import Finding


class Compared:
    """One set of findings, by policy and by image."""

    def __init__(
        self,
        findings: Sequence[Finding],
        best: Mapping[str, Mapping[str, float]],
        human: pd.DataFrame | None,
        records: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.human = human if human is not None and len(human) else None
        self.records = {name: clean_record(record) for name, record in records.items()}
        self.policies_found: dict[str, list[Finding]] = {}
        for one in findings:
            self.policies_found.setdefault(one.policy, []).append(one)
        self.images = list(dict.fromkeys(one.image for one in findings))
        self.threshold = findings[0].threshold
        self.best = [best[image] for image in self.images if image in best]
        self.vi = {
            name: float(np.mean([one.scores["vi"] for one in found]))
            for name, found in self.policies_found.items()
        }
        self.leader = min(self.vi, key=lambda name: self.vi[name])

    @property
    def several(self) -> bool:
        """Whether there is more than one image."""
        return len(self.images) > 1

    def ordered(self) -> list[str]:
        """Return the policies, the one with the least VI first."""
        return sorted(self.vi, key=lambda name: (name != self.leader, self.vi[name]))

    def mean_curves(self) -> dict[str, pd.DataFrame]:
        """Return the curve of each policy, over all images."""
        return {
            name: found[0].curve
            if len(found) == 1
            else mean_curve({one.image: one.curve for one in found})
            for name, found in self.policies_found.items()
        }

    def people(self, measure: str) -> list[float]:
        """Return how far people are from each other: a mean for each image.

        Pairs of people are no independent samples, and an image that more of them drew must not
        count more.
        """
        if self.human is None or measure not in self.human:
            return []
        if "image" not in self.human:
            return [float(self.human[measure].mean())]
        return [float(v) for v in self.human.groupby("image", sort=False)[measure].mean()]

    def pairs_of_people(self) -> list[float]:
        """Return the VI of each pair of people; it is the same both ways, so each pair is one."""
        if self.human is None:
            return []
        once = self.human
        if {"labels", "gold"} <= set(once.columns):
            once = once[once["labels"] < once["gold"]]
        return [float(v) for v in once["vi"]]
