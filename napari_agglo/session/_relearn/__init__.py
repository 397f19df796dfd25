"""Learning from edits: examples from edits, a policy refitted, edits transferred to its tree."""

from napari_agglo.session._relearn.refit import FEW, WEIGHT, check_options, check_volumes, refit
from napari_agglo.session._relearn.transfer_edits import Conflict, transfer_edits

__all__ = [
    "FEW",
    "WEIGHT",
    "Conflict",
    "check_options",
    "check_volumes",
    "refit",
    "transfer_edits",
]
