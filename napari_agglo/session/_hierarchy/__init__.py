"""The tree under live edits: a log of merges, replayed where an edit has changed it.

``docs/proofreading.md`` says what the tree is, this folder how it is kept. Read in this order; each
file explains the terms that it is named with here.

hierarchy
    `Hierarchy`, the tree as a session uses it: look, edit, undo, read. Horizon, seam, step.
merge_log
    `MergeLog`, a row for every region that some run has made. Row, birth, live, fresh, name.
replay
    `Replay`, a run beside the record of an earlier one. Record, clean and dirty, stretch, event.
replay_arrays
    What a replay works on. Slot, leaf, edge.
replay_kernels
    The loop of a replay. Open and closed, pending, wanted.
fences
    `Constraints`, the live edits, and what cuts keep apart. Fence, part, bag.
superpixels
    Neighbours and statistics of superpixels, divided ones too; `Asker`, the policy of a replay.
forest_cells
    Priorities of a forest for boundaries that have changed little. Cell, stamp.
frozen_tree
    All of it as plain arrays, for the snapshot of a session, and back.
"""
