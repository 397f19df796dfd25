"""Embedded samples: images with imperfect cues and a gold standard, generated from a seed."""

from __future__ import annotations

from napari_agglo.samples._sample import SAMPLES, Sample, sample

__all__ = ["SAMPLES", "Sample", "sample"]
