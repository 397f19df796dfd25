"""What the summary table says: a row for each policy, and rows that do not compete."""

from __future__ import annotations

import math

from napari_agglo.evaluate import minimum, over_set, state_at
from napari_agglo.plots import LIGHT
from napari_agglo.report._boundaries import summed
from napari_agglo.report._compared import Compared
from napari_agglo.report._svg import colour_variables
from napari_agglo.report._tables import COLUMNS, Row

_ERRORS = ("vi", "false_merge", "false_split")


def summary_rows(compared: Compared) -> list[Row]:
    """Return the rows of the summary, the policies first, in the order in which they came."""
    names = {light: name for light, (name, _, _) in colour_variables().items()}
    rows = []
    for k, (name, found) in enumerate(compared.policies_found.items()):
        values: dict[str, list[float]] = {
            c.key: [f.scores[c.key] for f in found] for c in COLUMNS if c.key in found[0].scores
        }
        values["vi_min"] = [minimum(f.curve)["vi"] for f in found]
        together = over_set({f.image: f.curve for f in found})
        values["threshold_min"] = [together.threshold]
        if len(found) > 1:
            values["vi_ods"] = [together.ods]
        curve = summed([f.boundaries for f in found])
        if curve is not None:
            values["boundary_f"] = [float(curve["f"].max())]
        rows.append(Row(name, values, f"var({names[LIGHT.line(k)[0]]})"))
    return rows + _references(compared)


def _references(compared: Compared) -> list[Row]:
    """Return what does not compete: the superpixels, the best they allow, people."""
    first = next(iter(compared.policies_found.values()))
    start = [state_at(f.curve, -math.inf) for f in first]
    rows = {
        "superpixels": {key: [s[key] for s in start] for key in (*_ERRORS, "covering", "segments")}
    }
    if compared.best:
        rows["best possible (A*)"] = {
            key: [point[key] for point in compared.best] for key in _ERRORS
        }
    people = {key: compared.people(key) for key in (*_ERRORS, "covering")}
    if people["vi"]:
        rows["human against human"] = {key: values for key, values in people.items() if values}
    return [Row(name, values, reference=True) for name, values in rows.items()]
