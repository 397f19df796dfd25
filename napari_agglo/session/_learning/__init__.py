"""Learning from edits: what they say of two segments, a policy refitted, edits done again."""

from napari_agglo.session._learning._arguments import FEW, check_options, check_volumes
from napari_agglo.session._learning._pair_row import pair_row
from napari_agglo.session._learning._refit import WEIGHT, refit
from napari_agglo.session._learning._replay import replayed
from napari_agglo.session._learning._wishes import NotReplayed

__all__ = [
    "FEW",
    "WEIGHT",
    "NotReplayed",
    "check_options",
    "check_volumes",
    "pair_row",
    "refit",
    "replayed",
]
