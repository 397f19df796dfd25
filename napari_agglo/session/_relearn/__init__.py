"""Learning from edits: what they say of two segments, a policy refitted, edits done again."""

from napari_agglo.session._relearn.examples import pair_graph, pair_row
from napari_agglo.session._relearn.refit import FEW, WEIGHT, check_options, check_volumes, refit
from napari_agglo.session._relearn.replay_edits import NotReplayed, replayed

__all__ = [
    "FEW",
    "WEIGHT",
    "NotReplayed",
    "check_options",
    "check_volumes",
    "pair_graph",
    "pair_row",
    "refit",
    "replayed",
]
