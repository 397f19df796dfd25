"""The tree under live edits: a log of merges, replayed where an edit has changed it.

``docs/proofreading.md`` says what the tree is, and how a cut is made; this folder keeps the tree.
Read the files in this order. The words after each file are explained in it.

hierarchy
    `Hierarchy`, the tree as a session uses it: look, edit, undo, read. Horizon, seam, step.
merge_log
    `MergeLog`, a row for every region that some run has made. Row, birth, live, fresh, name.
replay
    `Replay`, a run beside the record of an earlier one. Record, clean and dirty, stretch, event.
replay_arrays
    The arrays of a replay. Slot, leaf, edge.
replay_kernels
    The loop of a replay. Open and closed, pending, wanted.
fences
    `Constraints`, the live edits, and how cuts keep regions apart. Fence, part, fence set.
superpixels
    Neighbours and statistics of superpixels, divided ones too; `Scorer`, the policy of a replay.
forest_cells
    Priorities of a forest for boundaries that have changed little. Cell, stamp.
frozen_tree
    The hierarchy as plain arrays, for the snapshot of a session.
"""
