"""HTML page of a report: its sections and tables, in one file without links."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import plain_threshold, threshold_phrase, threshold_text
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import (
    first_threshold,
    mean_curve,
    minimum,
    over_set,
    shortest_threshold,
    state_at,
)
from napari_agglo.plots import LIGHT
from napari_agglo.report._figures import Figures, colour_variables, error_figure, map_figure
from napari_agglo.report._findings import clean_record, summed, trained
from napari_agglo.report._style_sheet import style_sheet

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.report._findings import Finding


_ERRORS = ("vi", "false_merge", "false_split")
_OWN = ", on its own training data"  # after the name of a policy
_MAPS = 12  # error maps at most
_WORST = 10  # errors drawn of each policy


@dataclass(frozen=True)
class Column:
    """Column of the summary: its title, its description, and the better direction."""

    key: str
    title: str
    description: str
    better: int  # -1: less, 1: more, 0: neither
    digits: int = 3


COLUMNS = (
    Column("vi", "VI", "variation of information, bits", -1),
    Column("false_merge", "false merge", "H(gold|labels), bits", -1),
    Column("false_split", "false split", "H(labels|gold), bits", -1),
    Column("vi_min", "least VI", "at the best threshold, bits", -1),
    Column("vi_ods", "VI, one for all", "at the threshold that is best for all images, bits", -1),
    Column("threshold_min", "best threshold", "where VI is least, for all images together", 0),
    Column("adapted_rand_error", "adapted Rand error", "1 - F of pairs of voxels", -1),
    Column("adjusted_rand", "adjusted Rand", "1 is perfect, 0 is chance", 1),
    Column("covering", "covering", "mean overlap of gold segments", 1),
    Column("boundary_f", "boundary F", "greatest over thresholds", 1),
    Column("edit_distance", "edits", "merges and cuts to make it the gold", -1, 0),
    Column("segments", "segments", "in the whole image", 0, 0),
)


@dataclass(frozen=True)
class Row:
    """Row of the summary: values over images for each column.

    Neither a reference nor a policy on its own training data competes for the marks.
    """

    name: str
    values: Mapping[str, Sequence[float]]
    colour: str = ""
    reference: bool = False
    training: bool = False

    @property
    def competes(self) -> bool:
        """Whether the row may have a mark."""
        return not (self.reference or self.training)


def summary_table(rows: Sequence[Row]) -> str:
    """Return the summary as HTML, with the best policy of each column marked.

    Examples
    --------
    >>> rows = [Row("a", {"vi": [1.0]}), Row("b", {"vi": [2.0]})]
    >>> summary_table(rows).count('class="best"')
    1
    >>> summary_table([*rows, Row("c", {"vi": [0.5]}, training=True)]).count('class="best"')
    1
    """
    columns = [c for c in COLUMNS if any(c.key in row.values for row in rows)]
    competing = [row for row in rows if row.competes]
    best = {c.key: _best(c, competing) for c in columns}
    head = "".join(
        f'<th scope="col" title="{escape(c.description)}">{escape(c.title)}'
        f"{'&nbsp;↓' if c.better < 0 else '&nbsp;↑' if c.better > 0 else ''}</th>"
        for c in columns
    )
    body = []
    for row in rows:
        cells = "".join(_cell(c, row, best[c.key]) for c in columns)
        swatch = f'<span class="swatch" style="background:{row.colour}"></span>'
        name = (swatch if row.colour else "") + escape(row.name)
        kind = "" if row.competes else ' class="reference"' if row.reference else ' class="own"'
        body.append(f'<tr{kind}><th scope="row" title="{escape(row.name)}">{name}</th>{cells}</tr>')
    return (
        '<div class="card scroll"><table><thead><tr><th scope="col">policy</th>'
        f"{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _shown(column: Column, value: float) -> str:
    if column.key == "threshold_min":
        return threshold_text(value)
    if not math.isfinite(value):
        return "–"
    return f"{value:.{column.digits}f}"


def _best(column: Column, rows: Sequence[Row]) -> str | None:
    """Return the best value as text; values that are equal as text share the mark."""
    means = [float(np.mean(row.values[column.key])) for row in rows if column.key in row.values]
    means = [value for value in means if math.isfinite(value)]
    if len(rows) < 2 or not means or column.better == 0:
        return None
    return _shown(column, min(means) if column.better < 0 else max(means))


def _cell(column: Column, row: Row, best: str | None) -> str:
    values = np.asarray(row.values.get(column.key, [math.nan]), float)
    if column.key not in row.values:
        return "<td>–</td>"
    text = _shown(column, float(values.mean()))
    mark = ' class="best"' if text == best and row.competes else ""
    if values.size > 1 and np.isfinite(values).all():
        sem = float(values.std(ddof=1) / math.sqrt(values.size))
        text += f' <span class="sem">± {_shown(column, sem)}</span>'
    return f"<td{mark}>{text}</td>"


def facts_table(facts: Mapping[str, object]) -> str:
    """Return settings as an HTML table.

    Examples
    --------
    >>> "&lt;b&gt;" in facts_table({"file": "<b>"})
    True
    """
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th>'
        f'<td class="text"><code>{escape(str(value))}</code></td></tr>'
        for name, value in facts.items()
    )
    return f'<div class="card scroll"><table><tbody>{rows}</tbody></table></div>'


def summary_rows(page: Page) -> list[Row]:
    """Return the rows of the summary: the policies in their order, then references."""
    names = {light: name for light, (name, _, _) in colour_variables().items()}
    rows = []
    for k, (name, findings) in enumerate(page.by_policy.items()):
        values: dict[str, list[float]] = {
            c.key: [f.scores[c.key] for f in findings]
            for c in COLUMNS
            if c.key in findings[0].scores
        }
        values["vi_min"] = [minimum(f.curve)["vi"] for f in findings]
        curves = {f.image: f.curve for f in findings}
        together = over_set(curves)
        values["threshold_min"] = [_shortest(together.threshold, curves)]
        if len(findings) > 1:
            values["vi_ods"] = [together.ods]
        curve = summed([f.boundaries for f in findings])
        if curve is not None:
            values["boundary_f"] = [float(curve["f"].max())]
        colour = f"var({names[LIGHT.line(k)[0]]})"
        rows.append(Row(name, values, colour, training=name not in page.fair))
    return rows + _references(page)


def _shortest(threshold: float, curves: Mapping[str, pd.DataFrame]) -> float:
    """Return a threshold of curves with as few digits as tell its state from the next."""
    if not math.isfinite(plain_threshold(threshold)):
        return -math.inf
    every = np.concatenate([curve["threshold"] for curve in curves.values()])
    return shortest_threshold(threshold, float(every[every > threshold].min(initial=math.inf)))


def _references(page: Page) -> list[Row]:
    """Return the rows of references: the superpixels, A*, people."""
    first = next(iter(page.by_policy.values()))
    start = [state_at(f.curve, -math.inf) for f in first]
    rows = {
        "superpixels": {key: [s[key] for s in start] for key in (*_ERRORS, "covering", "segments")}
    }
    if page.best:
        rows["best possible (A*)"] = {key: [point[key] for point in page.best] for key in _ERRORS}
    people = {key: page.people(key) for key in (*_ERRORS, "covering")}
    if people["vi"]:
        rows["human against human"] = {key: values for key, values in people.items() if values}
    return [Row(name, values, reference=True) for name, values in rows.items()]


def section(title: str, note: str, *parts: str) -> str:
    """Return a section of the page; `note` is HTML."""
    text = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{text}{''.join(parts)}</section>\n"


class Page:
    """Sections of the page, from findings by policy and by image."""

    def __init__(
        self,
        findings: Sequence[Finding],
        best: Mapping[str, Mapping[str, float]],
        human: pd.DataFrame | None,
        records: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.human = human if human is not None and len(human) else None
        trained_here = {one.policy for one in findings if one.training}
        shown = {name: f"{name}{_OWN}" for name in trained_here}
        self.records = {shown.get(n, n): clean_record(record) for n, record in records.items()}
        findings = [replace(one, policy=shown.get(one.policy, one.policy)) for one in findings]
        self.by_policy: dict[str, list[Finding]] = {}
        for one in findings:
            self.by_policy.setdefault(one.policy, []).append(one)
        self.images = list(dict.fromkeys(one.image for one in findings))
        self.threshold = findings[0].threshold
        first = min(first_threshold({"": one.curve}) for one in findings)
        self.phrase = threshold_phrase(self.threshold, first)
        self.best = [best[image] for image in self.images if image in best]
        self.vi = {
            name: float(np.mean([one.scores["vi"] for one in findings]))
            for name, findings in self.by_policy.items()
        }
        self.figures = Figures()
        # What was trained on these images does not compete with what was not.
        fair = [name for name in self.vi if name not in shown.values()] or list(self.vi)
        self.fair = {name: self.vi[name] for name in fair}
        self.leader = min(self.fair, key=lambda name: self.vi[name])

    @property
    def several(self) -> bool:
        """True if there is more than one image."""
        return len(self.images) > 1

    def ordered(self) -> list[str]:
        """Return the policies, the one with the least VI first."""
        return sorted(self.vi, key=lambda name: (name != self.leader, self.vi[name]))

    def mean_curves(self) -> dict[str, pd.DataFrame]:
        """Return the curve of each policy, over all images."""
        curves = {}
        for name, findings in self.by_policy.items():
            each = {one.image: one.curve for one in findings}
            curves[name] = mean_curve(each) if len(each) > 1 else findings[0].curve.copy()
            curves[name].attrs["training"] = any(one.training for one in findings)
        return curves

    def people(self, measure: str) -> list[float]:
        """Return a measure of people against each other, as the mean of each image.

        Pairs of people are not independent samples, and an image that more people annotated must
        not count more.
        """
        if self.human is None or measure not in self.human:
            return []
        if "image" not in self.human:
            return [float(self.human[measure].mean())]
        return [float(v) for v in self.human.groupby("image", sort=False)[measure].mean()]

    def pairs_of_people(self) -> list[float]:
        """Return the VI of each pair of people, once: it is symmetric."""
        if self.human is None:
            return []
        once = self.human
        if {"labels", "gold"} <= set(once.columns):
            once = once[once["labels"] < once["gold"]]
        return [float(v) for v in once["vi"]]

    def lead(self) -> str:
        findings = self.by_policy[self.leader]
        size = " × ".join(map(str, findings[0].shape))
        n = len(self.images)
        subject = f"{n} images" if n > 1 else f"{self.images[0]}, {size}"
        least, merge, split = (float(np.mean([f.scores[k] for f in findings])) for k in _ERRORS)
        if least == 0:
            text = f"<b>{escape(self.leader)}</b> has no error {self.phrase}."
        else:
            among = f", the least of {len(self.fair)} policies" if len(self.fair) > 1 else ""
            text = (
                f"<b>{escape(self.leader)}</b> {self.phrase}: VI {least:.3f} bits{among} "
                f"({merge:.3f} false merges, {split:.3f} false splits)."
            )
        text += self._each_at_its_best() + self._own_data()
        return f'<p class="note">{escape(subject)}</p><p class="lead">{text}</p>'

    def _each_at_its_best(self) -> str:
        """Return the policy of the least VI if each has its own best threshold.

        At one threshold a policy whose priorities are no probabilities, such as the mean, looks
        worse than it is.
        """
        least = {
            name: float(np.mean([minimum(f.curve)["vi"] for f in self.by_policy[name]]))
            for name in self.fair
        }
        best = min(least, key=lambda name: least[name])
        if len(self.fair) < 2:
            return f" At its best threshold: {least[best]:.3f} bits." if least[best] else ""
        also = "also " if best == self.leader else ""
        return (
            f" Each at its best threshold, <b>{escape(best)}</b> {also}has the least: "
            f"{least[best]:.3f} bits."
        )

    def _own_data(self) -> str:
        """Return the warning for policies that were trained on what they are measured on."""
        n = sum(any(f.training for f in one) for one in self.by_policy.values())
        if not n:
            return ""
        who = "One policy is measured on its" if n < 2 else f"{n} policies are measured on their"
        return f" {who} own training data: expect a larger error on other data."

    def summary(self) -> str:
        rows = summary_rows(self)
        at = self.phrase.replace("at ", "at threshold ")
        note = f"{at.capitalize()}, unless another is named. ↓ less, ↑ more is better."
        if self.several:
            note += f" Means over {len(self.images)} images ± standard error."
        present = {key for row in rows for key in row.values}
        legend = "; ".join(f"{c.title}: {c.description}" for c in COLUMNS if c.key in present)
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
        own = any(curve.attrs["training"] for curve in curves.values())
        short = {_short(name): curve for name, curve in curves.items()}
        drawn = self.figures.curves(short, best, self.human, self.threshold)
        boundaries = {}
        for name, findings in self.by_policy.items():
            curve = summed([one.boundaries for one in findings])
            if curve is not None:
                curve.attrs["training"] = any(one.training for one in findings)
                boundaries[_short(name)] = curve
        if boundaries:
            drawn.append(self.figures.boundaries(boundaries))
        epochs = self._epochs()
        if epochs is not None:
            drawn.append(self.figures.epochs(epochs))
        drawn += self._many()
        note = "Dotted: on the training data of the policy, so the error is too low." if own else ""
        return section("Curves", note, f'<div class="plots">{"".join(drawn)}</div>')

    def _epochs(self) -> pd.DataFrame | None:
        """Return VI by epoch, of the policies that were trained agglomeratively, or flat.

        Errors on training data, which fall with every epoch, are left out.
        """
        import pandas as pd

        rows = [
            {
                "epoch": self.records[name]["epochs"],
                "vi_at_half": state_at(one.curve, 0.5)["vi"],
                "vi_min": minimum(one.curve)["vi"],
            }
            for name, findings in self.by_policy.items()
            if self.records.get(name, {}).get("strategy") in ("agglo", "flat")
            and "epochs" in self.records[name]
            for one in findings
            if not one.training
        ]
        if len({row["epoch"] for row in rows}) < 2:
            return None
        return pd.DataFrame(rows)

    def _many(self) -> list[str]:
        """Return the plots of several images, or of several gold standards."""
        rows = {n: [f.scores["vi"] for f in findings] for n, findings in self.by_policy.items()}
        drawn = []
        if self.several or self.human is not None:
            text = "A dot for each image, a bar at the mean"
            if self.human is not None:
                rows["human"] = self.people("vi") if self.several else self.pairs_of_people()
                suffix = "" if self.several else ", a dot for each pair"
                text += f"; people against each other below{suffix}"
            drawn.append(self.figures.rows(rows, f"{text}."))
        if self.several and len(self.vi) > 1:
            other, one = self.ordered()[-1], self.leader
            values = {
                name: {f.image: f.scores["vi"] for f in self.by_policy[name]}
                for name in (other, one)
            }
            drawn.append(self.figures.paired(values[other], values[one], (other, one)))
        return drawn

    def breakdowns(self) -> str:
        parts = []
        for name in self.ordered():
            worst = max(self.by_policy[name], key=lambda f: f.scores["vi"])
            image = f", image {worst.image}" if self.several else ""
            plots = f'<div class="plots">{"".join(self.figures.breakdown(worst))}</div>'
            parts.append(_folded(f"{name}{image}", plots, name == self.leader))
        note = "Segments that cause the error: the cost of a segment is its size times its error."
        return section("Breakdown", note, *parts)

    def maps(self) -> str:
        findings = [f for name in self.ordered() for f in self.by_policy[name]][:_MAPS]
        maps = "".join(map_figure(one, self.several) for one in findings)
        key = (
            '<span class="key" style="background:#ff9e00"></span><span>false merge</span>'
            '<span class="key" style="background:#40b8ff"></span><span>false split</span>'
            "The stronger the colour, the larger the part of the segment (or gold segment) that "
            "is elsewhere."
        )
        return section("Error maps", key, f'<div class="plots maps">{maps}</div>')

    def errors(self) -> str:
        parts = []
        for name in self.ordered():
            worst = [(e, f.image) for f in self.by_policy[name] for e in f.errors]
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
            "<span>the wrong segment</span>Colours within the wrong segment are its parts. The "
            "coordinates are those of a voxel in it."
        )
        return section("The worst errors", key, *parts)

    def policies(self) -> str:
        known = [name for name in self.by_policy if self.records.get(name)]
        if not known:
            return ""
        parts: list[str] = []
        for name in sorted(known, key=self.ordered().index):
            record = self.records[name]
            plots = f'<div class="plots">{"".join(self.figures.policy(name, record))}</div>'
            parts.append(_folded(f"{name}: {trained(record)}", plots, not parts))
        return section("The learned policies", "", *parts)


def _short(name: str) -> str:
    """Return the name of a policy for a label within a plot.

    Examples
    --------
    >>> _short("agglo, on its own training data")
    'agglo, training data'
    """
    return name.replace(_OWN, ", training data")


def _folded(title: str, inside: str, opened: bool) -> str:
    return (
        f"<details{' open' if opened else ''}><summary>{escape(title)}</summary>{inside}</details>"
    )


def html_report(
    findings: Sequence[Finding],
    *,
    title: str = "Segmentation report",
    best: Mapping[str, Mapping[str, float]] | None = None,
    human: pd.DataFrame | None = None,
    records: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, object] | None = None,
    progress: ProgressCallback | None = None,
) -> str:
    """Return a page that compares policies, on one image or on several.

    Parameters
    ----------
    findings : sequence of Finding
        From `examine`: every policy on every image, at one threshold.
    title : str
    best : mapping, optional
        Name of the image to its `best_point`.
    human : DataFrame, optional
        The `human_agreement` of several gold standards; of several images, with a column ``image``.
    records : mapping, optional
        Name of the policy to the record of its training, for those that have one.
    settings : mapping, optional
        Settings to list at the end.
    progress : callable, optional
        Called with a `Progress` before each section; it may raise `Cancelled`.

    Returns
    -------
    str
        HTML, light or dark as the reader's system, without links to other files.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> from napari_agglo.report import examine
    >>> graph = agglo.region_graph(np.array([[1, 1, 2, 2, 3, 3]] * 4), np.zeros((4, 6)))
    >>> tree = agglo.agglomerate(graph, "mean")
    >>> finding = examine(tree, np.array([[4, 4, 4, 4, 5, 5]] * 4), policy="mean")
    >>> html_report([finding]).startswith("<!doctype html>")
    True
    """
    if not findings:
        raise InvalidInput(
            "`findings` is empty", argument="findings", remedy="pass results of `examine`"
        )
    page = Page(findings, best or {}, human, records or {})
    parts = (
        page.summary, page.curves, page.breakdowns, page.maps, page.errors, page.policies,
    )  # fmt: skip
    sections = []
    for done, part in enumerate(parts):
        report(progress, "page", done, len(parts))
        sections.append(part())
    report(progress, "page", len(parts), len(parts))
    if settings:
        sections.append(section("Settings", "", facts_table(settings)))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{style_sheet()}</style></head>\n<body>"
        f"<header><h1>{escape(title)}</h1>{page.lead()}</header>\n<main>{''.join(sections)}</main>"
        "\n<footer>False merges and false splits are the conditional entropies H(gold|labels) and "
        "H(labels|gold) in bits; their sum is the variation of information (VI). Voxels without "
        "gold standard are left out.</footer></body></html>\n"
    )
