"""The record of a policy's training, as a page may show it.

A record comes out of a file. What is in it must not break the page: only entries of the expected
kind are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from napari_agglo.errors import is_number, is_whole


def clean_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a record that are what they should be.

    Examples
    --------
    >>> clean_record({"strategy": "agglo", "epochs": "many", "importances": {"a": 0.5, "b": None}})
    {'strategy': 'agglo', 'importances': {'a': 0.5}}
    """
    out: dict[str, Any] = {}
    if isinstance(record.get("strategy"), str):
        out["strategy"] = record["strategy"]
    out |= {
        name: int(record[name])
        for name in ("epochs", "examples")
        if is_whole(record.get(name)) and record[name] >= 0
    }
    if _finite(record.get("accuracy")):
        out["accuracy"] = float(record["accuracy"])
    if isinstance(record.get("held_out"), bool):
        out["held_out"] = record["held_out"]
    bins = record.get("calibration")
    if isinstance(bins, (list, tuple)):
        out["calibration"] = [[float(v) for v in one] for one in bins if _is_bin(one)]
    found = record.get("importances")
    if isinstance(found, Mapping):
        out["importances"] = {str(k): float(v) for k, v in found.items() if _finite(v)}
    return out


def _is_bin(one: Any) -> bool:
    return (
        isinstance(one, (list, tuple)) and len(one) == 3 and all(map(_finite, one)) and one[2] > 0
    )


def _finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def trained(record: Mapping[str, Any]) -> str:
    """Return how a policy was trained, in a line.

    Examples
    --------
    >>> trained({"strategy": "agglo", "epochs": 5, "examples": 300})
    'agglo, 5 epochs, 300 examples'
    >>> trained({"strategy": "agglo", "epochs": 1})
    'agglo, 1 epoch'
    """
    said = [str(record.get("strategy", "trained"))]
    for many in ("epochs", "examples"):
        if record.get(many):
            said.append(f"{record[many]} {many if record[many] != 1 else many[:-1]}")
    if "accuracy" in record:
        whose = "held-out" if record.get("held_out") else "training"
        said.append(f"{100 * record['accuracy']:.1f} % of {whose} ones right")
    return ", ".join(said)
