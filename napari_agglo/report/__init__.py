"""Reports: one HTML page with tables, plots and pictures of the errors."""

from __future__ import annotations

from napari_agglo.report._findings import Finding, PicturedError, examine
from napari_agglo.report._page import html_report

__all__ = ["examine", "Finding", "PicturedError", "html_report"]
