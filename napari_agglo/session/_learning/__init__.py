"""Learning from edits: what they say of two segments, a policy refitted, edits done again."""

from napari_agglo.session._learning._pair_row import pair_row

__all__ = ["pair_row"]
