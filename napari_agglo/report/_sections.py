"""The sections of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo.evaluate import minimum, state_at
from napari_agglo.report._boundaries import summed
from napari_agglo.report._compared import Compared
from napari_agglo.report._figures import Figures, error_figure, map_figure
from napari_agglo.report._records import trained
from napari_agglo.report._summary import summary_rows
from napari_agglo.report._tables import COLUMNS, summary_table

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.report._finding import Finding

_MAPS = 12  # error maps at most, and errors drawn of each policy
_WORST = 10


def section(title: str, note: str, *parts: str) -> str:
    """Return a section of the page; `note` is HTML."""
    said = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{said}{''.join(parts)}</section>\n"


class Page(Compared):
    """The sections, from one set of findings."""

    def __init__(
        self,
        findings: Sequence[Finding],
        best: Mapping[str, Mapping[str, float]],
        human: pd.DataFrame | None,
        records: Mapping[str, Mapping[str, Any]],
    ) -> None:
        super().__init__(findings, best, human, records)
        self.figures = Figures()

    def lead(self) -> str:
        first = self.policies_found[self.leader][0]
        size = " × ".join(map(str, first.shape))
        n = len(self.images)
        what = f"{n} images" if n > 1 else f"{self.images[0]}, {size}"
        least = float(np.mean([f.scores["vi"] for f in self.policies_found[self.leader]]))
        merge, split = (
            float(np.mean([f.scores[key] for f in self.policies_found[self.leader]]))
            for key in ("false_merge", "false_split")
        )
        if least == 0:
            said = f"<b>{escape(self.leader)}</b> has no error at {self.threshold:g}."
        else:
            among = f", the least of {len(self.vi)} policies" if len(self.vi) > 1 else ""
            said = (
                f"<b>{escape(self.leader)}</b> at {self.threshold:g}: VI {least:.3f} bits{among} "
                f"({merge:.3f} false merges, {split:.3f} false splits)."
            )
        return f'<p class="note">{escape(what)}</p><p class="lead">{said}</p>'

    def summary(self) -> str:
        rows = summary_rows(self)
        note = (
            f"At threshold {self.threshold:g}, unless another is named. ↓ less, ↑ more is better."
        )
        if self.several:
            note += f" Means over {len(self.images)} images ± standard error."
        present = {key for row in rows for key in row.values}
        legend = "; ".join(f"{c.title}: {c.said}" for c in COLUMNS if c.key in present)
        return section(
            "Summary", note, summary_table(rows), f'<p class="note facts">{escape(legend)}.</p>'
        )

    def curves(self) -> str:
        curves = self.mean_curves()
        best = None
        if self.best:
            best = {
                key: float(np.mean([point[key] for point in self.best])) for key in self.best[0]
            }
        drawn = self.figures.curves(curves, best, self.human, self.threshold)
        known = {n: summed([f.boundaries for f in o]) for n, o in self.policies_found.items()}
        drawn_ones = {name: curve for name, curve in known.items() if curve is not None}
        if drawn_ones:
            drawn.append(self.figures.boundaries(drawn_ones))
        epochs = self._epochs()
        if epochs is not None:
            drawn.append(self.figures.epochs(epochs))
        drawn += self._many()
        return section("Curves", "", f'<div class="plots">{"".join(drawn)}</div>')

    def _epochs(self) -> pd.DataFrame | None:
        """Return VI by epoch, of the policies that were trained agglomeratively, or flat."""
        import pandas as pd

        rows = [
            {
                "epoch": self.records[name]["epochs"],
                "vi_at_half": state_at(one.curve, 0.5)["vi"],
                "vi_min": minimum(one.curve)["vi"],
            }
            for name, found in self.policies_found.items()
            if self.records.get(name, {}).get("strategy") in ("agglo", "flat")
            and "epochs" in self.records[name]
            for one in found
        ]
        if len({row["epoch"] for row in rows}) < 2:
            return None
        return pd.DataFrame(rows)

    def _many(self) -> list[str]:
        """Return what several images, or several gold standards, have to show."""
        rows = {n: [f.scores["vi"] for f in found] for n, found in self.policies_found.items()}
        drawn = []
        if self.several or self.human is not None:
            said = "A dot for each image, a bar at the mean"
            if self.human is not None:
                rows["human"] = self.people("vi") if self.several else self.pairs_of_people()
                whom = "" if self.several else ", a dot for each pair"
                said += f"; people against each other below{whom}"
            drawn.append(self.figures.rows(rows, f"{said}."))
        if self.several and len(self.vi) > 1:
            other, one = self.ordered()[-1], self.leader
            values = {
                name: {f.image: f.scores["vi"] for f in self.policies_found[name]}
                for name in (other, one)
            }
            drawn.append(self.figures.paired(values[other], values[one], (other, one)))
        return drawn

    def breakdowns(self) -> str:
        parts = []
        for name in self.ordered():
            worst = max(self.policies_found[name], key=lambda f: f.scores["vi"])
            where = f", image {worst.image}" if self.several else ""
            plots = f'<div class="plots">{"".join(self.figures.breakdown(worst))}</div>'
            parts.append(_folded(f"{name}{where}", plots, name == self.leader))
        note = "Which segments the error comes from: the cost of one is its size times its error."
        return section("Breakdown", note, *parts)

    def maps(self) -> str:
        found = [f for name in self.ordered() for f in self.policies_found[name]][:_MAPS]
        maps = "".join(map_figure(one, self.several) for one in found)
        key = (
            '<span class="key" style="background:#ff9e00"></span><span>false merge</span>'
            '<span class="key" style="background:#40b8ff"></span><span>false split</span>'
            "The stronger the colour, the larger the part of the segment (or gold segment) that "
            "is elsewhere."
        )
        return section("Where the errors are", key, f'<div class="plots maps">{maps}</div>')

    def errors(self) -> str:
        parts = []
        for name in self.ordered():
            worst = [(e, f.image) for f in self.policies_found[name] for e in f.errors]
            worst.sort(key=lambda one: -one[0].contribution)
            drawn = "".join(
                error_figure(k, error, image if self.several else None)
                for k, (error, image) in enumerate(worst[:_WORST], start=1)
            )
            inside = (
                f'<div class="errors">{drawn}</div>'
                if drawn
                else '<p class="empty">No error: every segment is a gold segment.</p>'
            )
            parts.append(_folded(name, inside, name == self.leader))
        key = (
            '<span class="key" style="background:#ffd23f"></span><span>gold standard</span>'
            '<span class="key" style="background:#2fd0ff"></span><span>segmentation</span>'
            '<span class="key" style="background:#fff;outline:1px solid #888"></span>'
            "<span>the segment that is wrong</span>Colours within it are its parts. Coordinates "
            "are those of a voxel in it."
        )
        return section("The worst errors", key, *parts)

    def policies(self) -> str:
        known = [name for name in self.policies_found if self.records.get(name)]
        if not known:
            return ""
        parts: list[str] = []
        for name in sorted(known, key=self.ordered().index):
            record = self.records[name]
            plots = f'<div class="plots">{"".join(self.figures.policy(name, record))}</div>'
            parts.append(_folded(f"{name}: {trained(record)}", plots, not parts))
        return section("The learned policies", "", *parts)


def _folded(title: str, inside: str, opened: bool) -> str:
    return (
        f"<details{' open' if opened else ''}><summary>{escape(title)}</summary>{inside}</details>"
    )
