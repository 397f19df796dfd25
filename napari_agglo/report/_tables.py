"""The tables of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np


@dataclass(frozen=True)
class Column:
    """A column of the summary: what it is called, in the table and in full, and what is better."""

    key: str
    title: str
    said: str
    better: int  # -1: less, 1: more, 0: neither
    digits: int = 3


COLUMNS = (
    Column("vi", "VI", "variation of information, bits", -1),
    Column("false_merge", "false merge", "H(gold|labels), bits", -1),
    Column("false_split", "false split", "H(labels|gold), bits", -1),
    Column("vi_min", "least VI", "at the best threshold, bits", -1),
    Column("vi_ods", "VI, one for all", "at the one threshold best for all, bits", -1),
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
    """A row of the summary: values over images for each column; a reference does not compete."""

    name: str
    values: Mapping[str, Sequence[float]]
    colour: str = ""
    reference: bool = False


def summary_table(rows: Sequence[Row]) -> str:
    """Return the summary as HTML: the best value of each column among the policies is marked.

    Examples
    --------
    >>> rows = [Row("a", {"vi": [1.0]}), Row("b", {"vi": [2.0]})]
    >>> summary_table(rows).count('class="best"')
    1
    """
    columns = [c for c in COLUMNS if any(c.key in row.values for row in rows)]
    competing = [row for row in rows if not row.reference]
    best = {c.key: _best(c, competing) for c in columns}
    head = "".join(
        f'<th scope="col" title="{escape(c.said)}">{escape(c.title)}'
        f"{'&nbsp;↓' if c.better < 0 else '&nbsp;↑' if c.better > 0 else ''}</th>"
        for c in columns
    )
    body = []
    for row in rows:
        cells = "".join(_cell(c, row, best[c.key]) for c in columns)
        swatch = f'<span class="swatch" style="background:{row.colour}"></span>'
        name = (swatch if row.colour else "") + escape(row.name)
        kind = ' class="reference"' if row.reference else ""
        body.append(f'<tr{kind}><th scope="row" title="{escape(row.name)}">{name}</th>{cells}</tr>')
    return (
        '<div class="card scroll"><table><thead><tr><th scope="col">policy</th>'
        f"{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _shown(column: Column, value: float) -> str:
    if not math.isfinite(value):
        return "none" if column.key == "threshold_min" else "–"
    return f"{value:.{column.digits}f}"


def _best(column: Column, rows: Sequence[Row]) -> str | None:
    """Return how the best value reads: equal to all digits shown is equal."""
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
    mark = ' class="best"' if text == best and not row.reference else ""
    if values.size > 1 and np.isfinite(values).all():
        sem = float(values.std(ddof=1) / math.sqrt(values.size))
        text += f' <span class="sem">± {_shown(column, sem)}</span>'
    return f"<td{mark}>{text}</td>"


def facts_table(facts: Mapping[str, object]) -> str:
    """Return settings as HTML, a row each.

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
