"""The colours of plots on any theme of the viewer."""

from __future__ import annotations

from dataclasses import replace

from qtpy.QtGui import QColor

from napari_agglo.errors import InvalidInput
from napari_agglo.plots import DARK, LIGHT, Colours

_WORDS = 4.5  # contrast that text needs, and
_LINES = 3.0  # what lines and dots need, to be legible for most people (WCAG 2.1, AA)


def palette(background: str, foreground: str) -> Colours:
    """Return the colours of the plots in files, fitted to a background and a colour of text.

    A colour that is too faint on the background is moved towards the foreground.

    Parameters
    ----------
    background, foreground : str
        Hexadecimal colours, such as ``"#262930"`` and ``"#f0f1f2"``.

    Examples
    --------
    >>> palette("#ffffff", "#000000").series[0], palette("#262930", "#f0f1f2").series[0]
    ('#0072b2', '#4ba6e8')
    """
    paper, ink = _colour(background, "background"), _colour(foreground, "foreground")
    base = LIGHT if _luminance(paper) > _luminance(ink) else DARK

    def lines(colour: str) -> str:
        return _readable(QColor(colour), paper, ink, _LINES)

    def words(colour: str) -> str:
        return _readable(QColor(colour), paper, ink, _WORDS)

    return replace(
        base,
        ink=ink.name(),
        paper=paper.name(),
        muted=words(_mixed(ink, paper, 0.4).name()),
        merge=lines(base.merge),
        split=lines(base.split),
        series=tuple(map(lines, base.series)),
        text=tuple(map(words, base.text)),
    )


def contrast(one: str, two: str) -> float:
    """Return the contrast of two colours, 1 (the same) to 21 (black on white).

    Examples
    --------
    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    low, high = sorted([_luminance(QColor(one)), _luminance(QColor(two))])
    return (high + 0.05) / (low + 0.05)


def _colour(text: str, argument: str) -> QColor:
    colour = QColor(text)
    if not colour.isValid():
        raise InvalidInput(
            f"`{argument}` must be a colour such as '#262930', got {text!r}; take it from the "
            "theme of the viewer."
        )
    return colour


def _readable(colour: QColor, paper: QColor, ink: QColor, least: float) -> str:
    """Return the colour, moved towards the ink until it stands out from the paper."""
    for part in range(21):
        moved = _mixed(colour, ink, part / 20)
        if contrast(moved.name(), paper.name()) >= least:
            return moved.name()
    return ink.name()


def _mixed(one: QColor, two: QColor, part: float) -> QColor:
    a, b = one.getRgb()[:3], two.getRgb()[:3]
    return QColor(
        *(round((1 - part) * (x or 0) + part * (y or 0)) for x, y in zip(a, b, strict=True))
    )


def _luminance(colour: QColor) -> float:
    """Return the relative luminance of WCAG, from 0 (black) to 1 (white)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (colour.redF(), colour.greenF(), colour.blueF())
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
