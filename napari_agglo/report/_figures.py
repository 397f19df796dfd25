"""Figures of the page, each with a title and a sentence that explains it."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from napari_agglo.agglomeration import threshold_phrase
from napari_agglo.evaluate import first_threshold
from napari_agglo.plots import (
    DARK,
    LIGHT,
    new_axes,
    plot_boundaries,
    plot_breakdown,
    plot_importances,
    plot_paired_vi,
    plot_reliability,
    plot_split_vi,
    plot_vi_by_epoch,
    plot_vi_by_threshold,
    plot_vi_rows,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from napari_agglo.report._findings import Finding, PicturedError


_SINGLE = ("ink", "muted", "paper", "merge", "split")


def colour_variables() -> dict[str, tuple[str, str, str]]:
    """Return name, light and dark value of each colour that plots use, by its light value.

    Examples
    --------
    >>> colour_variables()["#0072b2"]
    ('--series-1', '#0072b2', '#4ba6e8')
    """
    variables = {
        getattr(LIGHT, name): (f"--{name}", getattr(LIGHT, name), getattr(DARK, name))
        for name in _SINGLE
    }
    for kind in ("series", "text"):
        pairs = zip(getattr(LIGHT, kind), getattr(DARK, kind), strict=True)
        for k, (light, dark) in enumerate(pairs, start=1):
            variables[light] = (f"--{kind}-{k}", light, dark)
    return variables


def inline_svg(axes: Axes, prefix: str, caption: str) -> str:
    """Return the figure of `axes` as an SVG element that follows the page's colours.

    The axes are drawn in the colours of `LIGHT`, which become variables of the page. Ids begin with
    `prefix`, different for each figure of a page; `caption` is the text for screen readers.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    out = io.StringIO()
    with warnings.catch_warnings():  # letters that the font lacks are drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(out, format="svg", facecolor="none", metadata={"Date": None})
    return _cleaned(out.getvalue(), prefix, caption)


def _cleaned(text: str, prefix: str, caption: str) -> str:
    """Remove the header of a file, number the ids, and replace colours by variables."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace("xlink:href", "href")
    numbers: dict[str, str] = {}  # ids of matplotlib are random, and may occur twice in a page
    for match in re.finditer(r'\bid="([^"]*)"', text):
        numbers.setdefault(match[1], f"{prefix}-{len(numbers)}")
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(
        r'\s*\bid="([^"]*)"', lambda m: f' id="{numbers[m[1]]}"' if m[1] in used else "", text
    )
    text = re.sub(r'(href="#|url\(#)([^")]+)', lambda m: f"{m[1]}{numbers.get(m[2], m[2])}", text)
    for light, (name, _, _) in colour_variables().items():
        text = text.replace(light, f"var({name})")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    opened = f'<svg {box[0]} role="img" aria-label="{escape(caption)}" class="plot">'
    text = opened + text[text.index(">") + 1 :]
    return re.sub(r"\n\s*", "\n", text)


_SQUARE = (4.7, 4.4)
_WIDE = (4.9, 3.9)


class Figures:
    """Maker of figures whose ids differ within one page."""

    def __init__(self) -> None:
        self._count = 0

    def figure(self, title: str, caption: str, draw: Callable[[Axes], object], size: Any) -> str:
        """Return a plot with its caption as HTML."""
        self._count += 1
        axes = new_axes(*size)
        draw(axes)
        return (
            f"<figure><figcaption><b>{escape(title)}</b>{escape(caption)}</figcaption>"
            f"{inline_svg(axes, f'f{self._count}', title)}</figure>"
        )

    def curves(
        self,
        curves: Mapping[str, pd.DataFrame],
        best: Mapping[str, float] | None,
        human: pd.DataFrame | None,
        threshold: float,
    ) -> list[str]:
        """Return the split-VI plot and VI against the threshold."""
        return [
            self.figure(
                "Split VI",
                "False splits against false merges as regions merge: nearer to the corner is "
                "better, and every point of a thin diagonal has the same VI.",
                lambda axes: plot_split_vi(
                    curves, best=best, human=human, threshold=threshold, axes=axes
                ),
                _SQUARE,
            ),
            self.figure(
                "VI by threshold",
                "A policy whose least VI lies near 0.5 is well calibrated.",
                lambda axes: plot_vi_by_threshold(curves, threshold=threshold, axes=axes),
                _SQUARE,
            ),
        ]

    def epochs(self, table: pd.DataFrame) -> str:
        """Return VI against epochs."""
        return self.figure(
            "VI by epoch",
            "Policies that differ only in their epochs of training.",
            lambda axes: plot_vi_by_epoch(table, axes=axes),
            _WIDE,
        )

    def boundaries(self, curves: Mapping[str, pd.DataFrame]) -> str:
        """Return the precision-recall curves of boundaries."""
        return self.figure(
            "Boundaries",
            "Precision and recall of boundary pixels by threshold; for volumes, in some planes.",
            lambda axes: plot_boundaries(curves, axes=axes),
            _SQUARE,
        )

    def rows(self, rows: Mapping[str, Sequence[float]], caption: str) -> str:
        """Return a row of dots for each policy, and for people."""
        return self.figure(
            "VI of each",
            caption,
            lambda axes: plot_vi_rows(rows, axes=axes),
            (4.9, 1.2 + 0.45 * len(rows)),
        )

    def paired(
        self, one: Mapping[str, float], two: Mapping[str, float], names: tuple[str, str]
    ) -> str:
        """Return the scatter of two policies over images."""
        return self.figure(
            "Image by image",
            "A dot for each image; below the diagonal the policy of the vertical axis is better.",
            lambda axes: plot_paired_vi(one, two, names=names, axes=axes),
            _SQUARE,
        )

    def breakdown(self, finding: Finding) -> list[str]:
        """Return both breakdowns of one finding."""
        drawn = []
        for kind, table, caption in (
            ("false split", finding.gold, "Gold segments that are split"),
            ("false merge", finding.segments, "Segments that merge several of the gold standard"),
        ):

            def draw(axes: Axes, table: pd.DataFrame = table, kind: str = kind) -> object:
                return plot_breakdown(table, kind=kind, axes=axes)

            caption = (
                f"{caption}: size against error. Lines of equal cost; the worst have their ids."
            )
            drawn.append(self.figure(f"{kind.capitalize()}s", caption, draw, _WIDE))
        return drawn

    def policy(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Return reliability and importances of one policy."""
        count = min(15, len(record.get("importances") or {}))
        return [
            self.figure(
                f"Reliability of {name}",
                "Share of wrong merges against the probability of the policy.",
                lambda axes: plot_reliability(record, axes=axes),
                _SQUARE,
            ),
            self.figure(
                f"Features of {name}",
                "Importance of the features, the greatest above.",
                lambda axes: plot_importances(record, axes=axes),
                (4.9, max(2.0, 1.0 + 0.26 * count)),
            ),
        ]


def map_figure(finding: Finding, several: bool) -> str:
    """Return the error map of one finding."""
    image = f"image {finding.image}, " if several else ""
    plane = f"plane {', '.join(map(str, finding.plane))}, " if finding.plane else ""
    phrase = threshold_phrase(finding.threshold, first_threshold({"": finding.curve}))
    caption = f"{image}{plane}{phrase}: VI {finding.scores['vi']:.3f} bits"
    return (
        f"<figure><figcaption><b>{escape(finding.policy)}</b>{escape(caption)}</figcaption>"
        f"{finding.error_map}</figure>"
    )


def error_figure(number: int, error: PicturedError, image: str | None) -> str:
    """Return one of the worst errors."""
    split = error.kind == "false split"
    ids = ", ".join(map(str, error.partners[:6])) + (" …" if len(error.partners) > 6 else "")
    if split:
        fact = f"gold segment {error.id} split into {len(error.partners)} pieces"
    else:
        fact = f"segment {error.id} merges {len(error.partners)} gold segments"
    place = (f" of image {image}" if image else "") + (
        f"; shown: {error.plane}" if error.plane else ""
    )
    return (
        f'<figure><figcaption><b>{number}. <span class="kind {"split" if split else "merge"}">'
        f'{error.kind}</span> <span class="cost">{error.contribution:.4f} bits</span></b>'
        f"</figcaption>{error.picture}"
        f'<div class="facts">{fact}: {ids}<br>'
        f"{error.voxels} voxels, at {', '.join(map(str, error.voxel))}{escape(place)}"
        "</div></figure>"
    )
