"""The tree under live edits: a log of merges, replayed where an edit has changed it."""
