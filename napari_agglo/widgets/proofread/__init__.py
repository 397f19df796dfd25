"""The Proofread step."""

from __future__ import annotations

from napari_agglo.widgets.proofread._widget import ProofreadWidget

__all__ = ["ProofreadWidget"]
