"""Figures as SVG that stands within a page: it follows the page's colours and fetches nothing."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import TYPE_CHECKING

from napari_agglo.plots import DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SINGLE = ("ink", "muted", "paper", "merge", "split")


def colour_variables() -> dict[str, tuple[str, str, str]]:
    """Return name, light and dark value of each colour that plots use, by its light value.

    Examples
    --------
    >>> colour_variables()["#0072b2"]
    ('--series-1', '#0072b2', '#4ba6e8')
    """
    found = {
        getattr(LIGHT, name): (f"--{name}", getattr(LIGHT, name), getattr(DARK, name))
        for name in _SINGLE
    }
    for kind in ("series", "text"):
        pairs = zip(getattr(LIGHT, kind), getattr(DARK, kind), strict=True)
        for k, (light, dark) in enumerate(pairs, start=1):
            found[light] = (f"--{kind}-{k}", light, dark)
    return found


def inline_svg(axes: Axes, prefix: str, said: str) -> str:
    """Return the figure of `axes` as an element for a page.

    Parameters
    ----------
    axes : Axes
        Drawn in the colours of `LIGHT`; they become variables of the page.
    prefix : str
        What the ids within begin with, different for each figure of a page.
    said : str
        What it shows, for those who do not see it.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    out = io.StringIO()
    with warnings.catch_warnings():  # a name may have letters that the font lacks: boxes are drawn
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(out, format="svg", facecolor="none", metadata={"Date": None})
    return _cleaned(out.getvalue(), prefix, said)


def _cleaned(text: str, prefix: str, said: str) -> str:
    """Strip what only a file of its own needs, number the ids, and name the colours."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace("xlink:href", "href")
    numbers: dict[str, str] = {}  # those of matplotlib are drawn at random, and may come twice
    for found in re.finditer(r'\bid="([^"]*)"', text):
        numbers.setdefault(found[1], f"{prefix}-{len(numbers)}")
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(
        r'\s*\bid="([^"]*)"', lambda m: f' id="{numbers[m[1]]}"' if m[1] in used else "", text
    )
    text = re.sub(r'(href="#|url\(#)([^")]+)', lambda m: f"{m[1]}{numbers.get(m[2], m[2])}", text)
    for light, (name, _, _) in colour_variables().items():
        text = text.replace(light, f"var({name})")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    opened = f'<svg {box[0]} role="img" aria-label="{escape(said)}" class="plot">'
    text = opened + text[text.index(">") + 1 :]
    return re.sub(r"\n\s*", "\n", text)
