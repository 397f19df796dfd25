"""The report: one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from napari_agglo.errors import InvalidInput
from napari_agglo.report._sections import Page, section
from napari_agglo.report._tables import facts_table
from napari_agglo.report._theme import style_sheet

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.report._finding import Finding


def html_report(
    findings: Sequence[Finding],
    *,
    title: str = "Segmentation report",
    best: Mapping[str, Mapping[str, float]] | None = None,
    human: pd.DataFrame | None = None,
    records: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, object] | None = None,
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
        What to list at the end.

    Returns
    -------
    str
        HTML, light or dark as the reader's system is. It fetches nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> from napari_agglo.report import examine
    >>> graph = agglo.region_graph(np.array([[1, 1, 2, 2, 3, 3]] * 4), np.zeros((4, 6)))
    >>> tree = agglo.agglomerate(graph, "mean")
    >>> found = examine(tree, np.array([[4, 4, 4, 4, 5, 5]] * 4), policy="mean")
    >>> html_report([found]).startswith("<!doctype html>")
    True
    """
    if not findings:
        raise InvalidInput("`findings` must hold what `examine` gives, at least one; got none.")
    page = Page(findings, best or {}, human, records or {})
    sections = [page.summary(), page.curves(), page.breakdowns(), page.maps(), page.errors()]
    sections += [page.policies(), _settings(settings or {})]
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


def _settings(settings: Mapping[str, object]) -> str:
    return section("Settings", "", facts_table(settings)) if settings else ""
